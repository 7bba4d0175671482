"""Asking at run time whether numbers are neither huge nor tiny, so that products can wait for their scales."""

from typing import Any

from mx_dialect._mlir import arith, ir, vector
from mx_dialect.schedule.emitter import load_vector, loop, vector_type

# As f32 bits: 2^-80 and 2^100. A sum of 64 products with elements of any MX format stays in f32's range between them.
_SMALLEST = 47 << 23
_LARGEST = 227 << 23
_INFINITY = 0xFF << 23


def all_moderate(values: Any, count: int, lanes: int) -> Any:
    """Return an i1: each of `count` entries of row 0 of an f32 buffer is 0, not finite, or between 2^-80 and 2^100.

    Products with infinities and NaNs are what they are whenever the scale comes.
    """
    i1 = ir.IntegerType.get_signless(1)
    i32 = ir.IntegerType.get_signless(32)
    words = vector_type(lanes, i32)

    def splat(value: int) -> Any:
        return arith.constant(words, ir.DenseElementsAttr.get_splat(words, ir.IntegerAttr.get(i32, value)))

    def step(k: Any, good: Any) -> list[Any]:
        bits = arith.bitcast(words, load_vector(values, [0, k], lanes))
        magnitude = arith.andi(bits, splat(0x7FFFFFFF))
        distance = arith.subi(magnitude, splat(_SMALLEST))
        within = arith.cmpi(arith.CmpIPredicate.ule, distance, splat(_LARGEST - _SMALLEST))
        zero = arith.cmpi(arith.CmpIPredicate.eq, magnitude, splat(0))
        special = arith.cmpi(arith.CmpIPredicate.uge, magnitude, splat(_INFINITY))
        return [arith.andi(good, arith.ori(within, arith.ori(zero, special)))]

    mask = ir.VectorType.get([lanes], i1)
    yes = arith.constant(mask, ir.DenseElementsAttr.get_splat(mask, ir.IntegerAttr.get(i1, 1)))
    (good,) = loop(0, count, lanes, step, [yes])
    return vector.reduction(i1, vector.CombiningKind.AND, good)
