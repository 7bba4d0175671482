"""Float constants that nothing uses once their products have been rewritten, erased with the views between."""

import re
from collections.abc import Iterable
from typing import Any

from mx_dialect._mlir import ir
from mx_dialect.ingress.constant_weights import LOADS, VIEWS, source_axes, symbol
from mx_dialect.walk import operations

_SYMBOL = re.compile(r'@(?:"((?:[^"\\]|\\.)*)"|([\w$.-]+))')
_WITHOUT_EFFECTS = ("arith.constant", "tensor.empty", *LOADS)


def erase_unused(values: Iterable[Any]) -> None:
    """Erase the operations that made `values`, weights seen through views, and what only these used."""
    pending = _unused(values)
    while pending:
        op = pending.pop()
        operands = list(op.operands)
        op.erase()
        # Nothing comes twice: what had other users until now was not in the list.
        pending.extend(_unused(operands))


def _unused(values: Iterable[Any]) -> list[Any]:
    """Return the operations behind values that nothing uses and that can go, each once."""
    makers = {value.owner.operation: None for value in values if isinstance(value, ir.OpResult)}
    return [op for op in makers if _can_go(op) and not any(list(result.uses) for result in op.results)]


def _can_go(op: Any) -> bool:
    return op.name in _WITHOUT_EFFECTS or (op.name in VIEWS and source_axes(op) is not None)


def erase_globals(root: Any, holders: Iterable[Any]) -> None:
    """Erase those of `holders`, private ml_program.globals under `root`, that no symbol in `root` names."""
    private = {
        holder
        for holder in holders
        if "sym_visibility" in holder.attributes and str(holder.attributes["sym_visibility"]) == '"private"'
    }
    if not private:
        return
    named: set[str] = set()
    for op in operations(root, lambda op: True):
        for name in op.attributes:
            named.update(_symbols(op.attributes[name]))
    for holder in private:
        if symbol(holder.attributes["sym_name"]) not in named:
            holder.erase()


def _symbols(attribute: Any) -> list[str]:
    """Return the names in an attribute's symbols, as `symbol` does."""
    if isinstance(attribute, ir.ArrayAttr):
        return [name for item in attribute for name in _symbols(item)]
    if isinstance(attribute, ir.DictAttr):
        return [name for item in attribute for name in _symbols(item.attr)]
    if isinstance(attribute, (ir.FlatSymbolRefAttr, ir.SymbolRefAttr)):
        return [quoted or bare for quoted, bare in _SYMBOL.findall(str(attribute))]
    return []
