"""Where the extents of tensors come from: each is followed back to a constant, an index or another tensor's extent.

Two extents that come from the same place are equal whatever the program is given.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mx_dialect import types
from mx_dialect._mlir import arith, ir, tensor
from mx_dialect.ops import decompose


@dataclass(frozen=True)
class Extent:
    """`factor` times an extent of the value `origin`, or times the index `origin` itself where `axis` is None.

    Without an origin it is the constant `factor`.
    """

    origin: Any
    axis: int | None = None
    factor: Fraction = Fraction(1)

    @property
    def is_constant(self) -> bool:
        return self.origin is None

    def is_same(self, other: "Extent") -> bool:
        """Tell whether two extents are known to be equal."""
        if self.is_constant or other.is_constant:
            return self.is_constant and other.is_constant and self.factor == other.factor
        return self == other

    def times(self, factor: Fraction | int) -> "Extent":
        return Extent(self.origin, self.axis, self.factor * factor)

    def emit(self) -> Any:
        """Build the index value of this extent at the current insertion point, where its origin must be visible."""
        index = ir.IndexType.get()
        if self.is_constant:
            return arith.constant(index, int(self.factor))
        value = self.origin
        if self.axis is not None:
            whole = decompose(value)[0] if types.is_mx(value.type) else value
            value = tensor.dim(whole, arith.constant(index, self.axis))
        if self.factor.numerator != 1:
            value = arith.muli(value, arith.constant(index, self.factor.numerator))
        if self.factor.denominator != 1:
            value = arith.divui(value, arith.constant(index, self.factor.denominator))
        return value


def constant(value: int) -> Extent:
    return Extent(None, None, Fraction(value))


def sizes(value: Any) -> list[int | None] | None:
    """Return the extents in the type of a tensor or mx tensor, None for an open one; None for any other value."""
    type_ = value.type
    if isinstance(type_, types.TensorType):
        type_ = type_.mantissa_type
    if not isinstance(type_, ir.RankedTensorType):
        return None
    return [None if type_.is_dynamic_dim(i) else type_.shape[i] for i in range(type_.rank)]


def is_elementwise(op: Any) -> bool:
    """Tell whether an operation on tensors works element by element."""
    return op.name.partition(".")[0] in ("arith", "math")


# Operations whose result has the extents of one operand, and which.
_LIKE_OPERAND = {
    "mx.quantize_block": 0,
    "mx.dequantize_block": 0,
    "mx.fold_scale": 0,
    "mx.compose": 0,
    "mx.block_matmul": 2,
    "tensor.cast": 0,
    "tensor.insert": 1,
    "tensor.insert_slice": 1,
}


class Extents:
    """The extents of the values of a function, found when asked for."""

    def __init__(self) -> None:
        self._known: dict[Any, list[Extent]] = {}

    def of(self, value: Any) -> list[Extent]:
        """Return the extents of a tensor or mx tensor."""
        if value not in self._known:
            self._known[value] = [
                self._source(value, axis) if size is None else constant(size)
                for axis, size in enumerate(sizes(value) or [])
            ]
        return self._known[value]

    def of_index(self, value: Any) -> Extent:
        """Return the extent that an index value is."""
        if not isinstance(value, ir.OpResult):
            return Extent(value)
        op = value.owner.operation
        if op.name == "arith.constant":
            return constant(op.attributes["value"].value)
        if op.name == "tensor.dim":
            axis = self.of_index(op.operands[1])
            extents = self.of(op.operands[0])
            if axis.is_constant and 0 <= axis.factor < len(extents):
                return extents[int(axis.factor)]
        return Extent(value)

    def _source(self, value: Any, axis: int) -> Extent:
        """Follow one open extent of a value to where it comes from."""
        if not isinstance(value, ir.OpResult):
            return Extent(value, axis)
        op, number = value.owner.operation, value.result_number
        like = self._like(op, number)
        if like is not None:
            return self.of(like)[axis]
        if op.name == "mx.decompose":
            whole = op.operands[0]
            blocked = number == 1 and axis == whole.type.axis
            return self.of(whole)[axis].times(Fraction(1, whole.type.block_size) if blocked else 1)
        if op.name == "tensor.empty":
            open_before = (sizes(value) or [])[:axis].count(None)
            return self.of_index(op.operands[open_before])
        if op.name == "tensor.pad" and not (op.attributes["static_low"][axis] or op.attributes["static_high"][axis]):
            return self.of(op.operands[0])[axis]
        return Extent(value, axis)

    def _like(self, op: Any, number: int) -> Any:
        """Return the operand whose extents a result has, or None."""
        if op.name in _LIKE_OPERAND:
            return op.operands[_LIKE_OPERAND[op.name]]
        if op.name.startswith("linalg."):
            return op.operands[len(op.operands) - len(op.results) + number]
        if is_elementwise(op):
            return next((operand for operand in op.operands if sizes(operand) is not None), None)
        return None
