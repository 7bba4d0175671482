"""Evaluating one side of a contraction: the scalar computation of the linalg body, on vectors of neighbours.

What the elements of a block share, as its scale, is computed once a block: `block_values` first, `element` then.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mx_dialect._mlir import affine, ir
from mx_dialect.schedule.contraction import Contraction, Input, Side, divisor_of, loop_of
from mx_dialect.schedule.emitter import Size, broadcast, index, load, load_vector
from mx_dialect.schedule.nibbles import load_nibble, load_nibbles

Values = dict[Any, Any]


@dataclass(frozen=True)
class ScaledCode:
    """A side that is what a code of 8 bits stands for, times what the block shares."""

    input: Input
    code: Any
    scale: Any


def scaled_code(contraction: Contraction, side: Side) -> ScaledCode | None:
    """Return a side as a decoded code times a factor of the block, or None if it is not such a product."""
    value = side.value
    if not isinstance(value, ir.OpResult) or value.owner.name != "arith.mulf":
        return None
    reader = SideReader(contraction, side, contraction.k[-1], 1)
    inputs = {i.number: i for i in side.inputs}
    first, second = value.owner.operation.operands
    for code, scale in ((first, second), (second, first)):
        numbers = reader.inputs_of(code)
        if len(numbers) == 1 and not reader.is_shared(code) and reader.is_shared(scale):
            (number,) = numbers
            return ScaledCode(inputs[number], code, scale)
    return None


class SideReader:
    """Reads a side along one of its loops, `lanes` entries at once."""

    def __init__(self, contraction: Contraction, side: Side, along: int, lanes: int, by_blocks: bool = False):
        self._side = side
        self._along = along
        self._lanes = lanes
        # Neighbours along the loop of blocks are a block apart where k is one loop.
        self._step = contraction.block if by_blocks and len(contraction.k) == 1 else 1
        self._place = contraction.k[-1]
        self._inputs = {i.number: i for i in side.inputs}
        self._operands = list(contraction.op.operands)
        self._leaves = {i.value: i for i in side.inputs}
        self._depends: dict[Any, frozenset[int]] = {}
        for value in postorder(side.value, (), self._leaves):
            self._depends[value] = self._dependence(value)
        self._shared = {value: self._is_shared(numbers) for value, numbers in self._depends.items()}

    def block_values(self, loops: Sequence[Size], mask: Any = None) -> Values:
        """Compute what all elements of a block along k share; `loops` has a value for each loop."""
        found: Values = {}
        for value, shared in self._shared.items():
            if shared and self.inputs_of(value):
                self._evaluate(value, loops, mask, found)
        return found

    def shared_values(self) -> list[Any]:
        """Return what the elements of a block share: the values of the body that all the others are computed from."""
        used: dict[Any, None] = {}
        for value, shared in self._shared.items():
            if shared or value in self._leaves or not isinstance(value, ir.OpResult):
                continue
            for operand in value.owner.operation.operands:
                if self._shared[operand] and self.inputs_of(operand):
                    used[operand] = None
        if self._shared[self._side.value]:
            used[self._side.value] = None
        return list(used)

    def over_blocks(self, loops: Sequence[Size], mask: Any = None) -> Values:
        """Return `shared_values` of the lanes' blocks from the one at `loops` on, as vectors."""
        found: Values = {}
        for value in self.shared_values():
            self._evaluate(value, loops, mask, found)
        return {value: self._wide(found[value]) for value in self.shared_values()}

    def scalar(self, loops: Sequence[Size], shared: Mapping[Any, Any]) -> Any:
        """Return the side's value at `loops` alone; the reader must not run along a loop of the side."""
        return self._evaluate(self._side.value, loops, None, dict(shared))

    def computed(self, root: Any, known: Mapping[Any, Any]) -> Any:
        """Return a value of the body from vectors of the values that it depends on."""
        return self._wide(self._evaluate(root, (), None, dict(known)))

    def _wide(self, value: Any) -> Any:
        return value if isinstance(value.type, ir.VectorType) else broadcast(value, self._lanes)

    def element(self, loops: Sequence[Size], shared: Mapping[Any, Any], mask: Any = None) -> Any:
        """Return the side's f32 values at `loops`, as a vector of the lanes."""
        found: Values = dict(shared)
        return self._wide(self._evaluate(self._side.value, loops, mask, found))

    def is_shared(self, value: Any) -> bool:
        """Tell whether the elements of a block share a value of the body."""
        return self._shared[value]

    def inputs_of(self, value: Any) -> frozenset[int]:
        """Return the numbers of the inputs that a value of the body depends on."""
        return self._depends[value]

    def _dependence(self, value: Any) -> frozenset[int]:
        """Return `inputs_of`, given that of the values that a value is computed from."""
        if value in self._leaves:
            return frozenset({self._leaves[value].number})
        operands = value.owner.operation.operands if isinstance(value, ir.OpResult) else ()
        return frozenset(number for operand in operands for number in self._depends[operand])

    def _is_shared(self, numbers: frozenset[int]) -> bool:
        """Tell whether none of some inputs is read anew for each place in a block."""
        return not any(self._reads_each_place(self._inputs[number]) for number in numbers)

    def _reads_each_place(self, item: Input) -> bool:
        return any(loop_of(r) == self._place and divisor_of(r) == 1 for r in item.map.results)

    def _evaluate(self, root: Any, loops: Sequence[Size], mask: Any, found: Values) -> Any:
        for value in postorder(root, found, self._leaves):
            if value in self._leaves:
                found[value] = self._read(self._leaves[value], loops, mask)
            else:
                found[value] = self._copy(value.owner.operation, found)
        return found[root]

    def _read(self, item: Input, loops: Sequence[Size], mask: Any) -> Any:
        buffer = self._operands[item.number]
        if not isinstance(buffer.type, ir.MemRefType):
            return buffer
        places = places_of(item, loops)
        last = item.last()
        if last is None or loop_of(last) != self._along or divisor_of(last) != self._step:
            return load(buffer, places) if item.packed == 1 else load_nibble(buffer, places)
        return (load_vector if item.packed == 1 else load_nibbles)(buffer, places, self._lanes, mask)

    def _copy(self, op: Any, found: Mapping[Any, Any]) -> Any:
        """Return the result of an operation of the body on values that may be vectors now."""
        operands = [found[v] for v in op.operands]
        if not any(isinstance(v.type, ir.VectorType) for v in operands):
            copied = ir.Operation.create(
                op.name, results=[r.type for r in op.results], operands=operands, attributes=_attributes(op)
            )
            return copied.result
        wide = [v if isinstance(v.type, ir.VectorType) else broadcast(v, self._lanes) for v in operands]
        type_ = ir.VectorType.get([self._lanes], op.results[0].type)
        return ir.Operation.create(op.name, results=[type_], operands=wide, attributes=_attributes(op)).result


