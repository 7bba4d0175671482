"""Whether the matrix unit computes products of values as f32 arithmetic would: what their exponents are.

It takes subnormals for zeros, so there must be none, and no sum may overflow.
"""

from typing import Any, Protocol

import numpy as np

from mx_dialect._mlir import arith, ir, vector
from mx_dialect.schedule.amx_words import EXACT, MANTISSA_BITS
from mx_dialect.schedule.emitter import load_vector, release, scratch, store_vector, vector_type
from mx_dialect.schedule.registers import BYTES, LANES, bitcast, i8, i32, splat

_MAGNITUDE = (1 << 31) - 1
_BIAS = 127
_LEAST_EXPONENT = -126
# A product of magnitudes below 2^n, added up at most 2^20 times.
_MOST_SUM = 2 * _BIAS + 127 - 2 - 20
_MOST_FINITE = 254
_NOT_FINITE = 1 << 12
# A bf16 has its exponent above seven bits.
WORD_MANTISSA_BITS = 7
_WORDS = 32
# What a scale that is not finite adds to a word; of a finite one the exponent is 127 at most.
_NAN_SHIFT = 128 << WORD_MANTISSA_BITS


class Range(Protocol):
    """Finds the least and the greatest biased exponent of values, zeros aside, in vectors that loops carry along."""

    @property
    def last_bit(self) -> int:
        """Return how far below its exponent a value's last bit is at most."""
        ...

    def reset(self) -> None: ...

    def start(self) -> list[Any]:
        """Return what was found so far, to be carried along."""
        ...

    def keep(self, carried: list[Any]) -> None: ...

    def least(self) -> Any:
        """Return the least exponent, i32, or one less; more than any of a value if all are zeros."""
        ...

    def most(self) -> Any:
        """Return the greatest exponent, i32; more than any of a finite value if some are not finite."""
        ...

    def release(self) -> None: ...


class _Kept:
    """Vectors that are kept in memory between loops, each with what it starts from."""

    def __init__(self, *starts: Any):
        self._starts = starts
        self._buffers = [scratch(list(s.type.shape), s.type.element_type) for s in starts]

    def reset(self) -> None:
        self.keep(list(self._starts))

    def start(self) -> list[Any]:
        return [load_vector(b, [0], b.type.shape[0]) for b in self._buffers]

    def keep(self, carried: list[Any]) -> None:
        for buffer, value in zip(self._buffers, carried, strict=True):
            store_vector(value, buffer, [0])

    def release(self) -> None:
        for buffer in self._buffers:
            release(buffer)

    def reduced(self, number: int, kind: Any) -> Any:
        value = load_vector(self._buffers[number], [0], self._buffers[number].type.shape[0])
        return vector.reduction(value.type.element_type, kind, value)


class ValueRange(_Kept):
    """The exponents of f32 values, which are in so many parts each."""

    def __init__(self, parts: int):
        super().__init__(splat(-1, LANES, i32()), splat(0, LANES, i32()))
        self.last_bit = WORD_MANTISSA_BITS if parts == EXACT else MANTISSA_BITS

    def note(self, carried: list[Any], value: Any) -> list[Any]:
        """Take a vector of f32 into account. Zero, less one, is more than everything."""
        magnitude = arith.andi(bitcast(value, i32()), splat(_MAGNITUDE, LANES, i32()))
        less = arith.subi(magnitude, splat(1, LANES, i32()))
        return [arith.minui(carried[0], less), arith.maxui(carried[1], magnitude)]

    def least(self) -> Any:
        return arith.shrui(self.reduced(0, vector.CombiningKind.MINUI), _word(MANTISSA_BITS))

    def most(self) -> Any:
        return arith.shrui(self.reduced(1, vector.CombiningKind.MAXUI), _word(MANTISSA_BITS))


