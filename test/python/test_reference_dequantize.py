"""The numpy reference, the way back: dequantize, and whatever the processor does to subnormals."""

import ctypes
import platform
import sys
from contextlib import contextmanager
from fractions import Fraction
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import oracle
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from reference_checks import (
    all_codes,
    assert_same_floats,
    code_bytes,
    every_element_type,
    f32,
    from_bits,
    quantize_nvfp4,
)
from strategies import ELEMENT_TYPES

from mx_dialect import reference


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
