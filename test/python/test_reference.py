"""The numpy reference against exact rational arithmetic, ml_dtypes and cases worked out by hand."""

import ctypes
import itertools
import platform
import sys
from contextlib import contextmanager
from fractions import Fraction
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import oracle
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import ELEMENT_TYPES, ROUNDINGS, float_blocks

from mx_dialect import reference
from mx_dialect.diagnostics import MxError

FLOATS = tuple(name for name in oracle.ELEMENT_TYPES if name != "i8")
INPUT_DTYPES = (np.float32, np.float16, ml_dtypes.bfloat16)

every_element_type = pytest.mark.parametrize("element_type", oracle.ELEMENT_TYPES)
every_float = pytest.mark.parametrize("element_type", FLOATS)
every_rounding = pytest.mark.parametrize("rounding", oracle.ROUNDINGS)


def f32(*values):
    return np.array(values, np.float32)


def from_bits(*bits):
    return np.array(bits, np.uint32).view(np.float32)


def code_bytes(quantized):
    return quantized.mantissa.tobytes(), quantized.scale.tobytes()


def all_codes(element_type):
    bits = 8 if element_type == "i8" else ml_dtypes.finfo(oracle.TABLE[element_type].dtype).bits
    return np.arange(1 << bits, dtype=np.uint8)


def assert_same_floats(actual, expected):
    """Compare values and signs of zero; NaN equals NaN of any sign."""
    np.testing.assert_array_equal(actual, expected)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(actual)[number], np.signbit(expected)[number])


# One value: decode and encode


@every_float
def test_decode_agrees_with_ml_dtypes_on_every_code(element_type):
    codes = all_codes(element_type)
    elements = codes.view(oracle.TABLE[element_type].dtype)
    assert_same_floats(reference.decode(codes, element_type), elements.astype(np.float64))
    assert_same_floats(reference.decode(elements, element_type), elements.astype(np.float64))


def test_decode_of_mxint8_counts_64ths_from_minus_two():
    codes = np.arange(-128, 128).astype(np.int8)
    expected = np.arange(-128, 128) / 64
    np.testing.assert_array_equal(reference.decode(codes, "i8"), expected)
    np.testing.assert_array_equal(reference.decode(codes.view(np.uint8), "i8"), expected)


def test_decode_of_e2m1_is_the_list_of_the_specification():
    positive = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    expected = np.array(positive + [-value for value in positive[1:]])
    codes = np.array([*range(8), *range(9, 16)], np.uint8)
    np.testing.assert_array_equal(reference.decode(codes, "f4E2M1FN"), expected)


def test_decode_scale_is_a_power_of_two_from_2_to_the_minus_127_on():
    codes = np.arange(256, dtype=np.uint8)
    expected = [float(Fraction(2) ** (code - 127)) for code in range(255)]
    for scales in (codes, codes.view(ml_dtypes.float8_e8m0fnu)):
        values = reference.decode_scale(scales)
        assert values[:255].tolist() == expected
        assert np.isnan(values[255])


def test_decode_scale_of_e4m3_agrees_with_ml_dtypes():
    scales = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn)
    expected = scales.astype(np.float64)
    assert_same_floats(reference.decode_scale(scales), expected)
    assert_same_floats(reference.decode_scale(scales.view(np.uint8), "f8E4M3FN"), expected)


@every_element_type
def test_encode_inverts_decode(element_type):
    codes = all_codes(element_type)
    values = reference.decode(codes, element_type)
    keep = np.isfinite(values) & (values != -2 if element_type == "i8" else True)
    np.testing.assert_array_equal(reference.encode(values[keep], element_type), codes[keep])


def assert_encodes_as_ml_dtypes(x, element_type):
    """Compare with ml_dtypes up to max_normal; above it ml_dtypes gives NaN or Inf where this package saturates."""
    row = oracle.TABLE[element_type]
    codes = reference.encode(x, element_type)
    with np.errstate(invalid="ignore"):  # Signalling NaNs; the package must not warn of them.
        x = x.astype(np.float32)
    inside = np.abs(x) <= float(row.max_normal)
    np.testing.assert_array_equal(codes[inside], x[inside].astype(row.dtype).view(np.uint8))
    outside = ~inside & ~np.isnan(x)
    saturated = np.where(np.signbit(x[outside]), -float(row.max_normal), float(row.max_normal))
    np.testing.assert_array_equal(reference.decode(codes[outside], element_type), saturated)
    assert set(codes[np.isnan(x)].tolist()) <= {row.nan}


