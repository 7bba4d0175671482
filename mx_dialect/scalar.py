"""What the value-level operations mean for one element, as scalar IR.

Each operation names its body from here; a lowering puts it in a linalg.generic. The current insertion point and
location are the caller's. Formulas: OCP Microscaling v1.0, and `formats.rounding_threshold` for the shared exponent.
"""

import functools
from collections.abc import Sequence
from typing import Any

from mx_dialect._mlir import arith, ir, math
from mx_dialect.formats import E8M0, SCALE_FORMATS, ElementFormat, ScaleFormat, rounding_threshold

_F32_INFINITY = 0x7F800000
_F32_FRACTION = 0x007FFFFF
_F32_FRACTION_BITS = 23
_F32_BIAS = 127


def f32(value: float) -> Any:
    """Return an f32 constant."""
    return arith.constant(ir.F32Type.get(), value)


def i32(value: int) -> Any:
    """Return an i32 constant."""
    return arith.constant(ir.IntegerType.get_signless(32), value)


def to_f32(value: Any) -> Any:
    """Return a float of at most 32 bits as f32: exact."""
    return value if isinstance(value.type, ir.F32Type) else arith.extf(ir.F32Type.get(), value)


def from_f32(value: Any, type_: Any) -> Any:
    """Return an f32 rounded to nearest even in a float type of at most 32 bits."""
    return value if value.type == type_ else arith.truncf(type_, value)


def decode_element(mantissa: Any, fmt: ElementFormat) -> Any:
    """Return an element in f32, exact; one of less than a byte may be given as its i8 code."""
    if fmt.is_integer:
        integer = arith.sitofp(ir.F32Type.get(), mantissa)
        return arith.mulf(integer, f32(fmt.min_subnormal))
    if isinstance(mantissa.type, ir.IntegerType):
        mantissa = element_from_code(mantissa, fmt)
    return to_f32(mantissa)


def element_from_code(code: Any, fmt: ElementFormat) -> Any:
    """Return the element of an i8 code, its upper bits ignored."""
    bits = arith.trunci(ir.IntegerType.get_signless(fmt.bits), code)
    return arith.bitcast(ir.Type.parse(fmt.mlir), bits)


def element_code(element: Any, fmt: ElementFormat) -> Any:
    """Return the i8 code of an element of less than a byte, its upper bits zero."""
    bits = arith.bitcast(ir.IntegerType.get_signless(fmt.bits), element)
    return arith.extui(ir.IntegerType.get_signless(8), bits)


def element_value(mantissa: Any, scale: Any, fmt: ElementFormat, factors: Sequence[Any] = ()) -> Any:
    """Return what an element is worth, in f32: mantissa * scale, exact unless it leaves f32's range.

    `factors`, f32, multiply it one by one, each product rounded.
    """
    value = arith.mulf(decode_element(mantissa, fmt), to_f32(scale))
    for factor in factors:
        value = arith.mulf(value, factor)
    return value


def multiply_add(accumulator: Any, lhs: Any, rhs: Any) -> Any:
    """Return accumulator + lhs * rhs in f32, both operations rounded."""
    return arith.addf(accumulator, arith.mulf(lhs, rhs))


def magnitude_bits(value: Any) -> Any:
    """Return the bits of |value| as i32: they order magnitudes, with infinities and NaNs above all numbers."""
    bits = arith.bitcast(ir.IntegerType.get_signless(32), to_f32(value))
    return arith.andi(bits, i32(0x7FFFFFFF))


def shared_scale(amax_bits: Any, fmt: ElementFormat, rounding: str, scale_type: Any) -> Any:
    """Return the scale of a block whose largest magnitude has these f32 bits.

    A block with an infinity or a NaN gets the NaN code.
    """
    scale_format = SCALE_FORMATS[str(scale_type)]
    if scale_format.is_power_of_two:
        return _power_of_two_scale(amax_bits, fmt, rounding, scale_type)
    return _rounded_scale(amax_bits, fmt, scale_format, scale_type)


def _is_special(amax_bits: Any) -> Any:
    """Tell whether a block holds an infinity or a NaN."""
    return arith.cmpi(arith.CmpIPredicate.uge, amax_bits, i32(_F32_INFINITY))


def _rounded_scale(amax_bits: Any, fmt: ElementFormat, scale_format: ScaleFormat, scale_type: Any) -> Any:
    """Return amax / max_normal rounded to nearest even in the scale format, at least its smallest normal value.

    The quotient is rounded to f32 first. That cannot change the result: a tie of the scale format times max_normal has
    few significant bits, so it is an f32, and another f32 is too far from it for the quotient to round to the tie.
    """
    amax = arith.bitcast(ir.F32Type.get(), amax_bits)
    quotient = arith.divf(amax, f32(fmt.max_normal))
    element = scale_format.element
    bounded = arith.maximumf(arith.minimumf(quotient, f32(element.max_normal)), f32(element.min_normal))
    return arith.truncf(scale_type, arith.select(_is_special(amax_bits), f32(float("nan")), bounded))


