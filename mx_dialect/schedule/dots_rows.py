"""The dot_rows schedule: exact dot products of blocks of integers for a result with few columns, or few rows.

One side streams through once, the long one, sixteen rows at once; the other, the short one, is packed first:

    short[s][k] = the integers of the short side, signed
    for r in steps of 16:
      sum[s][16 rows] in registers = the result so far
      for each 16 blocks along k:
        scale[block][16 rows] = the scales of the long side
        for each 64 bytes of them:
          dot[s][row] = bytes of the row * short[s], in 16 lanes each        // some neighbouring lanes make a block
          dot[s][block][16 rows] = the lanes of a block together, rows beside each other
          sum[s] += dot[s][block] * scale of the short side * scale[block]   // both products exact, the sum rounds once

The result is that of `block_dots.matmul_block_dots`, to the bit. Bytes that hold two codes are looked up in a table as
they are and shifted by four: the short side is in the order that this gives.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mx_dialect._mlir import arith, ir, memref
from mx_dialect.schedule.buffers import extent, for_each_batch, output
from mx_dialect.schedule.contraction import DYNAMIC, Contraction, reads_along
from mx_dialect.schedule.dots import sides
from mx_dialect.schedule.dots_codes import CodeReader
from mx_dialect.schedule.dots_exact import Finish, add_carefully, add_scaled, fast_scale
from mx_dialect.schedule.dots_scale_bytes import BLOCKS, ScaleSquare
from mx_dialect.schedule.dots_scales import can_read
from mx_dialect.schedule.dots_short import ShortPacker, ShortRows
from mx_dialect.schedule.emitter import (
    Size,
    add,
    broadcast,
    either,
    f32,
    first_lanes,
    floordiv,
    index,
    load,
    load_vector,
    loop,
    minimum,
    release,
    scaled,
    scratch,
    store_vector,
    sub,
    zeros,
)
from mx_dialect.schedule.quarters import QUARTER, sums_of_quarters, transposed_quarters
from mx_dialect.schedule.registers import BYTES, LANES, align_stack, byte_dots, splat
from mx_dialect.schedule.span import Division, Span, bounds

ROWS = 16
"""Rows of the long side at once, the lanes of a vector of sums."""
MOST_COLUMNS = 8


@dataclass(frozen=True)
class DotRowsPlan:
    """The side that streams, `long`, "lhs" or "rhs"; its bytes are fetched `ahead` rows before they are used."""

    long: str
    ahead: int


def refusal(contraction: Contraction, plan: DotRowsPlan) -> str | None:
    """Return why the schedule does not apply to a contraction, or None."""
    if plan.long not in ("lhs", "rhs"):
        return f"'long' is lhs or rhs, not {plan.long}"
    found = sides(contraction)
    if isinstance(found, str):
        return found
    order = 1 if plan.long == "lhs" else -1
    long, _ = (contraction.lhs, contraction.rhs)[::order]
    count = (contraction.extents[contraction.n], contraction.extents[contraction.m])[::order][0]
    if count == DYNAMIC or count > MOST_COLUMNS:
        return f"the extent of the short side is not known or more than {MOST_COLUMNS}"
    if len(contraction.k) != 1 or not reads_along(long, contraction.k[0]):
        return "the rows of the side that streams do not lie along k"
    if not can_read(contraction, found[::order][0]):
        return "the scales of neighbouring blocks are no neighbours in memory"
    size = contraction.block // found[::order][0].code.input.packed
    if size not in (BYTES // 4, BYTES // 2, BYTES):
        return f"blocks of {size} bytes are no quarter of {BYTES}, half of it or all"
    return None


def division(contraction: Contraction, plan: DotRowsPlan, parts: int) -> Division:
    """Return how to divide the work in so many parts: by rows of the side that streams."""
    return Division(contraction.m if plan.long == "lhs" else contraction.n, ROWS)


def emit(contraction: Contraction, plan: DotRowsPlan, span: Span | None = None) -> None:
    """Replace a contraction on buffers, or a span of it, by the schedule."""
    with ir.InsertionPoint(contraction.op), contraction.op.location:
        _DotRows(contraction, plan, span).emit()
    contraction.op.erase()


@dataclass(frozen=True)
class _Group:
    """Sixteen rows of the long side from `first` on, of which those from `start` to `stop` are wanted."""

    batch: list[Any]
    first: Size
    start: Size
    stop: Size


@dataclass(frozen=True)
class _Work:
    """Memory: the packed short side, scales of the long one, and results; and whether a short scale is `large`."""

    short: ShortRows
    square: ScaleSquare
    results: Any
    large: Any


class _DotRows:
    def __init__(self, contraction: Contraction, plan: DotRowsPlan, span: Span | None):
        self.c, self.plan = contraction, plan
        order = 1 if plan.long == "lhs" else -1
        self.long_loop, self.short_loop = (contraction.m, contraction.n)[::order]
        long, short = (contraction.lhs, contraction.rhs)[::order]
        found = sides(contraction)
        assert not isinstance(found, str)
        long_integers, short_integers = found[::order]
        self.count = extent(contraction, self.long_loop)
        self.span = bounds(span, self.long_loop, self.count)
        self.columns: int = contraction.extents[self.short_loop]
        self.parts: int = long_integers.code.input.packed
        self.size = contraction.block // self.parts
        self.chunk = BYTES * self.parts
        self.blocks = contraction.depth // contraction.block
        self.codes = CodeReader(contraction, long_integers)
        self.long, self.long_integers = long, long_integers
        unit = long_integers.fraction_bits + short_integers.fraction_bits
        self.packer = ShortPacker(contraction, short, short_integers, self.parts, unit)
        self.out = output(contraction)

    def loops(self, batch: list[Any], long: Size, short: Size, at: Size, place: Size, k: Size) -> list[Any]:
        m, n = (long, short)[:: 1 if self.long_loop == self.c.m else -1]
        return self.c.loops(batch, m, n, at, place, k)

    def emit(self) -> None:
        if 0 in (self.c.depth, self.count, self.columns):
            return
        align_stack(self.c.op)
        chunks = -(-self.c.depth // self.chunk)
        short = ShortRows.allocate(self.columns, chunks, self.parts, self.blocks)
        square = ScaleSquare(self.c, self.long, self.long_integers)
        results = scratch([self.columns, ROWS], f32())
        for s in range(self.columns):
            # Lanes of rows that are not there are worked on too.
            store_vector(zeros(LANES), results, [s, 0])

        def matrix(batch: list[Any]) -> None:
            def of_short(s: Size, at: Size, place: Size, k: Size) -> list[Any]:
                return self.loops(batch, 0, s, at, place, k)

            work = _Work(short, square, results, self.packer.pack(self.columns, of_short, short))

            def group(r: Any) -> list[Any]:
                self._rows(self._group(batch, r), work)
                return []

            loop(*self.span, ROWS, group)

        for_each_batch(self.c, matrix)
        for memory in (*short.buffers(), square.bytes, results):
            release(memory)

    def _group(self, batch: list[Any], r: Size) -> _Group:
        """Return the rows from r on; where they are fewer than sixteen, with rows before them."""
        if isinstance(self.count, int) and self.count % ROWS == 0:
            return _Group(batch, r, 0, ROWS)
        first = minimum(r, _not_negative(sub(self.count, ROWS)))
        return _Group(batch, first, sub(r, first), sub(minimum(add(r, ROWS), self.span[1]), first))

    def _row(self, group: _Group, r: Size) -> Size:
        """Return the number of a row of a group; beyond the last it is the last again."""
        row = add(group.first, r)
        if isinstance(self.count, int) and self.count >= ROWS:
            return row
        return minimum(row, sub(self.count, 1))

    def _rows(self, group: _Group, work: _Work) -> None:
        """Add the products of sixteen rows to the result."""
        sums = self._read(group, work.results)
        whole = self.blocks // BLOCKS

        def some(x: Any, *totals: Any) -> list[Any]:
            return self._square(group, scaled(x, BLOCKS), BLOCKS, totals, work)

        sums = loop(0, whole, 1, some, sums)
        rest = self.blocks - whole * BLOCKS
        if rest:
            sums = self._square(group, whole * BLOCKS, rest, sums, work)
        self._write(group, work.results, sums)

    def _square(self, group: _Group, b: Size, count: int, totals: Sequence[Any], work: _Work) -> list[Any]:
        """Return the sums with the products of up to sixteen blocks of each row added."""

        def places(row: Size) -> list[Any]:
            return self.loops(group.batch, row, 0, b, 0, scaled(b, self.c.block))

        rows = [self._row(group, r) for r in range(ROWS)]
        for row in rows:
            work.square.fetch(places(add(row, self.plan.ahead)))
        work.square.fill([places(row) for row in rows], count)
        in_chunk = BYTES // self.size
        first = floordiv(b, in_chunk)

        def chunk(c: Any, *totals: Any) -> list[Any]:
            return self._chunk(group, add(first, c), scaled(c, in_chunk), in_chunk, totals, work)

        sums = loop(0, count // in_chunk, 1, chunk, totals)
        rest = count % in_chunk
        if rest:
            done = count - rest
            sums = self._chunk(group, add(first, count // in_chunk), done, rest, sums, work)
        return sums

    def _chunk(
        self, group: _Group, c: Size, in_square: Size, blocks: int, totals: Sequence[Any], work: _Work
    ) -> list[Any]:
        """Return the sums with the products of `blocks` blocks, at most 64 bytes, of each row added."""
        k = scaled(c, self.chunk)
        mask = None if blocks * self.size == BYTES else first_lanes(BYTES, blocks * self.size)
        at = scaled(c, BYTES // self.size)
        quarters: list[list[Any]] = [[] for _ in range(self.columns)]
        for first in range(0, ROWS, QUARTER):
            rows: list[list[Any]] = []
            for r in range(first, first + QUARTER):
                row = self._row(group, r)
                self.codes.fetch(self.loops(group.batch, add(row, self.plan.ahead), 0, at, 0, k))
                rows.append(self.codes.unsigned_bytes(self.loops(group.batch, row, 0, at, 0, k), mask))
            for s in range(self.columns):
                quarters[s].append(sums_of_quarters([self._dots(row, s, c, work.short) for row in rows]))
        dots = [self._blocks(found)[:blocks] for found in quarters]
        scales = [work.square.scales(add(in_square, number)) for number in range(blocks)]

        def added(finish: Finish) -> list[Any]:
            values = list(totals)
            for s in range(self.columns):
                for number in range(blocks):
                    place = [s, add(at, number)]
                    scale = broadcast(load(work.short.scales, place), LANES)
                    shift = broadcast(load(work.short.shifts, place), LANES)
                    dot = dots[s][number]
                    values[s] = finish(values[s], dot, fast_scale(dot, scales[number]), scale, shift)
            return values

        types = [total.type for total in totals]
        return either(work.large, lambda: added(add_carefully), lambda: added(add_scaled), types)

    def _dots(self, row: Sequence[Any], s: int, c: Size, short: ShortRows) -> Any:
        """Return the sums of the products of the words of a row."""
        total = load_vector(short.starts, [s, scaled(c, LANES)], LANES)
        for part, values in enumerate(row):
            place = add(scaled(c, self.chunk), part * BYTES)
            total = byte_dots(total, values, load_vector(short.integers, [s, place], BYTES))
        return total

    def _blocks(self, quarters: Sequence[Any]) -> list[Any]:
        """Return the dot products of each block of a chunk, sixteen rows each."""
        found = transposed_quarters(quarters)
        step = self.size // (BYTES // QUARTER)
        blocks: list[Any] = []
        for first in range(0, len(found), step):
            total = found[first]
            for other in found[first + 1 : first + step]:
                total = arith.addi(total, other)
            blocks.append(total)
        return blocks

    def _place(self, group: _Group, s: Size, r: Size) -> list[Any]:
        m, n = (add(group.first, r), s)[:: 1 if self.long_loop == self.c.m else -1]
        return [*group.batch, m, n]

    def _read(self, group: _Group, results: Any) -> list[Any]:
        """Return the result so far, a vector of rows for each column."""
        if self.long_loop == self.c.n:
            mask = self._mask(group)
            return [load_vector(self.out, self._place(group, s, 0), LANES, mask) for s in range(self.columns)]

        def row(r: Any) -> list[Any]:
            for s in range(self.columns):
                memref.store(load(self.out, self._place(group, s, r)), results, [index(s), index(r)])
            return []

        loop(group.start, group.stop, 1, row)
        return [load_vector(results, [s, 0], LANES) for s in range(self.columns)]

    def _write(self, group: _Group, results: Any, sums: Sequence[Any]) -> None:
        if self.long_loop == self.c.n:
            mask = self._mask(group)
            for s, total in enumerate(sums):
                store_vector(total, self.out, self._place(group, s, 0), mask)
            return
        for s, total in enumerate(sums):
            store_vector(total, results, [s, 0])

        def row(r: Any) -> list[Any]:
            for s in range(self.columns):
                memref.store(load(results, [s, r]), self.out, [index(i) for i in self._place(group, s, r)])
            return []

        loop(group.start, group.stop, 1, row)

    def _mask(self, group: _Group) -> Any:
        """Return the mask of the wanted rows, None where all are."""
        if (group.start, group.stop) == (0, ROWS):
            return None
        before = first_lanes(LANES, group.start)
        return arith.andi(
            first_lanes(LANES, group.stop), arith.xori(before, splat(-1, LANES, before.type.element_type))
        )


def _not_negative(value: Size) -> Size:
    return max(value, 0) if isinstance(value, int) else arith.maxsi(value, index(0))
