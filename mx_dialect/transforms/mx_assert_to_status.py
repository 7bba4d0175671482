"""mx-assert-to-status: a failing `cf.assert` makes its function return a status instead of ending the process.

MLIR lowers `cf.assert` to a call of `abort`, which no host program can survive. Here every function that can reach an
assert, itself or through calls, gets one more argument, marked `mx.status`: a `memref<1xi64>` that the caller sets to 0
before the call. An assert that does not hold stores its number there, counted from 1, and returns; a caller that finds
a number after a call returns too, all the way out. What was asserted, and where, is listed in the module's `mx.asserts`
attribute, so that the host can raise it as an exception.

    func.func @f(%ok: i1, %x: f32) -> f32 {
      cf.assert %ok, "x is out of range"
      return %x : f32
    }

becomes

    module attributes {mx.asserts = [{message = "x is out of range"}]} {
      func.func @f(%ok: i1, %x: f32, %status: memref<1xi64> {mx.status}) -> f32 {
        %number = arith.constant 1 : i64
        cf.cond_br %ok, ^go_on, ^fail(%number : i64)
      ^go_on:
        return %x : f32
      ^fail(%failed: i64):
        %first = arith.constant 0 : index
        memref.store %failed, %status[%first] : memref<1xi64>
        %none = ub.poison : f32
        return %none : f32
      }
    }

The results of a call that failed must not be used. On its way out a function frees the buffers that it allocated and
surely still holds; those that a loop or a branch may have freed are lost.
"""

from collections.abc import Iterator
from typing import Any

from mx_dialect import diagnostics, passes
from mx_dialect._mlir import arith, cf, ir, memref
from mx_dialect.analysis.held_buffers import held_buffers
from mx_dialect.walk import operations

STATUS_ARGUMENT = "mx.status"
ASSERTS = "mx.asserts"


def _references(attribute: Any) -> Iterator[str]:
    """Yield the names of the symbols that an attribute mentions."""
    if isinstance(attribute, ir.FlatSymbolRefAttr):
        yield attribute.value
    elif isinstance(attribute, ir.SymbolRefAttr):
        yield attribute.value[0]
    elif isinstance(attribute, ir.ArrayAttr):
        for item in attribute:
            yield from _references(item)
    elif isinstance(attribute, ir.DictAttr):
        for named in attribute:
            yield from _references(named.attr)


def _callee(call: Any) -> str:
    return ir.FlatSymbolRefAttr(call.attributes["callee"]).value


def _may_fail(op: Any) -> bool:
    return op.name in ("cf.assert", "func.call")


def _fallible(found: dict[str, list[Any]]) -> set[str]:
    """Return the names of the functions that can reach an assert, themselves or through calls."""
    callers: dict[str, set[str]] = {}
    pending: list[str] = []
    for name, ops in found.items():
        for op in ops:
            if op.name == "func.call":
                callers.setdefault(_callee(op), set()).add(name)
            elif name not in pending:
                pending.append(name)
    fallible: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in fallible:
            fallible.add(name)
            pending.extend(callers.get(name, ()))
    return fallible


def _require_direct_calls(root: Any, fallible: set[str]) -> None:
    """Refuse any other use of a function whose signature is about to change."""

    def is_other_use(op: Any) -> bool:
        if op.name == "func.call":
            return False
        return any(symbol in fallible for name in op.attributes for symbol in _references(op.attributes[name]))

    for op in operations(root, is_other_use, outer_first=True):
        for name in op.attributes:
            for symbol in _references(op.attributes[name]):
                if symbol in fallible:
                    raise diagnostics.error_at(
                        op,
                        f"'{op.name}' refers to @{symbol}, which can fail an assert; only func.call can pass on its"
                        " status: call it directly",
                    )


def _add_argument(function: Any) -> Any:
    """Append the status argument to a function with a body and return it."""
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    status = ir.MemRefType.get([1], ir.IntegerType.get_signless(64))
    attributes = (
        list(ir.ArrayAttr(function.attributes["arg_attrs"]))
        if "arg_attrs" in function.attributes
        else [ir.DictAttr.get({}) for _ in type_.inputs]
    )
    attributes.append(ir.DictAttr.get({STATUS_ARGUMENT: ir.UnitAttr.get()}))
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([*type_.inputs, status], type_.results))
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)
    return function.regions[0].blocks[0].add_argument(status, function.location)


def _split_after(op: Any) -> tuple[Any, Any]:
    """Move what follows `op` in its block to a new block; return the old block and the new one."""
    block = op.block
    following = list(block)
    position = next(i for i, other in enumerate(following) if other.operation == op)
    rest = block.create_after()
    for moved in following[position + 1 :]:
        rest.append(moved)
    return block, rest


