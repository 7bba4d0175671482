"""What `mx-tile-matmul` builds of the operands of a matmul for its kernel: padded data, packed scales."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mx_dialect._mlir import tensor
from mx_dialect.layouts.a5 import BOX_BLOCKS, BOX_BYTES, BOX_GROUPS, MX_A_ZZ, MX_B_NN, ScaleLayout
from mx_dialect.lowering.matmul_host import batch_indices, entry, padded, permuted, reshaped
from mx_dialect.lowering.tile_matmul_kernel import Problem, scale_view_type
from mx_dialect.ops import decompose
from mx_dialect.tile_memory_ops import tensor_view


@dataclass(frozen=True)
class Side:
    """One operand, ready for the kernel but for its batch axes: data [batch..., rows, columns], and the bytes of its
    scales in order of boxes, [batch..., bytes], [1, bytes] without batch axes."""

    data: Any
    scale_bytes: Any
    view_type: Any

    def of_batch(self, indices: Sequence[Any]) -> list[Any]:
        """Return the matrix and the view of its scales at the accumulator's batch indices."""
        *batch, rows, columns = self.data.type.shape
        place = batch_indices(batch, indices)
        data = entry(self.data, place, [rows, columns])
        scale_bytes = entry(self.scale_bytes, place, [1, self.scale_bytes.type.shape[-1]])
        return [data, tensor_view(scale_bytes, self.view_type)]


def lhs_side(value: Any, problem: Problem) -> Side:
    """Build what the kernel takes for lhs, [batch..., M, K]."""
    data, scale = decompose(value)
    shape = [*data.type.shape[:-1], problem.depth]
    view = problem.lhs_scale_shape
    return Side(
        padded(data, shape, 0.0),
        _boxes(padded(scale, [*shape[:-2], *view], 1.0), block_axis=0),
        scale_view_type(view, MX_A_ZZ),
    )


def rhs_side(value: Any, problem: Problem, transposed: bool) -> Side:
    """Build what the kernel takes for rhs, [batch..., K, N], or [batch..., N, K] if transposed."""
    data, scale = decompose(value)
    batch = list(data.type.shape[:-2])
    shape, view = [problem.depth, problem.columns], problem.rhs_scale_shape

    def as_given(pair: Sequence[int]) -> list[int]:
        return [*batch, *(reversed(pair) if transposed else pair)]

    data = padded(data, as_given(shape), 0.0)
    scale = padded(scale, as_given(view), 1.0)
    if transposed:
        rank = len(batch)
        data = permuted(data, [*range(rank), rank + 1, rank])
    return Side(data, _boxes(scale, block_axis=0 if transposed else 1), scale_view_type(view, MX_B_NN))


def _boxes(scale: Any, block_axis: int) -> Any:
    """Return scales [batch..., X, G], or [batch..., G, X] for block axis 1, as their bytes in order of boxes.

    The layouts differ only in which axis of the logical tensor is which, and a transposed rhs has them exchanged.
    """
    order = ScaleLayout("", block_axis)
    batch, pair = list(scale.type.shape[:-2]), scale.type.shape[-2:]
    blocks, groups = order.split(pair)
    split = order.logical([blocks // BOX_BLOCKS, BOX_BLOCKS], [groups // BOX_GROUPS, BOX_GROUPS])
    leading = batch or [1]
    rank = len(leading)
    alone = [[i] for i in range(rank)]
    first, second = [rank, rank + 1], [rank + 2, rank + 3]
    apart = [*alone, first, second] if batch else [[0, *first], second]
    boxed = reshaped(tensor.expand_shape, scale, [*leading, *split[0], *split[1]], apart)
    (box_row, row), (box_column, column) = order.split((first, second))
    ordered = permuted(boxed, [*range(rank), box_row, box_column, row, column])
    count = (blocks // BOX_BLOCKS) * (groups // BOX_GROUPS) * BOX_BYTES
    return reshaped(tensor.collapse_shape, ordered, [*leading, count], [*alone, [*first, *second]])
