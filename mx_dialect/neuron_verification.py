"""Rules that verifiers of operations on x4 containers and their scales share."""

from collections.abc import Callable, Sequence
from typing import Any

from mx_dialect._mlir import ir
from mx_dialect.diagnostics import MxError
from mx_dialect.layouts.neuron_scales import OFFSETS, PARTITIONS, PARTITIONS_PER_SCALE, QUADRANT, scale_partition
from mx_dialect.near_miss import nearest
from mx_dialect.neuron_types import X4Type
from mx_dialect.verification import InvalidOperation, agree, require

SCALE_ELEMENTS = ("ui8", "i8")
CARRIERS = {"ui16": 16, "i16": 16, "ui32": 32, "i32": 32}
"""The integers that carry containers where no type of them exists, and their bits."""
DGE_MODES = ("hwdge", "swdge")
OOB_MODES = ("error", "skip")


# Types of values


def ranked(shape: Sequence[int], element: Any) -> Any:
    """Return a ranked tensor type, also where there is no current context."""
    return ir.RankedTensorType.get(shape, element, loc=ir.Location.unknown(element.context))


def require_type(value: Any, role: str, shape: Sequence[int], element: Any) -> None:
    """Require a value to be a tensor of this type."""
    expected = ranked(shape, element)
    require(value.type == expected, f"{role} must be '{expected}', but is '{value.type}'")


def plain_tensor(value: Any, role: str, rank: int | None = None) -> Any:
    """Return the type of a value that must be a ranked tensor without encoding, of this rank if one is given."""
    type_ = value.type
    is_plain = isinstance(type_, ir.RankedTensorType) and type_.encoding is None
    require(is_plain, f"{role} must be a ranked tensor without encoding, but is '{type_}'")
    require(rank is None or type_.rank == rank, f"{role} must have rank {rank}, but is '{type_}'")
    return type_


def static_shape(type_: Any, role: str, first: int = 0) -> list[int]:
    """Return the shape of a tensor whose extents, from axis `first` on, must be static."""
    shape = list(type_.shape)
    dynamic = any(type_.is_dynamic_dim(axis) for axis in range(first, type_.rank))
    where = f" but for axis {first - 1}" if first else ""
    require(not dynamic, f"{role} must have static extents{where}, but is '{type_}'")
    return shape


def container_type(type_: Any, role: str) -> X4Type:
    """Return the element type of a tensor that must hold x4 containers."""
    element = type_.element_type
    require(isinstance(element, X4Type), f"{role} must hold x4 containers, but is '{type_}'")
    error = element.error()
    require(error is None, f"{role} has invalid type '{type_}': {error}")
    return element


def require_shape(type_: Any, role: str, shape: Sequence[int], first: int = 0) -> None:
    """Require a shape; extents before axis `first` may be dynamic on either side."""
    found = list(type_.shape)
    fits = found[first:] == list(shape)[first:] and all(map(agree, found[:first], shape[:first]))
    dynamic = ir.ShapedType.get_dynamic_size()
    spelled = "x".join("?" if extent == dynamic else str(extent) for extent in shape)
    require(fits, f"{role} must have shape {spelled}, but is '{type_}'")


def containers(value: Any, role: str, rank: int | None = None) -> Any:
    """Return the type of a value that must be a tensor of x4 containers."""
    type_ = plain_tensor(value, role, rank)
    container_type(type_, role)
    return type_


def carried_width(type_: Any, role: str) -> int:
    """Return the bits of an entry of a tensor of x4 containers or of the integers that carry them."""
    if isinstance(type_.element_type, X4Type):
        return container_type(type_, role).width
    width = CARRIERS.get(str(type_.element_type))
    if width is None:
        raise InvalidOperation(f"{role} must hold x4 containers or {', '.join(CARRIERS)}, but is '{type_}'")
    return width


def require_carried(weights: Any, loaded: Any) -> None:
    """Require weights that are the loaded containers, or integers of the width that carries them."""
    widths = carried_width(weights, "weights"), carried_width(loaded, "loaded")
    require(
        widths[0] == widths[1],
        f"weights '{weights}' have entries of {widths[0]} bits, but the containers that are loaded, '{loaded}', have"
        f" {widths[1]}",
    )
    require(
        not isinstance(weights.element_type, X4Type) or weights.element_type == loaded.element_type,
        f"weights '{weights}' hold containers of another type than '{loaded}'",
    )


