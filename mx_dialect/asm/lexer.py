"""The lexical rules of MLIR text, as far as finding mx syntax in it needs them.

`find` jumps over everything that cannot matter, which is most of a file; `token_at`, `closing` and `type_end` look
closely where an mx operation or type begins. All of them take time linear in the text they cover, and none recurses.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from mx_dialect.diagnostics import Diagnostic

# MLIR's parser recurses; measured, it overflows an 8 MB stack at 4000 levels (of regions; later for all else). Threads
# may have a sixteenth of that stack.
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

# Every alternative starts with its own character and none is a group: then the search from match to match is a tight
# loop, six times as fast. A bare word counts when it is not the tail of another name.
_SKIM = re.compile(
    rf"""{COMMENT}
  | {STRING}
  | !{_IDENTIFIER}
  | m(?<![\w$.\-%@\#!^]m)x\.[\w$.]*
  | \{{-\#""",
    re.VERBOSE | re.ASCII,
)
_SKIMMED = {"/": "comment", '"': "string", "!": "type", "m": "mx", "{": "resources"}
_RESOURCES_END = re.compile(rf"{COMMENT}|{STRING}|\#-\}}", re.ASCII)

# A bracketed run that holds nothing a bracket could hide in, and a type whose body is one and names no mx type.
_FLAT = re.compile(r"<[^][(){}<>\"/-]*>|\([^][(){}<>\"/-]*\)|\{[^][(){}<>\"/-]*\}")
_FLAT_TYPE = re.compile(r"[A-Za-z_][\w$.]*<[^][(){}<>\"/!-]*>", re.ASCII)
_CLOSERS = {"<": ">", "(": ")", "[": "]", "{": "}"}

_COMMENT_OR_STRING = re.compile(rf"{STRING}|{COMMENT}", re.ASCII)


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
    assert match is not None
    assert match.lastgroup is not None
    kind = match.lastgroup
    return Token(kind, match[kind], match.start(kind), match.end())


def find(text: str, position: int, limit: int) -> Token | None:
    """Return the next comment, string, type, bare word `mx.*` or start of resources between two positions."""
    match = _SKIM.search(text, position, limit)
    if match is None:
        return None
    return Token(_SKIMMED[match[0][0]], match[0], match.start(), match.end())


def bare_words(text: str) -> Iterator[Token]:
    """Yield every bare word `mx.*` of a text, resources left out."""
    position = 0
    while (found := find(text, position, len(text))) is not None:
        position = resources_end(text, found.end) if found.kind == "resources" else found.end
        if found.kind == "mx":
            yield found


def resources_end(text: str, position: int) -> int:
    """Return where the file's resource section, entered before `position`, ends."""
    for match in _RESOURCES_END.finditer(text, position):
        if match[0] == "#-}":
            return match.end()
    return len(text)


class Unreadable(Exception):
    """The text at `offset` is not what has to be there; the message says what was expected."""

    def __init__(self, offset: int, message: str):
        super().__init__(message)
        self.offset = offset


def expected(text: str, token: Token, previous_end: int, what: str) -> Unreadable:
    """Return the error for a token where another was due; at the end of the line before if it starts a line."""
    starts_line = token.kind == "end" or "\n" in text[previous_end : token.start]
    return Unreadable(previous_end if starts_line else token.start, f"expected {what}")


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


def flat_type_end(text: str, position: int) -> int | None:
    """Return where a plain type such as `tensor<4x4xf32>` at a position ends; None if what is there needs a look."""
    match = _FLAT_TYPE.match(text, position)
    return None if match is None else match.end()


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
    return _COMMENT_OR_STRING.sub(lambda m: m[0] if m[0][0] == '"' else " ", text) if "//" in text else text


# Each minus sign of a run is a level for MLIR's parser of affine expressions.
_MINUS_SIGNS = rf"-(?:[ \t\r\n]*-(?!>)){{{MAX_NESTING}}}"
_LONG_NEGATION = re.compile(_MINUS_SIGNS)
_NESTING = re.compile(rf"{STRING}|{COMMENT}|->|>=|<=|[][(){{}}<>]|{_MINUS_SIGNS}", re.ASCII)
_STEPS = {**dict.fromkeys("<([{", 1), **dict.fromkeys(">)]}", -1)}
_PAIRS = (b"<>", b"()", b"[]", b"{}")
_NO_BRACKETS = bytes(set(range(256)) - set(b"".join(_PAIRS)))


def _is_shallow(text: str) -> bool:
    """Tell quickly that nothing nests deeper than `MAX_NESTING`; False where that takes a closer look."""
    bare = _COMMENT_OR_STRING.sub(" ", text)
    if _LONG_NEGATION.search(bare):
        return False
    for symbol in ("->", ">=", "<="):
        bare = bare.replace(symbol, " ")
    brackets = bare.encode().translate(None, _NO_BRACKETS)
    # A round takes away the innermost level, and at most a level of each kind.
    for _ in range(MAX_NESTING // len(_PAIRS)):
        for pair in _PAIRS:
            brackets = brackets.replace(pair, b"")
        if not brackets:
            return True
    return False


def too_deep(text: str) -> int | None:
    """Return the position where something nests deeper than `MAX_NESTING`, or None."""
    if _is_shallow(text):
        return None
    depth = 0
    for match in _NESTING.finditer(text):
        depth += _STEPS.get(match[0], 0)
        if depth > MAX_NESTING or _LONG_NEGATION.match(match[0]):
            return match.start()
    return None


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
