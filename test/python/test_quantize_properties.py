"""Properties of quantization that need no second implementation, of compiled kernels on a million hard values."""

import hard_blocks
import ml_dtypes
import numpy as np
import oracle
import pytest

every_element_type = pytest.mark.parametrize("element_type", oracle.ELEMENT_TYPES)
every_rounding = pytest.mark.parametrize("rounding", oracle.ROUNDINGS)


def finite_codes(element_type):
    """Return every code that quantization to a finite value produces, by uint8."""
    if element_type == "i8":
        return np.arange(-127, 128).astype(np.int8).view(np.uint8)
    codes = np.arange(1 << ml_dtypes.finfo(oracle.TABLE[element_type].dtype).bits, dtype=np.uint8)
    return codes[np.isfinite(codes.view(oracle.TABLE[element_type].dtype).astype(np.float32))]


@every_element_type
@pytest.mark.parametrize("rounding", ["floor", "even", "rceil"])
def test_every_code_under_every_scale_comes_back(element_type, rounding):
    """Each block holds the largest element, which determines the scale; `ceil` would take the next higher one."""
    row = oracle.TABLE[element_type]
    codes = finite_codes(element_type)
    top = oracle.nearest_code(float(row.max_normal), element_type)
    groups = -(-len(codes) // (hard_blocks.SIZE - 1))
    blocks = np.insert(np.resize(codes, (groups, hard_blocks.SIZE - 1)), 0, top, axis=1)
    # Above this scale the largest element exceeds float32.
    scale = np.repeat(np.arange(255 - row.emax), groups).astype(np.uint8)
    blocks = np.tile(blocks, (255 - row.emax, 1))
    values = hard_blocks.dequantize(blocks, scale, element_type)
    assert np.isfinite(values).all()
    again, scale_again = hard_blocks.quantize(values, element_type, rounding)
    np.testing.assert_array_equal(scale_again, scale)
    np.testing.assert_array_equal(again, blocks)


@every_element_type
@pytest.mark.parametrize("rounding", ["floor", "even"])
def test_quantizing_again_changes_no_byte(element_type, rounding):
    codes, scale = hard_blocks.quantized(element_type, rounding)
    values = hard_blocks.dequantize(codes, scale, element_type)
    finite = np.isfinite(values).all(axis=1)
    assert finite[scale < 255].all() or rounding == "even"
    again, scale_again = hard_blocks.quantize(values[finite], element_type, rounding)
    np.testing.assert_array_equal(scale_again, scale[finite])
    np.testing.assert_array_equal(again, codes[finite])


@every_element_type
@every_rounding
def test_the_error_is_at_most_half_an_ulp_unless_saturated(element_type, rounding):
    """The ulp of the exact quotient in the element format, times the scale; float64 holds all of it exactly."""
    row = oracle.TABLE[element_type]
    limit = float(row.max_normal)
    codes, scale = hard_blocks.quantized(element_type, rounding)
    finite = scale < 255
    x = hard_blocks.hard_blocks()[finite].astype(np.float64)
    step = np.ldexp(1.0, scale[finite].astype(int) - 127)[:, None]
    quotient = np.abs(x / step)
    saturated = quotient > limit
    least = 0 if element_type == "i8" else int(np.log2(float(ml_dtypes.finfo(row.dtype).smallest_normal)))
    half_ulp = np.ldexp(step, np.maximum(np.frexp(quotient)[1] - 1, least) - row.mantissa_bits - 1)
    values = hard_blocks.dequantize(codes[finite], scale[finite], element_type).astype(np.float64)
    # What rounds up to 2^128 is beyond float32; floor never chooses a scale at which something does.
    values = np.where(np.isinf(values), np.copysign(2.0**128, values), values)
    assert (np.abs(values) < 2.0**128).all() or rounding != "floor"

    assert (np.abs(values - x) <= half_ulp)[~saturated].all()
    np.testing.assert_array_equal(values[saturated], (np.copysign(limit, x) * step)[saturated])
    np.testing.assert_array_equal(np.signbit(values), np.signbit(x) & ((values != 0) | (element_type != "i8")))
    if rounding in ("ceil", "rceil"):
        # Of MXINT8 the scale cannot grow beyond 2^127.
        assert set(scale[finite][saturated.any(axis=1)].tolist()) <= ({254} if element_type == "i8" else set())
    else:
        assert saturated.any()
