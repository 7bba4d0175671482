"""From what MLIR prints to custom assembly.

    %0 = "mx.fold_scale"(%x, %f) : (!mx.tensor<tensor<32x64xi8>, 32 : i64, f8E8M0FNU, 1 : i64>, f32) -> f32

becomes

    %0 = mx.fold_scale %x, %f : <32x64xi8, block_size = 32, scale_type = f8E8M0FNU>, f32 -> f32

Strings and comments stay as they are. An operation that has no custom form (regions, successors, properties, values
that the printer could not name) stays generic.
"""

import re
from functools import lru_cache

from mx_dialect.asm import dictionary, index_lists, operand_groups
from mx_dialect.asm.lexer import COMMENT, STRING, Unbalanced, closing, elements, token_at, type_end
from mx_dialect.asm.table import Arity, operations_with_forms
from mx_dialect.type_spelling import STORAGE, spell_types

_RESPELLED = re.compile(rf"(?:{STORAGE.pattern})|{STRING}|{COMMENT}", re.ASCII)
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
    if match["attributes"]:
        try:
            end = closing(line, position)
        except Unbalanced:
            return line
        attributes = f" {line[position:end]}"
        position = end
    if not line.startswith(" : (", position):
        return line
    tail = line[position + 3 :]
    # Locations differ from line to line, signatures seldom do.
    cut = tail.rfind(" loc(")
    location = tail[cut:] if cut >= 0 else ""
    operands = match["operands"]
    arity = operations_with_forms().get(match["name"])
    if arity is not None:
        custom = _operands(operands, match["results"], attributes.strip(), arity)
        if custom is None:
            return line
        operands, attributes = custom
    types = _signature(tail.removesuffix(location), arity.operands if arity is not None and arity.lists else None)
    if types is None:
        return line
    operands = f" {operands}" if operands else ""
    return f"{match['results']}{match['name']}{operands}{attributes} :{types}{location}"


def _operands(operands: str, results: str, attributes: str, arity: Arity) -> tuple[str, str] | None:
    """Return operands and attributes of generic form with index lists or groups, None if they do not fit."""
    entries = dictionary.entries(attributes or "{}")
    if entries is None:
        return None
    values = operands.split(", ") if operands else []
    if arity.lists:
        custom = index_lists.printed(values, entries, arity)
    else:
        custom = operand_groups.printed(values, _result_count(results), entries, arity)
    if custom is None:
        return None
    rest = dictionary.spelled(entries)
    return custom, f" {rest}" if rest else ""


def _result_count(results: str) -> int:
    """Return how many results the text before an operation's name, such as `%0:2 = `, stands for."""
    value, _, count = results.removesuffix(" = ").strip().partition(":")
    return int(count) if count else int(bool(value))


@lru_cache(maxsize=4096)
def _signature(text: str, fixed: int | None = None) -> str | None:
    """Return text with the function type that it starts with in custom spelling; None when it starts with none.

    `fixed`, if given, is how many operand types are kept: those of index lists are not spelt.
    """
    try:
        operands = ", ".join([_short(text[start:end]) for start, end in elements(text, 0)][:fixed])
        arrow = token_at(text, closing(text, 0))
        if arrow.text != "->":
            return None
        token = token_at(text, arrow.end)
        if token.text == "(":
            listed = [_short(text[start:end]) for start, end in elements(text, token.start)]
            end = closing(text, token.start)
            results = f"({', '.join(listed)})" if listed else ""
        else:
            end = type_end(text, token)
            if end is None:
                return None
            results = _short(text[token.start : end])
    except Unbalanced:
        return None
    after = f" -> {results}" if results else ""
    return f" {operands or '()'}{after}{text[end:]}"


def _short(spelled: str) -> str:
    """Return a type as an mx operation's type list spells it."""
    return spelled.removeprefix(_TENSOR) if spelled.startswith(f"{_TENSOR}<") else spelled
