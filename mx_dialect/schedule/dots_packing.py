"""Packing parts of both sides of a contraction into panels of integers, for exact dot products of blocks.

The left side is kept as unsigned bytes, u = q + 128, the right one signed, as byte_dots wants them. What that adds to a
dot product, 128 times the sum of the right side's block, is taken off where the sum starts. The start also holds the
bits of 1.5 * 2^23: read as f32 the finished sum is 1.5 * 2^23 + dot, so that one fused multiply-add makes dot * scale
of it, exactly, without a conversion.
"""

from dataclasses import dataclass
from typing import Any

from mx_dialect._mlir import arith, ir, memref, vector
from mx_dialect.schedule.contraction import Contraction
from mx_dialect.schedule.dots_codes import CodeReader, IntegerSide
from mx_dialect.schedule.emitter import (
    Size,
    add,
    broadcast,
    ceildiv,
    f32,
    first_lanes,
    floordiv,
    index,
    load_vector,
    loop,
    minimum,
    scaled,
    store_vector,
    sub,
    vector_type,
)
from mx_dialect.schedule.panel_packing import Part, not_negative, transposed
from mx_dialect.schedule.registers import BYTES, LANES, bitcast, buffer, byte_dots, i8, i32, shuffle, splat
from mx_dialect.schedule.side import SideReader

CODES = 4
"""Codes of a word, an i32: neighbours along k."""
OFFSET = 128
MAGIC = 1.5 * 2.0**23
MAGIC_BITS = 0x4B400000
LARGEST_DOT = 1 << 22
"""MAGIC plus an integer of up to this magnitude is an f32 whose bits are those of MAGIC plus the integer."""
_LARGEST_SCALE = 2.0**104
"""MAGIC times this does not overflow."""
_SMALLEST_NORMAL = 2.0**-126