@every_float
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_encode_of_every_16_bit_float_agrees_with_ml_dtypes(element_type, dtype):
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    assert_encodes_as_ml_dtypes(x, element_type)


@every_float
def test_encode_of_float32_agrees_with_ml_dtypes(element_type):
    bits = np.random.default_rng(1).integers(0, 1 << 32, 200_000, dtype=np.uint32)
    assert_encodes_as_ml_dtypes(bits.view(np.float32), element_type)


@every_float
def test_encode_at_and_beside_every_tie_agrees_with_ml_dtypes(element_type):
    values = [float(value) for value in oracle.magnitudes(element_type)]
    ties = f32(*((low + high) / 2 for low, high in itertools.pairwise(values)))
    near = np.concatenate([ties, np.nextafter(ties, np.float32(0)), np.nextafter(ties, np.float32(np.inf))])
    assert_encodes_as_ml_dtypes(np.concatenate([near, -near]), element_type)


def test_encode_of_mxint8_rounds_half_to_even_and_saturates_at_127():
    x = f32(0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 126.5, 127.5, 128, -127.5, -128, 1e30, -0.0) / np.float32(64)
    expected = np.array([0, 2, 2, 0, -2, -2, 126, 127, 127, -127, -127, 127, 0], np.int8)
    np.testing.assert_array_equal(reference.encode(x, "i8").view(np.int8), expected)


@every_element_type
def test_encode_gives_nan_its_positive_code_and_saturates_inf(element_type):
    x = from_bits(0x7FC00000, 0xFFC00000, 0x7F800001, 0xFF800001, 0x7F800000, 0xFF800000)
    row = oracle.TABLE[element_type]
    codes = reference.encode(x, element_type)
    assert codes[:4].tolist() == [row.nan] * 4
    largest = float(row.max_normal)
    assert reference.decode(codes[4:], element_type).tolist() == [largest, -largest]


@every_element_type
def test_encode_of_float64_rounds_once(element_type):
    """A tie moved by less than float32 can tell must not be seen as a tie."""
    values = oracle.magnitudes(element_type)
    for low, high in itertools.pairwise(values):
        tie = float((low + high) / 2)
        for x in (tie * (1 - 2.0**-40), tie, tie * (1 + 2.0**-40), -tie * (1 + 2.0**-40)):
            expected = oracle.nearest_code(x, element_type)
            assert reference.encode(np.float64(x), element_type) == expected, x


@given(st.floats(allow_nan=True, allow_infinity=True), ELEMENT_TYPES)
def test_encode_of_any_float64_is_the_nearest_code(x, element_type):
    assert reference.encode(np.float64(x), element_type) == oracle.nearest_code(x, element_type)


# One block: quantize


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


def quantize_nvfp4(x, element_type="f4E2M1FN", block_size=16):
    return reference.quantize(x, element_type, block_size, scale_type="f8E4M3FN")


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


# Back: dequantize


@every_element_type
def test_dequantize_is_the_exact_product_for_every_code_and_scale(element_type):
    codes = all_codes(element_type)
    mantissa = np.repeat(codes, 256).view(oracle.TABLE[element_type].dtype)
    scale = np.tile(np.arange(256, dtype=np.uint8), len(codes)).view(ml_dtypes.float8_e8m0fnu)
    values = mantissa.astype(np.float64) / (64 if element_type == "i8" else 1)
    with np.errstate(invalid="ignore", over="ignore"):
        expected = (values * scale.astype(np.float64)).astype(np.float32)
    actual = reference.dequantize(mantissa, scale, 1)
    assert actual.dtype == np.float32
    assert_same_floats(actual, expected)


@every_element_type
def test_dequantize_with_e4m3_scales_is_the_exact_product_for_every_code_and_scale(element_type):
    codes = all_codes(element_type)
    mantissa = np.repeat(codes, 256).view(oracle.TABLE[element_type].dtype)
    scale = np.tile(np.arange(256, dtype=np.uint8), len(codes))
    values = mantissa.astype(np.float64) / (64 if element_type == "i8" else 1)
    with np.errstate(invalid="ignore"):
        expected = (values * scale.view(ml_dtypes.float8_e4m3fn).astype(np.float64)).astype(np.float32)
    assert_same_floats(reference.dequantize(mantissa, scale.view(ml_dtypes.float8_e4m3fn), 1), expected)
    assert_same_floats(reference.dequantize(mantissa, scale, 1, scale_type="f8E4M3FN"), expected)


