"""Lowerings of submits and of block numbers: which block runs is for the CPU two more arguments of a function.

Each function that asks for the block, itself or through func.call, gets the block's number and the number of blocks as
its last two parameters, from whoever calls or submits it. One that nobody calls runs as block 0 of 1.
"""

from collections.abc import Sequence
from typing import Any

from mx_dialect._mlir import arith, ir, scf
from mx_dialect.analysis.call_sites import CallSites
from mx_dialect.analysis.index_expressions import constant_of
from mx_dialect.analysis.stored_arguments import StoredArguments
from mx_dialect.diagnostics import error_at
from mx_dialect.lowering.slices import index
from mx_dialect.lowering.tile_boundaries import Emitter
from mx_dialect.walk import in_scopes

_CALLS = ("func.call", "mx.submit")
_BLOCK_NUMBERS = ("mx.block_idx", "mx.block_num")


class Calls:
    """The calls of a program and the functions that take the number of their block, all as they were written.

    Operations are looked up by their content, which lowering changes: an emitter knows what it needs beforehand.
    """

    def __init__(self, root: Any):
        self._sites = CallSites(root)
        self._stored = StoredArguments(self._sites.callee)
        self._function_of: dict[Any, Any] = {}
        callers: dict[Any, list[Any]] = {}
        called: set[Any] = set()
        asking: list[Any] = []
        constants: list[Any] = []
        for function, op in in_scopes(root, lambda op: op.name == "func.func"):
            if op.name in _CALLS:
                callee = self._sites.callee(op)
                called.add(callee)
                if op.name == "func.call":
                    callers.setdefault(callee, []).append(function)
            elif op.name in _BLOCK_NUMBERS:
                asking.append(function)
            elif op.name == "func.constant":
                constants.append(op)
                continue
            else:
                continue
            self._function_of[op] = function
        self.numbered = _reaching(asking, callers) & called
        self._refuse_references(constants)

    def _refuse_references(self, constants: Sequence[Any]) -> None:
        names = {_name(function) for function in self.numbered}
        for op in constants:
            if ir.FlatSymbolRefAttr(op.attributes["value"]).value in names:
                raise error_at(
                    op,
                    "'func.constant' op refers to a function that asks for the block it runs as, which only func.call"
                    " and mx.submit tell it; call it directly",
                )

    def is_numbered(self, op: Any) -> bool:
        """Tell whether an operation calls a function that takes the number of its block."""
        return op.name == "func.call" and self._sites.callee(op) in self.numbered

    def add_parameters(self) -> None:
        """Give the functions that take the number of their block the parameters for it."""
        for function in self.numbered:
            type_ = ir.TypeAttr(function.attributes["function_type"]).value
            numbers = [ir.IndexType.get()] * 2
            longer = ir.FunctionType.get([*type_.inputs, *numbers], type_.results)
            function.attributes["function_type"] = ir.TypeAttr.get(longer)
            if "arg_attrs" in function.attributes:
                attributes = [*function.attributes["arg_attrs"], *[ir.DictAttr.get({}) for _ in numbers]]
                function.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)
            for number in numbers:
                function.regions[0].blocks[0].add_argument(number, function.location)

    def _numbers(self, op: Any) -> Emitter:
        """Return what gives the number of the block that runs an operation, and how many blocks do."""
        function = self._function_of[op]
        if function not in self.numbered:
            return lambda: [index(0), index(1)]
        return lambda: list(function.regions[0].blocks[0].arguments)[-2:]

    def lower_block_idx(self, op: Any) -> Emitter:
        numbers = self._numbers(op.operation)
        return lambda: [numbers()[0]]

    def lower_block_num(self, op: Any) -> Emitter:
        numbers = self._numbers(op.operation)
        return lambda: [numbers()[1]]

    def lower_call(self, op: Any) -> Emitter:
        """Return what calls a function that takes the number of its block."""
        callee, numbers = self._sites.callee(op.operation), self._numbers(op.operation)
        return lambda: _call(callee, [*op.operation.operands, *numbers()])

    def lower_submit(self, op: Any) -> Emitter:
        callee = self._sites.callee(op.operation)
        if callee is None:
            raise error_at(op, f"'mx.submit' op submits @{op.callee_name}, and there is no function of that name")
        _require_signature(op, callee)
        tasks = len(op.operation.results) - len(op.values)
        cores = list(op.core_count)
        once = not list(op.predicate) and all(constant_of(value) == 1 for value in cores)
        carried = [] if once else self._carried(op, callee)
        is_numbered = callee in self.numbered

        def emit() -> Sequence[Any]:
            if once:
                numbers = [index(0), index(1)] if is_numbered else []
                results = _call(callee, [*op.arguments, *numbers])
            else:
                results = _run_blocks(op, callee, carried, is_numbered)
            return [*results, *[index(0)] * tasks]

        return emit

    def _carried(self, op: Any, callee: Any) -> list[int]:
        """Return for each result the argument that the callee stores into to make it."""
        carried: list[int] = []
        for number, argument in enumerate(self._stored.of(callee)):
            if argument is None:
                raise error_at(
                    op,
                    f"'mx.submit' op runs @{op.callee_name} on other than one block, but its result {number} is not"
                    " made by stores into one of its arguments, to which each block could add; return the tensor that"
                    " the function stores into",
                )
            if argument in carried:
                raise error_at(
                    op,
                    f"'mx.submit' op runs @{op.callee_name} on other than one block, but results"
                    f" {carried.index(argument)} and {number} are both made by stores into its argument {argument};"
                    " return the last of them only",
                )
            carried.append(argument)
        return carried


