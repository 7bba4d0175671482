"""The operations of arith on what `interpreter` computes with, elementwise over arrays that broadcast.

`interpreter_bits` has divisions, shifts and casts of bits, `interpreter_narrow` the conversions from and to MX floats,
`interpreter_math` the operations of math.
"""

import re
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from mx_dialect import interpreter_bits, interpreter_math, interpreter_narrow
from mx_dialect._mlir import arith, ir
from mx_dialect.element_dtypes import dtype_of
from mx_dialect.interpreter_narrow import unify
from mx_dialect.interpreter_values import PRECISIONS, Array, Blocks, Floats, Value, element_of, exact, rounded, times

Operation = Callable[..., Value]


class Undecided(Exception):
    """Why the result of an operation is not determined by what is known of its operands."""


def evaluate(op: Any, operands: list[Any]) -> Value | None:
    """Return the result of a scalar or elementwise operation, None if it is no operation that is known.

    Raises:
        Undecided: a comparison of floats that roundings may decide either way.
    """
    if "roundingmode" in op.attributes and op.attributes["roundingmode"].value != arith.RoundingMode.to_nearest_even:
        return None
    elements = [element_of(value.type) for value in op.operands]
    result = element_of(op.results[0].type) if op.results else ""
    if op.name in _CONVERSIONS:
        narrow = interpreter_narrow.convert(operands[0], elements[0], result)
        return _CONVERSIONS[op.name](operands[0], result) if narrow is None else narrow
    if op.name in _SCALING:
        return _SCALING[op.name](operands[0], elements[0], operands[1], elements[1], result)
    if op.name == "arith.select":
        return _select(operands[0], *unify(operands[1], operands[2], result))
    if any(map(_is_stored_only, elements)) and op.name != "arith.bitcast":
        return None
    if op.name in _COMPARISONS:
        return _COMPARISONS[op.name](op, *operands)
    if op.name in _OPERATIONS:
        return _OPERATIONS[op.name](*operands)
    found = interpreter_bits.evaluate(op.name, operands, result)
    return interpreter_math.evaluate(op, operands) if found is None else found


def _is_stored_only(element: str) -> bool:
    """Tell whether an element type is a float that nothing computes with, of MX or not."""
    return element not in PRECISIONS and re.match(r"b?f\d|tf\d", element) is not None


def _add(left: Floats, right: Floats) -> Floats:
    with np.errstate(all="ignore"):
        return rounded(left.values + right.values, left.error + right.error, left.element)


def _negate(value: Floats) -> Floats:
    return Floats(-value.values, value.error, value.element)


def _subtract(left: Floats, right: Floats) -> Floats:
    return _add(left, _negate(right))


def _divide(left: Floats, right: Floats) -> Floats:
    with np.errstate(all="ignore"):
        quotient = left.values / right.values
        least = np.abs(right.values) - right.error
        error = np.where(least > 0, (left.error + np.abs(quotient) * right.error) / least, np.inf)
        return rounded(quotient, error, left.element)


def _chosen(choose: Callable[..., Array]) -> Operation:
    """Return a maximum or minimum, which rounds nothing."""

    def operation(left: Floats, right: Floats) -> Floats:
        values = choose(left.values, right.values)
        return Floats(values, np.broadcast_to(np.maximum(left.error, right.error), values.shape), left.element)

    return operation


def _integers(function: Callable[..., Array]) -> Operation:
    """Return an operation on integers, which wrap."""

    def operation(left: Array, right: Array) -> Array:
        if left.dtype.kind == "b":
            # A bit is an integer of two's complement too: 0 or -1.
            return function(-left.astype(np.int8), -right.astype(np.int8)) & 1 == 1
        with np.errstate(over="ignore"):
            return np.asarray(function(left, right), left.dtype)

    return operation


def _select(condition: Array, left: Value, right: Value) -> Value:
    if isinstance(left, Blocks):
        return left if condition else right
    if isinstance(left, Floats) and isinstance(right, Floats):
        values = np.where(condition, left.values, right.values)
        return Floats(values, np.where(condition, left.error, right.error), left.element)
    return np.where(condition, cast(Array, left), cast(Array, right))


def _extend(value: Value, element: str) -> Value:
    if isinstance(value, Floats):
        return Floats(value.values, value.error, element)
    return exact(cast(Array, value), element)


def truncated(value: Floats, element: str) -> Value | None:
    """Return floats rounded to another type of at most their width, None to one that numpy has not."""
    if element not in PRECISIONS:
        return None
    if value.is_exact and value.element != "f64":
        with np.errstate(all="ignore"):
            return exact(value.stored().astype(PRECISIONS[element].dtype), element)
    return rounded(value.values, value.error, element)


def _float_of(unsigned: bool) -> Operation:
    def operation(value: Array, element: str) -> Floats:
        integers = value.view(f"uint{8 * value.dtype.itemsize}") if unsigned and value.dtype.kind == "i" else value
        doubles = integers.astype(np.float64)
        fits = np.array_equal(doubles.astype(PRECISIONS[element].dtype).astype(np.float64), doubles)
        small = np.array_equal(doubles.astype(np.int64), integers)
        return exact(doubles, element) if fits and small else rounded(doubles, np.zeros(doubles.shape), element)

    return operation


