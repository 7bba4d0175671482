"""What the processor or the C library would end the process for becomes a failed assert: no memory, division by zero.

Inserted when control flow is unstructured and before asserts become statuses. Shapes are checked much earlier, see
`shape_checks`.
"""

from typing import Any

from mx_dialect._mlir import arith, cf, ir, memref, vector

_DIVISIONS = ("arith.divsi", "arith.divui", "arith.remsi", "arith.remui")


def insert_machine_checks(module: Any) -> None:
    """Assert that each `memref.alloc` got memory and that no integer division traps, in all functions of a module."""
    with module.context, ir.Location.unknown():
        for function in module.body:
            for region in function.operation.regions:
                for block in region:
                    # Listed first: the asserts go into the same block.
                    for op in list(block):
                        if op.operation.name == "memref.alloc":
                            _check_allocation(op.operation)
                        elif op.operation.name in _DIVISIONS:
                            _check_division(op.operation)


def _check_allocation(op: Any) -> None:
    buffer = op.results[0]
    with ir.InsertionPoint.after(op), op.location:
        address = memref.extract_aligned_pointer_as_index(buffer)
        # malloc of 0 bytes may give null, but buffers are aligned, so that MLIR asks for more.
        null = arith.constant(ir.IndexType.get(), 0)
        allocated = arith.cmpi(arith.CmpIPredicate.ne, address, null)
        cf.AssertOp(allocated, f"out of memory for a buffer of type {buffer.type}")


def _check_division(op: Any) -> None:
    """Assert that no divisor is 0, and that no smallest number is divided by -1: its negative has no code."""
    dividend, divisor = op.operands
    if _is_harmless(divisor):
        return
    type_ = divisor.type
    with ir.InsertionPoint(op), op.location:
        nonzero = arith.cmpi(arith.CmpIPredicate.ne, divisor, _constant(type_, 0))
        cf.AssertOp(_all(nonzero), f"division by zero ('{op.name}')")
        if op.name in ("arith.divsi", "arith.remsi"):
            other_divisor = arith.cmpi(arith.CmpIPredicate.ne, divisor, _constant(type_, -1))
            smallest = _constant(type_, -1 << (_width(type_) - 1))
            other_dividend = arith.cmpi(arith.CmpIPredicate.ne, dividend, smallest)
            cf.AssertOp(_all(arith.ori(other_divisor, other_dividend)), f"division overflows ('{op.name}')")


def _is_harmless(divisor: Any) -> bool:
    """Tell whether a divisor is a constant that no division fails with."""
    if not isinstance(divisor, ir.OpResult) or divisor.owner.operation.name != "arith.constant":
        return False
    value = divisor.owner.operation.attributes["value"]
    if isinstance(value, ir.DenseElementsAttr):
        if not value.is_splat:
            return False
        value = value.get_splat_value()
    return isinstance(value, ir.IntegerAttr) and value.value not in (0, -1)


def _element(type_: Any) -> Any:
    return type_.element_type if isinstance(type_, ir.VectorType) else type_


def _width(type_: Any) -> int:
    element = _element(type_)
    return 64 if isinstance(element, ir.IndexType) else element.width


def _constant(type_: Any, value: int) -> Any:
    attribute = ir.IntegerAttr.get(_element(type_), value)
    if isinstance(type_, ir.VectorType):
        attribute = ir.DenseElementsAttr.get_splat(type_, attribute)
    return arith.constant(type_, attribute)


def _all(condition: Any) -> Any:
    """Return whether a condition, or every element of a vector of conditions, holds."""
    type_ = condition.type
    if not isinstance(type_, ir.VectorType):
        return condition
    count = 1
    for extent in type_.shape:
        count *= extent
    flat = vector.shape_cast(ir.VectorType.get([count], type_.element_type), condition)
    return vector.reduction(type_.element_type, vector.CombiningKind.AND, flat)
