"""The numbers in constants: dense elements and dense resources of IR, as numpy arrays.

The bindings give a buffer for the element types that numpy has itself. Other floats of whole bytes become integers
first. All else is in MLIR's text only: as hexadecimal for large constants and for resources, as a list of numbers for
small ones.
"""

import math
import re
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from mx_dialect._mlir import arith, func, ir, passmanager
from mx_dialect.diagnostics import unescape

Array: TypeAlias = npt.NDArray[Any]

_RESOURCE = re.compile(r'dense_resource<(?:"((?:[^"\\]|\\.)*)"|([^">]*))>')

# Where a blob begins in the text of an operation; its first four bytes are its alignment.
_BLOB = ': "0x'
_ALIGNMENT_DIGITS = 8
_NUMBER = re.compile(r"0x[0-9A-Fa-f]+|-?\d+\.\d+(?:[eE][+-]?\d+)?")


def resource_name(attribute: Any) -> str | None:
    """Return the name of a dense resource, which the bindings give as a plain attribute; None for anything else."""
    if isinstance(attribute, ir.DenseElementsAttr):
        return None
    match = _RESOURCE.match(str(attribute))
    return match and unescape(match[1] or match[2])


def entries(attribute: Any, dtype: np.dtype[Any]) -> Array:
    """Return the numbers of dense elements or a dense resource, bit for bit, in the shape that their type has.

    `dtype` is the element type's, of one byte at least. The array may be a view of the attribute's own memory.

    Raises:
        LookupError: a resource without data, or with more or less than its type says.
    """
    shape = tuple(attribute.type.shape)
    if resource_name(attribute) is not None:
        return np.frombuffer(_blob(attribute, math.prod(shape) * dtype.itemsize), dtype).reshape(shape)
    # Of numpy's own: some of ml_dtypes claim to be floats as well.
    if dtype.isbuiltin == 1:
        return np.asarray(attribute)
    if isinstance(attribute.type, ir.RankedTensorType) and attribute.type.element_type.width == 8 * dtype.itemsize:
        return np.asarray(_as_integers(attribute)).view(dtype)
    text = str(attribute)
    if '"0x' in text:
        data = np.frombuffer(bytes.fromhex(text[text.index('"0x') + 3 : text.rindex('"')]), dtype)
    else:
        data = np.array([_number(item, dtype) for item in _NUMBER.findall(text.rpartition(":")[0])], dtype)
    return np.broadcast_to(data, shape) if data.size == 1 else data.reshape(shape)


def _as_integers(attribute: Any) -> Any:
    """Return dense elements as integers of as many bits: what MLIR folds a bitcast of them to."""
    width = attribute.type.element_type.width
    with ir.Location.unknown(attribute.context):
        integer = ir.IntegerType.get_signless(width)
        type_ = ir.RankedTensorType.get(attribute.type.shape, integer, attribute.type.encoding)
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            function = func.FuncOp("bits", ir.FunctionType.get([], [type_]))
        with ir.InsertionPoint(function.add_entry_block()):
            constant = arith.ConstantOp(attribute.type, attribute)
            func.ReturnOp([arith.bitcast(type_, constant.result)])
        passmanager.PassManager.parse("any(func.func(canonicalize))").run(module.operation)
        return function.entry_block.operations[0].attributes["value"]


def _number(text: str, dtype: np.dtype[Any]) -> Any:
    if text.startswith("0x"):
        return np.array(int(text, 16), f"u{dtype.itemsize}").view(dtype)[()]
    return dtype.type(float(text))


def _blob(attribute: Any, size: int) -> bytes:
    """Return the bytes of a dense resource, which the bindings give as text only."""
    # Only an operation that is in no other is printed with its resources.
    with ir.Location.unknown(attribute.context):
        alone = ir.Operation.create(
            "arith.constant", results=[attribute.type], attributes={"value": attribute}, ip=False
        )
    text = str(alone)
    start = text.rfind(_BLOB)
    if start < 0:
        raise LookupError("its resource has no data")
    start += len(_BLOB) + _ALIGNMENT_DIGITS
    data = bytes.fromhex(text[start : text.index('"', start)])
    if len(data) != size:
        raise LookupError(f"its resource has {len(data)} bytes, not {size}")
    return data
