"""The operands of an mx operation in custom assembly: values, and index lists behind them."""

from typing import NamedTuple

from mx_dialect.asm import index_lists
from mx_dialect.asm.lexer import Token, Unreadable, expected, token_at
from mx_dialect.asm.position_map import Edit
from mx_dialect.asm.table import Arity


class Operands(NamedTuple):
    """Operands as they were read, and what has to be done to their text.

    `edits` turn the operation's name and operands into generic form. `types` operands have their types listed, behind
    which come `indices` more. `attributes` are entries of the generic form's dictionary that the text does not have.
    """

    types: int
    indices: int
    edits: list[Edit]
    attributes: str
    end: int


def read(text: str, word: Token, arity: Arity) -> Operands:
    """Return the operands of the operation whose name is `word`.

    Raises:
        Unreadable: they are not what the operation takes.
    """
    name = word.text
    first = token_at(text, word.end)
    count, end = _values(text, word, first)
    if arity.operands is not None and count != arity.operands:
        raise Unreadable(word.start, f"{name} takes {counted(arity.operands, 'operand')}, got {count}")
    edits = [Edit(word.start, first.start if count else word.end, f'"{name}"(')]
    if not arity.lists:
        return Operands(count, 0, [*edits, Edit(end, end, ")")], "", end)
    lists = index_lists.read(text, end, name, arity)
    values = ", ".join(lists.values)
    edits.append(Edit(end, lists.end, f"{', ' if count and values else ''}{values})"))
    return Operands(count, len(lists.values), edits, lists.attributes(arity, count), lists.end)


def _values(text: str, word: Token, token: Token) -> tuple[int, int]:
    """Return how many values start at the token behind the operation's name, and where they end."""
    count, end = 0, word.end
    if token.text == "(":
        raise Unreadable(token.start, f"expected operands of {word.text} without parentheses, or its name in quotes")
    while token.kind == "value":
        count, end = count + 1, value_end(text, token)
        token = token_at(text, end)
        if token.text != ",":
            break
        comma = token.end
        token = token_at(text, comma)
        if token.kind != "value":
            raise expected(text, token, comma, f"an operand of {word.text} after ','")
    return count, end


def value_end(text: str, token: Token) -> int:
    """Return where a value that starts with `token` ends: behind the number of a result, if there is one."""
    following = token_at(text, token.end)
    is_number = following.text[:1] == "#" and following.text[1:].isdecimal()
    return following.end if is_number else token.end


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, `2 operands`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