def test_dequantize_specials_by_hand():
    e5m2 = np.array([0x7C, 0xFC, 0x7D, 0x7B, 0x3C], np.uint8).view(ml_dtypes.float8_e5m2)
    values = reference.dequantize(e5m2, np.full(5, 254, np.uint8), 1)
    np.testing.assert_array_equal(values, f32(np.inf, -np.inf, np.nan, np.inf, 2.0**127))
    assert np.isnan(reference.dequantize(e5m2, np.full(5, 255, np.uint8), 1)).all()


@given(st.data(), ELEMENT_TYPES)
def test_dequantize_loses_nothing_to_float32(data, element_type):
    """The docstring's claim behind the matmul bound: a finite product is never rounded."""
    code = data.draw(st.sampled_from(all_codes(element_type).tolist()))
    scale = data.draw(st.integers(0, 254))
    mantissa = np.array([code], np.uint8).view(oracle.TABLE[element_type].dtype)
    value = reference.dequantize(mantissa, np.array([scale], np.uint8), 1)[0]
    assume(np.isfinite(value))
    element = Fraction(float(reference.decode(mantissa, element_type)[0]))
    assert Fraction(float(value)) == element * Fraction(2) ** (scale - 127)


def test_dequantize_takes_an_object_its_parts_or_uint8_scales():
    x = np.random.default_rng(4).standard_normal((64, 8)).astype(np.float32)
    q = reference.quantize(x, "f6E2M3FN", 16, axis=0)
    expected = reference.dequantize(q)
    other = SimpleNamespace(mantissa=q.mantissa, scale=q.scale, block_size=16, axis=-2)
    np.testing.assert_array_equal(reference.dequantize(other), expected)
    np.testing.assert_array_equal(reference.dequantize(*q, block_size=16, axis=0), expected)
    np.testing.assert_array_equal(reference.dequantize(q.mantissa, q.scale.view(np.uint8), 16, -2), expected)


# Whatever the processor does to subnormals


@contextmanager
def flushing_subnormals():
    """Set flush-to-zero and denormals-are-zero in this thread's MXCSR, the last word of glibc's x86-64 fenv_t."""
    libm = ctypes.CDLL("libm.so.6")
    before, flushing = (ctypes.c_uint32 * 8)(), (ctypes.c_uint32 * 8)()
    assert libm.fegetenv(before) == 0
    ctypes.memmove(flushing, before, ctypes.sizeof(before))
    flushing[7] |= 0x8040
    assert libm.fesetenv(flushing) == 0
    try:
        yield
    finally:
        assert libm.fesetenv(before) == 0


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="sets the flags of an x86-64 processor"
)
@every_element_type
def test_flushed_subnormals_change_nothing(element_type):
    x = np.concatenate([np.arange(1 << 12, dtype=np.uint32) << 11, np.arange(32, dtype=np.uint32)]).view(np.float32)
    doubles = np.array([5e-324, 1e-310, 0.0])
    scale = np.zeros(256, np.uint8)
    mantissa = np.resize(all_codes(element_type), 256).view(oracle.TABLE[element_type].dtype)

    def results():
        return [
            *(code_bytes(reference.quantize(x, element_type, 4, rounding=mode)) for mode in oracle.ROUNDINGS),
            code_bytes(quantize_nvfp4(x, element_type, 4)),
            reference.encode(x, element_type).tobytes(),
            reference.encode(doubles, element_type).tobytes(),
            reference.dequantize(mantissa, scale, 1).tobytes(),
        ]

    expected = results()
    subnormal = from_bits(1 << 20)
    with flushing_subnormals():
        flushed = (subnormal * np.float32(1)).view(np.uint32)[0]
        actual = results()
    assert flushed == 0, "the flags had no effect: the test shows nothing"
    assert actual == expected


# Matmul


