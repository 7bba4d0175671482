"""What arith.constant holds, for `interpreter`: numbers, dense constants, and dense resources."""

from typing import Any

import numpy as np

from mx_dialect._mlir import ir
from mx_dialect.element_dtypes import dtype_of
from mx_dialect.elements import entries, resource_name
from mx_dialect.interpreter_tensor import Unsupported
from mx_dialect.interpreter_values import PRECISIONS, Array, Value, element_of, exact


def evaluate(op: Any, operands: list[Value]) -> Value | None:
    """Return the value of an arith.constant, None for another operation.

    Raises:
        Unsupported: it is of a type that numpy has not, or its data are not there.
    """
    if op.name != "arith.constant":
        return None
    attribute, type_ = op.attributes["value"], op.results[0].type
    element = element_of(type_)
    dtype = dtype_of(element)
    if dtype is None:
        raise Unsupported("holds data that cannot be read here")
    if resource_name(attribute) is None and not isinstance(attribute, ir.DenseElementsAttr):
        array = np.array(attribute.value, dtype)
    else:
        array = _entries(attribute, dtype)
    return exact(array, element) if element in PRECISIONS else array


def _entries(attribute: Any, dtype: np.dtype[Any]) -> Array:
    try:
        return entries(attribute, dtype).astype(dtype)
    except LookupError as lack:
        raise Unsupported(f"holds data that cannot be read here: {lack.args[0]}") from None
