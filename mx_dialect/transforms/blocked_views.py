"""What makes a view of scales, or a window of one, fit for its blocked shape [1, X / 16, G / 2, 16, 2]."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from mx_dialect._mlir import ir
from mx_dialect.layouts.a5 import BLOCKED_RANK, BOX_BLOCKS, BOX_GROUPS, ScaleLayout
from mx_dialect.tile_memory_ops import extents
from mx_dialect.tile_types import LayoutAttr, layout_of
from mx_dialect.transforms.scale_view_types import Refusal

BLOCKED = "mx_tensor_views_blocked"
"""The attribute of a function whose views of scales have their blocked shape."""


class Dimension(NamedTuple):
    """A dimension of a logical view, and how much of it makes a box."""

    name: str
    axis: int
    box: int

    def __str__(self) -> str:
        return f"{self.name} dimension (axis {self.axis})"


@functools.cache
def dimensions(layout: ScaleLayout) -> tuple[Dimension, Dimension]:
    """Return the block dimension and the group dimension of a layout."""
    block = Dimension("block", layout.block_axis, BOX_BLOCKS)
    return block, Dimension("group", layout.group_axis, BOX_GROUPS)


def shape_error(layout: ScaleLayout, shape: Sequence[int | None]) -> str | None:
    """Return which rule keeps a logical shape (None is dynamic) from being cut in boxes, and what to do; or None."""
    if len(shape) != 2:
        axes = " and ".join(str(dimension) for dimension in sorted(dimensions(layout), key=lambda d: d.axis))
        return f"layout {layout.name} needs rank 2, not {len(shape)}; give it a {axes}"
    for dimension in dimensions(layout):
        if shape[dimension.axis] is None:
            return f"layout {layout.name} needs a static {dimension}; give it a number"
    for dimension in dimensions(layout):
        extent = shape[dimension.axis] or 0
        if extent <= 0 or extent % dimension.box:
            return (
                f"layout {layout.name} needs a {dimension} that is a positive multiple of {dimension.box}, not"
                f" {extent}; pad it to whole boxes of {BOX_BLOCKS} x {BOX_GROUPS}"
            )
    return None


def blocked_view(view: Any) -> Any:
    """Return the type of a logical view in blocked shape, or a refusal."""
    attribute: Any = layout_of(view)
    layout: ScaleLayout = attribute.layout
    if view.rank == BLOCKED_RANK:
        return Refusal(f"has a view '{view}' of rank {BLOCKED_RANK}; only a function with {BLOCKED} has blocked views")
    problem = shape_error(layout, extents(view)) or _property_error(attribute)
    if problem is not None:
        return Refusal(f"has a view '{view}' that cannot be blocked: {problem}")
    # Explicit strides are those of the logical shape. --mx-materialize-strides gives the new ones.
    kept = {name: entry for name, entry in attribute.entries.items() if name != "strides"}
    shape = layout.blocked_shape(view.shape)
    return ir.RankedTensorType.get(shape, view.element_type, LayoutAttr.of(kept))


def _property_error(attribute: Any) -> str | None:
    name = attribute.layout.name
    if attribute.valid_shape is not None:
        return (
            f"layout {name} takes no valid_shape of a whole view; give the valid shape of each window to mx.tile_load"
        )
    if attribute.distributed:
        return f"layout {name} takes no distributed view; view the part on each device on its own"
    return None
