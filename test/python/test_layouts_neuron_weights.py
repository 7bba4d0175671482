"""Weights, scales and biases of experts, against loops over their definitions."""

import re

import ml_dtypes
import numpy as np
import pytest
from neuron_arrays import X4_TYPES, random_bytes, random_codes, zeros

from mx_dialect import MxError
from mx_dialect.layouts import neuron, neuron_weights

every_type = pytest.mark.parametrize("element_type", list(X4_TYPES))


def k_tile(k):
    """Return (partition, tile, lane) of element k of the summed axis: k = 512t + 4p + q."""
    return k % 512 // 4, k // 512, k % 4


@pytest.mark.parametrize(("experts", "hidden", "intermediate"), [(2, 1024, 32), (1, 512, 192), (1, 512, 512)])
@every_type
def test_pack_gate_up(experts, hidden, intermediate, element_type):
    bits, dtype = X4_TYPES[element_type]
    gate, up = (random_codes((experts, hidden, intermediate), element_type, seed) for seed in range(2))
    weight = neuron_weights.pack_gate_up(gate, up, element_type)
    assert (weight.shape, weight.dtype) == ((experts, 128, 2, hidden // 512, intermediate), dtype)
    for h in range(hidden):
        p, t, q = k_tile(h)
        for which, source in enumerate((gate, up)):
            lanes = weight[:, p, which, t] >> dtype(bits * q) & dtype((1 << bits) - 1)
            np.testing.assert_array_equal(lanes, source[:, h])
    for again, source in zip(neuron_weights.unpack_gate_up(weight), (gate, up), strict=True):
        np.testing.assert_array_equal(again, source)
    packed = [neuron.pack_x4(source, element_type, axis=1) for source in (gate, up)]
    np.testing.assert_array_equal(neuron_weights.pack_gate_up(*packed), weight)


DOWN_SHAPES = [(2, 32, 8, 1), (1, 192, 48, 1), (1, 480, 120, 1), (1, 512, 128, 1), (2, 1024, 128, 2)]


@pytest.mark.parametrize(("experts", "intermediate", "partitions", "tiles"), DOWN_SHAPES)
@every_type
def test_pack_down(experts, intermediate, partitions, tiles, element_type):
    bits, dtype = X4_TYPES[element_type]
    source = random_codes((experts, intermediate, 512), element_type)
    weight = neuron_weights.pack_down(source, element_type)
    assert (weight.shape, weight.dtype) == ((experts, partitions, tiles, 512), dtype)
    for i in range(intermediate):
        p, t, q = k_tile(i)
        np.testing.assert_array_equal(weight[:, p, t] >> dtype(bits * q) & dtype((1 << bits) - 1), source[:, i])
    np.testing.assert_array_equal(neuron_weights.unpack_down(weight), source)
    containers = neuron.pack_x4(source, element_type, axis=1)
    assert np.shares_memory(neuron_weights.pack_down(containers), containers)


@pytest.mark.parametrize(("experts", "intermediate", "partitions", "tiles"), DOWN_SHAPES)
def test_pack_down_scales(experts, intermediate, partitions, tiles):
    dense = random_bytes((experts, intermediate // 32, 512))
    scales = neuron_weights.pack_down_scales(dense.view(ml_dtypes.float8_e8m0fnu))
    assert (scales.shape, scales.dtype) == ((experts, partitions // 8, tiles, 512), np.uint8)
    assert np.shares_memory(scales, dense)
    for i in range(intermediate):
        p, t, _ = k_tile(i)
        np.testing.assert_array_equal(scales[:, p // 8, t], dense[:, i // 32])
    np.testing.assert_array_equal(neuron_weights.unpack_down_scales(scales), dense)


def test_pack_gate_up_scales():
    dense = [random_bytes((2, 32, 64), seed) for seed in range(2)]
    scales = neuron_weights.pack_gate_up_scales(*dense)
    assert (scales.shape, scales.dtype) == ((2, 16, 2, 2, 64), np.uint8)
    for h in range(1024):
        p, t, _ = k_tile(h)
        for which in range(2):
            np.testing.assert_array_equal(scales[:, p // 8, which, t], dense[which][:, h // 32])
    for again, source in zip(neuron_weights.unpack_gate_up_scales(scales), dense, strict=True):
        np.testing.assert_array_equal(again, source)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize(("experts", "intermediate", "partitions", "tiles"), DOWN_SHAPES)
def test_pack_gate_up_bias(experts, intermediate, partitions, tiles, dtype):
    gate, up = np.arange(2 * experts * intermediate, dtype=np.uint16).astype(dtype).reshape(2, experts, intermediate)
    bias = neuron_weights.pack_gate_up_bias(gate, up)
    assert (bias.shape, bias.dtype) == ((experts, partitions, 2, tiles, 4), dtype)
    for i in range(intermediate):
        p, t, q = k_tile(i)
        for which, source in enumerate((gate, up)):
            np.testing.assert_array_equal(bias[:, p, which, t, q], source[:, i])
    for again, source in zip(neuron_weights.unpack_gate_up_bias(bias), (gate, up), strict=True):
        np.testing.assert_array_equal(again, source)


@pytest.mark.parametrize("hidden", [512, 1536])
def test_permute_hidden(hidden):
    activations = np.arange(2 * hidden).reshape(2, hidden)
    permuted = neuron_weights.permute_hidden(activations)
    for h in range(hidden):
        p, t, q = k_tile(h)
        position = q * (hidden // 4) + 128 * t + p
        np.testing.assert_array_equal(permuted[:, position], activations[:, h])
        assert neuron_weights.hidden_position(h, hidden) == position
        assert neuron_weights.hidden_feature(position, hidden) == h
        assert neuron_weights.k_index(p, t, q) == h
    np.testing.assert_array_equal(neuron_weights.restore_hidden(permuted), activations)


def test_intermediate_of_192_lies_on_48_partitions():
    assert neuron_weights.intermediate_partitions(192) == 48
    assert neuron_weights.intermediate_tiles(192) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: neuron_weights.pack_gate_up(zeros(1, 256, 32), zeros(1, 256, 32), "f8E5M2"),
            "H must be a positive multiple of 512, but is 256; pad",
        ),
        (
            lambda: neuron_weights.pack_gate_up(zeros(1, 0, 32), zeros(1, 0, 32), "f8E5M2"),
            "H must be a positive multiple of 512, but is 0",
        ),
        (
            lambda: neuron_weights.pack_gate_up(zeros(1, 512, 16), zeros(1, 512, 16), "f8E5M2"),
            "I must be a multiple of 512, or less than 512 and a multiple of 32, but is 16; pad",
        ),
        (lambda: neuron_weights.pack_gate_up(zeros(1, 512, 544), zeros(1, 512, 544), "f8E5M2"), "but is 544"),
        (
            lambda: neuron_weights.pack_gate_up(zeros(1, 512, 0), zeros(1, 512, 0), "f8E5M2"),
            "I must be a multiple of 512, or less than 512 and a multiple of 32, but is 0",
        ),
        (
            lambda: neuron_weights.pack_gate_up(zeros(1, 512, 32), zeros(1, 512, 64), "f8E5M2"),
            "gate and up weights must have one shape",
        ),
        (
            lambda: neuron_weights.pack_gate_up(zeros(1, 128, 32, dtype=np.uint16), zeros(1, 128, 32, dtype=np.uint32)),
            "must have one element type, not uint16 and uint32",
        ),
        (
            lambda: neuron_weights.pack_gate_up(zeros(512, 32), zeros(512, 32), "f8E5M2"),
            "gate weights must have shape [E, H, I], but the shape is (512, 32)",
        ),
        (
            lambda: neuron_weights.pack_gate_up(zeros(512, 32, dtype=np.uint16), zeros(512, 32, dtype=np.uint16)),
            "gate weights must have shape [E, H/4, I]",
        ),
        (
            lambda: neuron_weights.pack_gate_up(*[zeros(1, 128, 32, dtype=np.uint16)] * 2, "f8E4M3FN"),
            "uint16 containers have lanes of 4 bits, but f8E4M3FN has 8",
        ),
        (
            lambda: neuron_weights.pack_down(zeros(1, 8, 512, dtype=np.int32), "f4E2M1FN"),
            "int32 containers have lanes of 8 bits, but f4E2M1FN has 4",
        ),
        (lambda: neuron_weights.pack_down(zeros(32, 512), "f8E5M2"), "a down weight must have shape [E, I, H]"),
        (lambda: neuron_weights.pack_down(zeros(1, 9, 512, dtype=np.uint16)), "but is 36"),
        (lambda: neuron_weights.pack_gate_up(zeros(1, 512, 32), zeros(1, 512, 32)), "uint8 codes need element_type"),
        (
            lambda: neuron_weights.unpack_gate_up(zeros(1, 64, 2, 1, 32, dtype=np.uint16)),
            "gate and up weights have shape [E, 128, 2, H/512, I], not (1, 64, 2, 1, 32)",
        ),
        (lambda: neuron_weights.unpack_gate_up(zeros(1, 128, 2, 1, 33, dtype=np.uint16)), "but is 33"),
        (lambda: neuron_weights.unpack_gate_up(zeros(1, 128, 2, 1, 32)), "x4 containers are"),
        (
            lambda: neuron_weights.pack_gate_up_scales(zeros(1, 16, 32), zeros(1, 32, 32)),
            "gate and up scales must have one shape",
        ),
        (
            lambda: neuron_weights.pack_gate_up_scales(zeros(1, 15, 32), zeros(1, 15, 32)),
            "H must be a positive multiple of 512, but is 480",
        ),
        (
            lambda: neuron_weights.pack_gate_up_scales(zeros(16, 32), zeros(16, 32)),
            "gate scales must have shape [E, H/32, I]",
        ),
        (lambda: neuron_weights.pack_gate_up_scales(zeros(1, 16, 32, dtype=np.int32), zeros(1, 16, 32)), "not int32"),
        (
            lambda: neuron_weights.unpack_gate_up_scales(zeros(1, 16, 1, 1, 32)),
            "[E, 16, 2, H/512, I], not (1, 16, 1, 1, 32)",
        ),
        (
            lambda: neuron_weights.pack_down(zeros(1, 32, 100), "f8E5M2"),
            "H must be a positive multiple of 512, but is 100",
        ),
        (lambda: neuron_weights.pack_down(zeros(1, 528, 512), "f8E5M2"), "I must be a multiple of 512"),
        (
            lambda: neuron_weights.unpack_down(zeros(1, 64, 2, 512, dtype=np.uint16)),
            "I = 512 lies on 128 partitions in 1 tiles, not 64 in 2 as in shape (1, 64, 2, 512)",
        ),
        (
            lambda: neuron_weights.unpack_down(zeros(1, 64, 512, dtype=np.uint16)),
            "a down weight must have shape [E, p_I, nI512, H]",
        ),
        (lambda: neuron_weights.unpack_down(zeros(1, 128, 0, 512, dtype=np.uint16)), "but is 0"),
        (lambda: neuron_weights.pack_down_scales(zeros(1, 17, 512)), "but is 544"),
        (
            lambda: neuron_weights.pack_down_scales(zeros(16, 512)),
            "scales of a down weight must have shape [E, I/32, H]",
        ),
        (lambda: neuron_weights.unpack_down_scales(zeros(1, 8, 2, 512)), "not 64 in 2 as in shape (1, 8, 2, 512)"),
        (lambda: neuron_weights.unpack_down_scales(zeros(1, 16, 1, 5)), "but is 5"),
        (
            lambda: neuron_weights.pack_gate_up_bias(zeros(1, 32), zeros(1, 64)),
            "gate and up biases must have one shape and dtype",
        ),
        (lambda: neuron_weights.pack_gate_up_bias(zeros(1, 32), zeros(1, 32, dtype=np.int8)), "one shape and dtype"),
        (lambda: neuron_weights.pack_gate_up_bias(zeros(32), zeros(32)), "gate biases must have shape [E, I]"),
        (lambda: neuron_weights.pack_gate_up_bias(zeros(1, 48), zeros(1, 48)), "but is 48"),
        (
            lambda: neuron_weights.unpack_gate_up_bias(zeros(1, 8, 2, 1, 3)),
            "have shape [E, p_I, 2, nI512, 4], not (1, 8, 2, 1, 3)",
        ),
        (lambda: neuron_weights.unpack_gate_up_bias(zeros(1, 64, 2, 2, 4)), "not 64 in 2"),
        (lambda: neuron_weights.unpack_gate_up_bias(zeros(1, 8, 2, 4)), "biases of gate and up must have shape"),
        (lambda: neuron_weights.permute_hidden(zeros(2, 256)), "but is 256"),
        (lambda: neuron_weights.restore_hidden(zeros()), "activations must have rank 1 or more"),
    ],
)
def test_expert_weights_refused(call, message):
    with pytest.raises(MxError, match=re.escape(message)):
        call()
