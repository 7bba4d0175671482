"""What the functions of a program are called with: the actual arguments of each parameter, over all calls.

Calls are func.call and mx.submit. The facts are gathered once for a module, which counts as the whole program.
"""

from collections.abc import Sequence
from typing import Any

from mx_dialect._mlir import ir
from mx_dialect.analysis.index_expressions import constant_of
from mx_dialect.walk import in_scopes

CALLS = ("func.call", "mx.submit")
"""The operations that call a function of the program by its name."""


class CallSites:
    """The calls under an operation, a builtin.module as a rule, and what each parameter is given."""

    def __init__(self, root: Any):
        self._callees: dict[Any, Any] = {}
        self._problems: dict[Any, str] = {}
        # For each parameter its distinct arguments: constants by their value, others by themselves.
        self._actuals: dict[Any, list[dict[Any, Any]]] = {}
        functions: dict[tuple[Any, str], Any] = {}
        sites: list[tuple[Any, Any]] = []
        for table, op in in_scopes(root, _is_symbol_table):
            if op.name == "func.func":
                functions[table, ir.StringAttr(op.attributes["sym_name"]).value] = op
            elif op.name in CALLS or op.name == "func.constant":
                sites.append((table, op))
        for table, op in sites:
            function = functions.get((table, _symbol(op)))
            if function is not None:
                self._record(op, function)

    def callee(self, call: Any) -> Any | None:
        """Return the function that a func.call or mx.submit calls, None if it is not there."""
        return self._callees.get(call)

    def problem(self, function: Any) -> str | None:
        """Return why nothing is known of a function's parameters, or None."""
        name = ir.StringAttr(function.attributes["sym_name"]).value
        if function not in self._actuals:
            return f"@{name} has no call site"
        broken = self._problems.get(function)
        return None if broken is None else f"{broken} of @{name}"

    def actuals(self, function: Any, number: int) -> Sequence[Any]:
        """Return the distinct values that parameter `number` of a function without problem is given."""
        return list(self._actuals[function][number].values())

    def _record(self, op: Any, function: Any) -> None:
        count = len(ir.TypeAttr(function.attributes["function_type"]).value.inputs)
        recorded = self._actuals.setdefault(function, [{} for _ in range(count)])
        if op.name == "func.constant":
            self._problems[function] = "an indirect call can give any value to a parameter"
            return
        self._callees[op] = function
        arguments = list(op.operands) if op.name == "func.call" else list(op.opview.arguments)
        if len(arguments) != count:
            self._problems[function] = f"a call gives {len(arguments)} values to the {count} parameters"
            return
        for known, argument in zip(recorded, arguments, strict=True):
            constant = constant_of(argument)
            known.setdefault(argument if constant is None else constant, argument)


def _is_symbol_table(op: Any) -> bool:
    # builtin.module, and what other dialects have in its place.
    return op.name.endswith(".module")


def _symbol(op: Any) -> str:
    if op.name == "mx.submit":
        return op.opview.callee_name
    return ir.FlatSymbolRefAttr(op.attributes["callee" if op.name == "func.call" else "value"]).value
