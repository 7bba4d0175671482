"""The memory of the amx schedule: parts of both sides as tiles, and sums on their way to the result."""

from collections.abc import Sequence
from typing import Any

from mx_dialect.schedule.amx_packing import STEPS
from mx_dialect.schedule.amx_spread import Layout, by_layout
from mx_dialect.schedule.amx_tiles import DEPTH, ROWS, tile_panel
from mx_dialect.schedule.amx_words import EXACT
from mx_dialect.schedule.emitter import release, scratch
from mx_dialect.schedule.panel_packing import Part
from mx_dialect.schedule.registers import LANES

MOST_SUMS = 4
"""Tiles of sums in registers."""


class Panels:
    """Tiles of both sides, in `parts`, `left` and `right`, and of `sums`.

    Where there are `layouts` the left side is packed two groups at a time, and the right side may have to be spread.
    """

    def __init__(
        self, parts: tuple[int, int], layouts: Sequence[Layout], block_m: int, block_n: int, block_k: int
    ) -> None:
        self.parts, self.layouts = parts, layouts
        steps = block_k // DEPTH
        self.left = tile_panel(block_m // ROWS, 2 * STEPS if layouts else steps, parts[0])
        self.right = tile_panel(block_n // ROWS, steps, parts[1])
        self._spread = {layout: tile_panel(layout.width, steps, EXACT) for layout in layouts if layout.spread}
        self.sums = scratch([MOST_SUMS, ROWS, LANES])

    def right_as(self, layout: Layout) -> Any:
        """Return the panel that has the right side in a layout."""
        return self._spread.get(layout, self.right)

    def spread(self, short: Part) -> None:
        """Put a part of the right side, which is packed, in the layout for its number of columns."""

        def fill(layout: Layout) -> None:
            if layout.spread is not None:
                layout.spread.fill(self.right, self._spread[layout])

        if self._spread:
            by_layout(self.layouts, short.count, fill)

    def release(self) -> None:
        for memory in (self.left, self.right, self.sums, *self._spread.values()):
            release(memory)
