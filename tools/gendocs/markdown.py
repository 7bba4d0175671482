"""Markdown from docstrings and rows."""

import re
from collections.abc import Iterable, Sequence
from inspect import cleandoc


def doc(text: str | None) -> str:
    """Return a docstring as Markdown: its indented blocks, which hold IR, become fenced ones."""
    lines = cleandoc(text or "").splitlines()
    out: list[str] = []
    inside = fenced = False
    for line in lines:
        if line.startswith("```"):
            fenced = not fenced
        indented = line.startswith("    ") and not fenced
        if indented and not inside:
            out.append("```mlir")
            inside = True
        elif inside and line.strip() and not indented:
            _close(out)
            inside = False
        out.append(line.removeprefix("    ") if inside else line)
    if inside:
        _close(out)
    return "\n".join(out)


def _close(out: list[str]) -> None:
    """End a block that the last lines of `out` belong to, before the empty lines that follow it."""
    empty = 0
    while not out[-1].strip():
        out.pop()
        empty += 1
    out.append("```")
    out.extend([""] * empty)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; a bar inside a cell is escaped."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in (head, *cells)) for column in range(len(head))]

    def line(row: Sequence[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"

    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([line(head), rule, *map(line, cells)])


def code(text: object) -> str:
    """Return inline code."""
    return f"`{text}`"


def summary(text: str | None) -> str:
    """Return the first sentence or line of a docstring."""
    first = cleandoc(text or "").partition("\n")[0]
    return re.sub(r":$", ".", first)
