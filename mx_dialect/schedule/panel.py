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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mx_dialect._mlir import ir, vector
from mx_dialect.schedule.buffers import depth, extent, output
from mx_dialect.schedule.contraction import Contraction, reads_along
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
    release,
    scaled,
    scratch,
    store_vector,
    sub,
)
from mx_dialect.schedule.side import SideReader


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


def emit(contraction: Contraction, plan: PanelPlan) -> None:
    """Replace a contraction on buffers by the panel schedule."""
    with ir.InsertionPoint(contraction.op), contraction.op.location:
        _Panel(contraction, plan).emit()
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


class _Panel:
    def __init__(self, contraction: Contraction, plan: PanelPlan):
        self.c = contraction
        self.plan = plan
        self.out = output(contraction)
        self.m, self.n, self.k = (
            extent(contraction, contraction.m),
            extent(contraction, contraction.n),
            depth(contraction),
        )
        place = contraction.k[-1]
        self.lhs_reader = SideReader(contraction, contraction.lhs, place, plan.lanes)
        self.by_rows = reads_along(contraction.rhs, place)
        along = place if self.by_rows else contraction.n
        self.rhs_reader = SideReader(contraction, contraction.rhs, along, plan.lanes)

    def emit(self) -> None:
        plan, c = self.plan, self.c
        block_k = plan.block_k if not isinstance(self.k, int) else min(plan.block_k, self.k)
        block_n = plan.block_n if not isinstance(self.n, int) else min(plan.block_n, _up(self.n, plan.columns))
        block_m = plan.block_m if not isinstance(self.m, int) else min(plan.block_m, self.m)
        if 0 in (self.k, self.m, self.n):
            return
        rhs_panel = scratch([block_n // plan.columns, block_k, plan.columns])
        # Rows a power of two apart would share few sets of the first cache.
        lhs_panel = scratch([block_m, block_k + plan.lanes])

        def batches(outer: list[Any], loops: Sequence[int]) -> None:
            if loops:
                loop(0, extent(c, loops[0]), 1, lambda i: batches([*outer, i], loops[1:]) or [])
                return
            columns(outer)

        def columns(batch: list[Any]) -> None:
            loop(0, self.n, block_n, lambda n0: along_k(batch, n0) or [])

        def along_k(batch: list[Any], n0: Size) -> None:
            loop(0, self.k, block_k, lambda k0: panels(batch, n0, k0) or [])

        def panels(batch: list[Any], n0: Size, k0: Size) -> None:
            nc = minimum(block_n, sub(self.n, n0))
            kc = minimum(block_k, sub(self.k, k0))
            self._pack_rhs(rhs_panel, batch, n0, k0, nc, kc)
            loop(0, self.m, block_m, lambda m0: rows(batch, n0, k0, m0, nc, kc) or [])

        def rows(batch: list[Any], n0: Size, k0: Size, m0: Size, nc: Size, kc: Size) -> None:
            mc = minimum(block_m, sub(self.m, m0))
            self._pack_lhs(lhs_panel, batch, m0, k0, mc, kc)
            tile = _Tiles(self, batch, m0, n0, kc, lhs_panel, rhs_panel)
            tile.emit(mc, nc)

        batches([], c.batch)
        release(rhs_panel)
        release(lhs_panel)

    def _pack_lhs(self, panel: Any, batch: list[Any], m0: Size, k0: Size, mc: Size, kc: Size) -> None:
        block, lanes = self.c.block, self.plan.lanes
        first = floordiv(k0, block)

        def row(i: Any) -> list[Any]:
            m = add(m0, i)

            def blocks(b: Any) -> list[Any]:
                at = add(first, b)
                base = scaled(at, block)
                loops = self.c.loops(batch, m, 0, at, 0, base)
                shared = self.lhs_reader.block_values(loops)
                for place in range(0, block, lanes):
                    loops = self.c.loops(batch, m, 0, at, place, add(base, place))
                    value = self.lhs_reader.element(loops, shared)
                    store_vector(value, panel, [i, add(scaled(b, block), place)])
                return []

            return loop(0, floordiv(kc, block), 1, blocks)

        loop(0, mc, 1, row)

    def _pack_rhs(self, panel: Any, batch: list[Any], n0: Size, k0: Size, nc: Size, kc: Size) -> None:
        plan = self.plan
        block, lanes, columns = self.c.block, plan.lanes, plan.columns
        first = floordiv(k0, block)

        def panel_of(j: Any) -> list[Any]:
            def blocks(b: Any) -> list[Any]:
                at = add(first, b)
                base = scaled(at, block)
                for v in range(plan.vectors):
                    n = add(add(n0, scaled(j, columns)), v * lanes)
                    if self.by_rows:
                        self._pack_transposed(panel, batch, n, at, base, j, scaled(b, block), v)
                    else:
                        self._pack_columns(panel, batch, n, at, base, j, scaled(b, block), v)
                return []

            return loop(0, floordiv(kc, block), 1, blocks)

        loop(0, ceildiv(nc, columns), 1, panel_of)

    def _pack_columns(
        self, panel: Any, batch: list[Any], n: Size, at: Size, base: Size, j: Size, start: Size, v: int
    ) -> None:
        """Pack one vector of columns of a block of rows of the right side."""
        block, lanes = self.c.block, self.plan.lanes
        ragged = not (isinstance(self.n, int) and self.n % self.plan.columns == 0)
        mask = first_lanes(lanes, minimum(lanes, _not_negative(sub(self.n, n)))) if ragged else None
        shared = self.rhs_reader.block_values(self.c.loops(batch, 0, n, at, 0, base), mask)

        def step(i: Any) -> list[Any]:
            value = self.rhs_reader.element(self.c.loops(batch, 0, n, at, i, add(base, i)), shared, mask)
            store_vector(value, panel, [j, add(start, i), v * lanes])
            return []

        loop(0, block, 1, step)

    def _pack_transposed(
        self, panel: Any, batch: list[Any], n: Size, at: Size, base: Size, j: Size, start: Size, v: int
    ) -> None:
        """Pack one vector of columns of a block of the right side whose rows run along k: transposed in registers."""
        block, lanes = self.c.block, self.plan.lanes
        ragged = not (isinstance(self.n, int) and self.n % self.plan.columns == 0)
        shared: list[Any] = []
        numbers: list[Any] = []
        for lane in range(lanes):
            column = add(n, lane)
            # Columns beyond the last are read again; nothing reads what is computed from them.
            column = minimum(column, sub(self.n, 1)) if ragged else column
            numbers.append(column)
            shared.append(self.rhs_reader.block_values(self.c.loops(batch, 0, column, at, 0, base)))
        for place in range(0, block, lanes):
            found = [
                self.rhs_reader.element(self.c.loops(batch, 0, column, at, place, add(base, place)), values)
                for column, values in zip(numbers, shared, strict=True)
            ]
            for i, value in enumerate(transposed(found)):
                store_vector(value, panel, [j, add(start, place + i), v * lanes])


class _Tiles:
    """The register tiles of one block of rows, columns and depth."""

    def __init__(self, panel: _Panel, batch: list[Any], m0: Size, n0: Size, kc: Size, lhs_panel: Any, rhs_panel: Any):
        self.p, self.batch, self.m0, self.n0, self.kc = panel, batch, m0, n0, kc
        self.lhs_panel, self.rhs_panel = lhs_panel, rhs_panel

    def emit(self, mc: Size, nc: Size) -> None:
        columns = self.p.plan.columns
        whole = floordiv(nc, columns)

        def full(j: Any) -> list[Any]:
            self._rows(mc, j, self.p.plan.vectors, None)
            return []

        loop(0, whole, 1, full)
        n = self.p.n
        if isinstance(n, int):
            rest = n % columns
            if rest:
                # The last panel of the last block.
                def last(j: Any) -> list[Any]:
                    self._rows(mc, j, -(-rest // self.p.plan.lanes), rest)
                    return []

                loop(whole, ceildiv(nc, columns), 1, last)
            return

        def ragged(j: Any) -> list[Any]:
            self._rows(mc, j, self.p.plan.vectors, sub(nc, scaled(j, columns)))
            return []

        loop(whole, ceildiv(nc, columns), 1, ragged)

    def _rows(self, mc: Size, j: Size, vectors: int, width: Size | None) -> None:
        start: Size = 0
        size = self.p.plan.rows
        while size:
            stop = add(start, scaled(floordiv(sub(mc, start), size), size))
            count = size

            def tile(i: Any, count: int = count) -> list[Any]:
                self._tile(i, j, count, vectors, width)
                return []

            loop(start, stop, size, tile)
            start = stop
            if isinstance(mc, int) and isinstance(start, int):
                size = mc - start
            else:
                size //= 2

    def _tile(self, i: Size, j: Size, rows: int, vectors: int, width: Size | None) -> None:
        plan, out = self.p.plan, self.p.out
        lanes = plan.lanes
        m, n = add(self.m0, i), add(self.n0, scaled(j, plan.columns))
        order = self.p.c
        masks = [
            None if width is None else first_lanes(lanes, minimum(lanes, _not_negative(sub(width, v * lanes))))
            for v in range(vectors)
        ]

        def place(r: int, v: int) -> list[Any]:
            return [*self.batch, add(m, r), add(n, v * lanes)]

        tiles = [(r, v) for r in range(rows) for v in range(vectors)]
        acc = [load_vector(out, place(r, v), lanes, masks[v]) for r, v in tiles]
        unroll = plan.unroll if order.block % plan.unroll == 0 else 1

        def step(k: Any, *acc: Any) -> list[Any]:
            values = list(acc)
            for u in range(unroll):
                at = add(k, u)
                rhs = [load_vector(self.rhs_panel, [j, at, v * lanes], lanes) for v in range(vectors)]
                for r in range(rows):
                    lhs = broadcast(load(self.lhs_panel, [add(i, r), at]), lanes)
                    for v in range(vectors):
                        t = r * vectors + v
                        values[t] = vector.fma(lhs, rhs[v], values[t])
            return values

        acc = loop(0, self.kc, unroll, step, acc)
        for (r, v), value in zip(tiles, acc, strict=True):
            store_vector(value, out, place(r, v), masks[v])


def transposed(rows: Sequence[Any]) -> list[Any]:
    """Return the columns of a square of vectors, as many as each has lanes, a power of two."""
    lanes = len(rows)
    values = list(rows)
    distance = 1
    while distance < lanes:
        low = [i + (lanes if i & distance else 0) - (distance if i & distance else 0) for i in range(lanes)]
        high = [(i if i & distance else i + distance) + (lanes if i & distance else 0) for i in range(lanes)]
        for i in range(lanes):
            if not i & distance:
                a, b = values[i], values[i + distance]
                values[i], values[i + distance] = _shuffle(a, b, low), _shuffle(a, b, high)
        distance *= 2
    return values


def _shuffle(a: Any, b: Any, mask: Sequence[int]) -> Any:
    return vector.shuffle(a, b, ir.DenseI64ArrayAttr.get(list(mask)))


def _not_negative(value: Size) -> Size:
    return max(value, 0) if isinstance(value, int) else value


def _up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
