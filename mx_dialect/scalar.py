"""What the value-level operations mean for one element, as scalar IR.

Each operation names its body from here; a lowering puts it in a linalg.generic. The current insertion point and
location are the caller's. Formulas: OCP Microscaling v1.0, and `formats.rounding_threshold` for the shared exponent.
"""

from collections.abc import Sequence
from typing import Any

from mx_dialect._mlir import arith, ir, math
from mx_dialect.formats import E8M0, ELEMENT_FORMATS, ElementFormat, rounding_threshold

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


def element_value(mantissa: Any, scale: Any, factors: Sequence[Any] = ()) -> Any:
    """Return what an element is worth, in f32: mantissa * scale, exact unless it leaves f32's range.

    `factors`, f32, multiply it one by one, each product rounded.
    """
    if isinstance(mantissa.type, ir.IntegerType):
        fmt = ELEMENT_FORMATS[str(mantissa.type)]
        integer = arith.sitofp(ir.F32Type.get(), mantissa)
        element = arith.mulf(integer, f32(fmt.min_subnormal))
    else:
        element = to_f32(mantissa)
    value = arith.mulf(element, to_f32(scale))
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

    The exponent comes from the bits, never from a logarithm. A block with an infinity or a NaN gets the NaN code.
    """
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
    special = arith.cmpi(arith.CmpIPredicate.uge, amax_bits, i32(_F32_INFINITY))
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
    """
    scaled = _divide_by_scale(to_f32(value), scale)
    if fmt.is_integer:
        scaled = math.roundeven(arith.mulf(scaled, f32(1 / fmt.min_subnormal)))
        limit = float(fmt.max_magnitude)
    else:
        limit = fmt.max_normal
    if fmt.nan_magnitude is None:
        is_nan = arith.cmpf(arith.CmpFPredicate.UNO, scaled, scaled)
        scaled = arith.select(is_nan, f32(0.0), scaled)
    saturated = arith.maximumf(arith.minimumf(scaled, f32(limit)), f32(-limit))
    if fmt.is_integer:
        return arith.fptosi(element_type, saturated)
    return arith.truncf(element_type, saturated)


def _divide_by_scale(value: Any, scale: Any) -> Any:
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
