"""The rows schedule: dot products along k, for a result with few columns, or few rows.

One side streams through once, the long one; the other, the short one, has few rows along k and is decoded first:

    short[s][k] = the short side in f32
    for r in steps of R:
      scale[R][..] = what each block of the R rows shares, a vector of blocks at once
      sum[R][S] in registers, a vector of lanes each
      for k in steps of a group: for each of the R rows:
        x = decode(long[r, k..])                           // vectors along k, scaled
        for each s: sum[r][s] += x * short[s][k..]
      out[r, s] += the lanes of sum[r][s] together

With one column and elements from tables a group's products are summed before they are scaled, if no value of the short
side is so large or so small that this could leave f32's range.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mx_dialect._mlir import arith, ir, memref, scf, vector
from mx_dialect.schedule.buffers import depth, extent, for_each_batch, output
from mx_dialect.schedule.contraction import DYNAMIC, Contraction, divisor_of, loop_of, reads_along
from mx_dialect.schedule.emitter import (
    Size,
    add,
    first_lanes,
    index,
    load_vector,
    loop,
    minimum,
    release,
    scaled,
    scratch,
    store_vector,
    sub,
    tiles,
    zeros,
)
from mx_dialect.schedule.moderate import all_moderate
from mx_dialect.schedule.rows_groups import BodyReader, GroupReader, Tile, table_reader
from mx_dialect.schedule.rows_nibbles import nibble_reader
from mx_dialect.schedule.short import decode_rows
from mx_dialect.schedule.side import SideReader
from mx_dialect.schedule.span import Division, Span, bounds

MAX_SUMS = 64
"""More would be spilled to memory all the time, and take long to compile."""

TABLE, NIBBLES, BODY = "table", "nibbles", "body"


@dataclass(frozen=True)
class RowsPlan:
    """Sizes of the rows schedule: `rows` of the long side at once, vectors of `lanes`.

    `long` is the side that streams, "lhs" or "rhs". `strips` is how many vectors of sums a row and a column have.
    `decode` is how elements become f32: "table", 64 at once by byte tables in registers, "nibbles", 128 packed codes at
    once by a table of f32, or "body", as it says.
    """

    lanes: int
    rows: int
    strips: int
    long: str
    decode: str


def emit(contraction: Contraction, plan: RowsPlan, span: Span | None = None) -> None:
    """Replace a contraction on buffers, or a span of it, by the rows schedule."""
    with ir.InsertionPoint(contraction.op), contraction.op.location:
        _Rows(contraction, plan, span).emit()
    contraction.op.erase()


def refusal(contraction: Contraction, plan: RowsPlan) -> str | None:
    """Return why the schedule does not apply to a contraction, or None."""
    if plan.long not in ("lhs", "rhs"):
        return f"'long' is lhs or rhs, not {plan.long}"
    long, count = (
        (contraction.lhs, contraction.extents[contraction.n])
        if plan.long == "lhs"
        else (contraction.rhs, contraction.extents[contraction.m])
    )
    if not reads_along(long, contraction.k[-1]):
        return "the rows of the side that streams do not lie along k"
    if DYNAMIC in (count, contraction.depth):
        return "the extent of the short side or along k is dynamic"
    if count * plan.rows * plan.strips > MAX_SUMS:
        return f"more than {MAX_SUMS} vectors of sums"
    if contraction.block % plan.lanes:
        return f"vectors of {plan.lanes} do not divide blocks of {contraction.block}"
    if any(divisor_of(r) not in (1, contraction.block) for i in long.inputs for r in i.map.results):
        return "the two sides have blocks of different sizes"
    if any(loop_of(r) in contraction.k for i in long.inputs for r in list(i.map.results)[:-1]):
        return "the scales of neighbouring blocks are no neighbours in memory"
    if plan.decode not in (TABLE, NIBBLES, BODY):
        return f"'decode' is {TABLE}, {NIBBLES} or {BODY}, not {plan.decode}"
    if plan.decode == TABLE and (table_reader(contraction, long) is None or plan.lanes != 16):
        return "elements of the side that streams are no codes of 8 bits that tables in registers of 512 bits decode"
    if plan.decode == NIBBLES and (nibble_reader(contraction, long) is None or plan.lanes != 16):
        return "elements of the side that streams are no packed codes of 4 bits, or registers do not have 512 bits"
    return None


def division(contraction: Contraction, plan: RowsPlan, parts: int) -> Division:
    """Return how to divide the work: by rows of the side that streams."""
    return Division(contraction.m if plan.long == "lhs" else contraction.n, plan.rows)


class _Rows:
    def __init__(self, contraction: Contraction, plan: RowsPlan, span: Span | None):
        self.c, self.plan = contraction, plan
        order = 1 if plan.long == "lhs" else -1
        self.long_loop, self.short_loop = (contraction.m, contraction.n)[::order]
        long, self.short_side = (contraction.lhs, contraction.rhs)[::order]
        self.total = extent(contraction, self.long_loop)
        self.start, self.stop = bounds(span, self.long_loop, self.total)
        self.k: int = depth(contraction)
        self.columns: int = extent(contraction, self.short_loop)
        self.block = contraction.block
        self.blocks = SideReader(contraction, long, contraction.k[0], plan.lanes, by_blocks=True)
        self.out = output(contraction)
        self.readers: list[GroupReader] = [BodyReader(contraction, long, plan.lanes)]
        makers = {TABLE: table_reader, NIBBLES: nibble_reader}
        make = makers[plan.decode](contraction, long) if plan.decode in makers else None
        if make is not None:
            self.readers.insert(0, make())

    def emit(self) -> None:
        if 0 in (self.k, self.stop, self.columns):
            return
        short = scratch([self.columns, self.k])
        blocks = -(-self.k // self.block // self.plan.lanes) * self.plan.lanes
        shared = self.blocks.shared_values()
        scales = [scratch([self.plan.rows, blocks]) for _ in shared]

        def matrix(batch: list[Any]) -> None:
            decode_rows(self.c, self.short_side, self.short_loop, self.columns, self.k, batch, short, self.plan.lanes)
            self._matrix(batch, short, dict(zip(shared, scales, strict=True)))

        for_each_batch(self.c, matrix)
        for buffer in (short, *scales):
            release(buffer)

    def _matrix(self, batch: list[Any], short: Any, scales: dict[Any, Any]) -> None:
        """Multiply one matrix; the short side is decoded already."""
        if len(self.readers) == 1 or self.columns > 1:
            self._reorder(short)
            self._all_rows(batch, short, scales, fold=False)
            return
        moderate = all_moderate(short, self.k, self.plan.lanes)
        self._reorder(short)
        either = scf.IfOp(moderate, has_else=True)
        for block, fold in ((either.then_block, True), (either.else_block, False)):
            with ir.InsertionPoint(block):
                self._all_rows(batch, short, scales, fold)
                scf.yield_([])

    def _spans(self) -> list[tuple[GroupReader, int, int]]:
        """Return which reader reads from where to where along k: the first all its whole groups, the next the rest."""
        spans: list[tuple[GroupReader, int, int]] = []
        start = 0
        for reader in self.readers:
            stop = start + (self.k - start) // reader.size * reader.size
            spans.append((reader, start, stop))
            start = stop
        return spans

    def _reorder(self, short: Any) -> None:
        """Put the groups of the short side in the order in which their reader decodes the long one."""
        for reader, start, stop in self._spans():
            if reader.order is None:
                continue
            order, size = ir.DenseI64ArrayAttr.get(list(reader.order)), reader.size

            def column(s: Any, start: int = start, stop: int = stop, size: int = size, order: Any = order) -> list[Any]:
                def group(k: Any) -> list[Any]:
                    values = load_vector(short, [s, k], size)
                    store_vector(vector.shuffle(values, values, order), short, [s, k])
                    return []

                return loop(start, stop, size, group)

            loop(0, self.columns, 1, column)

    def _all_rows(self, batch: list[Any], short: Any, scales: dict[Any, Any], fold: bool) -> None:
        def rows(r: Any, count: int) -> list[Any]:
            self._rows(batch, r, count, short, scales, fold)
            return []

        tiles(self.start, self.stop, self.plan.rows, self.total, rows)

    def _rows(self, batch: list[Any], first: Size, rows: int, short: Any, scales: dict[Any, Any], fold: bool) -> None:
        """Multiply some rows of the long side."""
        strips = 1 if fold else self.plan.strips
        keys = [(r, s, t) for r in range(rows) for s in range(self.columns) for t in range(strips)]

        def loops(r: int, at: Size, place: Size, k: Size) -> list[Any]:
            m, n = (add(first, r), 0)[:: 1 if self.long_loop == self.c.m else -1]
            return self.c.loops(batch, m, n, at, place, k)

        next_rows = [minimum(add(first, rows + r), sub(self.total, 1)) for r in range(rows)]

        def ahead(r: int, at: Size, place: Size, k: Size) -> list[Any]:
            m, n = (next_rows[r], 0)[:: 1 if self.long_loop == self.c.m else -1]
            return self.c.loops(batch, m, n, at, place, k)

        for r in range(rows):
            self._decode_scales(loops, r, scales)
        tile = Tile(rows, self.columns, strips, loops, ahead, scales, short, fold)
        totals = [zeros(self.plan.lanes) for _ in keys]
        for reader, start, stop in self._spans():

            def step(k: Any, *so_far: Any, reader: GroupReader = reader) -> list[Any]:
                sums = dict(zip(keys, so_far, strict=True))
                reader.add_products(tile, k, sums)
                return [sums[key] for key in keys]

            totals = loop(start, stop, reader.size, step, totals)
        sums = dict(zip(keys, totals, strict=True))
        for r in range(rows):
            for s in range(self.columns):
                self._add(batch, add(first, r), s, [sums[r, s, t] for t in range(strips)])

    def _decode_scales(self, loops: Any, r: int, scales: dict[Any, Any]) -> None:
        """Compute what the blocks of a row share, a vector of blocks at once."""
        lanes, blocks = self.plan.lanes, self.k // self.block

        def some(at: Any) -> list[Any]:
            mask = first_lanes(lanes, minimum(lanes, sub(blocks, at))) if blocks % lanes else None
            for value, wide in self.blocks.over_blocks(loops(r, at, 0, scaled(at, self.block)), mask).items():
                store_vector(wide, scales[value], [r, at])
            return []

        loop(0, blocks, lanes, some)

    def _add(self, batch: list[Any], row: Size, column: int, strips: Sequence[Any]) -> None:
        """Add the lanes of a sum to an entry of the result."""
        total = strips[0]
        for strip in strips[1:]:
            total = arith.addf(total, strip)
        fast = ir.Attribute.parse("#arith.fastmath<reassoc>")
        added = vector.reduction(ir.F32Type.get(), vector.CombiningKind.ADD, total, fastmath=fast)
        m, n = (row, column)[:: 1 if self.long_loop == self.c.m else -1]
        place = [index(i) for i in (*batch, m, n)]
        memref.store(arith.addf(memref.load(self.out, place), added), self.out, place)
