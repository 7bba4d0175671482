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
    optional: bool = False
    """It may be empty, and is then not written where only such lists follow."""


class OperandGroup(NamedTuple):
    """Operands in parentheses behind a word, `after(%t0, %t1)`; those of the first group stand behind the symbol."""

    name: str
    keyword: str
    slots: int = 0
    """How many fields of one value each the group has; 0 if it is one variadic field."""


class Arity(NamedTuple):
    """How many operands and results an operation has, None for any number, and how its operands are written.

    That is one of three ways: as plain values, with index lists behind them, or in groups behind the symbol that an
    attribute holds. `result_slots` is how many fields variadic results have, 0 if they need no segment sizes.
    """

    operands: int | None
    results: int | None
    lists: tuple[IndexList, ...] = ()
    symbol: str = ""
    groups: tuple[OperandGroup, ...] = ()
    result_slots: int = 0


def operation_table() -> dict[str, Arity]:
    """Return the arity of every mx operation by its full name."""
    define()
    return {op.OPERATION_NAME: _arity(op) for op in Mx.operations}


@functools.cache
def operations_with_forms() -> dict[str, Arity]:
    """Return the operations whose custom form has index lists or groups."""
    return {name: arity for name, arity in operation_table().items() if arity.lists or arity.groups}


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


def unknown_attribute() -> str:
    """Return the message for an attribute that the dialect does not have; MLIR does not say which it was."""
    define()
    known = sorted(f"#{attribute.attr_name}" for attribute in Mx.attributes)
    return f"unknown attribute; the mx attributes are {', '.join(known)}"


def _arity(operation: Any) -> Arity:
    operands, _, results, _ = ext.partition_fields(operation._fields)
    lists = tuple(
        IndexList(name, attribute, flags == ["optional"])
        for name, attribute, *flags in getattr(operation, "index_lists", ())
    )
    groups = tuple(
        OperandGroup(name, keyword, sum(_is_slot(field.name, name) for field in operands))
        for name, keyword in getattr(operation, "operand_groups", ())
    )
    # The operands of lists are variadic and come last.
    fixed = operands[: len(operands) - len(lists)]
    result_slots = len(results) if len(results) > 1 and _count(results) is None else 0
    return Arity(_count(fixed), _count(results), lists, getattr(operation, "symbol", ""), groups, result_slots)


def _is_slot(field: str, group: str) -> bool:
    return field.startswith(f"{group}_") and field.removeprefix(f"{group}_").isdecimal()


def _count(fields: list[Any]) -> int | None:
    fixed = all(field.variadicity.name == "single" for field in fields)
    return len(fields) if fixed else None
