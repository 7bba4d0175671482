"""`--verify-roundtrip`: what was parsed must be the same when it is written and read again, in each form there is."""

from collections.abc import Callable
from typing import Any

from mx_dialect import asm
from mx_dialect.diagnostics import Diagnostic, MxError, at

_NAME = "roundtrip"


def check(op: Any, fresh: Callable[[], Any]) -> None:
    """Write an operation in each form, read that in a context that `fresh` makes, and compare, locations included.

    Raises:
        MxError: a form cannot be read again or differs.
    """
    is_module = op.operation.name == "builtin.module"
    reference = _text(op)
    for form, data in (
        ("custom text", asm.to_asm(op, enable_debug_info=True)),
        ("generic text", asm.to_asm(op, generic=True, enable_debug_info=True)),
        ("bytecode", asm.to_bytecode(op)),
    ):
        try:
            if isinstance(data, bytes):
                again = asm.parse_bytecode(data, fresh(), _NAME)
                # MLIR puts a module around what is none.
                text = _text(again if is_module else again.body.operations[0])
            else:
                text = _text(asm.parse(data, fresh(), _NAME, is_module))
        except MxError as error:
            notes = tuple(Diagnostic("note", d.header()) for d in error.diagnostics)
            message = f"failed to parse the {form} back, cannot verify round-trip"
            raise MxError.of(at(op.operation, "error", message, notes)) from None
        if text != reference:
            note = Diagnostic("note", _difference(reference, text))
            raise MxError.of(at(op.operation, "error", f"the module read back from its {form} differs", (note,)))


def _text(op: Any) -> str:
    return asm.to_asm(op, generic=True, enable_debug_info=True, use_local_scope=True, assume_verified=True)


def _difference(reference: str, text: str) -> str:
    """Return the first line that differs, in both spellings."""
    pairs = zip([*reference.split("\n"), ""], [*text.split("\n"), ""], strict=False)
    before, after = next((b, a) for b, a in pairs if b != a)
    return f"'{before.strip()}' became '{after.strip()}'"
