"""The operations of tensor, and linalg.generic, on what `interpreter` computes with.

A linalg.generic evaluates its body once for each point of its reduction loops, on arrays over all parallel loops. A sum
has the bound of any order; so does a maximum, which rounds nothing. Another reduction has a value and no bound.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from mx_dialect._mlir import ir
from mx_dialect.element_dtypes import dtype_of
from mx_dialect.interpreter_narrow import NARROW_FLOATS, floats_of, unify
from mx_dialect.interpreter_values import PRECISIONS, Array, Doubles, Floats, Value, element_of, rounded

# Evaluates the operations of a block: (block, values of its arguments) -> the values that its terminator has.
EvaluateBlock = Callable[[Any, Sequence[Value]], list[Value]]


class Unsupported(Exception):
    """Why an operation cannot be evaluated, as the end of a sentence."""


def shape_of(value: Value) -> tuple[int, ...]:
    """Return the shape of a tensor value, () of a scalar."""
    if isinstance(value, Floats):
        return value.values.shape
    return value.shape if isinstance(value, np.ndarray) else value.data.mantissa.shape


def mapped(value: Value, function: Callable[[Array], Array]) -> Value:
    """Return a tensor whose entries are moved, not changed."""
    if isinstance(value, Floats):
        return Floats(function(value.values), function(value.error), value.element)
    return function(cast(Array, value))


def evaluate(op: Any, operands: list[Value]) -> Value | None:
    """Return the result of an operation of tensor, None if it is none that is known.

    Raises:
        Unsupported: this form of it is not evaluated, or what it asks for is outside its tensor.
    """
    found = _OPERATIONS.get(op.name)
    return None if found is None else found(op, operands)


def mixed(static: Any, dynamic: list[Value]) -> list[int]:
    """Return a list of numbers of which some are operands, taken off the front of `dynamic`."""
    marker = ir.ShapedType.get_dynamic_size()
    return [int(cast(Array, dynamic.pop(0))) if number == marker else int(number) for number in static]


def _empty(op: Any, operands: list[Value]) -> Value:
    type_, given = op.results[0].type, list(operands)
    shape = mixed(type_.shape, given)
    element = str(type_.element_type)
    if element in PRECISIONS:
        return Floats(np.full(shape, np.nan), np.full(shape, np.inf), element)
    dtype = dtype_of(element)
    if dtype is None:
        raise Unsupported(f"makes a tensor of {element}")
    return np.zeros(shape, dtype)


def _dim(op: Any, operands: list[Value]) -> Value:
    shape, axis = shape_of(operands[0]), int(cast(Array, operands[1]))
    if not 0 <= axis < len(shape):
        raise Unsupported(f"asks for axis {axis} of a tensor of rank {len(shape)}")
    return np.array(shape[axis], np.int64)


def _extract(op: Any, operands: list[Value]) -> Value:
    tensor, *indices = operands
    place = _inside(indices, shape_of(tensor), "reads")
    return mapped(tensor, lambda array: array[place])


def _inside(indices: Sequence[Value], shape: tuple[int, ...], verb: str) -> tuple[int, ...]:
    place = tuple(int(cast(Array, i)) for i in indices)
    if not all(0 <= i < extent for i, extent in zip(place, shape, strict=True)):
        raise Unsupported(f"{verb} {place} of a tensor of shape {shape}")
    return place


def _cast(op: Any, operands: list[Value]) -> Value:
    return operands[0]


def window(op: Any, dynamic: list[Value], shape: tuple[int, ...]) -> tuple[slice, ...]:
    """Return the slices that static_offsets, static_sizes and static_strides say, within a shape."""
    lists = [list(op.attributes[name]) for name in ("static_offsets", "static_sizes")]
    offsets, sizes = (mixed(numbers, dynamic) for numbers in lists)
    strides = mixed(op.attributes["static_strides"], dynamic) if "static_strides" in op.attributes else [1] * len(sizes)
    for offset, size, stride, extent in zip(offsets, sizes, strides, shape, strict=True):
        if offset < 0 or size < 0 or stride < 1 or (size and offset + (size - 1) * stride >= extent):
            raise Unsupported(f"takes a slice that is not inside a tensor of shape {shape}")
    return tuple(slice(o, o + n * s, s) for o, n, s in zip(offsets, sizes, strides, strict=True))


def _reduced(shape: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Return a shape without as many axes of extent 1 as leave this rank."""
    kept = [extent for extent in shape if extent != 1]
    if rank != len(shape) and rank != len(kept):
        raise Unsupported("drops some of several axes of extent 1")
    return shape if rank == len(shape) else tuple(kept)


