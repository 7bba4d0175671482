"""Packing both sides of a contraction into tiles of bf16 words for the matrix unit.

The long side's rows lie along k and are read by whole groups of 64 entries; the other side is decoded to a strip of f32
rows first, and paired from there. Both sides pair the entries of a group in the same order, that in which byte tables
leave them, or one that needs no shuffles.
"""

from dataclasses import dataclass
from typing import Any

from mx_dialect._mlir import affine, arith, ir
from mx_dialect.schedule.amx_tiles import ROWS, WORDS
from mx_dialect.schedule.amx_words import EXACT, EXACT_BITS, SPLIT, Exponents, significant_bits, words
from mx_dialect.schedule.contraction import Contraction, Side
from mx_dialect.schedule.emitter import (
    Size,
    add,
    broadcast,
    ceildiv,
    floordiv,
    load_vector,
    loop,
    prefetch,
    scaled,
    scratch,
    store_vector,
)
from mx_dialect.schedule.nibbles import bytes_at, load_nibbles
from mx_dialect.schedule.panel_packing import Part, RightPacker
from mx_dialect.schedule.registers import LANES, i8
from mx_dialect.schedule.rows_groups import block_mask
from mx_dialect.schedule.side import ScaledCode, SideReader, places_of, scaled_code
from mx_dialect.schedule.table_decoder import GROUP, ORDER, TableDecoder, decodes
from mx_dialect.schedule.tabulate import tabulate

STEPS = GROUP // (2 * WORDS)
"""Tiles along k that a group fills."""


def parts_of(contraction: Contraction, side: Side) -> int:
    """Return in how many words the values of a side are."""
    code = scaled_code(contraction, side)
    if code is None:
        return SPLIT
    tables = tabulate(code.code, code.input.value), tabulate(code.scale)
    if tables[0] is None or tables[1] is None:
        return SPLIT
    return EXACT if sum(significant_bits(t) for t in tables) <= EXACT_BITS else SPLIT


@dataclass(frozen=True)
class Pairing:
    """Which entries of a group meet in word j of its tiles: of step s, `start(j) + s * step` and `distance` on."""

    by_tables: bool

    @property
    def step(self) -> int:
        return 1 if self.by_tables else LANES

    @property
    def distance(self) -> int:
        return ORDER[2 * LANES] if self.by_tables else 2 * LANES

    def start(self, word: Any) -> Any:
        """Return the entry that word `word`, an index value, begins with."""
        if not self.by_tables:
            return word
        # ORDER[j]: of every sixteen entries, each other one of the first eight.
        d = ir.AffineExpr.get_dim(0)
        of_lane, in_lane = ir.AffineExpr.get_floor_div(d, 4), ir.AffineExpr.get_mod(d, 4)
        return affine.apply(ir.AffineMap.get(1, 0, [of_lane * 16 + in_lane * 2]), [word])