def _call(callee: Any, operands: Sequence[Any]) -> Sequence[Any]:
    results = ir.TypeAttr(callee.attributes["function_type"]).value.results
    symbol = ir.FlatSymbolRefAttr.get(_name(callee))
    return ir.Operation.create(
        "func.call", results=list(results), operands=list(operands), attributes={"callee": symbol}
    ).results


def _run_blocks(op: Any, callee: Any, carried: Sequence[int], is_numbered: bool) -> Sequence[Any]:
    """Call a function for one block after the other, each with the tensors that the one before stored into."""
    cores = list(op.core_count)
    count = cores[0] if cores else index(1)
    zero = index(0)
    end = count
    for predicate in op.predicate:
        end = arith.select(predicate, count, zero)
    loop = scf.ForOp(zero, end, index(1), [op.arguments[number] for number in carried])
    with ir.InsertionPoint(loop.body):
        arguments = list(op.arguments)
        for number, value in zip(carried, loop.inner_iter_args, strict=True):
            arguments[number] = value
        numbers = [loop.induction_variable, count] if is_numbered else []
        scf.yield_(list(_call(callee, [*arguments, *numbers])))
    return list(loop.results)


def _name(function: Any) -> str:
    return ir.StringAttr(function.attributes["sym_name"]).value


def _reaching(asking: Sequence[Any], callers: dict[Any, list[Any]]) -> set[Any]:
    """Return the functions that ask, themselves or through calls."""
    reaching: set[Any] = set()
    pending = [function for function in asking if function is not None]
    while pending:
        function = pending.pop()
        if function not in reaching:
            reaching.add(function)
            pending.extend(caller for caller in callers.get(function, ()) if caller is not None)
    return reaching


def _require_signature(op: Any, callee: Any) -> None:
    """Require that a submit has the arguments and results of its callee."""
    type_ = ir.TypeAttr(callee.attributes["function_type"]).value
    for found, expected, what in ((op.arguments, type_.inputs, "argument"), (op.values, type_.results, "result")):
        if len(found) != len(expected):
            raise error_at(
                op,
                f"'mx.submit' op number of {what}s is {len(found)}, but that of @{op.callee_name} is {len(expected)}",
            )
        for number, (value, wanted) in enumerate(zip(found, expected, strict=True)):
            if value.type != wanted:
                raise error_at(
                    op, f"'mx.submit' op {what} {number} is '{value.type}', but that of @{op.callee_name} is '{wanted}'"
                )
