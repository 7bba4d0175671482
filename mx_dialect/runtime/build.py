"""Make machine code from a function of a module.

The module is copied into a context of its own, so that the caller's stays as it is and constants, which a context never
frees, go with the context when compilation is done. Then:

1. Checks of open extents are derived and inserted (`shape_checks`).
2. The pipeline runs up to buffers. Arguments are marked as not writable, so that MLIR copies what it would overwrite,
   except those that hold a result in the end: those the kernel updates, in the caller's array or a copy of it.
3. The data of large constants leave the program: the kernel has them, once.
4. The rest of the pipeline makes LLVM IR; a result that is an argument is dropped, every other one is a fresh buffer
   that belongs to the caller. Asserts become a status, those of `machine_checks` included.
5. The execution engine makes machine code.
"""

import ctypes
import math
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mx_dialect import api, asm, dialect, driver, parallel, passes, pipelines
from mx_dialect._mlir import execution_engine, ir
from mx_dialect.diagnostics import Collector, Diagnostic, MxError, collecting, error_at
from mx_dialect.element_dtypes import dtype_of
from mx_dialect.elements import entries
from mx_dialect.external_constants import Constants, laid_out
from mx_dialect.lowering.block_matmul import SCALE_PRODUCTS
from mx_dialect.runtime.compiler import TAIL, Request
from mx_dialect.runtime.function_signature import of_function
from mx_dialect.runtime.in_place import updated_arguments
from mx_dialect.runtime.kernel import Interface, Kernel
from mx_dialect.runtime.level_checks import require_value_level
from mx_dialect.runtime.machine_checks import insert_machine_checks
from mx_dialect.runtime.shape_checks import insert_checks
from mx_dialect.transforms.mx_assert_to_status import ASSERTS, STATUS_ARGUMENT
from mx_dialect.transforms.mx_externalize_constants import CONSTANTS
from mx_dialect.transforms.mx_parallel_calls import RUNTIME

_CHECK = "mx-check-lowered"
_EXTERNALIZE = "mx-externalize-constants"
_ASSERTS_TO_STATUS = "mx-assert-to-status"
_WRITABLE = "bufferization.writable"

# Functions of the program get names that no function of the C library has.
_PREFIX = "mx."


@dataclass(frozen=True)
class Built:
    """A kernel, the symbol of its entry point, its large constants, and the engine that has its machine code."""

    kernel: Kernel
    symbol: str
    constants: Constants
    engine: Any

    def machine_code(self) -> bytes:
        """Return the object file that the engine made."""
        # The engine knows files only; nobody else can read this one.
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "kernel.o")
            self.engine.dump_to_object_file(path)
            with open(path, "rb") as file:
                return file.read()


def bytecode_of(module: Any) -> bytes:
    """Return a module of any context as bytecode.

    Raises:
        MxError: it is no module, or not a valid one.
    """
    operation = getattr(module, "operation", None)
    if not isinstance(operation, ir.Operation):
        raise MxError(f"compile takes MLIR text or a module, not {type(module).__name__}")
    collector = Collector()
    with collecting(operation.context, collector):
        try:
            operation.verify()
        except ir.MLIRError:
            raise MxError.of(*collector.errors) from None
    return asm.to_bytecode(operation)


def build(request: Request, keep_object: bool) -> Built:
    """Compile what is requested; with `keep_object` there is `machine_code`, which the engine holds once more for it.

    Raises:
        MxError: the program does not parse, there is no such function or its type cannot cross into Python, or the
            pipeline fails.
    """
    if request.scale_products not in SCALE_PRODUCTS:
        raise MxError(f"scale_products is one of {', '.join(SCALE_PRODUCTS)}, not {request.scale_products!r}")
    context = dialect.load()
    module = api.parse(request.source, context=context)
    function = _entry(module, request.entry)
    _isolate(module, function)
    require_value_level(module)
    signature = of_function(function)
    checks = insert_checks(function, signature)
    updated = updated_arguments(function, signature)
    name = signature.name
    del function

    lowering = f"mx-to-linalg{{scale-products={request.scale_products}}}"
    stages = pipelines.PIPELINES[request.pipeline].stages[: -len(TAIL)]
    _run(module, [lowering if stage == "mx-to-linalg" else stage for stage in stages])
    module, aliases = _bufferize(module, name, updated, context)
    constants = _take_constants(module)
    symbol = _rename(module, name)
    _function(module, symbol).attributes["llvm.emit_c_interface"] = ir.UnitAttr.get(context)
    # The first stage drops the results that are arguments; the others leave the function as it is.
    drop, *rest = _with_threads(pipelines.TO_LLVM, request.threads)
    _run(module, (drop,))
    left = len(ir.FunctionType(_function(module, symbol).type).results)
    if left != len(signature.result_slots) - len(aliases):
        raise MxError(f"internal error: @{name} returns {left} values, with {len(aliases)} known to be arguments")
    position = rest.index(_ASSERTS_TO_STATUS)
    _run(module, rest[:position])
    insert_machine_checks(module)
    _run(module, (_ASSERTS_TO_STATUS,))
    takes_status = _takes_status(_function(module, symbol))
    _run(module, rest[position + 1 : rest.index(_CHECK)])
    _verify(module)
    interface = Interface(signature, checks, aliases, _asserts(module), takes_status)
    engine = _engine(module, name, request.opt_level, keep_object)
    parallel_for = parallel.callback(request.threads)
    engine.register_runtime(RUNTIME, parallel_for)
    for constant, address in constants.addresses().items():
        engine.raw_register_runtime(constant, ctypes.c_void_p(address))
    kernel = Kernel((engine, parallel_for, constants), _entry_point(engine, symbol, module), interface)
    return Built(kernel, _packed(symbol), constants, engine)


