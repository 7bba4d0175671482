"""Finding operations before changing any of them: a walk must not see its own changes."""

from collections.abc import Callable
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
