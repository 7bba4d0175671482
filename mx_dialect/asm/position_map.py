"""Positions: from a place in translated text back to the place in the text it came from."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple


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


class Edit(NamedTuple):
    """Characters `start` to `end` of the user's text become `text`."""

    start: int
    end: int
    text: str


class Translation:
    """Generic text, and the way back from its positions to the user's."""

    def __init__(self, original: str, edits: Sequence[Edit] = ()):
        pieces: list[str] = []
        # Where the n-th edit's text starts and ends in the translated text, and what it replaced.
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._edits = edits
        length = copied = 0
        for edit in edits:
            pieces += (original[copied : edit.start], edit.text)
            self._starts.append(length + edit.start - copied)
            length = self._starts[-1] + len(edit.text)
            self._ends.append(length)
            copied = edit.end
        pieces.append(original[copied:])
        self.text = "".join(pieces)
        self._original = original
        self._lines: tuple[Lines, Lines] | None = None

    def position(self, line: int, column: int) -> tuple[int, int]:
        """Return the user's line and column for a line and column of the translated text.

        Lines and columns count from 1, columns in bytes. A position inside replaced text is the start of what the user
        wrote instead. Line 0, MLIR's sign for no position, stays.
        """
        if not self._edits or line < 1:
            return line, column
        if self._lines is None:
            self._lines = Lines(self.text), Lines(self._original)
        translated, original = self._lines
        offset = translated.offset(line, column)
        index = bisect_right(self._starts, offset) - 1
        if index < 0:
            return original.place(offset)
        edit = self._edits[index]
        after = offset - self._ends[index]
        return original.place(edit.start if after < 0 else edit.end + after)
