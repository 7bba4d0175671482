"""The numpy reference, one block: quantize, against exact rational arithmetic and cases worked out by hand."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import oracle
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from reference_checks import (
    INPUT_DTYPES,
    all_codes,
    code_bytes,
    every_element_type,
    every_rounding,
    f32,
    from_bits,
    quantize_nvfp4,
)
from strategies import ELEMENT_TYPES, ROUNDINGS, float_blocks

from mx_dialect import reference


@settings(max_examples=1000)
@given(st.data(), ELEMENT_TYPES, ROUNDINGS, st.sampled_from(INPUT_DTYPES), st.sampled_from([1, 2, 4, 8]))
def test_quantize_is_the_exact_conversion(data, element_type, rounding, dtype, block_size):
    x = data.draw(float_blocks(block_size, dtype, finite=False))
    q = reference.quantize(x, element_type, block_size, rounding=rounding)
    codes, scale = oracle.quantize_block([float(value) for value in x], element_type, rounding)
    assert q.scale.view(np.uint8).tolist() == [scale]
    assert q.mantissa.view(np.uint8).tolist() == codes


@every_element_type
@every_rounding
def test_quantize_is_exact_at_every_exponent(element_type, rounding):
    """Blocks of one: each power of two, and the floats beside it and beside each format's largest significand."""
    fractions = {0, 1, (1 << 23) - 1}
    for row in oracle.TABLE.values():
        largest = int((row.max_normal / 2**row.emax - 1) * (1 << 23))
        half_step = (1 << 23) - (1 << (22 - row.mantissa_bits))
        fractions |= {largest, largest + 1, half_step - 1, half_step}
    subnormals = [1, 2, 3, *((1 << n) + d for n in range(2, 23) for d in (-1, 0, 1)), (1 << 23) - 1]
    normals = [(field << 23) | fraction for field in range(1, 255) for fraction in sorted(fractions)]
    x = from_bits(*subnormals, *normals)
    q = reference.quantize(x, element_type, 1, rounding=rounding)
    expected = [oracle.quantize_block([float(value)], element_type, rounding) for value in x]
    np.testing.assert_array_equal(q.scale.view(np.uint8), [scale for _, scale in expected])
    np.testing.assert_array_equal(q.mantissa.view(np.uint8), [codes[0] for codes, _ in expected])


@pytest.mark.parametrize(
    ("x", "rounding", "scale", "code"),
    [
        # max_normal = 6 = 1.5 * 2^2: floor stores 3 as 6 * 2^-1, and saturates what is above.
        (3.0, "floor", 126, 7),
        (3.0001, "floor", 126, 7),
        (3.9, "floor", 126, 7),
        (4.0, "floor", 127, 6),
        # rceil takes the next exponent as soon as 3 is exceeded; ceil does at 2.
        (3.0, "rceil", 126, 7),
        (3.0001, "rceil", 127, 5),
        (2.0, "ceil", 126, 6),
        (2.0001, "ceil", 127, 4),
        (3.0, "ceil", 127, 5),
        # even rounds at one mantissa bit: 3.5 is half way from 3 to 4 and goes up.
        (3.4999, "even", 126, 7),
        (3.5, "even", 127, 6),
        # The tie 5 * 2^-1 lies between codes 6 (4) and 7 (6).
        (2.5, "floor", 126, 6),
    ],
)
def test_e2m1_by_hand(x, rounding, scale, code):
    q = reference.quantize(f32(x, -x), "f4E2M1FN", 2, rounding=rounding)
    assert q.scale.view(np.uint8).tolist() == [scale]
    assert q.mantissa.view(np.uint8).tolist() == [code, code | 8]


def test_e4m3_block_by_hand():
    """amax 448 has exponent 8 = emax: the scale is 1 and the elements are the values themselves."""
    x = f32(448, -1, 0.001953125, 0.0009765625, 0.0029296875, -0.0, 17, 19)
    q = reference.quantize(x, "f8E4M3FN", 8)
    assert q.scale.astype(np.float32).tolist() == [1]
    # 2^-9 is the smallest subnormal, half of it a tie to 0, one and a half a tie to 2; 17 and 19 tie to 16 and 20.
    assert q.mantissa.view(np.uint8).tolist() == [0x7E, 0xB8, 0x01, 0x00, 0x02, 0x80, 0x58, 0x5A]


def assert_nvfp4(x, element_type="f4E2M1FN"):
    """Compare blocks, the rows of a float array, with the exact conversion."""
    q = quantize_nvfp4(x, element_type, x.shape[1])
    assert q.scale.dtype == np.dtype(ml_dtypes.float8_e4m3fn)
    expected = [oracle.quantize_nvfp4_block([float(value) for value in block], element_type) for block in x]
    np.testing.assert_array_equal(q.scale.view(np.uint8)[:, 0], [scale for _, scale in expected])
    np.testing.assert_array_equal(q.mantissa.view(np.uint8), [codes for codes, _ in expected])


