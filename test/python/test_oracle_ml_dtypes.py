"""The elements that compiled kernels store, against casts of ml_dtypes.

A block with a NaN has elements rounded without a scale, so that one kernel rounds any values.
"""

import functools

import hard_blocks
import numpy as np
import oracle
import pytest
from ml_dtypes import bfloat16

from mx_dialect import reference

FLOATS = tuple(name for name in oracle.ELEMENT_TYPES if name != "i8")
every_float = pytest.mark.parametrize("element_type", FLOATS)

# Where ml_dtypes leaves the finite values, above or from half a step beyond the largest, and the code that it gives.
OVERFLOW = {
    "f8E5M2": (lambda magnitude: magnitude >= 61440, 0x7C),
    "f8E4M3FN": (lambda magnitude: magnitude > 464, 0x7F),
}
# What it makes of a positive and of a negative NaN: zeros of the other sign, where the format has no NaN.
NANS = {
    "f8E5M2": (0x7E, 0xFE),
    "f8E4M3FN": (0x7F, 0xFF),
    "f6E3M2FN": (0x20, 0x00),
    "f6E2M3FN": (0x20, 0x00),
    "f4E2M1FN": (0x08, 0x00),
}


@functools.cache
def values():
    """Return [BLOCKS, SIZE] float32, all of bfloat16 and float16 among them, each block beginning with a NaN."""
    patterns = np.arange(1 << 16, dtype=np.uint16)
    with np.errstate(invalid="ignore"):  # Signalling NaNs.
        halves = [patterns.view(dtype).astype(np.float32) for dtype in (bfloat16, np.float16)]
    rng = np.random.default_rng(6)
    count = hard_blocks.BLOCKS * (hard_blocks.SIZE - 1) - 2 * len(patterns)
    single = rng.integers(0, 1 << 32, count, np.uint32)
    # Half of them with exponents -20 to 20, where the formats are.
    near = rng.integers(107, 147, count // 2, np.uint32) << 23
    single[: count // 2] = (single[: count // 2] & 0x807FFFFF) | near
    x = np.concatenate([*halves, single.view(np.float32)]).reshape(hard_blocks.BLOCKS, -1)
    return np.insert(x, 0, np.nan, axis=1)


def cast(x, element_type):
    with np.errstate(invalid="ignore"):
        return x.astype(oracle.TABLE[element_type].dtype).view(np.uint8)


def overflows(x, element_type):
    """Tell which values ml_dtypes takes beyond the finite ones; formats without Inf and NaN saturate."""
    if element_type not in OVERFLOW:
        return np.zeros(x.shape, bool)
    return OVERFLOW[element_type][0](np.where(np.isnan(x), 0, np.abs(x)))


@every_float
def test_finite_elements_are_those_of_a_cast(element_type):
    x = values()
    codes, scale = hard_blocks.quantize(x, element_type)
    assert (scale == 255).all()
    theirs, over = cast(x, element_type), overflows(x, element_type)
    same = ~over & ~np.isnan(x)
    assert same.mean() > 0.5
    np.testing.assert_array_equal(codes[same], theirs[same])


# Known disagreements


@pytest.mark.parametrize("element_type", OVERFLOW)
def test_where_ml_dtypes_overflows_elements_saturate(element_type):
    """It gives Inf, or NaN where there is no Inf."""
    x = values()
    over = overflows(x, element_type)
    assert over.sum() > 10_000
    codes = hard_blocks.quantize(x, element_type)[0][over]
    sign = np.signbit(x[over]) << 7
    np.testing.assert_array_equal(cast(x[over], element_type), OVERFLOW[element_type][1] | sign)
    largest = np.float32(float(oracle.TABLE[element_type].max_normal))
    np.testing.assert_array_equal(codes, cast(largest, element_type) | sign)


@every_float
def test_ml_dtypes_keeps_the_sign_of_nan_or_turns_it_over(element_type):
    x = values()
    nan = np.isnan(x)
    codes = hard_blocks.quantize(x, element_type)[0][nan]
    assert set(codes.tolist()) == {oracle.TABLE[element_type].nan}
    positive, negative = NANS[element_type]
    np.testing.assert_array_equal(cast(x[nan], element_type), np.where(np.signbit(x[nan]), negative, positive))


@every_float
def test_ml_dtypes_rounds_float64_twice(element_type):
    """First to float32, where what decides is lost; `reference.encode` rounds once."""
    mantissa_bits = oracle.TABLE[element_type].mantissa_bits
    above_tie = np.float64(1 + 2.0 ** -(mantissa_bits + 1) + 2.0**-40)
    ours = reference.encode(above_tie, element_type)
    assert reference.decode(ours, element_type) == 1 + 2.0**-mantissa_bits
    assert above_tie.astype(oracle.TABLE[element_type].dtype) == 1
