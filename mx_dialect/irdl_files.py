"""IRDL, MLIR's language for dialects: files that define further dialects, and the definition of this one.

The text of this dialect lets tools that know nothing of it read and check its operations, in generic form:

    mx-opt --emit-irdl -o mx.irdl.mlir && mlir-opt --irdl-file=mx.irdl.mlir program.mlir

It has names, numbers of operands and results, attributes and simple constraints; verifiers written in Python, traits
and the custom syntax are not part of IRDL.
"""

from typing import Any

from mx_dialect import asm, dialect, driver
from mx_dialect._mlir import ir, irdl
from mx_dialect.diagnostics import Collector, MxError, collecting, error_at


def load(text: str, context: Any, name: str) -> None:
    """Register the dialects that the text of a file called `name` defines in a context.

    Raises:
        MxError: the text is not valid, defines no dialect, or one that exists.
    """
    module = asm.parse(text, context, name)
    found = [op for op in module.body.operations if op.operation.name == "irdl.dialect"]
    if not found:
        raise MxError(f"'{name}' defines no dialect: it has no 'irdl.dialect' op")
    for op in found:
        namespace = op.attributes["sym_name"].value
        if _exists(namespace, context):
            # MLIR would end the process.
            raise error_at(op, f"'irdl.dialect' op redefines dialect '{namespace}', which exists; give it another name")
    collector = Collector()
    with collecting(context, collector):
        try:
            irdl.load_dialects(module)
        except (RuntimeError, ValueError, ir.MLIRError) as error:
            raise (
                MxError(f"cannot load '{name}': {error}") if not collector.errors else MxError.of(*collector.errors)
            ) from None
    if collector.errors:
        raise MxError.of(*collector.errors)


def _exists(namespace: str, context: Any) -> bool:
    try:
        context.get_dialect_descriptor(namespace)
    except ValueError:
        return False
    return True


def dialect_text() -> str:
    """Return the definition of the mx dialect."""
    with dialect.load(), ir.Location.unknown():
        module = dialect.Mx._emit_module()
    driver.run_pipeline(module, "canonicalize,cse")
    return asm.to_asm(module).rstrip() + "\n"
