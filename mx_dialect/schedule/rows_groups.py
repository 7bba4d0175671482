"""How the rows schedule reads the side that streams: some neighbours along k at once, times the short side.

A reader adds the products of one group of neighbours of several rows to sums, which are vectors of lanes. `fold` puts
off the scale: the products of a group are summed first and the sum is scaled, which saves a multiplication a vector
where there is one column, and is exact for moderate values only.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mx_dialect._mlir import arith, ir, vector
from mx_dialect.schedule.contraction import Contraction, Side, loop_of
from mx_dialect.schedule.emitter import Size, add, broadcast, floordiv, load, load_vector, prefetch
from mx_dialect.schedule.nibbles import bytes_at, load_nibbles
from mx_dialect.schedule.side import ScaledCode, SideReader, places_of, scaled_code
from mx_dialect.schedule.table_decoder import GROUP, LANES, ORDER, STRIPS, TableDecoder, decodes
from mx_dialect.schedule.tabulate import tabulate

AHEAD_LEVEL = 2
"""To which cache the next rows' codes are fetched.

Rows may be pages apart, and the processor does not look ahead into the next page. It waits for fewer lines at once to
the first cache than to the second.
"""

Sums = dict[tuple[int, int, int], Any]
"""Vectors of sums by row, column and strip."""


@dataclass(frozen=True)
class Tile:
    """Some rows of the long side: the loops of row r at (block, place, k), their scales, and all of the short side.

    `ahead` is `loops` for the rows that are worked on next.
    """

    rows: int
    columns: int
    strips: int
    loops: Callable[[int, Size, Size, Size], list[Any]]
    ahead: Callable[[int, Size, Size, Size], list[Any]]
    scales: dict[Any, Any]
    short: Any
    fold: bool


class GroupReader(Protocol):
    """Reads `size` neighbours along k at once, and finds those of the short side in `order`, None as they are."""

    size: int
    order: Sequence[int] | None

    def add_products(self, tile: Tile, k: Size, sums: Sums) -> None:
        """Add the products of the neighbours from k on to the sums, in place."""
        ...


class BodyReader:
    """Computes elements as the body says, from vectors instead of scalars."""

    order: Sequence[int] | None = None

    def __init__(self, contraction: Contraction, side: Side, lanes: int):
        self._block, self._lanes = contraction.block, lanes
        # A whole block at once, as far as registers go.
        self.size = min(contraction.block, 2 * lanes)
        self._side = SideReader(contraction, side, contraction.k[-1], self.size)

    def add_products(self, tile: Tile, k: Size, sums: Sums) -> None:
        lanes = self._lanes
        at = floordiv(k, self._block)
        place = 0 if self.size == self._block else _remainder(k, self._block)
        starts = range(0, self.size, lanes)
        others = {(s, i): load_vector(tile.short, [s, add(k, i)], lanes) for s in range(tile.columns) for i in starts}
        for r in range(tile.rows):
            shared = {value: load(buffer, [r, at]) for value, buffer in tile.scales.items()}
            wide = self._side.element(tile.loops(r, at, place, k), shared)
            for number, i in enumerate(starts):
                strip = _strip(wide, i, lanes)
                for s in range(tile.columns):
                    key = (r, s, number % tile.strips)
                    sums[key] = vector.fma(strip, others[s, i], sums[key])


class TableReader:
    """Decodes 64 codes at once by byte tables."""

    size = GROUP
    order: Sequence[int] | None = ORDER

    def __init__(self, contraction: Contraction, code: ScaledCode, table: Any):
        self._block, self._code = contraction.block, code
        self._buffer = contraction.op.operands[code.input.number]
        self._decoder = TableDecoder(table)

    def add_products(self, tile: Tile, k: Size, sums: Sums) -> None:
        columns, strips = range(tile.columns), range(STRIPS)
        others = {(s, v): load_vector(tile.short, [s, add(k, v * LANES)], LANES) for s in columns for v in strips}
        for r in range(tile.rows):
            values = self._decoder.vectors(self._codes(tile, r, k))
            scale = self._scale(tile, r, k)
            if tile.fold:
                for s in columns:
                    part = arith.mulf(values[0], others[s, 0])
                    for v in strips[1:]:
                        part = vector.fma(values[v], others[s, v], part)
                    sums[r, s, 0] = vector.fma(part, scale, sums[r, s, 0])
                continue
            for v in strips:
                x = arith.mulf(values[v], scale)
                for s in columns:
                    key = (r, s, v % tile.strips)
                    sums[key] = vector.fma(x, others[s, v], sums[key])

    def _codes(self, tile: Tile, r: int, k: Size) -> Any:
        ahead = places_of(self._code.input, tile.ahead(r, floordiv(k, self._block), 0, k))
        prefetch(self._buffer, ahead if self._code.input.packed == 1 else bytes_at(ahead), AHEAD_LEVEL)
        places = places_of(self._code.input, tile.loops(r, floordiv(k, self._block), 0, k))
        codes = (load_vector if self._code.input.packed == 1 else load_nibbles)(self._buffer, places, GROUP)
        return arith.bitcast(ir.VectorType.get([GROUP], ir.IntegerType.get_signless(8)), codes)

    def _scale(self, tile: Tile, r: int, k: Size) -> Any:
        """Return the scales of a group of codes, in the lanes where the decoder leaves the codes."""
        buffer = tile.scales[self._code.scale]
        first = floordiv(k, self._block)
        scale = broadcast(load(buffer, [r, first]), LANES)
        for number in range(1, GROUP // self._block):
            mask = _mask([ORDER[lane] // self._block == number for lane in range(LANES)])
            scale = arith.select(mask, broadcast(load(buffer, [r, add(first, number)]), LANES), scale)
        return scale


def table_reader(contraction: Contraction, side: Side) -> Callable[[], TableReader] | None:
    """Return what makes a reader of a side by tables, or None if its values cannot be decoded so."""
    code = scaled_code(contraction, side)
    table = None if code is None else tabulate(code.code, code.input.value)
    if code is None or table is None or not decodes(table) or contraction.block < GROUP // STRIPS:
        return None
    if code.input.last() is None or loop_of(code.input.last()) != contraction.k[-1] or len(contraction.k) != 1:
        return None
    return lambda: TableReader(contraction, code, table)


def _mask(lanes: Sequence[bool]) -> Any:
    i1 = ir.IntegerType.get_signless(1)
    type_ = ir.VectorType.get([len(lanes)], i1)
    return arith.constant(type_, ir.DenseElementsAttr.get([ir.IntegerAttr.get(i1, int(b)) for b in lanes], type_))


def _remainder(value: Size, divisor: int) -> Size:
    if isinstance(value, int):
        return value % divisor
    return arith.remui(value, arith.constant(ir.IndexType.get(), divisor))


def _strip(wide: Any, start: int, lanes: int) -> Any:
    if list(wide.type.shape) == [lanes]:
        return wide
    numbers = [ir.ArrayAttr.get([ir.IntegerAttr.get(ir.IntegerType.get_signless(64), n)]) for n in (start, lanes, 1)]
    return vector.extract_strided_slice(ir.VectorType.get([lanes], wide.type.element_type), wide, *numbers)