def exact_matmul(a, b, acc):
    """Return acc + a @ b of 2-D arrays as Fractions."""
    return [
        [
            Fraction(float(acc[m, n]))
            + sum(Fraction(float(p)) * Fraction(float(q)) for p, q in zip(a[m], b[:, n], strict=True))
            for n in range(b.shape[1])
        ]
        for m in range(a.shape[0])
    ]


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("a_type", ["f32", *oracle.ELEMENT_TYPES])
@pytest.mark.parametrize("b_type", ["f32", *oracle.ELEMENT_TYPES])
def test_matmul_is_the_product_of_the_dequantized_operands(a_type, b_type):
    a, b, acc = normal(5, 3, 8), normal(6, 8, 2), normal(7, 3, 2)
    left, right, a_values, b_values = a, b, a, b
    if a_type != "f32":
        left = reference.quantize(a, a_type, 4)
        a_values = reference.dequantize(left)
    if b_type != "f32":
        right = reference.quantize(b, b_type, 4, axis=0)
        b_values = reference.dequantize(right)
    expected = exact_matmul(a_values, b_values, acc)
    actual = reference.matmul(left, right, acc)
    assert actual.dtype == np.float64
    total = np.abs(a_values.astype(float)) @ np.abs(b_values.astype(float)) + np.abs(acc)
    for m, n in np.ndindex(actual.shape):
        assert abs(Fraction(float(actual[m, n])) - expected[m][n]) <= 9 * Fraction(2) ** -52 * Fraction(total[m, n])


def test_matmul_takes_every_spelling_of_an_operand():
    a, b = normal(8, 4, 64), normal(9, 64, 4)
    qa, qb = reference.quantize(a, block_size=16), reference.quantize(b, axis=0)
    expected = reference.matmul(reference.dequantize(qa), reference.dequantize(qb))
    other = SimpleNamespace(mantissa=qa.mantissa, scale=qa.scale, block_size=16, axis=-1)
    for left in (qa, (*qa, 16), other):
        for right in (qb, tuple(qb), (*qb, 32)):
            np.testing.assert_array_equal(reference.matmul(left, right), expected)
    half = a.astype(np.float16)
    np.testing.assert_array_equal(reference.matmul(half, b), reference.matmul(half.astype(np.float32), b))


def test_matmul_of_a_transposed_side():
    a, b, acc = normal(8, 2, 3, 64), normal(9, 4, 64), normal(10, 2, 3, 4)
    qa, qb = reference.quantize(a, "f4E2M1FN"), quantize_nvfp4(b)
    for right in (b, qb, (qb.mantissa, qb.scale, 16)):
        values = right if right is b else reference.dequantize(qb)
        for function in (reference.matmul, reference.matmul_bound):
            actual = function(qa, right, acc, transpose_rhs=True)
            np.testing.assert_array_equal(actual, function(qa, values.swapaxes(-1, -2), acc))


def test_matmul_broadcasts_to_the_accumulator():
    a, b, acc = normal(8, 1, 3, 32), normal(9, 32, 4), normal(10, 5, 2, 3, 4)
    actual = reference.matmul(reference.quantize(a), b, acc)
    assert actual.shape == acc.shape
    np.testing.assert_array_equal(actual, reference.matmul(reference.quantize(a), b) + acc)


def test_matmul_keeps_what_exceeds_float32():
    """Scales of 2^127 and 2^-127 cancel, though 448 * 2^127 is no float32."""
    ones = np.full((1, 2), 0x7E, np.uint8).view(ml_dtypes.float8_e4m3fn)
    a, b = (ones, np.full((1, 1), 254, np.uint8), 2), (ones.T, np.zeros((1, 1), np.uint8), 2)
    assert reference.matmul(a, b) == 2 * 448 * 448
    assert np.isinf(reference.dequantize(*a[:2], block_size=2)).all()
    assert np.isinf(reference.matmul_bound(a, b))
    assert reference.matmul_bound(a, b, scale_products="exponent") == pytest.approx(6 * 2.0**-24 * 2 * 448 * 448)


def test_matmul_broadcasts_batches_as_numpy():
    a, b = normal(10, 2, 1, 3, 32), normal(11, 5, 32, 4)
    qa, qb = reference.quantize(a), reference.quantize(b, axis=-2)
    actual, bound = reference.matmul(qa, qb), reference.matmul_bound(qa, qb)
    assert actual.shape == bound.shape == (2, 5, 3, 4)
    for i, j in np.ndindex(2, 5):
        np.testing.assert_allclose(
            actual[i, j], reference.matmul(reference.dequantize(qa)[i, 0], reference.dequantize(qb)[j]), rtol=1e-12
        )


