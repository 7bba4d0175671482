"""The two parts of an mx value while it is being lowered: casts that join and split it, and their removal."""

from typing import Any

from mx_dialect._mlir import ir
from mx_dialect.types import TensorType
from mx_dialect.walk import operations

CAST = "builtin.unrealized_conversion_cast"


def part_types(type_: TensorType) -> list[Any]:
    """Return the types of the mantissa tensor, as codes where they are less than a byte, and of the scale tensor."""
    return [type_.code_tensor_type, type_.scale_tensor_type]


def is_join(op: Any) -> bool:
    """Tell whether an operation is a cast of two tensors to the mx value they make."""
    return (
        op.name == CAST
        and len(op.operands) == 2
        and len(op.results) == 1
        and isinstance(op.results[0].type, TensorType)
        and [v.type for v in op.operands] == part_types(op.results[0].type)
    )


def is_split(op: Any) -> bool:
    """Tell whether an operation is a cast of an mx value to its two tensors."""
    return (
        op.name == CAST
        and len(op.operands) == 1
        and len(op.results) == 2
        and isinstance(op.operands[0].type, TensorType)
        and [v.type for v in op.results] == part_types(op.operands[0].type)
    )


def join(type_: TensorType, mantissa: Any, scale: Any) -> Any:
    """Return the mx value of two tensors, as a cast at the current insertion point."""
    return ir.Operation.create(CAST, results=[type_], operands=[mantissa, scale]).result


def parts(value: Any) -> tuple[Any, Any]:
    """Return the mantissa and scale tensors of an mx value, through a cast unless it is known what they are."""
    owner = value.owner
    if isinstance(value, ir.OpResult) and is_join(owner.operation):
        mantissa, scale = owner.operation.operands
        return mantissa, scale
    cast = ir.Operation.create(CAST, results=part_types(value.type), operands=[value])
    return cast.results[0], cast.results[1]


def reconcile(root: ir.Operation) -> None:
    """Remove every split of a joined value, and every join that nothing uses."""
    joins = operations(root, is_join)
    for split in operations(root, is_split):
        source = split.operands[0]
        if isinstance(source, ir.OpResult) and is_join(source.owner.operation):
            for old, new in zip(split.results, source.owner.operation.operands, strict=True):
                old.replace_all_uses_with(new)
            split.erase()
    for joined in joins:
        if not list(joined.results[0].uses):
            joined.erase()
