"""Quantization against torchao's mx_formats: bit for bit, but for the disagreements that docs/numerics.md lists.

torchao has no MXINT8.
"""

import functools

import hard_blocks
import ml_dtypes
import numpy as np
import oracle
import pytest
import third_party
from hypothesis import given, settings
from hypothesis import strategies as st

import mx_dialect
from mx_dialect import MxArray

torch = third_party.load("torch")
mx_tensor = third_party.load("torchao.prototype.mx_formats.mx_tensor")
nvfp4_tensor = third_party.load("torchao.prototype.mx_formats.nvfp4_tensor")
Mode = mx_tensor.ScaleCalculationMode

ELEMENT_DTYPES = {
    "f8E5M2": torch.float8_e5m2,
    "f8E4M3FN": torch.float8_e4m3fn,
    "f6E3M2FN": mx_tensor.DTYPE_FP6_E3M2,
    "f6E2M3FN": mx_tensor.DTYPE_FP6_E2M3,
    "f4E2M1FN": torch.float4_e2m1fn_x2,
}
EIGHT_BITS = ("f8E5M2", "f8E4M3FN")
BY_EXPONENT_BITS = ("floor", "ceil", "even")

every_element_type = pytest.mark.parametrize("element_type", ELEMENT_DTYPES)
every_rounding = pytest.mark.parametrize("rounding", oracle.ROUNDINGS)


def test_torch_is_a_cpu_build():
    """Nothing here needs a GPU, and a CUDA build is gigabytes."""
    assert torch.version.cuda is None


def unpacked(codes):
    """Return uint8 codes one a byte, of two in a byte, low nibble first."""
    return np.stack([codes & 15, codes >> 4], axis=-1).reshape(*codes.shape[:-1], -1)


def torchao_quantize(x, element_type, rounding):
    """Return (codes, scale codes) as uint8, shaped as `hard_blocks.quantize` returns them."""
    data = torch.from_numpy(x.copy())
    scale, codes = mx_tensor.to_mx(data, ELEMENT_DTYPES[element_type], x.shape[1], Mode[rounding.upper()])
    codes = codes.view(torch.uint8).numpy()
    return unpacked(codes) if element_type == "f4E2M1FN" else codes, scale.view(torch.uint8).numpy()[:, 0]


@functools.cache
def torchao_quantized(element_type, rounding):
    return torchao_quantize(hard_blocks.hard_blocks(), element_type, rounding)


def elements(x, exponent, element_type):
    """Return the codes that ml_dtypes gives for x / 2^exponent, an exponent a block, saturated before it rounds."""
    limit = float(oracle.TABLE[element_type].max_normal)
    scaled = np.ldexp(hard_blocks.doubles(x), -np.reshape(exponent, (-1, 1)))
    # To float32 is exact, but for values far below the smallest element.
    return np.clip(scaled, -limit, limit).astype(np.float32).astype(oracle.TABLE[element_type].dtype).view(np.uint8)


class Cases:
    """The hard blocks by what torchao is known to do with them; all are masks of blocks."""

    def __init__(self, x, scale):
        amax = hard_blocks.largest(x)
        self.nan = np.isnan(amax)
        self.infinite = np.isinf(amax)
        self.finite = np.isfinite(amax)
        self.smallest_scale = self.finite & (scale == 0)
        self.ordinary = self.finite & (scale > 0)


def just_above(x, scale, element_type):
    """Tell of which blocks the maximum exceeds what half the scale reaches, by less than 2^-17 of it."""
    reach = float(oracle.TABLE[element_type].max_normal) * np.ldexp(1.0, scale.astype(int) - 128)
    quotient = hard_blocks.largest(x) / reach
    return (quotient > 1) & (quotient < 1 + 2.0**-17)


@every_element_type
@every_rounding
def test_ordinary_blocks_are_bit_equal(element_type, rounding):
    x = hard_blocks.hard_blocks()
    codes, scale = hard_blocks.quantized(element_type, rounding)
    their_codes, their_scale = torchao_quantized(element_type, rounding)
    same = Cases(x, scale).ordinary
    if rounding == "rceil":
        same &= ~just_above(x, scale, element_type)
    assert same.mean() > 0.6
    np.testing.assert_array_equal(their_scale[same], scale[same])
    np.testing.assert_array_equal(their_codes[same], codes[same])


@settings(max_examples=60)
@given(st.data(), st.sampled_from(tuple(ELEMENT_DTYPES)), st.sampled_from(oracle.ROUNDINGS))
def test_drawn_blocks_are_bit_equal(data, element_type, rounding):
    x = data.draw(hard_blocks.drawn_blocks())
    codes, scale = hard_blocks.quantize(x, element_type, rounding)
    their_codes, their_scale = torchao_quantize(x, element_type, rounding)
    same = Cases(x, scale).ordinary & ~just_above(x, scale, element_type)
    np.testing.assert_array_equal(their_scale[same], scale[same])
    np.testing.assert_array_equal(their_codes[same], codes[same])


