"""What tiles, views of scales and tasks are on the CPU, and the 1:1 rewrite of everything that carries them.

    !mx.tile<16x64xf8E4M3FN, left, valid = 8x?>        tensor<8x?xf8E4M3FN>
    !mx.tile<16x64xf4E2M1FN, vec>                      tensor<16x64xi8>: codes, as ui8 are i8
    tensor<64x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>      tensor<1x4x2x16x2xf8E8M0FNU>
    tensor<1x4x2x16x2xf8E8M0FNU, #mx.layout<...>>      tensor<1x4x2x16x2xf8E8M0FNU>
    !mx.task                                           index

Padding does not exist on the CPU. A plain tensor in global memory keeps its type, whatever its elements.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

from mx_dialect import scalar
from mx_dialect._mlir import ir
from mx_dialect.diagnostics import Diagnostic, MxError, at
from mx_dialect.formats import ELEMENT_FORMATS
from mx_dialect.generics import elementwise
from mx_dialect.layouts.a5 import BLOCKED_RANK, BOX_BLOCKS, BOX_GROUPS
from mx_dialect.lowering.parts import CAST
from mx_dialect.lowering.split_boundaries import TRANSPARENT
from mx_dialect.submit_ops import KERNEL
from mx_dialect.tile_types import LayoutAttr, TaskType, TileType, layout_of
from mx_dialect.transforms.scale_view_types import Refusal, Retyping, defined_values
from mx_dialect.walk import operations

Emitter: TypeAlias = Callable[[], Sequence[Any]]
"""What emits the replacement of an operation at the current insertion point and returns its results."""

MAX_INDEX = 2**63 - 1
_BOX = (BOX_BLOCKS, BOX_GROUPS)

# Attributes of functions that mean nothing once tiles are gone.
_LEVEL_ATTRIBUTES = (KERNEL, "mx_tensor_views_blocked")


class PlainTypes(Retyping):
    """The mapping of tiles, views of scales and tasks to the types that stand for them on the CPU."""

    def __init__(self) -> None:
        super().__init__(_view_type)

    def _mapped(self, item: Any, parts: list[Any]) -> Any:
        if isinstance(item, TileType):
            return ir.RankedTensorType.get(item.valid, code_type(item.element_type))
        if isinstance(item, TaskType):
            return ir.IndexType.get()
        if not parts and _hides_tile(item):
            return Refusal(f"hides a tile or a task in '{item}'; name its type itself")
        return super()._mapped(item, parts)


def code_type(element_type: Any) -> Any:
    """Return the type that tiles have their elements in: codes of less than a byte, and ui8, are i8."""
    coded = str(element_type) in ("f4E2M1FN", "ui8")
    return ir.IntegerType.get_signless(8) if coded else element_type


def to_code(element: Any) -> Any:
    """Return an element of global memory as tiles hold it."""
    name = str(element.type)
    if name == "ui8":
        return _cast(element, ir.IntegerType.get_signless(8))
    return scalar.element_code(element, ELEMENT_FORMATS[name]) if name == "f4E2M1FN" else element


def from_code(code: Any, element_type: Any) -> Any:
    """Return an element that a tile holds as global memory of an element type does."""
    name = str(element_type)
    if name == "ui8":
        return _cast(code, element_type)
    return scalar.element_from_code(code, ELEMENT_FORMATS[name]) if name == "f4E2M1FN" else code


def to_codes(tensor: Any) -> Any:
    """Return a tensor of elements of global memory as tiles hold them."""
    element_type = code_type(tensor.type.element_type)
    return tensor if element_type == tensor.type.element_type else elementwise(tensor, element_type, to_code)


def from_codes(tensor: Any, element_type: Any) -> Any:
    """Return a tile's tensor with its elements as global memory of an element type has them."""
    if element_type == tensor.type.element_type:
        return tensor
    return elementwise(tensor, element_type, lambda code: from_code(code, element_type))


def _cast(value: Any, type_: Any) -> Any:
    # Between a byte with a sign and one without, which LLVM does not tell apart: there the cast vanishes.
    return ir.Operation.create(CAST, results=[type_], operands=[value]).result


def _hides_tile(item: Any) -> bool:
    """Tell whether a type or attribute that is made of no others mentions a tile or a task."""
    if isinstance(item, ir.DenseElementsAttr | ir.DenseResourceElementsAttr | ir.StringAttr | LayoutAttr):
        return False
    text = str(item)
    return "!mx.tile<" in text or "!mx.task" in text


def _view_type(type_: Any) -> Any:
    """Return the plain tensor type of a view of scales, or why there is none."""
    attribute = layout_of(type_)
    assert attribute is not None
    layout = attribute.layout
    if attribute.distributed:
        return Refusal(f"holds a distributed tensor, '{type_}', and the CPU is one device; drop 'distributed'")
    shape = list(type_.shape)
    if type_.rank == BLOCKED_RANK and (shape[0], *shape[3:]) == (1, BOX_BLOCKS, BOX_GROUPS):
        counts = shape[1:3]
    elif type_.rank == 2 and all(e < 0 or e % box == 0 for e, box in zip(layout.split(shape), _BOX, strict=True)):
        counts = [e if e < 0 else e // box for e, box in zip(layout.split(shape), _BOX, strict=True)]
    else:
        return Refusal(
            f"holds '{type_}', which is not made of boxes: {layout.name} cuts"
            f" {'[M, G]' if layout.block_axis == 0 else '[G, N]'} in boxes of {BOX_BLOCKS} along"
            f" {'M' if layout.block_axis == 0 else 'N'} and {BOX_GROUPS} along G; pad it to whole boxes"
        )
    if prod(max(count, 1) * box for count, box in zip(counts, _BOX, strict=True)) > MAX_INDEX:
        return Refusal(f"holds '{type_}', which has more bytes than an index can count")
    return ir.RankedTensorType.get([1, *counts, *_BOX], type_.element_type)


def check(root: Any, types: PlainTypes, lowered: Sequence[str]) -> None:
    """Refuse values that cannot be retyped, and operations that hold a tile in a way that the lowering does not know.

    Raises:
        MxError: one error for each such operation.
    """
    errors: list[Diagnostic] = []
    carriers = TRANSPARENT | set(lowered)

    def visit(view: Any) -> Any:
        op = view.operation
        complaint = _complaint(op, types, op.name in carriers)
        if complaint is not None:
            errors.append(at(op, "error", f"'{op.name}' op {complaint}"))
        return ir.WalkResult.ADVANCE

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    if errors:
        raise MxError.of(*errors)


def _complaint(op: Any, types: PlainTypes, carries: bool) -> str | None:
    held = [*op.operands, *defined_values(op)]
    mapped = types.of_values(held)
    refusal = _first_refusal(mapped)
    found = next((v.type for v, new in zip(held, mapped, strict=True) if new is not None), None)
    if refusal is None and found is not None and not carries:
        return (
            f"holds '{found}', and --mx-tile-to-linalg does not know what it does with it; load and store tiles, and"
            " view scales as a plain tensor with mx.tensor_view, on the way to other operations"
        )
    return refusal or _first_refusal(types.of_attributes(op))


def _first_refusal(mapped: Sequence[Any]) -> Refusal | None:
    return next((new for new in mapped if isinstance(new, Refusal)), None)


def retype(root: Any, types: PlainTypes) -> None:
    """Give every value and attribute under `root` its plain type, in place, and functions lose what marks the level."""
    for op in operations(root, lambda op: True):
        types.apply(op)
        if op.name == "func.func":
            for name in _LEVEL_ATTRIBUTES:
                if name in op.attributes:
                    del op.attributes[name]
