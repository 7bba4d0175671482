"""Which results of a function are its arguments with stores into them.

    func.func @kernel(%t: !mx.tile<16x32xf32, acc>, %out: tensor<64x32xf32>, %m: index) -> tensor<64x32xf32> {
      %0 = mx.tile_store %t, %out[%m, 0] : ...
      return %0 : tensor<64x32xf32>             // result 0 is argument 1
    }

A store is followed to the tensor that it changes, through loops that carry the tensor, branches and calls.
"""

from collections.abc import Callable, Sequence
from typing import Any

from mx_dialect.analysis.value_flow import value_results
from mx_dialect.walk import operations

_BRANCHES = ("scf.if", "scf.index_switch", "scf.execute_region")
_CALLS = ("func.call", "mx.submit")
_STEPS = frozenset(
    ("mx.tile_store", "arith.select", "scf.for", "scf.while", "scf.yield", "scf.condition", "func.return")
) | {*_BRANCHES, *_CALLS}


class StoredArguments:
    """The arguments that functions give back with stores into them; `callee` finds the function that a call calls."""

    def __init__(self, callee: Callable[[Any], Any | None]):
        self._callee = callee
        # None while a function is being looked at: nothing is known of one that calls itself.
        self._known: dict[Any, list[int | None] | None] = {}

    def of(self, function: Any) -> Sequence[int | None]:
        """Return for each result of a function the argument that it is but for stores, or None."""
        # A stack instead of recursion: calls may be nested deeper than Python recurses.
        pending = [function]
        while pending:
            top = pending[-1]
            if self._known.get(top) is not None:
                pending.pop()
                continue
            steps = operations(top, lambda op: op.name in _STEPS)
            callees = [self._callee(op) for op in steps if op.name in _CALLS]
            missing = [c for c in dict.fromkeys(callees) if c is not None and c not in self._known]
            if missing and top not in self._known:
                self._known[top] = None
                pending.extend(missing)
                continue
            self._known[top] = self._trace(top, steps)
            pending.pop()
        return self._known[function] or []

    def _trace(self, function: Any, steps: Sequence[Any]) -> list[int | None]:
        origins = _Origins()
        returned: list[list[Any]] = []
        for op in steps:
            if op.name == "func.return":
                returned.append([origins.of(value) for value in op.operands])
            elif op.name in _CALLS:
                self._follow_call(op, origins)
            else:
                origins.follow(op)
        if not returned:
            return [None] * len(function.attributes["function_type"].value.results)
        arguments = {argument: i for i, argument in enumerate(function.regions[0].blocks[0].arguments)}
        return [
            arguments.get(values[0]) if all(value == values[0] for value in values) else None
            for values in zip(*returned, strict=True)
        ]

    def _follow_call(self, call: Any, origins: "_Origins") -> None:
        callee = self._callee(call)
        stored = (self._known.get(callee) or []) if callee is not None else []
        results = value_results(call)
        for result, argument in zip(results, stored, strict=False):
            if argument is not None and argument < len(call.operands):
                origins.tie(result, call.operands[argument])


class _Origins:
    """For each value of a function the one that it is but for stores; operations are followed from the inside out."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}
        # The terminators of the regions of each operation.
        self._ends: dict[Any, list[Any]] = {}

    def of(self, value: Any) -> Any:
        return self._known.get(value, value)

    def tie(self, result: Any, source: Any) -> None:
        self._known[result] = self.of(source)

    def follow(self, op: Any) -> None:
        if op.name in ("scf.yield", "scf.condition"):
            self._ends.setdefault(op.parent.operation, []).append(op)
        elif op.name == "mx.tile_store":
            self.tie(op.results[0], op.operands[1])
        elif op.name == "arith.select":
            self._agree(op.results[0], op.operands[1:])
        elif op.name in ("scf.for", "scf.while"):
            self._follow_loop(op)
        else:
            for number, result in enumerate(op.results):
                self._agree(result, [end.operands[number] for end in self._ends[op]])

    def _agree(self, result: Any, sources: Sequence[Any]) -> None:
        found = [self.of(source) for source in sources]
        if all(value == found[0] for value in found):
            self.tie(result, found[0])

    def _follow_loop(self, loop: Any) -> None:
        """Tie what a loop gives to what it is given, where each of its regions hands the same on at the same place."""
        regions = [list(region.blocks[0].arguments) for region in loop.regions]
        handed = [list(end.operands) for end in self._ends[loop]]
        inits = list(loop.operands)
        if loop.name == "scf.for":
            del regions[0][:1], inits[:3]
        else:
            del handed[0][:1]
        places = list(zip(regions, handed, strict=True))
        for number, (result, init) in enumerate(zip(loop.results, inits, strict=False)):
            if all(
                number < min(len(arguments), len(ends)) and self.of(ends[number]) in (arguments[number], self.of(init))
                for arguments, ends in places
            ):
                self.tie(result, init)