def _with_threads(stages: Sequence[str], threads: int) -> list[str]:
    """Return stages in which contractions are divided for so many threads."""
    divided = pipelines.EMIT.replace("}", f" threads={threads}}}")
    return [divided if stage == pipelines.EMIT else stage for stage in stages]


def _run(module: Any, stages: Sequence[str]) -> None:
    """Run stages of our own pipelines. They are verified once, at their end: it would cost more than they do."""
    if stages:
        driver.run_pipeline(module, ",".join(stages), driver.Settings(verify_each=False))


def _verify(module: Any) -> None:
    """Verify a module on its way into machine code."""
    driver.run_pipeline(module, _CHECK)


def _functions(module: Any) -> dict[str, Any]:
    return {
        ir.StringAttr(op.attributes["sym_name"]).value: op.operation.opview
        for op in module.body
        if op.operation.name == "func.func"
    }


def _function(module: Any, name: str) -> Any:
    return _functions(module)[name]


def _is_public(function: Any) -> bool:
    attributes = function.attributes
    return "sym_visibility" not in attributes or ir.StringAttr(attributes["sym_visibility"]).value == "public"


def _entry(module: Any, name: str | None) -> Any:
    """Return the function to compile.

    Raises:
        MxError: no function of that name has a body; without a name, not exactly one public function has.
    """
    functions = {n: f for n, f in _functions(module).items() if not f.is_external}
    listed = ", ".join(f"@{n}" for n in functions) or "none"
    if name is not None:
        if name not in functions:
            hint = passes.nearest(name, list(functions))
            raise MxError(f"the module has no function @{name} with a body; it has {listed}{hint}")
        return functions[name]
    public = [n for n, f in functions.items() if _is_public(f)]
    if len(public) != 1:
        which = ", ".join(f"@{n}" for n in public)
        found = f"has several public functions, {which}" if public else f"has no public function (all: {listed})"
        raise MxError(f"the module {found}; name the one to compile with entry=")
    return functions[public[0]]


def _isolate(module: Any, entry: Any) -> None:
    """Drop what the entry does not use.

    Raises:
        MxError: it uses a function without a body.
    """
    with module.context:
        for function in _functions(module).values():
            visibility = "public" if function == entry else "private"
            function.attributes["sym_visibility"] = ir.StringAttr.get(visibility)
    _run(module, ("symbol-dce",))
    for name, function in _functions(module).items():
        if function.is_external:
            raise error_at(function, f"@{name} is only declared, and a kernel cannot link to it; give it a body")


def _bufferize(module: Any, name: str, updated: frozenset[int], context: ir.Context) -> tuple[Any, dict[int, int]]:
    """Run the bufferization stages; return the module and which result slots are which argument slots.

    `updated` are the argument slots that may be written to because they are thought to hold a result in the end. The
    module is bufferized again with fewer of them while one turns out not to.
    """
    while True:
        # A bufferized module cannot be taken back; without arguments to update there is nothing to find out.
        saved = asm.to_bytecode(module) if updated else None
        _mark_writable(_function(module, name), updated)
        _run(module, pipelines.BUFFERIZE)
        aliases = _aliases(_function(module, name))
        held = updated & set(aliases.values())
        if saved is None or held == updated:
            _require_plain_buffers(_function(module, name))
            return module, aliases
        module, updated = asm.parse_bytecode(saved, context), held


def _take_constants(module: Any) -> Constants:
    """Take the data of large constants out of a bufferized module.

    Raises:
        MxError: a constant has no data, or not as much as its type says.
    """
    attributes = module.operation.attributes
    if CONSTANTS in attributes:
        # Its symbols would be those of the machine code, malloc among them.
        raise error_at(
            module.operation,
            f"'builtin.module' op has {CONSTANTS} already, the data of constants that {_EXTERNALIZE} took out; compile"
            " does that itself: give it the program from before, or drop the attribute",
        )
    _run(module, (_EXTERNALIZE,))
    if CONSTANTS not in attributes:
        return Constants()
    data = {named.name: named.attr for named in ir.DictAttr(attributes[CONSTANTS])}
    del attributes[CONSTANTS]
    dtypes = {symbol: dtype_of(str(value.type.element_type)) for symbol, value in data.items()}
    sizes = {s: math.prod(data[s].type.shape) * dtype.itemsize for s, dtype in dtypes.items() if dtype is not None}
    constants = laid_out(sizes.items())
    for symbol, size in sizes.items():
        first = constants.offsets[symbol]
        constants.memory[first : first + size] = _bytes_of(data[symbol], dtypes[symbol])
    return constants


