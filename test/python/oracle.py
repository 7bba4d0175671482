"""The MX conversions in exact rational arithmetic: slow, scalar, and independent of the package.

Constants are those of the OCP Microscaling v1.0 tables, written out; element values come from ml_dtypes.
"""

import functools
import itertools
import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction

import ml_dtypes
import numpy as np


@dataclass(frozen=True)
class Row:
    """One row of the specification's table; `nan` is the code that a NaN becomes, 0 where there is none."""

    dtype: type
    mantissa_bits: int
    emax: int
    max_normal: Fraction
    nan: int = 0


TABLE = {
    "f8E5M2": Row(ml_dtypes.float8_e5m2, 2, 15, Fraction(57344), 0x7E),
    "f8E4M3FN": Row(ml_dtypes.float8_e4m3fn, 3, 8, Fraction(448), 0x7F),
    "f6E3M2FN": Row(ml_dtypes.float6_e3m2fn, 2, 4, Fraction(28)),
    "f6E2M3FN": Row(ml_dtypes.float6_e2m3fn, 3, 2, Fraction(15, 2)),
    "f4E2M1FN": Row(ml_dtypes.float4_e2m1fn, 1, 2, Fraction(6)),
    "i8": Row(np.int8, 6, 0, Fraction(127, 64)),
}
ELEMENT_TYPES = tuple(TABLE)
ROUNDINGS = ("floor", "ceil", "even", "rceil")


@functools.cache
def magnitudes(element_type):
    """Return the non-negative finite values of a format, by magnitude code."""
    if element_type == "i8":
        return [Fraction(code, 64) for code in range(128)]
    sign_free = np.arange(1 << (ml_dtypes.finfo(TABLE[element_type].dtype).bits - 1), dtype=np.uint8)
    values = sign_free.view(TABLE[element_type].dtype).astype(np.float64)
    return [Fraction(float(value)) for value in values if math.isfinite(value)]


def nearest_code(value, element_type):
    """Return the code of a float: nearest value, ties to the even code, saturated; NaN as `Row.nan`."""
    if math.isnan(value):
        return TABLE[element_type].nan
    exact = None if math.isinf(value) else Fraction(value)
    return scaled_code(exact, math.copysign(1, value) < 0, element_type)


def scaled_code(exact, negative, element_type):
    """Return the code of a Fraction (None is infinite), whose sign counts for zero too."""
    values = magnitudes(element_type)
    if exact is None or abs(exact) >= values[-1]:
        code = len(values) - 1
    else:
        above = bisect_left(values, abs(exact))
        below = max(above - 1, 0)
        to_above, to_below = values[above] - abs(exact), abs(exact) - values[below]
        code = min((to_above, above % 2, above), (to_below, below % 2, below))[-1]
    if not negative:
        return code
    if element_type == "i8":
        return -code % 256
    return code + (1 << (ml_dtypes.finfo(TABLE[element_type].dtype).bits - 1))


def floor_log2(value):
    """Return floor(log2(value)) of a positive Fraction."""
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if value >= Fraction(2) ** guess else guess - 1


def ceil_log2(value):
    """Return ceil(log2(value)) of a positive Fraction."""
    floor = floor_log2(value)
    return floor if value == Fraction(2) ** floor else floor + 1


def shared_exponent(amax, element_type, rounding):
    """Return the unclamped shared exponent of a block whose largest magnitude is the positive Fraction `amax`."""
    row = TABLE[element_type]
    if rounding == "floor":
        return floor_log2(amax) - row.emax
    if rounding == "ceil":
        return ceil_log2(amax) - row.emax
    if rounding == "rceil":
        return ceil_log2(amax / row.max_normal)
    step = Fraction(2) ** (floor_log2(amax) - row.mantissa_bits)
    return floor_log2(math.floor(amax / step + Fraction(1, 2)) * step) - row.emax


def quantize_block(values, element_type, rounding):
    """Return (element codes, scale code) of one block of Python floats."""
    if not all(math.isfinite(value) for value in values):
        return [nearest_code(value, element_type) for value in values], 255
    amax = max(abs(Fraction(value)) for value in values)
    exponent = -127 if amax == 0 else shared_exponent(amax, element_type, rounding)
    exponent = min(max(exponent, -127), 127)
    return divided_codes(values, Fraction(2) ** exponent, element_type), exponent + 127


def left_of_blocks(weights, element_type, block_size=32):
    """Return what quantization leaves of weights [N, K] of finite numbers, in doubles, all at once.

    Blocks lie along K, the last one is shorter if need be; the shared exponent is rounded down.
    """
    numbers = np.array([float(number) for number in magnitudes(element_type)])
    left = np.zeros(weights.shape)
    for start in range(0, weights.shape[1], block_size):
        block = weights[:, start : start + block_size].astype(np.float64)
        amax = np.abs(block).max(axis=1, keepdims=True)
        scale = 2.0 ** (np.floor(np.log2(np.where(amax > 0, amax, 1))) - TABLE[element_type].emax)
        wanted = np.abs(block) / scale
        above = np.clip(np.searchsorted(numbers, wanted), 1, len(numbers) - 1)
        middle = (numbers[above - 1] + numbers[above]) / 2
        # To nearest, ties to the even code, and no further than the largest number.
        up = (wanted > middle) | ((wanted == middle) & (above % 2 == 0))
        left[:, start : start + block_size] = np.sign(block) * numbers[np.where(up, above, above - 1)] * scale
    return left


def divided_codes(values, divisor, element_type):
    """Return the code of each finite Python float over a Fraction."""
    return [scaled_code(Fraction(value) / divisor, math.copysign(1, value) < 0, element_type) for value in values]


def quantize_nvfp4_block(values, element_type="f4E2M1FN"):
    """Return (element codes, scale code) of one block of Python floats with an f8E4M3FN scale."""
    if not all(math.isfinite(value) for value in values):
        return [nearest_code(value, element_type) for value in values], 0x7F
    amax = max(abs(Fraction(value)) for value in values)
    ideal = min(max(amax / TABLE[element_type].max_normal, Fraction(1, 64)), Fraction(448))
    scale = scaled_code(ideal, False, "f8E4M3FN")
    return divided_codes(values, magnitudes("f8E4M3FN")[scale], element_type), scale


def nvfp4_ties():
    """Return float32 blocks [n, 16] with values at and beside the ties of each scale, or a scale at or beside a tie."""

    def beside(values):
        return [np.nextafter(values, np.float32(-np.inf)), values, np.nextafter(values, np.float32(np.inf))]

    def ties(values):
        return np.float32([float(low + high) / 2 for low, high in itertools.pairwise(values)])

    scales = [value for value in magnitudes("f8E4M3FN") if value >= Fraction(1, 64)]
    elements = np.concatenate(beside(np.outer(np.float32(scales), ties(magnitudes("f4E2M1FN")))), axis=1)
    largest = np.float32([6 * float(scale) for scale in scales])[:, None]
    by_element = [np.concatenate([part, largest], axis=1) for part in (elements[:, :15], -elements[:, 6:])]
    maxima = np.concatenate(beside(np.float32(6) * ties(scales)))
    by_scale = maxima[:, None] * np.float32([1, *(i / 16 for i in range(15))])
    return np.concatenate([*by_element, by_scale])
