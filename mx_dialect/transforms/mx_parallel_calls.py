"""mx-parallel-calls: let the runtime divide calls of functions that work on a range.

--mx-schedule-cpu leaves calls whose first two operands are a range, which may be divided at multiples of a granule:

    llvm.call @f.part(%lo, %hi, %a, ...) {mx.parallel = 32 : i64} : (i64, i64, !llvm.ptr, ...) -> ()

becomes

    %s = llvm.alloca ... : !llvm.struct<(ptr, ...)>          // with all operands but the range
    llvm.call @_mlir_ciface_mx_parallel_for(%entry, %s, %lo, %hi, %granule)

where %entry is the address of a new function that takes %s and a range, and calls @f.part. The runtime
(`parallel.py`) gives each thread a part of the range.
"""

from typing import Any

from mx_dialect import passes
from mx_dialect._mlir import ir, llvm
from mx_dialect.diagnostics import error_at
from mx_dialect.passes import Pass, register_pass
from mx_dialect.schedule.parts import PARALLEL
from mx_dialect.walk import operations

RUNTIME = "mx_parallel_for"
"""What the runtime registers its function as."""

SYMBOL = f"_mlir_ciface_{RUNTIME}"
"""What it is called in the program: the execution engine adds the prefix."""

_ENTRY = ".entry"


def _pointer() -> Any:
    return ir.Type.parse("!llvm.ptr")


def _i64() -> Any:
    return ir.IntegerType.get_signless(64)


def _symbol(op: Any) -> str | None:
    """Return the name of the symbol that an operation defines, None if it defines none."""
    attributes = op.operation.attributes
    return ir.StringAttr(attributes["sym_name"]).value if "sym_name" in attributes else None


def _function_type(*arguments: Any) -> Any:
    return ir.Type.parse(f"!llvm.func<void ({', '.join(str(a) for a in arguments)})>")


def _struct(types: list[Any]) -> Any:
    inside = ", ".join(str(t).removeprefix("!llvm.") for t in types)
    return ir.Type.parse(f"!llvm.struct<({inside})>")


def _require_range(call: Any) -> None:
    """Refuse a marked call that is not one of a range in whole granules.

    Raises:
        MxError: at the call.
    """
    rule = "'llvm.call' op with mx.parallel calls a function by name, with the two i64 of a range first, for no result"
    operands = list(call.operands)
    if "callee" not in call.attributes or len(call.results) or len(operands) < 2:
        raise error_at(call, rule)
    if any(value.type != _i64() for value in operands[:2]):
        raise error_at(call, rule)
    granule = call.attributes[PARALLEL]
    if not isinstance(granule, ir.IntegerAttr) or granule.type != _i64() or granule.value < 1:
        raise error_at(call, f"'llvm.call' op mx.parallel must be a positive i64, but is {granule}")


def _declare_runtime(module: Any) -> None:
    if any(_symbol(op) == SYMBOL for op in module.regions[0].blocks[0]):
        return
    with ir.InsertionPoint.at_block_begin(module.regions[0].blocks[0]):
        type_ = _function_type(_pointer(), _pointer(), _i64(), _i64(), _i64())
        llvm.LLVMFuncOp(SYMBOL, ir.TypeAttr.get(type_), sym_visibility=ir.StringAttr.get("private"))


def _add_entry(module: Any, callee: str, struct: Any, types: list[Any]) -> str:
    """Add the function that calls `callee` on what a struct holds and a range; return its name."""
    type_ = _function_type(_pointer(), _i64(), _i64())
    with ir.InsertionPoint(module.regions[0].blocks[0]):
        entry = llvm.LLVMFuncOp(callee + _ENTRY, ir.TypeAttr.get(type_), sym_visibility=ir.StringAttr.get("private"))
    block = ir.Block.create_at_start(entry.operation.regions[0], [_pointer(), _i64(), _i64()])
    with ir.InsertionPoint(block):
        address, start, stop = block.arguments
        values = [llvm.load(t, _field(struct, address, i)) for i, t in enumerate(types)]
        _call(callee, [start, stop, *values])
        llvm.ReturnOp()
    return callee + _ENTRY


def _field(struct: Any, address: Any, number: int) -> Any:
    """Return the address of a field of a struct."""
    return llvm.getelementptr(_pointer(), address, [], [0, number], ir.TypeAttr.get(struct), llvm.GEPNoWrapFlags.none)


def _call(callee: str, operands: list[Any]) -> None:
    llvm.CallOp(None, operands, [], ir.DenseI32ArrayAttr.get([]), callee=ir.FlatSymbolRefAttr.get(callee))


def _divide(module: Any, call: Any, entries: dict[str, str]) -> None:
    callee = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
    start, stop, *values = call.operands
    types = [v.type for v in values]
    struct = _struct(types)
    if callee not in entries:
        entries[callee] = _add_entry(module, callee, struct, types)
    # Not where the call is, which may be inside a loop: each alloca takes more of the stack.
    with ir.InsertionPoint.at_block_begin(_entry_block(call)):
        one = llvm.mlir_constant(ir.IntegerAttr.get(_i64(), 1))
        address = llvm.alloca(_pointer(), one, ir.TypeAttr.get(struct))
    with ir.InsertionPoint(call):
        for number, value in enumerate(values):
            llvm.store(value, _field(struct, address, number))
        entry = llvm.mlir_addressof(_pointer(), ir.FlatSymbolRefAttr.get(entries[callee]))
        granule = llvm.mlir_constant(call.attributes[PARALLEL])
        _call(SYMBOL, [entry, address, start, stop, granule])
    call.erase()


def _entry_block(call: Any) -> Any:
    op = call
    while op.name != "llvm.func":
        op = op.parent.operation
    return op.regions[0].blocks[0]


def run(root: Any, options: passes.NoOptions) -> None:
    """Rewrite every marked call under a module, in place."""
    with root.context, ir.Location.unknown():
        calls = operations(root, lambda op: op.name == "llvm.call" and PARALLEL in op.attributes)
        if not calls:
            return
        for call in calls:
            _require_range(call)
        _declare_runtime(root)
        entries: dict[str, str] = {}
        for call in calls:
            with call.location:
                _divide(root, call, entries)


PASS = register_pass(
    Pass(
        name="mx-parallel-calls",
        summary="Let the runtime divide calls of functions that work on a range among threads",
        run=run,
        requires="the LLVM dialect, and a runtime with mx_parallel_for where there are such calls",
        leaves="no mx.parallel",
    )
)
