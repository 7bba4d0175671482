"""x4 containers and unsigned integers as the signless integers that lowered code computes with.

While operations are lowered, casts stand between a value and its bits. In the end every value is retyped, function
boundaries and control flow included, and the casts vanish.
"""

from typing import Any

from mx_dialect._mlir import ir
from mx_dialect.diagnostics import Diagnostic, MxError, at
from mx_dialect.lowering.parts import CAST
from mx_dialect.neuron_types import X4Type
from mx_dialect.transforms.scale_view_types import Refusal, Retyping, defined_values
from mx_dialect.walk import operations

_UNSIGNED = ("ui8", "ui16", "ui32")


class SignlessTypes(Retyping):
    """The mapping of containers and unsigned integers, and of tensors of them, to signless integers."""

    def __init__(self) -> None:
        super().__init__(lambda _: None)

    def _mapped(self, item: Any, parts: list[Any]) -> Any:
        if isinstance(item, ir.Type):
            plain = signless(item)
            if plain != item:
                return plain
        if not parts and _hides_containers(item):
            return Refusal(f"holds x4 containers inside '{item}'; --mx-neuron-to-linalg knows them in tensors")
        return super()._mapped(item, parts)


def signless(type_: Any) -> Any:
    """Return a scalar or tensor type with containers and unsigned integers of up to 32 bits as signless integers."""
    if isinstance(type_, X4Type) or str(type_) in _UNSIGNED:
        return ir.IntegerType.get_signless(type_.width, context=type_.context)
    if isinstance(type_, ir.RankedTensorType):
        element = signless(type_.element_type)
        loc = ir.Location.unknown(type_.context)
        is_plain = element == type_.element_type
        return type_ if is_plain else ir.RankedTensorType.get(type_.shape, element, type_.encoding, loc=loc)
    return type_


def _hides_containers(item: Any) -> bool:
    """Tell whether a type or attribute that is made of no others mentions containers."""
    # Constants can be large, and text can say anything.
    if isinstance(item, ir.DenseElementsAttr | ir.DenseResourceElementsAttr | ir.StringAttr):
        return False
    return "!mx.x4" in str(item)


def bits(value: Any) -> Any:
    """Return a value as signless integers, through a cast unless that is what it is."""
    return of_type(value, signless(value.type))


def of_type(value: Any, type_: Any) -> Any:
    """Return a value as one of another type with the same signless form, through a cast unless it is of that type."""
    if value.type == type_:
        return value
    return ir.Operation.create(CAST, results=[type_], operands=[value]).result


def has_containers(op: Any) -> bool:
    """Tell whether an operation defines a value, or has an attribute, of a type that mentions containers."""
    types = [*(v.type for v in defined_values(op)), *(op.attributes[name] for name in op.attributes)]
    return any(_hides_containers(item) for item in types)


def check(root: Any, types: SignlessTypes) -> None:
    """Refuse containers where `retype` does not reach.

    Raises:
        MxError: one error for each operation that holds one.
    """
    errors: list[Diagnostic] = []
    for op in operations(root, lambda op: True, outer_first=True):
        mapped = (*types.of_values(defined_values(op)), *types.of_attributes(op))
        refused = next((m for m in mapped if isinstance(m, Refusal)), None)
        if refused is not None:
            errors.append(at(op, "error", f"'{op.name}' op {refused}"))
    if errors:
        raise MxError.of(*errors)


def retype(root: Any, types: SignlessTypes) -> None:
    """Give every value and attribute under `root` its signless type, and remove the casts between both."""
    for op in operations(root, lambda op: True):
        types.apply(op)
    for cast in operations(root, _is_identity):
        cast.results[0].replace_all_uses_with(cast.operands[0])
        cast.erase()


def _is_identity(op: Any) -> bool:
    """Tell whether an operation is a cast of one value to the type that it has."""
    one = op.name == CAST and len(op.operands) == len(op.results) == 1
    return one and op.operands[0].type == op.results[0].type
