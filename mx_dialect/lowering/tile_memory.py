"""Lowerings of what goes between global memory and tiles: loads, stores, views of scales.

A lowering reads an operation as it was written and returns what emits its replacement, to be called at its place once
values have their plain types. What the engine would do out of bounds, an assert refuses at run time.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

from mx_dialect._mlir import arith, cf, ir, linalg, tensor
from mx_dialect.diagnostics import error_at
from mx_dialect.generics import PARALLEL, affine_map, dims, empty, extent, generic, reassociation
from mx_dialect.layouts.a5 import BOX_BLOCKS, BOX_GROUPS, ScaleLayout, blocked_index
from mx_dialect.lowering.slices import (
    assert_equal,
    assert_inside,
    index,
    numbers,
    slice_of,
    split_numbers,
)
from mx_dialect.lowering.tile_boundaries import MAX_INDEX, Emitter, code_type, from_codes, to_code, to_codes
from mx_dialect.tile_memory_ops import TensorViewOp, TileLoadOp, TileStoreOp
from mx_dialect.tile_spec import TileSpec
from mx_dialect.tile_types import layout_of

_DYNAMIC = -(2**63)


def lower_load(op: TileLoadOp) -> Emitter:
    spec, source = op.output.type.spec, op.source.type
    view = layout_of(source)
    if view is None:
        return lambda: [_load_window(op, spec)]
    if source.rank == 2:
        return lambda: [_load_entries(op, spec, view.layout)]
    _require_whole_boxes(op)
    return lambda: [_load_boxes(op, spec, view.layout)]


def _load_window(op: Any, spec: TileSpec) -> Any:
    """Slice the valid part of a window out of a plain tensor."""
    offsets, sizes = numbers(op.static_offsets, op.offsets), _sizes(op, spec)
    for axis, (offset, size) in enumerate(zip(offsets, sizes, strict=True)):
        _assert_in_tensor(op, extent(op.source, axis), offset, size, axis)
    element_type = op.source.type.element_type
    type_ = ir.RankedTensorType.get(op.output.type.shape, element_type)
    return to_codes(slice_of(op.source, offsets, sizes, type_))


def _sizes(op: Any, spec: TileSpec) -> list[Any]:
    """Return the valid extents of a load of rank 2: ints where the tile's type has them static, else index values."""
    window = numbers(op.static_window, op.window)
    given = numbers(op.static_valid, op.valid) if len(op.static_valid) else window
    sizes: list[Any] = []
    for axis, (size, claim) in enumerate(zip(given, spec.valid, strict=True)):
        if claim is not None:
            assert_equal(size, claim, f"mx.tile_load: the valid extent of axis {axis} is not {claim}")
        bound = window[axis] if spec.shape[axis] is None else spec.shape[axis]
        message = f"mx.tile_load: the valid extent of axis {axis} is more than that of the window"
        assert_inside(bound, 0, size if claim is None else claim, message)
        sizes.append(index(size) if claim is None else claim)
    return sizes


def _assert_in_tensor(op: Any, end: Any, offset: Any, size: Any, axis: int) -> None:
    name = op.operation.name
    what = "load" if isinstance(op, TileLoadOp) else "store"
    assert_inside(end, offset, size, f"{name}: the {what} leaves the tensor along axis {axis}")


def _load_entries(op: Any, spec: TileSpec, layout: ScaleLayout) -> Any:
    """Gather the entries of a window of a view of scales in logical shape, which may begin anywhere."""
    offsets, sizes = numbers(op.static_offsets, op.offsets), _sizes(op, spec)
    ends = layout.logical(*_logical_extents(op.source))
    for axis, (end, offset, size) in enumerate(zip(ends, offsets, sizes, strict=True)):
        _assert_in_tensor(op, end, offset, size, axis)
    return _gathered(op.source, offsets, sizes, layout)