@dataclass(frozen=True)
class LeftPanel:
    """Rows: `words` i32 [row][word], four codes along k each, and `scales` f32 [row][block]."""

    words: Any
    scales: Any

    @classmethod
    def allocate(cls, rows: int, depth: int, block: int) -> "LeftPanel":
        # Rows a power of two apart would share few sets of the first cache. What fills a vector is written beyond them.
        return cls(buffer([rows, depth // CODES + 2 * LANES], i32()), buffer([rows, depth // block + LANES], f32()))

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
        strips, blocks = columns // LANES, depth // block
        words = buffer([strips, depth // CODES, LANES], i32())
        return cls(words, *(buffer([strips, blocks, LANES], element) for element in (i32(), f32(), f32())))

    def buffers(self) -> list[Any]:
        return [self.words, self.starts, self.scales, self.shifts]


class Pieces:
    """Splits a part along k into pieces of whole blocks that vectors of 64 codes read."""

    def __init__(self, contraction: Contraction):
        self.block = contraction.block
        # Where k is two loops, neighbours end with the block.
        self.at_once = 1 if len(contraction.k) == 2 else max(1, BYTES // contraction.block)

    def each(self, blocks: Size, body: Any, carried: Any = ()) -> list[Any]:
        """Build body(first block, how many, *carried) for all pieces of some blocks."""
        whole = scaled(floordiv(blocks, self.at_once), self.at_once)
        found = loop(0, whole, self.at_once, lambda b, *v: body(b, self.at_once, *v), carried)
        return loop(whole, blocks, 1, lambda b, *v: body(b, 1, *v), found)

    def vectors(self, blocks: int) -> list[tuple[int, Any]]:
        """Return where each vector of a piece starts, and the mask of its codes, None if they fill it."""
        size = blocks * self.block
        return [(k, None if size - k >= BYTES else first_lanes(BYTES, size - k)) for k in range(0, size, BYTES)]


class LeftPacker:
    """Packs rows of the left side, which lie along k."""

    def __init__(self, contraction: Contraction, side: IntegerSide):
        self._c, self._side = contraction, side
        self._codes = CodeReader(contraction, side)
        self._scales = SideReader(contraction, contraction.lhs, -1, 1)
        self._pieces = Pieces(contraction)
        self._sign = splat(-OFFSET, BYTES, i8())

    def pack(self, part: Part, rows: Size, panel: LeftPanel) -> None:
        """Pack a part as `rows` rows; those beyond the last are the last again."""

        def row(i: Any) -> list[Any]:
            m = add(part.first, minimum(i, sub(part.count, 1)))

            def piece(b: Any, blocks: int) -> list[Any]:
                self._piece(part, m, i, b, blocks, panel)
                return []

            return self._pieces.each(floordiv(part.depth, self._c.block), piece)

        loop(0, rows, 1, row)

    def _piece(self, part: Part, m: Size, i: Size, b: Size, blocks: int, panel: LeftPanel) -> None:
        block = self._c.block
        at = add(floordiv(part.k, block), b)
        found: list[Any] = []
        for start, mask in self._pieces.vectors(blocks):
            loops = self._c.loops(part.batch, m, 0, at, start, add(scaled(at, block), start))
            integers = self._codes.integers(self._codes.read(loops, BYTES, mask))
            words = bitcast(arith.xori(integers, self._sign), i32())
            store_vector(words, panel.words, [i, add(scaled(b, block // CODES), start // CODES)])
            found.append(integers)
        for number in range(blocks):
            place = add(at, number)
            loops = self._c.loops(part.batch, m, 0, place, 0, scaled(place, block))
            scale = self._scales.block_values(loops)[self._side.code.scale]
            scale = _harmless(scale, _is_zero(_of_block(found, number, block)))
            memref.store(scale, panel.scales, [index(i), index(add(b, number))])


def _of_block(vectors: list[Any], number: int, block: int) -> Any:
    """Return a vector that is zero where all integers of a block are, from vectors of neighbouring integers."""
    if block < BYTES:
        start, size, one = (
            ir.ArrayAttr.get([ir.IntegerAttr.get(ir.IntegerType.get_signless(64), n)])
            for n in (number * block, block, 1)
        )
        return vector.extract_strided_slice(vector_type(block, i8()), vectors[0], start, size, one)
    total = vectors[0]
    for other in vectors[1:]:
        total = arith.ori(total, other)
    return total


def _is_zero(integers: Any) -> Any:
    words = bitcast(integers, i32())
    combined = vector.reduction(i32(), vector.CombiningKind.OR, words)
    return arith.cmpi(arith.CmpIPredicate.eq, combined, arith.constant(i32(), 0))


def _harmless(scale: Any, is_zero: Any) -> Any:
    """Return 1 instead of a subnormal scale of a block of zeros; processors multiply subnormals slowly."""
    constants = (arith.constant(f32(), _SMALLEST_NORMAL), arith.constant(f32(), 1.0))
    if isinstance(scale.type, ir.VectorType):
        constants = tuple(splat(value, LANES, f32()) for value in (_SMALLEST_NORMAL, 1.0))
    tiny = arith.cmpf(arith.CmpFPredicate.OLT, scale, constants[0])
    return arith.select(arith.andi(tiny, is_zero), constants[1], scale)


@dataclass(frozen=True)
class _Strip:
    """Sixteen columns of a part from `column` on, and their place in the panel."""

    part: Part
    column: Size
    number: Size


class RightPacker:
    """Packs columns of the right side, which lies along n or along k; columns that are not there are copies or zeros.

    `unit_bits` is how many bits of a dot product of integers are its fraction; scales take it in.
    """

    def __init__(self, contraction: Contraction, side: IntegerSide, count: Size, unit_bits: int):
        self._c, self._side, self._count = contraction, side, count
        self._unit = 2.0**-unit_bits
        self._codes = CodeReader(contraction, side)
        self._along_k = self._codes.along() == contraction.k[-1]
        along = -1 if self._along_k else contraction.n
        self._scales = SideReader(contraction, contraction.rhs, along, 1 if self._along_k else LANES)
        self._pieces = Pieces(contraction)
        self._ragged = not (isinstance(count, int) and count % LANES == 0)
        self._ones = splat(-OFFSET, BYTES, i8())

    def pack(self, part: Part, panel: RightPanel) -> Any:
        """Pack a part and return an i1: some scale is so large that MAGIC times it is not a number."""
        blocks = floordiv(part.depth, self._c.block)

        def strips(b: Any, count: int, large: Any) -> list[Any]:
            def strip(j: Any, large: Any) -> list[Any]:
                strip_ = _Strip(part, add(part.first, scaled(j, LANES)), j)
                if self._along_k:
                    return self._transpose(strip_, b, count, panel, large)
                return self._copy(strip_, b, panel, large)

            return loop(0, ceildiv(part.count, LANES), 1, strip, [large])

        none = splat(0, LANES, ir.IntegerType.get_signless(1))
        if self._along_k:
            (large,) = self._pieces.each(blocks, strips, [none])
        else:
            # Block after block, so that strips find in cache what their neighbours read.
            (large,) = loop(0, blocks, 1, lambda b, large: strips(b, 1, large), [none])
        return vector.reduction(ir.IntegerType.get_signless(1), vector.CombiningKind.OR, large)

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
        scale = self._scales.block_values(loops, mask)[self._side.code.scale]
        scale = scale if isinstance(scale.type, ir.VectorType) else broadcast(scale, LANES)
        return [arith.ori(large, self._finish(strip, b, panel, scale, total, bits))]

    def _transpose(self, strip: _Strip, b: Size, blocks: int, panel: RightPanel, large: Any) -> list[Any]:
        """Pack some blocks of columns that lie along k."""
        block = self._c.block
        at = add(floordiv(strip.part.k, block), b)
        self._column_scales(strip, b, blocks, panel)
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

    def _column_scales(self, strip: _Strip, b: Size, blocks: int, panel: RightPanel) -> None:
        at = add(floordiv(strip.part.k, self._c.block), b)

        def column(lane: Any) -> list[Any]:
            for number in range(blocks):
                place = add(at, number)
                n = self._column(strip, lane)
                loops = self._c.loops(strip.part.batch, 0, n, place, 0, scaled(place, self._c.block))
                scale = self._scales.block_values(loops)[self._side.code.scale]
                memref.store(scale, panel.scales, [index(strip.number), index(add(b, number)), lane])
            return []

        loop(0, LANES, 1, column)

    def _store(self, codes: Any, strip: _Strip, word: Size, panel: RightPanel, total: Any, bits: Any) -> list[Any]:
        """Store a word of each column; return 128 times the columns' sums so far, and all bits that were set in them."""
        integers = self._codes.integers(codes)
        words = bitcast(integers, i32())
        store_vector(words, panel.words, [strip.number, word, 0])
        return [byte_dots(total, self._ones, integers), arith.ori(bits, words)]

    def _finish(self, strip: _Strip, b: Size, panel: RightPanel, scale: Any, total: Any, bits: Any) -> Any:
        """Store what a block needs besides its words; tell which scales are too large."""
        zero = arith.cmpi(arith.CmpIPredicate.eq, bits, splat(0, LANES, i32()))
        scale = arith.mulf(_harmless(scale, zero), splat(self._unit, LANES, f32()))
        place = [strip.number, b, 0]
        store_vector(arith.subi(splat(MAGIC_BITS, LANES, i32()), total), panel.starts, place)
        store_vector(scale, panel.scales, place)
        store_vector(arith.mulf(scale, splat(-MAGIC, LANES, f32())), panel.shifts, place)
        return arith.cmpf(arith.CmpFPredicate.OGT, scale, splat(_LARGEST_SCALE, LANES, f32()))


def _interleaved(rows: list[Any]) -> Any:
    """Return four vectors of 16 bytes as one of 64, the bytes of a lane next to each other."""
    pairs = [shuffle(rows[i], rows[i + 1], range(2 * LANES)) for i in (0, 2)]
    return shuffle(pairs[0], pairs[1], [i * LANES + lane for lane in range(LANES) for i in range(CODES)])
