"""Which values control flow and calls hand on as which others.

    %r = scf.for ... iter_args(%x = %init) {    // %init is handed on as %x, %y too; %x and %r are tied
      scf.yield %y
    }

A tie is between values of one type that no operation lies between: what a loop carries and what it gives. Arguments and
results of functions have a `Boundary` to meet at, also where a function has no body.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mx_dialect._mlir import ir
from mx_dialect.submit_ops import SubmitOp

CALLS = ("func.call", "mx.submit")

_YIELDING = ("scf.if", "scf.index_switch", "scf.execute_region")
_LOOPS = ("scf.for", "scf.while")

CARRIERS = frozenset((*_YIELDING, *_LOOPS, *CALLS, "arith.select", "func.func"))
"""The operations whose results and block arguments are what is handed on."""
BRANCHES = frozenset(("cf.br", "cf.cond_br", "cf.switch"))


@dataclass(frozen=True)
class Boundary:
    """An argument or result of a function, which is named by whatever the caller tells functions apart by.

    That is better no operation: the hash of one changes when the operation does.
    """

    function: Any
    kind: str
    number: int


def callee_of(op: Any) -> str:
    """Return the name of the function that one of `CALLS` calls."""
    return ir.FlatSymbolRefAttr(op.attributes["callee"]).value


def argument_count(op: Any) -> int:
    """Return how many operands of one of `CALLS` are arguments: the first ones."""
    return len(op.opview.arguments) if isinstance(op.opview, SubmitOp) else len(op.operands)


def value_results(op: Any) -> list[Any]:
    """Return the results of one of `CALLS` that are the callee's."""
    return op.opview.values if isinstance(op.opview, SubmitOp) else list(op.results)


def handed_on(op: Any, function: Any, callee: Any | None) -> dict[int, Any]:
    """Return the operands, by number, that an operation in a function hands on, and the places that they become.

    `callee` is the function that one of `CALLS` calls, None if it is not known.
    """
    if op.name in BRANCHES:
        targets = [argument for block in op.successors for argument in block.arguments]
        return _numbered(targets, len(op.operands) - len(targets))
    if op.name == "arith.select":
        return {1: op.results[0], 2: op.results[0]}
    if op.name in _LOOPS:
        carried = _carried(op)
        return _numbered(carried, len(op.operands) - len(carried))
    if op.name in CALLS:
        count = 0 if callee is None else argument_count(op)
        return {i: Boundary(callee, "argument", i) for i in range(count)}
    if op.name == "func.return":
        return {i: Boundary(function, "result", i) for i in range(len(op.operands))}
    if op.name == "scf.condition":
        return _numbered(list(op.parent.operation.regions[1].blocks[0].arguments), 1)
    if op.name == "scf.yield":
        return _numbered(_yielded(op.parent.operation), 0)
    return {}


def ties(op: Any, function: Any, callee: Any | None) -> Iterator[tuple[Any, Any]]:
    """Yield the pairs of values and boundaries that an operation, in a function or a function itself, ties together."""
    if op.name == "scf.for":
        yield from zip(_carried(op), op.results, strict=True)
    elif op.name == "scf.while":
        yield from zip(op.regions[1].blocks[0].arguments, op.results, strict=True)
    elif op.name in CALLS and callee is not None:
        for number, result in enumerate(value_results(op)):
            yield result, Boundary(callee, "result", number)
    elif op.name == "func.func" and len(op.regions[0].blocks):
        for number, argument in enumerate(op.regions[0].blocks[0].arguments):
            yield argument, Boundary(function, "argument", number)


def _numbered(targets: list[Any], start: int) -> dict[int, Any]:
    return dict(enumerate(targets, start))


def _carried(loop: Any) -> list[Any]:
    """Return the arguments of a loop's first block that its last operands are handed on as."""
    arguments = list(loop.regions[0].blocks[0].arguments)
    return arguments[1:] if loop.name == "scf.for" else arguments


def _yielded(parent: Any) -> list[Any]:
    """Return what the operands of a yield become in the operation around it."""
    if parent.name in _LOOPS:
        return _carried(parent)
    return list(parent.results) if parent.name in _YIELDING else []