def _load_boxes(op: Any, spec: TileSpec, layout: ScaleLayout) -> Any:
    """Gather the entries of a window of whole boxes; of a dynamic valid shape all that the window has in the tensor."""
    _, *boxes, _, _ = numbers(op.static_offsets, op.offsets)
    ends = _logical_extents(op.source)
    windows = layout.split(spec.shape)
    starts: list[Any] = []
    sizes: list[Any] = []
    for axis, box, valid in zip((0, 1), (BOX_BLOCKS, BOX_GROUPS), layout.split(spec.valid), strict=True):
        # Boxes are counted first, since their number times the size of one may wrap.
        message = f"mx.tile_load: the load leaves the tensor along axis {axis + 1}"
        assert_inside(extent(op.source, axis + 1), boxes[axis], 0, message)
        start = _times(boxes[axis], box)
        size = _at_most(windows[axis], ends[axis], start) if valid is None else valid
        assert_inside(ends[axis], start, size, message)
        starts.append(start)
        sizes.append(index(size) if valid is None else size)
    return _gathered(op.source, layout.logical(*starts), layout.logical(*sizes), layout)


def _require_whole_boxes(op: Any) -> None:
    """Refuse offsets into boxes: the first, fourth and fifth offset of a view in blocked shape are 0."""
    offsets = list(op.static_offsets)
    if any((offsets[0], *offsets[3:])):
        spelled = ", ".join("?" if n == _DYNAMIC else str(n) for n in offsets)
        raise error_at(
            op,
            f"'mx.tile_load' op loads whole boxes, but has offsets [{spelled}] into a box;"
            " expected [0, box, box, 0, 0]",
        )


def _logical_extents(boxes: Any) -> tuple[Any, Any]:
    """Return how many blocks and groups a tensor of boxes has, ints or index values."""
    return _times(extent(boxes, 1), BOX_BLOCKS), _times(extent(boxes, 2), BOX_GROUPS)


def _times(number: Any, factor: int) -> Any:
    return number * factor if isinstance(number, int) else arith.muli(number, index(factor))


def _at_most(size: Any, end: Any, start: Any) -> Any:
    """Return `size`, or what is left from `start` to `end` if that is less."""
    if all(isinstance(n, int) for n in (end, start)):
        return max(min(size, end - start), 0)
    return arith.minui(index(size), arith.subi(index(end), index(start)))


def _gathered(boxes: Any, offsets: Sequence[Any], sizes: Sequence[Any], layout: ScaleLayout) -> Any:
    """Return the entries of a tensor of boxes at logical offsets, as tiles hold them."""
    element_type = code_type(boxes.type.element_type)

    def divided(number: Any, divisor: int) -> Any:
        return arith.divui(number, index(divisor))

    def rest(number: Any, divisor: int) -> Any:
        return arith.remui(number, index(divisor))

    def entry(_: Any) -> Any:
        loops = [linalg.IndexOp(axis).result for axis in range(len(offsets))]
        place = [
            loop if isinstance(offset, int) and offset == 0 else arith.addi(loop, index(offset))
            for loop, offset in zip(loops, offsets, strict=True)
        ]
        indices = blocked_index(*layout.split(place), divided, rest)
        return to_code(tensor.extract(boxes, [index(i) for i in indices]))

    return generic([], empty(sizes, element_type), [affine_map(2, dims(2))], [PARALLEL] * 2, entry)


def lower_store(op: TileStoreOp) -> Emitter:
    if layout_of(op.dest.type) is not None:
        raise error_at(
            op,
            f"'mx.tile_store' op cannot store into a view of scales, '{op.dest.type}'; view it as a plain tensor with"
            " mx.tensor_view",
        )
    return lambda: [_store(op)]


def _store(op: Any) -> Any:
    """Insert a tile into a tensor."""
    offsets = numbers(op.static_offsets, op.offsets)
    sizes = [extent(op.tile, axis) for axis in range(2)]
    for axis, (offset, size) in enumerate(zip(offsets, sizes, strict=True)):
        _assert_in_tensor(op, extent(op.dest, axis), offset, size, axis)
    elements = from_codes(op.tile, op.dest.type.element_type)
    offset_values, static_offsets = split_numbers(offsets)
    size_values, static_sizes = split_numbers(sizes)
    return tensor.insert_slice(
        elements, op.dest, offset_values, size_values, [], static_offsets, static_sizes, [1] * len(sizes)
    )


