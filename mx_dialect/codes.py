"""Element and scale codes to values and back, exact, in numpy.

Conversions are integer arithmetic on bit patterns, with no log2 and no float division, so that every value
from the smallest subnormal on is right, whatever the processor's flush-to-zero and denormals-are-zero flags
say.

All roundings go through one picture of a number: significand * 2^(exponent - 52), with the significand an
int64 in [2^52, 2^53), or 0. `unpack` makes it from any IEEE-like float, `_round` turns it into a code of any
smaller one.

Source of the formats: OCP Microscaling Formats (MX) v1.0, section 5.
"""

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

from mx_dialect.diagnostics import MxError
from mx_dialect.formats import (
    DEFAULT_ROUNDING,
    E8M0,
    ELEMENT_FORMATS,
    ROUNDING_MODES,
    SCALE_FORMATS,
    ElementFormat,
    ScaleFormat,
)
from mx_dialect.near_miss import expected_one_of

Array: TypeAlias = npt.NDArray[Any]
Bools: TypeAlias = npt.NDArray[np.bool_]
Ints: TypeAlias = npt.NDArray[np.int64]
Singles: TypeAlias = npt.NDArray[np.float32]
Doubles: TypeAlias = npt.NDArray[np.float64]
Codes: TypeAlias = npt.NDArray[np.uint8]


def numpy_dtype(element_type: str) -> np.dtype[Any]:
    """Return the numpy dtype that holds one element a byte: of ml_dtypes, or int8 for MXINT8.

    Raises:
        MxError: `element_type` is not in `formats.ELEMENT_FORMATS`.
    """
    return np.dtype(getattr(ml_dtypes, format_named(element_type).ml_dtype, np.int8))


def scale_dtype(scale_type: str) -> np.dtype[Any]:
    """Return the numpy dtype, of ml_dtypes, that holds one scale.

    Raises:
        MxError: `scale_type` is not in `formats.SCALE_FORMATS`.
    """
    return np.dtype(getattr(ml_dtypes, scale_format_named(scale_type).ml_dtype))


def encode(x: npt.ArrayLike, element_type: str) -> Codes:
    """Return the code of each value, one a byte: nearest, ties to even, saturated to max_normal.

    NaN becomes the format's positive NaN code, or 0 where it has none. `x` is float64, float32, float16 or
    bfloat16. MXINT8 codes are the bits of the int8; -128 is never produced.

    Raises:
        MxError: an unknown element type or another dtype of `x`.
    """
    fmt = format_named(element_type)
    array = np.asarray(x)
    if array.dtype not in _LAYOUTS:
        raise MxError(f"encode takes float64, float32, float16 or bfloat16 values, not {array.dtype}")
    return encode_bits(split(array), fmt, np.ones(()))


def decode(codes: Array, element_type: str) -> Doubles:
    """Return the exact value of each element code; `codes` has the dtype `numpy_dtype` tells, or uint8.

    Raises:
        MxError: an unknown element type, another dtype, or a byte that is no code of the format.
    """
    fmt = format_named(element_type)
    return _value_table(element_type)[element_codes(np.asarray(codes), fmt)]


def decode_scale(codes: Array, scale_type: str | None = None) -> Doubles:
    """Return the exact value of each scale code: of f8E8M0FNU 2^(code - 127), and NaN for code 255.

    `codes` has the dtype of its format, or uint8, which counts as f8E8M0FNU unless `scale_type` says otherwise.

    Raises:
        MxError: another dtype.
    """
    array = np.asarray(codes)
    fmt = scale_format_of(array, scale_type)
    code = array.view(np.uint8)
    if not fmt.is_power_of_two:
        return _value_table(fmt.mlir)[code]
    return np.where(code == fmt.nan_code, np.nan, np.ldexp(1.0, code.astype(np.int32) - fmt.bias))


@dataclass(frozen=True)
class Layout:
    """The fields of an IEEE-like float: `bits` its unsigned integer dtype, `bias` that of its exponent."""

    bits: type[np.unsignedinteger[Any]]
    fraction_bits: int
    bias: int

    @property
    def infinity(self) -> int:
        """Return the bits of +Inf; magnitudes above are NaN."""
        return (2 * self.bias + 1) << self.fraction_bits


_SINGLE = Layout(np.uint32, 23, 127)
_DOUBLE = Layout(np.uint64, 52, 1023)
_LAYOUTS: dict[np.dtype[Any], Layout] = {
    np.dtype(np.float16): Layout(np.uint16, 10, 15),
    np.dtype(ml_dtypes.bfloat16): Layout(np.uint16, 7, 127),
    np.dtype(np.float32): _SINGLE,
    np.dtype(np.float64): _DOUBLE,
}
_SINGLE_NAN = 0x7FC00000