class _Function:
    """The rewrite of one function that can fail: its status argument and the block it fails through."""

    def __init__(self, function: Any):
        self.function = function
        self.status = _add_argument(function)
        self._fail: Any = None

    def fail_from(self, block: Any, location: Any, held: list[Any], code: Any) -> tuple[Any, list[Any]]:
        """Return where a block branches to, and with which operands, to fail with a code after freeing buffers."""
        fail = self._fail_block(location)
        if not held:
            return fail, [code]
        free = block.create_after()
        with ir.InsertionPoint(free), location:
            for buffer in held:
                memref.dealloc(buffer)
            cf.br([code], fail)
        return free, []

    def _fail_block(self, location: Any) -> Any:
        """Return the block that stores its argument as the status and returns, made when first needed."""
        if self._fail is None:
            i64 = ir.IntegerType.get_signless(64)
            region = self.function.regions[0]
            self._fail = region.blocks[len(region.blocks) - 1].create_after(i64, arg_locs=[location])
            results = ir.FunctionType(ir.TypeAttr(self.function.attributes["function_type"]).value).results
            with ir.InsertionPoint(self._fail), location:
                first = arith.constant(ir.IndexType.get(), 0)
                memref.store(self._fail.arguments[0], self.status, [first])
                poison = ir.Attribute.parse("#ub.poison")
                nothing = [
                    ir.Operation.create("ub.poison", results=[type_], attributes={"value": poison}).result
                    for type_ in results
                ]
                ir.Operation.create("func.return", operands=nothing)
        return self._fail

    def rewrite_assert(self, op: Any, number: int, held: list[Any]) -> None:
        holds = op.operands[0]
        block, go_on = _split_after(op)
        with ir.InsertionPoint(block), op.location:
            code = arith.constant(ir.IntegerType.get_signless(64), number)
            fail, operands = self.fail_from(block, op.location, held, code)
            cf.cond_br(holds, [], operands, go_on, fail)
        op.erase()

    def rewrite_call(self, op: Any, held: list[Any]) -> None:
        attributes = {name: op.attributes[name] for name in op.attributes}
        with ir.InsertionPoint(op), op.location:
            call = ir.Operation.create(
                "func.call",
                results=[result.type for result in op.results],
                operands=[*op.operands, self.status],
                attributes=attributes,
            )
        for old, new in zip(op.results, call.results, strict=True):
            old.replace_all_uses_with(new)
        op.erase()
        block, go_on = _split_after(call)
        with ir.InsertionPoint(block), call.location:
            first = arith.constant(ir.IndexType.get(), 0)
            code = memref.load(self.status, [first])
            zero = arith.constant(ir.IntegerType.get_signless(64), 0)
            failed = arith.cmpi(arith.CmpIPredicate.ne, code, zero)
            fail, operands = self.fail_from(block, call.location, held, code)
            cf.cond_br(failed, operands, [], fail, go_on)


def _require_in_bodies(root: Any, functions: list[Any], fallible: set[str]) -> None:
    """Refuse an assert, or a call that can fail, from where no function of the module can return."""
    for op in operations(root, _may_fail, outer_first=True):
        if op.name == "cf.assert" or _can_fail(op, fallible):
            parent = op.parent.operation
            if parent in functions:
                continue
            remedy = "lower structured control flow first (convert-scf-to-cf)"
            if parent.name == "func.func":
                remedy = "move the function out of the nested module"
            raise diagnostics.error_at(
                op, f"'{op.name}' inside '{parent.name}' cannot return a status when an assert fails; {remedy}"
            )


def _can_fail(op: Any, fallible: set[str]) -> bool:
    """Tell whether an operation calls a function that can fail."""
    return op.name == "func.call" and _callee(op) in fallible


def _description(op: Any) -> Any:
    """Return an assert's message and source position as an attribute."""
    entry = {"message": ir.StringAttr(op.attributes["msg"])}
    position = diagnostics.position_of(op.location)
    if position is not None:
        file, line, column = position
        i64 = ir.IntegerType.get_signless(64)
        entry["file"] = ir.StringAttr.get(file)
        entry["line"] = ir.IntegerAttr.get(i64, line)
        entry["column"] = ir.IntegerAttr.get(i64, column)
    return ir.DictAttr.get(entry)


def run(root: Any, options: passes.NoOptions) -> None:
    """Rewrite the asserts of a module, and the calls that can reach them."""
    with root.context, ir.Location.unknown():
        functions = {
            ir.StringAttr(op.attributes["sym_name"]).value: op.operation
            for op in root.regions[0].blocks[0]
            if op.operation.name == "func.func"
        }
        calls_and_asserts = {name: operations(f, _may_fail, outer_first=True) for name, f in functions.items()}
        fallible = _fallible(calls_and_asserts)
        _require_in_bodies(root, list(functions.values()), fallible)
        if not fallible:
            return
        _require_direct_calls(root, fallible)

        described = list(ir.ArrayAttr(root.attributes[ASSERTS])) if ASSERTS in root.attributes else []
        for name in functions:
            if name not in fallible:
                continue
            function = functions[name]
            # Listed first: the rewrite moves operations between blocks.
            failing = [op for op in calls_and_asserts[name] if op.name == "cf.assert" or _can_fail(op, fallible)]
            buffers = held_buffers(function, failing)
            rewriter = _Function(function)
            for op, held in zip(failing, buffers, strict=True):
                if op.name == "cf.assert":
                    described.append(_description(op))
                    rewriter.rewrite_assert(op, len(described), held)
                else:
                    rewriter.rewrite_call(op, held)
        root.attributes[ASSERTS] = ir.ArrayAttr.get(described)


PASS = passes.register_pass(
    passes.Pass(
        name="mx-assert-to-status",
        summary="Return a status from functions whose asserts fail, instead of aborting the process",
        run=run,
        requires="asserts and the calls that reach them directly in function bodies (after convert-scf-to-cf)",
        leaves="no cf.assert; functions that can fail take a status argument, marked mx.status",
    )
)
