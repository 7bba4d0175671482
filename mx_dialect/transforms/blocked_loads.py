"""Loads from logical views of scales as loads of whole boxes from blocked ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mx_dialect._mlir import arith, ir
from mx_dialect.analysis.alignment import Proof, Prover
from mx_dialect.analysis.index_expressions import constant_of
from mx_dialect.diagnostics import MxError, at
from mx_dialect.layouts.a5 import ScaleLayout
from mx_dialect.tile_memory_ops import TileLoadOp
from mx_dialect.tile_types import layout_of
from mx_dialect.tile_verification import numbers
from mx_dialect.transforms.blocked_views import Dimension, dimensions, shape_error

TARGET = "mat"
"""The memory that scales are loaded into."""


@dataclass(frozen=True)
class _Quotient:
    """An offset in boxes: an index value divided by the size of a box."""

    value: Any
    box: int

    def emit(self) -> Any:
        # Of the whole offset: its arithmetic may wrap around where the arithmetic of the quotient would not.
        return arith.floordivsi(self.value, arith.constant(ir.IndexType.get(), self.box))


@dataclass(frozen=True)
class BlockedLoad:
    """How to rewrite one mx.tile_load: what to load of the blocked view, in boxes."""

    load: TileLoadOp
    offsets: tuple[int | _Quotient, int | _Quotient]
    window: tuple[int, ...]

    def emit(self) -> None:
        """Replace the load, whose source has its blocked type already."""
        old = self.load.operation
        offsets = [0, *self.offsets, 0, 0]
        dynamic = ir.ShapedType.get_dynamic_size()
        window = ir.DenseI64ArrayAttr.get(list(self.window))
        attributes = {name: old.attributes[name] for name in old.attributes}
        attributes["static_offsets"] = ir.DenseI64ArrayAttr.get([e if isinstance(e, int) else dynamic for e in offsets])
        attributes["static_window"] = window
        if len(attributes["static_valid"]):
            # What of the tile is valid stays in its type.
            attributes["static_valid"] = window
        with ir.InsertionPoint(old), old.location:
            values = [e.emit() for e in offsets if isinstance(e, _Quotient)]
            attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1, len(values), 0, 0])
            new = ir.Operation.create(old.name, [old.results[0].type], [old.operands[0], *values], attributes)
        old.results[0].replace_all_uses_with(new.results[0])
        old.erase()


def plan(load: TileLoadOp, prover: Prover) -> BlockedLoad:
    """Return how to rewrite a load from a logical view that has a blocked shape.

    Raises:
        MxError: the load's target, window or offsets do not allow it.
    """
    attribute: Any = layout_of(load.source.type)
    layout: ScaleLayout = attribute.layout
    _check_target(load, layout)
    window = numbers(load, "window", 2)
    for shape, what in ((window, "window"), (load.output.type.spec.shape, "result")):
        problem = shape_error(layout, shape)
        if problem is not None:
            raise _refuse(load, f"has a {what} that cannot be blocked: {problem}")
    known, waiting = numbers(load, "offsets", 2), iter(load.offsets)
    offsets = [next(waiting) if number is None else number for number in known]
    blocks, groups = (_offset(load, layout, d, offsets[d.axis], prover) for d in dimensions(layout))
    return BlockedLoad(load, (blocks, groups), layout.blocked_shape([n or 0 for n in window]))


def _refuse(load: TileLoadOp, rule: str, notes: Sequence[Any] = ()) -> MxError:
    return MxError.of(at(load.operation, "error", f"'{TileLoadOp.OPERATION_NAME}' op {rule}", tuple(notes)))


def _check_target(load: TileLoadOp, layout: ScaleLayout) -> None:
    if load.target is None:
        raise _refuse(load, f'has no target, and layout {layout.name} needs one; write {{target = "{TARGET}"}}')
    if load.target != TARGET:
        raise _refuse(
            load,
            f"has target '{load.target}', but layout {layout.name} is loaded to {TARGET} only; load it there and move"
            " the tile on",
        )


def _offset(
    load: TileLoadOp, layout: ScaleLayout, dimension: Dimension, offset: Any, prover: Prover
) -> int | _Quotient:
    """Return an offset along a dimension, a number or an index value, in boxes."""
    number = offset if isinstance(offset, int) else constant_of(offset)
    if number is not None:
        return _constant_offset(load, layout, dimension, number)
    multiple = prover.multiple_of(offset, dimension.box)
    _require(
        load,
        layout,
        dimension,
        f"a multiple of {dimension.box}",
        "compute it as whole boxes times the size of a box",
        multiple,
    )
    sign = prover.non_negative(offset)
    _require(
        load, layout, dimension, "0 or more", "compute it from values that are 0 or more, without subtraction", sign
    )
    return _Quotient(offset, dimension.box)


def _constant_offset(load: TileLoadOp, layout: ScaleLayout, dimension: Dimension, number: int) -> int:
    if number < 0 or number % dimension.box:
        needed = "0 or more" if number < 0 else f"a multiple of {dimension.box}"
        raise _refuse(
            load,
            f"has offset {number} along the {dimension}, but layout {layout.name} needs {needed}; start the window at"
            " a whole box",
        )
    return number // dimension.box


def _require(load: TileLoadOp, layout: ScaleLayout, dimension: Dimension, fact: str, remedy: str, proof: Proof) -> None:
    if proof:
        return
    rule = f"has an offset along the {dimension} that is not proven to be {fact}, as layout {layout.name} needs"
    if proof.out_of_budget:
        raise _refuse(load, f"{rule}: {proof.reason}; compute it in fewer operations, without recursive calls")
    note = at(proof.where, "note", f"this value is what is not proven: {proof.reason}")
    raise _refuse(load, f"{rule}: {proof.reason}; {remedy}", [note])
