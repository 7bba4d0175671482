"""Custom assembly: parse text in which mx operations and types are written as users write them, and print it.

The bindings know neither custom forms of operations defined in Python nor custom types, so text is translated: to the
generic form before MLIR parses it (`asm.reader`), back after MLIR prints it (`asm.printer`). One grammar serves every
operation of the dialect:

    %r = mx.name %a, %b#1 {attributes} : T1, T2 -> T3

Attributes, and operands and results that an operation does not have, are left out; several results are written
`-> (T3, T4)`. In the list of types `<...>` is short for `!mx.tensor<...>`. Generic input is accepted everywhere.

Operands can have two more forms, which an operation's class declares: lists of numbers and index values behind the
operands (`asm.index_lists`), and groups behind a symbol (`asm.operand_groups`):

    %r = mx.extract_slice %a[0, %i] [32, 64] : T1 -> T2
    %r, %t = mx.submit @kernel(%a, %i) after(%t0) cores(%n) if(%p) : T1, index, !mx.task, index, i1 -> (T2, !mx.task)
"""

import io
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from mx_dialect._mlir import ir
from mx_dialect.asm.lexer import Source, bare_words
from mx_dialect.asm.position_map import Translation
from mx_dialect.asm.printer import to_custom
from mx_dialect.asm.reader import to_generic
from mx_dialect.asm.table import operation_table, unknown_attribute, unknown_operation
from mx_dialect.crash_guard import limited
from mx_dialect.diagnostics import Collector, Diagnostic, MxError, collecting, is_unreadable, tell
from mx_dialect.types import verify_types

__all__ = [
    "Translation",
    "operation_table",
    "parse",
    "parse_bytecode",
    "to_asm",
    "to_bytecode",
    "to_custom",
    "to_generic",
]

SECONDS = 10.0
BYTES_A_SECOND = 100_000
"""How much processor time reading bytecode may take in a command: `SECONDS`, and more for long data."""

# What MLIR calls text that came from no file.
_UNNAMED = "-"
_UNREGISTERED = re.compile(r"unregistered operation '(mx\.[^']*)' found in dialect")


def parse(text: str, context: ir.Context, source_name: str = _UNNAMED, implicit_module: bool = True) -> Any:
    """Return the module that text in custom or generic assembly describes, verified.

    A module is put around anything else than a single `module` operation, as mlir-opt does; unless `implicit_module`,
    the text must hold exactly one operation, which is returned. Locations, in the IR and in errors, are the user's own:
    lines and byte columns of `text`, in a file called `source_name`.

    Raises:
        MxError: the text is not valid; with one diagnostic for each thing that is wrong and was found.
    """
    # MLIR calls unnamed text "-", which a location written in the text may be called as well: that one is renamed.
    stdin_name = _unused_name(text)
    translation = to_generic(text, source_name, stdin_name=stdin_name)
    # Not a function inside this one: one that calls itself keeps the text until the next collection of garbage.
    position = partial(_translated, translation, source_name, stdin_name)
    with _readable(source_name):
        module = _parse(translation.text, context, position, implicit_module)
        if source_name != _UNNAMED or translation.text != text:
            _Locations(context, translation, source_name, stdin_name).restore(module.operation)
        return _verified(module)


def parse_bytecode(data: bytes, context: ir.Context, source_name: str = _UNNAMED) -> ir.Module:
    """Return the module that MLIR bytecode holds, verified; locations are those stored in it.

    MLIR's reader may end the process on damaged data, or find no end: take them from whom you trust, or read them in a
    child process, as mx-opt and mx-run do.

    Raises:
        MxError: the data are not valid bytecode of a valid module.
    """

    def position(diagnostic: Diagnostic) -> Diagnostic:
        return diagnostic if diagnostic.file != _UNNAMED else replace(diagnostic, file=source_name)

    with _readable(source_name), limited(SECONDS + len(data) / BYTES_A_SECOND):
        return _verified(_parse(data, context, position))


def to_asm(op: Any, generic: bool = False, **flags: Any) -> str:
    """Return the assembly of an operation or module: custom, or MLIR's own generic form.

    The generic form needs no reader but MLIR's with the dialect loaded. `flags` go to the bindings' `get_asm`
    (`enable_debug_info`, `use_local_scope`, `large_elements_limit`, ...). Unless `assume_verified` is set, MLIR
    verifies first and prints invalid operations in generic form.
    """
    operation = op.operation
    if generic:
        return operation.get_asm(print_generic_op_form=True, **flags)
    return to_custom(operation.get_asm(**flags))


def to_bytecode(op: Any, version: int | None = None) -> bytes:
    """Return the MLIR bytecode of an operation or module, locations included.

    Raises:
        MxError: the bindings cannot write that version of the format (None is the newest).
    """
    data = io.BytesIO()
    collector = Collector()
    with collecting(op.operation.context, collector):
        try:
            op.operation.write_bytecode(data, desired_version=version)
        except ValueError as error:
            messages = [d.message for d in collector.errors] or [str(error)]
            raise MxError(f"cannot write bytecode: {messages[0]}") from None
    return data.getvalue()


