"""The operations of arith on integers that are not rings, and on the bits of numbers, for `interpreter`.

Where arith says poison (a shift by the width, a float that fits no integer) the value is one of many; a program that
uses it is wrong, and the check may say so. A division by zero ends a program, so it is refused.
"""

from collections.abc import Callable
from typing import cast

import numpy as np

from mx_dialect.element_dtypes import dtype_of
from mx_dialect.interpreter_tensor import Unsupported
from mx_dialect.interpreter_values import PRECISIONS, Array, Floats, Value, exact

Integers = Callable[[Array, Array], Array]


def evaluate(name: str, operands: list[Value], element: str) -> Value | None:
    """Return the result of an operation whose element type is given, None if it is none of these.

    Raises:
        Unsupported: it divides by zero, or needs the very bits of floats that roundings may change.
    """
    if name in _INTEGERS:
        left, right = (cast(Array, value) for value in operands)
        return None if left.dtype.kind == "b" else _INTEGERS[name](left, right)
    if name in ("arith.fptosi", "arith.fptoui"):
        return _integer_of(cast(Floats, operands[0]), element, unsigned=name.endswith("ui"))
    return _bits(operands[0], element) if name == "arith.bitcast" else None


def _unsigned(array: Array) -> Array:
    return array.view(f"u{array.dtype.itemsize}")


def _as_unsigned(function: Integers) -> Integers:
    """Return an operation that takes integers as unsigned ones."""
    return lambda left, right: function(_unsigned(left), _unsigned(right)).view(left.dtype)


def _divided(function: Integers) -> Integers:
    def operation(left: Array, right: Array) -> Array:
        if not np.all(right):
            raise Unsupported("divides by zero")
        with np.errstate(over="ignore"):
            return np.asarray(function(left, right), left.dtype)

    return operation


def _toward_zero(left: Array, right: Array) -> Array:
    return (left - np.fmod(left, right)) // right


def _upward(left: Array, right: Array) -> Array:
    return left // right + (left % right != 0)


def _shifted(function: Integers) -> Integers:
    def operation(left: Array, right: Array) -> Array:
        # numpy leaves a shift by the width to the processor.
        fits = _unsigned(right) < 8 * left.dtype.itemsize
        return np.asarray(np.where(fits, function(left, np.where(fits, right, 0)), 0), left.dtype)

    return operation


_INTEGERS: dict[str, Integers] = {
    "arith.divsi": _divided(_toward_zero),
    "arith.remsi": _divided(np.fmod),
    "arith.floordivsi": _divided(np.floor_divide),
    "arith.ceildivsi": _divided(_upward),
    "arith.divui": _as_unsigned(_divided(np.floor_divide)),
    "arith.remui": _as_unsigned(_divided(np.remainder)),
    "arith.ceildivui": _as_unsigned(_divided(_upward)),
    "arith.shli": _shifted(np.left_shift),
    "arith.shrsi": _shifted(np.right_shift),
    "arith.shrui": _as_unsigned(_shifted(np.right_shift)),
    "arith.minui": _as_unsigned(np.minimum),
    "arith.maxui": _as_unsigned(np.maximum),
}


def _integer_of(value: Floats, element: str, unsigned: bool) -> Array | None:
    dtype = dtype_of(element)
    if dtype is None or dtype.kind == "b":
        return None
    target = np.dtype(f"u{dtype.itemsize}") if unsigned else dtype
    least, most = (np.trunc(value.values + side * value.error) for side in (-1, 1))
    if not np.array_equal(least, most, equal_nan=True):
        raise Unsupported("cuts off floats that roundings may take past an integer")
    # The largest integer of 64 bits is no float64; what is below its successor fits.
    fits = (most > -1 if unsigned else most >= float(np.iinfo(target).min)) & (
        most < 2.0 ** np.iinfo(target).bits / (1 if unsigned else 2)
    )
    return np.where(fits, most, 0).astype(target).view(dtype)


def _bits(value: Value, element: str) -> Value | None:
    dtype = dtype_of(element)
    if dtype is None or dtype.kind == "b":
        return None
    if isinstance(value, Floats):
        if not value.is_exact or value.element not in PRECISIONS:
            raise Unsupported("takes the bits of floats that roundings may change")
        # All NaNs are one here, and a program may tell them apart.
        if np.isnan(value.values).any():
            raise Unsupported("takes the bits of a NaN")
        value = value.stored()
    array = cast(Array, value)
    if array.dtype.kind == "b" or array.dtype.itemsize != dtype.itemsize:
        return None
    changed = array.view(dtype)
    return exact(changed, element) if element in PRECISIONS else changed
