"""The body of a custom `!mx.tile<...>`, from text to its parameters."""

import re
from collections.abc import Mapping

from mx_dialect.asm.type_body import TypeSyntaxError, element, integer, shape
from mx_dialect.passes import nearest
from mx_dialect.tile_spec import MEMORY_SPACES, STORAGE, UNDECIDED, TileSpec, of_match

_EXTENTS = re.compile(r"(?:\d+|\?)(?:\s*x\s*(?:\d+|\?))*", re.ASCII)


def parse_storage(body: str) -> TileSpec | None:
    """Return the parameters of a type in storage spelling (as the bindings print it), None for any other text."""
    match = STORAGE.fullmatch(f"!mx.tile<{body}>")
    if match is None:
        return None
    # What the bindings could not have printed is an error of its own.
    shape(match[1])
    return of_match(match)


def parse_custom(body: str, aliases: Mapping[str, str]) -> TileSpec:
    """Return the parameters between the brackets of a custom type; `aliases` maps `!name` to what it stands for.

    Raises:
        TypeSyntaxError: the text does not follow `ROWSxCOLUMNSxELEMENT[, SPACE][, valid = ROWSxCOLUMNS]`.
    """
    first, *rest = body.split(",")
    extents, name = shape(first)
    spaces: list[str] = []
    valids: list[tuple[int | None, ...]] = []
    for part in rest:
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if equals:
            valids.append(_valid(key, value))
        else:
            spaces.append(_space(key))
    for given, what in ((spaces, "the memory space"), (valids, "parameter 'valid'")):
        if len(given) > 1:
            raise TypeSyntaxError(f"{what} is given twice")
    space, valid = (*spaces, UNDECIDED)[0], (*valids, extents)[0]
    return TileSpec(extents, element(name, aliases), space, valid)


def _space(text: str) -> str:
    if not text:
        raise TypeSyntaxError("expected a memory space or 'valid = 8x64' after ','")
    if text not in MEMORY_SPACES:
        hint = nearest(text, list(MEMORY_SPACES)) or f"; expected one of {', '.join(MEMORY_SPACES)}"
        raise TypeSyntaxError(f"'{text}' is not a memory space{hint}")
    return text


def _valid(key: str, value: str) -> tuple[int | None, ...]:
    if key != "valid":
        hint = nearest(key, ["valid"]) or "; a tile has 'valid = 8x64'"
        raise TypeSyntaxError(f"unknown parameter '{key}'{hint}")
    return _extents(value)


def _extents(text: str) -> tuple[int | None, ...]:
    if _EXTENTS.fullmatch(text) is None:
        raise TypeSyntaxError(f"valid must be extents such as 8x64, but is '{text}'")
    return tuple(None if e == "?" else integer("valid", e) for e in re.split(r"\s*x\s*", text))
