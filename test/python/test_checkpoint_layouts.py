"""MXFP4 tensors of gpt-oss checkpoints and of ggml, against loops over what their blocks mean."""

import re

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mx_dialect
from mx_dialect import MxArray, MxError, reference
from mx_dialect.ingress import ggml, gpt_oss
from mx_dialect.layouts import neuron

E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
E2M1 += [-value for value in E2M1]
GGML_TABLE = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12]

shapes = st.tuples(st.lists(st.integers(0, 3), max_size=2), st.integers(0, 3), st.integers(0, 99))


def random_bytes(shape, seed=0, highest=255):
    return np.random.default_rng(seed).integers(0, highest + 1, shape, dtype=np.uint8)


@given(shapes)
def test_gpt_oss(shape):
    rows, groups, seed = shape
    blocks = random_bytes((*rows, groups, 16), seed)
    scales = random_bytes((*rows, groups), seed + 1, highest=254)
    q = gpt_oss.from_tensors(blocks, scales)
    assert (q.shape, q.element_type, q.block_size, q.axis) == ((*rows, 32 * groups), "f4E2M1FN", 32, len(rows))
    assert q.scale_type == "f8E8M0FNU"
    values = q.mantissa.astype(np.float64) * 2.0 ** (np.repeat(scales, 32, axis=-1).astype(np.float64) - 127)
    for *row, g, j in np.ndindex(blocks.shape):
        scale = 2.0 ** (int(scales[(*row, g)]) - 127)
        byte = blocks[(*row, g, j)]
        assert values[(*row, 32 * g + 2 * j)] == E2M1[byte & 15] * scale
        assert values[(*row, 32 * g + 2 * j + 1)] == E2M1[byte >> 4] * scale
    again, scales_again = gpt_oss.to_tensors(q)
    np.testing.assert_array_equal(again, blocks)
    np.testing.assert_array_equal(scales_again, scales)
    assert (again.dtype, scales_again.dtype) == (np.uint8, np.uint8)


def test_gpt_oss_scales_are_not_copied():
    blocks, scales = random_bytes((2, 3, 16)), random_bytes((2, 3))
    q = gpt_oss.from_tensors(blocks, scales)
    assert np.shares_memory(q.scale, scales)
    assert np.shares_memory(gpt_oss.to_tensors(q)[1], scales)
    typed = gpt_oss.from_tensors(blocks, scales.view(ml_dtypes.float8_e8m0fnu))
    np.testing.assert_array_equal(typed.scale.view(np.uint8), scales)


def test_gpt_oss_rows_of_gate_and_up_alternate():
    blocks, scales = random_bytes((2, 6, 4, 16)), random_bytes((2, 6, 4), highest=254)
    whole = reference.dequantize(gpt_oss.from_tensors(blocks, scales))
    for first in range(2):
        half = gpt_oss.from_tensors(blocks[:, first::2], scales[:, first::2])
        np.testing.assert_array_equal(reference.dequantize(half), whole[:, first::2])


def test_gpt_oss_blocks_are_containers():
    blocks, scales = random_bytes((5, 4, 16)), random_bytes((5, 4))
    containers = neuron.containers_of_packed(blocks.reshape(5, 64))
    assert np.shares_memory(containers, blocks)
    np.testing.assert_array_equal(containers, neuron.pack_x4(gpt_oss.from_tensors(blocks, scales).mantissa))


@given(shapes)
def test_ggml(shape):
    rows, groups, seed = shape
    blocks = random_bytes((*rows, groups, 17), seed)
    blocks[..., 0] = random_bytes((*rows, groups), seed + 1, highest=254)
    data = blocks.reshape(*rows, 17 * groups)
    q = ggml.from_blocks(data)
    assert (q.shape, q.element_type, q.block_size, q.axis) == ((*rows, 32 * groups), "f4E2M1FN", 32, len(rows))
    values = q.mantissa.astype(np.float64) * 2.0 ** (np.repeat(q.scale.view(np.uint8), 32, -1).astype(np.float64) - 127)
    for *row, g in np.ndindex(blocks.shape[:-1]):
        half_scale = 2.0 ** (int(blocks[(*row, g, 0)]) - 128)
        for j in range(16):
            byte = blocks[(*row, g, 1 + j)]
            assert values[(*row, 32 * g + j)] == GGML_TABLE[byte & 15] * half_scale
            assert values[(*row, 32 * g + 16 + j)] == GGML_TABLE[byte >> 4] * half_scale
    again = ggml.to_blocks(q)
    assert again.dtype == np.uint8
    np.testing.assert_array_equal(again, data)


