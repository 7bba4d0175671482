"""Quantization against gfloat: bit for bit, but for the disagreements that docs/numerics.md lists.

gfloat chooses the shared exponent as `floor` does; given a scale it encodes elements for the other roundings as well.
"""

import functools

import gfloat
import hard_blocks
import numpy as np
import oracle
import pytest
from gfloat import block as gfloat_block
from gfloat import formats as gfloat_formats
from hypothesis import given, settings
from hypothesis import strategies as st

from mx_dialect import reference

BLOCK_FORMATS = {
    "f8E5M2": gfloat_formats.format_info_mxfp8_e5m2,
    "f8E4M3FN": gfloat_formats.format_info_mxfp8_e4m3,
    "f6E3M2FN": gfloat_formats.format_info_mxfp6_e3m2,
    "f6E2M3FN": gfloat_formats.format_info_mxfp6_e2m3,
    "f4E2M1FN": gfloat_formats.format_info_mxfp4_e2m1,
    "i8": gfloat_formats.format_info_mxint8,
}
E8M0 = gfloat_formats.format_info_ocp_e8m0

every_element_type = pytest.mark.parametrize("element_type", oracle.ELEMENT_TYPES)


def encoded(values, fmt):
    """Return gfloat's codes of float64 values: nearest even, saturated."""
    return gfloat.encode_ndarray(fmt, gfloat.round_ndarray(fmt, values, sat=True))


def minus_two_avoided(codes, element_type):
    """Return gfloat's codes with the one MXINT8 code that this package does not produce replaced by its neighbour."""
    return np.where(codes == 128, 129, codes) if element_type == "i8" else codes


def finite_blocks(element_type, rounding="floor"):
    """Return the finite hard blocks as float64, and their codes and scale codes."""
    x = hard_blocks.hard_blocks()
    codes, scale = hard_blocks.quantized(element_type, rounding)
    finite = np.isfinite(hard_blocks.largest(x))
    return x[finite].astype(np.float64), codes[finite], scale[finite]


@functools.cache
def gfloat_scales():
    """Return gfloat's scales of the finite hard blocks, [blocks, formats]: one call a block serves all formats."""
    emax = np.array([fmt.etype.emax for fmt in BLOCK_FORMATS.values()], np.float64)
    amax = hard_blocks.largest(hard_blocks.hard_blocks())
    scales = np.empty((np.isfinite(amax).sum(), len(emax)))
    for row, value in zip(scales, amax[np.isfinite(amax), None], strict=True):
        row[:] = gfloat.compute_scale_amax(emax, value)
    return scales


@every_element_type
def test_scales_are_equal(element_type):
    _, _, scale = finite_blocks(element_type)
    theirs = gfloat_scales()[:, list(BLOCK_FORMATS).index(element_type)]
    np.testing.assert_array_equal(encoded(theirs, E8M0), scale)


@every_element_type
@pytest.mark.parametrize("rounding", oracle.ROUNDINGS)
def test_elements_are_equal(element_type, rounding):
    """Given this package's scale: all blocks for floor, every fourth for the others."""
    every = slice(None, None, 1 if rounding == "floor" else 4)
    x, codes, scale = (part[every] for part in finite_blocks(element_type, rounding))
    scales = gfloat.decode_ndarray(E8M0, scale.astype(np.int64))
    theirs = encoded(x / scales[:, None], BLOCK_FORMATS[element_type].etype)
    np.testing.assert_array_equal(minus_two_avoided(theirs, element_type), codes)


@settings(max_examples=60)
@given(st.data(), st.sampled_from(oracle.ELEMENT_TYPES))
def test_quantize_block_makes_the_same_values(data, element_type):
    """gfloat's whole conversion, one value at a time, to a block and back."""
    x = data.draw(hard_blocks.drawn_blocks(count=1))
    codes, scale = hard_blocks.quantize(x, element_type)
    if not np.isfinite(x).all():
        assert scale.tolist() == [255]
        return
    theirs = gfloat.quantize_block(BLOCK_FORMATS[element_type], x[0].astype(np.float64), gfloat.compute_scale_amax)
    step = float(reference.decode_scale(scale)[0])
    theirs = np.where(theirs == -2 * step, -127 / 64 * step, theirs) if element_type == "i8" else theirs
    np.testing.assert_array_equal(reference.decode(codes[0], element_type) * step, theirs)


