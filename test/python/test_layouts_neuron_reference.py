"""The instructions on x4 containers, term by term, and whole projections from packed weights."""

import re

import ml_dtypes
import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from neuron_arrays import X4_TYPES, lane, zeros

from mx_dialect import MxError, reference
from mx_dialect.layouts import neuron, neuron_reference, neuron_scales, neuron_weights
from mx_dialect.layouts.neuron import MX_INTERLEAVED

EMAX = {"f8E5M2": 15, "f8E4M3FN": 8}


def quantized(x, element_type, headroom):
    """Return the codes of elements and scales of [P, 4F] activations, group by group."""
    emax = EMAX[element_type]
    codes = np.empty(x.shape, np.uint8)
    scale = np.empty((x.shape[0] // 8, x.shape[1] // 4), np.uint8)
    for g, f in np.ndindex(scale.shape):
        group = np.s_[8 * g : 8 * g + 8, 4 * f : 4 * f + 4]
        exponents = x[group].astype(np.float32).view(np.uint32) >> 23 & 0xFF
        scale[g, f] = code = max(int(exponents.max()) - emax + headroom, 0)
        divided = x[group].astype(np.float64) / 2.0 ** (code - 127)
        codes[group] = reference.encode(divided, element_type)  # Nearest, ties to even, saturated.
    return codes, scale


@settings(max_examples=40)
@given(
    st.data(),
    st.sampled_from(list(EMAX)),
    st.integers(0, 1),
    st.sampled_from([np.float32, np.float16, ml_dtypes.bfloat16]),
)
def test_quantize_mx(data, element_type, headroom, dtype):
    drawn = data.draw(strategies.float_blocks(32, dtype)).reshape(8, 4)
    # Other groups lie beside and below it.
    x = np.random.default_rng(0).standard_normal((16, 8)).astype(dtype)
    x[8:, :4] = drawn
    containers, scale = neuron_reference.quantize_mx(x, element_type, headroom)
    elements, scale_codes = quantized(x, element_type, headroom)
    assert (containers.dtype, containers.shape, scale.dtype) == (np.uint32, (16, 2), np.uint8)
    np.testing.assert_array_equal(scale, scale_codes)
    np.testing.assert_array_equal(neuron.unpack_x4(containers), elements)


def test_quantize_mx_of_one_group():
    x = np.zeros((8, 4), np.float32)
    x[0, 0], x[7, 3], x[3, 2] = 1.0, -0.25, 1.9375  # The largest exponent is 127.
    containers, scale = neuron_reference.quantize_mx(x, "f8E4M3FN")
    assert scale.tolist() == [[127 - 8]]
    values = neuron.unpack_x4(containers).view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    assert (values[0, 0], values[7, 3]) == (256.0, -64.0)
    assert values[3, 2] == 448  # 496 is clipped.
    containers, scale = neuron_reference.quantize_mx(x, "f8E4M3FN", headroom=1)
    assert scale.tolist() == [[127 - 7]]
    values = neuron.unpack_x4(containers).view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    assert values[3, 2] == 256  # 248 is a tie between 240 and 256.


def test_quantize_mx_subnormals_and_specials():
    x = np.zeros((8, 8), np.float32)
    x[0, 0] = 2.0**-130
    x[0, 4], x[1, 4], x[2, 4] = np.inf, np.nan, 1.0
    containers, scale = neuron_reference.quantize_mx(x, "f8E5M2")
    assert scale.tolist() == [[0, 255 - 15]]
    values = neuron.unpack_x4(containers).view(ml_dtypes.float8_e5m2).astype(np.float32)
    assert values[0, 0] == 2.0**-3
    assert values[0, 4] == 57344
    assert np.isnan(values[1, 4])


def product(stationary, moving, stationary_scale, moving_scale, stationary_type, moving_type):
    """Return sum over k, q of st[k, i, q] * 2^(ss - 127) * mv[k, j, q] * 2^(ms - 127), term by term."""
    bits = X4_TYPES[stationary_type][0], X4_TYPES[moving_type][0]
    result = np.zeros((stationary.shape[1], moving.shape[1]))
    for i, j in np.ndindex(result.shape):
        for k in range(len(stationary)):
            for q in range(4):
                st_code, mv_code = lane(stationary[k, i], q, bits[0]), lane(moving[k, j], q, bits[1])
                st_value = reference.decode(np.array(st_code, np.uint8), stationary_type)
                mv_value = reference.decode(np.array(mv_code, np.uint8), moving_type)
                scale = 2.0 ** (int(stationary_scale[k // 8, i]) - 127) * 2.0 ** (int(moving_scale[k // 8, j]) - 127)
                result[i, j] += float(st_value) * float(mv_value) * scale
    return result


def finite_containers(partitions, columns, element_type, seed):
    values = np.random.default_rng(seed).standard_normal((4 * partitions, columns), dtype=np.float32)
    return neuron.pack_x4(reference.encode(values, element_type), element_type, axis=0)


@pytest.mark.parametrize(
    ("stationary_type", "moving_type"),
    [("f4E2M1FN", "f8E4M3FN"), ("f8E5M2", "f4E2M1FN"), ("f8E4M3FN", "f8E5M2"), ("f8E5M2", "f8E5M2")],
)
@pytest.mark.parametrize("partitions", [8, 32, 48])
def test_nc_matmul_mx(stationary_type, moving_type, partitions):
    stationary = finite_containers(partitions, 3, stationary_type, 0)
    moving = finite_containers(partitions, 2, moving_type, 1)
    rng = np.random.default_rng(2)
    scales = [rng.integers(110, 140, (partitions // 8, columns), dtype=np.uint8) for columns in (3, 2)]
    expected = product(stationary, moving, *scales, stationary_type, moving_type)
    types = {"stationary_type": stationary_type, "moving_type": moving_type}
    # NaN in the holes must not be read.
    forms = [[neuron_scales.spread_scales(scale, 128, offset, fill=255) for scale in scales] for offset in (0, 12)]
    dst = rng.standard_normal((3, 2), dtype=np.float32)
    for tiles, offset in zip(forms, (0, 12), strict=True):
        out = neuron_reference.nc_matmul_mx(
            dst, stationary, moving, *tiles, **types, stationary_offset=offset, moving_offset=offset
        )
        assert (out.dtype, out.shape) == (np.float64, (3, 2))
        np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())
    if partitions <= 32:
        np.testing.assert_array_equal(
            neuron_reference.nc_matmul_mx(dst, stationary, moving, *scales, **types),
            neuron_reference.nc_matmul_mx(dst, stationary, moving, *forms[0], **types),
        )
    total = neuron_reference.nc_matmul_mx(dst, stationary, moving, *forms[0], **types, accumulate=True)
    np.testing.assert_allclose(total, expected + dst, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


def test_the_dtype_of_containers_tells_the_type():
    stationary, moving = np.full((8, 1), 0x2222, np.int16), np.full((8, 1), 0x38383838, np.int32)  # 1 in both types.
    scale = np.full((1, 1), 127, np.uint8)
    assert neuron_reference.nc_matmul_mx(zeros(1, 1), stationary, moving, scale, scale) == 32


@pytest.mark.parametrize("layout", neuron.WEIGHT_LAYOUTS)
def test_a_packed_projection_is_the_plain_one(layout):
    """Weights in a layout, and activations in the same order of rows, give the product of the dequantized matrices."""
    hidden, columns, tokens = 256, 4, 3
    rng = np.random.default_rng(0)
    weight, activations = (rng.standard_normal((hidden, n), dtype=np.float32) for n in (columns, tokens))
    order = neuron.interleaved_order(hidden) if layout == MX_INTERLEAVED else np.arange(hidden)
    operands, dequantized = [], []
    for matrix, element_type in ((weight, "f4E2M1FN"), (activations, "f8E4M3FN")):
        q = reference.quantize(matrix[order], element_type, axis=0)
        values = np.empty_like(matrix)
        values[order] = reference.dequantize(q)
        codes = np.empty_like(q.mantissa)
        codes[order] = q.mantissa
        dequantized.append(values)
        operands.append((neuron.pack_weight(codes, layout), neuron_scales.spread_scales(q.scale, fill=255)))
    (w, w_scale), (x, x_scale) = operands
    out = neuron_reference.nc_matmul_mx(np.zeros((columns, tokens)), w, x, w_scale, x_scale)
    np.testing.assert_allclose(out, dequantized[0].T.astype(np.float64) @ dequantized[1].astype(np.float64), rtol=1e-9)


def activation_values(containers, scale, element_type):
    """Return the values [4P, F] of activations in containers [P, F] with dense scales."""
    elements = neuron.unpack_x4(containers, 0).view(reference.numpy_dtype(element_type)).astype(np.float64)
    return elements * 2.0 ** (np.repeat(scale, 32, axis=0).astype(np.float64) - 127)


def test_an_expert_of_the_packed_tensors_gives_its_projections():
    """Gate, up and down of one expert, tile by tile from the packed tensors, against products of the plain weights."""
    hidden, intermediate, experts, tokens, expert = 1024, 192, 2, 3, 1
    rng = np.random.default_rng(0)
    plain = [
        reference.quantize(rng.standard_normal(shape, dtype=np.float32), "f4E2M1FN", axis=1)
        for shape in ((experts, hidden, intermediate), (experts, hidden, intermediate), (experts, intermediate, hidden))
    ]
    values = [reference.dequantize(q)[expert].astype(np.float64) for q in plain]
    gate, up, down = plain
    weight = neuron_weights.pack_gate_up(gate.mantissa, up.mantissa)
    scales = neuron_weights.pack_gate_up_scales(gate.scale, up.scale)
    x = rng.standard_normal((tokens, hidden), dtype=np.float32)
    # Position q * H/4 + 128t + p: four lanes of H/512 tiles of 128 partitions.
    lanes = neuron_weights.permute_hidden(x).reshape(tokens, 4, hidden // 512, 128)
    outs = np.zeros((2, 48, 4, tokens))
    x_values = np.empty((hidden, tokens))
    scale_tile = neuron_scales.gather_scales(scales, neuron_scales.expert_index(expert, 16, 4))
    for t in range(hidden // 512):
        tile = lanes[:, :, t].transpose(2, 0, 1).reshape(128, tokens * 4)
        moving, moving_scale = neuron_reference.quantize_mx(tile, "f8E4M3FN")
        x_values[512 * t : 512 * t + 512] = activation_values(moving, moving_scale, "f8E4M3FN")
        moving_tile = neuron_scales.spread_scales(moving_scale)
        for which, q in np.ndindex(2, 4):  # Every fourth feature, so that lane q gets features 4p + q.
            outs[which, :, q] = neuron_reference.nc_matmul_mx(
                outs[which, :, q],
                weight[expert, :, which, t, q::4],
                moving,
                scale_tile[:, which, t, q::4],
                moving_tile,
                accumulate=True,
            )
    for which in range(2):
        expected = values[which].T @ x_values
        np.testing.assert_allclose(outs[which].reshape(intermediate, tokens), expected, rtol=1e-9, atol=1e-9)

    bias = np.arange(2 * experts * intermediate, dtype=np.float32).reshape(2, experts, intermediate)
    biased = outs[0] + neuron_weights.pack_gate_up_bias(*bias)[expert, :, 0, 0, :, None]
    np.testing.assert_array_equal(biased.reshape(192, tokens), outs[0].reshape(192, tokens) + bias[0, expert][:, None])
    activations = biased.transpose(0, 2, 1).reshape(48, tokens * 4).astype(np.float32)
    stationary, stationary_scale = neuron_reference.quantize_mx(activations, "f8E5M2")
    index = neuron_scales.expert_index(expert, 6, 1, 2)
    out = neuron_reference.nc_matmul_mx(
        np.zeros((tokens, 512)),
        stationary,
        neuron_weights.pack_down(down.mantissa)[expert, :, 0, :512],
        neuron_scales.spread_scales(stationary_scale),
        neuron_scales.gather_scales(neuron_weights.pack_down_scales(down.scale), index)[:, 0, :512],
        stationary_type="f8E5M2",
    )
    h_values = activation_values(stationary, stationary_scale, "f8E5M2")
    np.testing.assert_allclose(out, h_values.T @ values[2][:, :512], rtol=1e-9, atol=1e-9)


FP4, FP8, ONE = zeros(8, 2, dtype=np.uint16), zeros(8, 3, dtype=np.uint32), np.full((1, 3), 127, np.uint8)
DST = zeros(2, 3, dtype=np.float32)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: neuron_reference.quantize_mx(zeros(8, 4, dtype=np.float32), "f4E2M1FN"),
            "quantize_mx makes f8E5M2 or f8E4M3FN, not f4E2M1FN",
        ),
        (
            lambda: neuron_reference.quantize_mx(zeros(8, 4, dtype=np.float64), "f8E5M2"),
            "takes float16, bfloat16 or float32, not float64",
        ),
        (
            lambda: neuron_reference.quantize_mx(zeros(4, 4, dtype=np.float32), "f8E5M2"),
            "[P, 4F] with P a multiple of 8, but the shape is (4, 4)",
        ),
        (lambda: neuron_reference.quantize_mx(zeros(8, 6, dtype=np.float32), "f8E5M2"), "but the shape is (8, 6)"),
        (lambda: neuron_reference.quantize_mx(zeros(8, dtype=np.float32), "f8E5M2"), "but the shape is (8,)"),
        (lambda: neuron_reference.quantize_mx(zeros(8, 4, dtype=np.float32), "f8E5M2", 2), "headroom is 0 or 1, not 2"),
        (
            lambda: neuron_reference.nc_matmul_mx(zeros(2, 2), FP4, FP4, ONE[:, :2], ONE[:, :2]),
            "only one operand may be FP4",
        ),
        (
            lambda: neuron_reference.nc_matmul_mx(DST, FP4.astype(np.uint8), FP8, ONE[:, :2], ONE),
            "stationary containers are integers of 16 or 32 bits, not uint8",
        ),
        (
            lambda: neuron_reference.nc_matmul_mx(DST, FP4, FP8, ONE[:, :2], ONE, moving_type="f4E2M1FN"),
            "only casts of the same width exist",
        ),
        (lambda: neuron_reference.nc_matmul_mx(DST, FP4, FP8[:0], ONE[:, :2], ONE), "containers [P, I] and [P, J]"),
        (
            lambda: neuron_reference.nc_matmul_mx(DST.T, FP4, FP8, ONE[:, :2], ONE),
            "dst has shape (3, 2); the product has (2, 3)",
        ),
        (
            lambda: neuron_reference.nc_matmul_mx(DST, FP4[:4], FP8[:4], ONE[:, :2], ONE),
            "4 partitions are no multiple of the 8",
        ),
        (
            lambda: neuron_reference.nc_matmul_mx(DST, FP4, FP8, ONE, ONE),
            "the stationary scale has shape (1, 3); containers (8, 2) need 2 columns",
        ),
        (lambda: neuron_reference.nc_matmul_mx(DST, FP4, FP8, ONE[:, :2], ONE[0]), "the moving scale has shape (3,)"),
        (
            lambda: neuron_reference.nc_matmul_mx(DST, FP4, FP8, ONE[:0, :2], ONE),
            "1 scale rows at partition offset 0 do not fit",
        ),
        (
            lambda: neuron_reference.nc_matmul_mx(zeros(129, 3), zeros(8, 129, dtype=np.uint16), FP8, ONE, ONE),
            "stationary is at most 128 x 128 containers",
        ),
        (
            lambda: neuron_reference.nc_matmul_mx(zeros(2, 513), FP4, zeros(8, 513, dtype=np.uint32), ONE, ONE),
            "moving 128 x 512",
        ),
        (
            lambda: neuron_reference.nc_matmul_mx(
                DST, zeros(136, 2, dtype=np.uint16), zeros(136, 3, dtype=np.uint32), ONE, ONE
            ),
            "at most 128 x 128",
        ),
    ],
)
def test_instructions_refused(call, message):
    with pytest.raises(MxError, match=re.escape(message)):
        call()