def test_matmul_of_nothing_is_the_accumulator():
    acc = normal(12, 3, 2)
    empty = reference.quantize(np.zeros((3, 0), np.float32)), reference.quantize(np.zeros((0, 2), np.float32), axis=0)
    np.testing.assert_array_equal(reference.matmul(*empty, acc), acc.astype(np.float64))
    np.testing.assert_array_equal(reference.matmul(*empty), np.zeros((3, 2)))


def test_a_nan_scale_reaches_its_row_alone():
    a = np.ones((2, 64), np.float32)
    a[0, 40] = np.inf
    result = reference.matmul(reference.quantize(a), np.ones((64, 3), np.float32))
    assert np.isnan(result[0]).all()
    np.testing.assert_array_equal(result[1], [64, 64, 64])


def test_infinite_products_are_ieee():
    a = np.array([[0x7C, 0x3C], [0xFC, 0x7C]], np.uint8).view(ml_dtypes.float8_e5m2)
    left = (a, np.full((2, 1), 127, np.uint8), 2)
    result = reference.matmul(left, f32(1, 1)[:, None])
    np.testing.assert_array_equal(result, [[np.inf], [np.nan]])


def test_a_signalling_nan_is_a_nan():
    result = reference.matmul(from_bits(0x7F800001)[:, None], f32(1)[:, None])
    assert np.isnan(result).all()


def sums_in_float32(terms):
    """Yield float32 sums of float32 terms: forwards, backwards, in pairs, and in a random order."""
    shuffled = np.random.default_rng(0).permutation(terms)
    for order in (terms, terms[::-1], shuffled):
        total = np.float32(0)
        for term in order:
            total = np.float32(total + term)
        yield total
    pairs = list(terms)
    while len(pairs) > 1:
        pairs = [np.sum(pairs[i : i + 2], dtype=np.float32) for i in range(0, len(pairs), 2)]
    yield pairs[0]


@given(st.data(), st.integers(1, 12))
def test_float32_sums_in_any_order_are_within_the_bound(data, extent):
    a, b = data.draw(float_blocks(extent)), data.draw(float_blocks(extent))
    acc = data.draw(float_blocks(1))
    expected = reference.matmul(a[None], b[:, None], acc[None])[0, 0]
    bound = reference.matmul_bound(a[None], b[:, None], acc[None])[0, 0]
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        products = a * b
        for result in sums_in_float32(np.concatenate([acc, products])):
            assert np.isinf(bound) or abs(float(result) - expected) <= bound


def test_the_bound_by_hand():
    ones = np.ones((1, 6), np.float32)
    rounded = Fraction(8, 2**24)
    exact = rounded / (1 - rounded) * 6 + 6 * Fraction(2) ** -149
    assert reference.matmul_bound(ones, ones.T)[0, 0] == pytest.approx(float(exact), rel=1e-12)
    with_acc = reference.matmul_bound(ones, ones.T, f32(-6)[None])[0, 0]
    assert with_acc == pytest.approx(2 * float(exact), rel=1e-12)


def test_the_bound_catches_one_lost_product():
    a, b = normal(13, 16, 256), normal(14, 256, 16)
    wrong = a.copy()
    wrong[:, 17] = 0
    error = np.abs(reference.matmul(wrong, b) - reference.matmul(a, b))
    assert (error > reference.matmul_bound(a, b)).mean() > 0.9


def test_the_bound_of_exponents_claims_nothing_where_an_element_times_a_float_is_not_normal():
    one = np.ones((1, 1), ml_dtypes.float8_e5m2), np.full((1, 1), 127, np.uint8), 1

    def is_finite(x, **options):
        return bool(np.isfinite(reference.matmul_bound(one, f32(x)[None], **options))[0, 0])

    for x in (0.0, 2.0**-110, -(2.0**88), 1.0):
        assert is_finite(x, scale_products="exponent")
    for x in (2.0**-111, -(2.0**89), np.inf, np.nan):
        assert not is_finite(x, scale_products="exponent")
    assert is_finite(2.0**-149)
    assert is_finite(2.0**126)


