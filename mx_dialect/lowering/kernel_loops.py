"""Loops over tiles in a kernel function, with offsets that are ints where there is no loop."""

from collections.abc import Callable
from typing import Any

from mx_dialect._mlir import arith, ir, scf


class KernelLoops:
    """What kernels over static extents are built with. Offsets are ints or index values; `block` is the function's."""

    def __init__(self, block: Any):
        self.block = block
        self._constants: dict[int, Any] = {}

    def repeat(self, start: int, stop: int, step: int, carried: Any, body: Callable[[Any, Any], Any]) -> Any:
        """Return `carried` after `body(offset, carried)` for each step: in a loop, unless it is one step or none."""
        if stop - start <= step:
            return body(start, carried) if start < stop else carried
        loop = scf.ForOp(*(self.index(bound) for bound in (start, stop, step)), [carried])
        with ir.InsertionPoint(loop.body):
            scf.yield_([body(loop.induction_variable, loop.inner_iter_args[0])])
        return loop.results[0]

    def index(self, value: int) -> Any:
        """Return an index constant, which stands before all loops."""
        if value not in self._constants:
            with ir.InsertionPoint.at_block_begin(self.block):
                self._constants[value] = arith.constant(ir.IndexType.get(), value)
        return self._constants[value]
