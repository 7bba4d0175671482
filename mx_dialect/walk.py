"""Finding operations before changing any of them: a walk must not see its own changes."""

from collections.abc import Callable, Iterator
from typing import Any

from mx_dialect._mlir import ir


def operations(root: Any, accept: Callable[[Any], bool], outer_first: bool = False) -> list[Any]:
    """Return the operations under `root` that `accept` takes, in program order.

    An operation comes after those in its regions, unless `outer_first`.
    """
    found: list[Any] = []

    def visit(op: Any) -> Any:
        if accept(op.operation):
            found.append(op.operation)
        return ir.WalkResult.ADVANCE

    root.walk(visit, ir.WalkOrder.PRE_ORDER if outer_first else ir.WalkOrder.POST_ORDER)
    return found


def defined_values(op: Any) -> list[Any]:
    """Return the values that an operation defines: its results and the arguments of its blocks."""
    return [*op.results, *(a for region in op.regions for block in region for a in block.arguments)]


def defining(value: Any, op_class: type) -> Any | None:
    """Return the operation that a value is a result of, if it is one of a class."""
    view = value.owner.opview if isinstance(value, ir.OpResult) else None
    return view if isinstance(view, op_class) else None


def is_function(op: Any) -> bool:
    """Tell whether an operation is a func.func."""
    return op.operation.name == "func.func"


def in_scopes(root: Any, opens: Callable[[Any], bool]) -> Iterator[tuple[Any, Any]]:
    """Yield (scope, operation) for each operation under `root`, in program order.

    The scope is the nearest operation around it, or itself, that `opens` takes; None where there is none.
    """
    pending: list[tuple[Any, Any]] = [(None, root.operation)]
    while pending:
        outer, op = pending.pop()
        scope = op if opens(op) else outer
        yield scope, op
        inner = [(scope, child.operation) for region in op.regions for block in region for child in block]
        pending.extend(reversed(inner))
