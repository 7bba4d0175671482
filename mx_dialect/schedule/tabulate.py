"""Evaluating scalar arithmetic of a linalg body for every byte: what a decoder computes, as a table of 256 values."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

from mx_dialect._mlir import arith, ir
from mx_dialect.formats import ELEMENT_FORMATS, SCALE_FORMATS
from mx_dialect.schedule.side import postorder

Array: TypeAlias = npt.NDArray[Any]

_FLOATS = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    **{
        f.mlir: np.dtype(getattr(ml_dtypes, f.ml_dtype))
        for f in (*ELEMENT_FORMATS.values(), *SCALE_FORMATS.values())
        if f.ml_dtype != "int8"
    },
}
CODES = 256


class _Unknown(Exception):
    """An operation or a type that is not evaluated here."""


def tabulate(value: Any, code: Any = None) -> Array | None:
    """Return the 256 f32 values of a value of a body that depends on one argument of 8 bits; None if it is not one.

    `code` is a value of the body to take for that argument.
    """
    leaves = () if code is None else (code,)
    order = postorder(value, (), leaves)
    arguments = [v for v in order if isinstance(v, ir.BlockArgument) or v in leaves]
    if len(arguments) != 1 or _width(arguments[0].type) != 8 or str(value.type) != "f32":
        return None
    known: dict[Any, Array] = {}
    try:
        for v in order:
            known[v] = _codes(v.type) if v == arguments[0] else _evaluate(v, known)
    except _Unknown:
        return None
    return np.broadcast_to(known[value], CODES).astype(np.float32)


def _width(type_: Any) -> int:
    return type_.width if isinstance(type_, ir.IntegerType | ir.FloatType) else 0


def _codes(type_: Any) -> Array:
    return _from_bits(np.arange(CODES, dtype=np.uint64), type_)


def _from_bits(bits: Array, type_: Any) -> Array:
    """Return values of a type from their bits: floats as such, integers as their bits without sign."""
    if isinstance(type_, ir.IntegerType):
        return bits & np.uint64((1 << type_.width) - 1)
    dtype = _FLOATS.get(str(type_))
    if dtype is None:
        raise _Unknown
    return bits.astype(f"uint{8 * dtype.itemsize}").view(dtype)


def _to_bits(values: Array) -> Array:
    return values if values.dtype == np.uint64 else values.view(f"uint{8 * values.dtype.itemsize}").astype(np.uint64)


def _signed(bits: Array, width: int) -> Array:
    half = np.int64(1) << np.int64(width - 1)
    return ((bits.astype(np.int64) ^ half) - half).astype(np.int64)


_INTEGER: Mapping[str, Callable[[Array, Array], Array]] = {
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.shli": np.left_shift,
    "arith.shrui": np.right_shift,
    "arith.maxui": np.maximum,
    "arith.minui": np.minimum,
}
_FLOAT: Mapping[str, Callable[[Array, Array], Array]] = {
    "arith.mulf": np.multiply,
    "arith.addf": np.add,
    "arith.subf": np.subtract,
}
_COMPARE: Mapping[int, Callable[[Array, Array], Array]] = {
    arith.CmpIPredicate.eq: np.equal,
    arith.CmpIPredicate.ne: np.not_equal,
    arith.CmpIPredicate.ult: np.less,
    arith.CmpIPredicate.ule: np.less_equal,
    arith.CmpIPredicate.ugt: np.greater,
    arith.CmpIPredicate.uge: np.greater_equal,
}


def _evaluate(value: Any, known: Mapping[Any, Array]) -> Array:
    op = value.owner.operation
    operands = [known[v] for v in op.operands]
    type_ = value.type
    with np.errstate(all="ignore"):
        if op.name == "arith.constant":
            return _constant(op.attributes["value"], type_)
        if op.name in _INTEGER and isinstance(type_, ir.IntegerType):
            return _from_bits(_INTEGER[op.name](*operands), type_)
        if op.name in _FLOAT and str(type_) == "f32":
            return _FLOAT[op.name](*operands).astype(np.float32)
        if op.name == "arith.cmpi":
            compare = _COMPARE.get(arith.CmpIPredicate(ir.IntegerAttr(op.attributes["predicate"]).value))
            if compare is None:
                raise _Unknown
            return compare(*operands).astype(np.uint64)
        if op.name == "arith.select":
            return np.where(operands[0] != 0, operands[1], operands[2])
        return _converted(op, operands[0], type_) if len(operands) == 1 else _refuse()


def _converted(op: Any, operand: Array, type_: Any) -> Array:
    if op.name == "arith.bitcast":
        return _from_bits(_to_bits(operand), type_)
    if op.name in ("arith.extui", "arith.trunci"):
        return _from_bits(operand, type_)
    if op.name == "arith.extsi":
        return _from_bits(_signed(operand, op.operands[0].type.width).astype(np.uint64), type_)
    if op.name == "arith.extf" and str(type_) in ("f16", "bf16", "f32"):
        return operand.astype(_FLOATS[str(type_)])
    if op.name == "arith.sitofp" and str(type_) == "f32":
        return _signed(operand, op.operands[0].type.width).astype(np.float32)
    return _refuse()


def _refuse() -> Array:
    raise _Unknown


def _constant(attribute: Any, type_: Any) -> Array:
    if isinstance(type_, ir.IntegerType):
        mask = (1 << type_.width) - 1
        return np.full(CODES, ir.IntegerAttr(attribute).value & mask, np.uint64)
    dtype = _FLOATS.get(str(type_))
    if dtype is None:
        raise _Unknown
    return np.full(CODES, ir.FloatAttr(attribute).value, dtype)
