"""Operands in groups behind a symbol, in both directions.

    mx.submit @kernel(%x, %i) after(%t) {sync_start} : T, index, !mx.task -> (T, !mx.task)

is in generic form

    "mx.submit"(%x, %i, %t) {callee = @kernel, operandSegmentSizes = array<i32: 1, 1, 0, ..., 1, 0, 0>,
        resultSegmentSizes = array<i32: 1, 1, 0, ...>, sync_start} : (T, index, !mx.task) -> (T, !mx.task)

Only the first group is written when it is empty. The types are those of all operands in order.
"""

import re
from itertools import pairwise
from typing import NamedTuple

from mx_dialect.asm.dictionary import RESULT_SEGMENT_SIZES, SEGMENT_SIZES, numbers, spelled_array
from mx_dialect.asm.lexer import Token, Unreadable, expected, token_at
from mx_dialect.asm.operands import Operands, value_end
from mx_dialect.asm.position_map import Edit
from mx_dialect.asm.table import Arity, OperandGroup
from mx_dialect.passes import nearest

# A symbol reference as MLIR prints one that is not nested.
_SYMBOL = re.compile(r'@(?:[A-Za-z_][\w$.]*|"[^"\\\n]*(?:\\[^\n][^"\\\n]*)*")', re.ASCII)


class _Written(NamedTuple):
    """A group as it was read: its brackets, and how many values are between them."""

    group: OperandGroup
    opened: Token
    values: int
    closed: Token


def read(text: str, word: Token, arity: Arity) -> Operands:
    """Return the operands of the operation whose name is `word`, written as a symbol and groups.

    Raises:
        Unreadable: something else is there.
    """
    symbol = token_at(text, word.end)
    if symbol.kind != "symbol" or symbol.text[0] != "@":
        raise expected(text, symbol, word.end, f"the {arity.symbol} of {word.text}, such as @name")
    groups = _groups(text, symbol.end, word.text, arity)
    edits = [Edit(word.start, groups[0].opened.end, f'"{word.text}"(')]
    count = groups[0].values
    for before, after in pairwise(groups):
        edits.append(Edit(before.closed.start, after.opened.end, ", " if count and after.values else ""))
        count += after.values
    sizes = {written.group: written.values for written in groups}
    segments = [n for group in arity.groups for n in _segments(group, sizes.get(group, 0))]
    attributes = f"{SEGMENT_SIZES} = {spelled_array('i32', segments)}, {arity.symbol} = {symbol.text}"
    return Operands(count, 0, edits, attributes, groups[-1].closed.end)


def _segments(group: OperandGroup, count: int) -> list[int]:
    """Return the segment sizes of a group with so many values."""
    return [1] * count + [0] * (group.slots - count) if group.slots else [count]


def _groups(text: str, position: int, name: str, arity: Arity) -> list[_Written]:
    """Return the groups that are written from a position on."""
    keywords = {group.keyword for group in arity.groups[1:]}
    written = [_group(text, position, name, arity.groups[0])]
    keyword = token_at(text, written[-1].closed.end)
    # Any other word belongs to what follows an operation that lacks its types.
    while keyword.text in keywords or (keyword.kind == "word" and token_at(text, keyword.end).text == "("):
        group = _named(keyword, name, arity, [w.group for w in written])
        written.append(_group(text, keyword.end, name, group))
        keyword = token_at(text, written[-1].closed.end)
    return written


def _named(keyword: Token, name: str, arity: Arity, before: list[OperandGroup]) -> OperandGroup:
    """Return the group that a word stands for, behind others."""
    known = [group.keyword for group in arity.groups if group.keyword]
    if keyword.text not in known:
        hint = nearest(keyword.text, known) or f"; it has {', '.join(known)}"
        raise Unreadable(keyword.start, f"{name} has no operands '{keyword.text}'{hint}")
    group = next(g for g in arity.groups if g.keyword == keyword.text)
    if group in before:
        raise Unreadable(keyword.start, f"'{keyword.text}' of {name} is given twice")
    if arity.groups.index(group) < arity.groups.index(before[-1]):
        raise Unreadable(keyword.start, f"'{keyword.text}' of {name} must come before '{before[-1].keyword}'")
    return group


def _group(text: str, position: int, name: str, group: OperandGroup) -> _Written:
    """Return the group whose bracket is due at a position."""
    what = f"{group.name} of {name}"
    opened = token_at(text, position)
    if opened.text != "(":
        raise expected(text, opened, position, f"'(' and the {what}")
    count, end = 0, opened.end
    token = token_at(text, end)
    while token.text != ")":
        if token.kind != "value":
            raise expected(text, token, end, f"a value in the {what}")
        count, end = count + 1, value_end(text, token)
        token = token_at(text, end)
        if token.text == ",":
            end = token.end
            token = token_at(text, end)
            if token.kind != "value":
                raise expected(text, token, end, f"a value in the {what} after ','")
        elif token.text != ")":
            raise expected(text, token, end, f"',' or ')' in the {what}")
    if group.slots and count > group.slots:
        raise Unreadable(opened.start, f"{name} takes at most {group.slots} {group.name}, got {count}")
    return _Written(group, opened, count, token)


def printed(operands: list[str], results: int, entries: dict[str, str], arity: Arity) -> str | None:
    """Return the symbol and the operands of generic form in custom form, None if they do not fit.

    The attributes that they stand for are taken out of `entries`.
    """
    symbol = entries.pop(arity.symbol, "")
    segments = numbers(entries.pop(SEGMENT_SIZES, ""))
    if segments is None or _SYMBOL.fullmatch(symbol) is None:
        return None
    if arity.result_slots:
        slots = numbers(entries.pop(RESULT_SEGMENT_SIZES, ""))
        if slots != [1] * results + [0] * (arity.result_slots - results):
            return None
    spelled = [symbol]
    position = start = 0
    for group in arity.groups:
        width = group.slots or 1
        sizes = segments[position : position + width]
        count = sum(sizes)
        if sizes != _segments(group, count):
            return None
        position, end = position + width, start + count
        if count or not group.keyword:
            spelled.append(f"{group.keyword}({', '.join(operands[start:end])})")
        start = end
    if position != len(segments) or start != len(operands):
        return None
    return spelled[0] + " ".join(spelled[1:])
