"""Values of f32 as words of two bf16: exactly, in one word or in the sum of three.

A bf16 is the upper half of an f32. One of at most eight significant bits is that half; any other is the sum of three
such, each what the ones before leave. The matrix unit takes subnormals for zeros, and its sums must stay finite:
`Exponents` finds out whether values are such that neither matters.
"""

from typing import Any

import numpy as np

from mx_dialect._mlir import arith, ir, vector
from mx_dialect.schedule.emitter import load_vector, release, scratch, store_vector
from mx_dialect.schedule.registers import LANES, bitcast, i32, splat

EXACT, SPLIT = 1, 3
"""In how many words a value is."""

EXACT_BITS = 8
"""How many significant bits one word has."""

_HALF = 16
_MANTISSA_BITS = 23
_UPPER = -(1 << _HALF)
_MAGNITUDE = (1 << 31) - 1
_BIAS = 127
_LEAST_EXPONENT = -126
# A product of magnitudes below 2^n, added up at most 2^12 times.
_MOST_SUM = 2 * _BIAS + 127 - 2 - 12
_MOST_FINITE = 254


def words(low: Any, high: Any, parts: int) -> list[Any]:
    """Return vectors of words with the bf16 of two f32 vectors, `low` in the lower halves."""
    found: list[Any] = []
    for part in range(parts):
        bits = [bitcast(value, i32()) for value in (low, high)]
        upper = [arith.andi(b, splat(_UPPER, LANES, i32())) for b in bits]
        found.append(arith.ori(upper[1], arith.shrui(bits[0], splat(_HALF, LANES, i32()))))
        if part + 1 < parts:
            low, high = (
                arith.subf(value, bitcast(u, ir.F32Type.get())) for value, u in zip((low, high), upper, strict=True)
            )
    return found


def significant_bits(table: Any) -> int:
    """Return how many bits the finite values of a table of f32 need at most, from the first to the last that is set."""
    bits = np.ascontiguousarray(table, np.float32).view(np.uint32)[np.isfinite(table)]
    mantissas = bits & ((1 << _MANTISSA_BITS) - 1)
    longest = int(np.bitwise_or.reduce(mantissas, initial=0))
    unused = (longest & -longest).bit_length() - 1 if longest else _MANTISSA_BITS
    return 1 + _MANTISSA_BITS - unused


class Exponents:
    """The least and the greatest exponent of f32 values that are noted, zeros aside."""

    def __init__(self, parts: int):
        self._parts = parts
        self._least, self._most = scratch([LANES], i32()), scratch([LANES], i32())

    def release(self) -> None:
        release(self._least)
        release(self._most)

    def reset(self) -> None:
        store_vector(splat(-1, LANES, i32()), self._least, [0])
        store_vector(splat(0, LANES, i32()), self._most, [0])

    def start(self) -> list[Any]:
        """Return what `note` carries along."""
        return [load_vector(self._least, [0], LANES), load_vector(self._most, [0], LANES)]

    def keep(self, carried: list[Any]) -> None:
        store_vector(carried[0], self._least, [0])
        store_vector(carried[1], self._most, [0])

    def note(self, carried: list[Any], value: Any) -> list[Any]:
        """Take a vector of f32 into account. Zero, less one, is more than everything."""
        magnitude = arith.andi(bitcast(value, i32()), splat(_MAGNITUDE, LANES, i32()))
        less = arith.subi(magnitude, splat(1, LANES, i32()))
        return [arith.minui(carried[0], less), arith.maxui(carried[1], magnitude)]

    def least(self) -> Any:
        """Return the biased exponent of the least value, or one less; more than any if all are zeros."""
        bits = vector.reduction(i32(), vector.CombiningKind.MINUI, load_vector(self._least, [0], LANES))
        return arith.shrui(bits, _word(_MANTISSA_BITS))

    def most(self) -> Any:
        bits = vector.reduction(i32(), vector.CombiningKind.MAXUI, load_vector(self._most, [0], LANES))
        return arith.shrui(bits, _word(_MANTISSA_BITS))

    @property
    def last_bit(self) -> int:
        """Return how far below its exponent a value's last bit is at most."""
        return 7 if self._parts == EXACT else _MANTISSA_BITS


def are_moderate(left: Exponents, right: Exponents) -> Any:
    """Return whether the matrix unit computes products of what was noted as f32 arithmetic would.

    The last bit of every product must be no subnormal, so that all sums are multiples of a normal number, or zero; so
    must be the last bit of every part. And no sum may overflow.
    """
    least = (left.least(), right.least())
    most = (left.most(), right.most())
    # -126 <= (a - 127 - last bit of a) + (b - 127 - last bit of b)
    products = _LEAST_EXPONENT + 2 * _BIAS + left.last_bit + right.last_bit
    conditions = [
        _compare("uge", arith.addi(*least), products),
        _compare("ule", arith.addi(*most), _MOST_SUM),
    ]
    for exponents, low, high in zip((left, right), least, most, strict=True):
        conditions += [_compare("uge", low, exponents.last_bit + 2), _compare("ule", high, _MOST_FINITE)]
    found = conditions[0]
    for condition in conditions[1:]:
        found = arith.andi(found, condition)
    return found


def _compare(predicate: str, value: Any, bound: int) -> Any:
    return arith.cmpi(getattr(arith.CmpIPredicate, predicate), value, _word(bound))


def _word(value: int) -> Any:
    return arith.constant(i32(), value)