def float32_exponent_matmul(a, b, acc):
    """Return acc + A @ B of one row and column: float32 dot products of the elements of blocks, then their scales."""
    (a_elements, a_scales), (b_elements, b_scales) = a, b
    total = np.float32(acc)
    for i, a_scale in enumerate(a_scales):
        dot = np.float32(0)
        for x, y in zip(a_elements[i], b_elements[i], strict=True):
            dot = np.float32(dot + np.float32(np.float32(x) * np.float32(y)))
        total = np.float32(total + np.float32(np.ldexp(dot.astype(np.float64), a_scale + b_scales[i])))
    return total


@given(st.data(), st.sampled_from(FLOATS), st.sampled_from(FLOATS), st.integers(1, 4), st.integers(0, 2))
def test_float32_sums_of_scaled_blocks_are_within_the_bound(data, a_type, b_type, blocks, log_size):
    size = 1 << log_size
    sides, operands = [], []
    for element_type, axis in ((a_type, -1), (b_type, 0)):
        finite = [
            c for c in all_codes(element_type).tolist() if np.isfinite(reference.decode(np.uint8([c]), element_type)[0])
        ]
        codes = np.uint8([[data.draw(st.sampled_from(finite)) for _ in range(size)] for _ in range(blocks)])
        scales = np.uint8([data.draw(st.integers(0, 254)) for _ in range(blocks)])
        sides.append((reference.decode(codes, element_type), scales.astype(int) - 127))
        mantissa = codes.reshape(1, -1).view(oracle.TABLE[element_type].dtype)
        operands.append((mantissa, scales[None], size) if axis else (mantissa.T, scales[:, None], size))
    acc = data.draw(float_blocks(1))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        result = float(float32_exponent_matmul(*sides, acc[0]))
    expected = reference.matmul(*operands, acc[None])[0, 0]
    bound = reference.matmul_bound(*operands, acc[None], scale_products="exponent")[0, 0]
    assert np.isinf(bound) or abs(result - expected) <= bound


def test_the_bound_claims_nothing_where_float32_overflows():
    huge = f32(2.0**100)[None]
    assert reference.matmul_bound(huge, huge) == np.inf
    assert reference.matmul_bound(f32(np.nan)[None], f32(1)[None]) == np.inf
    assert np.isfinite(reference.matmul_bound(huge, f32(2.0**26)[None]))
    # The exact sum, 2^128 - 2^103, is below 2^128, but float32 rounds it to Inf.
    halves = f32(2.0**127, 2.0**127 - 2.0**103)[None]
    with np.errstate(over="ignore"):
        assert np.isinf(halves[0, 0] + halves[0, 1])
    assert reference.matmul_bound(halves, f32(1, 1)[:, None]) == np.inf


def test_the_bound_covers_subnormal_products():
    """Each product 2^-150 is a tie that rounds to 0: the float32 result is 0, the exact one K * 2^-150."""
    a, b = np.full((1, 8), 2.0**-75, np.float32), np.full((8, 1), 2.0**-75, np.float32)
    assert not (a[0] * b[:, 0]).any()
    assert 0 < reference.matmul(a, b)[0, 0] <= reference.matmul_bound(a, b)[0, 0] < 2.0**-145


