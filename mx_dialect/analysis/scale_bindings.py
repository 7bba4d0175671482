"""Which matmuls of a function read scales that are not bound to their data, and why.

`mx.tget_scale_addr` writes an address into the buffer of a scale tile, in place. Each side of the matrix unit, left and
right, has one binding at a time, and it ends with the first of

* a later binding on its side: that may be of the same buffer, for two values (a bound tile and the tile it was, values
  carried through a loop, block arguments) can name one;
* an operation, other than a matmul, that takes or gives a tile in the side's memories: it may refill them;
* a call, or an operation of a dialect that is not known to make none: other code may bind other scales;
* the start or the end of a block: control flow may come from elsewhere.

So a matmul can rely on an operation of its own block only, the latest one of each side, and one walk decides for all.
The matmul has to read what that operation gave and the data that it took: other values may name the same buffers, but
an error too many is better than a wrong address.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mx_dialect._mlir import ir
from mx_dialect.tile_matmul_ops import MATMULS, TgetScaleAddrOp
from mx_dialect.tile_spec import UNDECIDED
from mx_dialect.tile_types import TileType


@dataclass(frozen=True)
class Side:
    """An input of the matrix unit: what a matmul calls its operands there, and the memories they lie in."""

    data: str
    scale: str
    data_space: str
    scale_space: str


LEFT = Side("lhs", "lhs_scale", "left", "left_scale")
RIGHT = Side("rhs", "rhs_scale", "right", "right_scale")
SIDES = (LEFT, RIGHT)


@dataclass(frozen=True)
class Fault:
    """Why the scale on one side of a matmul is not validly bound, and the remedy.

    `cause`, where there is one, is the operation that is to blame; `remark` says how.
    """

    matmul: Any
    reason: str
    cause: Any = None
    remark: str = ""
    remedy: str = "bind it right before the matmul, as --mx-insert-scale-addr does"


@dataclass
class _Binding:
    """What one side of the matrix unit is bound by: the operation `latest`, or nothing since the operation `end`."""

    latest: Any
    end: Any


# Dialects whose operations, those of `_CALLS` aside, run no code but what the kernel shows.
_CALL_FREE = frozenset(
    "affine arith bufferization builtin cf complex func index linalg math memref mx scf tensor ub vector".split()
)
_CALLS = ("func.call", "func.call_indirect", "mx.submit")


def faults(function: Any) -> Iterator[Fault]:
    """Yield what is wrong with the scales of the matmuls in a function, in program order, left before right."""
    bound = {side: _Binding(None, function) for side in SIDES}
    touched = _TouchedSides()
    for op in _flow(function):
        if isinstance(op, TgetScaleAddrOp):
            bound[_side_of(op)] = _Binding(op, None)
            continue
        if isinstance(op, MATMULS):
            for side in SIDES:
                fault = _fault(op, side, bound[side])
                if fault is not None:
                    yield fault
        for side in touched.by(op):
            bound[side] = _Binding(None, op)


def _flow(function: Any) -> Iterator[Any]:
    """Yield the operations in a function in program order; what has blocks comes before them and after each."""
    pending = [(function, iter(block)) for block in reversed(_blocks(function))]
    while pending:
        owner, rest = pending[-1]
        op = next(rest, None)
        if op is None:
            pending.pop()
            yield owner
            continue
        yield op
        # A function within another does not run where it stands.
        if op.operation.name != "func.func":
            pending.extend((op, iter(block)) for block in reversed(_blocks(op)))


def _blocks(op: Any) -> list[Any]:
    return [block for region in op.regions for block in region]


def _side_of(binding: Any) -> Side:
    return LEFT if binding.scale.type.space == LEFT.scale_space else RIGHT


class _TouchedSides:
    """Finds the sides whose binding an operation ends; remembers them for types, of which there are few."""

    def __init__(self) -> None:
        self._by_type: dict[Any, tuple[Side, ...]] = {}

    def by(self, op: Any) -> tuple[Side, ...]:
        """Return the sides whose binding ends with an operation that makes none."""
        if len(op.regions) or _may_call(op):
            return SIDES
        # A matmul reads the sides, and writes where its result lies.
        values = op.results if isinstance(op, MATMULS) else (*op.operands, *op.results)
        types = {value.type for value in values}
        return tuple(side for side in SIDES if any(side in self._of_type(type_) for type_ in types))

    def _of_type(self, type_: Any) -> tuple[Side, ...]:
        if type_ not in self._by_type:
            self._by_type[type_] = _sides_of_type(type_)
        return self._by_type[type_]


def _sides_of_type(type_: Any) -> tuple[Side, ...]:
    """Return the sides in whose memories values of a type lie or may lie."""
    if not isinstance(type_, TileType):
        # Tiles within, of a tuple for one, may be any.
        return SIDES if "!mx.tile" in str(type_) else ()
    space = type_.spec.space
    return tuple(side for side in SIDES if space in (side.data_space, side.scale_space, UNDECIDED))


def _may_call(op: Any) -> bool:
    """Tell whether an operation may run other code of the program, or code that nobody knows."""
    name = op.operation.name
    return name in _CALLS or name.partition(".")[0] not in _CALL_FREE


def _fault(matmul: Any, side: Side, bound: _Binding) -> Fault | None:
    """Return what is wrong with one side of a matmul, given what is bound when it runs."""
    data, scale = getattr(matmul, side.data), getattr(matmul, side.scale)
    for value, role, space in ((data, side.data, side.data_space), (scale, side.scale, side.scale_space)):
        if value.type.space != space:
            reason = f"{role} must lie in {space}, but is '{value.type}'"
            return Fault(matmul, reason, remedy="run --mx-infer-memory-space before the scales are bound")
    binding = _binding_of(scale)
    if binding is None:
        return Fault(matmul, f"{side.scale} is not bound to {side.data}")
    if binding.data != data:
        return Fault(matmul, f"{side.scale} is bound to other data than {side.data}", binding, "bound here")
    if bound.latest is not None and binding == bound.latest:
        return None
    if binding.operation.block != matmul.operation.block:
        reason = f"{side.scale} is bound in another block, and bindings do not pass through control flow"
        return Fault(matmul, reason, binding, "bound here")
    if bound.latest is not None:
        reason = f"{side.scale} is not what the {side.data_space} side is bound to any more"
        return Fault(matmul, reason, bound.latest, "a later binding takes its place")
    return Fault(matmul, f"the binding of {side.scale} has ended", bound.end, _end(bound.end, side))


def _binding_of(scale: Any) -> Any:
    """Return the operation that made a bound scale, None if the scale is not bound where it arises."""
    owner = scale.owner if isinstance(scale, ir.OpResult) else None
    return owner if isinstance(owner, TgetScaleAddrOp) else None


def _end(op: Any, side: Side) -> str:
    """Return why an operation ends the binding of a side."""
    name = op.operation.name
    if len(op.regions):
        return f"no binding outlasts the control flow of '{name}'"
    if _may_call(op):
        return f"'{name}' may run code that binds other scales"
    return f"'{name}' takes or gives a tile that may lie in {side.data_space} or {side.scale_space}"
