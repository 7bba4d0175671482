"""From what MLIR prints to custom assembly.

    %0 = "mx.fold_scale"(%x, %f) : (!mx.tensor<tensor<32x64xi8>, 32 : i64, f8E8M0FNU, 1 : i64>, f32) -> f32

becomes

    %0 = mx.fold_scale %x, %f : <32x64xi8, block_size = 32, scale_type = f8E8M0FNU>, f32 -> f32

Strings and comments stay as they are. An operation that has no custom form (regions, successors, properties, values
that the printer could not name) stays generic.
"""

import re
from functools import lru_cache

from mx_dialect.asm_lexer import COMMENT, STRING, Unbalanced, closing, elements, token_at, type_end
from mx_dialect.tensor_spec import spell_types

_RESPELLED = re.compile(rf"{STRING}|{COMMENT}|!mx\.tensor<tensor<[^<>]*>[^<>]*>", re.ASCII)
# MLIR prints an operation at the start of a line, where a string or a comment that looks like one cannot be.
_OPERATION = re.compile(
    r"""(?P<results>[ \t]*(?:%[^"=\n]*\ =\ )?)
    "(?P<name>mx\.[\w$.]+)"
    \((?P<operands>(?:%[\w$.\-]+(?:\#\d+)?(?:,\ )?)*)\)
    (?P<attributes>\ (?=\{))?""",
    re.ASCII | re.VERBOSE,
)
_TENSOR = "!mx.tensor"


def to_custom(text: str) -> str:
    """Return MLIR's printout with mx types in custom spelling and mx operations in custom form."""
    if "mx." not in text:
        return text
    text = _RESPELLED.sub(lambda m: _type(m[0]) if m[0][0] == "!" else m[0], text)
    return "\n".join(_operation(line) if '"mx.' in line else line for line in text.split("\n"))


@lru_cache(maxsize=1024)
def _type(storage: str) -> str:
    return spell_types(storage)


def _operation(line: str) -> str:
    """Return a line with the generic operation it starts with, if any, in custom form."""
    match = _OPERATION.match(line)
    if match is None:
        return line
    position = match.end()
    attributes = ""
    try:
        if match["attributes"]:
            end = closing(line, position)
            attributes = f" {line[position:end]}"
            position = end
        if not line.startswith(" : (", position):
            return line
        types, end = _signature(line, position + 3)
    except Unbalanced:
        return line
    operands = f" {match['operands']}" if match["operands"] else ""
    return f"{match['results']}{match['name']}{operands}{attributes} :{types}{line[end:]}"


def _signature(line: str, opened: int) -> tuple[str, int]:
    """Return the custom spelling of the function type that starts at `opened`, and its end.

    Raises:
        Unbalanced: it is not a function type.
    """
    operands = ", ".join(_short(line[start:end]) for start, end in elements(line, opened))
    arrow = token_at(line, closing(line, opened))
    if arrow.text != "->":
        raise Unbalanced("(", opened)
    token = token_at(line, arrow.end)
    if token.text == "(":
        listed = [_short(line[start:end]) for start, end in elements(line, token.start)]
        end = closing(line, token.start)
        results = f"({', '.join(listed)})" if listed else ""
    else:
        end = type_end(line, token)
        if end is None:
            raise Unbalanced("(", opened)
        results = _short(line[token.start : end])
    if not operands and not results:
        return " ()", end
    spelled = f" {operands}" if operands else ""
    return f"{spelled} -> {results}" if results else spelled, end


def _short(spelled: str) -> str:
    """Return a type as an mx operation's type list spells it."""
    return spelled.removeprefix(_TENSOR) if spelled.startswith(f"{_TENSOR}<") else spelled
