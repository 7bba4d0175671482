"""Few columns in few tiles: where a value is three words, those are columns of their own.

A tile of the matrix unit takes as long for one column as for sixteen. Of three tiles, one for each part of the words,
few columns leave most empty; side by side they fit one or two.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mx_dialect._mlir import arith
from mx_dialect.schedule.amx_words import SPLIT
from mx_dialect.schedule.emitter import Size
from mx_dialect.schedule.registers import LANES, shuffle

_MOST_TILES = 2


@dataclass(frozen=True)
class Spread:
    """Tiles in which part p of column c, of `count`, is column p * count + c."""

    count: int

    @classmethod
    def of(cls, count: Size, parts: int) -> "Spread | None":
        """Return how columns of values in so many parts are spread, None if they are too many or not known."""
        few = isinstance(count, int) and 0 < count * SPLIT <= _MOST_TILES * LANES
        return cls(count) if few and parts == SPLIT else None

    @property
    def width(self) -> int:
        """Return how many tiles there are side by side."""
        return -(-self.count * SPLIT // LANES)

    def spread(self, parts: Sequence[Any]) -> list[Any]:
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
