"""The dots schedule: exact dot products of blocks of integers, both sides packed into panels, by AVX-512 VNNI.

    for n in steps of NC, k in steps of KC:
      pack rhs[k.., n..] as signed bytes, four along k a word, 16 columns a vector
      for m in steps of MC:
        pack lhs[m.., k..] as unsigned bytes, four along k a word
        for each tile of rows and vectors of columns:
          sum[rows][columns] in registers = the result so far
          for each block:
            dot[rows][columns] in registers, i32: += broadcast lhs word * rhs words
            sum += dot * scale of the column * scale of the row         // both products exact, the sum rounds once

The result is that of `block_dots.matmul_block_dots`, to the bit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mx_dialect._mlir import arith, ir
from mx_dialect.schedule.block_tiles import BlockTiles
from mx_dialect.schedule.buffers import depth, extent, for_each_batch, output
from mx_dialect.schedule.contraction import DYNAMIC, Contraction, divisor_of, reads_along
from mx_dialect.schedule.dots_codes import IntegerSide, integer_side
from mx_dialect.schedule.dots_exact import CODES, LARGEST_DOT, Finish, add_carefully, add_scaled
from mx_dialect.schedule.dots_packing import LeftPacker, LeftPanel, Pieces, RightPacker, RightPanel
from mx_dialect.schedule.dots_scales import can_read
from mx_dialect.schedule.emitter import (
    Size,
    add,
    broadcast,
    ceildiv,
    either,
    first_lanes,
    floordiv,
    load,
    load_vector,
    loop,
    minimum,
    prefetch,
    release,
    scaled,
    store_vector,
    sub,
)
from mx_dialect.schedule.panel_packing import Part, not_negative
from mx_dialect.schedule.registers import BYTES, LANES, align_stack, bitcast, byte_dots, i8
from mx_dialect.schedule.span import Division, Span, bounds

_WORDS_AT_ONCE = 8
_TILES_A_PART = 4


@dataclass(frozen=True)
class DotsPlan:
    """Sizes of the dots schedule: a register tile of `rows` x `vectors` of 16 columns, and cache blocks.

    Block sizes count rows, columns and entries along k.
    """

    rows: int
    vectors: int
    block_m: int
    block_n: int
    block_k: int

    @property
    def columns(self) -> int:
        return LANES * self.vectors


def sides(contraction: Contraction) -> tuple[IntegerSide, IntegerSide] | str:
    """Return both sides as integers, or why exact block dots do not apply to a contraction."""
    left, right = integer_side(contraction, contraction.lhs), integer_side(contraction, contraction.rhs)
    if left is None or right is None:
        return "a side's elements are no integers of 8 bits times a power of two and a block's scale of 8 bits"
    block = contraction.block
    if block % CODES or (BYTES % block and block % BYTES):
        return f"blocks of {block} do not fit vectors of {BYTES}"
    if block * left.largest * right.largest > LARGEST_DOT:
        return f"dot products of blocks of {block} may exceed {LARGEST_DOT}"
    if any(divisor_of(r) not in (1, block) for side in (left, right) for r in side.code.input.map.results):
        return "a side has one code for several places along k"
    return left, right


def refusal(contraction: Contraction, plan: DotsPlan) -> str | None:
    """Return why the schedule does not apply to a contraction, or None."""
    found = sides(contraction)
    if isinstance(found, str):
        return found
    place = contraction.k[-1]
    if not reads_along(contraction.lhs, place):
        return "the left side's rows do not lie along k"
    if not reads_along(contraction.rhs, place) and not reads_along(contraction.rhs, contraction.n):
        return "the right side's rows lie neither along k nor along n"
    for side, integers in zip((contraction.lhs, contraction.rhs), found, strict=True):
        if reads_along(side, place) and not can_read(contraction, integers):
            return "the scales of neighbouring blocks are no neighbours in memory"
    if plan.block_k % max(contraction.block, BYTES) or plan.block_m % plan.rows or plan.block_n % plan.columns:
        return f"block_k, block_m and block_n must be multiples of {BYTES} and the blocks, of rows, and of the columns"
    return None


def division(contraction: Contraction, plan: DotsPlan, parts: int) -> Division:
    """Return how to divide the work in so many parts: by columns if they are many, else by rows."""
    columns = contraction.extents[contraction.n]
    if columns != DYNAMIC and columns >= _TILES_A_PART * parts * plan.columns:
        return Division(contraction.n, plan.columns)
    return Division(contraction.m, plan.rows)


def emit(contraction: Contraction, plan: DotsPlan, span: Span | None = None) -> None:
    """Replace a contraction on buffers, or a span of it, by the dots schedule."""
    with ir.InsertionPoint(contraction.op), contraction.op.location:
        build(contraction, plan, span)
    contraction.op.erase()


def build(contraction: Contraction, plan: DotsPlan, span: Span | None, *, by_tiles: bool = False) -> None:
    """Build the schedule where the insertion point is; `by_tiles` with the matrix unit, for 16 rows and one vector."""
    _Dots(contraction, plan, span, by_tiles).emit()


class _Dots:
    def __init__(self, contraction: Contraction, plan: DotsPlan, span: Span | None, by_tiles: bool):
        self.c, self.plan, self.by_tiles = contraction, plan, by_tiles
        self.m, self.n = extent(contraction, contraction.m), extent(contraction, contraction.n)
        self.rows, self.columns = bounds(span, contraction.m, self.m), bounds(span, contraction.n, self.n)
        self.k = depth(contraction)
        self.out = output(contraction)

    def emit(self) -> None:
        if 0 in (self.k, self.m, self.n):
            return
        found = sides(self.c)
        assert not isinstance(found, str)
        left_side, right_side = found
        plan, block = self.plan, self.c.block
        block_k = min(plan.block_k, self.k) if isinstance(self.k, int) else plan.block_k
        block_m = _up_to(plan.block_m, self.m, plan.rows)
        block_n = _up_to(plan.block_n, self.n, plan.columns)
        pieces = Pieces(self.c, self.k, block_k)
        left = LeftPacker(self.c, left_side, pieces)
        right = RightPacker(
            self.c, right_side, pieces, self.n, plan.columns, left_side.fraction_bits + right_side.fraction_bits
        )
        left_panel = LeftPanel.allocate(block_m, block_k, block)
        right_panel = RightPanel.allocate(block_n, block_k, block)
        align_stack(self.c.op)
        unit = BlockTiles(block) if self.by_tiles else None

        def matrix(batch: list[Any]) -> None:
            def columns(n0: Any) -> list[Any]:
                count = minimum(block_n, sub(self.columns[1], n0))

                def along_k(k0: Any) -> list[Any]:
                    part = Part(batch, n0, count, k0, minimum(block_k, sub(self.k, k0)))
                    large = right.pack(part, right_panel)

                    def rows(m0: Any) -> list[Any]:
                        left_part = Part(batch, m0, minimum(block_m, sub(self.rows[1], m0)), k0, part.depth)
                        tiles = scaled(ceildiv(left_part.count, plan.rows), plan.rows)
                        left.pack(left_part, tiles, left_panel)
                        _Tiles(self, left_part, part, left_panel, right_panel, unit).emit(large)
                        return []

                    return loop(*self.rows, block_m, rows)

                return loop(0, self.k, block_k, along_k)

            loop(*self.columns, block_n, columns)

        for_each_batch(self.c, matrix)
        if unit is not None:
            unit.release()
        for buffer in (*left_panel.buffers(), *right_panel.buffers()):
            release(buffer)


def _up_to(size: int, extent_: Size, multiple: int) -> int:
    return min(size, -(-extent_ // multiple) * multiple) if isinstance(extent_, int) else size


@dataclass(frozen=True)
class _Way:
    """How tiles are worked on: so many `rows` at once, and words an iteration, and how products are added."""

    rows: int
    words: int
    finish: Finish


class _Tiles:
    """The register tiles of one block of rows, columns and depth."""

    def __init__(
        self,
        dots: _Dots,
        left: Part,
        right: Part,
        left_panel: LeftPanel,
        right_panel: RightPanel,
        tiles: BlockTiles | None,
    ):
        self._tiles = tiles
        self._plan, self._out, self._block = dots.plan, dots.out, dots.c.block
        self._n, self._ragged = dots.n, not (isinstance(dots.m, int) and dots.m % dots.plan.rows == 0)
        self._vectors = range(dots.plan.vectors)
        self._left, self._right = left, right
        self._left_panel, self._right_panel = left_panel, right_panel

    def emit(self, large: Any) -> None:
        """Build all tiles; `large` says that some scale of the right side is too large for the fast way."""
        fast = _Way(self._plan.rows, _WORDS_AT_ONCE, add_scaled)
        # It is rare: as little code as possible.
        careful = _Way(1, 1, add_carefully)
        either(large, lambda: self._all(careful), lambda: self._all(fast))

    def _all(self, way: _Way) -> list[Any]:
        def columns(j: Any) -> list[Any]:
            def rows(i: Any) -> list[Any]:
                return self._tile(i, j, way)

            return loop(0, self._left.count, way.rows, rows)

        return loop(0, ceildiv(self._right.count, self._plan.columns), 1, columns)

    def _tile(self, i: Size, j: Size, way: _Way) -> list[Any]:
        n = scaled(j, self._plan.columns)
        masks = self._masks(n)
        places = [self._place(add(i, r), n, v) for r in range(way.rows) for v in self._vectors]
        sums = [load_vector(self._out, p, LANES, m) for p, m in zip(places, masks * way.rows, strict=True)]
        if way.rows > 1:
            # The next tile of the result, whose rows no processor foresees.
            for r in range(way.rows):
                for v in self._vectors:
                    prefetch(self._out, self._place(add(i, way.rows + r), n, v))
        strips = [add(scaled(j, self._plan.vectors), v) for v in self._vectors]
        rows = [add(i, r) for r in range(way.rows)]

        if self._tiles is not None and way.rows > 1:
            sums = self._add_by_tiles(self._tiles, rows, strips[0], sums, way)
        else:
            sums = self._add_by_vectors(rows, strips, sums, way)
        for place, mask, total in zip(places, masks * way.rows, sums, strict=True):
            store_vector(total, self._out, place, mask)
        return []

    def _place(self, row: Size, n: Size, v: int) -> list[Any]:
        """Return where a row's vector of the result lies.

        Rows beyond the last are the last again: they are packed so, and what is stored is the same again.
        """
        row = minimum(row, sub(self._left.count, 1)) if self._ragged else row
        return [*self._left.batch, add(self._left.first, row), add(add(self._right.first, n), v * LANES)]

    def _masks(self, n: Size) -> list[Any]:
        """Return the masks of a tile's vectors of columns, None if no tile is ragged."""
        if isinstance(self._n, int) and self._n % self._plan.columns == 0:
            return [None] * self._plan.vectors
        rest = [not_negative(sub(self._right.count, add(n, v * LANES))) for v in self._vectors]
        return [first_lanes(LANES, minimum(LANES, count)) for count in rest]

    def _add_by_vectors(
        self, rows: Sequence[Size], strips: Sequence[Size], sums: Sequence[Any], way: _Way
    ) -> list[Any]:
        """Return the sums with the products of all blocks added."""

        def step(b: Any, *totals: Any) -> list[Any]:
            dots = self._dots(rows, strips, b, way.words)
            return self._add_scaled(rows, strips, b, totals, dots, way.finish)

        return loop(0, floordiv(self._right.depth, self._block), 1, step, sums)

    def _add_by_tiles(
        self, tiles: BlockTiles, rows: Sequence[Size], strip: Size, sums: Sequence[Any], way: _Way
    ) -> list[Any]:
        panel = self._right_panel

        def finish(b: Any, dots: Callable[[int], Any], totals: Sequence[Any]) -> list[Any]:
            start, scale, shift = (
                load_vector(memory, [strip, b, 0], LANES) for memory in (panel.starts, panel.scales, panel.shifts)
            )
            found: list[Any] = []
            # Row after row, so that few dot products are in registers beside the sums.
            for r, (row, total) in enumerate(zip(rows, totals, strict=True)):
                dot = arith.addi(dots(r), start)
                of_row = broadcast(load(self._left_panel.scales, [row, b]), LANES)
                found.append(way.finish(total, dot, of_row, scale, shift))
            return found

        blocks = floordiv(self._right.depth, self._block)
        return tiles.add_blocks((self._left_panel, panel), (rows[0], strip), blocks, sums, finish)

    def _dots(self, rows: Sequence[Size], strips: Sequence[Size], b: Size, unroll: int) -> list[Any]:
        """Return the dot products of one block, row after row."""
        left, right = self._left_panel.words, self._right_panel.words
        words = self._block // CODES
        unroll = min(unroll, words)

        def some(w: Any, *dots: Any) -> list[Any]:
            values = list(dots)
            for u in range(unroll):
                word = add(scaled(b, words), add(w, u))
                signed = [bitcast(load_vector(right, [s, word, 0], LANES), i8()) for s in strips]
                unsigned = [bitcast(broadcast(load(left, [r, word]), LANES), i8()) for r in rows]
                pairs = [(x, y) for x in unsigned for y in signed]
                values = [byte_dots(value, *pair) for value, pair in zip(values, pairs, strict=True)]
            return values

        starts = [load_vector(self._right_panel.starts, [s, b, 0], LANES) for s in strips]
        return loop(0, words, unroll, some, starts * len(rows))

    def _add_scaled(
        self,
        rows: Sequence[Size],
        strips: Sequence[Size],
        b: Size,
        totals: Sequence[Any],
        dots: Sequence[Any],
        finish: Finish,
    ) -> list[Any]:
        """Return the sums with the dot products of one block added."""
        panel = self._right_panel
        scales = [load_vector(panel.scales, [s, b, 0], LANES) for s in strips]
        shifts = [load_vector(panel.shifts, [s, b, 0], LANES) for s in strips]
        found: list[Any] = []
        for r, row in enumerate(rows):
            scale = broadcast(load(self._left_panel.scales, [row, b]), LANES)
            for v in self._vectors:
                t = r * len(strips) + v
                found.append(finish(totals[t], dots[t], scale, scales[v], shifts[v]))
        return found
