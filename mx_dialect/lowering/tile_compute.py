"""Lowerings of what works on tiles: moves, casts, quantization, matmuls. Their form is that of `tile_memory`.

Extents that a tile's type leaves open are read from the data. Scales may have more entries than there are data: a load
of whole boxes does not say how many of them are valid.
"""

from collections.abc import Sequence
from typing import Any

from mx_dialect import scalar
from mx_dialect._mlir import arith, ir, linalg, tensor
from mx_dialect.formats import ELEMENT_FORMATS
from mx_dialect.generics import (
    PARALLEL,
    REDUCTION,
    affine_map,
    blocked,
    dims,
    elementwise,
    empty,
    extent,
    generic,
    without_unit_axes,
)
from mx_dialect.layouts.a5 import GROUP_SIZE
from mx_dialect.lowering.slices import assert_equal, assert_inside, index, slice_of, split_numbers, with_type
from mx_dialect.lowering.tile_boundaries import Emitter
from mx_dialect.lowering.value_ops import quantized
from mx_dialect.tile_matmul_ops import MatmulMxAccOp, MatmulMxBiasOp, QuantMxOp, TgetScaleAddrOp
from mx_dialect.tile_ops import TileCastOp, TileCreateOp, TileMoveOp


def lower_move(op: TileMoveOp) -> Emitter:
    def emit() -> Sequence[Any]:
        element_type = op.output.type.element_type
        moved = op.input
        if moved.type.element_type != element_type:
            moved = elementwise(moved, element_type, lambda byte: arith.bitcast(element_type, byte))
        return [_as_result(op, moved, op.output)]

    return emit


def lower_create(op: TileCreateOp) -> Emitter:
    return lambda: [_zeros(op.output.type.shape, op.output.type.element_type)]


def _zeros(sizes: Sequence[Any], element_type: Any) -> Any:
    """Return a tensor of zeros, of code 0 where the type has none."""
    return linalg.fill(_zero(element_type), outs=[empty(sizes, element_type)])


def _zero(element_type: Any) -> Any:
    if isinstance(element_type, ir.IntegerType):
        return arith.constant(element_type, 0)
    if element_type.width > 8:
        return arith.constant(element_type, 0.0)
    return arith.bitcast(element_type, arith.constant(ir.IntegerType.get_signless(element_type.width), 0))


def lower_cast(op: TileCastOp) -> Emitter:
    fmt = ELEMENT_FORMATS[op.input.type.spec.element]

    def emit() -> Sequence[Any]:
        element_type = op.output.type.element_type

        def cast(code: Any) -> Any:
            return scalar.from_f32(scalar.decode_element(code, fmt), element_type)

        return [_as_result(op, elementwise(op.input, element_type, cast), op.output)]

    return emit


def lower_binding(op: TgetScaleAddrOp) -> Emitter:
    return lambda: [op.scale]


def lower_quant(op: QuantMxOp) -> Emitter:
    return lambda: _quantized(op)


