"""One way to report: what happened, where, and the line of source it concerns.

`Diagnostic` is one message with a position, `MxError` the exception that carries one or more. Passes raise
`error_at(op, ...)` to refuse and call `remark_at(op, ...)` to explain; MLIR's own diagnostics and ours end up in one
list, in order, while a `Collector` is active. This module knows the bindings' objects by their methods only.
"""

import os
import re
import stat
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Literal

from mx_dialect.terminal import Style, plain
from mx_dialect.type_spelling import spell_types

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

    def header(self, style: Style = plain) -> str:
        """Return `file:line:col: severity: message`, the first line users see."""
        place = f"{self.file}:{self.line}:{self.column}: " if self.file is not None else ""
        severity = style(self.severity, f"{self.severity}: ")
        return f"{style('place', place)}{severity}{style('message', self.message)}"


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


STACKTRACE_FLAG = "mlir-print-stacktrace-on-diagnostic"
"""The flag of the commands that shows what a bug's message leaves out."""


def bug(error: Exception) -> str:
    """Return one line about an exception that no code of ours should have let through."""
    what = " ".join(f"{type(error).__name__}: {error}".split())
    return f"{what} (this is a bug; --{STACKTRACE_FLAG} shows the traceback)"


def is_unreadable(error: Exception) -> bool:
    """Tell whether the bindings raised an error because a string in the IR is not valid UTF-8, as MLIR allows."""
    return isinstance(error, UnicodeDecodeError) or (isinstance(error, RuntimeError) and _CONVERSION in str(error))


def tree(diagnostic: Diagnostic) -> Iterator[Diagnostic]:
    """Yield a diagnostic and all its notes, in the order in which they are shown."""
    yield diagnostic
    for note in diagnostic.notes:
        yield from tree(note)


def spell_tree(diagnostic: Diagnostic) -> str:
    """Return the header lines of a diagnostic and its notes."""
    if diagnostic.file is None and diagnostic.severity == "error" and not diagnostic.notes:
        return diagnostic.message
    return "\n".join(part.header() for part in tree(diagnostic))


_CONVERSION = "str_from_cstr_and_size(): conversion error"
_UNKNOWN = "loc(unknown)"
_FILE_LOCATION = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)')


def unescape(text: str) -> str:
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
    return (unescape(match[1]), int(match[2]), int(match[3])) if match else None


def _located(location: Any, severity: Severity, message: str, notes: tuple[Diagnostic, ...]) -> Diagnostic:
    position = position_of(location)
    if position is not None:
        return Diagnostic(severity, message, *position, notes)
    # A name is all that models from elsewhere may say about a place.
    spelled = str(location)
    return Diagnostic(severity, message if spelled == _UNKNOWN else f"{spelled}: {message}", notes=notes)


def at(where: Any, severity: Severity, message: str, notes: tuple[Diagnostic, ...] = ()) -> Diagnostic:
    """Return a diagnostic at an operation, a value's defining place or a location."""
    return _located(getattr(where, "location", where), severity, spell_types(message), notes)


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
    known: dict[str, Severity] = {"error": "error", "warning": "warning", "remark": "remark", "note": "note"}
    notes = tuple(replace(from_mlir(note), severity="note") for note in diagnostic.notes)
    return _located(diagnostic.location, known.get(severity, "error"), _message(diagnostic), notes)


def without_printed_op(diagnostic: Diagnostic) -> Diagnostic:
    """Return a diagnostic without the note in which MLIR shows the operation that it is about."""
    notes = tuple(note for note in diagnostic.notes if not note.message.startswith("see current operation"))
    return replace(diagnostic, notes=notes)


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


@contextmanager
def python_warnings(report: Callable[[Diagnostic], None]) -> Generator[None]:
    """Report what is said through Python's `warnings` while the block runs, of a line each, as its filters allow."""

    def show(message: Warning | str, *_: Any) -> None:
        report(Diagnostic("warning", " ".join(str(message).split())))

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


class Sources:
    """The lines of the files that diagnostics are about; files that were not added are read when first needed."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}

    def add(self, name: str, text: str) -> None:
        self._lines[name] = text.split("\n")

    def line(self, name: str, number: int) -> str | None:
        """Return a line of a file, counted from 1; None when there is no such file or line."""
        if name not in self._lines:
            text = _text_of(name)
            self._lines[name] = [] if text is None else text.split("\n")
        lines = self._lines[name]
        return lines[number - 1].rstrip("\r") if 1 <= number <= len(lines) else None


_LARGEST = 2**26


def _text_of(path: str) -> str | None:
    """Return what a file holds, None when it is no file that can be read: a location may name anything.

    Files of no size are left alone: the kernel has some in which it lets a reader wait.
    """
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode) or not 0 < found.st_size <= _LARGEST:
            return None
        with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
            return file.read()
    except (OSError, ValueError):  # a name may hold a zero byte
        return None


# How much of a source line is shown: enough for any that people write, not for a constant of megabytes.
_SHOWN = 400


def _excerpt(line: str, column: int, style: Style = plain) -> str:
    """Return a line, or the part of it around a column, with a caret below the column."""
    # Columns count bytes, as MLIR's do; the caret must stand under a character.
    count = max(column - 1, 0)
    before = line[:count].encode()[:count].decode("utf-8", "ignore")
    start = max(len(before) - _SHOWN // 2, 0) if len(line) > _SHOWN else 0
    head, tail = "..." if start else "", "..." if len(line) > start + _SHOWN else ""
    indent = "".join("\t" if c == "\t" else " " for c in head + before[start:])
    return f"{head}{line[start : start + _SHOWN]}{tail}\n{indent}{style('caret', '^')}"


def render(diagnostic: Diagnostic, sources: Sources, style: Style = plain) -> str:
    """Return the full text of a diagnostic: header, source line and caret where the source is known, then notes."""
    lines: list[str] = []
    shown = None
    for part in tree(diagnostic):
        lines.append(part.header(style))
        place = (part.file, part.line, part.column)
        line = None if part.file is None or place == shown else sources.line(part.file, part.line)
        if line is not None:
            lines.append(_excerpt(line, part.column, style))
        shown = place
    return "\n".join(lines)
