"""Attribute dictionaries in text: the entries of a printed one, and arrays of numbers in generic form."""

import re
from collections.abc import Mapping, Sequence

from mx_dialect.asm.lexer import Unbalanced, closing, token_at

SEGMENT_SIZES = "operandSegmentSizes"
RESULT_SEGMENT_SIZES = "resultSegmentSizes"
_ARRAY = re.compile(r"array<i(?:32|64)(?:: (-?\d{1,20}(?:, -?\d{1,20})*))?>", re.ASCII)


def spelled_array(kind: str, numbers: Sequence[int]) -> str:
    """Return `array<i32: 1, 2>`."""
    return f"array<{kind}: {', '.join(map(str, numbers))}>" if numbers else f"array<{kind}>"


def numbers(array: str) -> list[int] | None:
    """Return the numbers of an array attribute, None if the text is none."""
    match = _ARRAY.fullmatch(array)
    if match is None:
        return None
    return [int(n) for n in match[1].split(", ")] if match[1] else []


def entries(dictionary: str) -> dict[str, str] | None:
    """Return the entries of a printed attribute dictionary, None if it cannot be read; a unit has no value."""
    found: dict[str, str] = {}
    position = 1
    try:
        while True:
            name = token_at(dictionary, position)
            if name.text == "}":
                return found
            end = start = token_at(dictionary, name.end).start
            if dictionary[start : start + 1] == "=":
                start = token_at(dictionary, start + 1).start
                end = start
            while (token := token_at(dictionary, end)).text not in (",", "}"):
                if token.kind == "end":
                    return None
                end = closing(dictionary, token.start) if token.text in ("<", "(", "[", "{") else token.end
            found[name.text] = dictionary[start:end].strip()
            if token.text == "}":
                return found
            position = token.end
    except Unbalanced:
        return None


def spelled(entries: Mapping[str, str]) -> str:
    """Return a dictionary with these entries, the empty string for none."""
    return f"{{{', '.join(f'{k} = {v}' if v else k for k, v in entries.items())}}}" if entries else ""
