"""The numpy reference, one value: decode and encode, against ml_dtypes and exact arithmetic."""

import itertools
from fractions import Fraction

import ml_dtypes
import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference_checks import all_codes, assert_same_floats, every_element_type, every_float, f32, from_bits
from strategies import ELEMENT_TYPES

from mx_dialect import reference


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