@settings(max_examples=300)
@given(st.data(), ELEMENT_TYPES, st.sampled_from(INPUT_DTYPES), st.sampled_from([1, 4, 16]), st.integers(-12, 12))
def test_quantize_with_e4m3_scales_is_the_exact_conversion(data, element_type, dtype, block_size, power):
    x = data.draw(float_blocks(block_size, dtype, finite=False))
    assert_nvfp4(x[None], element_type)
    if dtype is np.float32:
        # Random exponents lie outside the scales' range more often than not.
        with np.errstate(all="ignore"):
            largest = np.max(np.abs(x), initial=0, where=np.isfinite(x))
            assert_nvfp4(np.ldexp(x, power - np.frexp(largest)[1])[None], element_type)


def test_quantize_with_e4m3_scales_is_exact_at_and_beside_ties():
    assert_nvfp4(oracle.nvfp4_ties())


@pytest.mark.parametrize(
    ("x", "scale", "codes"),
    [
        # 6 * 448: the largest scale; what is above saturates.
        ((2688.0, -448.0), 448, (7, 10)),
        ((1e30, -2e30), 448, (7, 15)),
        # 6 / 6 and 7 / 6, of which the nearest scale is 1.125: 7 / 1.125 saturates.
        ((6.0, 0.25), 1, (7, 0)),
        ((7.0, 3.9375), 1.125, (7, 6)),
        # Scales do not become subnormal: the least is 2^-6, and half of its smallest element is a tie to 0.
        ((0.00390625, -0.01171875), 0.015625, (0, 10)),
        ((0.0, -0.0), 0.015625, (0, 8)),
    ],
)
def test_nvfp4_by_hand(x, scale, codes):
    q = quantize_nvfp4(f32(*x), block_size=2)
    assert q.scale.astype(np.float32).tolist() == [scale]
    assert q.mantissa.view(np.uint8).tolist() == list(codes)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_a_special_nvfp4_block_has_the_nan_scale(special):
    q = quantize_nvfp4(f32(1, special, 2.5, -0.0, 1, 2, 3, 6), block_size=4)
    assert q.scale.view(np.uint8).tolist() == [0x7F, 0x38]
    assert q.mantissa.view(np.uint8)[[0, 2, 3]].tolist() == [2, 4, 8]
    np.testing.assert_array_equal(np.isnan(reference.dequantize(q)), [True] * 4 + [False] * 4)


@every_element_type
@every_rounding
def test_a_zero_block_has_scale_code_0_and_keeps_its_signs(element_type, rounding):
    q = reference.quantize(f32(0.0, -0.0), element_type, 2, rounding=rounding)
    assert q.scale.view(np.uint8).tolist() == [0]
    negative_zero = 0 if element_type == "i8" else len(all_codes(element_type)) // 2
    assert q.mantissa.view(np.uint8).tolist() == [0, negative_zero]


@every_element_type
@every_rounding
@pytest.mark.parametrize("dtype", INPUT_DTYPES)
@pytest.mark.parametrize("special", [np.nan, -np.nan, np.inf, -np.inf])
def test_a_special_block_is_nan_and_its_elements_are_unscaled(element_type, rounding, dtype, special):
    x = np.array([special, 1, -1, 1e4, 1, 0.5, 0.25, 0], dtype)
    q = reference.quantize(x, element_type, 4, rounding=rounding)
    assert q.scale.view(np.uint8)[0] == 255
    expected = [oracle.nearest_code(float(value), element_type) for value in x[:4]]
    assert q.mantissa.view(np.uint8)[:4].tolist() == expected
    values = reference.dequantize(q)
    assert np.isnan(values[:4]).all()
    np.testing.assert_array_equal(values[4:], x[4:].astype(np.float32))


def test_mxint8_never_produces_minus_128():
    x = f32(-1.9999999, -2.0 + 2**-7)
    q = reference.quantize(x, "i8", 2)
    assert q.mantissa.tolist() == [-127, -127]


@given(st.data(), ELEMENT_TYPES, ROUNDINGS)
def test_the_error_is_at_most_half_a_step_unless_saturated(data, element_type, rounding):
    x = data.draw(float_blocks(4))
    q = reference.quantize(x, element_type, 4, rounding=rounding)
    scale = Fraction(float(reference.decode_scale(q.scale)[0]))
    row, grid = oracle.TABLE[element_type], oracle.magnitudes(element_type)
    for value, element in zip(x, reference.decode(q.mantissa, element_type), strict=True):
        exact, stored = abs(Fraction(float(value)) / scale), abs(Fraction(float(element)))
        if exact > row.max_normal:
            assert stored == row.max_normal
            continue
        code = grid.index(stored)
        below = stored - grid[max(code - 1, 0)]
        above = grid[min(code + 1, len(grid) - 1)] - stored
        assert -below / 2 <= exact - stored <= above / 2