class ScaleRange(_Kept):
    """The exponents of values from a table times powers of two, by those of the powers and by the table's.

    `first_not_finite` is the least magnitude of a code whose value is not finite, None if all are.
    """

    last_bit = WORD_MANTISSA_BITS

    def __init__(self, table: Any, first_not_finite: int | None):
        i16 = ir.IntegerType.get_signless(16)
        super().__init__(splat((1 << 15) - 1, _WORDS, i16), splat(-(1 << 15), _WORDS, i16), splat(0, BYTES, i8()))
        values = np.abs(np.asarray(table, np.float32))
        values = values[np.isfinite(values) & (values > 0)]
        exponents = values.view(np.uint32) >> MANTISSA_BITS
        self._least_of_table, self._most_of_table = int(exponents.min()), int(exponents.max())
        self._first_not_finite = first_not_finite

    def note_shift(self, carried: list[Any], shift: Any, lanes: Any) -> list[Any]:
        """Take into account what is added to the exponents of words, in the lanes of a mask; NaN in all lanes."""
        least, most, codes = carried
        nan = arith.cmpi(arith.CmpIPredicate.sge, shift, splat(_NAN_SHIFT, _WORDS, ir.IntegerType.get_signless(16)))
        lanes = arith.ori(lanes, nan)
        least = arith.select(lanes, arith.minsi(least, shift), least)
        most = arith.select(lanes, arith.maxsi(most, shift), most)
        return [least, most, codes]

    def note_codes(self, carried: list[Any], codes: Any) -> list[Any]:
        """Take a vector of 64 codes into account."""
        if self._first_not_finite is None:
            return carried
        magnitude = arith.andi(codes, splat((1 << 7) - 1, BYTES, i8()))
        return [*carried[:2], arith.maxui(carried[2], magnitude)]

    def least(self) -> Any:
        return self._exponent(self.reduced(0, vector.CombiningKind.MINSI), self._least_of_table)

    def most(self) -> Any:
        shift = self.reduced(1, vector.CombiningKind.MAXSI)
        nan = arith.cmpi(arith.CmpIPredicate.sge, shift, arith.constant(ir.IntegerType.get_signless(16), _NAN_SHIFT))
        found = arith.select(nan, _word(_NOT_FINITE), self._exponent(shift, self._most_of_table))
        if self._first_not_finite is None:
            return found
        code = self.reduced(2, vector.CombiningKind.MAXUI)
        bound = arith.constant(i8(), self._first_not_finite)
        return arith.select(arith.cmpi(arith.CmpIPredicate.uge, code, bound), _word(_NOT_FINITE), found)

    @staticmethod
    def _exponent(shift: Any, of_table: int) -> Any:
        wide = arith.shrsi(arith.extsi(i32(), shift), _word(WORD_MANTISSA_BITS))
        return arith.addi(wide, _word(of_table))


def first_not_finite(table: Any) -> int | None:
    """Return the least magnitude, without the sign in bit 7, of the codes whose values are not finite.

    Raises:
        ValueError: a greater one has a finite value.
    """
    finite = np.isfinite(np.asarray(table))
    magnitudes = np.flatnonzero(~(finite[:128] & finite[128:]))
    if not len(magnitudes):
        return None
    if finite[magnitudes[0] : 128].any():
        raise ValueError("codes that are not finite are not the greatest")
    return int(magnitudes[0])


def are_moderate(left: Range, right: Range) -> Any:
    """Return whether the matrix unit computes products of both as f32 arithmetic would.

    The last bit of every product must be no subnormal, so that all sums are multiples of a normal number, or zero; so
    must be the last bit of every part. And no sum may overflow.
    """
    least, most = (left.least(), right.least()), (left.most(), right.most())
    # -126 <= (a - 127 - last bit of a) + (b - 127 - last bit of b)
    products = _LEAST_EXPONENT + 2 * _BIAS + left.last_bit + right.last_bit
    found = arith.andi(
        _compare("sge", arith.addi(*least), products),
        _compare("sle", arith.addi(*most), _MOST_SUM),
    )
    for range_, low, high in zip((left, right), least, most, strict=True):
        found = arith.andi(found, _compare("sge", low, range_.last_bit + 2))
        found = arith.andi(found, _compare("sle", high, _MOST_FINITE))
    return found


def _compare(predicate: str, value: Any, bound: int) -> Any:
    return arith.cmpi(getattr(arith.CmpIPredicate, predicate), value, _word(bound))


def _word(value: int) -> Any:
    return arith.constant(i32(), value)


def word_type() -> Any:
    """Return the type of a vector of 32 bf16 as their bits."""
    return vector_type(_WORDS, ir.IntegerType.get_signless(16))