def _resized(unsigned: bool) -> Callable[[Array, str], Value | None]:
    """Return an extension or truncation of integers: of two's complement, or with zeros above."""

    def operation(value: Array, element: str) -> Value | None:
        dtype = dtype_of(element)
        if dtype is None:
            return None
        if value.dtype.kind == "b":
            return value.astype(dtype) if unsigned else -value.astype(dtype)
        if dtype.kind == "b":
            return value & 1 == 1
        return (value.view(f"uint{8 * value.dtype.itemsize}") if unsigned else value).astype(dtype)

    return operation


_INTEGER_TESTS = {
    arith.CmpIPredicate.eq: np.equal,
    arith.CmpIPredicate.ne: np.not_equal,
    arith.CmpIPredicate.slt: np.less,
    arith.CmpIPredicate.sle: np.less_equal,
    arith.CmpIPredicate.sgt: np.greater,
    arith.CmpIPredicate.sge: np.greater_equal,
}


def _unordered(left: Array, right: Array) -> Array:
    return np.isnan(left) | np.isnan(right)


def _apart(left: Array, right: Array) -> Array:
    return (left < right) | (left > right)


def _not(test: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda left, right: ~np.asarray(test(left, right))


_FLOAT_TESTS: dict[Any, Callable[[Array, Array], Array]] = {
    arith.CmpFPredicate.OEQ: np.equal,
    arith.CmpFPredicate.UNE: np.not_equal,
    arith.CmpFPredicate.OLT: np.less,
    arith.CmpFPredicate.OLE: np.less_equal,
    arith.CmpFPredicate.OGT: np.greater,
    arith.CmpFPredicate.OGE: np.greater_equal,
    arith.CmpFPredicate.UNO: _unordered,
    arith.CmpFPredicate.ORD: _not(_unordered),
    arith.CmpFPredicate.ONE: _apart,
    arith.CmpFPredicate.UEQ: _not(_apart),
    arith.CmpFPredicate.UGE: _not(np.less),
    arith.CmpFPredicate.UGT: _not(np.less_equal),
    arith.CmpFPredicate.ULE: _not(np.greater),
    arith.CmpFPredicate.ULT: _not(np.greater_equal),
}


_UNSIGNED_TESTS = {
    arith.CmpIPredicate.ult: np.less,
    arith.CmpIPredicate.ule: np.less_equal,
    arith.CmpIPredicate.ugt: np.greater,
    arith.CmpIPredicate.uge: np.greater_equal,
}


def _compare_integers(op: Any, left: Array, right: Array) -> Value | None:
    predicate = arith.CmpIPredicate(ir.IntegerAttr(op.attributes["predicate"]).value)
    if predicate in _INTEGER_TESTS:
        return _INTEGER_TESTS[predicate](left, right)
    unsigned = np.dtype(f"uint{8 * left.dtype.itemsize}")
    return _UNSIGNED_TESTS[predicate](left.view(unsigned), right.view(unsigned))


def _compare_floats(op: Any, left: Floats, right: Floats) -> Value | None:
    test = _FLOAT_TESTS.get(arith.CmpFPredicate(ir.IntegerAttr(op.attributes["predicate"]).value))
    if test is None:
        return None
    error = left.error + right.error
    with np.errstate(invalid="ignore"):
        apart = np.abs(left.values - right.values) > error
    if not np.all(apart | (error == 0)):
        raise Undecided("compares floats that lie closer to each other than their roundings")
    return test(left.values, right.values)


_COMPARISONS = {"arith.cmpi": _compare_integers, "arith.cmpf": _compare_floats}

_CONVERSIONS: dict[str, Callable[[Any, str], Value | None]] = {
    "arith.extf": _extend,
    "arith.truncf": truncated,
    "arith.convertf": truncated,
    "arith.sitofp": _float_of(unsigned=False),
    "arith.uitofp": _float_of(unsigned=True),
    "arith.extsi": _resized(unsigned=False),
    "arith.extui": _resized(unsigned=True),
    "arith.trunci": _resized(unsigned=False),
    "arith.index_cast": _resized(unsigned=False),
    "arith.index_castui": _resized(unsigned=True),
}

_SCALING: dict[str, Callable[..., Value | None]] = {
    "arith.scaling_extf": interpreter_narrow.extend_scaled,
    "arith.scaling_truncf": interpreter_narrow.truncate_scaled,
}

_OPERATIONS: dict[str, Operation] = {
    "arith.addf": _add,
    "arith.subf": _subtract,
    "arith.mulf": times,
    "arith.divf": _divide,
    "arith.negf": _negate,
    "arith.maximumf": _chosen(np.maximum),
    "arith.minimumf": _chosen(np.minimum),
    "arith.maxnumf": _chosen(np.fmax),
    "arith.minnumf": _chosen(np.fmin),
    "arith.addi": _integers(np.add),
    "arith.subi": _integers(np.subtract),
    "arith.muli": _integers(np.multiply),
    "arith.andi": _integers(np.bitwise_and),
    "arith.ori": _integers(np.bitwise_or),
    "arith.xori": _integers(np.bitwise_xor),
    "arith.maxsi": _integers(np.maximum),
    "arith.minsi": _integers(np.minimum),
}
