"""Constant weights in IR: which constant a value is a transposed or broadcast view of, and its numbers.

A weight is an `arith.constant` or a load of an immutable `ml_program.global`, with dense elements or a dense resource,
of f32, f16 or bf16. Exporters put `linalg.transpose`, `linalg.broadcast` or a `linalg.generic` that only copies behind
it.
"""

import re
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from mx_dialect._mlir import ir

_DTYPES: dict[str, Any] = {"f32": np.dtype("<f4"), "f16": np.dtype("<f2"), "bf16": np.dtype(ml_dtypes.bfloat16)}
_LOADS = ("ml_program.global_load_const", "ml_program.global_load")
VIEWS = ("linalg.transpose", "linalg.broadcast", "linalg.generic")

# Exporters put one or two views behind a constant.
_MOST_VIEWS = 16

# Where a blob begins in the text of an operation; its first four bytes are its alignment.
_BLOB = ': "0x'
_NUMBER = re.compile(r"0x[0-9A-Fa-f]+|-?\d+\.\d+(?:[eE][+-]?\d+)?")


@dataclass(frozen=True)
class Weight:
    """A constant seen through views. Axis i of the value is axis `axes[i]` of the constant, or broadcast if None.

    `holder` is the arith.constant or ml_program.global, `value` its attribute, `names` what patterns may name it by: the
    name of its resource, its symbol, and the names in its location.
    """

    holder: Any
    value: Any
    axes: tuple[int | None, ...]
    names: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.value.type.shape)

    @property
    def element(self) -> str:
        return str(self.value.type.element_type)

    @property
    def is_float(self) -> bool:
        return self.element in _DTYPES

    @property
    def size_in_bytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * int(_DTYPES[self.element].itemsize)

    def values(self) -> npt.NDArray[np.float32]:
        """Return the numbers of the constant, in its own shape, exactly."""
        return _values(self).reshape(self.shape).astype(np.float32, copy=False)


def weight_of(value: Any, globals_by_name: dict[str, Any]) -> Weight | None:
    """Return the constant that a value is a view of, or None; `globals_by_name` has the ml_program.globals."""
    axes: list[int | None] = list(range(value.type.rank))
    for _ in range(_MOST_VIEWS):
        if not isinstance(value, ir.OpResult):
            return None
        op = value.owner.operation
        view = source_axes(op)
        if view is None:
            return _held(op, tuple(axes), globals_by_name)
        axes = [None if axis is None else view[axis] for axis in axes]
        value = op.operands[0]
    return None


def source_axes(op: Any) -> list[int | None] | None:
    """Return, for each axis of a view's result, the axis of its input or None; None if the operation is no view."""
    if op.name not in VIEWS or len(op.results) != 1 or not isinstance(op.operands[0].type, ir.RankedTensorType):
        return None
    rank = op.results[0].type.rank
    if op.name == "linalg.transpose":
        return list(op.attributes["permutation"])
    if op.name == "linalg.broadcast":
        added = set(op.attributes["dimensions"])
        kept = iter(range(rank))
        return [None if i in added else next(kept) for i in range(rank)]
    return _copied_axes(op, rank)


def _copied_axes(op: Any, rank: int) -> list[int | None] | None:
    """Return what `source_axes` does for a linalg.generic that only copies one input."""
    block = op.regions[0].blocks[0]
    if len(op.operands) != 2 or len(list(block.operations)) != 1:
        return None
    if block.operations[0].operation.operands[0] != block.arguments[0]:
        return None
    source, result = (m.value for m in op.attributes["indexing_maps"])
    if result != ir.AffineMap.get_identity(rank):
        return None
    axes: list[int | None] = [None] * rank
    for axis, expr in enumerate(source.results):
        if isinstance(expr, ir.AffineDimExpr):
            position = expr.position
            if axes[position] is not None:
                return None
            axes[position] = axis
        elif not isinstance(expr, ir.AffineConstantExpr) or op.operands[0].type.shape[axis] != 1:
            return None
    return axes


def _held(op: Any, axes: tuple[int | None, ...], globals_by_name: dict[str, Any]) -> Weight | None:
    holder, symbol = op, ()
    if op.name in _LOADS:
        name = str(op.attributes["global"]).removeprefix("@").strip('"')
        holder, symbol = globals_by_name.get(name), (name,)
        if holder is None or "is_mutable" in holder.attributes:
            return None
    elif op.name != "arith.constant":
        return None
    if "value" not in holder.attributes:
        return None
    value = holder.attributes["value"]
    if not isinstance(value, ir.DenseElementsAttr) and not _is_resource(value):
        return None
    return Weight(holder, value, axes, (*symbol, *_resource(value), *location_names(op.location)))


def _is_resource(value: Any) -> bool:
    # The bindings give a dense resource as a plain attribute.
    return not isinstance(value, ir.DenseElementsAttr) and str(value).startswith("dense_resource<")


def _resource(value: Any) -> tuple[str, ...]:
    if not _is_resource(value):
        return ()
    return (str(value).removeprefix("dense_resource<").rpartition(">")[0].rpartition(">")[0].strip('"'),)


def location_names(location: Any) -> tuple[str, ...]:
    """Return the names that a location gives: `loc("layer.weight")`, alone or around a position."""
    return tuple(re.findall(r'loc\("((?:[^"\\]|\\.)*)"(?!:)', str(location)))


def _values(weight: Weight) -> npt.NDArray[Any]:
    dtype = _DTYPES[weight.element]
    if _is_resource(weight.value):
        return np.frombuffer(_blob(weight), dtype)
    if weight.element == "f32":
        return np.array(weight.value)
    # The bindings have no reader for these: MLIR's text has the bytes of large constants and the numbers of small ones.
    text = str(weight.value)
    if '"0x' in text:
        data = np.frombuffer(bytes.fromhex(text[text.index('"0x') + 3 : text.rindex('"')]), dtype)
    else:
        data = np.array([_number(t, dtype) for t in _NUMBER.findall(text.rpartition(":")[0])], dtype)
    return np.broadcast_to(data, weight.shape) if data.size == 1 else data


def _number(text: str, dtype: Any) -> Any:
    return np.uint16(int(text, 16)).view(dtype) if text.startswith("0x") else dtype.type(float(text))


def _blob(weight: Weight) -> bytes:
    """Return the bytes of a dense resource, which the bindings give as text only."""
    # Only an operation that is in no other is printed with its resources.
    value = weight.value
    with ir.Location.unknown(value.context):
        alone = ir.Operation.create("arith.constant", results=[value.type], attributes={"value": value}, ip=False)
    text = str(alone)
    start = text.rfind(_BLOB)
    if start < 0:
        raise LookupError("its resource has no data")
    start += len(_BLOB)
    data = bytes.fromhex(text[start : text.index('"', start)])[4:]
    if len(data) != weight.size_in_bytes:
        raise LookupError(f"its resource has {len(data)} bytes, not {weight.size_in_bytes}")
    return data
