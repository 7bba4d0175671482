"""Products of packed parts by the matrix unit: tiles of sums in registers over k, added to the result."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mx_dialect._mlir import arith
from mx_dialect.schedule.amx_packing import GRANULE, STEPS, RowPacker
from mx_dialect.schedule.amx_panels import MOST_SUMS, Panels
from mx_dialect.schedule.amx_spread import Layout, Spread, by_layout
from mx_dialect.schedule.amx_tiles import REGISTERS, ROWS, Tiles
from mx_dialect.schedule.amx_words import EXACT
from mx_dialect.schedule.buffers import output
from mx_dialect.schedule.contraction import DYNAMIC, Contraction
from mx_dialect.schedule.emitter import (
    Size,
    add,
    ceildiv,
    first_lanes,
    floordiv,
    if_true,
    index,
    load_vector,
    loop,
    minimum,
    scaled,
    store_vector,
    sub,
)
from mx_dialect.schedule.panel_packing import Part, transposed
from mx_dialect.schedule.registers import LANES
from mx_dialect.schedule.table_decoder import GROUP

_HEIGHT = GRANULE // ROWS


@dataclass(frozen=True)
class _Tiling:
    """In how many parts of words both sides are, the panel of the right one, and how its columns are spread."""

    parts: tuple[int, int]
    right: Any
    spread: Spread | None


@dataclass(frozen=True)
class Products:
    """The products of a part of both sides, which are packed in panels; `long_side` is "lhs" or "rhs"."""

    contraction: Contraction
    long_side: str
    tiles: Tiles
    panels: Panels
    long: Part
    short: Part

    def add_all(self) -> list[Any]:
        """Add all tiles of the result, from panels that hold the parts."""
        tiling = _Tiling(self.panels.parts, self.panels.right, None)
        height, width = _tile_counts(*tiling.parts)

        def columns(j: Any) -> list[Any]:
            def rows(i: Any) -> list[Any]:
                self._clear()

                def group(g: Any) -> list[Any]:
                    for step in range(STEPS):
                        at = add(scaled(g, STEPS), step)
                        self._multiply(tiling, step, (i, at), (j, at), height, width)
                    return []

                loop(0, floordiv(self.long.depth, GROUP), 1, group)
                self._store()
                self._add_tiles(tiling, i, j, height, width)
                return []

            return loop(0, ceildiv(self.long.count, ROWS), height, rows)

        loop(0, ceildiv(self.short.count, LANES), width, columns)
        return []

    def sum_while_packing(self, left: RowPacker) -> None:
        """Compute few tiles of the result, packing a group of the long side at a time, and store them."""
        by_layout(self.panels.layouts, self.short.count, lambda layout: self._sum_and_pack(left, layout))

    def add_sums(self) -> list[Any]:
        """Add the stored tiles."""

        def add_(layout: Layout) -> None:
            self._add_tiles(self._tiling(layout), 0, 0, _HEIGHT, layout.width)

        by_layout(self.panels.layouts, self.short.count, add_)
        return []

    def _tiling(self, layout: Layout) -> _Tiling:
        left, right = self.panels.parts
        parts = (left, right if layout.spread is None else EXACT)
        return _Tiling(parts, self.panels.right_as(layout), layout.spread)

    def _sum_and_pack(self, left: RowPacker, layout: Layout) -> None:
        tiling, width = self._tiling(layout), layout.width
        self._clear()

        def multiply(g: Size) -> None:
            for step in range(STEPS):
                of_left, of_right = (0, add(_turn(g), step)), (0, add(scaled(g, STEPS), step))
                self._multiply(tiling, step, of_left, of_right, _HEIGHT, width)

        def group(g: Size) -> list[Any]:
            # What is packed is multiplied a turn later, when it has reached the cache, beside the packing of the next.
            if_true(arith.cmpi(arith.CmpIPredicate.ne, index(g), index(0)), lambda: multiply(sub(g, 1)))
            left.pack_group(self.long, self.panels.left, g, _turn(g))
            return []

        groups = floordiv(self.long.depth, GROUP)
        loop(0, groups, 1, group)
        multiply(sub(groups, 1))
        self._store()

    def _clear(self) -> None:
        for register in range(MOST_SUMS):
            self.tiles.clear(register)

    def _store(self) -> None:
        for register in range(MOST_SUMS):
            self.tiles.store(register, self.panels.sums, register)

    def _add_tiles(self, tiling: _Tiling, i: Size, j: Size, height: int, width: int) -> None:
        for row in range(height):
            numbers = [list(range(row * width + c, MOST_SUMS, height * width)) for c in range(width)]
            if tiling.spread is not None:
                self._add(tiling, numbers, add(i, row), j)
                continue
            for column, of_column in enumerate(numbers):
                self._add(tiling, [of_column], add(i, row), add(j, column))

    def _multiply(
        self, tiling: _Tiling, number: int, left: tuple[Size, Size], right: tuple[Size, Size], height: int, width: int
    ) -> None:
        """Add the products of tiles of one step, given by the first tile and the step, to height x width sums.

        A product takes as long as three others take to start, so steps of even and odd `number` have sums of their own
        where there are few.
        """
        parts, right_panel = tiling.parts, tiling.right
        first = height * width * (number % (MOST_SUMS // (height * width)))
        at_once = min(width, (REGISTERS - MOST_SUMS - 1) // parts[1])
        for start in range(0, width, at_once):
            columns = range(start, min(start + at_once, width))
            held = {(c, p): MOST_SUMS + (c - start) * parts[1] + p for c in columns for p in range(parts[1])}
            for (c, p), register in held.items():
                self.tiles.load(register, right_panel, _tile(right_panel, add(right[0], c), right[1], p))
            # Those of the rows follow each other in what registers are left: one loads while another is used.
            free = range(MOST_SUMS + len(held), REGISTERS)
            for turn, (row, part) in enumerate((row, part) for row in range(height) for part in range(parts[0])):
                register = free[turn % len(free)]
                self.tiles.load(register, self.panels.left, _tile(self.panels.left, add(left[0], row), left[1], part))
                for (c, _), other in held.items():
                    self.tiles.add_product(first + row * width + c, register, other)

    def _add(self, tiling: _Tiling, numbers: list[list[int]], i: Size, j: Size) -> None:
        """Add stored tiles, which are `numbers` of each tile side by side, to one of the result, as far as it goes."""
        long_left = sub(self.long.count, scaled(i, ROWS))
        short_left = sub(self.short.count, scaled(j, LANES))
        m, n = add(self.long.first, scaled(i, ROWS)), add(self.short.first, scaled(j, LANES))
        if self.long_side == "lhs":
            self._add_rows(lambda r: self._stored(tiling, numbers, r), (m, long_left), (n, short_left))
            return
        for r, row in enumerate(transposed([self._stored(tiling, numbers, r) for r in range(ROWS)])):
            store_vector(row, self.panels.sums, [numbers[0][0], r, 0])
        self._add_rows(
            lambda r: load_vector(self.panels.sums, [numbers[0][0], r, 0], LANES), (n, short_left), (m, long_left)
        )

    def _stored(self, tiling: _Tiling, numbers: list[list[int]], row: Size) -> Any:
        """Return a row of the sum of stored tiles."""
        tiles: list[Any] = []
        for of_tile in numbers:
            value, *others = (load_vector(self.panels.sums, [number, row, 0], LANES) for number in of_tile)
            for other in others:
                value = arith.addf(value, other)
            tiles.append(value)
        return tiles[0] if tiling.spread is None else tiling.spread.gathered(tiles)

    def _add_rows(self, stored: Callable[[Size], Any], rows: tuple[Size, Size], columns: tuple[Size, Size]) -> None:
        out = output(self.contraction)
        whole = self.contraction.extents[self.contraction.n]
        mask = None
        if whole == DYNAMIC or whole % GRANULE:
            mask = first_lanes(LANES, minimum(LANES, columns[1]))

        def one(r: Any) -> list[Any]:
            place = [*self.long.batch, add(rows[0], r), columns[0]]
            total = arith.addf(load_vector(out, place, LANES, mask), stored(r))
            store_vector(total, out, place, mask)
            return []

        loop(0, minimum(ROWS, rows[1]), 1, one)


def _turn(group: Size) -> Size:
    """Return the step at which the tiles of a group are, where those of two take turns."""
    if isinstance(group, int):
        return group % 2 * STEPS
    return scaled(arith.andi(group, index(1)), STEPS)


def _tile(panel: Any, tile: Size, step: Size, part: int) -> Size:
    """Return the number of a tile of a panel."""
    steps, parts = panel.type.shape[1:3]
    return add(scaled(add(scaled(tile, steps), step), parts), part)


def _tile_counts(left: int, right: int) -> tuple[int, int]:
    """Return how many tiles of rows and columns are summed at once, so that their operands fit the registers too."""
    if left == right:
        return 2, 2
    return (2, 1) if left == EXACT else (1, 2)
