"""Rules that verifiers of tile operations share."""

from collections.abc import Iterable, Sequence
from typing import Any

from mx_dialect._mlir import ir
from mx_dialect.layouts.a5 import GROUP_SIZE
from mx_dialect.tile_spec import UNDECIDED, TileSpec, spell_extents
from mx_dialect.tile_types import TileType
from mx_dialect.verification import InvalidOperation, require


def tile(value: Any, role: str) -> TileSpec:
    """Return the type of a value that must be a valid tile, as plain values."""
    require(isinstance(value.type, TileType), f"{role} must be a tile, but is '{value.type}'")
    error = value.type.error()
    require(error is None, f"{role} has invalid type '{value.type}': {error}")
    return value.type.spec


def require_element(spec: TileSpec, role: str, *elements: str) -> None:
    require(spec.element in elements, f"{role} must be a tile of {' or '.join(elements)}, but is one of {spec.element}")


def require_space(spec: TileSpec, role: str, *spaces: str) -> None:
    """Require that a tile lies in one of these memory spaces."""
    named = " or ".join(space for space in spaces if space != UNDECIDED)
    require(spec.space in spaces, f"{role} must lie in {named}, but is '{spec.custom()}'")


def require_one_of(attribute: Any, role: str, names: Iterable[str]) -> None:
    """Require that an attribute is one of these strings."""
    known = isinstance(attribute, ir.StringAttr) and attribute.value in names
    spelled = " or ".join(f'"{name}"' for name in names)
    require(known, f"{role} must be {spelled}, but is {attribute}")


def require_shape(found: Sequence[int | None], expected: Sequence[int | None], role: str, what: str = "shape") -> None:
    """Require that the static extents of two shapes are equal."""
    fits = fit(found, expected)
    require(fits, f"{role} must have {what} {spell_extents(expected)}, but has {spell_extents(found)}")


def fit(found: Sequence[int | None], expected: Sequence[int | None]) -> bool:
    """Tell whether two shapes can be equal when the program runs: their static extents are."""
    return len(found) == len(expected) and all(
        a is None or b is None or a == b for a, b in zip(found, expected, strict=True)
    )


def same_extents(spec: TileSpec, other: TileSpec, role: str) -> None:
    """Require that two tiles have the same shape and the same valid shape."""
    require_shape(other.shape, spec.shape, role)
    require_shape(other.valid, spec.valid, role, "valid shape")


def groups(extent: int | None) -> int | None:
    """Return how many scales cover an extent along K: the last may serve fewer than 32 elements."""
    return None if extent is None else -(-extent // GROUP_SIZE)


def numbers(op: Any, name: str, rank: int) -> list[int | None]:
    """Return a list of numbers and index values of an operation, None where an operand gives the number."""
    attribute = op.operation.attributes[f"static_{name}"]
    if not isinstance(attribute, ir.DenseI64ArrayAttr):
        raise InvalidOperation(f"static_{name} must be an array of i64, but is {attribute}")
    found = list(attribute)
    require(len(found) == rank, f"{name} must have {rank} entries, but the list has {len(found)}")
    dynamic = ir.ShapedType.get_dynamic_size()
    known = [None if n == dynamic else n for n in found]
    negative = [n for n in known if n is not None and n < 0]
    require(not negative, f"{name} must be 0 or more, but there is {min(negative, default=0)}")
    values = list(getattr(op, name))
    count = known.count(None)
    require(len(values) == count, f"has {len(values)} operands for {count} dynamic entries of {name}")
    wrong = next((v.type for v in values if not isinstance(v.type, ir.IndexType)), None)
    require(wrong is None, f"{name} must be index values, but there is '{wrong}'")
    return known
