"""Moves values out of the body of a linalg.generic into operations of their own, over the loops they depend on.

    %0 = linalg.generic over (m, n, k): C[m, n] += f(A[m, k]) * B[k, n]

becomes

    %1 = linalg.generic over (m, k): F[m, k] = f(A[m, k])
    %0 = linalg.generic over (m, n, k): C[m, n] += F[m, k] * B[k, n]

so that f is evaluated once for each (m, k). The schedule then computes %1 in tiles, just before they are read.
"""

from collections.abc import Callable, Sequence
from typing import Any

from mx_dialect._mlir import ir, linalg, tensor
from mx_dialect.transforms.structured import Structured
from mx_dialect.transforms.vector_plan import Precomputed

_PARALLEL = "#linalg.iterator_type<parallel>"


def move_out(structured: Structured, values: Sequence[Precomputed]) -> tuple[Any, list[Any]]:
    """Replace an operation by one that reads `values` as further inputs; return it and the operations before it.

    The new operations are made at the old one's place and location; the old one is erased.
    """
    op = structured.op
    if not values:
        return op, []
    with ir.InsertionPoint(op), op.location:
        producers = [_producer(structured, item) for item in values]
        consumer = _consumer(structured, values, [producer.results[0] for producer in producers])
    for old, new in zip(op.results, consumer.results, strict=True):
        old.replace_all_uses_with(new)
    op.erase()
    return consumer, producers


def _producer(structured: Structured, item: Precomputed) -> Any:
    """Make the operation that computes one value over the loops it depends on."""
    body = structured.body
    ops = body.needed_for([item.value])
    operands = body.inputs_read(ops)
    numbering = {loop: number for number, loop in enumerate(item.loops)}
    sizes = [structured.extents[loop] for loop in item.loops]
    return _generic(
        inputs=[structured.op.operands[i] for i in operands],
        outputs=[tensor.EmptyOp(sizes, item.value.type).result],
        maps=[*(_map(structured.maps[i], numbering) for i in operands), _map(item.loops, numbering)],
        iterator_types=[_PARALLEL] * len(item.loops),
        emit=lambda arguments: _clone(
            ops, dict(zip([body.arguments[i] for i in operands], arguments, strict=False)), [item.value]
        ),
    )


def _consumer(structured: Structured, values: Sequence[Precomputed], computed: Sequence[Any]) -> Any:
    """Make the operation that reads computed values instead of computing them."""
    body = structured.body
    given = [item.value for item in values]
    ops = body.needed_for(body.yielded, given)
    # An input that nothing reads stays: its shape may be all that says how often a loop runs.
    moved = {*body.inputs_read(body.ops)} - {*body.inputs_read(ops, body.yielded)}
    operands = [i for i in structured.inputs if i not in moved]
    numbering = {loop: loop for loop in structured.loops}
    outputs = range(structured.input_count, len(structured.maps))
    replaced = [*(body.arguments[i] for i in operands), *given, *(body.arguments[i] for i in outputs)]
    return _generic(
        inputs=[*(structured.op.operands[i] for i in operands), *computed],
        outputs=[structured.op.operands[i] for i in outputs],
        maps=[
            *(_map(structured.maps[i], numbering) for i in operands),
            *(_map(item.loops, numbering) for item in values),
            *(_map(structured.maps[i], numbering) for i in outputs),
        ],
        iterator_types=[str(kind) for kind in structured.op.attributes["iterator_types"]],
        emit=lambda arguments: _clone(ops, dict(zip(replaced, arguments, strict=True)), body.yielded),
    )


def _map(loops: Sequence[int | None], numbering: dict[int, int]) -> Any:
    results = [
        ir.AffineExpr.get_constant(0) if loop is None else ir.AffineExpr.get_dim(numbering[loop]) for loop in loops
    ]
    return ir.AffineMapAttr.get(ir.AffineMap.get(len(numbering), 0, results))


def _generic(
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    maps: Sequence[Any],
    iterator_types: Sequence[str],
    emit: Callable[[Sequence[Any]], Sequence[Any]],
) -> Any:
    """Make a linalg.generic whose body is what `emit` makes of the block's arguments, yielding what it returns."""
    op = linalg.GenericOp(
        [value.type for value in outputs],
        inputs,
        outputs,
        ir.ArrayAttr.get(maps),
        ir.ArrayAttr.get([ir.Attribute.parse(kind) for kind in iterator_types]),
    ).operation
    scalars = [getattr(value.type, "element_type", value.type) for value in (*inputs, *outputs)]
    block = op.regions[0].blocks.append(*scalars, arg_locs=[op.location] * len(scalars))
    with ir.InsertionPoint(block):
        linalg.YieldOp(emit(block.arguments))
    return op


def _clone(ops: Sequence[Any], replaced: dict[Any, Any], wanted: Sequence[Any]) -> list[Any]:
    """Copy scalar operations, reading `replaced` values in place of the old ones; return what became of `wanted`."""
    for op in ops:
        copy = op.clone()
        for number, value in enumerate(op.operands):
            copy.operands[number] = replaced.get(value, value)
        replaced.update(zip(op.results, copy.results, strict=True))
    return [replaced.get(value, value) for value in wanted]
