"""Index lists, `[0, %i] [32, %n]`: numbers and index values behind an operation's operands, in both directions.

    mx.extract_slice %x[0, %i] [32, 64] : T -> R

is in generic form

    "mx.extract_slice"(%x, %i) {operandSegmentSizes = array<i32: 1, 1, 0>,
        static_offsets = array<i64: 0, -9223372036854775808>, static_sizes = array<i64: 32, 64>} : (T, index) -> R

A list that its operation declares optional is not written when it is empty and only such lists follow.
"""

from typing import NamedTuple

from mx_dialect.asm.dictionary import SEGMENT_SIZES, numbers, spelled_array
from mx_dialect.asm.lexer import Unreadable, token_at
from mx_dialect.asm.table import Arity

# ShapedType::kDynamic, the number that stands for an operand.
DYNAMIC = -(2**63)
_LARGEST = 2**63 - 1


class IndexLists(NamedTuple):
    """Lists as they were read: for each its numbers, and the values in the order of the generic form's operands."""

    numbers: tuple[tuple[int, ...], ...]
    values: tuple[str, ...]
    end: int

    def attributes(self, arity: Arity, fixed_operands: int) -> str:
        """Return the attributes that the generic form has for the lists."""
        counts = [1] * fixed_operands + [numbers.count(DYNAMIC) for numbers in self.numbers]
        entries = [f"{SEGMENT_SIZES} = {spelled_array('i32', counts)}"]
        entries += [
            f"{index_list.attribute} = {spelled_array('i64', numbers)}"
            for index_list, numbers in zip(arity.lists, self.numbers, strict=True)
        ]
        return ", ".join(entries)


def read(text: str, position: int, name: str, arity: Arity) -> IndexLists:
    """Return the index lists at a position, one for each that the operation has.

    Raises:
        Unreadable: something else is there.
    """
    lists: list[tuple[int, ...]] = []
    values: list[str] = []
    for index_list in arity.lists:
        token = token_at(text, position)
        entries: list[str] = []
        if token.text == "[":
            entries, position = _entries(text, token.end, index_list.name)
        elif not index_list.optional:
            raise Unreadable(token.start, f"expected '[' and the {index_list.name} of {name}")
        lists.append(tuple(DYNAMIC if e[0] == "%" else int(e) for e in entries))
        values += [e for e in entries if e[0] == "%"]
    return IndexLists(tuple(lists), tuple(values), position)


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
        elif token.kind == "number" and token.text.isdecimal():
            # Python refuses to read numbers of thousands of digits.
            if len(token.text) > len(str(_LARGEST)) or int(token.text) > _LARGEST:
                raise Unreadable(start, f"expected a number that fits in 64 bits in the {what}")
            entries.append(sign + token.text)
            position = token.end
        else:
            raise Unreadable(start, f"expected a number or an index value in the {what}")
        token = token_at(text, position)
        if token.text == ",":
            token = token_at(text, token.end)
        elif token.text != "]":
            raise Unreadable(token.start, f"expected ',' or ']' in the {what}")
    return entries, token.end


def printed(operands: list[str], entries: dict[str, str], arity: Arity) -> str | None:
    """Return the operands and lists of generic form in custom form, None if they do not fit.

    The attributes that the lists stand for are taken out of `entries`.
    """
    arrays = [numbers(entries.pop(name, "")) for name in (SEGMENT_SIZES, *(i.attribute for i in arity.lists))]
    fixed = arity.operands or 0
    segments, *lists = arrays
    if segments is None or any(found is None for found in lists):
        return None
    known = [found for found in lists if found is not None]
    if segments != [1] * fixed + [n.count(DYNAMIC) for n in known] or sum(segments) != len(operands):
        return None
    waiting = iter(operands[fixed:])
    spelled = ["[" + ", ".join(next(waiting) if n == DYNAMIC else str(n) for n in found) + "]" for found in known]
    while spelled and spelled[-1] == "[]" and arity.lists[len(spelled) - 1].optional:
        spelled.pop()
    return ", ".join(operands[:fixed]) + " ".join(spelled)
