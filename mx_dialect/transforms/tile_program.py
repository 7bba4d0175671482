"""The operations on tiles of a program's kernels, and of the functions that exchange tiles with them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mx_dialect._mlir import ir
from mx_dialect.analysis import value_flow
from mx_dialect.analysis.value_flow import CALLS, Boundary, argument_count, callee_of, value_results
from mx_dialect.submit_ops import is_kernel
from mx_dialect.tile_spec import UNDECIDED
from mx_dialect.tile_types import TileType
from mx_dialect.walk import defined_values, in_scopes, is_function, operations


@dataclass(frozen=True)
class TileOperation:
    """An operation that takes, gives or carries tiles, with the numbers of the function around it and of its callee.

    A call whose function is not there, or takes or gives another number of values, has no callee.
    """

    op: Any
    function: int
    callee: int | None

    def handed_on(self) -> dict[int, Any]:
        """Return the operands that the operation hands on, by number, and the values or boundaries they become."""
        return value_flow.handed_on(self.op, self.function, self.callee)

    def ties(self) -> Iterator[tuple[Any, Any]]:
        """Yield the pairs of values and boundaries that the operation ties together."""
        return value_flow.ties(self.op, self.function, self.callee)


@dataclass
class TileFunction:
    """A function by its number in the program, with the types of its arguments and results."""

    op: Any
    number: int
    arguments: list[Any]
    results: list[Any]

    @classmethod
    def of(cls, op: Any, number: int) -> "TileFunction":
        type_ = ir.TypeAttr(op.attributes["function_type"]).value
        return cls(op, number, list(type_.inputs), list(type_.results))

    @property
    def name(self) -> str:
        return ir.StringAttr(self.op.attributes["sym_name"]).value

    def boundaries(self) -> Iterator[tuple[Boundary, Any]]:
        """Yield the arguments and results, each with its type."""
        for kind, types in (("argument", self.arguments), ("result", self.results)):
            for number, type_ in enumerate(types):
                yield Boundary(self.number, kind, number), type_


class TileProgram:
    """`functions` by their numbers, those that matter, and their `operations` that hold tiles, outer ones first."""

    def __init__(self, root: Any) -> None:
        found = operations(root, is_function, outer_first=True)
        every = [TileFunction.of(op, number) for number, op in enumerate(found)]
        inside = _tile_operations(root, every)
        self.functions = {n: every[n] for n in _connected(every, inside)}
        self.operations = [op for number in self.functions for op in inside[number]]

    def type_of(self, place: Any) -> Any:
        """Return the type of a value, or of an argument or result of a function."""
        if not isinstance(place, Boundary):
            return place.type
        function = self.functions[place.function]
        return (function.arguments if place.kind == "argument" else function.results)[place.number]


def is_undecided(type_: Any) -> bool:
    """Tell whether a type is that of a tile whose memory space is not decided yet."""
    return isinstance(type_, TileType) and type_.spec.space == UNDECIDED


class _Holders:
    """Which types are tiles or hold tiles; each is looked at once."""

    def __init__(self) -> None:
        self._known: dict[Any, bool] = {}

    def holds_tiles(self, op: Any) -> bool:
        types = [v.type for v in (*op.operands, *defined_values(op))]
        if op.name == "func.func":
            types.append(ir.TypeAttr(op.attributes["function_type"]).value)
        return any(self._holds(type_) for type_ in types)

    def _holds(self, type_: Any) -> bool:
        if type_ not in self._known:
            self._known[type_] = "!mx.tile<" in str(type_)
        return self._known[type_]


def _tile_operations(root: Any, functions: list[TileFunction]) -> list[list[TileOperation]]:
    """Return the operations with tiles of each function, without those of functions within it."""
    holders = _Holders()
    # Symbols are looked up in the module, or what stands for it, that the calling function is in.
    named = {(_scope(function.op), function.name): function for function in functions}
    numbers = {function.op: function.number for function in functions}
    inside: list[list[TileOperation]] = [[] for _ in functions]
    for function, op in in_scopes(root, is_function):
        if function is None or not holders.holds_tiles(op):
            continue
        callee = named.get((_scope(function), callee_of(op))) if op.name in CALLS else None
        fits = callee is not None and (len(callee.arguments), len(callee.results)) == _counts(op)
        number = numbers[function]
        inside[number].append(TileOperation(op, number, callee.number if callee and fits else None))
    return inside


def _scope(function: Any) -> Any | None:
    return None if function.parent is None else function.parent.operation


def _counts(call: Any) -> tuple[int, int]:
    return argument_count(call), len(value_results(call))


def _connected(functions: list[TileFunction], inside: list[list[TileOperation]]) -> list[int]:
    """Return the numbers of the kernels and all functions that calls with tiles connect with them, in order."""
    neighbours: list[list[int]] = [[] for _ in functions]
    for number, ops in enumerate(inside):
        for callee in (op.callee for op in ops if op.callee is not None):
            neighbours[number].append(callee)
            neighbours[callee].append(number)
    waiting = [function.number for function in functions if is_kernel(function.op)]
    reached = set(waiting)
    while waiting:
        for other in neighbours[waiting.pop()]:
            if other not in reached:
                reached.add(other)
                waiting.append(other)
    return sorted(reached)
