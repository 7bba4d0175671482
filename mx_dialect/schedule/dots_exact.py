"""The arithmetic of exact block dots: from sums of products of bytes to scaled f32 numbers, rounding once.

One factor is unsigned, u = q + 128, the other signed, as `byte_dots` wants them. What that adds to a dot product, 128
times the sum of the signed block, is taken off where the sum starts. The start also holds the bits of 1.5 * 2^23: read
as f32 the finished sum is 1.5 * 2^23 + dot, so that one fused multiply-add makes dot * scale of it, exactly, without a
conversion, and another adds it, times the other scale, to the result.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from mx_dialect._mlir import arith, ir, vector
from mx_dialect.schedule.emitter import f32, vector_type
from mx_dialect.schedule.registers import LANES, bitcast, i32, splat

CODES = 4
"""Codes of a word, an i32: neighbours along k."""
MAGIC_BITS = 0x4B400000
LARGEST_DOT = 1 << 22
"""An integer of up to this magnitude may be added to MAGIC_BITS, and so to 1.5 * 2^23."""
_MAGIC = 1.5 * 2.0**23
_LARGEST_SCALE = 2.0**104
_CLAMPED_SCALE = 2.0**100
_SMALLEST_NORMAL = 2.0**-126

Finish: TypeAlias = Callable[[Any, Any, Any, Any, Any], Any]
"""Adds a dot product to a sum: of the sum, the dot product from its start on, the scales of the unsigned and the signed
side, and the shift of the latter."""


def shift_of(scale: Any) -> Any:
    """Return what takes 1.5 * 2^23 * scale off again."""
    return arith.mulf(scale, _like(scale, -_MAGIC))


def is_large(scale: Any) -> Any:
    """Tell whether a scale of the signed side is so large that its shift is not finite."""
    return arith.cmpf(arith.CmpFPredicate.OGT, scale, _like(scale, _LARGEST_SCALE))


def _like(scale: Any, value: float) -> Any:
    if isinstance(scale.type, ir.VectorType):
        return splat(value, LANES, f32())
    return arith.constant(f32(), value)


def add_scaled(total: Any, dot: Any, unsigned: Any, signed: Any, shift: Any) -> Any:
    """Return total + dot * unsigned * signed, rounded once."""
    product = vector.fma(bitcast(dot, f32()), signed, shift)
    return vector.fma(product, unsigned, total)


def fast_scale(dot: Any, scale: Any) -> Any:
    """Return a scale, but no subnormal one where the dot product is 0: processors multiply those slowly.

    Quantization gives blocks of zeros the smallest scale, and some matrices have many.
    """
    normal = splat(_SMALLEST_NORMAL, LANES, f32())
    larger = arith.select(arith.cmpf(arith.CmpFPredicate.OGT, normal, scale), normal, scale)
    zero = arith.cmpi(arith.CmpIPredicate.eq, dot, splat(MAGIC_BITS, LANES, i32()))
    return arith.select(zero, larger, scale)


def add_carefully(total: Any, dot: Any, unsigned: Any, signed: Any, _: Any) -> Any:
    """Return the same where the scale of the signed side may be large.

    The smaller scale comes first, so that the product with it overflows only where the whole product does. Then it is
    some smaller number, for which the whole product overflows as well.
    """
    exact = arith.sitofp(vector_type(LANES, f32()), arith.subi(dot, splat(MAGIC_BITS, LANES, i32())))
    less = arith.cmpf(arith.CmpFPredicate.OLT, unsigned, signed)
    smaller, larger = arith.select(less, unsigned, signed), arith.select(less, signed, unsigned)
    limit = splat(_CLAMPED_SCALE, LANES, f32())
    smaller = arith.select(arith.cmpf(arith.CmpFPredicate.OGT, smaller, limit), limit, smaller)
    return vector.fma(arith.mulf(exact, smaller), larger, total)
