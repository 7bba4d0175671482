"""Packing parts of both sides of a contraction into f32 panels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mx_dialect._mlir import ir, vector
from mx_dialect.schedule.contraction import Contraction, reads_along
from mx_dialect.schedule.emitter import (
    Size,
    add,
    ceildiv,
    first_lanes,
    floordiv,
    loop,
    minimum,
    scaled,
    store_vector,
    sub,
)
from mx_dialect.schedule.side import SideReader


@dataclass(frozen=True)
class Part:
    """A part of a side: in one matrix of a batch, `count` rows or columns from `first` on, `depth` along k from `k`."""

    batch: list[Any]
    first: Size
    count: Size
    k: Size
    depth: Size


class LeftPacker:
    """Packs rows of the left side, which lie along k, as [row][k]."""

    def __init__(self, contraction: Contraction, lanes: int):
        self._c, self._lanes = contraction, lanes
        self._reader = SideReader(contraction, contraction.lhs, contraction.k[-1], lanes)

    def pack(self, part: Part, panel: Any) -> None:
        block = self._c.block
        first = floordiv(part.k, block)

        def row(i: Any) -> list[Any]:
            m = add(part.first, i)

            def one_block(b: Any) -> list[Any]:
                at = add(first, b)
                base = scaled(at, block)
                shared = self._reader.block_values(self._c.loops(part.batch, m, 0, at, 0, base))
                for place in range(0, block, self._lanes):
                    loops = self._c.loops(part.batch, m, 0, at, place, add(base, place))
                    store_vector(self._reader.element(loops, shared), panel, [i, add(scaled(b, block), place)])
                return []

            return loop(0, floordiv(part.depth, block), 1, one_block)

        loop(0, part.count, 1, row)


@dataclass(frozen=True)
class _Strip:
    """A vector of columns of a block along k: the first column, the block, where along k it starts, and its place."""

    part: Part
    column: Size
    block: Size
    k: Size
    panel: Size
    row: Size
    lane: Size


class RightPacker:
    """Packs columns of the right side as [columns / width][k][width]; columns that are not there are zeros or copies.

    `count` is the extent of all columns. Rows of the right side lie along n or along k; those are transposed in
    registers.
    """

    def __init__(self, contraction: Contraction, lanes: int, width: int, count: Size):
        self._c, self._lanes, self._width, self._count = contraction, lanes, width, count
        self._along_k = reads_along(contraction.rhs, contraction.k[-1])
        along = contraction.k[-1] if self._along_k else contraction.n
        self._reader = SideReader(contraction, contraction.rhs, along, lanes)
        self._ragged = not (isinstance(count, int) and count % width == 0)

    def pack(self, part: Part, panel: Any) -> None:
        block, width = self._c.block, self._width
        first = floordiv(part.k, block)

        def columns(j: Any) -> list[Any]:
            def one_block(b: Any) -> list[Any]:
                at = add(first, b)

                def strip(lane: Any) -> list[Any]:
                    column = add(add(part.first, scaled(j, width)), lane)
                    found = _Strip(part, column, at, scaled(at, block), j, scaled(b, block), lane)
                    return (self._transpose if self._along_k else self._copy)(found, panel)

                return loop(0, width, self._lanes, strip)

            return loop(0, floordiv(part.depth, block), 1, one_block)

        loop(0, ceildiv(part.count, width), 1, columns)

    def _loops(self, strip: _Strip, column: Size, place: Size) -> list[Any]:
        return self._c.loops(strip.part.batch, 0, column, strip.block, place, add(strip.k, place))

    def _copy(self, strip: _Strip, panel: Any) -> list[Any]:
        """Pack a strip whose rows lie along n."""
        mask = None
        if self._ragged:
            mask = first_lanes(self._lanes, minimum(self._lanes, not_negative(sub(self._count, strip.column))))
        shared = self._reader.block_values(self._loops(strip, strip.column, 0), mask)

        def step(i: Any) -> list[Any]:
            value = self._reader.element(self._loops(strip, strip.column, i), shared, mask)
            store_vector(value, panel, [strip.panel, add(strip.row, i), strip.lane])
            return []

        return loop(0, self._c.block, 1, step)

    def _transpose(self, strip: _Strip, panel: Any) -> list[Any]:
        """Pack a strip whose columns lie along k."""
        columns = [add(strip.column, lane) for lane in range(self._lanes)]
        if self._ragged:
            # Columns beyond the last are the last again; nothing is kept of what they are multiplied with.
            columns = [minimum(column, sub(self._count, 1)) for column in columns]
        shared = [self._reader.block_values(self._loops(strip, column, 0)) for column in columns]

        def square(place: Any) -> list[Any]:
            rows = [
                self._reader.element(self._loops(strip, column, place), values)
                for column, values in zip(columns, shared, strict=True)
            ]
            for i, value in enumerate(transposed(rows)):
                store_vector(value, panel, [strip.panel, add(add(strip.row, place), i), strip.lane])
            return []

        return loop(0, self._c.block, self._lanes, square)


def not_negative(value: Size) -> Size:
    """Return a count that is negative only where it is known as such; masks take negative values for 0."""
    return max(value, 0) if isinstance(value, int) else value


def transposed(rows: Sequence[Any]) -> list[Any]:
    """Return the columns of a square of vectors, as many as each has lanes, a power of two."""
    lanes = len(rows)
    values = list(rows)
    distance = 1
    while distance < lanes:
        odd = [bool(i & distance) for i in range(lanes)]
        low = [i + lanes - distance if odd[i] else i for i in range(lanes)]
        high = [i + lanes if odd[i] else i + distance for i in range(lanes)]
        for i in range(lanes):
            if not odd[i]:
                a, b = values[i], values[i + distance]
                values[i], values[i + distance] = _shuffle(a, b, low), _shuffle(a, b, high)
        distance *= 2
    return values


def _shuffle(a: Any, b: Any, mask: Sequence[int]) -> Any:
    return vector.shuffle(a, b, ir.DenseI64ArrayAttr.get(list(mask)))
