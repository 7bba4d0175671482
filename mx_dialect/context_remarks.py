"""Remarks for the diagnostic handlers of a context: how what passes tell reaches users who run them themselves.

The bindings let Python emit errors only. But `transform.debug.emit_remark_at` emits a remark with any text at the
operation it is given, and MLIR hands that to the handlers like every other; so a module is made that holds that
operation and one to be remarked on, at the right place, and MLIR interprets it.

A warning arrives as a remark that says so, and a note after what it belongs to. MLIR adds a note of its own to each,
`see current operation`, in which the operation remarked on stands.
"""

from collections.abc import Sequence
from typing import Any

from mx_dialect._mlir import ir, passmanager
from mx_dialect.diagnostics import Diagnostic, tree, without_printed_op

_SCRIPT = """
module attributes {transform.with_named_sequence} {
  module attributes {transform.target_tag = "mx_dialect.remark"} {}
  transform.named_sequence @__transform_main(%place: !transform.any_op {transform.readonly}) {
    transform.debug.emit_remark_at %place, "" : !transform.any_op
    transform.yield
  }
}"""
_PIPELINE = "builtin.module(transform-interpreter{debug-payload-root-tag=mx_dialect.remark})"


def deliver(context: Any, diagnostics: Sequence[Diagnostic]) -> None:
    """Emit diagnostics that are no errors, and their notes, as remarks; they are lost if the context has no handler."""
    for diagnostic in diagnostics:
        for part in tree(without_printed_op(diagnostic)):
            _emit(context, part)


def _emit(context: Any, diagnostic: Diagnostic) -> None:
    prefix = "" if diagnostic.severity == "remark" else f"{diagnostic.severity}: "
    with context, _location(diagnostic):
        script = ir.Module.parse(_SCRIPT)
        place, sequence = script.body.operations
        place.operation.location = ir.Location.current
        emit = sequence.regions[0].blocks[0].operations[0]
        emit.attributes["message"] = ir.StringAttr.get(f"{prefix}{diagnostic.message}")
        passmanager.PassManager.parse(_PIPELINE).run(script.operation)


def _location(diagnostic: Diagnostic) -> Any:
    if diagnostic.file is None:
        return ir.Location.unknown()
    return ir.Location.file(diagnostic.file, diagnostic.line, diagnostic.column)
