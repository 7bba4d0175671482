"""Which arguments of a function hold one of its results in the end, if buffers are updated in place."""

from typing import Any

from mx_dialect._mlir import ir
from mx_dialect.runtime.signature import Signature


def updated_arguments(function: Any, signature: Signature) -> frozenset[int]:
    """Return the argument slots into which a function at the value level seems to compute a result.

    Each result is followed back through the operands that operations write their results into. This is a guess that
    bufferization confirms or not; an argument left out is merely copied.
    """
    block = function.regions[0].blocks[0]
    first_slots: dict[Any, int] = {}
    position = 0
    for argument, value in zip(block.arguments, signature.arguments, strict=True):
        first_slots[argument] = position
        position += len(value.slots)

    updated: set[int] = set()
    for op in block:
        if op.operation.name != "func.return":
            continue
        for returned, value in zip(op.operation.operands, signature.results, strict=True):
            origin = _origin(returned)
            if origin in first_slots:
                first = first_slots[origin]
                updated.update(range(first, first + len(value.slots)))
    slots = signature.argument_slots
    return frozenset(number for number in updated if slots[number].shape is not None)


def _origin(value: Any) -> Any:
    """Follow a value back to the one whose buffer it may end up in."""
    while isinstance(value, ir.OpResult):
        destination = _destination(value.owner.operation, value.result_number)
        if destination is None:
            break
        value = destination
    return value


def _destination(op: Any, number: int) -> Any:
    """Return the operand that an operation writes its result of that number into, or None."""
    if op.name == "mx.block_matmul":
        return op.operands[2]
    if op.name.startswith("linalg."):
        return op.operands[len(op.operands) - len(op.results) + number]
    if op.name in ("tensor.insert", "tensor.insert_slice"):
        return op.operands[1]
    if op.name == "tensor.cast":
        return op.operands[0]
    if op.name == "scf.for":
        # Lower bound, upper bound and step come before the initial values.
        return op.operands[3 + number]
    return None
