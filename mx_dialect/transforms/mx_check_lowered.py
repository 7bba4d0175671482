"""mx-check-lowered: refuse a module that is not ready for machine code.

convert-arith-to-llvm and its fellows report success and leave behind what they cannot convert; that fails only in the
translation to LLVM IR, far from its cause. This pass changes nothing. After it no type, be it of an operand, a
result, a block argument or an attribute, mentions a float of 8 bits or fewer or an mx type, and no
builtin.unrealized_conversion_cast is left. Nor is there a load or store of a vector of 4- or 6-bit integers: LLVM packs
those without gaps, while a buffer of MX floats holds one a byte, as the scalar accesses of LLVM do.

    %0 = builtin.unrealized_conversion_cast %arg0 : i8 to f8E4M3FN
    %1 = arith.extf %0 : f8E4M3FN to f32

gives two errors; the second asks for --mx-expand-narrow-floats. Data may keep its MX type, for it is translated to its
bits: `llvm.mlir.constant(1.0 : f8E4M3FN) : i8` is fine.
"""

import re
from collections.abc import Iterator
from typing import Any

from mx_dialect import diagnostics, passes
from mx_dialect._mlir import ir
from mx_dialect.diagnostics import Diagnostic, MxError
from mx_dialect.transforms.narrow_float_conversions import NARROW_FLOATS

_CAST = "builtin.unrealized_conversion_cast"
_CONVERSIONS = ("arith.extf", "arith.truncf", "arith.convertf", "arith.scaling_extf", "arith.scaling_truncf")
_MOVES = ("arith.bitcast", "arith.constant", "arith.select")

# Element types follow an `x` without a gap, so no word boundary precedes them.
_NOT_LOWERED = re.compile(r"!mx\.\w+|f[468]E\d+M\d+\w*")
_PACKED = re.compile(r"vector<(\[?\d+\]?x)+i[46]>")
_CONSTANT = re.compile(r"llvm\.mlir\.constant\([^()\n]*\)")
_QUOTED = re.compile(r'"[^"]*"')

_UNPACK = "access vectors of i8, and truncate or extend the elements"
_LOWERINGS = {
    "bufferization": "--one-shot-bufferize",
    "cf": "--convert-cf-to-llvm",
    "func": "--convert-func-to-llvm",
    "linalg": "--convert-linalg-to-loops",
    "memref": "--finalize-memref-to-llvm",
    "scf": "--convert-scf-to-cf",
    "tensor": "--one-shot-bufferize",
    "vector": "--convert-vector-to-llvm",
}


def _not_lowered(type_: Any) -> str | None:
    """Return the first narrow float or mx type that a type mentions at any depth, or None."""
    # The name of an LLVM struct is in quotes and is no type.
    found = _NOT_LOWERED.search(_QUOTED.sub("", str(type_)))
    return found[0] if found else None


def _types_of(op: Any) -> Iterator[Any]:
    """Yield the types of an operation's results, operands, block arguments and type attributes."""
    for value in (*op.results, *op.operands):
        yield value.type
    for region in op.regions:
        for block in region:
            for argument in block.arguments:
                yield argument.type
    for name in op.attributes:
        attribute = op.attributes[name]
        if isinstance(attribute, ir.TypeAttr):
            yield attribute.value


def _remedy(op: Any, found: str) -> str:
    """Return what to do about an operation with a type that mentions `found`."""
    if found == "!mx.x4":
        return "run --mx-neuron-to-linalg"
    if found.startswith("!mx."):
        return "run --mx-to-linalg"
    if found not in NARROW_FLOATS:
        return f"{found} is not an MX format and nothing lowers it; convert it to f32 where it arises"
    if op.name in _CONVERSIONS:
        return "run --mx-expand-narrow-floats before the conversion to LLVM"
    dialect = op.name.partition(".")[0]
    if dialect == "arith" and op.name not in _MOVES:
        return "compute in f32, and run --mx-expand-narrow-floats before the conversion to LLVM"
    return f"run {_LOWERINGS.get(dialect, f'--convert-{dialect}-to-llvm')}"


def _complaint(op: Any) -> str | None:
    """Return what is not lowered about an operation and which pass lowers it, or None."""
    if op.name == _CAST:
        return (
            f"'{_CAST}' to '{op.results[0].type}' is left: lower the operations on both sides of it, then run"
            " --reconcile-unrealized-casts"
        )
    accesses_memory = op.name.startswith("llvm.") and op.name.endswith(("load", "store"))
    for type_ in _types_of(op):
        if accesses_memory and _PACKED.fullmatch(str(type_)):
            return f"'{op.name}' of '{type_}' packs elements that buffers hold one a byte: {_UNPACK}"
        found = _not_lowered(type_)
        if found is not None:
            return f"'{op.name}' has type '{type_}', which does not exist in LLVM: {_remedy(op, found)}"
    return None


def run(root: Any, options: passes.NoOptions) -> None:
    """Check every operation under `root`.

    Raises:
        MxError: something is not lowered; one error an operation.
    """
    # Printing is MLIR's work and fast, and mostly shows that there is nothing to look for.
    text = root.get_asm(assume_verified=True, large_elements_limit=16, large_resource_limit=16)
    # What a constant is made from may have a narrow type; only its result's counts.
    text = _CONSTANT.sub("", text)
    if not any(pattern.search(text) for pattern in (_NOT_LOWERED, _PACKED)) and _CAST not in text:
        return
    errors: list[Diagnostic] = []

    def visit(op: Any) -> Any:
        complaint = _complaint(op)
        if complaint is not None:
            errors.append(diagnostics.at(op, "error", complaint))
        return ir.WalkResult.ADVANCE

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    if errors:
        raise MxError.of(*errors)


PASS = passes.register_pass(
    passes.Pass(
        name="mx-check-lowered",
        summary="Fail if a narrow float, an mx type or an unrealized conversion cast is left",
        run=run,
        requires="a module that was lowered to the LLVM dialect",
        leaves="the module as it is",
    )
)