FRACTION_BITS = 52
FRACTION_MASK = (1 << FRACTION_BITS) - 1


class Bits(NamedTuple):
    """Floats as integers: `sign` (True if negative), and `magnitude`, the bits without the sign."""

    sign: Bools
    magnitude: Ints
    layout: Layout


def split(x: Array) -> Bits:
    """Return the bits of a float64, float32, float16 or bfloat16 array."""
    layout = _LAYOUTS[x.dtype]
    bits = x.view(layout.bits)
    top = layout.bits(1 << (bits.dtype.itemsize * 8 - 1))
    return Bits((bits & top) != 0, (bits & ~top).astype(np.int64), layout)


def unpack(magnitude: Ints, layout: Layout) -> tuple[Ints, Ints]:
    """Return (exponent, significand) of magnitude bits, subnormals normalised.

    A zero has significand 0 and an exponent below -1000. Inf and NaN count as if the top exponent were an
    ordinary one.
    """
    field = magnitude >> layout.fraction_bits
    hidden = (field != 0).astype(np.int64) << layout.fraction_bits
    integer = (magnitude & ((1 << layout.fraction_bits) - 1)) | hidden
    # int -> float64 is exact below 2^53 and finds the leading one; 0 has all bits 0, exponent -1023.
    bits = integer.astype(np.float64).view(np.int64)
    leading = (bits >> FRACTION_BITS) - 1023
    exponent = leading + np.maximum(field, 1) - (layout.bias + layout.fraction_bits)
    significand = np.where(integer == 0, 0, (bits & FRACTION_MASK) | (1 << FRACTION_BITS))
    return exponent, significand


def _round(exponent: Ints, significand: Ints, mantissa_bits: int, min_exponent: int) -> Ints:
    """Return the magnitude code nearest to significand * 2^(exponent - 52), ties to even, unlimited above.

    `min_exponent` is that of the format's smallest normal value. Magnitude codes count through subnormals and
    normals alike, so that a significand which rounds up to 2 carries into the next exponent by itself.
    """
    binades = exponent - min_exponent
    # A shift by 54 brings every significand below one half, hence to 0; int64 shifts end at 63.
    shift = np.minimum(FRACTION_BITS - mantissa_bits - np.minimum(binades, 0), FRACTION_BITS + 2)
    kept_is_odd = (significand >> shift) & 1
    below_half = (np.ones((), np.int64) << (shift - 1)) - 1
    return (np.maximum(binades, 0) << mantissa_bits) + ((significand + below_half + kept_is_odd) >> shift)


def _divide(exponent: Ints, significand: Ints, divisor: Doubles) -> tuple[Ints, Ints]:
    """Return the quotient of numbers by positive divisors of at most 7 significant bits, cut off after 53 bits.

    Its last bit is 1 if anything was cut off, so that `_round`, which keeps far fewer bits, sees no tie in it.
    """
    divisor_exponent, divisor_significand = unpack(split(divisor).magnitude, _DOUBLE)
    narrow = divisor_significand >> (FRACTION_BITS - 6)
    less = significand < (narrow << (FRACTION_BITS - 6))
    quotient, remainder = np.divmod(significand << (6 + less), narrow)
    return exponent - divisor_exponent - less, quotient | (remainder != 0)


def encode_bits(bits: Bits, fmt: ElementFormat, divisor: Doubles) -> Codes:
    """Return the code of each value / divisor, the exact quotient rounded once, as `encode`.

    A divisor is positive, with at most 7 significant bits; Inf needs 1.
    """
    exponent, significand = _divide(*unpack(bits.magnitude, bits.layout), divisor)
    # MXINT8's magnitudes 0..127 are those of a float with six fraction bits whose normals begin at 1.
    min_exponent = 0 if fmt.is_integer else 1 - fmt.bias
    magnitude = _round(exponent, significand, fmt.mantissa_bits, min_exponent)
    code = np.minimum(magnitude, fmt.max_magnitude)
    negative = -code & 0xFF if fmt.is_integer else code | (1 << (fmt.bits - 1))
    is_nan = bits.magnitude > bits.layout.infinity
    return np.where(is_nan, fmt.nan_magnitude or 0, np.where(bits.sign, negative, code)).astype(np.uint8)


