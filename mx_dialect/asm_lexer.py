"""The lexical rules of MLIR text, as far as finding mx syntax in it needs them.

Text is scanned twice as fast as it could be read token by token: `skim` jumps over everything that cannot matter, and
`token_at`, `closing` and `type_end` look closely where an mx operation or type begins. All of them take time linear in
the text they cover, and none recurses.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from mx_dialect.diagnostics import Diagnostic

# MLIR's parser recurses; measured, it overflows an 8 MB stack between 2000 and 64000 levels, whatever is nested. Threads
# may have a sixteenth of that.
MAX_NESTING = 256

_IDENTIFIER = r"[A-Za-z_$.\-][\w$.\-]*"
STRING = r'"[^"\\\n]*(?:\\[^\n][^"\\\n]*)*"?'
COMMENT = r"//[^\n]*"
_TRIVIA = rf"(?:[ \t\r\n]+|{COMMENT})*"

_TOKEN = re.compile(
    rf"""{_TRIVIA}(?:
    (?P<string>{STRING})
  | (?P<value>%(?:\d+|{_IDENTIFIER}))
  | (?P<type>!{_IDENTIFIER})
  | (?P<symbol>@(?:{STRING}|{_IDENTIFIER})|[\#^](?:\d+|{_IDENTIFIER}))
  | (?P<word>[A-Za-z_][\w$.]*)
  | (?P<number>\d[\w.]*)
  | (?P<punctuation>->|>=|<=|.)
  | (?P<end>\Z)
    )""",
    re.VERBOSE | re.ASCII | re.DOTALL,
)

# Every alternative starts with one of five characters, so that the search between matches is a tight loop. A bare word
# counts when it is not the tail of another name.
_SKIM = re.compile(
    rf"""(?P<comment>{COMMENT})
  | (?P<string>{STRING})
  | (?P<type>!{_IDENTIFIER})
  | (?P<operation>m(?<![\w$.\-%@\#!^]m)x\.[\w$.]*)
  | (?P<resources>\{{-\#)""",
    re.VERBOSE | re.ASCII,
)
_RESOURCES_END = re.compile(rf"{COMMENT}|{STRING}|\#-\}}", re.ASCII)

# A bracketed run that holds nothing a bracket could hide in.
_FLAT = re.compile(r"<[^][(){}<>\"/-]*>|\([^][(){}<>\"/-]*\)")
_CLOSERS = {"<": ">", "(": ")", "[": "]", "{": "}"}

_COMMENT_OR_STRING = re.compile(rf"({STRING})|{COMMENT}", re.ASCII)


class Token(NamedTuple):
    """One token: `kind` is string, value, type, symbol, word, number, punctuation or end (with empty text)."""

    kind: str
    text: str
    start: int
    end: int


def token_at(text: str, position: int) -> Token:
    """Return the first token at or after a position, whitespace and comments skipped."""
    match = _TOKEN.match(text, position)
    # Any character matches as punctuation and the end as itself.
    assert match is not None and match.lastgroup is not None
    kind = match.lastgroup
    return Token(kind, match[kind], match.start(kind), match.end())


def find(text: str, position: int, limit: int) -> Token | None:
    """Return the next comment, string, type, bare word `mx.*` (as kind operation) or start of resources."""
    match = _SKIM.search(text, position, limit)
    if match is None:
        return None
    assert match.lastgroup is not None
    return Token(match.lastgroup, match[0], match.start(), match.end())


def resources_end(text: str, position: int) -> int:
    """Return where the file's resource section, entered before `position`, ends."""
    for match in _RESOURCES_END.finditer(text, position):
        if match[0] == "#-}":
            return match.end()
    return len(text)


class Unbalanced(Exception):
    """A bracket is not closed; `opened` is its position."""

    def __init__(self, bracket: str, opened: int):
        super().__init__(f"'{bracket}' is never closed")
        self.opened = opened


def closing(text: str, opened: int) -> int:
    """Return the position after the bracket that closes the one at `opened`.

    Raises:
        Unbalanced: there is none, or another kind of bracket closes first.
    """
    flat = _FLAT.match(text, opened)
    if flat is not None:
        return flat.end()
    expected: list[str] = []
    position = opened
    while True:
        token = token_at(text, position)
        position = token.end
        if token.kind == "end":
            raise Unbalanced(text[opened], opened)
        if token.kind != "punctuation":
            continue
        closer = _CLOSERS.get(token.text)
        if closer is not None:
            expected.append(closer)
        elif token.text == expected[-1]:
            expected.pop()
            if not expected:
                return position
        elif token.text in _CLOSERS.values():
            raise Unbalanced(text[opened], opened)


def type_end(text: str, token: Token) -> int | None:
    """Return where the type that starts with `token` ends, None when no type does.

    A bare `<...>` counts as a type: it is the short spelling of an mx tensor.

    Raises:
        Unbalanced: a bracket of the type is not closed.
    """
    if token.text == "(":
        arrow = token_at(text, closing(text, token.start))
        if arrow.text != "->":
            return None
        token = token_at(text, arrow.end)
        if token.text == "(":
            return closing(text, token.start)
    if token.text == "<":
        return closing(text, token.start)
    if token.kind not in ("type", "word"):
        return None
    following = token_at(text, token.end)
    return closing(text, following.start) if following.text == "<" else token.end


def without_comments(text: str) -> str:
    """Return text with each comment replaced by a space."""
    return _COMMENT_OR_STRING.sub(lambda m: m[1] or " ", text) if "//" in text else text


_NESTING = re.compile(
    rf"{STRING}|{COMMENT}|->|>=|<=|[][(){{}}<>]|(?:-[ \t\r\n]*){{{MAX_NESTING},}}", re.ASCII
)


class _Steps(dict[str, int]):
    """How a token changes the nesting depth; a long run of minus signs nests as deep as it is long."""

    def __missing__(self, token: str) -> int:
        return MAX_NESTING + 1 if token.startswith("-") and token != "->" else 0


_STEPS = _Steps({**dict.fromkeys("<([{", 1), **dict.fromkeys(">)]}", -1), "->": 0, ">=": 0, "<=": 0})


def too_deep(text: str) -> int | None:
    """Return the position where brackets nest deeper than `MAX_NESTING`, or None."""
    tokens = _NESTING.findall(text)
    if max(accumulate(map(_STEPS.__getitem__, tokens)), default=0) <= MAX_NESTING:
        return None
    depth = 0
    for match in _NESTING.finditer(text):
        depth += _STEPS[match[0]]
        if depth > MAX_NESTING:
            return match.start()
    return None


class Lines:
    """Positions of a text as MLIR counts them: lines from 1, columns from 1 in bytes of UTF-8."""

    def __init__(self, text: str):
        self._text = text
        self._starts = [0, *(m.end() for m in re.finditer("\n", text))]
        self._ascii = text.isascii()

    def place(self, offset: int) -> tuple[int, int]:
        """Return line and column of a character."""
        line = bisect_right(self._starts, offset)
        start = self._starts[line - 1]
        before = offset - start if self._ascii else len(self._text[start:offset].encode("utf-8", "replace"))
        return line, before + 1

    def offset(self, line: int, column: int) -> int:
        """Return the character at a line and column; places outside the text are moved to its end."""
        if line > len(self._starts):
            return len(self._text)
        start = self._starts[line - 1]
        before = max(column - 1, 0)
        if not self._ascii:
            end = self._starts[line] if line < len(self._starts) else len(self._text)
            before = len(self._text[start:end].encode("utf-8", "replace")[:before].decode("utf-8", "ignore"))
        return min(start + before, len(self._text))


@dataclass(frozen=True)
class Source:
    """A text and the name it is known by."""

    text: str
    name: str

    def diagnostic(self, offset: int, message: str) -> Diagnostic:
        """Return an error at a character."""
        start = self.text.rfind("\n", 0, offset) + 1
        column = len(self.text[start:offset].encode("utf-8", "replace")) + 1
        return Diagnostic("error", message, self.name, self.text.count("\n", 0, offset) + 1, column)


def elements(text: str, opened: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of each type in the parenthesised list that opens at `opened`.

    Raises:
        Unbalanced: a bracket is not closed, or something else than a type is listed.
    """
    token = token_at(text, opened + 1)
    while token.text != ")":
        end = type_end(text, token)
        if end is None:
            raise Unbalanced("(", opened)
        yield token.start, end
        token = token_at(text, end)
        if token.text == ",":
            token = token_at(text, token.end)
        elif token.text != ")":
            raise Unbalanced("(", opened)
