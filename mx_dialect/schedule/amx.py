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
from mx_dialect.schedule.amx_packing import BY_GROUPS, BY_ROWS, GRANULE, ColumnPacker, RowPacker, parts_of
from mx_dialect.schedule.amx_panels import Panels
from mx_dialect.schedule.amx_products import Products
from mx_dialect.schedule.amx_spread import layouts
from mx_dialect.schedule.amx_tiles import Tiles
from mx_dialect.schedule.amx_words import EXACT, SPLIT
from mx_dialect.schedule.buffers import depth, extent, for_each_batch
from mx_dialect.schedule.contraction import DYNAMIC, Contraction, divisor_of, reads_along
from mx_dialect.schedule.emitter import (
    Size,
    either,
    index,
    loop,
    minimum,
    sub,
)
from mx_dialect.schedule.panel_packing import Part
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
            self._blocks(batch, tiles, self.block_n, self.block_k)
            return

        def by_width(width: int) -> Callable[[], list[Any]]:
            # Of fewer columns the panel holds more along k.
            block_k = min(self.k, self.plan.block_k * (self.block_n // width))

            def emit() -> list[Any]:
                self._blocks(batch, tiles, width, block_k)
                return []

            return emit

        few = arith.cmpi(arith.CmpIPredicate.sle, self.n, index(GRANULE))
        either(few, by_width(GRANULE), by_width(self.block_n))

    def _blocks(self, batch: list[Any], tiles: Tiles, block_n: int, block_k: int) -> None:
        """Work on a matrix in blocks; if the short side's are of the least width, sum tiles while packing rows."""
        streams = block_n == GRANULE
        block_m = GRANULE if streams else self.block_m
        left = RowPacker(self.c, self.parts[0], block_m, block_k, BY_GROUPS if streams else BY_ROWS)
        right = ColumnPacker(self.c, self.parts[1], self.n, left.pairing)
        panels = Panels(self.parts, layouts(self.n, self.parts[1]) if streams else [], block_m, block_n, block_k)
        fallback = F32Products(self.plain, self.plan.long, block_m, block_n, block_k)

        def columns(n0: Any) -> list[Any]:
            count = minimum(block_n, sub(self.columns[1], n0))

            def along_k(k0: Any) -> list[Any]:
                short = Part(batch, n0, count, k0, minimum(block_k, sub(self.k, k0)))
                right.pack(short, panels.right)
                panels.spread(short)
                fallback.begin()

                def rows(m0: Any) -> list[Any]:
                    long = Part(batch, m0, minimum(block_m, sub(self.rows[1], m0)), k0, short.depth)
                    work = Products(self.plain, self.plan.long, tiles, panels, long, short)
                    left.begin(long)
                    if streams:
                        work.sum_while_packing(left)
                    else:
                        left.pack(long, panels.left)
                    add_ = work.add_sums if streams else work.add_all
                    either(self._are_moderate(left, long, right), add_, partial(fallback.emit, long, short))
                    return []

                return loop(*self.rows, block_m, rows)

            return loop(0, self.k, block_k, along_k)

        loop(*self.columns, block_n, columns)
        for memory in (panels, left, right, fallback):
            memory.release()

    def _are_moderate(self, left: RowPacker, long: Part, right: ColumnPacker) -> Any:
        """Return whether tiles compute the products of what is packed."""

        def yes() -> list[Any]:
            return [arith.constant(i1, 1)]

        def look_again() -> list[Any]:
            # Blocks of zeros may have any scale but NaN.
            left.examine(long)
            return [are_moderate(left.range, right.range)]

        i1 = ir.IntegerType.get_signless(1)
        return either(are_moderate(left.range, right.range), yes, look_again, [i1])[0]


def _up_to(size: int, extent_: Size) -> int:
    """Return a size, or an extent in whole granules if that is less."""
    return min(size, -(-extent_ // GRANULE) * GRANULE) if isinstance(extent_, int) else size
