"""Packing both sides of a contraction into tiles of bf16 words for the matrix unit.

The long side's rows lie along k and are read by whole groups of 64 entries; the other side is decoded to a strip of f32
rows first, and paired from there. Both sides pair the entries of a group in the same order, that in which byte tables
leave them, or one that needs no shuffles.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from mx_dialect._mlir import affine, arith, ir, vector
from mx_dialect.schedule.amx_exponents import (
    WORD_MANTISSA_BITS,
    Range,
    ScaleRange,
    ValueRange,
    first_not_finite,
    word_type,
)
from mx_dialect.schedule.amx_tiles import ROWS, WORDS
from mx_dialect.schedule.amx_words import EXACT, EXACT_BITS, SPLIT, significant_bits, words
from mx_dialect.schedule.contraction import Contraction, Side, loop_of
from mx_dialect.schedule.emitter import (
    Size,
    add,
    broadcast,
    ceildiv,
    first_lanes,
    floordiv,
    index,
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
)
from mx_dialect.schedule.nibbles import bytes_at, load_nibbles
from mx_dialect.schedule.panel_packing import Part, RightPacker
from mx_dialect.schedule.registers import LANES, bitcast, i8, i32, shuffle, splat
from mx_dialect.schedule.side import ScaledCode, SideReader, places_of, scaled_code
from mx_dialect.schedule.table_decoder import GROUP, ORDER, TableDecoder, decodes
from mx_dialect.schedule.tabulate import tabulate

STEPS = GROUP // (2 * WORDS)
"""Tiles along k that a group fills."""

GRANULE = 2 * ROWS
"""Parts of either side begin at multiples of it, for tiles and for the panels in f32."""

_BIAS_IN_WORD = 127 << WORD_MANTISSA_BITS
_EXPONENT_IN_WORD = 255 << WORD_MANTISSA_BITS
_HALF = 16


def parts_of(contraction: Contraction, side: Side) -> int:
    """Return in how many words the values of a side are."""
    tables = _tables(scaled_code(contraction, side))
    if tables is None:
        return SPLIT
    return EXACT if sum(significant_bits(t) for t in tables) <= EXACT_BITS else SPLIT


def _tables(code: ScaledCode | None) -> tuple[Any, Any] | None:
    """Return the values of the codes of a side and of its scales, None if either is no such table."""
    if code is None:
        return None
    codes, scales = tabulate(code.code, code.input.value), tabulate(code.scale)
    return None if codes is None or scales is None else (codes, scales)


@dataclass(frozen=True)
class Pairing:
    """Which entries of a group meet in word j of its tiles: of step s, `start(j) + s * step` and `distance` on."""

    by_tables: bool

    @property
    def step(self) -> int:
        return ORDER[2 * LANES] if self.by_tables else LANES

    @property
    def distance(self) -> int:
        return ORDER[LANES] if self.by_tables else 2 * LANES

    def start(self, word: Any) -> Any:
        """Return the entry that word `word`, an index value, begins with."""
        if not self.by_tables:
            return word
        # ORDER[j]: of every sixteen entries, each other one of the first eight.
        d = ir.AffineExpr.get_dim(0)
        of_lane, in_lane = ir.AffineExpr.get_floor_div(d, 4), ir.AffineExpr.get_mod(d, 4)
        return affine.apply(ir.AffineMap.get(1, 0, [of_lane * 16 + in_lane * 2]), [word])


@dataclass(frozen=True)
class Ahead:
    """How far ahead codes are fetched: so many groups along k, or so many rows where those end; to a cache `level`."""

    groups: int
    rows: int
    level: int


BY_ROWS = Ahead(8, 1, 1)
"""Where rows are packed one after the other."""

BY_GROUPS = Ahead(32, GRANULE, 2)
"""Where all rows are packed group by group: the lines of so many would not stay in the first cache."""


class _Group(Protocol):
    """Reads groups of rows of a part: notes the exponents, and returns the words of each step, in parts.

    `begin` reads what blocks share. `examine` notes the exponents anew, of nothing but what is not zero.
    """

    @property
    def range(self) -> Range: ...

    @property
    def pairing(self) -> Pairing: ...

    def begin(self, part: Part) -> None: ...

    def words(self, part: Part, row: Size, k: Size, carried: list[Any]) -> tuple[list[list[Any]], list[Any]]: ...

    def examine(self, part: Part, row: Size, k: Size, carried: list[Any]) -> list[Any]: ...

    def release(self) -> None: ...


class RowPacker:
    """Packs rows that lie along k as [row / 16][k / 32][part][row % 16][word], parts of so many rows and entries."""

    def __init__(self, contraction: Contraction, parts: int, rows: int, depth: int, ahead: Ahead):
        self._group: _Group = _TableGroup.of(contraction, rows, depth, ahead) or _BodyGroup(contraction, parts)
        self.range, self.pairing = self._group.range, self._group.pairing

    def begin(self, part: Part) -> None:
        """Prepare to pack a part; `range` is of it alone, and may be wider than that of its values."""
        self.range.reset()
        self._group.begin(part)

    def pack(self, part: Part, panel: Any) -> None:
        """Pack a part."""
        self._pack(part, panel, (0, part.depth), 0)

    def pack_group(self, part: Part, panel: Any, group: Size, step: Size) -> None:
        """Pack a group of entries along k of all rows of a part, as tiles from `step` on."""
        self._pack(part, panel, (scaled(group, GROUP), GROUP), step)

    def _pack(self, part: Part, panel: Any, along_k: tuple[Size, Size], first: Size) -> None:
        start, depth = along_k

        def row(i: Any, *noted: Any) -> list[Any]:
            def group(g: Any, *carried: Any) -> list[Any]:
                steps, found = self._group.words(part, i, add(start, scaled(g, GROUP)), list(carried))
                for step, parts in enumerate(steps):
                    for number, word in enumerate(parts):
                        place = add(first, add(scaled(g, STEPS), step))
                        store_vector(word, panel, [floordiv(i, ROWS), place, number, _remainder(i, ROWS), 0])
                return found

            return loop(0, floordiv(depth, GROUP), 1, group, noted)

        self.range.keep(loop(0, part.count, 1, row, self.range.start()))

    def examine(self, part: Part) -> None:
        """Make `range` that of a part's values and no wider."""
        self.range.reset()

        def row(i: Any, *noted: Any) -> list[Any]:
            def group(g: Any, *carried: Any) -> list[Any]:
                return self._group.examine(part, i, scaled(g, GROUP), list(carried))

            return loop(0, floordiv(part.depth, GROUP), 1, group, noted)

        self.range.keep(loop(0, part.count, 1, row, self.range.start()))

    def release(self) -> None:
        self.range.release()
        self._group.release()


