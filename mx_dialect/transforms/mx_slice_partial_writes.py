"""mx-slice-partial-writes: make bufferization see that a vector covers only part of the tensor it is written to.

one-shot-bufferize takes a vector.transfer_write at constant indices of 0 for one that overwrites its whole tensor where
no extent of the tensor exceeds the extent of the vector at the same position, counted from the front. For a vector of
fewer dimensions than the tensor that is wrong: vector<7> covers one row of tensor<5x7>, yet 5 does not exceed 7. The
other rows would not be copied to a new buffer, and a loop would find in them what it wrote an iteration before. So

    %w = vector.transfer_write %v, %t[%c0, %c0] : vector<7xf32>, tensor<5x7xf32>

becomes

    %s = tensor.extract_slice %t[0, 0] [1, 7] [1, 1] : tensor<5x7xf32> to tensor<1x7xf32>
    %v = vector.transfer_write %v, %s[%c0, %c0] : vector<7xf32>, tensor<1x7xf32>
    %w = tensor.insert_slice %v into %t[0, 0] [1, 7] [1, 1] : tensor<1x7xf32> into tensor<5x7xf32>

which bufferizes to the same code where it can be done in place.
"""

from typing import Any

from mx_dialect import passes
from mx_dialect._mlir import ir, tensor
from mx_dialect.walk import operations


def _covered(op: Any) -> list[int]:
    """Return the extents of the part of a tensor, from its start on, that a transfer_write covers."""
    vector, target = op.operands[0].type, op.operands[1].type
    covered = [1] * target.rank
    for expr, size in zip(op.attributes["permutation_map"].value.results, vector.shape, strict=True):
        covered[expr.position] = min(size, target.shape[expr.position])
    return covered


def _is_partial(op: Any) -> bool:
    """Tell whether a transfer_write covers part of a tensor, but one-shot-bufferize takes it to cover it all."""
    if op.name != "vector.transfer_write" or not isinstance(op.operands[1].type, ir.RankedTensorType):
        return False
    vector, target = op.operands[0].type, op.operands[1].type
    # A slice does not help where a mask is what makes a write partial; nothing in this project makes masks.
    if not target.has_static_shape or len(op.operands) != 2 + target.rank:
        return False
    looks_whole = all(extent <= size for extent, size in zip(target.shape, vector.shape, strict=False))
    return looks_whole and _covered(op) != list(target.shape) and all(map(_is_zero, list(op.operands)[2:]))


def _is_zero(index: Any) -> bool:
    if not isinstance(index, ir.OpResult) or index.owner.operation.name not in ("arith.constant", "index.constant"):
        return False
    return index.owner.operation.attributes["value"].value == 0


def run(root: Any, options: passes.NoOptions) -> None:
    """Write vectors into slices of tensors under `root` where they cover less than the tensors, in place."""
    with root.context:
        for op in operations(root, _is_partial):
            _slice(op)


def _slice(op: Any) -> None:
    target = op.operands[1]
    sizes = _covered(op)
    rank = len(sizes)
    with ir.InsertionPoint(op), op.location:
        type_ = ir.RankedTensorType.get(sizes, target.type.element_type)
        part = tensor.extract_slice(type_, target, [], [], [], [0] * rank, sizes, [1] * rank)
        write = op.clone()
        write.operands[1] = part
        write.results[0].set_type(type_)
        whole = tensor.insert_slice(write.results[0], target, [], [], [], [0] * rank, sizes, [1] * rank)
    op.results[0].replace_all_uses_with(whole)
    op.erase()


PASS = passes.register_pass(
    passes.Pass(
        name="mx-slice-partial-writes",
        summary="Write vectors into slices of tensors that they cover only part of",
        run=run,
        requires="vectors on tensors, before one-shot-bufferize",
        leaves="no transfer_write that one-shot-bufferize takes for one of a whole tensor, but those that are",
    )
)
