"""What arith.constant holds, for `interpreter`: numbers, dense constants, and dense resources."""

import math
import re
from typing import Any

import numpy as np

from mx_dialect._mlir import ir
from mx_dialect.dense_resources import resource_bytes, resource_name
from mx_dialect.interpreter_tensor import Unsupported
from mx_dialect.interpreter_values import PRECISIONS, Array, Value, element_of, exact
from mx_dialect.runtime.memref import dtype_of


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
    if resource_name(attribute) is not None:
        entries = _of_resource(attribute, dtype)
    elif isinstance(attribute, ir.DenseElementsAttr):
        entries = _of_dense(attribute, dtype).reshape(list(type_.shape))
    else:
        entries = np.array(attribute.value, dtype)
    return exact(entries, element) if element in PRECISIONS else entries


def _of_resource(attribute: Any, dtype: np.dtype[Any]) -> Array:
    shape = list(attribute.type.shape)
    try:
        data = resource_bytes(attribute, math.prod(shape) * dtype.itemsize)
    except LookupError as lack:
        raise Unsupported(f"holds data that cannot be read here: {lack.args[0]}") from None
    return np.frombuffer(data, dtype.newbyteorder("<") if dtype.kind in "iuf" else dtype).reshape(shape)


def _of_dense(attribute: Any, dtype: np.dtype[Any]) -> Array:
    """Return the entries of a dense constant; the bindings give no buffer for floats that numpy has not."""
    if dtype.kind in "biuf":
        return np.array(attribute).astype(dtype)
    shape = attribute.type.shape
    if attribute.is_splat:
        return np.full(shape, attribute.get_splat_value().value, np.float64).astype(dtype)
    text = str(attribute)
    if (raw := re.match(r'dense<"0x([0-9A-Fa-f]+)"', text)) is not None:
        return np.frombuffer(bytes.fromhex(raw[1]), dtype)
    bits = np.dtype(f"u{dtype.itemsize}")
    listed = re.findall(r"0x[0-9A-Fa-f]+|[-+0-9.eE]+", text.rpartition(" : ")[0].removeprefix("dense<"))
    entries = [
        np.array(int(item, 16), bits).view(dtype) if item.startswith("0x") else np.array(float(item)).astype(dtype)
        for item in listed
    ]
    return np.array(entries, dtype)
