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
from mx_dialect.schedule.contraction import DYNAMIC, Contraction, reads_along
from mx_dialect.schedule.emitter import (
    Size,
    add,
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
from mx_dialect.schedule.side import SideReader

MAX_SUMS = 64
"""More would be spilled to memory all the time, and take long to compile."""


@dataclass(frozen=True)
class RowsPlan:
    """Sizes of the rows schedule: `rows` of the long side at once, vectors of `lanes`.

    `long` is the side that streams, "lhs" or "rhs". `strips` is how many vectors of sums a row and a column have.
    """

    lanes: int
    rows: int
    strips: int
    long: str


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
            self._all_rows(outer, short, dict(zip(shared, scales, strict=True)))

        batches([], self.c.batch)
        for buffer in (short, *scales):
            release(buffer)

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

        found = loop(0, floordiv(self.k, self.block), 1, step, [zeros(lanes) for _ in sums])
        totals = dict(zip(sums, found, strict=True))
        for r in range(rows):
            for s in range(self.columns):
                self._add(batch, add(first, r), s, [totals[r, s, t] for t in range(plan.strips)])

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


def _strip(wide: Any, start: int, lanes: int) -> Any:
    if wide.type.shape == [lanes]:
        return wide
    numbers = [ir.ArrayAttr.get([ir.IntegerAttr.get(ir.IntegerType.get_signless(64), n)]) for n in (start, lanes, 1)]
    return vector.extract_strided_slice(ir.VectorType.get([lanes], wide.type.element_type), wide, *numbers)
