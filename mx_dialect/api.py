"""Modules in and out: parse, print and transform IR from Python, with the errors of the command line."""

from typing import Any, overload

from mx_dialect import asm, context_remarks, dialect, driver, passes, pipelines
from mx_dialect._mlir import ir
from mx_dialect.diagnostics import Diagnostic, MxError, error_at
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


def to_bytecode(module: Any) -> bytes:
    """Return a module or operation as MLIR bytecode, locations included. `parse` reads it."""
    return asm.to_bytecode(module)


def run_pipeline(module: Any, pipeline: str) -> None:
    """Run passes over a module, in place: "mx-to-linalg,canonicalize" or "builtin.module(...)".

    Passes of mx_dialect, named pipelines and MLIR's own passes mix freely.

    Raises:
        MxError: the pipeline does not parse, a pass refuses, or the result is invalid.
    """
    driver.run_pipeline(module, pipeline)


@overload
def transform(source: str, pipeline: str, generic: bool = False) -> str: ...
@overload
def transform(source: bytes, pipeline: str, generic: bool = False) -> bytes: ...
def transform(source: str | bytes, pipeline: str, generic: bool = False) -> str | bytes:
    """Parse a module, run a pipeline over it and return it as it came: as text, as text in UTF-8, or as bytecode.

    For programs that hold their IR in other bindings of MLIR, which can share text and bytecode only. `generic` is for
    text, as in `to_asm`.

    Raises:
        MxError: the source does not parse, or as `run_pipeline`.
    """
    module = parse(source)
    driver.run_pipeline(module, pipeline)
    if isinstance(source, str):
        return to_asm(module, generic)
    if isinstance(decoded(source, "<string>"), bytes):
        return to_bytecode(module)
    return to_asm(module, generic).encode()


class PassCallable:
    """A pass or named pipeline as the bindings' `PassManager.add` takes it; `text` is its name with its options."""

    def __init__(self, name: str, options: str = ""):
        # What the bindings call a pass that is added without a name.
        self.__name__ = name
        self.text = f"{name}{{{options}}}" if options else name

    def __repr__(self) -> str:
        return f"<pass {self.text}>"

    def __call__(self, op: Any, external_pass: Any = None) -> None:
        """Run on a builtin.module; the bindings give themselves as the second argument, which is not needed.

        Warnings and remarks go to the diagnostic handlers of the context.

        Raises:
            MxError: the operation is another one, its context has no mx dialect, or as `run_pipeline`.
        """
        if op.name != driver.MODULE:
            raise error_at(
                op,
                f"'{op.name}' op: '{self.__name__}' runs on {driver.MODULE} only, since it may rewrite what callers and"
                f" callees share; add it to the pass manager of the module, outside {op.name}(...)",
            )
        dialect.require_loaded(op.context)
        told: list[Diagnostic] = []
        try:
            driver.run_pipeline(op, self.text, driver.Settings(on_diagnostic=told.append))
        finally:
            # While passes run the handlers see nothing, so that errors come as exceptions.
            context_remarks.deliver(op.context, told)


def pass_(name: str, **options: Any) -> PassCallable:
    """Return a pass of mx_dialect, or a named pipeline, for a pass manager of the bindings.

        manager = PassManager("builtin.module", context)
        manager.add(mx_dialect.pass_("mx-to-linalg", scale_products="exponent"))

    Options are those of the command line, as Python values, with underscores. `add(p, argument=p.text)` makes
    `str(manager)` show the pass with its options. A pass that refuses raises `MxError` from `manager.run`; the module
    is then in the state in which the pass left it.

    Raises:
        MxError: no such pass, no such option, or a value that does not fit.
    """
    found = passes.get(name)
    if found is not None:
        return PassCallable(name, found.spell_options(options))
    if pipelines.get(name) is None:
        raise _unknown(name)
    if options:
        raise MxError(f"pipeline '{name}' takes no options")
    return PassCallable(name)


def _unknown(name: str) -> MxError:
    if passes.is_reserved(name):
        return MxError(f"'{name}' is a pass of MLIR; add it to the pass manager by its name")
    hint = passes.nearest(name, [*passes.names(), *pipelines.names()])
    return MxError(f"'{name}' does not refer to a registered pass or pass pipeline{hint}")
