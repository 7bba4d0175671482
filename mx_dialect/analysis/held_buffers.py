"""Which buffers a function surely holds at an operation: allocated on every way there, and freed on none.

A forward analysis over the blocks of a function body. What it cannot follow counts as freed.
"""

from typing import Any

from mx_dialect._mlir import ir


def held_buffers(function: Any, points: list[Any]) -> list[list[Any]]:
    """Return, for each operation of `points` in the body of `function`, the `memref.alloc` results held before it."""
    blocks = list(function.regions[0])
    # Most operations change nothing; the others are looked at again and again.
    changes = [[op.operation for op in block if _may_change(op.operation)] for block in blocks]
    # Before anything is known of a block it holds everything: the analysis only takes away.
    everything = [op.results[0] for ops in changes for op in ops if _allocates(op)]
    at_end: dict[int, set[Any]] = {}
    changed = True
    while changed:
        changed = False
        for number, block in enumerate(blocks):
            held = _at_start(number, block, blocks, at_end, everything)
            for op in changes[number]:
                held = _after(op, held)
            if at_end.get(number) != held:
                at_end[number] = held
                changed = True
    return [_before(point, blocks, at_end, everything) for point in points]


def _may_change(op: Any) -> bool:
    """Tell whether what is held after an operation may differ from what is held before it."""
    return op.name in ("memref.alloc", "memref.dealloc", "memref.realloc") or len(op.regions) > 0


def _at_start(
    number: int, block: Any, blocks: list[Any], at_end: dict[int, set[Any]], everything: list[Any]
) -> set[Any]:
    if number == 0:
        return set()
    held = set(everything)
    for before in block.predecessors:
        held &= at_end.get(blocks.index(before), held)
    return held


def _after(op: Any, held: set[Any]) -> set[Any]:
    """Return what is held after an operation."""
    if _allocates(op):
        return held | {op.results[0]}
    if op.name in ("memref.dealloc", "memref.realloc"):
        buffer = op.operands[0]
        # A view, or a block argument, may be any of them.
        known = isinstance(buffer, ir.OpResult) and _allocates(buffer.owner.operation)
        return held - {buffer} if known else set()
    for region in op.regions:
        for block in region:
            for inner in block:
                # What an inner region allocates is gone at its end.
                held &= _after(inner.operation, held)
    return held


def _before(point: Any, blocks: list[Any], at_end: dict[int, set[Any]], everything: list[Any]) -> list[Any]:
    block = point.block
    held = _at_start(blocks.index(block), block, blocks, at_end, everything)
    for op in block:
        if op.operation == point:
            break
        held = _after(op.operation, held)
    return [buffer for buffer in everything if buffer in held]


def _allocates(op: Any) -> bool:
    return op.name == "memref.alloc"
