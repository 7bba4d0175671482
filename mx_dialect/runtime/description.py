"""How a compiled function is called, as plain JSON and back."""

from dataclasses import astuple
from fractions import Fraction
from typing import Any

from mx_dialect.diagnostics import Diagnostic
from mx_dialect.element_dtypes import dtype_of
from mx_dialect.runtime.call_checks import Check, Term
from mx_dialect.runtime.kernel import Interface
from mx_dialect.runtime.signature import Signature, Slot, Value
from mx_dialect.tensor_spec import TensorSpec


def describe(interface: Interface, symbol: str) -> Any:
    """Return an interface, and the symbol of the function that it is of, as plain JSON."""
    signature = interface.signature
    return {
        "symbol": symbol,
        "name": signature.name,
        "arguments": [_of_value(value) for value in signature.arguments],
        "results": [_of_value(value) for value in signature.results],
        "checks": [_of_check(check) for check in interface.checks],
        "aliases": list(interface.aliases.items()),
        "asserts": [_of_diagnostic(diagnostic) for diagnostic in interface.asserts],
        "takes_status": interface.takes_status,
    }


def understand(description: Any) -> tuple[Interface, str]:
    """Return what `describe` was given.

    Raises:
        LookupError, TypeError, ValueError: it is no such description.
    """
    signature = Signature(
        description["name"],
        tuple(_value(value) for value in description["arguments"]),
        tuple(_value(value) for value in description["results"]),
    )
    interface = Interface(
        signature,
        tuple(_check(check) for check in description["checks"]),
        dict(description["aliases"]),
        tuple(_diagnostic(diagnostic) for diagnostic in description["asserts"]),
        description["takes_status"],
    )
    return interface, description["symbol"]


def _of_value(value: Value) -> Any:
    slots = [(slot.type, slot.shape, slot.element, slot.role) for slot in value.slots]
    return value.type, slots, None if value.spec is None else astuple(value.spec)


def _value(described: Any) -> Value:
    type_, slots, spec = described
    return Value(type_, tuple(_slot(*slot) for slot in slots), None if spec is None else _spec(*spec))


def _slot(type_: str, shape: list[int | None] | None, element: str, role: str) -> Slot:
    dtype = dtype_of(element)
    if dtype is None:
        raise ValueError(f"numpy has no dtype for '{element}'")
    return Slot(type_, None if shape is None else tuple(shape), element, dtype, role)


def _spec(shape: list[int | None], *others: Any) -> TensorSpec:
    return TensorSpec(tuple(shape), *others)


def _of_diagnostic(diagnostic: Diagnostic) -> Any:
    return (
        diagnostic.severity,
        diagnostic.message,
        diagnostic.file,
        diagnostic.line,
        diagnostic.column,
        [_of_diagnostic(note) for note in diagnostic.notes],
    )


def _diagnostic(described: Any) -> Diagnostic:
    severity, message, file, line, column, notes = described
    return Diagnostic(severity, message, file, line, column, tuple(_diagnostic(note) for note in notes))


def _of_check(check: Check) -> Any:
    return (
        _of_diagnostic(check.reason),
        _of_term(check.left),
        None if check.right is None else _of_term(check.right),
        check.divisor,
    )


def _check(described: Any) -> Check:
    reason, left, right, divisor = described
    return Check(_diagnostic(reason), _term(left), None if right is None else _term(right), divisor)


def _of_term(term: Term) -> Any:
    return term.slot, term.axis, term.factor.numerator, term.factor.denominator


def _term(described: Any) -> Term:
    slot, axis, numerator, denominator = described
    return Term(slot, axis, Fraction(numerator, denominator))