def _extract_slice(op: Any, operands: list[Value]) -> Value:
    tensor, *dynamic = operands
    where = window(op, dynamic, shape_of(tensor))
    part = mapped(tensor, lambda array: array[where])
    shape = _reduced(shape_of(part), op.results[0].type.rank)
    return mapped(part, lambda array: array.reshape(shape))


def _insert_slice(op: Any, operands: list[Value]) -> Value:
    source, target, *dynamic = operands
    where = window(op, dynamic, shape_of(target))

    sizes = [(along.stop - along.start) // along.step for along in where]
    return _put(mapped(source, lambda array: array.reshape(sizes)), target, where, element_of(op.results[0].type))


def _insert(op: Any, operands: list[Value]) -> Value:
    entry, tensor, *indices = operands
    return _put(entry, tensor, _inside(indices, shape_of(tensor), "writes"), element_of(op.results[0].type))


def _put(source: Value, target: Value, where: tuple[Any, ...], element: str) -> Value:
    """Return a tensor with the entries at an index replaced."""

    def put(into: Array, entries: Array) -> Array:
        changed = into.copy()
        changed[where] = entries
        return changed

    entries, into = unify(source, target, element)
    if isinstance(into, Floats):
        return Floats(put(into.values, entries.values), put(into.error, entries.error), into.element)
    return put(into, entries)


def _pad(op: Any, operands: list[Value]) -> Value:
    """Return a tensor with one number around it, which is a constant of the program."""
    tensor, *dynamic = operands
    low, high = (mixed(op.attributes[name], dynamic) for name in ("static_low", "static_high"))
    widths = list(zip(low, high, strict=True))
    fill = op.regions[0].blocks[0].operations[0].operation.operands[0]
    if not isinstance(fill, ir.OpResult) or fill.owner.operation.name != "arith.constant":
        raise Unsupported("pads with something else than a constant")
    if min((width for pair in widths for width in pair), default=0) < 0:
        raise Unsupported("pads by a negative number")
    number = fill.owner.operation.attributes["value"].value
    if isinstance(tensor, Floats):
        return Floats(
            np.pad(tensor.values, widths, constant_values=number), np.pad(tensor.error, widths), tensor.element
        )
    return np.pad(cast(Array, tensor), widths, constant_values=number)


def _reshaped(op: Any, operands: list[Value]) -> Value:
    """Return a tensor with axes grouped or split as its type says; of the extents that are open, one can be found."""
    shape = [-1 if extent == ir.ShapedType.get_dynamic_size() else extent for extent in op.results[0].type.shape]
    if shape.count(-1) > 1 or (-1 in shape and 0 in shape_of(operands[0])):
        raise Unsupported("has a result with several open extents")
    return mapped(operands[0], lambda array: array.reshape(shape))


_OPERATIONS: dict[str, Callable[[Any, list[Value]], Value]] = {
    "tensor.empty": _empty,
    "tensor.dim": _dim,
    "tensor.extract": _extract,
    "tensor.insert": _insert,
    "tensor.cast": _cast,
    "tensor.extract_slice": _extract_slice,
    "tensor.insert_slice": _insert_slice,
    "tensor.pad": _pad,
    "tensor.collapse_shape": _reshaped,
    "tensor.expand_shape": _reshaped,
}


@dataclass(frozen=True)
class _Loops:
    """The loops of a linalg.generic: their extents, and which reduce."""

    extents: tuple[int, ...]
    reductions: tuple[int, ...]

    @property
    def parallel(self) -> tuple[int, ...]:
        return tuple(loop for loop in range(len(self.extents)) if loop not in self.reductions)

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the extents of the parallel loops."""
        return tuple(self.extents[loop] for loop in self.parallel)

    def indices(self, point: Sequence[int]) -> list[Any]:
        """Return the index of each loop: of a parallel one all, along its axis, of the others those of a point."""
        found: list[Any] = [0] * len(self.extents)
        for axis, loop in enumerate(self.parallel):
            shape = [1] * len(self.parallel)
            shape[axis] = -1
            found[loop] = np.arange(self.extents[loop]).reshape(shape)
        for loop, index in zip(self.reductions, point, strict=True):
            found[loop] = index
        return found


def generic(op: Any, operands: list[Value], evaluate_block: EvaluateBlock) -> list[Value]:
    """Return the results of a linalg.generic on tensors.

    Raises:
        Unsupported: loops whose extents no operand tells, a map that computes something else, several sums that mix.
    """
    maps = [attribute.value for attribute in op.attributes["indexing_maps"]]
    loops = _loops(op, maps, operands)
    block = op.regions[0].blocks[0]
    count = op.attributes["operandSegmentSizes"][0]
    sums = _sums(block, count)
    elements = [element_of(value.type) for value in list(op.operands)[count:]]
    everywhere = loops.indices([0] * len(loops.reductions))
    places = [_place(map_, everywhere) for map_ in maps[count:]]
    if any(np.broadcast_shapes(*(np.shape(i) for i in place)) != loops.shape for place in places):
        raise Unsupported("writes an entry in several parallel iterations")
    outputs = [
        _entries(value, map_, everywhere, loops.shape)
        for value, map_ in zip(operands[count:], maps[count:], strict=True)
    ]
    running: list[Any] = [_Sum.begin(value) if total else value for value, total in zip(outputs, sums, strict=True)]
    for point in np.ndindex(*(loops.extents[loop] for loop in loops.reductions)):
        indices = loops.indices(point)
        inputs = [
            _entries(value, map_, indices, loops.shape)
            for value, map_ in zip(operands[:count], maps[:count], strict=True)
        ]
        # A sum adds its terms itself; a body that adds to zero yields them.
        given = [value.nothing() if isinstance(value, _Sum) else value for value in running]
        yielded = evaluate_block(block, [*inputs, *given])
        running = [
            old.plus(cast(Floats, new)) if isinstance(old, _Sum) else new
            for old, new in zip(running, yielded, strict=True)
        ]
    results = [value.total() if isinstance(value, _Sum) else value for value in running]
    ordered = loops.reductions and not all(total or _is_choice(block, i) for i, total in enumerate(sums))
    if ordered:
        results = [_without_bound(value, element) for value, element in zip(results, elements, strict=True)]
    return [
        _put(result, value, place, element)
        for value, place, result, element in zip(operands[count:], places, results, elements, strict=True)
    ]


def _loops(op: Any, maps: Sequence[Any], operands: Sequence[Value]) -> _Loops:
    kinds = [str(kind) for kind in op.attributes["iterator_types"]]
    extents: list[int | None] = [None] * len(kinds)
    for map_, value in zip(maps, operands, strict=True):
        for expr, extent in zip(map_.results, shape_of(value), strict=True):
            if isinstance(expr, ir.AffineDimExpr):
                if extents[expr.position] not in (None, extent):
                    raise Unsupported(f"has operands that disagree in the extent of loop {expr.position}")
                extents[expr.position] = extent
    known = tuple(extent for extent in extents if extent is not None)
    if len(known) != len(extents):
        raise Unsupported("has a loop whose extent no operand tells by itself")
    return _Loops(known, tuple(loop for loop, kind in enumerate(kinds) if "reduction" in kind))


def _index(expr: Any, indices: Sequence[Any]) -> Any:
    """Return what an affine expression is for these indices of the loops."""
    if isinstance(expr, ir.AffineDimExpr):
        return indices[expr.position]
    if isinstance(expr, ir.AffineConstantExpr):
        return expr.value
    for kind, function in (
        (ir.AffineAddExpr, np.add),
        (ir.AffineMulExpr, np.multiply),
        (ir.AffineFloorDivExpr, np.floor_divide),
        (ir.AffineModExpr, np.mod),
    ):
        if isinstance(expr, kind):
            return function(_index(expr.lhs, indices), _index(expr.rhs, indices))
    raise Unsupported(f"has a map with '{expr}'")


def _place(map_: Any, indices: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(_index(expr, indices) for expr in map_.results)


def _entries(value: Value, map_: Any, indices: Sequence[Any], shape: tuple[int, ...]) -> Value:
    """Return the entries of an operand at these indices of the loops, over all parallel ones."""
    place = _place(map_, indices)
    if any(np.any((i < 0) | (i >= extent)) for i, extent in zip(place, shape_of(value), strict=True)):
        raise Unsupported("reads outside an operand")
    return mapped(value, lambda array: np.broadcast_to(array[place], shape))


def _producer(block: Any, output: int) -> Any | None:
    """Return the operation of a body that computes what is yielded for an output; None if it is an argument."""
    value = list(block.operations)[-1].operation.operands[output]
    return value.owner if isinstance(value, ir.OpResult) else None


def _accumulator(block: Any, output: int) -> Any:
    outputs = len(list(block.operations)[-1].operation.operands)
    return list(block.arguments)[len(block.arguments) - outputs + output]


def _combines(block: Any, output: int, names: Sequence[str]) -> bool:
    """Tell whether a body yields for an output one of these operations on the output's entry, used only there."""
    op, entry = _producer(block, output), _accumulator(block, output)
    return op is not None and op.name in names and len(list(entry.uses)) == 1 and any(o == entry for o in op.operands)


def _sums(block: Any, count: int) -> list[bool]:
    """Tell for each output whether the body adds a term to its entry."""
    outputs = len(block.arguments) - count
    return [_combines(block, output, ("arith.addf",)) for output in range(outputs)]


_ORDERLESS = """
    arith.maximumf arith.minimumf arith.maxnumf arith.minnumf
    arith.addi arith.muli arith.andi arith.ori arith.xori arith.maxsi arith.minsi
""".split()


def _is_choice(block: Any, output: int) -> bool:
    return _combines(block, output, _ORDERLESS)


def _without_bound(value: Value, element: str) -> Value:
    if element not in PRECISIONS and element not in NARROW_FLOATS:
        return value
    floats = floats_of(value, element)
    return Floats(floats.values, np.full(floats.values.shape, np.inf), element)


@dataclass(frozen=True)
class _Sum:
    """A sum in progress: so far, its error, the sum of the sizes of all terms, and how many were added."""

    values: Doubles
    error: Doubles
    size: Doubles
    count: int
    element: str

    @classmethod
    def begin(cls, start: Value) -> "_Sum":
        floats = cast(Floats, start)
        with np.errstate(invalid="ignore"):
            return cls(floats.values, floats.error, np.abs(floats.values) + floats.error, 0, floats.element)

    def nothing(self) -> Floats:
        """Return an exact zero for each entry."""
        return Floats(np.zeros(self.values.shape), np.zeros(self.values.shape), self.element)

    def plus(self, term: Floats) -> "_Sum":
        """Return the sum with one more term."""
        with np.errstate(all="ignore"):
            return _Sum(
                self.values + term.values,
                self.error + term.error,
                self.size + np.abs(term.values) + term.error,
                self.count + 1,
                self.element,
            )

    def total(self) -> Floats:
        """Return the sum, with the error of adding in any order."""
        return rounded(self.values, self.error, self.element, self.count + 1, self.size)