def _power_of_two_scale(amax_bits: Any, fmt: ElementFormat, rounding: str, scale_type: Any) -> Any:
    """Return the f8E8M0FNU scale; the exponent comes from the bits, never from a logarithm."""
    threshold = rounding_threshold(fmt, rounding)
    rounds_up = threshold < 1 << _F32_FRACTION_BITS
    normal, exponent = amax_bits, arith.shrui(amax_bits, i32(_F32_FRACTION_BITS))
    if fmt.emax == 0 and rounds_up:
        # Only here can a subnormal maximum reach a scale above the smallest: move its leading bit into place.
        leading_zeros = math.ctlz(amax_bits)
        shift = arith.maxsi(arith.subi(leading_zeros, i32(31 - _F32_FRACTION_BITS)), i32(0))
        normal = arith.shli(amax_bits, shift)
        exponent = arith.subi(arith.shrui(normal, i32(_F32_FRACTION_BITS)), shift)
    code = arith.subi(exponent, i32(fmt.emax + _F32_BIAS - E8M0.bias))
    if rounds_up:
        fraction = arith.andi(normal, i32(_F32_FRACTION))
        above = arith.cmpi(arith.CmpIPredicate.ugt, fraction, i32(threshold))
        code = arith.addi(code, arith.extui(ir.IntegerType.get_signless(32), above))
    code = arith.minsi(arith.maxsi(code, i32(0)), i32(E8M0.max_code))
    special = _is_special(amax_bits)
    return scale_from_code(arith.select(special, i32(E8M0.nan_code), code), scale_type)


def scale_code(scale: Any) -> Any:
    """Return the code of a scale as i32."""
    bits = arith.bitcast(ir.IntegerType.get_signless(8), scale)
    return arith.extui(ir.IntegerType.get_signless(32), bits)


def scale_from_code(code: Any, scale_type: Any) -> Any:
    """Return the scale of an i32 code in 0..255."""
    return arith.bitcast(scale_type, arith.trunci(ir.IntegerType.get_signless(8), code))


def quantized_element(value: Any, scale: Any, fmt: ElementFormat, element_type: Any) -> Any:
    """Return value / scale rounded to nearest even in the element format and saturated.

    In a block with the NaN scale the value itself is rounded. NaN becomes the format's NaN, or 0 where it has none.
    `element_type` i8 asks for the code of an element of less than a byte.
    """
    scale_format = SCALE_FORMATS[str(scale.type)]
    divide = _divide_by_power_of_two if scale_format.is_power_of_two else _divide
    scaled = divide(to_f32(value), scale)
    if fmt.is_integer:
        return _rounded_integer(scaled, fmt, element_type)
    if fmt.nan_magnitude is None:
        scaled = _zero_for_nan(scaled)
    saturated = _clamped(scaled, fmt.max_normal)
    element = arith.truncf(ir.Type.parse(fmt.mlir), saturated)
    return element if element.type == element_type else element_code(element, fmt)


def _rounded_integer(scaled: Any, fmt: ElementFormat, element_type: Any) -> Any:
    steps = _zero_for_nan(arith.mulf(scaled, f32(1 / fmt.min_subnormal)))
    return arith.fptosi(element_type, _clamped(math.roundeven(steps), float(fmt.max_magnitude)))


def _zero_for_nan(value: Any) -> Any:
    return arith.select(arith.cmpf(arith.CmpFPredicate.UNO, value, value), f32(0.0), value)


def _clamped(value: Any, limit: float) -> Any:
    """Return a value brought into -limit..limit; NaN stays."""
    return arith.maximumf(arith.minimumf(value, f32(limit)), f32(-limit))


def _divide(value: Any, scale: Any) -> Any:
    """Return value / scale in f32. Rounding it again in an element format gives what rounding once would.

    As in `_rounded_scale`: a tie of the element format times the scale is an f32.
    """
    wide = to_f32(scale)
    special = arith.cmpf(arith.CmpFPredicate.UNO, wide, wide)
    return arith.divf(value, arith.select(special, f32(1.0), wide))


def _divide_by_power_of_two(value: Any, scale: Any) -> Any:
    """Return value * 2^(bias - code): exact wherever an element format can tell the difference.

    One multiplier would have to be subnormal for the largest scale and the value may be subnormal under the smallest,
    so the power is split into two factors, both normal. A value the first product makes subnormal is far below the
    smallest element and rounds to zero either way.
    """
    code = scale_code(scale)
    special = arith.cmpi(arith.CmpIPredicate.eq, code, i32(E8M0.nan_code))
    exponent = arith.select(special, i32(0), arith.subi(i32(E8M0.bias), code))
    half = arith.shrsi(exponent, i32(1))
    for part in (half, arith.subi(exponent, half)):
        value = arith.mulf(value, _power_of_two(part))
    return value


def _power_of_two(exponent: Any) -> Any:
    """Return 2^exponent in f32 for an i32 exponent in -126..127."""
    bits = arith.shli(arith.addi(exponent, i32(_F32_BIAS)), i32(_F32_FRACTION_BITS))
    return arith.bitcast(ir.F32Type.get(), bits)


def times_scales(value: Any, scales: Sequence[Any]) -> Any:
    """Return an f32 value times scales, with the exponents of power-of-two scales added as integers first.

    Exact wherever value and result are normal: the powers of two are multiplied in one after the other, each of them
    normal, all of them in one direction. A NaN scale makes the result NaN.
    """
    exponents: list[Any] = []
    is_nan: list[Any] = []
    for scale in scales:
        if not SCALE_FORMATS[str(scale.type)].is_power_of_two:
            value = arith.mulf(value, to_f32(scale))
            continue
        code = scale_code(scale)
        exponents.append(arith.subi(code, i32(E8M0.bias)))
        is_nan.append(arith.cmpi(arith.CmpIPredicate.eq, code, i32(E8M0.nan_code)))
    if not exponents:
        return value
    # A factor reaches 2^-126..2^127 and each exponent -127..127: a factor a scale leaves -2..0 for the last one.
    rest = functools.reduce(arith.addi, exponents)
    for _ in exponents:
        step = arith.minsi(arith.maxsi(rest, i32(1 - _F32_BIAS)), i32(_F32_BIAS))
        value = arith.mulf(value, _power_of_two(step))
        rest = arith.subi(rest, step)
    value = arith.mulf(value, _power_of_two(rest))
    return arith.select(functools.reduce(arith.ori, is_nan), f32(float("nan")), value)
