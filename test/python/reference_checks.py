"""Values, codes and comparisons that the tests of the numpy reference share."""

import ml_dtypes
import numpy as np
import oracle
import pytest

from mx_dialect import reference

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


def quantize_nvfp4(x, element_type="f4E2M1FN", block_size=16):
    return reference.quantize(x, element_type, block_size, scale_type="f8E4M3FN")


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