# Known disagreements


@every_element_type
@pytest.mark.parametrize("rounding", BY_EXPONENT_BITS)
def test_under_the_smallest_scale_torchao_divides_by_twice_what_it_stores(element_type, rounding):
    """It stores 2^-127 and divides by 2^-126, the smallest normal float32, so it halves the values."""
    x = hard_blocks.hard_blocks()
    codes, scale = hard_blocks.quantized(element_type, rounding)
    their_codes, their_scale = torchao_quantized(element_type, rounding)
    blocks = Cases(x, scale).smallest_scale
    assert (their_scale[blocks] == 0).all()
    np.testing.assert_array_equal(their_codes[blocks], elements(x[blocks], -126, element_type))
    np.testing.assert_array_equal(codes[blocks], elements(x[blocks], -127, element_type))
    assert (their_codes[blocks] != codes[blocks]).any(axis=1).sum() > 500


@every_element_type
def test_under_the_smallest_scale_torchao_rceil_does_not_divide(element_type):
    """It multiplies by 1, so everything becomes zero."""
    x = hard_blocks.hard_blocks()
    codes, scale = hard_blocks.quantized(element_type, "rceil")
    their_codes, their_scale = torchao_quantized(element_type, "rceil")
    blocks = Cases(x, scale).smallest_scale
    assert (their_scale[blocks] == 0).all()
    np.testing.assert_array_equal(their_codes[blocks], elements(np.copysign(0, x[blocks]), 0, element_type))
    np.testing.assert_array_equal(codes[blocks], elements(x[blocks], -127, element_type))


@every_element_type
def test_torchao_rceil_saturates_just_above_a_power_of_two(element_type):
    """log2 of the quotient is rounded to float32, to an integer when it is close, and its ceiling is one too low.

    How close depends on the exponent and on the machine's log2: one ulp is enough for exponents of 64 and more.
    """
    x = hard_blocks.hard_blocks()
    _, scale = hard_blocks.quantized(element_type, "rceil")
    their_codes, their_scale = torchao_quantized(element_type, "rceil")
    blocks = Cases(x, scale).ordinary & (their_scale != scale)
    assert blocks.any()
    assert just_above(x, scale, element_type)[blocks].all()
    np.testing.assert_array_equal(their_scale[blocks], scale[blocks] - 1)
    lower = their_scale[blocks].astype(int) - 127
    low = lower > -127  # Else they do not divide at all, see above.
    np.testing.assert_array_equal(their_codes[blocks][low], elements(x[blocks][low], lower[low], element_type))


@every_element_type
def test_one_ulp_above_a_power_of_two_torchao_rceil_is_one_too_low(element_type):
    row = oracle.TABLE[element_type]
    exponent = np.array([e for e in range(-120, 127 - row.emax) if abs(e) >= 64])
    fits = np.ldexp(np.float32(row.max_normal), exponent)
    x = np.zeros((2 * len(fits), hard_blocks.SIZE), np.float32)
    x[:, 0] = np.concatenate([fits, np.nextafter(fits, np.float32(np.inf))])
    _, scale = hard_blocks.quantize(x, element_type, "rceil")
    _, their_scale = torchao_quantize(x, element_type, "rceil")
    np.testing.assert_array_equal(scale, np.concatenate([exponent, exponent + 1]) + 127)
    np.testing.assert_array_equal(their_scale, np.concatenate([exponent, exponent]) + 127)


@every_element_type
@every_rounding
def test_torchao_gives_infinite_blocks_a_finite_scale(element_type, rounding):
    x = hard_blocks.hard_blocks()
    _, scale = hard_blocks.quantized(element_type, rounding)
    their_codes, their_scale = torchao_quantized(element_type, rounding)
    blocks = Cases(x, scale).infinite
    assert blocks.any()
    assert (scale[blocks] == 255).all()
    exponent = 127 if rounding == "rceil" else 128 - oracle.TABLE[element_type].emax
    assert (their_scale[blocks] == exponent + 127).all()
    np.testing.assert_array_equal(their_codes[blocks], elements(x[blocks], exponent, element_type))


