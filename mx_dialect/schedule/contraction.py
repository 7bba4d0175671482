"""Contractions: the linalg.generic operations acc[b.., m, n] += lhs(b.., m, k) * rhs(b.., n, k) that schedules know.

Each side is any computation on what the loops b, m, k or b, n, k reach: an element as it is, or one decoded and
scaled, the scale read through `k floordiv block`. k is one loop, or two, the block and the place in it, as
`--mx-expand-k` leaves them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mx_dialect._mlir import ir
from mx_dialect.schedule.packed import CODES_PER_BYTE, nibble_of, unpacked_map

DYNAMIC = -(2**63)
_PURE = ("arith.", "math.")
_DEFAULT_BLOCK = 32


@dataclass(frozen=True)
class Input:
    """A tensor or buffer that a side reads: its operand number, and how loops reach its axes.

    `value` is what the body has of it: an argument, or a nibble of one where bytes hold `packed` codes each, two. Then
    the map is that of codes, as if each had a byte.
    """

    number: int
    map: Any
    dims: frozenset[int]
    value: Any
    packed: int = 1

    def last(self) -> Any:
        return self.map.results[-1] if len(self.map.results) else None


@dataclass(frozen=True)
class Side:
    """One factor of the product: the inputs it depends on, and the value of the body that it is."""

    inputs: tuple[Input, ...]
    value: Any

    @property
    def is_plain(self) -> bool:
        """Tell whether the factor is an element as it is stored."""
        return isinstance(self.value, ir.BlockArgument)


@dataclass(frozen=True)
class Contraction:
    """A matched operation. Loops are numbers of its iteration space; `k` is (k,) or (block, place)."""

    op: Any
    lhs: Side
    rhs: Side
    output: Any
    batch: tuple[int, ...]
    m: int
    n: int
    k: tuple[int, ...]
    extents: tuple[int, ...]
    block: int

    @property
    def maps(self) -> list[Any]:
        """Return the indexing maps of the operands."""
        return [ir.AffineMapAttr(a).value for a in ir.ArrayAttr(self.op.attributes["indexing_maps"])]

    @property
    def depth(self) -> int:
        """Return the extent of k, all of it."""
        product = 1
        for loop in self.k:
            if self.extents[loop] == DYNAMIC:
                return DYNAMIC
            product *= self.extents[loop]
        return product

    def loops(self, batch: Sequence[Any], m: Any, n: Any, block: Any, place: Any, k: Any) -> list[Any]:
        """Return a value for each loop: `k` is block * self.block + place, and used where k is one loop."""
        values: list[Any] = [None] * len(self.extents)
        for loop, value in zip(self.batch, batch, strict=True):
            values[loop] = value
        values[self.m], values[self.n] = m, n
        for loop, value in zip(self.k, (k,) if len(self.k) == 1 else (block, place), strict=True):
            values[loop] = value
        return values


def match(op: Any) -> Contraction | None:
    """Return the contraction that a linalg.generic is, or None."""
    if op.name != "linalg.generic" or len(op.regions) != 1 or len(op.regions[0].blocks) != 1:
        return None
    sizes = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    if sizes[1] != 1:
        return None
    product = _product(op.regions[0].blocks[0])
    if product is None:
        return None
    maps = [ir.AffineMapAttr(a).value for a in ir.ArrayAttr(op.attributes["indexing_maps"])]
    kinds = [str(kind) for kind in ir.ArrayAttr(op.attributes["iterator_types"])]
    body = op.regions[0].blocks[0]
    inputs = [_input(number, map_, body.arguments[number]) for number, map_ in enumerate(maps)]
    output = inputs.pop()
    if any(i is None for i in inputs) or output is None or not maps[-1].is_projected_permutation:
        return None
    sides = [_side(value, inputs) for value in product]
    if None in sides:
        return None
    return _assign(op, sides, output, kinds)


def _product(body: Any) -> tuple[Any, Any] | None:
    """Return the factors of the product that a body adds to its last argument."""
    operations = list(body.operations)
    yielded = operations[-1].operands
    accumulator = body.arguments[len(body.arguments) - 1]
    if len(yielded) != 1 or str(accumulator.type) != "f32":
        return None
    total = _definition(yielded[0], "arith.addf")
    if total is None:
        return None
    terms = [v for v in total.operands if v != accumulator]
    if len(terms) != 1:
        return None
    product = _definition(terms[0], "arith.mulf")
    return None if product is None else (product.operands[0], product.operands[1])


def _definition(value: Any, name: str) -> Any:
    if not isinstance(value, ir.OpResult) or value.owner.name != name:
        return None
    return value.owner.operation


def _input(number: int, map_: Any, argument: Any) -> Input | None:
    """Return an input whose axes are each reached by a loop, or by one divided by a constant."""
    value, packed = argument, 1
    nibble = nibble_of(argument)
    if nibble is not None and len(map_.results) and _halves(map_.results[-1], nibble[1]):
        value, packed = nibble[0], CODES_PER_BYTE
        map_ = unpacked_map(map_)
    dims: set[int] = set()
    for result in map_.results:
        loop = loop_of(result)
        if loop is None or loop in dims:
            return None
        dims.add(loop)
    return Input(number, map_, frozenset(dims), value, packed)


def _halves(expr: Any, loop: int) -> bool:
    """Tell whether an expression is a loop divided by how many codes a byte holds."""
    return (
        isinstance(expr, ir.AffineFloorDivExpr)
        and isinstance(expr.lhs, ir.AffineDimExpr)
        and loop_of(expr) == loop
        and divisor_of(expr) == CODES_PER_BYTE
    )


def loop_of(expr: Any) -> int | None:
    """Return the loop d of an expression `d` or `d floordiv c`."""
    if isinstance(expr, ir.AffineFloorDivExpr):
        division = expr
        return loop_of(division.lhs) if isinstance(division.rhs, ir.AffineConstantExpr) else None
    return expr.position if isinstance(expr, ir.AffineDimExpr) else None


def divisor_of(expr: Any) -> int:
    """Return c of `d floordiv c`, 1 of `d`."""
    if isinstance(expr, ir.AffineFloorDivExpr):
        division = expr
        return division.rhs.value * divisor_of(division.lhs)
    return 1


def reads_along(side: Side, loop: int) -> bool:
    """Tell whether vectors can read a side along a loop: what the loop reaches undivided has its neighbours there."""
    reached = [[loop_of(r) == loop and divisor_of(r) == 1 for r in item.map.results] for item in side.inputs]
    return any(any(axes) for axes in reached) and all(not any(axes[:-1]) for axes in reached)


def _side(value: Any, inputs: Sequence[Any]) -> Side | None:
    """Return what a value of the body is computed from, None if that is not elementwise arithmetic on the inputs."""
    numbers = {item.value: item.number for item in inputs}
    used: set[int] = set()
    pending, seen = [value], {value}
    while pending:
        current = pending.pop()
        if current in numbers:
            used.add(numbers[current])
            continue
        if isinstance(current, ir.BlockArgument):
            return None
        owner = current.owner.operation
        if owner.name == "arith.constant":
            continue
        if not owner.name.startswith(_PURE) or len(owner.results) != 1 or len(owner.regions):
            return None
        for operand in owner.operands:
            if operand not in seen:
                seen.add(operand)
                pending.append(operand)
    return Side(tuple(inputs[i] for i in sorted(used)), value)


def _dims(side: Any) -> frozenset[int]:
    return frozenset[int]().union(*(i.dims for i in side.inputs))


def _assign(op: Any, sides: Sequence[Any], output: Input, kinds: Sequence[str]) -> Contraction | None:
    """Tell m, n, k and batch loops apart."""
    reductions = tuple(i for i, kind in enumerate(kinds) if "reduction" in kind)
    parallel = {i for i, kind in enumerate(kinds) if "parallel" in kind}
    first, second = (_dims(side) for side in sides)
    rows, columns = (first - second) & parallel, (second - first) & parallel
    order = [loop_of(r) for r in output.map.results]
    if len(order) < 2 or set(order) != parallel or not 1 <= len(reductions) <= 2:
        return None
    m, n = order[-2], order[-1]
    if (rows, columns) == ({n}, {m}):
        sides = sides[::-1]
    elif (rows, columns) != ({m}, {n}):
        return None
    if not set(reductions) <= _dims(sides[0]) | _dims(sides[1]):
        return None
    extents = _extents(op, len(kinds))
    block = _block(sides, reductions, extents)
    if extents is None or block is None:
        return None
    lhs, rhs = sides
    batch = tuple(d for d in order[:-2] if d is not None)
    assert m is not None
    assert n is not None
    return Contraction(op, lhs, rhs, output.map, batch, m, n, reductions, extents, block)


def _extents(op: Any, count: int) -> tuple[int, ...] | None:
    """Return the extent of each loop, from the operands that it reaches undivided."""
    extents: list[int | None] = [None] * count
    maps = [ir.AffineMapAttr(a).value for a in ir.ArrayAttr(op.attributes["indexing_maps"])]
    for map_, operand in zip(maps, op.operands, strict=True):
        if not isinstance(operand.type, ir.ShapedType):
            continue
        for axis, result in enumerate(map_.results):
            if isinstance(result, ir.AffineDimExpr):
                extents[result.position] = operand.type.shape[axis]
    return None if None in extents else tuple(e for e in extents if e is not None)


def _block(sides: Sequence[Any], reductions: tuple[int, ...], extents: Sequence[int] | None) -> int | None:
    """Return how many entries along k share whatever is not read for each, None if that is not known."""
    if extents is None:
        return None
    divisors = {
        divisor_of(result)
        for side in sides
        for item in side.inputs
        for result in item.map.results
        if loop_of(result) in reductions
    } - {1}
    if len(reductions) == 2:
        return None if divisors else extents[reductions[1]]
    extent = extents[reductions[0]]
    # An extent that is not known may end inside a block.
    return None if extent == DYNAMIC else math.gcd(extent or _DEFAULT_BLOCK, *(divisors or (_DEFAULT_BLOCK,)))


def is_on_buffers(contraction: Contraction) -> bool:
    """Tell whether all shaped operands are buffers whose neighbours along the last axis are neighbours in memory."""
    shaped = [v.type for v in contraction.op.operands if isinstance(v.type, ir.ShapedType)]
    return all(isinstance(t, ir.MemRefType) and _is_dense_last(t) for t in shaped)


def _is_dense_last(type_: Any) -> bool:
    strides, _ = type_.get_strides_and_offset()
    return not strides or strides[-1] == 1