def _group_loops(c: Contraction, part: Part, row: Size, k: Size) -> list[Any]:
    """Return the loops at an entry of a row, both counted in a part."""
    at = add(part.k, k)
    return c.loops(part.batch, add(part.first, row), 0, floordiv(at, c.block), _remainder(at, c.block), at)


class _BodyGroup:
    """Computes values as the body says, in vectors of 16 neighbours."""

    pairing = Pairing(by_tables=False)

    def __init__(self, contraction: Contraction, parts: int):
        self._c, self._parts = contraction, parts
        self._reader = SideReader(contraction, contraction.lhs, contraction.k[-1], LANES)
        self.range = ValueRange(parts)

    def words(self, part: Part, row: Size, k: Size, carried: list[Any]) -> tuple[list[list[Any]], list[Any]]:
        vectors: list[Any] = []
        for start in range(0, GROUP, LANES):
            loops = _group_loops(self._c, part, row, add(k, start))
            vectors.append(self._reader.element(loops, self._reader.block_values(loops)))
            carried = self.range.note(carried, vectors[-1])
        return [words(vectors[s], vectors[s + STEPS], self._parts) for s in range(STEPS)], carried

    def begin(self, part: Part) -> None:
        """Do nothing: what blocks share is computed where it is used."""

    def examine(self, part: Part, row: Size, k: Size, carried: list[Any]) -> list[Any]:
        return self.words(part, row, k, carried)[1]

    def release(self) -> None:
        """Do nothing: there is no memory of its own."""


