"""The panel schedule: both sides in f32 panels that fit the caches, a register tile of the result in between.

    for n in steps of NC, k in steps of KC:
      pack rhs[k.., n..] as [NC / NR][KC][NR]                       // decoded, read by vectors of NR
      for m in steps of MC:
        decode lhs[m.., k..] as [MC][KC]
        for each NR columns, each MR rows:
          acc[MR][NR] in registers
          for k: acc += broadcast lhs[m, k] * rhs[k, NR columns]

Columns that do not fill a vector are masked where the result is read and written, and zero in the panel. Rows that do
not fill a tile are worked on by narrower tiles.
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
    ceildiv,
    first_lanes,
    floordiv,
    load,
    load_vector,
    loop,
    minimum,
    prefetch,
    release,
    scaled,
    scratch,
    store_vector,
    sub,
    tiles,
    zeros,
)
from mx_dialect.schedule.panel_packing import LeftPacker, Part, RightPacker, not_negative
from mx_dialect.schedule.span import Division, Span, bounds


@dataclass(frozen=True)
class PanelPlan:
    """Sizes of the panel schedule: a register tile of `rows` x `vectors` vectors of `lanes`, and cache blocks.

    `unroll` steps along k are one iteration. Block sizes count rows, columns and entries along k.
    """

    lanes: int
    rows: int
    vectors: int
    unroll: int
    block_m: int
    block_n: int
    block_k: int

    @property
    def columns(self) -> int:
        return self.lanes * self.vectors


def emit(contraction: Contraction, plan: PanelPlan, span: Span | None = None) -> None:
    """Replace a contraction on buffers, or a span of it, by the panel schedule."""
    with ir.InsertionPoint(contraction.op), contraction.op.location:
        _Panel(contraction, plan, span).emit()
    contraction.op.erase()


def refusal(contraction: Contraction, plan: PanelPlan) -> str | None:
    """Return why the schedule does not apply to a contraction, or None."""
    place = contraction.k[-1]
    if not reads_along(contraction.lhs, place):
        return "the left side's rows do not lie along k"
    if not reads_along(contraction.rhs, place) and not reads_along(contraction.rhs, contraction.n):
        return "the right side's rows lie neither along k nor along n"
    if contraction.block % plan.lanes:
        return f"vectors of {plan.lanes} do not divide blocks of {contraction.block}"
    if plan.block_k % contraction.block or plan.block_m % plan.rows or plan.block_n % plan.columns:
        return "block_k, block_m and block_n must be multiples of the blocks along k, of rows, and of lanes * vectors"
    return None


def division(contraction: Contraction, plan: PanelPlan, parts: int) -> Division:
    """Return how to divide the work in so many parts: by columns if they are many, else by rows.

    Parts by columns decode the left side once each, parts by rows the right side, which takes longer.
    """
    columns, rows = contraction.extents[contraction.n], contraction.extents[contraction.m]
    if (columns != DYNAMIC and columns >= _PANELS_A_PART * parts * plan.columns) or rows == 1:
        return Division(contraction.n, plan.columns)
    return Division(contraction.m, plan.rows)


_PANELS_A_PART = 4


class _Panel:
    def __init__(self, contraction: Contraction, plan: PanelPlan, span: Span | None):
        self.c, self.plan = contraction, plan
        self.m, self.n = extent(contraction, contraction.m), extent(contraction, contraction.n)
        self.k = depth(contraction)
        self.rows = bounds(span, contraction.m, self.m)
        self.columns = bounds(span, contraction.n, self.n)
        self.out = output(contraction)
        self.left = LeftPacker(contraction, plan.lanes)
        self.right = RightPacker(contraction, plan.lanes, plan.columns, self.n)

    def scratch_panels(self, block_m: int, block_n: int, block_k: int) -> tuple[Any, Any]:
        """Allocate panels of both sides for blocks of these sizes."""
        right_panel = scratch([block_n // self.plan.columns, block_k, self.plan.columns])
        # Rows a power of two apart would share few sets of the first cache.
        return scratch([block_m, block_k + self.plan.lanes]), right_panel

    def emit(self) -> None:
        if 0 in (self.k, self.m, self.n):
            return
        plan = self.plan
        block_k, block_m = _at_most(plan.block_k, self.k), _at_most(plan.block_m, self.m)
        block_n = _at_most(
            plan.block_n, -(-self.n // plan.columns) * plan.columns if isinstance(self.n, int) else self.n
        )
        left_panel, right_panel = self.scratch_panels(block_m, block_n, block_k)

        def matrix(batch: list[Any]) -> None:
            def columns(n0: Any) -> list[Any]:
                count = minimum(block_n, sub(self.columns[1], n0))

                def along_k(k0: Any) -> list[Any]:
                    right = Part(batch, n0, count, k0, minimum(block_k, sub(self.k, k0)))
                    self.right.pack(right, right_panel)

                    def rows(m0: Any) -> list[Any]:
                        left = Part(batch, m0, minimum(block_m, sub(self.rows[1], m0)), k0, right.depth)
                        self.left.pack(left, left_panel)
                        _Tiles(self, left, right, left_panel, right_panel).emit()
                        return []

                    return loop(*self.rows, block_m, rows)

                return loop(0, self.k, block_k, along_k)

            loop(*self.columns, block_n, columns)

        for_each_batch(self.c, matrix)
        release(right_panel)
        release(left_panel)


class PartPanels:
    """Panels for products of parts of both sides, whose sizes are the plan's blocks at most.

    Parts begin at multiples of the plan's rows and columns, and end there or where the sides end.
    """

    def __init__(self, contraction: Contraction, plan: PanelPlan):
        self._panel = _Panel(contraction, plan, None)
        self._left, self._right = self._panel.scratch_panels(plan.block_m, plan.block_n, plan.block_k)

    def pack_left(self, part: Part) -> None:
        self._panel.left.pack(part, self._left)

    def pack_right(self, part: Part) -> None:
        self._panel.right.pack(part, self._right)

    def multiply(self, left: Part, right: Part) -> None:
        """Add the product of the packed parts to the result."""
        _Tiles(self._panel, left, right, self._left, self._right).emit()

    def release(self) -> None:
        release(self._right)
        release(self._left)


def _at_most(size: int, extent_: Size) -> int:
    return min(size, extent_) if isinstance(extent_, int) else size


class _Tiles:
    """The register tiles of one block of rows, columns and depth."""

    def __init__(self, panel: _Panel, left: Part, right: Part, left_panel: Any, right_panel: Any):
        self._plan, self._out = panel.plan, panel.out
        self._m, self._n = panel.m, panel.n
        self._unroll = panel.plan.unroll if panel.c.block % panel.plan.unroll == 0 else 1
        self._left, self._right = left, right
        self._left_panel, self._right_panel = left_panel, right_panel

    def emit(self) -> None:
        columns, lanes = self._plan.columns, self._plan.lanes
        whole, all_ = floordiv(self._right.count, columns), ceildiv(self._right.count, columns)

        def full(j: Any) -> list[Any]:
            return self._rows(j, self._plan.vectors, None)

        loop(0, whole, 1, full)
        if isinstance(self._n, int) and self._n % columns == 0:
            return
        # Only the last panel of all can lack columns.
        rest = self._n % columns if isinstance(self._n, int) else None

        def ragged(j: Any) -> list[Any]:
            if rest is not None:
                return self._rows(j, -(-rest // lanes), rest)
            return self._rows(j, self._plan.vectors, sub(self._right.count, scaled(j, columns)))

        loop(whole, all_, 1, ragged)

    def _rows(self, j: Size, vectors: int, width: Size | None) -> list[Any]:
        """Work on all rows of one panel, of whose columns only the first `width` are there if that is given."""

        def tile(i: Any, rows: int) -> list[Any]:
            return self._tile(i, j, rows, vectors, width)

        tiles(0, self._left.count, self._plan.rows, self._m, tile)
        return []

    def _tile(self, i: Size, j: Size, rows: int, vectors: int, width: Size | None) -> list[Any]:
        lanes = self._plan.lanes
        m, n = add(self._left.first, i), add(self._right.first, scaled(j, self._plan.columns))
        masks = [
            None if width is None else first_lanes(lanes, minimum(lanes, not_negative(sub(width, v * lanes))))
            for v in range(vectors)
        ]
        places = [([*self._left.batch, add(m, r), add(n, v * lanes)], v) for r in range(rows) for v in range(vectors)]

        def step(k: Any, *sums: Any) -> list[Any]:
            values = list(sums)
            for u in range(self._unroll):
                at = add(k, u)
                right = [load_vector(self._right_panel, [j, at, v * lanes], lanes) for v in range(vectors)]
                for r in range(rows):
                    left = broadcast(load(self._left_panel, [add(i, r), at]), lanes)
                    for v in range(vectors):
                        t = r * vectors + v
                        values[t] = vector.fma(left, right[v], values[t])
            return values

        # What the sums are added to arrives while they are computed; not in the first cache, whose sets its rows share.
        for place, _ in places:
            prefetch(self._out, place, level=2)
        sums = loop(0, self._left.depth, self._unroll, step, [zeros(lanes) for _ in places])
        for (place, v), value in zip(places, sums, strict=True):
            total = arith.addf(load_vector(self._out, place, lanes, masks[v]), value)
            store_vector(total, self._out, place, masks[v])
        return []
