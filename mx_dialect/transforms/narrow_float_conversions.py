"""Conversions between the MX number formats and ordinary floats, as integer and float operations.

MLIR's own lowerings leave most of these conversions behind or compute wrong values, so passes emit them from
here. `extend` and `truncate` mean what `arith.extf` and `arith.truncf` mean on the six MX formats; `extend_scaled`
and `truncate_scaled` do the same for `arith.scaling_extf` and `arith.scaling_truncf`. All four insert at the
current insertion point with the current location, work on scalars and on fixed-size vectors of any rank, and fold
nothing.

Every operation they emit vectorizes. `extend` and `truncate` compute with no f32 subnormals, so flush-to-zero modes do
not change their numbers, and data full of subnormals runs at full speed. The scaled forms do only where an argument,
the product or the quotient is one. Elements pass through f16, whose subnormals x86 (F16C) and AArch64 convert in
hardware, whatever those modes are.

Sources: the OCP Microscaling specification v1.0 for the formats; `formats.py` for every constant.
"""

import math
import struct
from dataclasses import dataclass
from typing import Any

from mx_dialect._mlir import arith, ir
from mx_dialect.diagnostics import MxError
from mx_dialect.formats import E8M0, ELEMENT_FORMATS, ElementFormat

_ELEMENTS = {name: fmt for name, fmt in ELEMENT_FORMATS.items() if not fmt.is_integer}

NARROW_FLOATS = (*_ELEMENTS, E8M0.mlir)
"""The types converted here, as MLIR spells them."""

WIDE_FLOATS = ("f16", "bf16", "f32", "f64")
"""The types they are converted from and to."""


@dataclass(frozen=True)
class _Wide:
    """An IEEE 754 format that a conversion computes in. `pack` is its code for the struct module."""

    name: str
    bits: int
    mantissa_bits: int
    bias: int
    pack: str

    def code(self, value: float) -> int:
        """Return the bits of a value that the format represents exactly."""
        return int.from_bytes(struct.pack(self.pack, value), "little")

    @property
    def magnitude_mask(self) -> int:
        return (1 << (self.bits - 1)) - 1

    @property
    def infinity(self) -> int:
        """Return the bits of infinity, which are those of the exponent field."""
        return self.magnitude_mask & -(1 << self.mantissa_bits)

    @property
    def quiet_nan(self) -> int:
        return self.infinity | 1 << (self.mantissa_bits - 1)


_F16 = _Wide("f16", 16, 10, 15, "<e")
_F32 = _Wide("f32", 32, 23, 127, "<f")
_F64 = _Wide("f64", 64, 52, 1023, "<d")


def unsupported(type_: ir.Type) -> str | None:
    """Return why values of this type cannot be converted here and what to do instead, or None."""
    if isinstance(type_, ir.RankedTensorType | ir.UnrankedTensorType):
        return f"'{type_}' is a tensor; run --convert-elementwise-to-linalg first"
    if isinstance(type_, ir.VectorType) and type_.scalable:
        return f"'{type_}' is a scalable vector; use vectors of fixed size"
    if _name(type_) not in (*NARROW_FLOATS, *WIDE_FLOATS):
        return f"'{type_}' is not supported; convert through f32"
    return None


def extend(value: ir.Value, to: ir.Type) -> ir.Value:
    """Convert MX floats to the element type `to`: one of WIDE_FLOATS, or another MX float.

    Exact wherever `to` can hold the value, which only f8E8M0FNU to f16 and some pairs of MX floats cannot promise:
    there it is rounded once, as IEEE 754 does by default to f16 and as `truncate` does to an MX float. NaN codes give
    a quiet NaN, the infinities of f8E5M2 infinities; the sign of zero is kept.

    Raises:
        MxError: `value` is no MX float, or one of the types is unsupported.
    """
    _require_supported(value.type, to)
    name = _name(value.type)
    if name not in NARROW_FLOATS:
        raise MxError(f"cannot extend '{value.type}'; expected one of {', '.join(NARROW_FLOATS)}")
    if name != E8M0.mlir:
        return _from_f32(_extend_element(value, _ELEMENTS[name]), to)
    # Through f32 the smallest scale would be a subnormal operand on its way to f64.
    if _name(to) == _F64.name:
        return _extend_scale(value, _F64)
    return _from_f32(_extend_scale(value, _F32), to)


