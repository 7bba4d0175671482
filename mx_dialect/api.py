"""Modules in and out: parse, print and transform IR from Python, with the errors of the command line."""

from typing import Any

from mx_dialect import asm, dialect, driver
from mx_dialect._mlir import ir
from mx_dialect.input_text import decoded


def parse(text: str | bytes, source_name: str | None = None, context: ir.Context | None = None) -> ir.Module:
    """Parse MLIR text (custom or generic mx syntax; UTF-8 as bytes) or bytecode and return the verified module.

    `source_name` stands in locations and diagnostics. The module is made in `context`, into which the dialect is
    loaded, or in a new context.

    Raises:
        MxError: the text does not parse or does not verify; `diagnostics` has the positions.
    """
    loaded = dialect.load(context)
    name = source_name or "<string>"
    source = decoded(text, name) if isinstance(text, bytes) else text
    if isinstance(source, bytes):
        return asm.parse_bytecode(source, loaded, name)
    return asm.parse(source, loaded, name)


def to_asm(module: Any, generic: bool = False) -> str:
    """Return a module or operation as text: in custom syntax, or in MLIR's generic form with types as stored.

    The generic form can be read by any MLIR that has the dialect's definition, without this package's syntax.
    """
    return asm.to_asm(module, generic=generic)


def run_pipeline(module: Any, pipeline: str) -> None:
    """Run passes over a module, in place: "mx-to-linalg,canonicalize" or "builtin.module(...)".

    Passes of mx_dialect, named pipelines and MLIR's own passes mix freely.

    Raises:
        MxError: the pipeline does not parse, a pass refuses, or the result is invalid.
    """
    driver.run_pipeline(module, pipeline)
