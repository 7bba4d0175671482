"""A read-only view of a linalg.generic on tensors: its loops, what indexes what, and what its body depends on.

Schedules reason about loops by number. The view exists only for operations that vectors can run: static shapes, maps
that are projected permutations, and a body of scalar arithmetic. For any other, `Structured.of` says why not.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

from mx_dialect._mlir import ir

Loops = frozenset[int]
"""A set of loops of one operation, by number."""


class Unsuitable(Exception):
    """Why an operation has no view, as the end of a sentence."""


@dataclass(frozen=True)
class Structured:
    """A linalg.generic.

    `maps` has for each operand the loop that indexes each of its dimensions, None for the constant 0; `extents` the
    number of iterations of each loop; the first `input_count` operands are inputs, the others outputs.
    """

    op: Any
    maps: tuple[tuple[int | None, ...], ...]
    extents: tuple[int, ...]
    reductions: Loops
    input_count: int

    @classmethod
    def of(cls, op: Any) -> "Structured":
        """Return the view of an operation.

        Raises:
            Unsuitable: vectors cannot run it.
        """
        if op.name != "linalg.generic":
            raise Unsuitable("it is not a linalg.generic; run linalg-generalize-named-ops first")
        input_count = op.attributes["operandSegmentSizes"][0]
        if len(op.results) != len(op.operands) - input_count:
            raise Unsuitable("it works on buffers; vectorize before bufferization")
        for number, value in enumerate(op.operands):
            _require_suitable_type(number, value.type)
        _require_scalar_arithmetic(op.regions[0].blocks[0])
        affine_maps = [attribute.value for attribute in op.attributes["indexing_maps"]]
        maps = tuple(
            tuple(_loop(number, expr) for expr in affine_map.results) for number, affine_map in enumerate(affine_maps)
        )
        kinds = [str(kind) for kind in op.attributes["iterator_types"]]
        reductions = frozenset(loop for loop, kind in enumerate(kinds) if "reduction" in kind)
        return cls(op, maps, _extents(op, maps, len(kinds)), reductions, input_count)

    @property
    def loops(self) -> range:
        return range(len(self.extents))

    @property
    def inputs(self) -> range:
        """The numbers of the input operands."""
        return range(self.input_count)

    def loops_of(self, operand: int) -> Loops:
        """Return the loops that index an operand."""
        return frozenset(loop for loop in self.maps[operand] if loop is not None)

    def iterations(self, loops: Iterable[int]) -> int:
        return prod(self.extents[loop] for loop in loops)

    def runs_along(self, loop: int, operand: int) -> bool:
        """Tell whether steps of a loop meet neighbouring elements of an operand."""
        moving = [d for d in self.maps[operand] if d is not None and self.extents[d] > 1]
        return bool(moving) and moving[-1] == loop

    @cached_property
    def body(self) -> "Body":
        return Body(self)


class Body:
    """The body of a linalg.generic: its operations, what it yields, and the loops that each value depends on."""

    def __init__(self, structured: Structured):
        block = structured.op.regions[0].blocks[0]
        *self.ops, terminator = [op.operation for op in block]
        self.arguments: list[Any] = list(block.arguments)
        self.yielded: list[Any] = list(terminator.operands)
        self._input_count = structured.input_count
        everything = frozenset(structured.loops)
        self._loops: dict[Any, Loops] = {}
        for number, argument in enumerate(self.arguments):
            # What an output holds changes from one iteration to the next.
            is_input = number < structured.input_count
            self._loops[argument] = structured.loops_of(number) if is_input else everything
        for op in self.ops:
            depends = self._union(op.operands)
            for result in op.results:
                self._loops[result] = depends

    def _union(self, values: Iterable[Any]) -> Loops:
        return frozenset[int]().union(*(self.loops_of(value) for value in values))

    def loops_of(self, value: Any) -> Loops:
        """Return the loops that a value may differ between iterations of; none for one from outside the body."""
        return self._loops.get(value, frozenset())

    def is_computed(self, value: Any) -> bool:
        """Tell whether an operation of the body computes a value."""
        return value in self._loops and value not in self.arguments

    def needed_for(self, values: Iterable[Any], given: Iterable[Any] = ()) -> list[Any]:
        """Return the operations that compute `values`, in order, where those in `given` need no computing."""
        given = set(given)
        needed = set(values) - given
        chosen: list[Any] = []
        for op in reversed(self.ops):
            if any(result in needed for result in op.results):
                chosen.append(op)
                needed.update(value for value in op.operands if value not in given)
        return chosen[::-1]

    def inputs_read(self, ops: Iterable[Any], values: Iterable[Any] = ()) -> list[int]:
        """Return the numbers of the input operands that operations read or that are among `values`."""
        read = {*values, *(value for op in ops for value in op.operands)}
        return [number for number in range(self._input_count) if self.arguments[number] in read]

    def combiner(self, output: int) -> Any | None:
        """Return the operation that combines an output's old value with a new one, None if there is no single one."""
        value = self.yielded[output]
        argument = self.arguments[len(self.arguments) - len(self.yielded) + output]
        uses = list(argument.uses)
        if len(uses) != 1 or not self.is_computed(value):
            return None
        op = value.owner.operation
        return op if uses[0].owner == op and len(op.operands) == 2 else None


def _require_suitable_type(number: int, type_: Any) -> None:
    element = type_
    if isinstance(type_, ir.RankedTensorType):
        for dim, size in enumerate(type_.shape):
            if size == ir.ShapedType.get_dynamic_size():
                raise Unsuitable(f"dimension {dim} of operand #{number} is dynamic")
        if type_.encoding is not None:
            raise Unsuitable(f"operand #{number} has the encoding {type_.encoding}")
        element = type_.element_type
    if not isinstance(element, ir.IntegerType | ir.FloatType | ir.IndexType):
        raise Unsuitable(f"operand #{number} holds {element}, of which there are no vectors")
    if type_ != element and not is_whole_bytes(element):
        raise Unsuitable(f"operand #{number} holds {element}: vectors pack what takes a byte each in memory")


def is_whole_bytes(element: Any) -> bool:
    """Tell whether elements of a type lie in memory as they do in a vector."""
    return isinstance(element, ir.IndexType) or element.width % 8 == 0


def _require_scalar_arithmetic(block: Any) -> None:
    for op in block:
        name = op.operation.name
        if not name.startswith(("arith.", "math.")) and name != "linalg.yield":
            raise Unsuitable(f"its body has a '{name}', which is not scalar arithmetic")


def _loop(number: int, expr: Any) -> int | None:
    if isinstance(expr, ir.AffineDimExpr):
        return expr.position
    if isinstance(expr, ir.AffineConstantExpr) and expr.value == 0:
        return None
    hint = "; run mx-expand-k first" if isinstance(expr, ir.AffineFloorDivExpr) else ""
    raise Unsuitable(f"operand #{number} is indexed by '{expr}', not by a loop{hint}")


def _extents(op: Any, maps: tuple[tuple[int | None, ...], ...], loop_count: int) -> tuple[int, ...]:
    extents = [1] * loop_count
    for number, (value, loops) in enumerate(zip(op.operands, maps, strict=True)):
        if len(set(loops) - {None}) < len([loop for loop in loops if loop is not None]):
            raise Unsuitable(f"the map of operand #{number} uses a loop twice")
        for dim, loop in enumerate(loops):
            if loop is not None:
                extents[loop] = value.type.shape[dim]
    for loop, extent in enumerate(extents):
        if extent == 0:
            raise Unsuitable(f"its loop d{loop} has no iterations")
    return tuple(extents)
