"""How an A5-like matrix engine lays out scales in global memory: boxes of 16 x 2 bytes.

A scale tensor of the left operand, `MX_A_ZZ`, is logically [M, G], one of the right operand, `MX_B_NN`, is [G, N], with
G = K / 32. M or N is the block dimension, cut in boxes of 16, G the group dimension, cut in boxes of 2. In memory both
are the row-major bytes of the blocked shape [1, X / 16, G / 2, 16, 2], X being M or N:

    byte of (x, g) = ((x // 16) * (G / 2) + g // 2) * 32 + (x % 16) * 2 + g % 2

The formulas here serve numpy packers, passes and lowerings alike.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from mx_dialect.diagnostics import MxError

Array: TypeAlias = npt.NDArray[Any]

GROUP_SIZE = 32
"""Elements along K that share a scale."""
BOX_BLOCKS = 16
BOX_GROUPS = 2
BOX_BYTES = BOX_BLOCKS * BOX_GROUPS
BLOCKED_RANK = 5


@dataclass(frozen=True)
class ScaleLayout:
    """Which axis of a logical scale tensor [M, G] or [G, N] is cut in boxes of 16, and which in boxes of 2."""

    name: str
    block_axis: int

    @property
    def group_axis(self) -> int:
        return 1 - self.block_axis

    def split(self, pair: Sequence[Any]) -> tuple[Any, Any]:
        """Return (block, group) of a pair in logical order: of extents, offsets or indices."""
        return pair[self.block_axis], pair[self.group_axis]

    def logical(self, block: Any, group: Any) -> tuple[Any, Any]:
        """Return block and group in logical order, the inverse of `split`."""
        return (block, group) if self.block_axis == 0 else (group, block)

    def blocked_shape(self, shape: Sequence[int]) -> tuple[int, int, int, int, int]:
        """Return the blocked shape of a logical shape whose extents are multiples of 16 and 2."""
        block, group = self.split(shape)
        return (1, block // BOX_BLOCKS, group // BOX_GROUPS, BOX_BLOCKS, BOX_GROUPS)

    def logical_shape(self, blocked: Sequence[int]) -> tuple[int, int]:
        """Return the logical shape of a blocked shape."""
        _, blocks, groups, box_blocks, box_groups = blocked
        rows, columns = self.logical(blocks * box_blocks, groups * box_groups)
        return rows, columns

    def byte_offset(self, shape: Sequence[int], row: Any, column: Any) -> Any:
        """Return the byte of a logical entry in a tensor of a logical shape; ints or integer arrays."""
        block, group = self.split((row, column))
        _, extent = self.split(shape)
        box = (block // BOX_BLOCKS) * (extent // BOX_GROUPS) + group // BOX_GROUPS
        return box * BOX_BYTES + (block % BOX_BLOCKS) * BOX_GROUPS + group % BOX_GROUPS


MX_A_ZZ = ScaleLayout("MX_A_ZZ", block_axis=0)
MX_B_NN = ScaleLayout("MX_B_NN", block_axis=1)
SCALE_LAYOUTS = {layout.name: layout for layout in (MX_A_ZZ, MX_B_NN)}


def blocked_index(
    block: Any, group: Any, divide: Callable[[Any, int], Any], rest: Callable[[Any, int], Any]
) -> tuple[Any, Any, Any, Any, Any]:
    """Return where in the blocked shape the entry of a block and a group lies.

    `divide` and `rest` are the division of such numbers, which are not negative, and its remainder.
    """
    return (0, divide(block, BOX_BLOCKS), divide(group, BOX_GROUPS), rest(block, BOX_BLOCKS), rest(group, BOX_GROUPS))


def blocked_strides(blocked: Sequence[int]) -> tuple[int, ...]:
    """Return the row-major strides of a blocked shape, in bytes."""
    strides = [1]
    for extent in reversed(blocked[1:]):
        strides.insert(0, strides[0] * extent)
    return tuple(strides)


def pack(scales: Array, layout: ScaleLayout) -> Array:
    """Return logical scales, [M, G] or [G, N] of one byte each, in blocked shape [1, X / 16, G / 2, 16, 2].

    Raises:
        MxError: not a rank-2 array of one-byte entries, or extents that are not multiples of 16 and 2.
    """
    _require_bytes(scales, 2, "scales to pack")
    block, group = layout.split(scales.shape)
    if block % BOX_BLOCKS or group % BOX_GROUPS:
        raise MxError(
            f"{layout.name} needs a block dimension that is a multiple of {BOX_BLOCKS} and a group dimension that is"
            f" a multiple of {BOX_GROUPS}, but the shape is {scales.shape}"
        )
    _, blocks, groups, *_ = layout.blocked_shape(scales.shape)
    rows, columns = layout.logical((blocks, BOX_BLOCKS), (groups, BOX_GROUPS))
    boxes = scales.reshape(*rows, *columns).transpose(np.argsort(_box_axes(layout)))
    return np.ascontiguousarray(boxes)[np.newaxis]


def unpack(blocked: Array, layout: ScaleLayout) -> Array:
    """Return the logical scales, [M, G] or [G, N], of bytes in blocked shape: the inverse of `pack`.

    Raises:
        MxError: not a rank-5 array of one-byte entries in blocked shape.
    """
    _require_bytes(blocked, BLOCKED_RANK, "blocked scales")
    if blocked.shape[0] != 1 or blocked.shape[3:] != (BOX_BLOCKS, BOX_GROUPS):
        raise MxError(f"blocked scales must have shape [1, X / 16, G / 2, 16, 2], but have {blocked.shape}")
    logical = blocked[0].transpose(_box_axes(layout)).reshape(layout.logical_shape(blocked.shape))
    return np.ascontiguousarray(logical)


def _box_axes(layout: ScaleLayout) -> tuple[int, ...]:
    """Return the axes of boxes [X / 16, G / 2, 16, 2] in logical order: those of the rows, then of the columns."""
    rows, columns = layout.logical((0, 2), (1, 3))
    return (*rows, *columns)


def _require_bytes(array: Array, rank: int, what: str) -> None:
    if array.ndim != rank or array.dtype.itemsize != 1:
        raise MxError(f"{what} must be a rank-{rank} array of bytes, not rank {array.ndim} of {array.dtype}")
