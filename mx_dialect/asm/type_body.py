"""The body of a custom `!mx.tensor<...>`, from text to its parameters."""

import re
from collections.abc import Mapping

from mx_dialect.passes import nearest
from mx_dialect.tensor_spec import TensorSpec, split_shape

_SHAPE = re.compile(r"\s*(?:(?:\d+|\?)\s*x\s*)*!?[A-Za-z_$][\w$.\-]*\s*", re.ASCII)
_NAME = re.compile(r"!?[A-Za-z_$][\w$.\-]*", re.ASCII)
_STORAGE = re.compile(
    r"\s*tensor\s*<([^<>]*)>\s*,\s*(-?\d+)\s*:\s*i64\s*,\s*([A-Za-z]\w*)\s*,\s*(-?\d+)\s*:\s*i64\s*", re.ASCII
)
_KEYS = ("block_size", "scale_type", "axis")
_INT64_DIGITS = len(str(2**63 - 1))


class TypeSyntaxError(ValueError):
    """The text is not a custom mx tensor type; the message says why."""


def parse_storage(body: str) -> TensorSpec | None:
    """Return the parameters of a type in storage spelling (as the bindings print it), None for any other text."""
    match = _STORAGE.fullmatch(body)
    if match is None:
        return None
    extents, name = shape(match[1])
    return TensorSpec(extents, name, integer("block_size", match[2]), match[3], integer("axis", match[4]))


def is_storage(body: str) -> bool:
    """Tell whether a body is meant as storage spelling: it starts with a type instead of a shape."""
    return re.match(r"\s*(?:tensor\s*<|!)", body) is not None


def parse_custom(body: str, aliases: Mapping[str, str]) -> TensorSpec:
    """Return the parameters between the brackets of a custom type; `aliases` maps `!name` to what it stands for.

    Raises:
        TypeSyntaxError: the text does not follow `SHAPExELEMENT, block_size = N, scale_type = TYPE[, axis = N]`.
    """
    first, *rest = body.split(",")
    extents, name = shape(first)
    given: dict[str, str] = {}
    for part in rest:
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not key:
            raise TypeSyntaxError(f"expected one of {', '.join(_KEYS)} after ','")
        if key not in _KEYS:
            hint = nearest(key, list(_KEYS)) or f"; expected one of {', '.join(_KEYS)}"
            raise TypeSyntaxError(f"unknown parameter '{key}'{hint}")
        if key in given:
            raise TypeSyntaxError(f"parameter '{key}' is given twice")
        if not equals or not value:
            raise TypeSyntaxError(f"expected '{key} = ' and its value")
        given[key] = value
    for key in ("block_size", "scale_type"):
        if key not in given:
            raise TypeSyntaxError(f"missing parameter '{key}'; write for example '{_EXAMPLES[key]}'")
    if _NAME.fullmatch(given["scale_type"]) is None:
        raise TypeSyntaxError(f"scale_type must be a type such as f8E8M0FNU, but is '{given['scale_type']}'")
    axis = given.get("axis")
    if axis is not None and axis.startswith("-"):
        raise TypeSyntaxError(f"axis must not be negative, but is {axis}; count from the front")
    return TensorSpec(
        extents,
        element(name, aliases),
        integer("block_size", given["block_size"]),
        element(given["scale_type"], aliases),
        len(extents) - 1 if axis is None else integer("axis", axis),
    )


_EXAMPLES = {"block_size": "block_size = 32", "scale_type": "scale_type = f8E8M0FNU"}


def shape(text: str) -> tuple[tuple[int | None, ...], str]:
    """Return the extents and the name of the element type in `32x64xf8E4M3FN`.

    Raises:
        TypeSyntaxError: the text is something else.
    """
    if _SHAPE.fullmatch(text) is None:
        raise TypeSyntaxError(f"expected shape and element type such as 32x64xf8E4M3FN, but found '{text.strip()}'")
    for long in re.findall(r"\d{19,}", text):
        integer("extent", long)
    return split_shape("".join(text.split()))


def integer(what: str, text: str) -> int:
    """Return the number that a text is, called `what` in errors.

    Raises:
        TypeSyntaxError: it is none, or does not fit a signed 64-bit integer.
    """
    if re.fullmatch(r"-?\d+", text, re.ASCII) is None:
        raise TypeSyntaxError(f"{what} must be a number, but is '{text}'")
    # Longer text would make int() slow or refuse, so it is judged by its length first.
    if len(text.lstrip("-0")) > _INT64_DIGITS or int(text) > 2**63 - 1:
        raise TypeSyntaxError(f"{what} does not fit a signed 64-bit integer: {_brief(text)}")
    return int(text)


def _brief(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}... ({len(text)} digits)"


def element(name: str, aliases: Mapping[str, str]) -> str:
    """Return the type that a name or an alias stands for.

    Raises:
        TypeSyntaxError: the alias is not known.
    """
    resolved = aliases.get(name, name)
    if resolved.startswith("!"):
        raise TypeSyntaxError(f"'{name}' is not an alias of an element or scale type defined above")
    return resolved