def _bytes_of(data: Any, dtype: Any) -> Any:
    try:
        return np.ascontiguousarray(entries(data, dtype)).view(np.uint8).reshape(-1)
    except LookupError as lack:
        raise MxError(f"a constant of type {data.type} cannot be read: {lack}; give the module its data") from None


def _mark_writable(function: Any, updated: frozenset[int]) -> None:
    """Tell the bufferization which arguments it must not write to."""
    with function.context:
        attributes = (
            list(ir.ArrayAttr(function.attributes["arg_attrs"]))
            if "arg_attrs" in function.attributes
            else [ir.DictAttr.get({}) for _ in function.arguments]
        )
        for number, argument in enumerate(function.arguments):
            if isinstance(argument.type, ir.RankedTensorType):
                merged = {named.name: named.attr for named in ir.DictAttr(attributes[number])}
                merged[_WRITABLE] = ir.BoolAttr.get(number in updated)
                attributes[number] = ir.DictAttr.get(merged)
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)


def _aliases(function: Any) -> dict[int, int]:
    """Return which results of a bufferized function are which of its arguments, as the next stage will find them."""
    returns = [op.operation for block in function.regions[0] for op in block if op.operation.name == "func.return"]
    if len(returns) != 1:
        return {}
    arguments = list(function.arguments)
    aliases: dict[int, int] = {}
    for number, value in enumerate(returns[0].operands):
        while isinstance(value, ir.OpResult) and value.owner.operation.name == "memref.cast":
            value = value.owner.operation.operands[0]
        if value in arguments:
            aliases[number] = arguments.index(value)
    return aliases


def _require_plain_buffers(function: Any) -> None:
    """Refuse buffers that an array cannot stand for, which only attributes of the function can ask for."""
    for type_ in (*function.type.inputs, *function.type.results):
        if isinstance(type_, ir.MemRefType):
            plain = ir.MemRefType.get(type_.shape, type_.element_type, loc=function.location)
            if type_ != plain:
                raise error_at(function, f"a buffer of type '{type_}' is no numpy array; expected '{plain}'")


def _rename(module: Any, entry: str) -> str:
    """Give every function a name that is the program's own; return that of the entry."""
    with module.context:
        table = ir.SymbolTable(module.operation)
        for name, function in _functions(module).items():
            ir.SymbolTable.replace_all_symbol_uses(name, _PREFIX + name, module.operation)
            ir.SymbolTable.set_symbol_name(function.operation, _PREFIX + name)
        del table
    return _PREFIX + entry


def _takes_status(function: Any) -> bool:
    """Tell whether a function has the argument that mx-assert-to-status adds."""
    if "arg_attrs" not in function.attributes:
        return False
    attributes = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
    return bool(attributes) and STATUS_ARGUMENT in ir.DictAttr(attributes[-1])


def _asserts(module: Any) -> tuple[Diagnostic, ...]:
    """Return what each assert of the program says when it fails."""
    attributes = module.operation.attributes
    if ASSERTS not in attributes:
        return ()
    return tuple(_assert(ir.DictAttr(entry)) for entry in ir.ArrayAttr(attributes[ASSERTS]))


def _assert(entry: Any) -> Diagnostic:
    message = ir.StringAttr(entry["message"]).value
    if "file" not in entry:
        return Diagnostic("error", message)
    line, column = (ir.IntegerAttr(entry[key]).value for key in ("line", "column"))
    return Diagnostic("error", message, ir.StringAttr(entry["file"]).value, line, column)


def _engine(module: Any, name: str, opt_level: int, keep_object: bool) -> Any:
    """Return the execution engine of a lowered module.

    Raises:
        MxError: LLVM cannot translate it.
    """
    collector = Collector()
    with collecting(module.context, collector):
        try:
            return execution_engine.ExecutionEngine(module, opt_level=opt_level, enable_object_dump=keep_object)
        except RuntimeError as error:
            raise MxError.of(Diagnostic("error", f"@{name}: {error}"), *collector.errors) from error


def _packed(symbol: str) -> str:
    """Return the symbol that the execution engine gives the packed form of a function's C interface."""
    return f"_mlir__mlir_ciface_{symbol}"


def _entry_point(engine: Any, symbol: str, module: Any) -> int:
    """Return the address of a function's packed C interface; this makes the machine code.

    Raises:
        MxError: a function that it calls is not in this process.
    """
    address: int = engine.raw_lookup(f"_mlir_ciface_{symbol}")
    if not address:
        declared = [
            ir.StringAttr(op.attributes["sym_name"]).value
            for op in module.body
            if op.operation.name == "llvm.func" and not len(op.operation.regions[0].blocks)
        ]
        name = symbol.removeprefix(_PREFIX)
        raise MxError(f"@{name} cannot be linked: one of {', '.join(sorted(declared))} is not in this process")
    return address
