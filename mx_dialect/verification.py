"""What the verifiers of mx operations share: rules that say what they require; one diagnostic for the first broken."""

from collections.abc import Callable, Sequence
from typing import Any

from mx_dialect._mlir import ext, ir
from mx_dialect.near_miss import nearest
from mx_dialect.types import TensorType

FLOAT_TYPES = ("f32", "f16", "bf16")

# How many values each variadic operand and result has; MLIR checks it.
_SEGMENT_SIZES = ("operandSegmentSizes", "resultSegmentSizes")


class InvalidOperation(Exception):
    """A rule of an operation is broken; the text is the diagnostic without the operation's name."""


def verifier(rules: Callable[[Any], None]) -> Callable[[Any], bool]:
    """Make the method the bindings call: one diagnostic and False for a broken rule, True otherwise."""

    def verify_invariants(self: Any) -> bool:
        # The bindings run this before MLIR's own check of the counts, which then reports them.
        if not _has_all_parts(self):
            return True
        try:
            rules(self)
        except InvalidOperation as broken:
            self.operation.location.emit_error(f"'{self.operation.name}' op {broken}")
            return False
        return True

    return verify_invariants


def _has_all_parts(op: Any) -> bool:
    """Tell whether an operation has the operands, results and attributes that it declares."""
    operands, declared_attributes, results, _ = ext.partition_fields(op._fields)
    attributes = op.operation.attributes
    return (
        all(attribute.name in attributes for attribute in declared_attributes)
        and _fits(op.operation.operands, operands, attributes, "operandSegmentSizes")
        and _fits(op.operation.results, results, attributes, "resultSegmentSizes")
    )


def _fits(values: Sequence[Any], declared: Sequence[Any], attributes: Any, segment_sizes: str) -> bool:
    if all(field.variadicity.name == "single" for field in declared):
        return len(values) == len(declared)
    if segment_sizes not in attributes or not isinstance(attributes[segment_sizes], ir.DenseI32ArrayAttr):
        return False
    sizes = list(attributes[segment_sizes])
    singles = [size for size, field in zip(sizes, declared, strict=False) if field.variadicity.name == "single"]
    return len(sizes) == len(declared) and sum(sizes) == len(values) and set(singles) <= {1} and min(sizes) >= 0


def require(condition: bool, rule: str) -> None:
    if not condition:
        raise InvalidOperation(rule)


def only_attributes(op: Any, *known: str) -> None:
    """Refuse misspelt attributes: an undotted name that the operation does not define."""
    for name in op.operation.attributes:
        if "." not in name and name not in (*known, *_SEGMENT_SIZES):
            options = f"it takes {', '.join(known)}" if known else "it takes none"
            hint = nearest(name, known)
            raise InvalidOperation(f"has unknown attribute '{name}'; {options} (dotted names are free){hint}")


def mx_tensor(value: Any, role: str) -> TensorType:
    """Return the type of a value that must be a valid mx tensor."""
    require(isinstance(value.type, TensorType), f"{role} must be an mx tensor, but is '{value.type}'")
    error = value.type.error()
    require(error is None, f"{role} has invalid type '{value.type}': {error}")
    return value.type


def float_tensor(value: Any, role: str, elements: Sequence[str] = FLOAT_TYPES) -> ir.RankedTensorType:
    """Return the type of a value that must be a ranked tensor of floats, without encoding."""
    type_ = value.type
    named = f"{role} must be a ranked tensor of {' or '.join(elements)}, but is '{type_}'"
    require(isinstance(type_, ir.RankedTensorType) and str(type_.element_type) in elements, named)
    require(type_.encoding is None, f"{role} must not have an encoding, but is '{type_}'")
    return type_


def agree(*extents: int) -> bool:
    """Tell whether extents can be equal at run time: all static ones are."""
    dynamic = ir.ShapedType.get_dynamic_size()
    return len({e for e in extents if e != dynamic}) <= 1
