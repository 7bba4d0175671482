"""Moves values out of the body of a linalg.generic into operations of their own, over the loops they depend on.

    %0 = linalg.generic over (m, n, k): C[m, n] += f(A[m, k]) * B[k, n]

becomes

    %1 = linalg.generic over (m, k): F[m, k] = f(A[m, k])
    %0 = linalg.generic over (m, n, k): C[m, n] += F[m, k] * B[k, n]

so that f is evaluated once for each (m, k). The schedule then computes %1 in tiles, just before they are read.
"""

from collections.abc import Sequence
from typing import Any

from mx_dialect._mlir import ir
from mx_dialect.generics import PARALLEL, REDUCTION, affine_map, empty, generic
from mx_dialect.transforms.structured import Structured
from mx_dialect.transforms.vector_plan import Precomputed


def move_out(structured: Structured, values: Sequence[Precomputed]) -> tuple[Any, list[Any]]:
    """Replace an operation of one output by one that reads `values` as further inputs.

    Returns the new operation and those that compute the values, which are made before it, all at the old one's
    location. The old operation is erased.
    """
    op = structured.op
    if not values:
        return op, []
    with ir.InsertionPoint(op), op.location:
        computed = [_producer(structured, item) for item in values]
        result = _consumer(structured, values, computed)
    op.results[0].replace_all_uses_with(result)
    op.erase()
    return result.owner.operation, [value.owner.operation for value in computed]


def _producer(structured: Structured, item: Precomputed) -> Any:
    """Make the operation that computes one value over the loops it depends on; return its result."""
    body = structured.body
    ops = body.needed_for([item.value])
    operands = body.inputs_read(ops)
    numbering = {loop: number for number, loop in enumerate(item.loops)}
    return generic(
        [structured.op.operands[i] for i in operands],
        empty([structured.extents[loop] for loop in item.loops], item.value.type),
        [*(_map(structured.maps[i], numbering) for i in operands), _map(item.loops, numbering)],
        [PARALLEL] * len(item.loops),
        lambda *scalars: _clone(
            ops, dict(zip([body.arguments[i] for i in operands], scalars[:-1], strict=True)), item.value
        ),
    )


def _consumer(structured: Structured, values: Sequence[Precomputed], computed: Sequence[Any]) -> Any:
    """Make the operation that reads computed values instead of computing them; return its result."""
    body = structured.body
    given = [item.value for item in values]
    ops = body.needed_for(body.yielded, given)
    # An input that nothing reads stays: its shape may be all that says how often a loop runs.
    moved = {*body.inputs_read(body.ops)} - {*body.inputs_read(ops, body.yielded)}
    operands = [i for i in structured.inputs if i not in moved]
    numbering = {loop: loop for loop in structured.loops}
    replaced = [*(body.arguments[i] for i in operands), *given, body.arguments[-1]]
    return generic(
        [*(structured.op.operands[i] for i in operands), *computed],
        structured.op.operands[len(structured.maps) - 1],
        [
            *(_map(structured.maps[i], numbering) for i in operands),
            *(_map(item.loops, numbering) for item in values),
            _map(structured.maps[-1], numbering),
        ],
        [REDUCTION if loop in structured.reductions else PARALLEL for loop in structured.loops],
        lambda *scalars: _clone(ops, dict(zip(replaced, scalars, strict=True)), body.yielded[0]),
    )


def _map(loops: Sequence[int | None], numbering: dict[int, int]) -> Any:
    return affine_map(
        len(numbering),
        [ir.AffineExpr.get_constant(0) if loop is None else ir.AffineExpr.get_dim(numbering[loop]) for loop in loops],
    )


def _clone(ops: Sequence[Any], replaced: dict[Any, Any], wanted: Any) -> Any:
    """Copy scalar operations, reading `replaced` values in place of the old ones; return what became of `wanted`."""
    for op in ops:
        copy = op.clone()
        for number, value in enumerate(op.operands):
            copy.operands[number] = replaced.get(value, value)
        replaced.update(zip(op.results, copy.results, strict=True))
    return replaced.get(wanted, wanted)
