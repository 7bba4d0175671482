"""One way to report: what happened, where, and the line of source it concerns.

`Diagnostic` is one message with a position, `MxError` the exception that carries one or more. Passes raise
`error_at(op, ...)` to refuse and call `remark_at(op, ...)` to explain; MLIR's own diagnostics and ours end up in one
list, in order, while a `Collector` is active. This module knows the bindings' objects by their methods only.
"""

import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Literal

from mx_dialect.tensor_spec import spell_types

Severity = Literal["error", "warning", "remark", "note"]


@dataclass(frozen=True)
class Diagnostic:
    """One message. `file` None means the position is not known; lines and columns count from 1."""

    severity: Severity
    message: str
    file: str | None = None
    line: int = 0
    column: int = 0
    notes: tuple["Diagnostic", ...] = ()

    def header(self) -> str:
        """Return `file:line:col: severity: message`, the first line users see."""
        place = f"{self.file}:{self.line}:{self.column}: " if self.file is not None else ""
        return f"{place}{self.severity}: {self.message}"


class MxError(ValueError):
    """Any failure this package reports. `diagnostics` holds the details, in the order they were found.

    The text is one `file:line:col: error: message` line a diagnostic, or the bare message where there is no position.
    """

    def __init__(self, message: str, diagnostics: tuple[Diagnostic, ...] = ()):
        self.diagnostics = diagnostics or (Diagnostic("error", message),)
        super().__init__(message)

    @classmethod
    def of(cls, *diagnostics: Diagnostic) -> "MxError":
        return cls("\n".join(spell_tree(d) for d in diagnostics), diagnostics)


def spell_tree(diagnostic: Diagnostic) -> str:
    """Return the header lines of a diagnostic and its notes."""
    if diagnostic.file is None and diagnostic.severity == "error" and not diagnostic.notes:
        return diagnostic.message
    return "\n".join([diagnostic.header(), *(spell_tree(note) for note in diagnostic.notes)])


_FILE_LOCATION = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)')


def _unescape(text: str) -> str:
    """Undo MLIR's string escapes: \\\\, \\" and two hex digits a byte."""

    def one(match: re.Match[str]) -> str:
        return match[1] if match[1] in '"\\' else chr(int(match[1], 16))

    raw = re.sub(r'\\(["\\]|[0-9A-Fa-f]{2})', one, text)
    if raw.isascii():
        return raw
    return raw.encode("latin-1", "replace").decode("utf-8", "replace")


def position_of(location: Any) -> tuple[str, int, int] | None:
    """Return (file, line, column) of an `ir.Location`, its first file position, or None when it has none."""
    match = _FILE_LOCATION.search(str(location))
    return (_unescape(match[1]), int(match[2]), int(match[3])) if match else None


def at(where: Any, severity: Severity, message: str, notes: tuple[Diagnostic, ...] = ()) -> Diagnostic:
    """Return a diagnostic at an operation, a value's defining place or a location."""
    location = getattr(where, "location", where)
    file, line, column = position_of(location) or (None, 0, 0)
    return Diagnostic(severity, spell_types(message), file, line, column, notes)


def error_at(where: Any, message: str, notes: tuple[Diagnostic, ...] = ()) -> MxError:
    """Return (for the caller to raise) an error at an operation or location."""
    return MxError.of(at(where, "error", message, notes))


_active: ContextVar["Collector | None"] = ContextVar("mx_dialect_diagnostics", default=None)


def tell(diagnostic: Diagnostic) -> None:
    """Hand a diagnostic that is not an error to whoever collects; lost when nobody does."""
    collector = _active.get()
    if collector is not None:
        collector.add(diagnostic)


def remark_at(where: Any, message: str) -> None:
    """Tell the user something about an operation that is not an error; lost when nobody collects."""
    tell(at(where, "remark", message))


def warn_at(where: Any, message: str) -> None:
    """Warn about an operation; lost when nobody collects."""
    tell(at(where, "warning", message))


class Collector:
    """Gathers diagnostics in order; `on_each`, if given, sees each as it arrives."""

    def __init__(self, on_each: Callable[[Diagnostic], None] | None = None):
        self.diagnostics: list[Diagnostic] = []
        self._on_each = on_each

    def add(self, diagnostic: Diagnostic) -> None:
        self.diagnostics.append(diagnostic)
        if self._on_each is not None:
            self._on_each(diagnostic)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.diagnostics if d.severity == "error")


def from_mlir(diagnostic: Any) -> Diagnostic:
    """Convert a diagnostic of the bindings, types spelt as users write them."""
    severity = str(getattr(diagnostic, "severity", "error")).rpartition(".")[2].lower()
    file, line, column = position_of(diagnostic.location) or (None, 0, 0)
    known: dict[str, Severity] = {"error": "error", "warning": "warning", "remark": "remark", "note": "note"}
    return Diagnostic(
        known.get(severity, "error"),
        _message(diagnostic),
        file,
        line,
        column,
        tuple(replace(from_mlir(note), severity="note") for note in diagnostic.notes),
    )


def _message(diagnostic: Any) -> str:
    try:
        return spell_types(diagnostic.message)
    except RuntimeError:
        # The bindings cannot convert a message that quotes, say, a symbol named "\\FF".
        return "the message is not valid UTF-8"


@contextmanager
def collecting(context: Any, collector: Collector) -> Generator[Collector]:
    """Send everything that MLIR and our passes report about `context` to `collector` while the block runs.

    Errors included: an `ir.MLIRError` raised inside then carries no text of its own.
    """

    def handle(diagnostic: Any) -> bool:
        collector.add(from_mlir(diagnostic))
        return True

    previous = context.emit_error_diagnostics
    context.emit_error_diagnostics = True
    handler = context.attach_diagnostic_handler(handle)
    token = _active.set(collector)
    try:
        yield collector
    finally:
        _active.reset(token)
        handler.detach()
        context.emit_error_diagnostics = previous


def render(diagnostic: Diagnostic, sources: Mapping[str, str]) -> str:
    """Return the full text of a diagnostic: header, source line and caret where the source is known, then notes."""
    lines = [diagnostic.header()]
    if diagnostic.file is not None and diagnostic.file in sources:
        source = sources[diagnostic.file].split("\n")
        if 1 <= diagnostic.line <= len(source):
            text = source[diagnostic.line - 1].rstrip("\r")
            # Columns count bytes, as MLIR's do; the caret must stand under a character.
            before = text.encode()[: max(diagnostic.column - 1, 0)].decode("utf-8", "ignore")
            lines.append(text)
            lines.append("".join("\t" if c == "\t" else " " for c in before) + "^")
    lines.extend(render(note, sources) for note in diagnostic.notes)
    return "\n".join(lines)