class _TableGroup:
    """Looks bf16 of codes up in tables, 64 at once, and adds what their scales are powers of to their exponents.

    `shifts`, i32 [row][block] of a part, has that twice, for both words.
    """

    pairing = Pairing(by_tables=True)

    def __init__(self, contraction: Contraction, code: ScaledCode, table: Any, rows: int, depth: int, ahead: Ahead):
        self._c, self._code, self._ahead = contraction, code, ahead
        self._buffer = contraction.op.operands[code.input.number]
        self._reader = SideReader(contraction, contraction.lhs, contraction.k[0], LANES, by_blocks=True)
        self._decoder = TableDecoder(table)
        self._shifts = scratch([rows, -(-depth // contraction.block // LANES) * LANES], i32())
        self.range = ScaleRange(table, first_not_finite(table))

    @classmethod
    def of(cls, c: Contraction, rows: int, depth: int, ahead: Ahead) -> "_TableGroup | None":
        """Return the reader of a contraction's left side, None if tables and exponents do not make its values."""
        code = scaled_code(c, c.lhs)
        tables = _tables(code)
        if code is None or tables is None or len(c.k) != 1 or GROUP % c.block or c.block % LANES:
            return None
        if any(loop_of(r) in c.k for i in c.lhs.inputs for r in list(i.map.results)[:-1]):
            return None
        codes, scales = tables
        positive = significant_bits(scales) == 1 and not (scales < 0).any()
        try:
            first_not_finite(codes)
        except ValueError:
            return None
        return cls(c, code, codes, rows, depth, ahead) if positive and decodes(codes) else None

    def begin(self, part: Part) -> None:
        """Compute the shifts of all blocks of a part, and note them."""
        blocks = floordiv(part.depth, self._c.block)

        def row(i: Any, *noted: Any) -> list[Any]:
            def some(b: Any, *carried: Any) -> list[Any]:
                mask = first_lanes(LANES, minimum(LANES, sub(blocks, b)))
                loops = _group_loops(self._c, part, i, scaled(b, self._c.block))
                bits = bitcast(self._reader.over_blocks(loops, mask)[self._code.scale], i32())
                exponent = arith.andi(arith.shrui(bits, _words(_HALF)), _words(_EXPONENT_IN_WORD))
                shift = arith.subi(exponent, _words(_BIAS_IN_WORD))
                both = arith.ori(arith.shli(shift, _words(_HALF)), arith.andi(shift, _words((1 << _HALF) - 1)))
                store_vector(both, self._shifts, [i, b])
                lanes = [lane // 2 for lane in range(2 * LANES)]
                return self.range.note_shift(list(carried), bitcast(both, i16()), shuffle(mask, mask, lanes))

            return loop(0, blocks, LANES, some, noted)

        self.range.keep(loop(0, part.count, 1, row, self.range.start()))

    def words(self, part: Part, row: Size, k: Size, carried: list[Any]) -> tuple[list[list[Any]], list[Any]]:
        codes = self._codes(part, row, k)
        shift = self._shift(row, k)
        found: list[list[Any]] = []
        for word, nonzero in self._table_words(codes):
            found.append([bitcast(arith.select(nonzero, arith.addi(word, shift), word), i32())])
        return found, self.range.note_codes(carried, codes)

    def examine(self, part: Part, row: Size, k: Size, carried: list[Any]) -> list[Any]:
        codes = self._codes(part, row, k)
        shift = self._shift(row, k)
        for _, nonzero in self._table_words(codes):
            carried = self.range.note_shift(carried, shift, nonzero)
        return self.range.note_codes(carried, codes)

    def release(self) -> None:
        release(self._shifts)

    def _table_words(self, codes: Any) -> list[tuple[Any, Any]]:
        """Return the bf16 of codes without their scales, and which are no zeros."""
        found: list[tuple[Any, Any]] = []
        for bytes_ in self._decoder.words(codes):
            word = vector.bitcast(word_type(), bytes_)
            magnitude = arith.andi(word, splat((1 << 15) - 1, 2 * WORDS, i16()))
            found.append((word, arith.cmpi(arith.CmpIPredicate.ne, magnitude, splat(0, 2 * WORDS, i16()))))
        return found

    def _codes(self, part: Part, row: Size, k: Size) -> Any:
        item = self._code.input
        ahead = places_of(item, _group_loops(self._c, part, *self._next(part, row, k)))
        prefetch(self._buffer, ahead if item.packed == 1 else bytes_at(ahead), self._ahead.level)
        places = places_of(item, _group_loops(self._c, part, row, k))
        codes = (load_vector if item.packed == 1 else load_nibbles)(self._buffer, places, GROUP)
        return arith.bitcast(ir.VectorType.get([GROUP], i8()), codes)

    def _next(self, part: Part, row: Size, k: Size) -> tuple[Size, Size]:
        """Return the row and the entry along k to fetch, beyond the part's depth those of later rows."""
        row, k = index(row), index(add(k, self._ahead.groups * GROUP))
        beyond = arith.cmpi(arith.CmpIPredicate.sge, k, index(part.depth))
        later = index(add(row, self._ahead.rows))
        return arith.select(beyond, later, row), arith.select(beyond, index(sub(k, part.depth)), k)

    def _shift(self, row: Size, k: Size) -> Any:
        """Return what to add to the bits of a group's words, in the lanes where the tables leave its entries."""
        block = self._c.block
        first = floordiv(k, block)
        found = broadcast(load(self._shifts, [row, first]), WORDS)
        for number in range(1, GROUP // block):
            lanes = [ORDER[lane] // block == number for lane in range(WORDS)]
            found = arith.select(_mask(lanes), broadcast(load(self._shifts, [row, add(first, number)]), WORDS), found)
        return bitcast(found, i16())


def i16() -> Any:
    return ir.IntegerType.get_signless(16)


def _words(value: int) -> Any:
    return splat(value, LANES, i32())


def _mask(lanes: list[bool]) -> Any:
    i1 = ir.IntegerType.get_signless(1)
    type_ = ir.VectorType.get([len(lanes)], i1)
    return arith.constant(type_, ir.DenseElementsAttr.get([ir.IntegerAttr.get(i1, int(b)) for b in lanes], type_))


class ColumnPacker:
    """Packs what meets rows of tiles as [column / 16][k / 32][part][word][column % 16]."""

    def __init__(self, contraction: Contraction, parts: int, count: Size, pairing: Pairing):
        self._parts, self._pairing = parts, pairing
        self.range = ValueRange(parts)
        self._depth = max(GROUP, contraction.block)
        self._strip = scratch([1, self._depth, LANES])
        self._packer = RightPacker(contraction, LANES, LANES, count)

    def release(self) -> None:
        self.range.release()
        release(self._strip)

    def pack(self, part: Part, panel: Any) -> None:
        """Pack a part; `range` is of it alone."""
        self.range.reset()

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
                        load_vector(self._strip, [0, add(start, at + more), 0], LANES) for more in (0, pairing.distance)
                    )
                    noted = self.range.note(self.range.note(noted, low), high)
                    for number, packed in enumerate(words(low, high, self._parts)):
                        store_vector(packed, panel, [j, add(first, group * STEPS + step), number, w, 0])
            return noted

        self.range.keep(loop(0, WORDS, 1, word, self.range.start()))


def _remainder(value: Size, divisor: int) -> Size:
    if isinstance(value, int):
        return value % divisor
    return affine.apply(ir.AffineMap.get(1, 0, [ir.AffineExpr.get_mod(ir.AffineExpr.get_dim(0), divisor)]), [value])
