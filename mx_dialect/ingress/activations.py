"""What a product with a quantized weight does to its other operands: f32, and as long along K as the weight."""

from typing import Any

from mx_dialect._mlir import arith, ir, tensor
from mx_dialect.lowering.matmul_host import padded

FLOATS = ("f32", "f16", "bf16")
"""Element types of activations and accumulators."""


def extended(value: Any) -> Any:
    """Return a tensor as f32, exactly."""
    f32 = ir.F32Type.get(value.context)
    return value if value.type.element_type == f32 else arith.extf(_like(value.type, f32), value)


def rounded(value: Any, type_: Any) -> Any:
    """Return a tensor of f32 as one of a type of the same shape."""
    return value if value.type == type_ else arith.truncf(type_, value)


def filled(value: Any, axis: int, extent: int, whole: int) -> Any:
    """Return a tensor of an extent along an axis with zeros behind it, `whole` in all."""
    if extent == whole:
        return value
    if value.type.is_dynamic_dim(axis):
        shape = list(value.type.shape)
        shape[axis] = extent
        value = tensor.cast(ir.RankedTensorType.get(shape, value.type.element_type), value)
    shape = list(value.type.shape)
    shape[axis] = whole
    return padded(value, shape, 0.0)


def _like(type_: Any, element: Any) -> Any:
    return ir.RankedTensorType.get(list(type_.shape), element)
