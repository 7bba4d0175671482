"""Exact dot products of blocks by the tile registers of x86's matrix unit, from the panels of the dots schedule.

A tile of the left side is sixteen rows of one block, 64 bytes of it at most; that of the right side the same of sixteen
columns. The dot products go through memory: the unit has no way to the vector registers.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from mx_dialect.schedule.amx_tiles import ROWS, Tiles, tile_panel
from mx_dialect.schedule.dots_exact import CODES
from mx_dialect.schedule.dots_packing import LeftPanel, RightPanel
from mx_dialect.schedule.emitter import Size, add, floordiv, load_vector, loop, minimum, release, scaled, sub
from mx_dialect.schedule.registers import BYTES, LANES

_ROW_BYTES = 4 * LANES
_SUMS = (0, 1)
# The sides take turns, so that one loads while another is used.
_SIDES = ((2, 3), (4, 5), (6, 7))

Finish: TypeAlias = Callable[[Size, Callable[[int], Any], Sequence[Any]], list[Any]]
"""Adds the dot products of a block, of which it is given those of row r, to sums."""


class BlockTiles:
    """The tile registers, as blocks need them, between `BlockTiles()` and `release`."""

    def __init__(self, block: int):
        self._words = block // CODES
        size = min(block, BYTES)
        self._steps = range(0, block, size)
        sides = ((ROWS, size), (size // CODES, _ROW_BYTES)) * len(_SIDES)
        self._tiles = Tiles((*((ROWS, _ROW_BYTES),) * len(_SUMS), *sides))
        self._dots = tile_panel(len(_SUMS))
        self._turn = 0

    def release(self) -> None:
        self._tiles.release()
        release(self._dots)

    def add_blocks(
        self,
        panels: tuple[LeftPanel, RightPanel],
        place: tuple[Size, Size],
        blocks: Size,
        totals: Sequence[Any],
        finish: Finish,
    ) -> list[Any]:
        """Return sums with the dot products of blocks added, of the sixteen rows from `place[0]` on and one strip.

        The dot products that `finish` gets lack what sums start from. While those of a block are added, those of the
        next are on their way through memory, and those of the one after that are computed.
        """
        last = sub(blocks, 1)

        def multiply(register: int, block: Size) -> None:
            self._multiply(register, panels, place, minimum(block, last))

        def stored(register: int) -> Callable[[int], Any]:
            return lambda row: load_vector(self._dots, [register, row, 0], LANES)

        def store(register: int) -> None:
            self._tiles.store(register, self._dots, register)

        def pair(b: Any, *so_far: Any) -> list[Any]:
            sums: Sequence[Any] = so_far
            store(1)
            for register in _SUMS:
                multiply(register, add(b, len(_SUMS) + register))
                sums = finish(add(b, register), stored(register), sums)
                if register == 0:
                    store(0)
            return list(sums)

        def one(b: Any, *so_far: Any) -> list[Any]:
            return finish(b, stored(0), so_far)

        for register in _SUMS:
            multiply(register, register)
        store(0)
        whole = scaled(floordiv(blocks, len(_SUMS)), len(_SUMS))
        return loop(whole, blocks, 1, one, loop(0, whole, len(_SUMS), pair, totals))

    def _multiply(
        self, register: int, panels: tuple[LeftPanel, RightPanel], place: tuple[Size, Size], block: Size
    ) -> None:
        self._tiles.clear(register)
        for step in self._steps:
            word = add(scaled(block, self._words), step // CODES)
            left, right = _SIDES[self._turn % len(_SIDES)]
            self._turn += 1
            self._load_left(left, place[0], word, panels[0])
            self._load_right(right, place[1], word, panels[1])
            self._tiles.add_byte_product(register, left, right)

    def _load_left(self, register: int, row: Size, word: Size, panel: LeftPanel) -> None:
        pitch = CODES * panel.words.type.shape[1]
        self._tiles.load_rows(register, panel.words, add(scaled(row, pitch), scaled(word, CODES)), pitch)

    def _load_right(self, register: int, strip: Size, word: Size, panel: RightPanel) -> None:
        pitch = _ROW_BYTES * panel.words.type.shape[1]
        self._tiles.load_rows(register, panel.words, add(scaled(strip, pitch), scaled(word, _ROW_BYTES)), _ROW_BYTES)
