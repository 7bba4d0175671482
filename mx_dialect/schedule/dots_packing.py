"""Packing parts of both sides of a contraction into panels of integers, for exact dot products of blocks.

The left side is kept as unsigned bytes, the right one signed, with the start of its sums: see `dots_exact`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mx_dialect._mlir import arith, ir, memref
from mx_dialect.schedule.contraction import Contraction
from mx_dialect.schedule.dots_codes import OFFSET, CodeReader, IntegerSide
from mx_dialect.schedule.dots_exact import CODES, MAGIC_BITS, is_large, shift_of
from mx_dialect.schedule.dots_scales import ScaleReader, harmless, is_tiny
from mx_dialect.schedule.emitter import (
    Size,
    add,
    broadcast,
    ceildiv,
    f32,
    first_lanes,
    floordiv,
    if_true,
    index,
    load_vector,
    loop,
    minimum,
    scaled,
    scratch,
    store_vector,
    sub,
)
from mx_dialect.schedule.panel_packing import Part, not_negative, transposed
from mx_dialect.schedule.registers import BYTES, LANES, any_bit, bitcast, byte_dots, i8, i32, shuffle, splat
from mx_dialect.schedule.side import SideReader


@dataclass(frozen=True)
class LeftPanel:
    """Rows: `words` i32 [row][word], four codes along k each, and `scales` f32 [row][block]."""

    words: Any
    scales: Any

    @classmethod
    def allocate(cls, rows: int, depth: int, block: int) -> "LeftPanel":
        # Rows a power of two apart would share few sets of the first cache. What fills a vector is written beyond them.
        return cls(scratch([rows, depth // CODES + 2 * LANES], i32()), scratch([rows, depth // block + LANES], f32()))

    def buffers(self) -> list[Any]:
        return [self.words, self.scales]


@dataclass(frozen=True)
class RightPanel:
    """Strips of 16 columns: `words` i32 [strip][word][column], and for [strip][block][column] where a sum `starts`, its
    scale, f32, and the `shift` that takes MAGIC off again, f32.
    """

    words: Any
    starts: Any
    scales: Any
    shifts: Any

    @classmethod
    def allocate(cls, columns: int, depth: int, block: int) -> "RightPanel":
        # Scales are transposed in squares.
        strips, blocks = columns // LANES, -(-depth // block // LANES) * LANES
        words = scratch([strips, depth // CODES, LANES], i32())
        return cls(words, *(scratch([strips, blocks, LANES], element) for element in (i32(), f32(), f32())))

    def buffers(self) -> list[Any]:
        return [self.words, self.starts, self.scales, self.shifts]


class Pieces:
    """Splits a part along k into pieces of whole blocks that vectors of 64 codes read.

    `depth` is the extent along k; parts start at multiples of `granule`.
    """

    def __init__(self, contraction: Contraction, depth: Size, granule: int):
        self.block = contraction.block
        # Where k is two loops, neighbours end with the block.
        self.at_once = 1 if len(contraction.k) == 2 else max(1, BYTES // contraction.block)
        self._depth, self._granule = depth, granule

    def divide(self, blocks: int) -> bool:
        """Tell whether every part is a multiple of so many blocks."""
        size = blocks * self.block
        return isinstance(self._depth, int) and self._depth % size == 0 and self._granule % size == 0

    def each(self, blocks: Size, body: Callable[..., Sequence[Any]], carried: Sequence[Any] = ()) -> list[Any]:
        """Build body(first block, how many, *carried) for all pieces of some blocks."""

        def several(b: Any, *values: Any) -> Sequence[Any]:
            return body(b, self.at_once, *values)

        def one(b: Any, *values: Any) -> Sequence[Any]:
            return body(b, 1, *values)

        if self.divide(self.at_once):
            return loop(0, blocks, self.at_once, several, carried)
        whole = scaled(floordiv(blocks, self.at_once), self.at_once)
        return loop(whole, blocks, 1, one, loop(0, whole, self.at_once, several, carried))

    def remaining(self, blocks: Size, start: Size) -> Size:
        """Return how many of some blocks there are from `start` on, a multiple of 16; 16 where they are always."""
        return LANES if self.divide(LANES) else sub(blocks, start)

    def vectors(self, blocks: int) -> list[tuple[int, Any]]:
        """Return where each vector of a piece starts, and the mask of its codes, None if they fill it."""
        size = blocks * self.block
        return [(k, None if size - k >= BYTES else first_lanes(BYTES, size - k)) for k in range(0, size, BYTES)]


class LeftPacker:
    """Packs rows of the left side, which lie along k."""

    def __init__(self, contraction: Contraction, side: IntegerSide, pieces: Pieces):
        self._c, self._side = contraction, side
        self._codes = CodeReader(contraction, side)
        self._scales = ScaleReader(contraction, contraction.lhs, side)
        self._pieces = pieces

    def pack(self, part: Part, rows: Size, panel: LeftPanel) -> None:
        """Pack a part as `rows` rows; those beyond the last are the last again."""
        blocks = floordiv(part.depth, self._c.block)

        def row(i: Any) -> list[Any]:
            m = add(part.first, minimum(i, sub(part.count, 1)))

            def piece(b: Any, count: int) -> list[Any]:
                return self._piece(part, m, i, b, count, panel)

            def scales(b: Any) -> list[Any]:
                return self._row_scales(part, m, i, b, panel)

            self._pieces.each(blocks, piece)
            return loop(0, blocks, LANES, scales)

        loop(0, rows, 1, row)

    def _piece(self, part: Part, m: Size, i: Size, b: Size, blocks: int, panel: LeftPanel) -> list[Any]:
        block = self._c.block
        at = add(floordiv(part.k, block), b)
        for start, mask in self._pieces.vectors(blocks):
            loops = self._c.loops(part.batch, m, 0, at, start, add(scaled(at, block), start))
            words = bitcast(self._codes.unsigned(self._codes.read(loops, BYTES, mask)), i32())
            store_vector(words, panel.words, [i, add(scaled(b, block // CODES), start // CODES)])
        return []

    def _row_scales(self, part: Part, m: Size, i: Size, b: Size, panel: LeftPanel) -> list[Any]:
        """Store the scales of some blocks of a row."""
        blocks = floordiv(part.depth, self._c.block)
        at = add(floordiv(part.k, self._c.block), b)
        loops = self._c.loops(part.batch, m, 0, at, 0, scaled(at, self._c.block))
        scales, mask = self._scales.read(loops, self._pieces.remaining(blocks, b))
        store_vector(scales, panel.scales, [i, b])
        tiny = is_tiny(scales) if mask is None else arith.andi(is_tiny(scales), mask)
        some = any_bit(tiny)

        def block(x: Any) -> list[Any]:
            return self._repair(i, x, panel)

        def repair() -> None:
            loop(b, minimum(add(b, LANES), blocks), 1, block)

        if_true(some, repair)
        return []

    def _repair(self, i: Size, b: Size, panel: LeftPanel) -> list[Any]:
        """Make the scale of a block of zeros harmless."""
        words = self._c.block // CODES
        lanes = min(words, LANES)
        zero = splat(-0x7F7F7F80, lanes, i32())

        def some(w: Any, bits: Any) -> list[Any]:
            found = load_vector(panel.words, [i, add(scaled(b, words), w)], lanes)
            return [arith.ori(bits, arith.xori(found, zero))]

        (bits,) = loop(0, words, lanes, some, [splat(0, lanes, i32())])
        combined = any_bit(bits)
        is_zero = arith.cmpi(arith.CmpIPredicate.eq, combined, arith.constant(i32(), 0))
        place = [index(i), index(b)]
        memref.store(harmless(memref.load(panel.scales, place), is_zero), panel.scales, place)
        return []


@dataclass(frozen=True)
class _Strip:
    """Sixteen columns of a part from `column` on, and their place in the panel."""

    part: Part
    column: Size
    number: Size


class RightPacker:
    """Packs columns of the right side, which lies along n or along k; columns that are not there are copies or zeros.

    There are `count` in all, of which a multiple of `granule` is packed. `unit_bits` is how many bits of a dot product
    of integers are its fraction; scales take it in.
    """

    def __init__(
        self, contraction: Contraction, side: IntegerSide, pieces: Pieces, count: Size, granule: int, unit_bits: int
    ):
        self._c, self._side, self._count, self._granule = contraction, side, count, granule
        self._unit = 2.0**-unit_bits
        self._codes = CodeReader(contraction, side)
        self._along_k = self._codes.along() == contraction.k[-1]
        self._column_scales = SideReader(contraction, contraction.rhs, contraction.n, LANES)
        self._row_scales = ScaleReader(contraction, contraction.rhs, side)
        self._pieces = pieces
        self._ragged = not (isinstance(count, int) and count % granule == 0)
        self._ones = splat(-OFFSET, BYTES, i8())

    def pack(self, part: Part, panel: RightPanel) -> Any:
        """Pack a part and return an i1: some scale is so large that MAGIC times it is not a number."""
        blocks = floordiv(part.depth, self._c.block)
        count = scaled(ceildiv(part.count, self._granule), self._granule // LANES)

        def each_strip(body: Callable[..., Sequence[Any]], carried: Sequence[Any] = ()) -> list[Any]:
            def strip(j: Any, *values: Any) -> Sequence[Any]:
                return body(_Strip(part, add(part.first, scaled(j, LANES)), j), *values)

            return loop(0, count, 1, strip, carried)

        def transpose_scales(strip: _Strip) -> list[Any]:
            return self._transpose_scales(strip, panel)

        def transpose(b: Any, some: int, large: Any) -> list[Any]:
            def strip(strip: _Strip, large: Any) -> list[Any]:
                return self._transpose(strip, b, some, panel, large)

            return each_strip(strip, [large])

        def copy(b: Any, large: Any) -> list[Any]:
            def strip(strip: _Strip, large: Any) -> list[Any]:
                return self._copy(strip, b, panel, large)

            return each_strip(strip, [large])

        none = splat(0, LANES, ir.IntegerType.get_signless(1))
        if self._along_k:
            each_strip(transpose_scales)
            (large,) = self._pieces.each(blocks, transpose, [none])
        else:
            # Block after block, so that strips find in cache what their neighbours read.
            (large,) = loop(0, blocks, 1, copy, [none])
        return any_bit(large)

    def _copy(self, strip: _Strip, b: Size, panel: RightPanel, large: Any) -> list[Any]:
        """Pack a block whose rows lie along n."""
        mask = None
        if self._ragged:
            mask = first_lanes(LANES, minimum(LANES, not_negative(sub(self._count, strip.column))))
        at = add(floordiv(strip.part.k, self._c.block), b)
        base = scaled(at, self._c.block)
        words = self._c.block // CODES

        def word(w: Any, total: Any, bits: Any) -> list[Any]:
            places = [add(scaled(w, CODES), i) for i in range(CODES)]
            loops = [self._c.loops(strip.part.batch, 0, strip.column, at, p, add(base, p)) for p in places]
            codes = _interleaved([self._codes.read(place, LANES, mask) for place in loops])
            return self._store(codes, strip, add(scaled(b, words), w), panel, total, bits)

        zero = splat(0, LANES, i32())
        total, bits = loop(0, words, 1, word, [zero, zero])
        loops = self._c.loops(strip.part.batch, 0, strip.column, at, 0, base)
        scale = self._column_scales.block_values(loops, mask)[self._side.code.scale]
        scale = scale if isinstance(scale.type, ir.VectorType) else broadcast(scale, LANES)
        return [arith.ori(large, self._finish(strip, b, panel, scale, total, bits))]

    def _transpose(self, strip: _Strip, b: Size, blocks: int, panel: RightPanel, large: Any) -> list[Any]:
        """Pack some blocks of columns that lie along k."""
        block = self._c.block
        at = add(floordiv(strip.part.k, block), b)
        words: list[Any] = []
        for start, mask in self._pieces.vectors(blocks):
            rows: list[Any] = []
            for lane in range(LANES):
                loops = self._c.loops(
                    strip.part.batch, 0, self._column(strip, lane), at, start, add(scaled(at, block), start)
                )
                rows.append(bitcast(self._codes.read(loops, BYTES, mask), i32()))
            words += transposed(rows)
        for number in range(blocks):
            total = bits = splat(0, LANES, i32())
            for w in range(number * block // CODES, (number + 1) * block // CODES):
                place = add(scaled(b, block // CODES), w)
                total, bits = self._store(bitcast(words[w], i8()), strip, place, panel, total, bits)
            place = add(b, number)
            scale = load_vector(panel.scales, [strip.number, place, 0], LANES)
            large = arith.ori(large, self._finish(strip, place, panel, scale, total, bits))
        return [large]

    def _column(self, strip: _Strip, lane: Size) -> Size:
        """Return a column of a strip; beyond the last it is the last again, and nothing is kept of its products."""
        column = add(strip.column, lane)
        return minimum(column, sub(self._count, 1)) if self._ragged else column

    def _transpose_scales(self, strip: _Strip, panel: RightPanel) -> list[Any]:
        """Put the scales of columns that lie along k in the panel."""
        block = self._c.block
        blocks, first = floordiv(strip.part.depth, block), floordiv(strip.part.k, block)

        def some(b: Any) -> list[Any]:
            at = add(first, b)
            rows: list[Any] = []
            for lane in range(LANES):
                loops = self._c.loops(strip.part.batch, 0, self._column(strip, lane), at, 0, scaled(at, block))
                rows.append(self._row_scales.read(loops, self._pieces.remaining(blocks, b))[0])
            for number, scales in enumerate(transposed(rows)):
                store_vector(scales, panel.scales, [strip.number, add(b, number), 0])
            return []

        return loop(0, blocks, LANES, some)

    def _store(self, codes: Any, strip: _Strip, word: Size, panel: RightPanel, total: Any, bits: Any) -> list[Any]:
        """Store a word of each column; return 128 times the columns' sums so far, and all bits set in them."""
        integers = self._codes.integers(codes)
        words = bitcast(integers, i32())
        store_vector(words, panel.words, [strip.number, word, 0])
        return [byte_dots(total, self._ones, integers), arith.ori(bits, words)]

    def _finish(self, strip: _Strip, b: Size, panel: RightPanel, scale: Any, total: Any, bits: Any) -> Any:
        """Store what a block needs besides its words; tell which scales are too large."""
        zero = arith.cmpi(arith.CmpIPredicate.eq, bits, splat(0, LANES, i32()))
        scale = arith.mulf(harmless(scale, zero), splat(self._unit, LANES, f32()))
        place = [strip.number, b, 0]
        store_vector(arith.subi(splat(MAGIC_BITS, LANES, i32()), total), panel.starts, place)
        store_vector(scale, panel.scales, place)
        store_vector(shift_of(scale), panel.shifts, place)
        return is_large(scale)


def _interleaved(rows: list[Any]) -> Any:
    """Return four vectors of 16 bytes as one of 64, the bytes of a lane next to each other."""
    pairs = [shuffle(rows[i], rows[i + 1], range(2 * LANES)) for i in (0, 2)]
    return shuffle(pairs[0], pairs[1], [i * LANES + lane for lane in range(LANES) for i in range(CODES)])
