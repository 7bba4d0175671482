"""What custom assembly has to know of the dialect: the names and arities of its operations, the names of its types.

Both come from the classes themselves, so that a new operation or type needs no entry here. No context is needed.
"""

import functools
from typing import Any, NamedTuple

from mx_dialect._mlir import ext
from mx_dialect.dialect import Mx, define
from mx_dialect.passes import nearest

PREFIX = f"{Mx.DIALECT_NAMESPACE}."


class IndexList(NamedTuple):
    """A list of numbers and index values behind an operation's operands: `[0, %i]`.

    The generic form has the numbers in an i64 array `attribute`, with MLIR's dynamic size where an operand gives the
    number, and the operands after the fixed ones, list by list.
    """

    name: str
    attribute: str


class Arity(NamedTuple):
    """How many operands and results an operation has, None for any number; and the index lists behind the operands."""

    operands: int | None
    results: int | None
    lists: tuple[IndexList, ...] = ()


def operation_table() -> dict[str, Arity]:
    """Return the arity of every mx operation by its full name."""
    define()
    return {op.OPERATION_NAME: _arity(op) for op in Mx.operations}


@functools.cache
def operations_with_lists() -> dict[str, Arity]:
    """Return the operations whose custom form has index lists."""
    return {name: arity for name, arity in operation_table().items() if arity.lists}


def type_names() -> list[str]:
    """Return the full names of the mx types, without the exclamation mark."""
    define()
    return [str(type_.type_name) for type_ in Mx.types]


def unknown_operation(name: str) -> str:
    """Return the message for an operation name that the dialect does not have."""
    known = sorted(operation_table())
    hint = nearest(name, known) or f"; the mx operations are {', '.join(known)}"
    return f"unknown operation '{name}'{hint}"


def unknown_type(name: str) -> str:
    """Return the message for a type name (without the exclamation mark) that the dialect does not have."""
    known = sorted(f"!{n}" for n in type_names())
    hint = nearest(f"!{name}", known) or f"; the mx types are {', '.join(known)}"
    return f"unknown type '!{name}'{hint}"


def _arity(operation: Any) -> Arity:
    operands, _, results, _ = ext.partition_fields(operation._fields)
    lists = tuple(IndexList(*names) for names in getattr(operation, "index_lists", ()))
    # The operands of lists are variadic and come last.
    fixed = operands[: len(operands) - len(lists)]
    return Arity(_count(fixed), _count(results), lists)


def _count(fields: list[Any]) -> int | None:
    fixed = all(field.variadicity.name == "single" for field in fields)
    return len(fields) if fixed else None
