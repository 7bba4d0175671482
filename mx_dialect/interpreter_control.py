"""The loops and branches of scf on what `interpreter` computes with, followed as a kernel takes them.

A decision is made of exact numbers: `interpreter_scalar` refuses a comparison that roundings may turn.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from mx_dialect.interpreter_tensor import Unsupported
from mx_dialect.interpreter_values import Array, Value

# Evaluates a block: (block, values of its arguments) -> the values that its terminator has.
RunBlock = Callable[[Any, Sequence[Value]], list[Value]]

MOST_ITERATIONS = 1_000_000
"""How many iterations the loops of one evaluation take together: some minutes' worth of a small body."""


class Iterations:
    """The iterations that an evaluation has left."""

    def __init__(self) -> None:
        self._left = MOST_ITERATIONS

    def take(self) -> None:
        """Count one.

        Raises:
            Unsupported: there is none left.
        """
        if not self._left:
            raise Unsupported(f"goes past the {MOST_ITERATIONS} iterations of all loops that --check follows")
        self._left -= 1


def evaluate(op: Any, operands: list[Value], run: RunBlock, iterations: Iterations) -> list[Value] | None:
    """Return the results of an operation of scf, None if it is none that is known.

    Raises:
        Unsupported: a loop with a step that is not positive, or with too many iterations.
    """
    found = _OPERATIONS.get(op.name)
    return None if found is None else found(op, operands, run, iterations)


def _for(op: Any, operands: list[Value], run: RunBlock, iterations: Iterations) -> list[Value]:
    lower, upper, step = (cast(Array, value) for value in operands[:3])
    carried = operands[3:]
    if lower.dtype.kind == "b":
        raise Unsupported("counts in i1")
    dtype = np.dtype(f"u{lower.dtype.itemsize}") if "unsignedCmp" in op.attributes else lower.dtype
    start, stop, stride = (int(value.view(dtype)) for value in (lower, upper, step))
    if stride <= 0:
        raise Unsupported(f"has the step {stride}, which is not positive")
    for index in range(start, stop, stride):
        iterations.take()
        carried = run(op.regions[0].blocks[0], [np.array(index, dtype).view(lower.dtype), *carried])
    return carried


def _if(op: Any, operands: list[Value], run: RunBlock, iterations: Iterations) -> list[Value]:
    taken = op.regions[0 if cast(Array, operands[0]) else 1]
    # The second region of an scf.if without else has no block.
    return run(taken.blocks[0], []) if len(taken.blocks) else []


def _while(op: Any, operands: list[Value], run: RunBlock, iterations: Iterations) -> list[Value]:
    before, after = (region.blocks[0] for region in op.regions)
    condition, *passed = run(before, operands)
    while cast(Array, condition):
        iterations.take()
        condition, *passed = run(before, run(after, passed))
    return passed


_OPERATIONS: dict[str, Callable[[Any, list[Value], RunBlock, Iterations], list[Value]]] = {
    "scf.for": _for,
    "scf.if": _if,
    "scf.while": _while,
}