@every_element_type
def test_decode_every_code(element_type):
    fmt = BLOCK_FORMATS[element_type].etype
    codes = np.arange(1 << fmt.k)
    np.testing.assert_array_equal(
        reference.decode(codes.astype(np.uint8), element_type), gfloat.decode_ndarray(fmt, codes)
    )


def test_decode_every_scale():
    codes = np.arange(256)
    np.testing.assert_array_equal(reference.decode_scale(codes.astype(np.uint8)), gfloat.decode_ndarray(E8M0, codes))


def test_nvfp4_is_bit_equal():
    """In float64 both quotients, by 6 and by the scale, are exact wherever they decide a rounding."""
    x = hard_blocks.nvfp4_blocks()
    codes, scale = hard_blocks.nvfp4_quantized()
    amax = hard_blocks.largest(x)
    finite = np.isfinite(amax)
    e4m3 = gfloat_formats.format_info_ocp_e4m3
    theirs = encoded(np.clip(amax[finite] / 6, 2.0**-6, 448), e4m3)
    np.testing.assert_array_equal(theirs, scale[finite])
    divisor = gfloat.decode_ndarray(e4m3, scale[finite].astype(np.int64))
    quotients = x[finite].astype(np.float64) / divisor[:, None]
    np.testing.assert_array_equal(encoded(quotients, gfloat_formats.format_info_ocp_e2m1), codes[finite])


# Known disagreements


def test_mxint8_of_gfloat_reaches_minus_two():
    """The two's complement code -128; this package stops at -127, as the OCP specification permits."""
    x, codes, scale = finite_blocks("i8")
    scaled = x / gfloat.decode_ndarray(E8M0, scale.astype(np.int64))[:, None]
    theirs = encoded(scaled, BLOCK_FORMATS["i8"].etype)
    differ = theirs != codes
    assert differ.any()
    np.testing.assert_array_equal(differ, scaled <= -127.5 / 64)
    assert set(codes[differ].tolist()) == {129}
    assert set(theirs[differ].tolist()) == {128}


def test_in_float32_gfloat_rounds_a_logarithm_up():
    """Given float32 values it takes their log2 in float32, which rounds to an integer just below a power of two."""
    exponent = np.array([*range(-118, -16), *range(16, 128)])
    below = np.nextafter(np.ldexp(np.float32(1), exponent), np.float32(0))
    x = np.zeros((len(below), hard_blocks.SIZE), np.float32)
    x[:, 0] = below
    _, scale = hard_blocks.quantize(x, "f8E4M3FN")
    single = [gfloat.compute_scale_amax(8, values) for values in x]
    double = [gfloat.compute_scale_amax(8, values) for values in x.astype(np.float64)]
    np.testing.assert_array_equal(encoded(np.array(double), E8M0), scale)
    np.testing.assert_array_equal(encoded(np.array(single), E8M0), scale + 1)


@every_element_type
def test_special_blocks_in_gfloat(element_type):
    """Infinity counts as the largest scale; NaN makes all elements NaN, or an error where the format has none."""
    fmt = BLOCK_FORMATS[element_type]
    x = np.full((2, hard_blocks.SIZE), 3, np.float32)
    x[0, :2] = np.inf, -np.inf
    x[1, 0] = np.nan
    codes, scale = hard_blocks.quantize(x, element_type)
    assert scale.tolist() == [255, 255]

    def theirs(values):
        factor = gfloat.compute_scale_amax(fmt.etype.emax, values)
        return list(gfloat_block.encode_block(fmt, factor, values / factor))

    values = x.astype(np.float64)
    their_scale, *their_codes = theirs(values[0])
    assert their_scale == 254
    # Of 3 * 2^-127 nothing is left.
    expected = np.where(np.isinf(x[0]), minus_two_avoided(np.array(their_codes), element_type), codes[0])
    np.testing.assert_array_equal(codes[0], expected)
    assert set(their_codes[2:]) == {0}
    if fmt.etype.num_nans == 0:
        with pytest.raises(ValueError, match="No NaN in format"):
            theirs(values[1])
        assert codes[1, 0] == 0
        return
    assert theirs(values[1]) == [255] * (1 + hard_blocks.SIZE)
    assert codes[1, 0] == oracle.TABLE[element_type].nan  # Positive; theirs is negative.
