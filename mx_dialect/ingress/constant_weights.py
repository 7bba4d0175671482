"""Constant weights in IR: which constant a value is a transposed or broadcast view of, and its numbers.

A weight is an `arith.constant` or a load of an immutable `ml_program.global`, with dense elements or a dense resource,
of f32, f16 or bf16. Exporters put `linalg.transpose`, `linalg.broadcast`, `arith.extf` or a `linalg.generic` that only
copies or extends behind it.
"""

import math
import re
from dataclasses import dataclass
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

from mx_dialect._mlir import ir
from mx_dialect.diagnostics import unescape
from mx_dialect.elements import entries, resource_name
from mx_dialect.walk import operations

_DTYPES: dict[str, Any] = {"f32": np.dtype("<f4"), "f16": np.dtype("<f2"), "bf16": np.dtype(ml_dtypes.bfloat16)}
LOADS = ("ml_program.global_load_const", "ml_program.global_load")
VIEWS = ("linalg.transpose", "linalg.broadcast", "linalg.generic", "arith.extf")

# Exporters put one to three views behind a constant.
_MOST_VIEWS = 16


@dataclass(frozen=True)
class Weight:
    """A constant seen through views. Axis i of the value is axis `axes[i]` of the constant, or broadcast if None.

    `holder` is the arith.constant or ml_program.global, `value` its attribute, `names` what patterns may name it by:
    its symbol, the name of its resource, and the name in its location.
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
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def size_in_bytes(self) -> int:
        return self.size * int(_DTYPES[self.element].itemsize)

    def values(self) -> npt.NDArray[np.float32]:
        """Return the numbers of the constant, in its own shape, exactly."""
        return entries(self.value, _DTYPES[self.element]).astype(np.float32, copy=False)


# The ml_program.globals of a module: by the operation around each, and its name as `symbol` returns it.
Globals: TypeAlias = dict[tuple[Any, str], Any]


def globals_under(root: Any) -> Globals:
    """Return the ml_program.globals under an operation."""
    found = operations(root, lambda op: op.name == "ml_program.global")
    return {(op.parent, symbol(op.attributes["sym_name"])): op for op in found}


def symbol(attribute: Any) -> str:
    """Return the name that a symbol or a reference to it has, escaped as MLIR prints it, without quotes.

    The bindings cannot give a name that is not UTF-8 as text.
    """
    return str(attribute).removeprefix("@").strip('"')


def weight_of(value: Any, known: Globals) -> Weight | None:
    """Return the constant that a value is a view of, or None."""
    axes: list[int | None] = list(range(value.type.rank))
    for _ in range(_MOST_VIEWS):
        if not isinstance(value, ir.OpResult):
            return None
        op = value.owner.operation
        view = source_axes(op)
        if view is None:
            return _held(op, tuple(axes), known)
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
    if op.name == "arith.extf":
        return list(range(rank))
    if op.name == "linalg.broadcast":
        added = set(op.attributes["dimensions"])
        kept = iter(range(rank))
        return [None if i in added else next(kept) for i in range(rank)]
    return _copied_axes(op, rank)


def _copied_axes(op: Any, rank: int) -> list[int | None] | None:
    """Return what `source_axes` does for a linalg.generic that only copies one input, or extends its numbers."""
    block = op.regions[0].blocks[0]
    *before, end = (inner.operation for inner in block)
    if len(op.operands) != 2 or [inner.name for inner in before] not in ([], ["arith.extf"]):
        return None
    copied = before[0].operands[0] if before else end.operands[0]
    if copied != block.arguments[0] or (before and end.operands[0] != before[0].result):
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


def _held(op: Any, axes: tuple[int | None, ...], known: Globals) -> Weight | None:
    """Return the weight that a constant or the load of a global is; None if it is neither, or may change."""
    holder, names = op, ()
    if op.name in LOADS:
        holder = _loaded(op, known)
        if holder is None or "is_mutable" in holder.attributes:
            return None
        names = (unescape(symbol(op.attributes["global"])),)
    elif op.name != "arith.constant":
        return None
    if "value" not in holder.attributes:
        return None
    value = holder.attributes["value"]
    resource = resource_name(value)
    if resource is None and not isinstance(value, ir.DenseElementsAttr):
        return None
    names += () if resource is None else (resource,)
    return Weight(holder, value, axes, (*names, *location_names(op.location)))


def _loaded(op: Any, known: Globals) -> Any | None:
    """Return the global that a load reads: one in the nearest operation around it that has one of its name."""
    if not isinstance(op.attributes["global"], ir.FlatSymbolRefAttr):
        return None
    name, around = symbol(op.attributes["global"]), op.parent
    while around is not None and (around, name) not in known:
        around = around.parent
    return known.get((around, name))


def location_names(location: Any) -> tuple[str, ...]:
    """Return the names that a location gives: `loc("layer.weight")`, alone or around a position."""
    return tuple(unescape(name) for name in re.findall(r'loc\("((?:[^"\\]|\\.)*)"(?!:)', str(location)))
