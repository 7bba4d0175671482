"""Few columns in few tiles: where a value is three words, those may be columns of their own.

A tile of the matrix unit takes as long for one column as for sixteen. Of three tiles, one for each part of the words,
few columns leave most empty; side by side they fit one or two.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mx_dialect._mlir import arith
from mx_dialect.schedule.amx_tiles import WORDS
from mx_dialect.schedule.amx_words import SPLIT
from mx_dialect.schedule.emitter import Size, either, index, load_vector, loop, store_vector
from mx_dialect.schedule.registers import LANES, shuffle


@dataclass(frozen=True)
class Spread:
    """Tiles, `width` of them, in which part p of column c, of `count` at most, is column p * count + c."""

    count: int

    @property
    def width(self) -> int:
        return -(-self.count * SPLIT // LANES)

    def fill(self, source: Any, panel: Any) -> None:
        """Fill [tile][k / 32][1][word][column] from [1 or more][k / 32][part][word][column]."""
        steps = source.type.shape[1]

        def step(k: Any) -> list[Any]:
            def word(w: Any) -> list[Any]:
                parts = [load_vector(source, [0, k, part, w, 0], LANES) for part in range(SPLIT)]
                for tile, row in enumerate(self._spread(parts)):
                    store_vector(row, panel, [tile, k, 0, w, 0])
                return []

            return loop(0, WORDS, 1, word)

        loop(0, steps, 1, step)

    def _spread(self, parts: Sequence[Any]) -> list[Any]:
        """Return the rows of the tiles from a row of each part; columns beyond the last have any value."""
        first, second, third = parts
        found: list[Any] = []
        for tile in range(self.width):
            places = [divmod(min(tile * LANES + lane, SPLIT * self.count - 1), self.count) for lane in range(LANES)]
            two = shuffle(first, second, [min(part, 1) * LANES + column for part, column in places])
            lanes = [LANES + column if part == 2 else lane for lane, (part, column) in enumerate(places)]
            found.append(shuffle(two, third, lanes))
        return found

    def gathered(self, tiles: Sequence[Any]) -> Any:
        """Return the sums of the parts of each column from a row of each tile; lanes beyond the last have any value."""
        columns = [min(lane, self.count - 1) for lane in range(LANES)]
        total = None
        for part in range(SPLIT):
            found = shuffle(tiles[0], tiles[-1], [part * self.count + column for column in columns])
            total = found if total is None else arith.addf(total, found)
        return total


@dataclass(frozen=True)
class Layout:
    """How up to `most` columns lie in tiles, `width` of them side by side."""

    most: int
    width: int
    spread: Spread | None


def layouts(count: Size, parts: int) -> list[Layout]:
    """Return the layouts for a number of columns, with more and more of them; one where the number is known."""
    spreads = [Spread(width * LANES // SPLIT) for width in (1, 2)] if parts == SPLIT else []
    known = [
        *(Layout(spread.count, spread.width, spread) for spread in spreads),
        *(Layout(width * LANES, width, None) for width in (1, 2)),
    ]
    if not isinstance(count, int):
        return known
    return [next((layout for layout in known if count <= layout.most), known[-1])]


def by_layout(known: Sequence[Layout], count: Size, body: Callable[[Layout], None]) -> None:
    """Build what depends on the layout, for each; the last has all numbers of columns that the others do not."""

    def build(layout: Layout) -> list[Any]:
        body(layout)
        return []

    if len(known) == 1:
        build(known[0])
        return

    def rest() -> list[Any]:
        by_layout(known[1:], count, body)
        return []

    fits = arith.cmpi(arith.CmpIPredicate.sle, index(count), index(known[0].most))
    either(fits, lambda: build(known[0]), rest)
