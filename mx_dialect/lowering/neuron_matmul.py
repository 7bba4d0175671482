"""Patterns that lower the matrix engine's operations: quantization to containers, and the product of containers."""

from typing import Any

from mx_dialect import scalar
from mx_dialect._mlir import arith, ir, linalg, rewrite
from mx_dialect.generics import (
    PARALLEL,
    REDUCTION,
    affine_map,
    blocked,
    collapse,
    dims,
    elementwise,
    empty,
    expand,
    generic,
)
from mx_dialect.layouts.neuron import LANES, lane_shift
from mx_dialect.layouts.neuron_scales import PARTITIONS_PER_SCALE
from mx_dialect.lowering.neuron_scales import dense, spread
from mx_dialect.lowering.neuron_signless import bits, of_type, signless
from mx_dialect.lowering.value_ops import filled
from mx_dialect.neuron_matmul_ops import NcMatmulMxOp, QuantizeMxOp


def lower_quantize_mx(op: QuantizeMxOp, rewriter: rewrite.PatternRewriter) -> None:
    """The input, as [groups, 8, F, 4], is reduced to maxima of groups, those to scales; then lanes are put in place."""
    with rewriter.ip, op.location:
        groups = expand(expand(op.input, 1, LANES), 0, PARTITIONS_PER_SCALE)
        scale = _group_scales(op, groups)
        data = of_type(collapse(_containers(op, groups, scale), 0, signless(op.data.type)), op.data.type)
        rows = op.scale.type.shape[0]
        is_dense = rows == scale.type.shape[0]
        scales = of_type(scale if is_dense else spread(scale, rows, op.scale_offset), op.scale.type)
    rewriter.replace_op(op, [data, scales])


def _group_scales(op: QuantizeMxOp, groups: Any) -> Any:
    """Return the dense scale codes [groups, F] of [groups, 8, F, 4] values."""
    fmt, headroom = op.data.type.element_type.format, op.headroom
    count, _, columns, _ = groups.type.shape
    group, _, column, _ = elements = dims(4)

    def larger(value: Any, largest: Any) -> Any:
        return arith.maxui(largest, scalar.magnitude_bits(value))

    def to_scale(largest: Any) -> Any:
        return op.scale_body(largest, fmt, headroom)

    amax = generic(
        [groups],
        filled([count, columns], _signless(32)),
        [affine_map(4, elements), affine_map(4, [group, column])],
        [PARALLEL, REDUCTION, PARALLEL, REDUCTION],
        larger,
    )
    return elementwise(amax, _signless(8), to_scale)


def _containers(op: QuantizeMxOp, groups: Any, scale: Any) -> Any:
    """Return the containers [groups, 8, F] of [groups, 8, F, 4] values with dense scales."""
    fmt = op.data.type.element_type.format
    i32 = _signless(32)
    group, partition, column, lane = elements = dims(4)

    def to_lane(value: Any, code: Any, shift: Any, container: Any) -> Any:
        return op.lane_body(container, op.body(value, code, fmt), shift)

    accesses = (elements, [group, column], [lane], [group, partition, column])
    return generic(
        [groups, scale, _shifts(i32, fmt.bits)],
        filled(groups.type.shape[:3], i32),
        [affine_map(4, access) for access in accesses],
        [PARALLEL, PARALLEL, PARALLEL, REDUCTION],
        to_lane,
    )


def _signless(width: int) -> Any:
    return ir.IntegerType.get_signless(width)


def lower_nc_matmul_mx(op: NcMatmulMxOp, rewriter: rewrite.PatternRewriter) -> None:
    """One generic over columns, partitions and lanes; scales, out of their quadrants, are reached by p floordiv 8."""
    with rewriter.ip, op.location:
        row, column, partition, lane = dims(4)
        stationary, moving = (
            _Operand(op, "stationary", [partition, row]),
            _Operand(op, "moving", [partition, column]),
        )
        out = [row, column]
        dst = op.dst if op.accumulate else _zeros(op.dst.type)

        def body(*scalars: Any) -> Any:
            *read, accumulator = scalars
            lhs, rhs = (
                op.lane_body(container, shift, scale, side.format)
                for side, (container, scale, shift) in ((stationary, read[:3]), (moving, read[3:]))
            )
            return op.body(accumulator, lhs, rhs)

        inputs = [*stationary.tensors, *moving.tensors]
        accesses = [access for side in (stationary, moving) for access in (*side.accesses, [lane])]
        maps = [affine_map(4, access) for access in (*accesses, out)]
        product = generic(inputs, dst, maps, [PARALLEL, PARALLEL, REDUCTION, REDUCTION], body)
    rewriter.replace_op(op, [product])


def _zeros(type_: Any) -> Any:
    return linalg.fill(scalar.f32(0.0), outs=[empty(type_.shape, type_.element_type)])


class _Operand:
    """One side of the product: containers, dense scales and lane shifts, and how the first two are reached."""

    def __init__(self, op: NcMatmulMxOp, role: str, access: list[Any]):
        value = getattr(op, role)
        self.format = value.type.element_type.format
        containers = bits(value)
        rows = containers.type.shape[0] // PARTITIONS_PER_SCALE
        scale = dense(bits(getattr(op, f"{role}_scale")), rows, op.scale_offset(role))
        self.tensors = [containers, scale, _shifts(containers.type.element_type, self.format.bits)]
        self.accesses = [access, blocked(access, 0, PARTITIONS_PER_SCALE)]


def _shifts(type_: Any, width: int) -> Any:
    """Return the lowest bit of each lane as a constant tensor, which vectorizes, where an index of a loop does not."""
    values = [ir.IntegerAttr.get(type_, lane_shift(lane, width)) for lane in range(LANES)]
    tensor_type = ir.RankedTensorType.get([LANES], type_)
    return arith.constant(tensor_type, ir.DenseElementsAttr.get(values, tensor_type))


PATTERNS = (
    (QuantizeMxOp, lower_quantize_mx),
    (NcMatmulMxOp, lower_nc_matmul_mx),
)