def lower_view(op: TensorViewOp) -> Emitter:
    for type_ in (op.input.type, op.output.type):
        if type_.rank == 0:
            raise error_at(op, f"'mx.tensor_view' op views boxes of scales, and '{type_}' holds a single byte")
        if prod(max(n, 1) for n in type_.shape) > MAX_INDEX:
            raise error_at(op, f"'mx.tensor_view' op views more bytes than an index can count, '{type_}'")
    shape, view = list(op.output.type.shape), layout_of(op.output.type)
    layout = view.layout if view is not None and len(shape) == 2 else None
    return lambda: [_view(op, shape, layout)]


def _view(op: Any, shape: Sequence[int], layout: ScaleLayout | None) -> Any:
    """Give bytes another shape: that of the operation's result, or of its boxes where the result is a logical view."""
    sizes: list[Any] = []
    for axis, (size, claim) in enumerate(zip(numbers(op.static_sizes, op.sizes), shape, strict=True)):
        if claim != _DYNAMIC:
            assert_equal(size, claim, f"mx.tensor_view: the size of axis {axis} is not {claim}")
        sizes.append(index(size) if claim == _DYNAMIC else claim)
    if layout is not None:
        sizes = _box_counts(sizes, layout)
    flat = _flattened(op.input)
    count = extent(flat, 0)
    _assert_count(count, sizes)
    if isinstance(count, int) != all(isinstance(size, int) for size in sizes):
        flat = tensor.cast(_flat_type(_product(sizes), flat.type.element_type), flat)
    values, static = split_numbers(sizes)
    return tensor.expand_shape(op.output.type, flat, reassociation([list(range(len(sizes)))]), values, static)


def _box_counts(sizes: Sequence[Any], layout: ScaleLayout) -> list[Any]:
    """Return the blocked shape of logical sizes; dynamic ones are asserted to be of whole boxes."""
    counts: list[Any] = []
    for size, box in zip(layout.split(sizes), (BOX_BLOCKS, BOX_GROUPS), strict=True):
        if isinstance(size, int):
            counts.append(size // box)
            continue
        message = f"mx.tensor_view: a size of {layout.name} is not a multiple of {box}"
        assert_equal(arith.remui(size, index(box)), 0, message)
        counts.append(arith.divui(size, index(box)))
    return [1, *counts, BOX_BLOCKS, BOX_GROUPS]


def _assert_count(count: Any, sizes: Sequence[Any]) -> None:
    """Assert that sizes have a product. It is divided by one after the other: multiplied, they might wrap."""
    message = "mx.tensor_view: the number of bytes is not that of the result"
    known = prod(size for size in sizes if isinstance(size, int))
    dynamic = [size for size in sizes if not isinstance(size, int)]
    if known == 0 or not dynamic:
        assert_equal(count, known, message)
        return
    rest = _divided(count, index(known), message)
    for size in dynamic[:-1]:
        cf.AssertOp(arith.cmpi(arith.CmpIPredicate.ne, size, index(0)), message)
        rest = _divided(rest, size, message)
    assert_equal(rest, dynamic[-1], message)


def _divided(number: Any, divisor: Any, message: str) -> Any:
    """Return a number divided by another, which is asserted to leave nothing."""
    assert_equal(arith.remui(index(number), divisor), 0, message)
    return arith.divui(index(number), divisor)


def _product(numbers: Sequence[Any]) -> int | None:
    """Return the product of ints, None if there is an index value among them."""
    static = [n for n in numbers if isinstance(n, int)]
    return prod(static) if len(static) == len(numbers) else None


def _flat_type(count: int | None, element_type: Any) -> Any:
    return ir.RankedTensorType.get([_DYNAMIC if count is None else count], element_type)


def _flattened(value: Any) -> Any:
    """Return a tensor with all of its axes merged."""
    if value.type.rank == 1:
        return value
    axes = reassociation([list(range(value.type.rank))])
    return tensor.collapse_shape(_flat_type(_count(value.type), value.type.element_type), value, axes)


def _count(type_: Any) -> int | None:
    """Return how many elements a tensor type has, None if that is dynamic."""
    return _product([None if n == _DYNAMIC else n for n in type_.shape])


LOWERINGS = {
    "mx.tile_load": lower_load,
    "mx.tile_store": lower_store,
    "mx.tensor_view": lower_view,
}
