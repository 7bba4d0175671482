"""The rows schedule: dot products along k, for a result with few columns, or few rows.

One side streams through once, the long one; the other, the short one, has few rows along k and is decoded first:

    short[s][k] = the short side in f32
    for r in steps of R:
      scale[R][..] = what each block of the R rows shares, a vector of blocks at once
      sum[R][S] in registers, a vector of lanes each
      for each block: for each of the R rows:
        x = decode(long[r, block]) with its scale          // a vector along k
        for each s: sum[r][s] += x * short[s][block]
      out[r, s] += the lanes of sum[r][s] together
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mx_dialect._mlir import arith, ir, memref, vector
from mx_dialect.schedule.buffers import depth, extent, output
from mx_dialect.schedule.contraction import DYNAMIC, Contraction, Side, divisor_of, loop_of, reads_along
from mx_dialect.schedule.emitter import (
    Size,
    add,
    broadcast,
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
from mx_dialect.schedule.short import decode_rows
from mx_dialect.schedule.side import ScaledCode, SideReader, scaled_code
from mx_dialect.schedule.table_decoder import GROUP, LANES, ORDER, STRIPS, TableDecoder, decodes
from mx_dialect.schedule.tabulate import tabulate

MAX_SUMS = 64
"""More would be spilled to memory all the time, and take long to compile."""


@dataclass(frozen=True)
class RowsPlan:
    """Sizes of the rows schedule: `rows` of the long side at once, vectors of `lanes`.

    `long` is the side that streams, "lhs" or "rhs". `strips` is how many vectors of sums a row and a column have.
    `decode` is how elements become f32: "table", 64 at once by byte tables in registers, or "body", as they say.
    """

    lanes: int
    rows: int
    strips: int
    long: str
    decode: str


def emit(contraction: Contraction, plan: RowsPlan) -> None:
    """Replace a contraction on buffers by the rows schedule; the extent of the short side must be static."""
    with ir.InsertionPoint(contraction.op), contraction.op.location:
        _Rows(contraction, plan).emit()
    contraction.op.erase()


def refusal(contraction: Contraction, plan: RowsPlan) -> str | None:
    """Return why the schedule does not apply to a contraction, or None."""
    if plan.long not in ("lhs", "rhs"):
        return f"'long' is lhs or rhs, not {plan.long}"
    long, short, count = (
        (contraction.lhs, contraction.rhs, contraction.extents[contraction.n])
        if plan.long == "lhs"
        else (contraction.rhs, contraction.lhs, contraction.extents[contraction.m])
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
    return None if short.inputs else "the short side reads nothing"


class _Rows:
    def __init__(self, contraction: Contraction, plan: RowsPlan):
        self.c, self.plan = contraction, plan
        order = 1 if plan.long == "lhs" else -1
        self.long_loop, self.short_loop = (contraction.m, contraction.n)[::order]
        long, self.short_side = (contraction.lhs, contraction.rhs)[::order]
        self.count, self.k = extent(contraction, self.long_loop), depth(contraction)
        self.columns: int = extent(contraction, self.short_loop)
        self.block = contraction.block
        # A whole block at once, as far as registers go.
        self.width = min(self.block, 2 * plan.lanes)
        place = contraction.k[-1]
        self.long = SideReader(contraction, long, place, self.width)
        self.blocks = SideReader(contraction, long, contraction.k[0], plan.lanes, by_blocks=True)
        self.out = output(contraction)
        self.table: tuple[ScaledCode, TableDecoder] | None = None
        if plan.decode == "table":
            found = table_of(contraction, long)
            assert found is not None
            self.table = (found[0], TableDecoder(found[1]))

    def _loops(self, batch: list[Any], long: Size, short: Size, at: Size, place: Size, k: Size) -> list[Any]:
        m, n = (long, short)[:: 1 if self.long_loop == self.c.m else -1]
        return self.c.loops(batch, m, n, at, place, k)

    def emit(self) -> None:
        if 0 in (self.k, self.count, self.columns):
            return
        assert isinstance(self.k, int)
        short = scratch([self.columns, self.k])
        shared = self.blocks.shared_values()
        scales = [
            scratch([self.plan.rows, -(-self.k // self.block // self.plan.lanes) * self.plan.lanes]) for _ in shared
        ]

        def batches(outer: list[Any], loops: Sequence[int]) -> None:
            if loops:
                loop(0, extent(self.c, loops[0]), 1, lambda i: batches([*outer, i], loops[1:]) or [])
                return
            decode_rows(self.c, self.short_side, self.short_loop, self.columns, self.k, outer, short, self.plan.lanes)
            if self.table is not None:
                self._reorder(short)
            self._all_rows(outer, short, dict(zip(shared, scales, strict=True)))

        batches([], self.c.batch)
        for buffer in (short, *scales):
            release(buffer)

    def _reorder(self, short: Any) -> None:
        """Put the whole groups of the short side in the order in which tables decode the long one."""
        order = ir.DenseI64ArrayAttr.get(list(ORDER))

        def column(s: Any) -> list[Any]:
            def group(k: Any) -> list[Any]:
                values = load_vector(short, [s, k], GROUP)
                store_vector(vector.shuffle(values, values, order), short, [s, k])
                return []

            return loop(0, self.k // GROUP * GROUP, GROUP, group)

        loop(0, self.columns, 1, column)

    def _all_rows(self, batch: list[Any], short: Any, scales: dict[Any, Any]) -> None:
        start: Size = 0
        size = self.plan.rows
        while size:
            stop = add(start, scaled(floordiv(sub(self.count, start), size), size))
            count = size

            def tile(r: Any, count: int = count) -> list[Any]:
                self._tile(batch, r, count, short, scales)
                return []

            loop(start, stop, size, tile)
            start = stop
            known = isinstance(self.count, int) and isinstance(start, int)
            size = self.count - start if known else size // 2

    def _tile(self, batch: list[Any], first: Size, rows: int, short: Any, scales: dict[Any, Any]) -> None:
        plan, lanes = self.plan, self.plan.lanes
        for r in range(rows):
            self._decode_scales(batch, add(first, r), r, scales)
        sums = [(r, s, t) for r in range(rows) for s in range(self.columns) for t in range(plan.strips)]

        def step(at: Any, *totals: Any) -> list[Any]:
            base = scaled(at, self.block)
            values = dict(zip(sums, totals, strict=True))
            for start in range(0, self.block, self.width):
                k = add(base, start)
                strips = range(0, self.width, lanes)
                others = {
                    (s, i): load_vector(short, [s, add(k, i)], lanes) for s in range(self.columns) for i in strips
                }
                for r in range(rows):
                    known = {value: load(buffer, [r, at]) for value, buffer in scales.items()}
                    loops = self._loops(batch, add(first, r), 0, at, start, k)
                    wide = self.long.element(loops, known)
                    for number, i in enumerate(strips):
                        strip = _strip(wide, i, lanes)
                        for s in range(self.columns):
                            key = (r, s, number % plan.strips)
                            values[key] = vector.fma(strip, others[s, i], values[key])
            return [values[key] for key in sums]

        found = [zeros(lanes) for _ in sums]
        start = 0
        if self.table is not None:
            start = self.k // GROUP * GROUP // self.block
            found = self._table_groups(batch, first, rows, short, scales, sums, found)
        found = loop(start, floordiv(self.k, self.block), 1, step, found)
        totals = dict(zip(sums, found, strict=True))
        for r in range(rows):
            for s in range(self.columns):
                self._add(batch, add(first, r), s, [totals[r, s, t] for t in range(plan.strips)])

    def _table_groups(
        self, batch: list[Any], first: Size, rows: int, short: Any, scales: dict[Any, Any], sums: Any, start: list[Any]
    ) -> list[Any]:
        """Add the products of all whole groups of codes that tables decode."""
        assert self.table is not None
        scaled_code_, decoder = self.table
        buffer = self.c.op.operands[scaled_code_.input.number]

        def step(group: Any, *totals: Any) -> list[Any]:
            values = dict(zip(sums, totals, strict=True))
            k = scaled(group, GROUP)
            others = {
                (s, v): load_vector(short, [s, add(k, v * LANES)], LANES)
                for s in range(self.columns)
                for v in range(STRIPS)
            }
            for r in range(rows):
                loops = self._loops(batch, add(first, r), 0, floordiv(k, self.block), 0, k)
                codes = load_vector(buffer, [loops[loop_of(e)] for e in scaled_code_.input.map.results], GROUP)
                codes = arith.bitcast(ir.VectorType.get([GROUP], ir.IntegerType.get_signless(8)), codes)
                found = decoder.vectors(codes)
                scale = self._group_scale(scales[scaled_code_.scale], r, k)
                if self.columns == 1:
                    part = arith.mulf(found[0], others[0, 0])
                    for v in range(1, STRIPS):
                        part = vector.fma(found[v], others[0, v], part)
                    key = (r, 0, 0)
                    values[key] = vector.fma(part, scale, values[key])
                    continue
                for v in range(STRIPS):
                    x = arith.mulf(found[v], scale)
                    for s in range(self.columns):
                        key = (r, s, v % self.plan.strips)
                        values[key] = vector.fma(x, others[s, v], values[key])
            return [values[key] for key in sums]

        return loop(0, self.k // GROUP, 1, step, start)

    def _group_scale(self, buffer: Any, r: int, k: Size) -> Any:
        """Return the scales of a group of codes, in the lanes where the decoder leaves them."""
        first = floordiv(k, self.block)
        result = broadcast(load(buffer, [r, first]), LANES)
        for number in range(1, GROUP // self.block):
            mask = [(lane // 4 * 16) // self.block == number for lane in range(LANES)]
            other = broadcast(load(buffer, [r, add(first, number)]), LANES)
            result = arith.select(_mask(mask), other, result)
        return result

    def _decode_scales(self, batch: list[Any], row: Size, r: int, scales: dict[Any, Any]) -> None:
        """Compute what the blocks of a row share, a vector of blocks at once."""
        lanes, blocks = self.plan.lanes, floordiv(self.k, self.block)

        def some(at: Any) -> list[Any]:
            ragged = not (isinstance(blocks, int) and blocks % lanes == 0)
            mask = first_lanes(lanes, minimum(lanes, sub(blocks, at))) if ragged else None
            loops = self._loops(batch, row, 0, at, 0, scaled(at, self.block))
            for value, vector_ in self.blocks.over_blocks(loops, mask).items():
                store_vector(vector_, scales[value], [r, at])
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


def table_of(contraction: Contraction, side: Side) -> tuple[ScaledCode, Any] | None:
    """Return a side as codes with a table of their values that can be decoded in registers, or None."""
    code = scaled_code(contraction, side)
    table = None if code is None else tabulate(code.code)
    return (code, table) if code is not None and table is not None and decodes(table) else None


def _mask(lanes: Sequence[bool]) -> Any:
    i1 = ir.IntegerType.get_signless(1)
    type_ = ir.VectorType.get([len(lanes)], i1)
    return arith.constant(type_, ir.DenseElementsAttr.get([ir.IntegerAttr.get(i1, int(b)) for b in lanes], type_))


def _strip(wide: Any, start: int, lanes: int) -> Any:
    if wide.type.shape == [lanes]:
        return wide
    numbers = [ir.ArrayAttr.get([ir.IntegerAttr.get(ir.IntegerType.get_signless(64), n)]) for n in (start, lanes, 1)]
    return vector.extract_strided_slice(ir.VectorType.get([lanes], wide.type.element_type), wide, *numbers)