def test_ggml_blocks_of_a_quantized_matrix():
    x = np.random.default_rng(0).standard_normal((3, 64), dtype=np.float32)
    q = mx_dialect.quantize(x, "f4E2M1FN")
    again = ggml.from_blocks(ggml.to_blocks(q))
    np.testing.assert_array_equal(mx_dialect.dequantize(again), mx_dialect.dequantize(q))


def test_ggml_scales_are_a_view():
    data = random_bytes((2, 34), highest=254)
    assert np.shares_memory(ggml.from_blocks(data).scale, data)


def test_gpt_oss_to_ggml():
    blocks, scales = random_bytes((2, 1, 16)), random_bytes((2, 1), highest=254)
    data = ggml.to_blocks(gpt_oss.from_tensors(blocks, scales))
    for row in range(2):
        codes = [code for byte in blocks[row, 0].tolist() for code in (byte & 15, byte >> 4)]
        assert data[row].tolist() == [scales[row, 0], *(codes[j] | codes[16 + j] << 4 for j in range(16))]


def an_array(element_type="f4E2M1FN", block_size=32, axis=-1, scale_code=127, scale_type="f8E8M0FNU"):
    shape = [64, 64]
    scale_shape = list(shape)
    scale_shape[axis] //= block_size
    scale = np.full(scale_shape, scale_code, np.uint8)
    return MxArray(np.zeros(shape, np.uint8), scale, block_size, axis, element_type, scale_type)


BLOCKS, SCALES = np.zeros((2, 3, 16), np.uint8), np.zeros((2, 3), np.uint8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gpt_oss.from_tensors(BLOCKS.astype(np.int8), SCALES), "blocks must have dtype uint8, not int8"),
        (lambda: gpt_oss.from_tensors(BLOCKS[..., :8], SCALES), "shape [..., G, 16], but the shape is (2, 3, 8)"),
        (lambda: gpt_oss.from_tensors(np.zeros(16, np.uint8), np.uint8(0)), "but the shape is (16,)"),
        (
            lambda: gpt_oss.from_tensors(BLOCKS, SCALES[:1]),
            "scales must have shape (2, 3) for blocks of shape (2, 3, 16), not (1, 3)",
        ),
        (lambda: gpt_oss.from_tensors(BLOCKS, SCALES.astype(np.float32)), "dtype float8_e8m0fnu or uint8, not float32"),
        (lambda: gpt_oss.from_tensors(BLOCKS, SCALES.view(ml_dtypes.float8_e4m3fn)), "not float8_e4m3fn"),
        (lambda: gpt_oss.from_tensors(BLOCKS.tolist(), SCALES), "blocks must be a numpy array, not list"),
        (lambda: gpt_oss.to_tensors(BLOCKS), "a gpt-oss checkpoint holds an MxArray, not ndarray"),
        (
            lambda: gpt_oss.to_tensors(an_array("f8E5M2")),
            "holds f4E2M1FN in blocks of 32 with f8E8M0FNU scales, not MxArray(!mx.tensor<64x64xf8E5M2",
        ),
        (lambda: gpt_oss.to_tensors(an_array(block_size=16)), "in blocks of 32"),
        (lambda: gpt_oss.to_tensors(an_array(scale_type="f8E4M3FN")), "with f8E8M0FNU scales"),
        (lambda: gpt_oss.to_tensors(an_array(axis=0)), "along axis 0; transpose it first"),
        (lambda: ggml.from_blocks(np.zeros(16, np.uint8)), "shape [..., 17 G], but the shape is (16,)"),
        (lambda: ggml.from_blocks(np.zeros((), np.uint8)), "but the shape is ()"),
        (lambda: ggml.from_blocks(np.zeros(17, np.int8)), "must have dtype uint8, not int8"),
        (lambda: ggml.from_blocks(b"0" * 17), "ggml blocks must be a numpy array, not bytes"),
        (
            lambda: ggml.from_blocks(np.full(17, 255, np.uint8)),
            "a scale has code 255, which is NaN in f8E8M0FNU but 2^128 in ggml",
        ),
        (lambda: ggml.to_blocks(an_array(scale_code=255)), "a scale has code 255"),
        (lambda: ggml.to_blocks(an_array("f8E4M3FN")), "a ggml tensor holds f4E2M1FN"),
        (lambda: ggml.to_blocks(an_array(axis=0)), "a ggml tensor has its blocks along the last axis"),
    ],
)
def test_refused(call, message):
    with pytest.raises(MxError, match=re.escape(message)):
        call()