# Refusals


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: reference.quantize([1.0] * 32), r"not float64; convert with x\.astype\(np\.float32\)"),
        (lambda: reference.quantize(np.ones(32, np.int32)), "quantize takes float32, float16 or bfloat16"),
        (lambda: reference.quantize(np.ones(32, ">f4")), "convert with"),
        (lambda: reference.quantize(f32(*range(48))), "extent 48 of blocked axis 0 is not a multiple of block size 32"),
        (lambda: reference.quantize(f32(1, 2, 3), block_size=3), "power of two >= 1, but is 3"),
        (lambda: reference.quantize(f32(1), block_size=0), "power of two >= 1, but is 0"),
        (lambda: reference.quantize(f32(1), block_size=1.0), "block size and axis must be integers"),
        (lambda: reference.quantize(f32(1), block_size=1, axis=1), "axis 1 is out of range"),
        (lambda: reference.quantize(f32(1), block_size=1, axis=-2), "axis -2 is out of range"),
        (lambda: reference.quantize(np.float32(1), block_size=1), "rank 1 or more"),
        (lambda: reference.quantize(f32(1), "f8E4M3"), "'f8E4M3' is not an MX element type; expected one of f8E5M2"),
        (lambda: reference.quantize(f32(1), block_size=1, rounding="up"), "unknown rounding mode 'up'"),
        (lambda: reference.encode(np.ones(1, np.int8), "i8"), "encode takes float64, float32"),
        (lambda: reference.decode(np.array([16], np.uint8), "f4E2M1FN"), "0x10 is no code of MXFP4 E2M1.* 4 bits"),
        (lambda: reference.decode(np.ones(1, np.int8), "f8E4M3FN"), "have dtype float8_e4m3fn or uint8, not int8"),
        (lambda: reference.decode_scale(f32(1)), "float8_e8m0fnu, float8_e4m3fn or uint8, not float32"),
        (
            lambda: reference.decode_scale(np.ones(1, ml_dtypes.float8_e8m0fnu), "f8E4M3FN"),
            "float8_e4m3fn or uint8, not float8_e8m0fnu",
        ),
        (lambda: reference.decode_scale(np.ones(1, np.uint8), "f32"), "'f32' is not a supported scale type"),
        (lambda: reference.quantize(f32(1), block_size=1, scale_type="f8E5M2"), "'f8E5M2' is not a supported scale"),
        (
            lambda: reference.quantize(f32(1), block_size=1, rounding="ceil", scale_type="f8E4M3FN"),
            "rounding 'ceil' chooses a shared exponent; f8E4M3FN scales take the nearest",
        ),
        (lambda: reference.dequantize(np.zeros(32, np.uint8), np.zeros(1, np.uint8)), "uint8 holds no MX elements"),
        (lambda: reference.dequantize(np.zeros(32, np.int8)), "needs the scale array"),
        (
            lambda: reference.dequantize(np.zeros((2, 64), np.int8), np.zeros((2, 1), np.uint8)),
            r"scale has shape \(2, 1\); a mantissa of shape \(2, 64\) in blocks of 32 along axis 1 needs \(2, 2\)",
        ),
        (
            lambda: reference.dequantize(reference.quantize(normal(0, 32)), np.zeros(1, np.uint8)),
            "not both",
        ),
        (lambda: reference.matmul(normal(0, 2, 3), normal(0, 2, 3)), r"\(2, 3\) and \(2, 3\): A's last axis"),
        (lambda: reference.matmul(normal(0, 2, 3), normal(0, 4, 2), transpose_rhs=True), "must be as long as B's last"),
        (lambda: reference.matmul(normal(0, 2, 2, 3), normal(0, 3, 3, 3)), "batch axes do not broadcast"),
        (
            lambda: reference.matmul(normal(0, 2, 2, 3), normal(0, 3, 4), normal(0, 1, 2, 4)),
            r"has shape \(1, 2, 4\).* \(2, 2, 4\)",
        ),
        (lambda: reference.matmul(normal(0, 3), normal(0, 3, 3)), r"operand A has shape \(3,\); expected rank 2"),
        (lambda: reference.matmul(normal(0, 2, 3), normal(0, 3, 4), normal(0, 4)), r"has shape \(4,\).* \(2, 4\)"),
        (lambda: reference.matmul(normal(0, 2, 3), normal(0, 3, 4).astype(float)), "matmul takes float32"),
        (
            lambda: reference.matmul(reference.quantize(normal(0, 32, 32), axis=0), normal(0, 32, 32)),
            "operand A is blocked along axis 0, not along the contracted axis 1; quantize it with axis=-1",
        ),
        (
            lambda: reference.matmul(normal(0, 32, 32), reference.quantize(normal(0, 32, 32))),
            "operand B is blocked along axis 1, not along the contracted axis 0; quantize it with axis=-2",
        ),
        (
            lambda: reference.matmul(
                normal(0, 32, 32), reference.quantize(normal(0, 32, 32), axis=0), transpose_rhs=True
            ),
            "operand B is blocked along axis 0, not along the contracted axis 1; quantize it with axis=-1",
        ),
        (lambda: reference.matmul_bound(normal(0, 2, 3), normal(0, 3, 2), scale_products="both"), "'both'; expected"),
        (
            lambda: reference.matmul_bound(np.zeros((0, 1 << 22), np.float32), np.zeros((1 << 22, 0), np.float32)),
            "no useful error bound",
        ),
    ],
)
def test_refusals_say_what_is_wrong(call, message):
    with pytest.raises(MxError, match=message):
        call()