def _quantized(op: Any) -> Sequence[Any]:
    """Quantize the valid part of a tile; zeros fill the last group up, which count nowhere."""
    axis = op.scale_layout.group_axis
    sizes = [extent(op.input, i) for i in range(2)]
    groups = _groups(sizes[axis])
    padded = [_times_group(groups) if i == axis else size for i, size in enumerate(sizes)]
    values = op.input if padded == sizes else _padded(op.input, sizes, padded)
    shape = values.type.shape
    scale_shape = [n // GROUP_SIZE if i == axis and n > 0 else n for i, n in enumerate(shape)]
    types = [
        ir.RankedTensorType.get(extents, result.type.element_type)
        for extents, result in ((shape, op.data), (scale_shape, op.scale))
    ]
    fmt = ELEMENT_FORMATS[str(op.data.type.element_type)]
    data, scale = quantized(op, values, axis, GROUP_SIZE, fmt, types)
    if values is not op.input:
        data = slice_of(data, [0, 0], sizes, ir.RankedTensorType.get(op.input.type.shape, data.type.element_type))
    return [_as_result(op, data, op.data), _as_result(op, scale, op.scale)]


def _groups(size: Any) -> Any:
    """Return how many scales cover an extent along K, the last of them perhaps fewer than 32 elements."""
    if isinstance(size, int):
        return -(-size // GROUP_SIZE)
    return arith.divui(arith.addi(size, index(GROUP_SIZE - 1)), index(GROUP_SIZE))


def _times_group(count: Any) -> Any:
    return count * GROUP_SIZE if isinstance(count, int) else arith.muli(count, index(GROUP_SIZE))


def _padded(value: Any, sizes: Sequence[Any], padded: Sequence[Any]) -> Any:
    """Return a tensor with zeros up to larger extents."""
    size_values, static_sizes = split_numbers(sizes)
    zeros = _zeros(padded, value.type.element_type)
    return tensor.insert_slice(value, zeros, [], size_values, [], [0, 0], static_sizes, [1, 1])


def lower_matmul(op: Any) -> Emitter:
    return lambda: [_as_result(op, _product(op), op.output)]


def _product(op: Any) -> Any:
    """Return the f32 product, each scale read through `k floordiv 32`, sums in the order of k."""
    m, n, k = _matmul_sizes(op)
    groups = _groups(k)
    inputs = [
        op.lhs,
        _front(op, op.lhs_scale, [m, groups], "lhs_scale"),
        op.rhs,
        _front(op, op.rhs_scale, [groups, n], "rhs_scale"),
    ]
    fmt = ELEMENT_FORMATS[str(op.lhs.type.element_type)]

    def body(lhs: Any, lhs_scale: Any, rhs: Any, rhs_scale: Any, total: Any) -> Any:
        return op.body(total, scalar.element_value(lhs, lhs_scale, fmt), scalar.element_value(rhs, rhs_scale, fmt))

    loop_m, loop_n, loop_k = dims(3)
    left, right = [loop_m, loop_k], [loop_k, loop_n]
    accesses = [left, blocked(left, 1, GROUP_SIZE), right, blocked(right, 0, GROUP_SIZE), [loop_m, loop_n]]
    maps = [affine_map(3, access) for access in accesses]
    return generic(inputs, _accumulator(op, m, n), maps, [PARALLEL, PARALLEL, REDUCTION], body)


def _matmul_sizes(op: Any) -> tuple[Any, Any, Any]:
    """Return the valid M, N and K of a matmul's data."""
    left, right = extent(op.lhs, 1), extent(op.rhs, 0)
    assert_equal(left, right, f"{op.operation.name}: lhs and rhs have different valid K")
    return extent(op.lhs, 0), extent(op.rhs, 1), left if isinstance(left, int) else right


def _front(op: Any, scale: Any, sizes: Sequence[Any], role: str) -> Any:
    """Return the first entries of a tensor of scales, which may have more than there are data."""
    ends = [extent(scale, axis) for axis in range(2)]
    if ends == list(sizes):
        return scale
    for axis, (end, size) in enumerate(zip(ends, sizes, strict=True)):
        assert_inside(end, 0, size, f"{op.operation.name}: {role} has too few entries along axis {axis}")
    _, static = split_numbers(sizes)
    return slice_of(scale, [0, 0], sizes, ir.RankedTensorType.get(static, scale.type.element_type))


def _accumulator(op: Any, m: Any, n: Any) -> Any:
    """Return what the products are added to: the accumulator, the bias in every row, or zeros."""
    if isinstance(op, MatmulMxAccOp):
        for axis, (size, name) in enumerate(((m, "M"), (n, "N"))):
            message = f"{op.operation.name}: acc has another valid {name} than the product"
            assert_equal(extent(op.acc, axis), size, message)
        return op.acc
    f32 = ir.F32Type.get()
    if not isinstance(op, MatmulMxBiasOp):
        return _zeros([m, n], f32)
    assert_equal(extent(op.bias, 1), n, f"{op.operation.name}: bias has another valid N than the product")
    row = with_type(op.bias, ir.RankedTensorType.get([1, op.bias.type.shape[1]], f32), op.operation.name)
    rows, columns = dims(2)
    maps = [affine_map(2, [columns]), affine_map(2, [rows, columns])]

    def copy(entry: Any, _: Any) -> Any:
        return entry

    return generic([without_unit_axes(row, [0])], empty([m, n], f32), maps, [PARALLEL] * 2, copy)


def _as_result(op: Any, value: Any, result: Any) -> Any:
    return with_type(value, result.type, op.operation.name)


LOWERINGS = {
    "mx.tile_move": lower_move,
    "mx.tile_create": lower_create,
    "mx.tile_cast": lower_cast,
    "mx.tget_scale_addr": lower_binding,
    "mx.quant_mx": lower_quant,
    "mx.matmul_mx": lower_matmul,
    "mx.matmul_mx_acc": lower_matmul,
    "mx.matmul_mx_bias": lower_matmul,
}