def truncate(value: ir.Value, to: ir.Type) -> ir.Value:
    """Convert floats (WIDE_FLOATS or MX floats) to the MX float `to`, rounding once.

    To an element format: round to nearest even, saturating: every magnitude above the largest finite value, infinity
    included, becomes that value with its sign. NaN becomes the format's positive NaN code, or +0 where the format
    has none. Zeros, and values that round to zero, keep their sign.

    To f8E8M0FNU, which has neither sign nor zero nor infinity: the nearest power of two, a tie going up (1.5 to 2,
    3 to 4). That is round to nearest even of a significand of one bit: the bit is always 1, so the lower neighbour
    is odd. Zero of either sign and all positive values below 2^-127 become the smallest code, 0. NaN, infinities,
    negative values, and values from 1.5 * 2^127 on, whose nearest power is 2^128, become code 255, NaN. APFloat agrees
    on all that is not negative; ml_dtypes on all but zero, which it makes NaN, and the values between 2^-127 and
    2^-126, which it rounds up.

    Raises:
        MxError: `to` is no MX float, or the type of `value` is unsupported.
    """
    _require_supported(value.type)
    if _name(to) not in NARROW_FLOATS:
        raise MxError(f"cannot truncate to '{to}'; expected one of {', '.join(NARROW_FLOATS)}")
    value = _widen(value)
    wide = _F64 if _name(value.type) == _F64.name else _F32
    if _name(to) == E8M0.mlir:
        code = _scale_code_of(value, wide)
    else:
        code = _element_code_of(value, wide, _ELEMENTS[_name(to)])
    return arith.bitcast(_like(value, to), arith.trunci(_like(value, _integer(to.width)), code))


def extend_scaled(value: ir.Value, scale: ir.Value, to: ir.Type) -> ir.Value:
    """Return value * scale in the element type `to`, which is wider than `value`, rounded once.

    `scale` has the shape of `value` and is f8E8M0FNU, or one of WIDE_FLOATS and then first truncated to f8E8M0FNU,
    as `arith.scaling_extf` prescribes. A NaN value or scale gives NaN. The operation's description casts the scale to
    `to` first; where `to` cannot hold it (f16 and 2^127), the product here is right all the same.

    Raises:
        MxError: a type is unsupported.
    """
    _require_supported(value.type, to)
    code = _scale_code(scale)
    wide = _F64 if _name(to) == _F64.name else _F32
    if _name(value.type) in NARROW_FLOATS:
        value = extend(value, _float(wide))
    elif _name(value.type) != wide.name:
        value = arith.extf(_like(value, _float(wide)), value)
    product = _times_power_of_two(value, _with(arith.subi, code, E8M0.bias), wide)
    product = _nan_where_scale_is(code, product)
    return product if wide is _F64 else _from_f32(product, to)


def truncate_scaled(value: ir.Value, scale: ir.Value, to: ir.Type) -> ir.Value:
    """Return value / scale truncated to the MX float `to`, rounded once as `truncate` rounds.

    `scale` is as for `extend_scaled`. The quotient is exact scaling by a power of two: where it overflows or underflows
    the format it is computed in, `to` saturates or rounds to zero anyway. A NaN value or scale counts as NaN.

    Raises:
        MxError: a type is unsupported.
    """
    _require_supported(value.type)
    code = _scale_code(scale)
    value = _widen(value)
    wide = _F64 if _name(value.type) == _F64.name else _F32
    quotient = _times_power_of_two(value, arith.subi(_constant_like(code, E8M0.bias), code), wide)
    return truncate(_nan_where_scale_is(code, quotient), to)


def _extend_element(value: ir.Value, fmt: ElementFormat) -> ir.Value:
    """Return the f32 values of element codes.

    The sign of a code goes to the sign bit of an f16, its magnitude to the low end of the exponent field and the high
    end of the fraction. Read as f16 that is the value times 2^(bias - 15), subnormals included, and in f32 a
    multiplication by a power of two of normal numbers corrects it.
    """
    code = arith.extsi(_like(value, _integer(16)), arith.bitcast(_like(value, _integer(fmt.bits)), value))
    shift = _F16.mantissa_bits - fmt.mantissa_bits
    magnitude_mask = ((1 << (fmt.bits - 1)) - 1) << shift
    shifted = _with(arith.shli, code, shift)
    # The mask drops the copies of the sign that extsi put between the sign bit and the magnitude.
    half = _with(arith.andi, shifted, 1 << 15 | magnitude_mask)
    if fmt.nan_magnitude is not None and not fmt.ieee_specials:
        magnitude = _with(arith.andi, shifted, magnitude_mask)
        is_nan = _compare("eq", magnitude, fmt.nan_magnitude << shift)
        half = arith.select(is_nan, _constant_like(half, _F16.quiet_nan), half)
    scaled = arith.extf(_like(value, _float(_F32)), _as_float(half, _F16))
    if fmt.bias == _F16.bias:
        return scaled
    return arith.mulf(scaled, _float_like(scaled, 2.0 ** (_F16.bias - fmt.bias)))


