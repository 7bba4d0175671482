"""Scales of sixteen rows and sixteen blocks as bytes in registers: block after block, the rows beside each other."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mx_dialect._mlir import arith, ir, memref
from mx_dialect.schedule.contraction import Contraction, Side
from mx_dialect.schedule.dots_codes import IntegerSide
from mx_dialect.schedule.emitter import (
    Size,
    add,
    first_lanes,
    if_true,
    index,
    load_vector,
    loop,
    prefetch,
    scaled,
    scratch,
    store_vector,
    vector_type,
)
from mx_dialect.schedule.quarters import transposed_within_quarters
from mx_dialect.schedule.registers import BYTES, LANES, any_bit, bitcast, i8, i32, shuffle, splat
from mx_dialect.schedule.side import SideReader, places_of

BLOCKS = 16
"""Blocks of a square of scales, and its rows."""
_ROWS = 4
"""Rows of a register."""


def has_spare_code(integers: IntegerSide) -> bool:
    """Tell whether code 0 is the only subnormal scale and some code is the scale 1, to use for blocks of zeros."""
    tiny = np.flatnonzero(integers.scales < 2.0**-126)
    return bool((tiny == 0).all() and (integers.scales == 1).any())


class ScaleSquare:
    """Codes of scales, i8 [block][row] in memory, sixteen by sixteen."""

    def __init__(self, contraction: Contraction, side: Side, integers: IntegerSide):
        self._scale, self._input = integers.code.scale, integers.scale
        self._memory = contraction.op.operands[integers.scale.number]
        self._reader = SideReader(contraction, side, -1, LANES)
        self._one = int(np.flatnonzero(integers.scales == 1)[0])
        self.bytes = scratch([BLOCKS * LANES], i8())

    def fill(self, places: Sequence[list[Any]], count: int, is_zero: Callable[[Any, Any], Any]) -> None:
        """Read `count` scales at the loops of each row; `is_zero` tells whether row r has only zeros in block b.

        A block of zeros gets the scale 1 instead of a subnormal one, which processors multiply slowly.
        """
        mask = None if count == BLOCKS else first_lanes(LANES, count)
        lines = [self._line(loops, mask) for loops in places]
        registers = [_concatenated(lines[r : r + _ROWS]) for r in range(0, LANES, _ROWS)]
        # Word 4 q + j of a register is block 4 j + q of its four rows.
        order = [row * LANES + _ROWS * j + q for q in range(_ROWS) for j in range(_ROWS) for row in range(_ROWS)]
        words = [bitcast(shuffle(x, x, order), i32()) for x in registers]
        for number, found in enumerate(transposed_within_quarters(words)):
            store_vector(bitcast(found, i8()), self.bytes, [number * BYTES])
        zero = splat(0, BYTES, i8())
        tiny = splat(0, BYTES, ir.IntegerType.get_signless(1))
        for x in registers:
            tiny = arith.ori(tiny, arith.cmpi(arith.CmpIPredicate.eq, x, zero))
        if_true(any_bit(tiny), lambda: self._repair(count, is_zero))

    def _line(self, loops: Sequence[Size], mask: Any) -> Any:
        codes = load_vector(self._memory, places_of(self._input, loops), LANES, mask)
        codes = codes if codes.type.element_type == i8() else arith.bitcast(splat(0, LANES, i8()).type, codes)
        return codes if mask is None else arith.select(mask, codes, splat(-1, LANES, i8()))

    def fetch(self, loops: Sequence[Size]) -> None:
        """Have the scales at some loops fetched from memory."""
        prefetch(self._memory, places_of(self._input, loops))

    def _repair(self, count: int, is_zero: Callable[[Any, Any], Any]) -> None:
        def block(b: Any) -> list[Any]:
            def row(r: Any) -> list[Any]:
                place = [index(add(scaled(b, LANES), r))]
                code = memref.load(self.bytes, place)
                tiny = arith.cmpi(arith.CmpIPredicate.eq, code, arith.constant(i8(), 0))

                def store() -> None:
                    one = arith.constant(i8(), self._one if self._one < 128 else self._one - 256)
                    memref.store(arith.select(is_zero(r, b), one, code), self.bytes, place)

                if_true(tiny, store)
                return []

            return loop(0, LANES, 1, row)

        loop(0, count, 1, block)

    def scales(self, block: Size) -> Any:
        """Return the scales of sixteen rows in a block of the square, f32."""
        codes = load_vector(self.bytes, [scaled(block, LANES)], LANES)
        known = self._input.value.type
        if known != i8():
            codes = arith.bitcast(vector_type(LANES, known), codes)
        return self._reader.computed(self._scale, {self._input.value: codes})


def _concatenated(lines: Sequence[Any]) -> Any:
    pairs = [shuffle(lines[i], lines[i + 1], range(2 * LANES)) for i in (0, 2)]
    return shuffle(pairs[0], pairs[1], range(4 * LANES))
