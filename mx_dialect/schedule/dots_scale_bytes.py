"""Scales of sixteen rows and sixteen blocks as bytes in registers: block after block, the rows beside each other."""

from collections.abc import Sequence
from typing import Any

from mx_dialect._mlir import arith
from mx_dialect.schedule.contraction import Contraction, Side
from mx_dialect.schedule.dots_codes import IntegerSide
from mx_dialect.schedule.emitter import (
    Size,
    first_lanes,
    load_vector,
    prefetch,
    scaled,
    scratch,
    store_vector,
    vector_type,
)
from mx_dialect.schedule.quarters import transposed_within_quarters
from mx_dialect.schedule.registers import BYTES, LANES, bitcast, i8, i32, shuffle
from mx_dialect.schedule.side import SideReader, places_of

BLOCKS = 16
"""Blocks of a square of scales, and its rows."""
_ROWS = 4
"""Rows of a register."""


class ScaleSquare:
    """Codes of scales, i8 [block][row] in memory, sixteen by sixteen."""

    def __init__(self, contraction: Contraction, side: Side, integers: IntegerSide):
        self._scale, self._input = integers.code.scale, integers.scale
        self._memory = contraction.op.operands[integers.scale.number]
        self._reader = SideReader(contraction, side, -1, LANES)
        self.bytes = scratch([BLOCKS * LANES], i8())

    def fill(self, places: Sequence[list[Any]], count: int) -> None:
        """Read `count` scales at the loops of each row."""
        mask = None if count == BLOCKS else first_lanes(LANES, count)
        lines = [self._line(loops, mask) for loops in places]
        registers = [_concatenated(lines[r : r + _ROWS]) for r in range(0, LANES, _ROWS)]
        # Word 4 q + j of a register is block 4 j + q of its four rows.
        order = [row * LANES + _ROWS * j + q for q in range(_ROWS) for j in range(_ROWS) for row in range(_ROWS)]
        words = [bitcast(shuffle(x, x, order), i32()) for x in registers]
        for number, found in enumerate(transposed_within_quarters(words)):
            store_vector(bitcast(found, i8()), self.bytes, [number * BYTES])

    def _line(self, loops: Sequence[Size], mask: Any) -> Any:
        codes = load_vector(self._memory, places_of(self._input, loops), LANES, mask)
        return bitcast(codes, i8())

    def fetch(self, loops: Sequence[Size]) -> None:
        """Have the scales at some loops fetched from memory."""
        prefetch(self._memory, places_of(self._input, loops), 2)

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