def _extend_scale(value: ir.Value, wide: _Wide) -> ir.Value:
    """Return 2^(code - 127) in f32 or f64 for f8E8M0FNU codes, NaN for 255."""
    code = arith.extui(_like(value, _integer(wide.bits)), arith.bitcast(_like(value, _integer(8)), value))
    if wide is _F32:
        bits = _with(arith.shli, code, wide.mantissa_bits)
        # Code 0 is 2^-127, an f32 subnormal: its exponent field alone would be the bits of zero.
        bits = _with(arith.maxui, bits, wide.code(2.0**E8M0.min_exponent))
    else:
        bits = _with(arith.shli, _with(arith.addi, code, wide.bias - E8M0.bias), wide.mantissa_bits)
    is_nan = _compare("eq", code, E8M0.nan_code)
    return _as_float(arith.select(is_nan, _constant_like(bits, wide.quiet_nan), bits), wide)


def _element_code_of(value: ir.Value, wide: _Wide, fmt: ElementFormat) -> ir.Value:
    """Return the codes of f32 or f64 values in an element format, in the low bits of integers as wide as they.

    Adding to a magnitude a power of two whose last place is the last bit to keep rounds it to nearest even, and leaves
    the kept significand in the low bits of the sum. Added to the exponent field of the code, its carry and its leading
    bit come out right. Below the smallest normal number the power stays what it is there: that makes a subnormal.
    """
    dropped = wide.mantissa_bits - fmt.mantissa_bits
    bits = _bits(value, wide)
    magnitude = _with(arith.andi, bits, wide.magnitude_mask)
    # The rest is monotonic and exact on the largest finite value, so clamping first saturates.
    clamped = _with(arith.minui, magnitude, wide.code(fmt.max_normal))
    exponent = _with(arith.andi, _with(arith.maxui, clamped, wide.code(fmt.min_normal)), wide.infinity)
    power = _with(arith.addi, exponent, dropped << wide.mantissa_bits)
    # A quarter of the smallest subnormal rounds to zero like all below it, and is a normal number here.
    addend = _with(arith.maxui, clamped, wide.code(fmt.min_subnormal / 4))
    rounded = _bits(arith.addf(_as_float(addend, wide), _as_float(power, wide)), wide)
    field = _with(arith.shrui, _with(arith.subi, exponent, wide.code(fmt.min_normal)), dropped)
    code = arith.addi(arith.subi(rounded, power), field)
    sign = _with(arith.andi, _with(arith.shrui, bits, wide.bits - fmt.bits), 1 << (fmt.bits - 1))
    is_nan = _compare("ugt", magnitude, wide.infinity)
    return arith.select(is_nan, _constant_like(code, fmt.nan_magnitude or 0), arith.ori(code, sign))


def _scale_code_of(value: ir.Value, wide: _Wide) -> ir.Value:
    """Return the f8E8M0FNU codes of f32 or f64 values, as integers as wide as they; `truncate` states the rule."""
    bits = _bits(value, wide)
    bits = arith.select(_compare("eq", bits, wide.code(-0.0)), _constant_like(bits, 0), bits)
    # A fraction of one half or more carries into the exponent.
    code = _with(arith.addi, bits, 1 << (wide.mantissa_bits - 1))
    code = _with(arith.shrui, code, wide.mantissa_bits)
    if wide is not _F32:
        code = _with(arith.subi, code, wide.bias - E8M0.bias)
    # In f32 this decides among subnormals, which have no exponent to read.
    is_least = _compare("ult", bits, wide.code(1.5 * 2.0**E8M0.min_exponent))
    code = arith.select(is_least, _constant_like(code, 0), code)
    # Unsigned, the bits of infinities, NaNs and all negative values are above this limit too.
    is_nan = _compare("uge", bits, wide.code(1.5 * 2.0**E8M0.max_exponent))
    return arith.select(is_nan, _constant_like(code, E8M0.nan_code), code)


def _scale_code(scale: ir.Value) -> ir.Value:
    """Return the f8E8M0FNU codes of scales as i32, truncating wider floats.

    Raises:
        MxError: the type cannot be a scale.
    """
    _require_supported(scale.type)
    name = _name(scale.type)
    if name in _ELEMENTS:
        raise MxError(f"'{name}' cannot be a scale; expected {E8M0.mlir} or one of {', '.join(WIDE_FLOATS)}")
    if name != E8M0.mlir:
        scale = truncate(scale, ir.Type.parse(E8M0.mlir))
    return arith.extui(_like(scale, _integer(32)), arith.bitcast(_like(scale, _integer(8)), scale))