@every_element_type
@every_rounding
def test_nan_blocks_agree_in_the_scale_alone(element_type, rounding):
    """torchao's elements are the quotients by Inf or NaN; this package's are the unscaled values.

    Of its NaNs torchao makes NaN where the format has one, and elsewhere whatever the bits come to.
    """
    x = hard_blocks.hard_blocks()
    codes, scale = hard_blocks.quantized(element_type, rounding)
    their_codes, their_scale = torchao_quantized(element_type, rounding)
    blocks = Cases(x, scale).nan
    assert (scale[blocks] == 255).all()
    assert (their_scale[blocks] == 255).all()
    nan_to_nan = np.where(np.isnan(x[blocks]), oracle.TABLE[element_type].nan, codes[blocks])
    np.testing.assert_array_equal(codes[blocks], nan_to_nan)
    finite = np.isfinite(x[blocks])
    np.testing.assert_array_equal(codes[blocks][finite], elements(x[blocks], 0, element_type)[finite])
    if rounding in BY_EXPONENT_BITS:
        zeros = elements(np.copysign(0, x[blocks]), 0, element_type)
        np.testing.assert_array_equal(their_codes[blocks][finite], zeros[finite])
    if element_type in EIGHT_BITS:
        became_nan = np.isnan(their_codes[blocks].view(oracle.TABLE[element_type].dtype).astype(np.float32))
        np.testing.assert_array_equal(became_nan, np.isnan(x[blocks]) | np.isinf(x[blocks]) | (rounding == "rceil"))


@every_element_type
def test_even_near_the_largest_float32_is_finite_in_both(element_type):
    """Rounding the maximum up overflows float32; the scale is nevertheless one above that of floor."""
    x = np.full((1, hard_blocks.SIZE), np.finfo(np.float32).max)
    codes, scale = hard_blocks.quantize(x, element_type, "even")
    their_codes, their_scale = torchao_quantize(x, element_type, "even")
    assert scale.tolist() == their_scale.tolist() == [255 - oracle.TABLE[element_type].emax]
    np.testing.assert_array_equal(their_codes, codes)


# Back


@every_element_type
def test_dequantize_every_code_and_scale(element_type):
    """Bit for bit, where not NaN."""
    bits = ml_dtypes.finfo(oracle.TABLE[element_type].dtype).bits
    codes = np.broadcast_to(np.arange(1 << bits, dtype=np.uint8), (256, 1 << bits)).copy()
    scale = np.arange(256, dtype=np.uint8).reshape(256, 1)
    ours = mx_dialect.dequantize(MxArray(codes, scale, block_size=1 << bits, element_type=element_type))
    data = torch.from_numpy(codes[:, ::2] | codes[:, 1::2] << 4 if bits == 4 else codes)
    if bits == 8:
        data = data.view(ELEMENT_DTYPES[element_type])
    scales = torch.from_numpy(scale).view(torch.float8_e8m0fnu)
    theirs = mx_tensor.to_dtype(data, scales, ELEMENT_DTYPES[element_type], 1 << bits, torch.float32).numpy()
    np.testing.assert_array_equal(np.isnan(theirs), np.isnan(ours))
    real = ~np.isnan(ours)
    np.testing.assert_array_equal(theirs.view(np.uint32)[real], ours.view(np.uint32)[real])


# NVFP4


def torchao_nvfp4():
    x = hard_blocks.nvfp4_blocks()
    scale, codes = nvfp4_tensor.nvfp4_quantize(torch.from_numpy(x.copy()), hard_blocks.NV_SIZE)
    return unpacked(codes.numpy()), scale.view(torch.uint8).numpy()[:, 0]


def test_nvfp4_is_bit_equal_but_for_a_rounded_reciprocal():
    """torchao multiplies by 1 / scale, rounded: what lies within two roundings of a tie may land on it or across."""
    x = hard_blocks.nvfp4_blocks()
    codes, scale = hard_blocks.nvfp4_quantized()
    their_codes, their_scale = torchao_nvfp4()
    finite = np.isfinite(hard_blocks.largest(x))
    np.testing.assert_array_equal(their_scale[finite], scale[finite])
    divisor = scale[finite, None].view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    exact = np.abs(hard_blocks.doubles(x[finite]) / divisor)
    differ = their_codes[finite] != codes[finite]
    ties = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0])
    near = exact[differ, None] / ties
    assert (np.abs(near - 1).min(axis=1) < 2.0**-22).all()
    assert 100 < differ.sum() < 0.01 * differ.size
    rounded = np.clip(x[finite] * (np.float32(1) / divisor), -6, 6).astype(ml_dtypes.float4_e2m1fn)
    np.testing.assert_array_equal(their_codes[finite], rounded.view(np.uint8))


def test_nvfp4_special_blocks():
    """A NaN makes the scale NaN in both; infinity, in torchao, the largest scale."""
    amax = hard_blocks.largest(hard_blocks.nvfp4_blocks())
    _, scale = hard_blocks.nvfp4_quantized()
    _, their_scale = torchao_nvfp4()
    assert set(scale[~np.isfinite(amax)].tolist()) == {0x7F}
    assert set(their_scale[np.isnan(amax)].tolist()) == {0x7F}
    assert set(their_scale[np.isinf(amax)].tolist()) == {0x7E}
