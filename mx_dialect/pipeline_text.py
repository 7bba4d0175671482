"""MLIR's textual pipelines, parsed: `builtin.module(mx-to-linalg,func.func(canonicalize{top-down=1}),cse)`.

The bindings cannot put a pass written in Python into such a text, so the driver needs its structure.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from mx_dialect.diagnostics import MxError


@dataclass(frozen=True)
class Element:
    """One element of a pipeline: a pass (`children` None) or an anchor operation with the elements under it.

    `options` is the text between the braces, `position` the element's offset in the pipeline's text.
    """

    name: str
    options: str = ""
    children: tuple["Element", ...] | None = None
    position: int = 0

    @property
    def text(self) -> str:
        if self.children is not None:
            return f"{self.name}({','.join(child.text for child in self.children)})"
        return f"{self.name}{{{self.options}}}" if self.options else self.name

    def pretty(self, indent: str = "") -> str:
        """Return the text over several lines, as MLIR dumps pipelines."""
        if not self.children:
            return f"{indent}{self.text}"
        inner = ",\n".join(child.pretty(f"{indent}  ") for child in self.children)
        return f"{indent}{self.name}(\n{inner}\n{indent})"

    def option_items(self) -> dict[str, str]:
        """Return the options as names and values, quotes and braces around a value removed."""
        items: dict[str, str] = {}
        for word in _split(self.options, " \t\n,"):
            name, _, value = word.partition("=")
            items[name] = _unwrap(value)
        return items


def _unwrap(value: str) -> str:
    if len(value) >= 2 and (value[0] + value[-1]) in ("''", '""', "{}"):
        return value[1:-1]
    return value


# `a=1,2 b=3`: a comma separates options only when a new `name=` follows it.
_NEW_OPTION = re.compile(r"\s*(?:[^\s=,][^=, ]*)?=")


def _split(text: str, separators: str) -> Iterator[str]:
    """Split at separators outside quotes, braces and parentheses; a comma inside a list value stays with it."""
    depth, quote, start = 0, "", 0
    for position, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "{(":
            depth += 1
        elif char in "})":
            depth -= 1
        elif depth == 0 and char in separators and (char != "," or _NEW_OPTION.match(text, position + 1)):
            if start < position:
                yield text[start:position]
            start = position + 1
    if start < len(text):
        yield text[start:]


def _fail(text: str, position: int, message: str) -> MxError:
    before = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    line = text[before : end if end >= 0 else len(text)]
    number, column = text.count("\n", 0, position) + 1, position - before + 1
    return MxError(
        f"MLIR Textual PassPipeline Parser:{number}:{column}: error: {message}\n{line}\n{' ' * (column - 1)}^"
    )


class _Parser:
    """Recursive descent over the text; nesting is limited so that a hostile pipeline cannot exhaust the stack."""

    MAX_DEPTH = 64

    def __init__(self, text: str):
        self.text = text
        self.position = 0

    def elements(self, depth: int) -> tuple[Element, ...]:
        if depth > self.MAX_DEPTH:
            raise _fail(self.text, self.position, f"pipelines nest at most {self.MAX_DEPTH} deep")
        found: list[Element] = []
        self._space()
        if depth and self._next() == ")":
            return ()
        while True:
            found.append(self._element(depth))
            self._space()
            if self._next() != ",":
                return tuple(found)
            self.position += 1
            self._space()

    def _element(self, depth: int) -> Element:
        start = self.position
        while self._next() not in ("", *",(){} \t\r\n"):
            self.position += 1
        name = self.text[start : self.position]
        if not name:
            raise _fail(self.text, start, "expected a pass or an anchor operation")
        self._space()
        if self._next() != "(":
            return Element(name, self._options(), position=start)
        opened = self.position
        self.position += 1
        children = self.elements(depth + 1)
        if not self._next():
            raise _fail(self.text, opened, "encountered unbalanced parentheses while parsing pipeline")
        if self._next() != ")":
            raise _fail(self.text, self.position, "expected ',' or ')' after a pass")
        self.position += 1
        return Element(name, children=children, position=start)

    def _options(self) -> str:
        if self._next() != "{":
            return ""
        opened, depth = self.position, 0
        while self._next():
            depth += {"{": 1, "}": -1}.get(self._next(), 0)
            self.position += 1
            if depth == 0:
                return self.text[opened + 1 : self.position - 1].strip()
        raise _fail(self.text, opened, "missing closing '}' while processing pass options")

    def _space(self) -> None:
        while self._next() in tuple(" \t\r\n"):
            self.position += 1

    def _next(self) -> str:
        """Return the next character, "" at the end."""
        return self.text[self.position : self.position + 1]

    def finish(self) -> None:
        if self._next() == ")":
            raise _fail(self.text, self.position, "encountered extra closing ')' creating unbalanced parentheses")
        if self._next():
            raise _fail(self.text, self.position, "expected ',' after parsing pipeline")


def parse_elements(text: str) -> tuple[Element, ...]:
    """Parse a comma-separated list of passes and anchors.

    Raises:
        MxError: a syntax error, with its position in the text.
    """
    parser = _Parser(text)
    elements = parser.elements(0)
    parser.finish()
    return elements


def parse_anchored(text: str) -> Element:
    """Parse a whole pipeline, `builtin.module(...)` or `any(...)`.

    Raises:
        MxError: a syntax error, or no anchor around the passes.
    """
    elements = parse_elements(text) if text.strip() else ()
    if len(elements) != 1 or elements[0].children is None:
        raise MxError("expected pass pipeline to be wrapped with the anchor operation type, e.g. 'builtin.module(...)'")
    return elements[0]


def fail_at(text: str, element: Element, message: str) -> MxError:
    """Return an error that points at an element of a pipeline's text."""
    return _fail(text, element.position, message)


def shifted(elements: tuple[Element, ...], position: int) -> tuple[Element, ...]:
    """Return elements that all claim one position: those of a named pipeline stand where its name stood."""
    return tuple(
        replace(e, position=position, children=None if e.children is None else shifted(e.children, position))
        for e in elements
    )