def _times_power_of_two(value: ir.Value, exponent: ir.Value, wide: _Wide) -> ir.Value:
    """Return value * 2^exponent for f32 or f64 values and i32 exponents in -128..128.

    Multiplies twice by about half the power: both factors are normal numbers, as 2^-127 is not in f32, and on the same
    side of 1, so that nothing overflows or underflows on the way that does not in the end.
    """
    half = _with(arith.shrsi, exponent, 1)
    for part in (half, arith.subi(exponent, half)):
        biased = _with(arith.addi, part, wide.bias)
        if wide is _F64:
            biased = arith.extui(_like(value, _integer(wide.bits)), biased)
        value = arith.mulf(value, _as_float(_with(arith.shli, biased, wide.mantissa_bits), wide))
    return value


def _widen(value: ir.Value) -> ir.Value:
    """Return f64 values as they are and all others in f32, which is exact."""
    name = _name(value.type)
    if name in (_F32.name, _F64.name):
        return value
    f32 = _float(_F32)
    return extend(value, f32) if name in NARROW_FLOATS else arith.extf(_like(value, f32), value)


def _from_f32(value: ir.Value, to: ir.Type) -> ir.Value:
    """Convert f32 values to any supported type, rounding once where needed."""
    name = _name(to)
    if name == _F32.name:
        return value
    if name == _F64.name:
        return arith.extf(_like(value, to), value)
    if name == _F16.name:
        return arith.truncf(_like(value, to), value)
    if name in NARROW_FLOATS:
        return truncate(value, to)
    return _to_bf16(value, to)


def _to_bf16(value: ir.Value, bf16: ir.Type) -> ir.Value:
    """Round f32 values, of which none is a NaN with a payload, to nearest even.

    `arith.truncf` may become x86's vcvtneps2bf16, which takes subnormals (the smallest scale is one) for zero.
    """
    bits = _bits(value, _F32)
    last_kept = _with(arith.andi, _with(arith.shrui, bits, 16), 1)
    rounded = arith.addi(_with(arith.addi, bits, 0x7FFF), last_kept)
    upper = arith.trunci(_like(value, _integer(16)), _with(arith.shrui, rounded, 16))
    return arith.bitcast(_like(value, bf16), upper)


def _require_supported(*types: ir.Type) -> None:
    for type_ in types:
        reason = unsupported(type_)
        if reason is not None:
            raise MxError(reason)


def _name(type_: ir.Type) -> str:
    """Return the spelling of a scalar type or of a vector's element type."""
    return str(type_.element_type if isinstance(type_, ir.VectorType) else type_)


def _integer(bits: int) -> ir.Type:
    return ir.IntegerType.get_signless(bits)


def _float(wide: _Wide) -> ir.Type:
    return ir.Type.parse(wide.name)


def _like(value: ir.Value, element: ir.Type) -> ir.Type:
    """Return the type of `value` with another element type."""
    return ir.VectorType.get(value.type.shape, element) if isinstance(value.type, ir.VectorType) else element


def _bits(value: ir.Value, wide: _Wide) -> ir.Value:
    return arith.bitcast(_like(value, _integer(wide.bits)), value)


def _as_float(bits: ir.Value, wide: _Wide) -> ir.Value:
    return arith.bitcast(_like(bits, _float(wide)), bits)


def _constant_like(value: ir.Value, bits: int) -> ir.Value:
    """Return a constant with these bits in the integer type of `value`."""
    element = value.type.element_type if isinstance(value.type, ir.VectorType) else value.type
    signed = bits - (bits >> (element.width - 1) << element.width)
    return _splat(value.type, ir.IntegerAttr.get(element, signed))


def _float_like(value: ir.Value, constant: float) -> ir.Value:
    element = value.type.element_type if isinstance(value.type, ir.VectorType) else value.type
    return _splat(value.type, ir.FloatAttr.get(element, constant))


def _splat(type_: ir.Type, scalar: ir.Attribute) -> ir.Value:
    vector = isinstance(type_, ir.VectorType)
    return arith.ConstantOp(type_, ir.DenseElementsAttr.get_splat(type_, scalar) if vector else scalar).result


def _with(operation: Any, value: ir.Value, constant: int) -> ir.Value:
    """Apply a binary integer operation of the arith dialect to a value and a constant."""
    return operation(value, _constant_like(value, constant))


def _compare(predicate: str, value: ir.Value, constant: int) -> ir.Value:
    return arith.cmpi(arith.CmpIPredicate[predicate], value, _constant_like(value, constant))


def _nan_where_scale_is(code: ir.Value, value: ir.Value) -> ir.Value:
    """Return `value`, but NaN where the f8E8M0FNU code of the scale is NaN."""
    is_nan = _compare("eq", code, E8M0.nan_code)
    return arith.select(is_nan, _float_like(value, math.nan), value)