def _translated(
    translation: Translation, source_name: str, stdin_name: str | None, diagnostic: Diagnostic
) -> Diagnostic:
    """Move a diagnostic of translated text, and its notes, to where the user's text has it."""
    notes = tuple(_translated(translation, source_name, stdin_name, note) for note in diagnostic.notes)
    if stdin_name is not None and diagnostic.file == stdin_name:
        return replace(diagnostic, file=_UNNAMED, notes=notes)
    if diagnostic.file != _UNNAMED:
        return replace(diagnostic, notes=notes)
    line, column = translation.position(diagnostic.line, diagnostic.column)
    return replace(diagnostic, file=source_name, line=line, column=column, notes=notes)


@contextmanager
def _readable(source_name: str) -> Generator[None]:
    """Turn what the bindings raise about a string that is not valid UTF-8, as MLIR allows, into an `MxError`."""
    try:
        yield
    except (RuntimeError, UnicodeDecodeError) as error:
        if not is_unreadable(error):
            raise
        message = "a name or string of the IR is not valid UTF-8, and the bindings cannot read it"
        raise MxError.of(Diagnostic("error", message, source_name)) from None


def _unused_name(text: str) -> str | None:
    """Return a file name that no location in the text has, or None when none is called "-"."""
    if f'"{_UNNAMED}"' not in text:
        return None
    name = _UNNAMED * 2
    while f'"{name}"' in text:
        name += _UNNAMED
    return name


def _parse(
    source: str | bytes,
    context: ir.Context,
    position: Callable[[Diagnostic], Diagnostic],
    implicit_module: bool = True,
) -> Any:
    """Let MLIR parse; what it reports is moved to the place that `position` says.

    Raises:
        MxError: every error that MLIR reports.
    """
    collector = Collector()
    try:
        with collecting(context, collector):
            if implicit_module:
                module = ir.Module.parse(source, context)
            else:
                module = ir.Operation.parse(source, source_name=_UNNAMED, context=context)
    except ir.MLIRError as error:
        errors = [_explained(position(d)) for d in collector.errors]
        if not errors:
            reason = str(error).partition("\n")[0]
            errors = [position(_unexplained(source, reason))]
        raise MxError.of(*errors) from None
    for diagnostic in collector.diagnostics:
        tell(position(diagnostic))
    return module


def _explained(diagnostic: Diagnostic) -> Diagnostic:
    """Say what the user can do about an error whose text is about MLIR's insides."""
    if diagnostic.message == "expected dynamic attribute":
        return replace(diagnostic, message=unknown_attribute(), notes=())
    match = _UNREGISTERED.search(diagnostic.message)
    return diagnostic if match is None else replace(diagnostic, message=unknown_operation(match[1]), notes=())


def _unexplained(source: str | bytes, reason: str) -> Diagnostic:
    """Find out why MLIR refused a source without a word: it does that at a bare mx operation.

    The one left in translated text looked like an attribute's name to our reader, as in `{ mx.compose }`.
    """
    known = operation_table()
    if isinstance(source, str):
        for word in bare_words(source):
            if word.text in known:
                return Source(source, _UNNAMED).diagnostic(word.start, f"expected operands and types after {word.text}")
    return Diagnostic("error", f"{reason}; MLIR gives no reason", _UNNAMED)


def _verified(module: Any) -> Any:
    errors = verify_types(module.operation)
    if errors:
        raise MxError.of(*errors)
    return module


class _Locations:
    """Gives the operations of a module parsed from translated text the locations of the user's text."""

    def __init__(self, context: ir.Context, translation: Translation, source_name: str, stdin_name: str | None):
        self._context = context
        self._translation = translation
        self._source_name = source_name
        self._renamed = None if stdin_name is None else f'"{stdin_name}"'

    def restore(self, root: ir.Operation) -> None:
        root.walk(self._visit, ir.WalkOrder.PRE_ORDER)

    def _visit(self, op: Any) -> Any:
        location = self._restored(op.location)
        if location is not None:
            op.location = location
        for region in op.regions:
            for block in region:
                for argument in block.arguments:
                    location = self._restored(argument.location)
                    if location is not None:
                        argument.set_location(location)
        return ir.WalkResult.ADVANCE

    def _restored(self, location: Any) -> Any:
        """Return the user's location for one that MLIR made, None where they are the same."""
        if isinstance(location, ir.FileLineColLoc):
            # Not through `filename`: the bindings abort the process when the user's is not UTF-8.
            line, column = location.start_line, location.start_col
            if location == ir.Location.file(_UNNAMED, line, column, self._context):
                return ir.Location.file(self._source_name, *self._translation.position(line, column), self._context)
        if self._renamed is None:
            return None
        spelled = str(location)
        if self._renamed not in spelled:
            return None
        written = spelled.replace(self._renamed, f'"{_UNNAMED}"')
        # The bindings parse locations only as part of an operation.
        return ir.Module.parse(f"module {{}} {written}", self._context).operation.location