class RowPacker:
    """Packs rows that lie along k as [row / 16][k / 32][part][row % 16][word]."""

    def __init__(self, contraction: Contraction, parts: int, exponents: Exponents):
        self._c, self._parts, self._exponents = contraction, parts, exponents
        code = scaled_code(contraction, contraction.lhs)
        self._code = code if code is not None and _has_table(contraction, code) else None
        self.pairing = Pairing(self._code is not None)
        self._reader = SideReader(contraction, contraction.lhs, contraction.k[-1], LANES)
        self._decoder = None if self._code is None else TableDecoder(tabulate(self._code.code, self._code.input.value))

    def pack(self, part: Part, panel: Any) -> None:
        self._exponents.reset()

        def row(i: Any) -> list[Any]:
            def group(g: Any, *carried: Any) -> list[Any]:
                vectors = self._vectors(part, add(part.first, i), add(part.k, scaled(g, GROUP)))
                noted = list(carried)
                for vector in vectors:
                    noted = self._exponents.note(noted, vector)
                for step in range(STEPS):
                    for number, word in enumerate(words(vectors[step], vectors[step + STEPS], self._parts)):
                        at = [floordiv(i, ROWS), add(scaled(g, STEPS), step), number, _remainder(i, ROWS), 0]
                        store_vector(word, panel, at)
                return noted

            self._exponents.keep(loop(0, floordiv(part.depth, GROUP), 1, group, self._exponents.start()))
            return []

        loop(0, part.count, 1, row)

    def _vectors(self, part: Part, row: Size, k: Size) -> list[Any]:
        """Return a group of a row as four vectors of f32; the first and third, and the others, are paired."""
        if self._code is not None and self._decoder is not None:
            scale = self._scales(self._code, part, row, k)
            return [arith.mulf(v, scale) for v in self._decoder.vectors(self._codes(self._code, part, row, k))]
        found: list[Any] = []
        for start in range(0, GROUP, LANES):
            loops = self._loops(part, row, k, start)
            found.append(self._reader.element(loops, self._reader.block_values(loops)))
        return found

    def _loops(self, part: Part, row: Size, k: Size, start: int) -> list[Any]:
        block = self._c.block
        at = add(k, start)
        return self._c.loops(part.batch, row, 0, floordiv(at, block), _remainder(at, block), at)

    def _codes(self, code: ScaledCode, part: Part, row: Size, k: Size) -> Any:
        buffer = self._c.op.operands[code.input.number]
        ahead = places_of(code.input, self._loops(part, add(row, ROWS), k, 0))
        prefetch(buffer, ahead if code.input.packed == 1 else bytes_at(ahead))
        places = places_of(code.input, self._loops(part, row, k, 0))
        codes = (load_vector if code.input.packed == 1 else load_nibbles)(buffer, places, GROUP)
        return arith.bitcast(ir.VectorType.get([GROUP], i8()), codes)

    def _scales(self, code: ScaledCode, part: Part, row: Size, k: Size) -> Any:
        """Return the scales of a group in the lanes where the tables leave its entries."""
        block = self._c.block

        def scale(start: int) -> Any:
            loops = self._loops(part, row, k, start)
            return broadcast(self._reader.block_values(loops)[code.scale], LANES)

        found = scale(0)
        for number in range(1, GROUP // block):
            found = arith.select(block_mask(number, block), scale(number * block), found)
        return found


class ColumnPacker:
    """Packs what meets rows of tiles as [column / 16][k / 32][part][word][column % 16]."""

    def __init__(self, contraction: Contraction, parts: int, exponents: Exponents, count: Size, pairing: Pairing):
        self._parts, self._exponents, self._pairing = parts, exponents, pairing
        self._depth = max(GROUP, contraction.block)
        self._strip = scratch([1, self._depth, LANES])
        self._packer = RightPacker(contraction, LANES, LANES, count)

    @property
    def strip(self) -> Any:
        """Return the scratch memory, which the caller frees."""
        return self._strip

    def pack(self, part: Part, panel: Any) -> None:
        self._exponents.reset()

        def columns(j: Any) -> list[Any]:
            def strip(s: Any) -> list[Any]:
                first = add(part.first, scaled(j, LANES))
                piece = Part(part.batch, first, LANES, add(part.k, scaled(s, self._depth)), self._depth)
                self._packer.pack(piece, self._strip)
                self._pair(j, scaled(s, self._depth // (2 * WORDS)), panel)
                return []

            return loop(0, floordiv(part.depth, self._depth), 1, strip)

        loop(0, ceildiv(part.count, LANES), 1, columns)

    def _pair(self, j: Size, first: Size, panel: Any) -> None:
        pairing = self._pairing

        def word(w: Any, *carried: Any) -> list[Any]:
            noted = list(carried)
            start = pairing.start(w)
            for group in range(self._depth // GROUP):
                for step in range(STEPS):
                    at = group * GROUP + step * pairing.step
                    low, high = (
                        load_vector(self._strip, [0, add(start, at + more), 0], LANES)
                        for more in (0, pairing.distance)
                    )
                    noted = self._exponents.note(self._exponents.note(noted, low), high)
                    for number, packed in enumerate(words(low, high, self._parts)):
                        store_vector(packed, panel, [j, add(first, group * STEPS + step), number, w, 0])
            return noted

        self._exponents.keep(loop(0, WORDS, 1, word, self._exponents.start()))


def _has_table(contraction: Contraction, code: ScaledCode) -> bool:
    """Tell whether byte tables decode a side's codes, of blocks that fill whole lanes of vectors of its groups."""
    table = tabulate(code.code, code.input.value)
    fits = GROUP % contraction.block == 0 and contraction.block % LANES == 0
    return table is not None and decodes(table) and fits and len(contraction.k) == 1


def _remainder(value: Size, divisor: int) -> Size:
    if isinstance(value, int):
        return value % divisor
    return affine.apply(ir.AffineMap.get(1, 0, [ir.AffineExpr.get_mod(ir.AffineExpr.get_dim(0), divisor)]), [value])