def to_singles(x: Doubles) -> Singles:
    """Return float64 values rounded once to float32, overflow to Inf, NaN positive; subnormals are never flushed."""
    bits = split(x)
    magnitude = _round(*unpack(bits.magnitude, bits.layout), _SINGLE.fraction_bits, 1 - _SINGLE.bias)
    rounded = np.minimum(magnitude, _SINGLE.infinity) | (bits.sign.astype(np.int64) << 31)
    return np.where(np.isnan(x), _SINGLE_NAN, rounded).astype(np.uint32).view(np.float32)


@functools.cache
def _value_table(element_type: str) -> Doubles:
    """Return the exact value of every code of an element format, indexed by the unsigned code."""
    fmt = format_named(element_type)
    codes = np.arange(1 << fmt.bits, dtype=np.int32)
    if fmt.is_integer:
        table = np.ldexp(codes.astype(np.uint8).view(np.int8).astype(np.float64), -fmt.mantissa_bits)
    else:
        magnitude = codes & ((1 << (fmt.bits - 1)) - 1)
        field = magnitude >> fmt.mantissa_bits
        hidden = (field != 0).astype(np.int32) << fmt.mantissa_bits
        integer = (magnitude & ((1 << fmt.mantissa_bits) - 1)) | hidden
        table = np.ldexp(integer.astype(np.float64), np.maximum(field, 1) - fmt.bias - fmt.mantissa_bits)
        table[magnitude > fmt.max_magnitude] = np.nan
        if fmt.ieee_specials:
            table[magnitude == fmt.max_magnitude + 1] = np.inf
        table = np.copysign(table, np.where(codes == magnitude, 1.0, -1.0))
    table.setflags(write=False)
    return table


def format_named(element_type: str) -> ElementFormat:
    """Return the row of an element type; `MxError` if there is none."""
    if element_type not in ELEMENT_FORMATS:
        raise MxError(f"'{element_type}' is not an MX element type; {expected_one_of(element_type, ELEMENT_FORMATS)}")
    return ELEMENT_FORMATS[element_type]


def format_of_dtype(dtype: np.dtype[Any]) -> ElementFormat:
    """Return the element format that a numpy dtype holds; `MxError` if it holds none."""
    for element_type, fmt in ELEMENT_FORMATS.items():
        if numpy_dtype(element_type) == dtype:
            return fmt
    known = ", ".join(fmt.ml_dtype for fmt in ELEMENT_FORMATS.values())
    raise MxError(f"a mantissa of dtype {dtype} holds no MX elements; expected one of {known}")


def element_codes(array: Array, fmt: ElementFormat) -> Codes:
    """Return an element array as uint8 codes; `MxError` if a byte of it is none of `fmt`."""
    if array.dtype not in (numpy_dtype(fmt.mlir), np.dtype(np.uint8)):
        raise MxError(f"codes of {fmt.name} have dtype {fmt.ml_dtype} or uint8, not {array.dtype}")
    codes = array.view(np.uint8)
    if fmt.bits < 8 and codes.size and int(codes.max()) >> fmt.bits:
        raise MxError(f"byte {int(codes.max()):#04x} is no code of {fmt.name}, which has {fmt.bits} bits")
    return codes


def scale_format_named(scale_type: str) -> ScaleFormat:
    """Return the row of a scale type; `MxError` if there is none."""
    if scale_type not in SCALE_FORMATS:
        raise MxError(f"'{scale_type}' is not a supported scale type; {expected_one_of(scale_type, SCALE_FORMATS)}")
    return SCALE_FORMATS[scale_type]


def scale_format_of(scale: Array, scale_type: str | None = None) -> ScaleFormat:
    """Return the format of a scale array: of its dtype, or for uint8 codes the one named, f8E8M0FNU if none is.

    Raises:
        MxError: the dtype is of no scale format, or not of the one named.
    """
    formats = SCALE_FORMATS.values() if scale_type is None else (scale_format_named(scale_type),)
    for fmt in formats:
        if scale.dtype == scale_dtype(fmt.mlir):
            return fmt
    if scale.dtype == np.uint8:
        return E8M0 if scale_type is None else SCALE_FORMATS[scale_type]
    known = ", ".join(fmt.ml_dtype for fmt in formats)
    raise MxError(f"a scale array has dtype {known} or uint8, not {scale.dtype}")


def require_rounding(rounding: str, scale_format: ScaleFormat) -> None:
    """Refuse a rounding mode that does not exist, or that a scale format has no use for; `MxError`."""
    if rounding not in ROUNDING_MODES:
        raise MxError(f"unknown rounding mode '{rounding}'; expected one of {', '.join(ROUNDING_MODES)}")
    if rounding != DEFAULT_ROUNDING and not scale_format.is_power_of_two:
        raise MxError(f"rounding '{rounding}' chooses a shared exponent; {scale_format.mlir} scales take the nearest")