@given(st.data(), ELEMENT_TYPES)
def test_rceil_never_saturates(data, element_type):
    x = data.draw(float_blocks(4))
    q = reference.quantize(x, element_type, 4, rounding="rceil")
    largest = max(abs(Fraction(float(value))) for value in x)
    max_normal = oracle.TABLE[element_type].max_normal
    assume(largest <= max_normal * 2**127)
    assert largest <= max_normal * Fraction(float(reference.decode_scale(q.scale)[0]))


def test_rceil_clamps_mxint8_at_the_largest_scale():
    q = reference.quantize(f32(np.finfo(np.float32).max), "i8", 1, rounding="rceil")
    assert q.scale.view(np.uint8).tolist() == [254]
    assert q.mantissa.tolist() == [127]


@given(st.data(), ELEMENT_TYPES)
def test_floor_is_idempotent_in_its_bytes(data, element_type):
    x = data.draw(float_blocks(8))
    once = reference.quantize(x, element_type, 4)
    twice = reference.quantize(reference.dequantize(once), element_type, 4)
    assert code_bytes(twice) == code_bytes(once)


@given(st.data(), ELEMENT_TYPES, ROUNDINGS, st.integers(-40, 40))
def test_a_power_of_two_moves_the_scale_alone(data, element_type, rounding, power):
    x = data.draw(float_blocks(4))
    with np.errstate(over="ignore", under="ignore"):
        scaled = np.ldexp(x, power)
        assume(np.array_equal(np.ldexp(scaled, -power), x))
    before = reference.quantize(x, element_type, 4, rounding=rounding)
    after = reference.quantize(scaled, element_type, 4, rounding=rounding)
    code = int(before.scale.view(np.uint8)[0])
    assume(0 < code < 254 and 0 < code + power < 254)
    assert after.scale.view(np.uint8).tolist() == [code + power]
    assert after.mantissa.tobytes() == before.mantissa.tobytes()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@every_element_type
@every_rounding
def test_16_bit_inputs_are_quantized_as_the_float32_they_equal(dtype, element_type, rounding):
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    with np.errstate(invalid="ignore"):
        x = x[np.isfinite(x)]
    q = reference.quantize(x, element_type, 1, rounding=rounding)
    assert code_bytes(q) == code_bytes(reference.quantize(x.astype(np.float32), element_type, 1, rounding=rounding))


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
@every_element_type
def test_blocks_lie_along_the_axis(axis, element_type):
    x = np.random.default_rng(2).standard_normal((8, 4, 16)).astype(np.float32)
    q = reference.quantize(x, element_type, 4, axis=axis)
    assert q.axis == axis % 3
    assert q.scale.shape == tuple(n // 4 if i == q.axis else n for i, n in enumerate(x.shape))
    last = reference.quantize(np.moveaxis(x, axis, -1), element_type, 4)
    np.testing.assert_array_equal(q.mantissa.view(np.uint8), np.moveaxis(last.mantissa.view(np.uint8), -1, axis))
    np.testing.assert_array_equal(q.scale.view(np.uint8), np.moveaxis(last.scale.view(np.uint8), -1, axis))
    np.testing.assert_array_equal(reference.dequantize(q), np.moveaxis(reference.dequantize(last), -1, axis))


def test_blocks_are_independent_and_in_order():
    x = np.repeat(f32(1, 2, 4, 8), 32)
    q = reference.quantize(x)
    assert q.scale.astype(np.float32).tolist() == [2.0**-8, 2.0**-7, 2.0**-6, 2.0**-5]
    np.testing.assert_array_equal(reference.dequantize(q), x)


@pytest.mark.parametrize("shape", [(0,), (0, 32), (3, 0), (32,)])
def test_empty_and_small_shapes(shape):
    q = reference.quantize(np.zeros(shape, np.float32))
    assert q.scale.shape == (*shape[:-1], shape[-1] // 32)
    assert reference.dequantize(q).shape == shape


@every_element_type
def test_quantize_returns_what_the_dtypes_promise(element_type):
    q = reference.quantize(np.ones((2, 64), np.float32), element_type, 16)
    assert q.mantissa.dtype == np.dtype(oracle.TABLE[element_type].dtype) == reference.numpy_dtype(element_type)
    assert q.scale.dtype == np.dtype(ml_dtypes.float8_e8m0fnu)
    assert (q.block_size, q.axis, q.element_type) == (16, 1, element_type)
    mantissa, scale = q
    assert mantissa is q.mantissa
    assert scale is q.scale
    assert isinstance(q, reference.BlockScaled)


def test_strided_input_is_read_as_numpy_reads_it():
    x = np.random.default_rng(3).standard_normal((64, 64)).astype(np.float32)
    for view in (x.T, x[::-1, ::-1], x[::2, 32:]):
        assert code_bytes(reference.quantize(view)) == code_bytes(reference.quantize(view.copy()))