def _attributes(op: Any) -> dict[str, Any]:
    return {name: op.attributes[name] for name in op.attributes}


def places_of(item: Input, loops: Sequence[Size]) -> list[Size]:
    """Return the indices at which an input is read, given a value for each loop."""
    return [_place(result, loops) for result in item.map.results]


def _place(result: Any, loops: Sequence[Size]) -> Size:
    loop = loop_of(result)
    assert loop is not None
    value = loops[loop]
    divisor = divisor_of(result)
    if divisor == 1:
        return value
    if isinstance(value, int):
        return value // divisor
    expr = ir.AffineExpr.get_floor_div(ir.AffineExpr.get_dim(0), divisor)
    return affine.apply(ir.AffineMap.get(1, 0, [expr]), [index(value)])


def postorder(root: Any, known: Iterable[Any] = (), leaves: Container[Any] = ()) -> list[Any]:
    """Return the values that a value is computed from, operands first, itself last.

    Those in `known` are left out, and so is what values in `leaves` are computed from.
    """
    order: list[Any] = []
    seen: set[Any] = set(known)
    pending: list[tuple[Any, bool]] = [(root, False)]
    while pending:
        value, ready = pending.pop()
        if ready:
            order.append(value)
        elif value not in seen:
            seen.add(value)
            pending.append((value, True))
            if isinstance(value, ir.OpResult) and value not in leaves:
                pending += [(operand, False) for operand in value.owner.operation.operands]
    return order
