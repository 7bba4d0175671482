"""Reading packed codes of four bits in the rows schedule: 128 at once, looked up in a register of sixteen f32 values.

A word of 32 bits holds eight codes. Each lookup takes the lowest four bits of sixteen words, and shifts bring the
others there; so vector j has code j of every word, and the short side is in that order.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mx_dialect._mlir import arith, ir, vector
from mx_dialect.schedule.contraction import Contraction, Side, loop_of
from mx_dialect.schedule.emitter import Size, add, f32, floordiv, load_vector, prefetch, vector_type
from mx_dialect.schedule.nibbles import bytes_at
from mx_dialect.schedule.registers import BYTES, LANES, bitcast, i32, intrinsic, shuffle, splat
from mx_dialect.schedule.rows_groups import AHEAD_LEVEL, Sums, Tile
from mx_dialect.schedule.side import ScaledCode, places_of, scaled_code
from mx_dialect.schedule.tabulate import tabulate

_WIDTH = 4
_IN_WORD = 8
_CODES = 16


class NibbleReader:
    """Decodes 128 packed codes at once."""

    size = LANES * _IN_WORD
    order: Sequence[int] | None = tuple(word * _IN_WORD + j for j in range(_IN_WORD) for word in range(LANES))

    def __init__(self, contraction: Contraction, code: ScaledCode, table: Any):
        self._block, self._code = contraction.block, code
        self._buffer = contraction.op.operands[code.input.number]
        values = np.ascontiguousarray(table[:_CODES].astype(np.float32))
        type_ = vector_type(LANES, f32())
        self._table = arith.constant(type_, ir.DenseElementsAttr.get(values, type=type_))

    def add_products(self, tile: Tile, k: Size, sums: Sums) -> None:
        columns = range(tile.columns)
        others = {
            (s, j): load_vector(tile.short, [s, add(k, j * LANES)], LANES) for s in columns for j in range(_IN_WORD)
        }
        for r in range(tile.rows):
            values = self._values(tile, r, k)
            scale = self._scale(tile, r, k)
            if tile.fold:
                for s in columns:
                    part = arith.mulf(values[0], others[s, 0])
                    for j in range(1, _IN_WORD):
                        part = vector.fma(values[j], others[s, j], part)
                    sums[r, s, 0] = vector.fma(part, scale, sums[r, s, 0])
                continue
            for j in range(_IN_WORD):
                x = arith.mulf(values[j], scale)
                for s in columns:
                    key = (r, s, j % tile.strips)
                    sums[key] = vector.fma(x, others[s, j], sums[key])

    def _values(self, tile: Tile, r: int, k: Size) -> list[Any]:
        at = floordiv(k, self._block)
        prefetch(self._buffer, bytes_at(places_of(self._code.input, tile.ahead(r, at, 0, k))), AHEAD_LEVEL)
        places = bytes_at(places_of(self._code.input, tile.loops(r, at, 0, k)))
        words = bitcast(load_vector(self._buffer, places, BYTES), i32())
        found: list[Any] = []
        for j in range(_IN_WORD):
            shifted = words if j == 0 else arith.shrui(words, splat(_WIDTH * j, LANES, i32()))
            found.append(intrinsic("llvm.x86.avx512.permvar.sf.512", self._table.type, self._table, shifted))
        return found

    def _scale(self, tile: Tile, r: int, k: Size) -> Any:
        """Return the scale of each word."""
        buffer = tile.scales[self._code.scale]
        count = self.size // self._block
        scales = load_vector(buffer, [r, floordiv(k, self._block)], count)
        return shuffle(scales, scales, [word * _IN_WORD // self._block for word in range(LANES)])


def nibble_reader(contraction: Contraction, side: Side) -> Callable[[], NibbleReader] | None:
    """Return what makes a reader of a side of packed codes, or None if it is none."""
    code = scaled_code(contraction, side)
    if code is None or code.input.packed == 1 or len(contraction.k) != 1:
        return None
    table = tabulate(code.code, code.input.value)
    fits = contraction.block % _IN_WORD == 0 and NibbleReader.size % contraction.block == 0
    if table is None or not fits or loop_of(code.input.last()) != contraction.k[0]:
        return None
    return lambda: NibbleReader(contraction, code, table)
