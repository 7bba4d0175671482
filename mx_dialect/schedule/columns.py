"""The columns schedule: few rows of the left side times a right side whose rows run along n, decoded on the way.

    left[m][k] = the left side in f32
    for n in steps of V vectors:
      sum[M][V] in registers
      for each block along k:
        what the block's elements share, a vector of columns each
        for k in the block: for v in V: x = decode(right[k, n + v]); for each m: sum[m][v] += left[m][k] * x
      out[m, n..] += sum[m]

Nothing of the right side is stored in between.
"""

from dataclasses import dataclass
from typing import Any

from mx_dialect._mlir import arith, ir, vector
from mx_dialect.schedule.buffers import depth, extent, for_each_batch, output
from mx_dialect.schedule.contraction import DYNAMIC, Contraction, reads_along
from mx_dialect.schedule.emitter import (
    Size,
    add,
    broadcast,
    first_lanes,
    floordiv,
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
from mx_dialect.schedule.rows import MAX_SUMS
from mx_dialect.schedule.short import decode_rows
from mx_dialect.schedule.side import SideReader
from mx_dialect.schedule.span import Division, Span, bounds


@dataclass(frozen=True)
class ColumnsPlan:
    """Sizes of the columns schedule: `vectors` vectors of `lanes` columns at once, `unroll` steps along k."""

    lanes: int
    vectors: int
    unroll: int


def emit(contraction: Contraction, plan: ColumnsPlan, span: Span | None = None) -> None:
    """Replace a contraction on buffers, or a span of it, by the columns schedule."""
    with ir.InsertionPoint(contraction.op), contraction.op.location:
        _Columns(contraction, plan, span).emit()
    contraction.op.erase()


def refusal(contraction: Contraction, plan: ColumnsPlan) -> str | None:
    """Return why the schedule does not apply to a contraction, or None."""
    if not reads_along(contraction.rhs, contraction.n):
        return "the right side's rows do not lie along n"
    rows = contraction.extents[contraction.m]
    if DYNAMIC in (rows, contraction.depth):
        return "the extent of m or k is dynamic"
    if rows * plan.vectors > MAX_SUMS:
        return f"more than {MAX_SUMS} vectors of sums"
    if contraction.block % plan.lanes or contraction.block % plan.unroll:
        return f"vectors of {plan.lanes} or {plan.unroll} steps do not divide blocks of {contraction.block}"
    return None


def division(contraction: Contraction, plan: ColumnsPlan, parts: int) -> Division:
    """Return how to divide the work: by columns."""
    return Division(contraction.n, plan.lanes * plan.vectors)


class _Columns:
    def __init__(self, contraction: Contraction, plan: ColumnsPlan, span: Span | None):
        self.c, self.plan = contraction, plan
        self.start, self.n = bounds(span, contraction.n, extent(contraction, contraction.n))
        self.rows: int = extent(contraction, contraction.m)
        self.k: int = depth(contraction)
        self.right = SideReader(contraction, contraction.rhs, contraction.n, plan.lanes)
        self.out = output(contraction)

    def emit(self) -> None:
        if 0 in (self.k, self.n, self.rows):
            return
        left = scratch([self.rows, self.k])
        width = self.plan.lanes * self.plan.vectors

        def matrix(batch: list[Any]) -> None:
            decode_rows(self.c, self.c.lhs, self.c.m, self.rows, self.k, batch, left, self.plan.lanes)
            whole = add(self.start, scaled(floordiv(sub(self.n, self.start), width), width))

            def tile(n: Any) -> list[Any]:
                return self._tile(batch, n, left, None)

            loop(self.start, whole, width, tile)
            self._rest(batch, whole, width, left)

        for_each_batch(self.c, matrix)
        release(left)

    def _rest(self, batch: list[Any], start: Size, width: int, left: Any) -> None:
        """Work on the columns that do not fill a tile, under masks."""
        if isinstance(start, int) and isinstance(self.n, int):
            if start < self.n:
                self._tile(batch, start, left, self.n - start)
            return

        def tile(n: Any) -> list[Any]:
            return self._tile(batch, n, left, sub(self.n, n))

        loop(start, self.n, width, tile)

    def _tile(self, batch: list[Any], n: Size, left: Any, width: Size | None) -> list[Any]:
        """Work on one tile of columns, of which only the first `width` are there if that is given."""
        lanes, block = self.plan.lanes, self.c.block
        count = self.plan.vectors if not isinstance(width, int) else min(self.plan.vectors, -(-width // lanes))
        masks = [
            None if width is None else first_lanes(lanes, minimum(lanes, sub(width, v * lanes))) for v in range(count)
        ]
        sums = [(m, v) for m in range(self.rows) for v in range(count)]

        def blocks(at: Any, *totals: Any) -> list[Any]:
            base = scaled(at, block)
            shared = [
                self.right.block_values(self.c.loops(batch, 0, add(n, v * lanes), at, 0, base), masks[v])
                for v in range(count)
            ]

            def step(i: Any, *totals: Any) -> list[Any]:
                values = dict(zip(sums, totals, strict=True))
                for u in range(self.plan.unroll):
                    place = add(i, u)
                    k = add(base, place)
                    factors = [broadcast(load(left, [m, k]), lanes) for m in range(self.rows)]
                    for v in range(count):
                        loops = self.c.loops(batch, 0, add(n, v * lanes), at, place, k)
                        x = self.right.element(loops, shared[v], masks[v])
                        for m in range(self.rows):
                            values[m, v] = vector.fma(factors[m], x, values[m, v])
                return [values[key] for key in sums]

            return loop(0, block, self.plan.unroll, step, totals)

        found = loop(0, floordiv(self.k, block), 1, blocks, [zeros(lanes) for _ in sums])
        for (m, v), total in zip(sums, found, strict=True):
            place = [*batch, m, add(n, v * lanes)]
            old = load_vector(self.out, place, lanes, masks[v])
            store_vector(arith.addf(old, total), self.out, place, masks[v])
        return []