def scale_bytes(value: Any, role: str, rank: int | None = None) -> Any:
    """Return the type of a value that must be a tensor of f8E8M0FNU codes."""
    type_ = plain_tensor(value, role, rank)
    is_bytes = str(type_.element_type) in SCALE_ELEMENTS
    require(is_bytes, f"{role} must be scale codes, a tensor of {' or '.join(SCALE_ELEMENTS)}, but is '{type_}'")
    return type_


def index_value(value: Any, role: str) -> None:
    require(isinstance(value.type, ir.IndexType), f"{role} must be an index, but is '{value.type}'")


def require_partitions(partitions: int, role: str) -> None:
    """Require a number of partitions that whole scales cover."""
    fits = 0 < partitions <= PARTITIONS and partitions % PARTITIONS_PER_SCALE == 0
    rule = f"a positive multiple of {PARTITIONS_PER_SCALE}, at most {PARTITIONS}"
    require(fits, f"the partitions of {role}, axis 0, must be {rule}, but there are {partitions}")


def require_scale_tile(value: Any, role: str, partitions: int, columns: int, offset: int) -> None:
    """Require a tile that holds the scales of containers [partitions, columns]: dense, or in quadrants."""
    type_ = scale_bytes(value, role, 2)
    rows, found = static_shape(type_, role)
    require(found == columns, f"{role} '{type_}' must have the {columns} columns of its containers")
    dense = partitions // PARTITIONS_PER_SCALE
    if partitions <= QUADRANT and rows == dense:
        require(offset == 0, f"{role} '{type_}' is dense and has no place at partition offset {offset}")
        return
    alternative = f"{dense}, or " if partitions <= QUADRANT else ""
    require(
        partitions <= rows <= PARTITIONS and scale_partition(dense - 1, offset) < rows,
        f"{role} of {partitions} partitions must have {alternative}from {partitions} to {PARTITIONS} partitions in"
        f" quadrants, its last row at partition {scale_partition(dense - 1, offset)}, but is '{type_}'",
    )


# Attributes


def word(op: Any, name: str, choices: Sequence[str]) -> str:
    """Return a string attribute that must be one of `choices`."""
    attribute = op.operation.attributes[name]
    if isinstance(attribute, ir.StringAttr) and attribute.value in choices:
        return attribute.value
    hint = nearest(attribute.value, choices) if isinstance(attribute, ir.StringAttr) else ""
    raise InvalidOperation(f"{name} must be one of {', '.join(choices)}, but is {attribute}{hint}")


def optional_word(op: Any, name: str, choices: Sequence[str]) -> None:
    """Require a string attribute, where there is one, to be one of `choices`."""
    if name in op.operation.attributes:
        word(op, name, choices)


def number(op: Any, name: str, choices: Sequence[int], default: int | None = None) -> int:
    """Return an i64 attribute that must be one of `choices`, or the default where there is none."""
    attributes = op.operation.attributes
    if default is not None and name not in attributes:
        return default
    attribute = attributes[name]
    is_number = isinstance(attribute, ir.IntegerAttr) and str(attribute.type) == "i64"
    if is_number and attribute.value in choices:
        return attribute.value
    is_range = isinstance(choices, range)
    spelled = f"from {choices[0]} to {choices[-1]}" if is_range else f"one of {', '.join(map(str, choices))}"
    raise InvalidOperation(f"{name} must be {spelled}, but is {attribute}")


def partition_offset(op: Any, name: str) -> int:
    """Return where in its quadrants a scale tensor lies."""
    return number(op, name, OFFSETS, default=0)


def unit(op: Any, name: str) -> bool:
    """Tell whether a unit attribute is there."""
    attributes = op.operation.attributes
    if name not in attributes:
        return False
    require(isinstance(attributes[name], ir.UnitAttr), f"{name} is a unit attribute: it is there or it is not")
    return True


def follow(rule: Callable[..., object], *values: Any) -> None:
    """Require what a layout requires of these numbers."""
    try:
        rule(*values)
    except MxError as error:
        raise InvalidOperation(str(error)) from None
