"""Index lists, `[0, %i] [32, %n]`: numbers and index values behind an operation's operands, in both directions.

    mx.extract_slice %x[0, %i] [32, 64] : T -> R

is in generic form

    "mx.extract_slice"(%x, %i) {operandSegmentSizes = array<i32: 1, 1, 0>,
        static_offsets = array<i64: 0, -9223372036854775808>, static_sizes = array<i64: 32, 64>} : (T, index) -> R
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from mx_dialect.asm.lexer import Unbalanced, closing, token_at
from mx_dialect.asm.table import Arity

# ShapedType::kDynamic, the number that stands for an operand.
DYNAMIC = -(2**63)
SEGMENT_SIZES = "operandSegmentSizes"
_ARRAY = re.compile(r"array<i(?:32|64)(?:: ([-\d, ]*))?>", re.ASCII)


class ListSyntaxError(ValueError):
    """The text at `offset` is not an index list."""

    def __init__(self, offset: int, message: str):
        super().__init__(message)
        self.offset = offset


class IndexLists(NamedTuple):
    """Lists as they were read: for each its numbers, and the values in the order of the generic form's operands."""

    numbers: tuple[tuple[int, ...], ...]
    values: tuple[str, ...]
    end: int

    def attributes(self, arity: Arity, fixed_operands: int) -> str:
        """Return the attributes that the generic form has for the lists."""
        counts = [1] * fixed_operands + [numbers.count(DYNAMIC) for numbers in self.numbers]
        entries = [f"{SEGMENT_SIZES} = {_array('i32', counts)}"]
        entries += [
            f"{index_list.attribute} = {_array('i64', numbers)}"
            for index_list, numbers in zip(arity.lists, self.numbers, strict=True)
        ]
        return ", ".join(entries)


def _array(kind: str, numbers: Sequence[int]) -> str:
    return f"array<{kind}: {', '.join(map(str, numbers))}>" if numbers else f"array<{kind}>"


def read(text: str, position: int, name: str, arity: Arity) -> IndexLists:
    """Return the index lists at a position, one for each that the operation has.

    Raises:
        ListSyntaxError: something else is there.
    """
    numbers: list[tuple[int, ...]] = []
    values: list[str] = []
    for index_list in arity.lists:
        token = token_at(text, position)
        if token.text != "[":
            raise ListSyntaxError(token.start, f"expected '[' and the {index_list.name} of {name}")
        entries, position = _entries(text, token.end, index_list.name)
        numbers.append(tuple(DYNAMIC if e[0] == "%" else int(e) for e in entries))
        values += [e for e in entries if e[0] == "%"]
    return IndexLists(tuple(numbers), tuple(values), position)


def _entries(text: str, position: int, what: str) -> tuple[list[str], int]:
    """Return the entries of a list whose bracket opens before a position, and its end."""
    entries: list[str] = []
    token = token_at(text, position)
    while token.text != "]":
        sign = ""
        start = token.start
        if token.text == "-":
            sign, token = "-", token_at(text, token.end)
        if token.kind == "value" and not sign:
            following = token_at(text, token.end)
            suffix = following.text if following.text[:1] == "#" else ""
            entries.append(token.text + suffix)
            position = following.end if suffix else token.end
        elif token.kind == "number" and token.text.isdecimal() and len(token.text) < 19:
            entries.append(sign + token.text)
            position = token.end
        else:
            raise ListSyntaxError(start, f"expected a number or an index value in the {what}")
        token = token_at(text, position)
        if token.text == ",":
            token = token_at(text, token.end)
        elif token.text != "]":
            raise ListSyntaxError(token.start, f"expected ',' or ']' in the {what}")
    return entries, token.end


class Printed(NamedTuple):
    """An operation's operands with their lists, and its other attributes, in custom form."""

    operands: str
    attributes: str


def printed(operands: str, attributes: str, arity: Arity) -> Printed | None:
    """Return the custom form of generic operands and attributes, None if they do not fit the lists."""
    entries = _attribute_entries(attributes)
    if entries is None:
        return None
    arrays = [_numbers(entries.pop(name, "")) for name in (SEGMENT_SIZES, *(i.attribute for i in arity.lists))]
    values = operands.split(", ") if operands else []
    fixed = arity.operands or 0
    segments, *lists = arrays
    if segments is None or any(numbers is None for numbers in lists):
        return None
    known = [numbers for numbers in lists if numbers is not None]
    if segments != [1] * fixed + [n.count(DYNAMIC) for n in known] or sum(segments) != len(values):
        return None
    waiting = iter(values[fixed:])
    spelled = ["[" + ", ".join(next(waiting) if n == DYNAMIC else str(n) for n in numbers) + "]" for numbers in known]
    rest = f"{{{', '.join(f'{k} = {v}' if v else k for k, v in entries.items())}}}" if entries else ""
    return Printed(", ".join(values[:fixed]) + " ".join(spelled), rest)


def _numbers(array: str) -> list[int] | None:
    match = _ARRAY.fullmatch(array)
    if match is None:
        return None
    return [int(n) for n in match[1].split(", ")] if match[1] else []


def _attribute_entries(dictionary: str) -> dict[str, str] | None:
    """Return the entries of a printed attribute dictionary, None if it cannot be read; a unit has no value."""
    entries: dict[str, str] = {}
    position = 1
    try:
        while True:
            name = token_at(dictionary, position)
            if name.text == "}":
                return entries
            end = start = token_at(dictionary, name.end).start
            if dictionary[start : start + 1] == "=":
                start = token_at(dictionary, start + 1).start
                end = start
            while (token := token_at(dictionary, end)).text not in (",", "}"):
                if token.kind == "end":
                    return None
                end = closing(dictionary, token.start) if token.text in ("<", "(", "[", "{") else token.end
            entries[name.text] = dictionary[start:end].strip()
            if token.text == "}":
                return entries
            position = token.end
    except Unbalanced:
        return None
