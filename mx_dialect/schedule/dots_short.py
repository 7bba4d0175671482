"""The side with few rows of exact block dots: signed bytes, in the order in which the other side's bytes hold codes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mx_dialect._mlir import arith, ir, memref
from mx_dialect.schedule.contraction import Contraction, Side
from mx_dialect.schedule.dots_codes import OFFSET, CodeReader, IntegerSide
from mx_dialect.schedule.dots_exact import MAGIC_BITS, is_large, shift_of
from mx_dialect.schedule.dots_scales import harmless, is_tiny
from mx_dialect.schedule.emitter import (
    Size,
    add,
    f32,
    first_lanes,
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
from mx_dialect.schedule.registers import (
    BYTES,
    LANES,
    any_bit,
    bitcast,
    byte_dots,
    i8,
    i32,
    shuffle,
    splat,
    word_constant,
)
from mx_dialect.schedule.side import SideReader

Loops = Callable[[Size, Size, Size, Size], list[Any]]
"""Return a value for each loop: of the row, the block, the place in it, and k."""


@dataclass(frozen=True)
class ShortRows:
    """For [row][chunk] the codes' `integers`, i8, as vectors of 64, and the `starts` of 16 sums, i32.

    For [row][block] the `scales`, with the units of both sides, and their `shifts`, f32. A chunk is what 64 bytes of
    the other side hold.
    """

    integers: Any
    starts: Any
    scales: Any
    shifts: Any

    @classmethod
    def allocate(cls, rows: int, chunks: int, parts: int, blocks: int) -> "ShortRows":
        integers = scratch([rows, chunks * parts * BYTES], i8())
        starts = scratch([rows, chunks * LANES], i32())
        return cls(integers, starts, *(scratch([rows, blocks], f32()) for _ in range(2)))

    def buffers(self) -> list[Any]:
        return [self.integers, self.starts, self.scales, self.shifts]


class ShortPacker:
    """Packs the short side. `parts` is how many codes a byte of the other side holds."""

    def __init__(self, contraction: Contraction, side: Side, integers: IntegerSide, parts: int, unit_bits: int):
        self._c, self._scale, self._parts = contraction, integers.code.scale, parts
        self._unit = 2.0**-unit_bits
        self._codes = CodeReader(contraction, integers)
        self._along_k = self._codes.along() == contraction.k[-1]
        self._scales = SideReader(contraction, side, -1, 1)
        self._words = contraction.block // parts // 4
        self._depth: int = contraction.depth

    def pack(self, rows: int, loops: Loops, into: ShortRows) -> Any:
        """Pack all rows and return an i1: some scale is large."""
        chunk = BYTES * self._parts
        chunks = -(-self._depth // chunk)
        row = None if self._along_k else scratch([chunks * chunk], i8())

        def one(s: Any, large: Any) -> list[Any]:
            if row is not None:
                self._gather(s, loops, row)

            def chunk_of(c: Any) -> list[Any]:
                return self._chunk(s, c, loops, row, into)

            def block(b: Any, large: Any) -> list[Any]:
                return self._block(s, b, large, loops, row, into)

            loop(0, chunks, 1, chunk_of)
            return loop(0, self._depth // self._c.block, 1, block, [large])

        no = arith.constant(ir.IntegerType.get_signless(1), 0)
        (large,) = loop(0, rows, 1, one, [no])
        if row is not None:
            memref.dealloc(row)
        return large

    def _gather(self, s: Size, loops: Loops, row: Any) -> None:
        """Copy the codes of a row that does not lie along k."""
        block = self._c.block

        def one(b: Any) -> list[Any]:
            def place(i: Any) -> list[Any]:
                k = add(scaled(b, block), i)
                memref.store(self._codes.one(loops(s, b, i, k)), row, [index(k)])
                return []

            return loop(0, block, 1, place)

        loop(0, self._depth // block, 1, one)

    def _read(self, s: Size, k: Size, b: Size, place: Size, loops: Loops, row: Any, count: Size) -> Any:
        """Return up to 64 integers from k on, zeros beyond `count`."""
        mask = None if isinstance(count, int) and count >= BYTES else first_lanes(BYTES, minimum(BYTES, count))
        if row is None:
            return self._codes.integers(self._codes.read(loops(s, b, place, k), BYTES, mask))
        return self._codes.integers(load_vector(row, [k], BYTES, mask))

    def _chunk(self, s: Size, c: Size, loops: Loops, row: Any, into: ShortRows) -> list[Any]:
        k = scaled(c, BYTES * self._parts)
        whole = self._depth % (BYTES * self._parts) == 0
        vectors: list[Any] = []
        for part in range(self._parts):
            start = add(k, part * BYTES)
            count = BYTES if whole else sub(self._depth, start)
            vectors.append(self._read(s, start, 0, 0, loops, row, count))
        if self._parts == 2:
            vectors = [shuffle(vectors[0], vectors[1], range(first, 2 * BYTES, 2)) for first in (0, 1)]
        total = splat(0, LANES, i32())
        for part, values in enumerate(vectors):
            store_vector(values, into.integers, [s, add(k, part * BYTES)])
            total = byte_dots(total, splat(-OFFSET, BYTES, i8()), values)
        first = word_constant([MAGIC_BITS if lane % self._words == 0 else 0 for lane in range(LANES)])
        store_vector(arith.subi(first, total), into.starts, [s, scaled(c, LANES)])
        return []

    def _block(self, s: Size, b: Size, large: Any, loops: Loops, row: Any, into: ShortRows) -> list[Any]:
        """Store the scale of a block; return whether it or an earlier one is large."""
        block = self._c.block
        place = [index(s), index(b)]
        scale = self._scales.block_values(loops(s, b, 0, scaled(b, block)))[self._scale]
        memref.store(scale, into.scales, place)

        def repair() -> None:
            bits = splat(0, LANES, i32())
            for start in range(0, block, BYTES):
                k = add(scaled(b, block), start)
                values = self._read(s, k, b, start, loops, row, block - start)
                bits = arith.ori(bits, bitcast(values, i32()))
            combined = any_bit(bits)
            zero = arith.cmpi(arith.CmpIPredicate.eq, combined, arith.constant(i32(), 0))
            memref.store(harmless(scale, zero), into.scales, place)

        if_true(is_tiny(scale), repair)
        scale = arith.mulf(memref.load(into.scales, place), arith.constant(f32(), self._unit))
        memref.store(scale, into.scales, place)
        memref.store(shift_of(scale), into.shifts, place)
        return [arith.ori(large, is_large(scale))]
