"""Patterns that lower the operations on x4 containers to generics that put lanes in place.

The formulas of a layout, evaluated on affine expressions, are the indexing maps.
"""

from collections.abc import Callable, Sequence
from typing import Any

from mx_dialect import neuron_scalar
from mx_dialect._mlir import arith, rewrite
from mx_dialect.formats import ElementFormat
from mx_dialect.generics import PARALLEL, affine_map, collapse, dims, empty, expand, generic
from mx_dialect.layouts.neuron import LANES, MX_INTERLEAVED, lane_shift, weight_row
from mx_dialect.layouts.neuron_scales import PARTITIONS
from mx_dialect.lowering.neuron_signless import bits, of_type, signless
from mx_dialect.neuron_ops import DmaTransposeOp, PackWeightsOp, PartitionRowsOp, ViewCastOp
from mx_dialect.neuron_types import is_x4


def lower_view_cast(op: ViewCastOp, rewriter: rewrite.PatternRewriter) -> None:
    """A view is the same bits: it becomes nothing."""
    with rewriter.ip, op.location:
        view = of_type(bits(op.input), op.output.type)
    rewriter.replace_op(op, [view])


def lower_pack_weights(op: PackWeightsOp, rewriter: rewrite.PatternRewriter) -> None:
    with rewriter.ip, op.location:
        row, column = dims(2)
        layout, rows = op.layout.value, op.input.type.shape[0]
        packed = _packed(op.input, op.output.type, lambda lane: [weight_row(layout, row, lane, rows), column])
    rewriter.replace_op(op, [packed])


def lower_dma_transpose(op: DmaTransposeOp, rewriter: rewrite.PatternRewriter) -> None:
    with rewriter.ip, op.location:
        row, token, lane = dims(3)
        features = op.input.type.shape[1]
        if is_x4(op.output.type.element_type):

            def access(number: int) -> list[Any]:
                return [token, weight_row(MX_INTERLEAVED, row, number, features)]

            transposed = _packed(op.input, op.output.type, access)
        else:
            source = affine_map(3, [token, weight_row(MX_INTERLEAVED, row, lane, features)])
            shape = [features // LANES, op.input.type.shape[0], LANES]
            lanes = _moved(op.input, shape, [source, affine_map(3, [row, token, lane])])
            transposed = collapse(lanes, 1, op.output.type)
    rewriter.replace_op(op, [transposed])


def lower_partition_rows(op: PartitionRowsOp, rewriter: rewrite.PatternRewriter) -> None:
    with rewriter.ip, op.location:
        tiles = swap_first_axes(expand(bits(op.input), 0, PARTITIONS))
        result = of_type(tiles, op.output.type)
    rewriter.replace_op(op, [result])


def _packed(source: Any, type_: Any, access: Callable[[int], Sequence[Any]]) -> Any:
    """Return containers of this type, two loops, whose lane q is the source's element at access(q)."""
    fmt = type_.element_type.format
    width = signless(type_.element_type)

    def body(*elements: Any) -> Any:
        container = arith.constant(width, 0)
        for lane, element in enumerate(elements[:LANES]):
            shift = arith.constant(width, lane_shift(lane, fmt.bits))
            container = neuron_scalar.with_lane(container, _code(element, fmt), shift)
        return container

    maps = [*(affine_map(2, access(lane)) for lane in range(LANES)), affine_map(2, dims(2))]
    packed = generic([source] * LANES, empty(type_.shape, width), maps, [PARALLEL] * 2, body)
    return of_type(packed, type_)


def _code(element: Any, fmt: ElementFormat) -> Any:
    """Return an element as it is, or its code without the bits that do not belong to it."""
    if fmt.bits == 8:
        return element
    return arith.andi(element, arith.constant(element.type, (1 << fmt.bits) - 1))


def _moved(source: Any, shape: Sequence[int], maps: Sequence[Any]) -> Any:
    """Return a tensor of this shape whose elements are the source's at another place."""
    result = empty(shape, source.type.element_type)
    return generic([source], result, maps, [PARALLEL] * len(shape), same)


def same(element: Any, _: Any) -> Any:
    """Return the element read: the body of a generic that moves elements."""
    return element


def swap_first_axes(value: Any) -> Any:
    """Return a tensor with its first two axes swapped."""
    first, second, *rest = dims(value.type.rank)
    extents = list(value.type.shape)
    shape = [extents[1], extents[0], *extents[2:]]
    rank = len(shape)
    return _moved(value, shape, [affine_map(rank, [second, first, *rest]), affine_map(rank, [first, second, *rest])])


PATTERNS = (
    (ViewCastOp, lower_view_cast),
    (PackWeightsOp, lower_pack_weights),
    (DmaTransposeOp, lower_dma_transpose),
    (PartitionRowsOp, lower_partition_rows),
)
