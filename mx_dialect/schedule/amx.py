"""The amx schedule: products of bf16 by the matrix unit of x86, exactly what f32 arithmetic would multiply.

One side's rows lie along k, the long side; one or both have at most eight significant bits, as all MX elements times
a power of two do. An f32 of the other is the sum of three bf16, so three products make one.

    for short in steps of NC, k in steps of KC:
      pack the short side as [NC / 16][KC / 32][part] tiles
      for long in steps of MC:
        pack the long side as [MC / 16][KC / 32][part] tiles
        if the exponents of both are moderate:
          for each few tiles of both: sums in tile registers over k; added to the result
        else: the same part by panels in f32

The matrix unit takes subnormals for zeros; exponents are moderate if there are none, and no sum can overflow. NaN and
infinity are not moderate. Where the right side is the long one the result's tiles are transposed.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from mx_dialect._mlir import arith, ir
from mx_dialect.schedule.amx_exponents import are_moderate
from mx_dialect.schedule.amx_fallback import F32Products
from mx_dialect.schedule.amx_packing import BY_GROUPS, BY_ROWS, GRANULE, STEPS, ColumnPacker, RowPacker, parts_of
from mx_dialect.schedule.amx_spread import Spread
from mx_dialect.schedule.amx_tiles import DEPTH, REGISTERS, ROWS, Tiles, tile_panel
from mx_dialect.schedule.amx_words import EXACT, SPLIT
from mx_dialect.schedule.buffers import depth, extent, for_each_batch, output
from mx_dialect.schedule.contraction import DYNAMIC, Contraction, divisor_of, reads_along
from mx_dialect.schedule.emitter import (
    Size,
    add,
    ceildiv,
    either,
    first_lanes,
    floordiv,
    if_true,
    index,
    load_vector,
    loop,
    minimum,
    release,
    scaled,
    scratch,
    store_vector,
    sub,
)
from mx_dialect.schedule.panel_packing import Part, transposed
from mx_dialect.schedule.registers import LANES
from mx_dialect.schedule.span import Division, Span, bounds
from mx_dialect.schedule.table_decoder import GROUP

_BLOCKS_A_PART = 2


@dataclass(frozen=True)
class AmxPlan:
    """Sizes of the amx schedule: `long` is the side whose rows are packed as they are, "lhs" or "rhs".

    Block sizes count rows of the long side, rows or columns of the other, and entries along k. With the least
    `block_short` tiles are summed while the long side is packed, a group along k at a time.
    """

    long: str
    block_long: int
    block_short: int
    block_k: int


def emit(contraction: Contraction, plan: AmxPlan, span: Span | None = None) -> None:
    """Replace a contraction on buffers, or a span of it, by the amx schedule."""
    with ir.InsertionPoint(contraction.op), contraction.op.location:
        _Amx(contraction, plan, span).emit()
    contraction.op.erase()


def refusal(contraction: Contraction, plan: AmxPlan) -> str | None:
    """Return why the schedule does not apply to a contraction, or None."""
    if plan.long not in ("lhs", "rhs"):
        return f"'long' is lhs or rhs, not {plan.long}"
    c = _turned(contraction) if plan.long == "rhs" else contraction
    place = c.k[-1]
    if not reads_along(c.lhs, place):
        return "the long side's rows do not lie along k"
    if not reads_along(c.rhs, place) and not reads_along(c.rhs, c.n):
        return "the other side's rows lie along none of its loops"
    granule = max(GROUP, c.block)
    if c.block % LANES or granule % c.block or c.depth == DYNAMIC or c.depth % granule:
        return f"k must be a multiple of {granule}, in blocks of 16, 32 or multiples of 64"
    if any(divisor_of(r) not in (1, c.block) for side in (c.lhs, c.rhs) for i in side.inputs for r in i.map.results):
        return "a side has one code for several places along k"
    if parts_of(c, c.lhs) + parts_of(c, c.rhs) > EXACT + SPLIT:
        return "neither side's values are of at most eight significant bits"
    if plan.block_k % granule or plan.block_long % GRANULE or plan.block_short % GRANULE:
        return f"block_k must be a multiple of {granule}, block_long and block_short of {GRANULE}"
    return None


def division(contraction: Contraction, plan: AmxPlan, parts: int) -> Division:
    """Return how to divide the work in so many parts: along the short side if its blocks are many, else the long one.

    Whole blocks, so that whether exponents are moderate does not depend on the number of parts. Parts along the short
    side pack the long side once each, which takes less time than the other way around.
    """
    short, long = (contraction.n, contraction.m) if plan.long == "lhs" else (contraction.m, contraction.n)
    blocks = -(-contraction.extents[short] // plan.block_short)
    if contraction.extents[short] != DYNAMIC and (blocks >= _BLOCKS_A_PART * parts or blocks == parts):
        return Division(short, plan.block_short)
    return Division(long, plan.block_long)


def _turned(c: Contraction) -> Contraction:
    """Return a contraction with its sides exchanged: the long one first."""
    return replace(c, lhs=c.rhs, rhs=c.lhs, m=c.n, n=c.m)


class _Amx:
    """`c` has the long side as its left one, `m` counts its rows; `plain` is the contraction as it is."""

    def __init__(self, contraction: Contraction, plan: AmxPlan, span: Span | None):
        self.plain, self.plan = contraction, plan
        self.c = _turned(contraction) if plan.long == "rhs" else contraction
        self.m, self.n, self.k = extent(self.c, self.c.m), extent(self.c, self.c.n), depth(self.c)
        self.rows, self.columns = bounds(span, self.c.m, self.m), bounds(span, self.c.n, self.n)
        self.parts = parts_of(self.c, self.c.lhs), parts_of(self.c, self.c.rhs)
        self.block_k = min(plan.block_k, self.k)
        self.block_m, self.block_n = _up_to(plan.block_long, self.m), _up_to(plan.block_short, self.n)

    def emit(self) -> None:
        if 0 in (self.k, self.m, self.n):
            return
        tiles = Tiles()
        for_each_batch(self.c, lambda batch: self._matrix(batch, tiles))
        tiles.release()

    def _matrix(self, batch: list[Any], tiles: Tiles) -> None:
        if isinstance(self.n, int) or self.plan.block_short == GRANULE:
            self._blocks(batch, tiles, self.block_n)
            return

        def by_width(width: int) -> Callable[[], list[Any]]:
            def emit() -> list[Any]:
                self._blocks(batch, tiles, width)
                return []

            return emit

        few = arith.cmpi(arith.CmpIPredicate.sle, self.n, index(GRANULE))
        either(few, by_width(GRANULE), by_width(self.block_n))

    def _blocks(self, batch: list[Any], tiles: Tiles, block_n: int) -> None:
        """Work on a matrix in blocks; if the short side's are of the least width, sum tiles while packing rows."""
        streams = block_n == GRANULE
        block_m = GRANULE if streams else self.block_m
        left = RowPacker(self.c, self.parts[0], block_m, self.block_k, BY_GROUPS if streams else BY_ROWS)
        spread = Spread.of(self.n, self.parts[1]) if streams else None
        parts = self.parts if spread is None else (self.parts[0], EXACT)
        right = ColumnPacker(self.c, self.parts[1], self.n, left.pairing, spread)
        steps = self.block_k // DEPTH
        left_panel = tile_panel(block_m // ROWS, 2 * STEPS if streams else steps, parts[0])
        right_panel = tile_panel(block_n // ROWS, steps, parts[1])
        sums = scratch([_MOST_SUMS, ROWS, LANES])
        fallback = F32Products(self.plain, self.plan.long, block_m, block_n, self.block_k)

        def columns(n0: Any) -> list[Any]:
            count = minimum(block_n, sub(self.columns[1], n0))

            def along_k(k0: Any) -> list[Any]:
                short = Part(batch, n0, count, k0, minimum(self.block_k, sub(self.k, k0)))
                right.pack(short, right_panel)
                fallback.begin()

                def rows(m0: Any) -> list[Any]:
                    long = Part(batch, m0, minimum(block_m, sub(self.rows[1], m0)), k0, short.depth)
                    work = _Products(self, tiles, parts, spread, long, short, left_panel, right_panel, sums)
                    left.begin(long)
                    if streams:
                        work.sum_while_packing(left)
                    else:
                        left.pack(long, left_panel)
                    add_ = work.add_all if streams else work.emit
                    either(self._are_moderate(left, long, right), add_, partial(fallback.emit, long, short))
                    return []

                return loop(*self.rows, block_m, rows)

            return loop(0, self.k, self.block_k, along_k)

        loop(*self.columns, block_n, columns)
        for buffer in (left_panel, right_panel, sums, right.strip):
            release(buffer)
        left.release()
        right.range.release()
        fallback.release()

    def _are_moderate(self, left: RowPacker, long: Part, right: ColumnPacker) -> Any:
        """Return whether tiles compute the products of what is packed."""

        def yes() -> list[Any]:
            return [arith.constant(i1, 1)]

        def look_again() -> list[Any]:
            # Blocks of zeros may have any scale.
            left.examine(long)
            return [are_moderate(left.range, right.range)]

        i1 = ir.IntegerType.get_signless(1)
        return either(are_moderate(left.range, right.range), yes, look_again, [i1])[0]


_MOST_SUMS = 4


@dataclass(frozen=True)
class _Products:
    """The products of a part of both sides, which are packed in panels, in so many parts of words each."""

    amx: _Amx
    tiles: Tiles
    parts: tuple[int, int]
    spread: Spread | None
    long: Part
    short: Part
    left_panel: Any
    right_panel: Any
    sums: Any

    def emit(self) -> list[Any]:
        """Add all tiles of the result, from panels that hold the parts."""
        height, width = _tile_counts(*self.parts)

        def columns(j: Any) -> list[Any]:
            def rows(i: Any) -> list[Any]:
                self._clear()

                def group(g: Any) -> list[Any]:
                    for step in range(STEPS):
                        at = add(scaled(g, STEPS), step)
                        self._multiply(step, (i, at), (j, at), height, width)
                    return []

                loop(0, floordiv(self.long.depth, GROUP), 1, group)
                self._store()
                self._add_tiles(i, j, height, width)
                return []

            return loop(0, ceildiv(self.long.count, ROWS), height, rows)

        loop(0, ceildiv(self.short.count, LANES), width, columns)
        return []

    def sum_while_packing(self, left: RowPacker) -> None:
        """Compute few tiles of the result, packing a group of the long side at a time, and store them."""
        self._for_width(lambda width: self._sum_and_pack(left, width))

    def add_all(self) -> list[Any]:
        """Add the stored tiles."""
        self._for_width(lambda width: self._add_tiles(0, 0, GRANULE // ROWS, width))
        return []

    def _for_width(self, body: Callable[[int], None]) -> None:
        """Build what depends on how many tiles wide the part is, one or two."""

        def of(width: int) -> Callable[[], list[Any]]:
            def build() -> list[Any]:
                body(width)
                return []

            return build

        n = self.amx.n
        if self.spread is not None:
            body(self.spread.width)
            return
        if isinstance(n, int):
            body(1 if n <= LANES else GRANULE // LANES)
            return
        narrow = arith.cmpi(arith.CmpIPredicate.sle, index(self.short.count), index(LANES))
        either(narrow, of(1), of(GRANULE // LANES))

    def _sum_and_pack(self, left: RowPacker, width: int) -> None:
        height = GRANULE // ROWS
        self._clear()

        def multiply(g: Size) -> None:
            for step in range(STEPS):
                self._multiply(step, (0, add(_turn(g), step)), (0, add(scaled(g, STEPS), step)), height, width)

        def group(g: Size) -> list[Any]:
            # What is packed is multiplied a turn later, when it has reached the cache, beside the packing of the next.
            if_true(arith.cmpi(arith.CmpIPredicate.ne, index(g), index(0)), lambda: multiply(sub(g, 1)))
            left.pack_group(self.long, self.left_panel, g, _turn(g))
            return []

        groups = floordiv(self.long.depth, GROUP)
        loop(0, groups, 1, group)
        multiply(sub(groups, 1))
        self._store()

    def _clear(self) -> None:
        for register in range(_MOST_SUMS):
            self.tiles.clear(register)

    def _store(self) -> None:
        for register in range(_MOST_SUMS):
            self.tiles.store(register, self.sums, register)

    def _add_tiles(self, i: Size, j: Size, height: int, width: int) -> None:
        for row in range(height):
            numbers = [list(range(row * width + c, _MOST_SUMS, height * width)) for c in range(width)]
            if self.spread is not None:
                self._add(numbers, add(i, row), j)
                continue
            for column, of_column in enumerate(numbers):
                self._add([of_column], add(i, row), add(j, column))

    def _multiply(
        self, number: int, left: tuple[Size, Size], right: tuple[Size, Size], height: int, width: int
    ) -> None:
        """Add the products of tiles of one step, given by the first tile and the step, to height x width sums.

        A product takes as long as three others take to start, so steps of even and odd `number` have sums of their own
        where there are few.
        """
        parts = self.parts
        first = height * width * (number % (_MOST_SUMS // (height * width)))
        at_once = min(width, (REGISTERS - _MOST_SUMS - 1) // parts[1])
        for start in range(0, width, at_once):
            columns = range(start, min(start + at_once, width))
            held = {(c, p): _MOST_SUMS + (c - start) * parts[1] + p for c in columns for p in range(parts[1])}
            for (c, p), register in held.items():
                self.tiles.load(register, self.right_panel, _tile(self.right_panel, add(right[0], c), right[1], p))
            # Those of the rows follow each other in what registers are left: one loads while another is used.
            free = range(_MOST_SUMS + len(held), REGISTERS)
            for turn, (row, part) in enumerate((row, part) for row in range(height) for part in range(parts[0])):
                register = free[turn % len(free)]
                self.tiles.load(register, self.left_panel, _tile(self.left_panel, add(left[0], row), left[1], part))
                for (c, _), other in held.items():
                    self.tiles.add_product(first + row * width + c, register, other)

    def _add(self, numbers: list[list[int]], i: Size, j: Size) -> None:
        """Add stored tiles, which are `numbers` of each tile side by side, to one of the result, as far as it goes."""
        long_left = sub(self.long.count, scaled(i, ROWS))
        short_left = sub(self.short.count, scaled(j, LANES))
        m, n = add(self.long.first, scaled(i, ROWS)), add(self.short.first, scaled(j, LANES))
        if self.amx.plan.long == "lhs":
            self._add_rows(lambda r: self._stored(numbers, r), (m, long_left), (n, short_left))
            return
        for r, row in enumerate(transposed([self._stored(numbers, r) for r in range(ROWS)])):
            store_vector(row, self.sums, [numbers[0][0], r, 0])
        self._add_rows(lambda r: load_vector(self.sums, [numbers[0][0], r, 0], LANES), (n, short_left), (m, long_left))

    def _stored(self, numbers: list[list[int]], row: Size) -> Any:
        """Return a row of the sum of stored tiles."""
        tiles: list[Any] = []
        for of_tile in numbers:
            value, *others = (load_vector(self.sums, [number, row, 0], LANES) for number in of_tile)
            for other in others:
                value = arith.addf(value, other)
            tiles.append(value)
        return tiles[0] if self.spread is None else self.spread.gathered(tiles)

    def _add_rows(self, stored: Callable[[Size], Any], rows: tuple[Size, Size], columns: tuple[Size, Size]) -> None:
        out = output(self.amx.plain)
        whole = self.amx.plain.extents[self.amx.plain.n]
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


def _up_to(size: int, extent_: Size) -> int:
    """Return a size, or an extent in whole granules if that is less."""
    return min(size, -(-extent_ // GRANULE) * GRANULE) if isinstance(extent_, int) else size
