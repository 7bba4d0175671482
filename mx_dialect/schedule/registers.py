"""Operations on whole vector registers of 64 bytes: constants, bit casts, and instructions without a name in MLIR."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mx_dialect._mlir import arith, ir, llvm, vector
from mx_dialect.schedule.emitter import vector_type

BYTES = 64
LANES = 16


def i8() -> Any:
    return ir.IntegerType.get_signless(8)


def i32() -> Any:
    return ir.IntegerType.get_signless(32)


def intrinsic(name: str, type_: Any, *operands: Any) -> Any:
    """Call an LLVM intrinsic."""
    return llvm.call_intrinsic(type_, ir.StringAttr.get(name), list(operands), [], [])


def byte_constant(values: Any) -> Any:
    """Return a constant vector of i8 from integers in -128..255."""
    bytes_ = np.ascontiguousarray(np.asarray(values).astype(np.uint8).view(np.int8))
    return arith.constant(
        vector_type(len(bytes_), i8()), ir.DenseElementsAttr.get(bytes_, type=vector_type(len(bytes_), i8()))
    )


def word_constant(values: Sequence[int]) -> Any:
    """Return a constant vector of i32 from signed integers."""
    type_ = vector_type(len(values), i32())
    return arith.constant(type_, ir.DenseElementsAttr.get(np.array(values, np.int32), type=type_))


def splat(value: float, lanes: int, element: Any) -> Any:
    """Return a constant vector whose lanes are all the same; integers as signed numbers."""
    attribute = (
        ir.IntegerAttr.get(element, value) if isinstance(element, ir.IntegerType) else ir.FloatAttr.get(element, value)
    )
    type_ = vector_type(lanes, element)
    return arith.constant(type_, ir.DenseElementsAttr.get_splat(type_, attribute))


def bitcast(value: Any, element: Any) -> Any:
    """Return the bytes of a vector as a vector of another element type."""
    lanes = value.type.shape[0] * value.type.element_type.width // element.width
    if value.type == vector_type(lanes, element):
        return value
    return vector.bitcast(vector_type(lanes, element), value)


def shuffle(a: Any, b: Any, lanes: Sequence[int]) -> Any:
    """Return the given lanes of two vectors, those of the second counted on."""
    return vector.shuffle(a, b, ir.DenseI64ArrayAttr.get(list(lanes)))


def any_bit(value: Any) -> Any:
    """Return the lanes of a vector of integers combined by `or`."""
    return vector.reduction(value.type.element_type, vector.CombiningKind.OR, value)


def byte_dots(total: Any, unsigned: Any, signed: Any) -> Any:
    """Add to each i32 of `total` the four products of bytes of an unsigned and a signed vector; exact modulo 2^32."""
    return intrinsic("llvm.x86.avx512.vpdpbusd.512", total.type, total, unsigned, signed)


def align_stack(op: Any) -> None:
    """Have LLVM align the stack of the function that an operation is in to what registers are spilled to it.

    Otherwise it does so only where the function has aligned variables, and spills straddle cache lines.
    """
    function = op
    while function.name != "func.func":
        function = function.parent.operation
    name = "llvm.passthrough"
    known = list(ir.ArrayAttr(function.attributes[name])) if name in function.attributes else []
    wanted = ir.StringAttr.get("stackrealign")
    if wanted not in known:
        function.attributes[name] = ir.ArrayAttr.get([*known, wanted])
