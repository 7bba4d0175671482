"""The signature of a function of a module: how its arguments and results cross into Python."""

from collections.abc import Sequence
from typing import Any

from mx_dialect import types
from mx_dialect._mlir import ir
from mx_dialect.diagnostics import error_at
from mx_dialect.element_dtypes import dtype_of
from mx_dialect.runtime.signature import Shape, Signature, Slot, Value
from mx_dialect.tensor_spec import spell_shape
from mx_dialect.type_spelling import spell_types


def of_function(function: Any) -> Signature:
    """Return the signature of a `func.func` at the value level.

    Raises:
        MxError: an argument or result that no numpy array or scalar can stand for.
    """
    type_ = function.type
    name = ir.StringAttr(function.attributes["sym_name"]).value

    def values(group: Sequence[Any], role: str) -> tuple[Value, ...]:
        made: list[Value] = []
        for number, value_type in enumerate(group):
            value = _value(value_type)
            if isinstance(value, str):
                raise error_at(function, f"{role} {number} of @{name} is '{value_type}': {value}")
            made.append(value)
        return tuple(made)

    return Signature(name, values(type_.inputs, "argument"), values(type_.results, "result"))


def _value(type_: Any) -> Value | str:
    """Return how a value of this type crosses into Python, or why it cannot."""
    text = spell_types(str(type_))
    if isinstance(type_, types.TensorType):
        spec = type_.spec
        mantissa = _array_slot(spec.shape, spec.element, "mantissa")
        scale = _array_slot(spec.scale_shape, spec.scale_type, "scale")
        if isinstance(mantissa, str) or isinstance(scale, str):
            return f"numpy has no dtype for '{spec.element}' or '{spec.scale_type}'"
        return Value(text, (mantissa, scale), spec)
    if isinstance(type_, ir.RankedTensorType):
        if type_.encoding is not None:
            return "a tensor with an encoding has no numpy counterpart; drop the encoding"
        shape = tuple(type_.shape[i] if not type_.is_dynamic_dim(i) else None for i in range(type_.rank))
        slot = _array_slot(shape, str(type_.element_type))
        return slot if isinstance(slot, str) else Value(text, (slot,))
    if isinstance(type_, ir.ShapedType):
        return "a kernel takes and returns ranked tensors, mx tensors and scalars; use tensors instead"
    dtype = dtype_of(text)
    if dtype is None:
        return f"no numpy scalar stands for '{text}'"
    return Value(text, (Slot(text, None, text, dtype),))


def _array_slot(shape: Shape, element: str, role: str = "") -> Slot | str:
    dtype = dtype_of(element)
    if dtype is None:
        return f"numpy has no dtype for '{element}'"
    return Slot(f"tensor<{spell_shape(shape, element)}>", shape, element, dtype, role)
