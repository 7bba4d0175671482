"""Sides of a contraction whose codes stand for small integers, so that dot products of blocks are exact.

A side qualifies by its values, whatever its format is called: all 256 are integers of 8 bits times one power of two,
and the scale of a block, again a table of 256 values, is a power of two.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mx_dialect._mlir import arith, ir
from mx_dialect.schedule.contraction import Contraction, Input, Side, divisor_of, loop_of
from mx_dialect.schedule.emitter import Size, load, load_vector, prefetch
from mx_dialect.schedule.nibbles import bytes_at, load_nibble, load_nibbles
from mx_dialect.schedule.registers import BYTES, bitcast, byte_constant, i8, intrinsic, splat
from mx_dialect.schedule.side import ScaledCode, places_of, scaled_code
from mx_dialect.schedule.tabulate import tabulate

_MOST_FRACTION_BITS = 12
_LOOKUP_ENTRIES = 64
_WIDTH = 4
OFFSET = 128
"""What is added to an integer to make it an unsigned byte."""


@dataclass(frozen=True)
class IntegerSide:
    """A side whose element of code c is integers[c] * 2^-fraction_bits, times the scale of its block.

    `scale` is what that is read from, and `scales` the values of its codes.
    """

    code: ScaledCode
    scale: Input
    scales: npt.NDArray[np.float32]
    integers: npt.NDArray[np.int8]
    fraction_bits: int

    @property
    def largest(self) -> int:
        """Return the largest magnitude of the integers."""
        return int(np.abs(self.integers.astype(np.int32)).max())

    @property
    def is_code_itself(self) -> bool:
        """Tell whether the integer of a code is the code, as in MXINT8."""
        return bool((self.integers == np.arange(256, dtype=np.uint8).view(np.int8)).all())


def integer_side(contraction: Contraction, side: Side) -> IntegerSide | None:
    """Return a side as integers, or None if its values are not such, or no code of 8 bits and a scale."""
    found = scaled_code(contraction, side)
    if found is None:
        return None
    elements, scales = tabulate(found.code, found.input.value), tabulate(found.scale)
    if elements is None or scales is None or not np.isfinite(elements).all() or not _are_powers_of_two(scales):
        return None
    for bits in range(_MOST_FRACTION_BITS + 1):
        whole = np.ldexp(elements, bits)
        if (whole == np.rint(whole)).all():
            # Code 0 stands for what is masked out.
            if np.abs(whole).max() > 128 or whole.max() > 127 or whole[0] != 0:
                return None
            (scale,) = (item for item in side.inputs if item != found.input)
            integers = IntegerSide(found, scale, scales, whole.astype(np.int8), bits)
            return integers if integers.is_code_itself or _repeats(integers.integers) else None
    return None


def _are_powers_of_two(scales: npt.NDArray[np.float32]) -> bool:
    """Tell whether all scales are positive powers of two or NaN."""
    numbers = scales[~np.isnan(scales)]
    return bool(((np.frexp(numbers)[0] == 0.5) & np.isfinite(numbers)).all())


def _repeats(integers: npt.NDArray[np.int8]) -> bool:
    """Tell whether the upper two bits of a code do not matter, so that a register holds the table."""
    return bool((integers.reshape(-1, _LOOKUP_ENTRIES) == integers[:_LOOKUP_ENTRIES]).all())


class CodeReader:
    """Reads neighbouring codes of a side along its last axis, 64 at once, as integers of 8 bits."""

    def __init__(self, contraction: Contraction, side: IntegerSide):
        self._input = side.code.input
        self._buffer = contraction.op.operands[self._input.number]
        # Of a byte with two codes all bits reach the table.
        used = _LOOKUP_ENTRIES if self._input.packed == 1 else 16
        table = np.tile(side.integers[:used], _LOOKUP_ENTRIES // used)
        self._signed = None if side.is_code_itself else byte_constant(table)
        self._unsigned = None if side.is_code_itself else byte_constant(table.astype(np.int32) + OFFSET)
        self._offset = byte_constant(np.full(BYTES, OFFSET))

    def along(self) -> int | None:
        """Return the loop along which neighbours are neighbours in memory."""
        last = self._input.last()
        return loop_of(last) if last is not None and divisor_of(last) == 1 else None

    def read(self, loops: Sequence[Size], count: int = BYTES, mask: Any = None) -> Any:
        """Return `count` codes at `loops` as they are, i8; with a mask, zeros where it is not set."""
        places = places_of(self._input, loops)
        if self._input.packed > 1:
            return load_nibbles(self._buffer, places, count, mask)
        return bitcast(load_vector(self._buffer, places, count, mask), i8())

    def one(self, loops: Sequence[Size]) -> Any:
        """Return one code, i8."""
        places = places_of(self._input, loops)
        if self._input.packed > 1:
            return load_nibble(self._buffer, places)
        code = load(self._buffer, places)
        return code if code.type == i8() else arith.bitcast(i8(), code)

    def unsigned_bytes(self, loops: Sequence[Size], mask: Any = None) -> list[Any]:
        """Return OFFSET more than the integers of the codes in the 64 bytes at `loops`, as unsigned bytes.

        Where bytes hold two codes, those at even places come first, then those at odd ones.
        """
        places = places_of(self._input, loops)
        if self._input.packed == 1:
            return [self.unsigned(bitcast(load_vector(self._buffer, places, BYTES, mask), i8()))]
        codes = load_vector(self._buffer, bytes_at(places), BYTES, mask)
        words = bitcast(codes, ir.IntegerType.get_signless(16))
        upper = arith.shrui(words, splat(_WIDTH, BYTES // 2, words.type.element_type))
        return [self.unsigned(codes), self.unsigned(bitcast(upper, i8()))]

    def fetch(self, loops: Sequence[Size]) -> None:
        """Have the codes at `loops` fetched to the second cache; the first is too small for all rows ahead."""
        places = places_of(self._input, loops)
        prefetch(self._buffer, places if self._input.packed == 1 else bytes_at(places), 2)

    def integers(self, codes: Any) -> Any:
        """Return the integers of a vector of 64 codes."""
        return codes if self._signed is None else _lookup(self._signed, codes)

    def unsigned(self, codes: Any) -> Any:
        """Return OFFSET more than the integers, as unsigned bytes."""
        return arith.xori(codes, self._offset) if self._unsigned is None else _lookup(self._unsigned, codes)


def _lookup(table: Any, codes: Any) -> Any:
    return intrinsic("llvm.x86.avx512.permvar.qi.512", codes.type, table, codes)
