"""Patterns that lower the steps of a load: an expert's slice, and scales between dense rows and quadrants."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mx_dialect._mlir import arith, cf, ir, rewrite, scf, tensor
from mx_dialect.generics import PARALLEL, REDUCTION, affine_map, dims, empty, expand, extent, generic
from mx_dialect.layouts import neuron_scales as layout
from mx_dialect.lowering.neuron_containers import same, swap_first_axes
from mx_dialect.lowering.neuron_signless import bits, of_type
from mx_dialect.lowering.slices import assert_inside, index, numbers, slice_of, split_numbers
from mx_dialect.lowering.value_ops import filled
from mx_dialect.neuron_load_ops import ExpertIndexOp, ScaleGatherOp, ScaleLoadStaticOp, SelectExpertOp

_LARGEST_INDEX = 2**31 - 1


def lower_select_expert(op: SelectExpertOp, rewriter: rewrite.PatternRewriter) -> None:
    """One slice with the expert as its first offset; what must hold at run time is asserted."""
    with rewriter.ip, op.location:
        source = bits(op.input)
        _assert_below(op.expert, extent(source, 0), "mx.select_expert: the expert index is out of range")
        sizes = list(op.output.type.shape)
        offsets = numbers(op.static_offsets, op.offsets)
        for axis, (offset, size) in enumerate(zip(offsets, sizes, strict=True), start=1):
            message = f"mx.select_expert: the range leaves the tensor along axis {axis}"
            assert_inside(source.type.shape[axis], offset, size, message)
        chosen = _slice(source, [op.expert, *offsets], [1, *sizes], drop_first=True)
        result = of_type(chosen, op.output.type)
    rewriter.replace_op(op, [result])


def lower_expert_index(op: ExpertIndexOp, rewriter: rewrite.PatternRewriter) -> None:
    """The vector of expert 0, a constant, plus the expert's first row wherever it is no hole."""
    with rewriter.ip, op.location:
        scale_rows, *counts = op.counts
        i32 = ir.IntegerType.get_signless(32)
        # Checked before it is computed: a row number fits i32.
        limit = _LARGEST_INDEX // scale_rows
        _assert_below(op.expert, limit, "mx.expert_index: the expert index is out of range")
        rows_apart = arith.constant(i32, layout.expert_row(1, 0, scale_rows))
        start = arith.muli(arith.index_cast(i32, op.expert), rows_apart)
        base = np.roll(layout.expert_index(0, scale_rows, *counts), op.offset)
        type_ = op.output.type
        of_expert_0 = arith.constant(type_, ir.DenseElementsAttr.get(base, type=type_))

        def body(row: Any, first: Any, _: Any) -> Any:
            is_hole = arith.cmpi(arith.CmpIPredicate.eq, row, arith.constant(i32, layout.HOLE))
            return arith.select(is_hole, row, arith.addi(row, first))

        identity = affine_map(1, dims(1))
        maps = [identity, affine_map(1, []), identity]
        indices = generic([of_expert_0, start], empty([layout.PARTITIONS], i32), maps, [PARALLEL], body)
    rewriter.replace_op(op, [indices])


def lower_scale_gather(op: ScaleGatherOp, rewriter: rewrite.PatternRewriter) -> None:
    """A loop over partitions that copies the rows which are no holes into zeros."""
    with rewriter.ip, op.location:
        source = bits(op.scales)
        _assert_rows(op.indices, _row_count(source))
        start = filled(op.output.type.shape, source.type.element_type)
        loop = scf.ForOp(index(0), index(layout.PARTITIONS), index(1), [start])
        with ir.InsertionPoint(loop.body):
            partition, tile = loop.induction_variable, loop.inner_iter_args[0]
            scf.yield_([_with_row(source, op.indices, partition, tile)])
        result = of_type(loop.results[0], op.output.type)
    rewriter.replace_op(op, [result])


def _row_count(source: Any) -> Any:
    """Return how many rows all experts have together; more than i32 can number count as one more than that."""
    experts, rows = extent(source, 0), source.type.shape[1]
    if isinstance(experts, int):
        return index(min(experts * rows, _LARGEST_INDEX + 1))
    return arith.muli(experts, index(rows))


def _with_row(source: Any, indices: Any, partition: Any, tile: Any) -> Any:
    """Return a tile with the row that a partition's index asks for, or as it is if that is a hole."""
    row = arith.index_cast(ir.IndexType.get(), tensor.extract(indices, [partition]))
    is_row = arith.cmpi(arith.CmpIPredicate.ne, row, index(layout.HOLE))
    chosen = scf.IfOp(is_row, [tile.type], has_else=True)
    with ir.InsertionPoint(chosen.then_block):
        # Divided, the row is reached in any memory layout; folding the axes could need a copy of all experts.
        rows, rest = source.type.shape[1], list(tile.type.shape)[1:]
        place = [arith.divui(row, index(rows)), arith.remui(row, index(rows))]
        entry = _slice(source, [*place, *[0] * len(rest)], [1, 1, *rest], drop_first=True)
        scf.yield_([_inserted(entry, tile, partition)])
    with ir.InsertionPoint(chosen.else_block):
        scf.yield_([tile])
    return chosen.results[0]


def lower_scale_load_static(op: ScaleLoadStaticOp, rewriter: rewrite.PatternRewriter) -> None:
    with rewriter.ip, op.location:
        dense = bits(op.scales)
        if op.has_tiles:
            dense = swap_first_axes(expand(dense, 0, layout.SCALE_ROWS))
        result = of_type(spread(dense, layout.PARTITIONS, op.offset), op.output.type)
    rewriter.replace_op(op, [result])


def spread(dense: Any, partitions: int, offset: int) -> Any:
    """Return a tile with dense scale rows in its quadrants, four to each, and zeros in the holes."""
    rows, *rest = dense.type.shape
    tile = filled([partitions, *rest], dense.type.element_type)
    for first in range(0, rows, layout.QUADRANT_ROWS):
        count = min(layout.QUADRANT_ROWS, rows - first)
        part = _slice(dense, [first, *[0] * len(rest)], [count, *rest])
        tile = _inserted(part, tile, layout.scale_partition(first, offset))
    return tile


def dense(tile: Any, rows: int, offset: int) -> Any:
    """Return the dense scale rows of a tile, which are in its quadrants unless they are all that it has."""
    if tile.type.shape[0] == rows:
        return tile
    row, column = dims(2)
    maps = [affine_map(2, [layout.scale_partition(row, offset), column]), affine_map(2, [row, column])]
    result = empty([rows, tile.type.shape[1]], tile.type.element_type)
    return generic([tile], result, maps, [PARALLEL] * 2, same)


def _assert_rows(indices: Any, rows: Any) -> None:
    """Assert that every index is a hole or one of the rows there are."""
    i1 = ir.IntegerType.get_signless(1)
    index_type = ir.IndexType.get()

    def body(entry: Any, count: Any, so_far: Any) -> Any:
        # Counted from the hole, and unsigned, so that what is below it is far above.
        above_hole = arith.subi(arith.index_cast(index_type, entry), arith.constant(index_type, layout.HOLE))
        inside = arith.cmpi(arith.CmpIPredicate.ule, above_hole, count)
        return arith.andi(so_far, inside)

    true = tensor.from_elements(ir.RankedTensorType.get([], i1), [arith.constant(i1, 1)])
    maps = [affine_map(1, dims(1)), affine_map(1, []), affine_map(1, [])]
    verdict = generic([indices, rows], true, maps, [REDUCTION], body)
    cf.AssertOp(tensor.extract(verdict, []), "mx.scale_gather: an index is out of range")


def _assert_below(value: Any, limit: Any, message: str) -> None:
    """Assert that an index is 0 or more and below a limit, an int or an index."""
    # Unsigned, so that a negative index is far above.
    cf.AssertOp(arith.cmpi(arith.CmpIPredicate.ult, value, index(limit)), message)


def _slice(value: Any, offsets: Sequence[Any], sizes: Sequence[int], drop_first: bool = False) -> Any:
    """Return a part of a tensor, with `drop_first` without its first axis, of extent 1."""
    type_ = ir.RankedTensorType.get(list(sizes)[1 if drop_first else 0 :], value.type.element_type)
    return slice_of(value, offsets, sizes, type_)


def _inserted(part: Any, tile: Any, partition: Any) -> Any:
    """Return a tile with rows inserted from a partition on."""
    shape = list(part.type.shape)
    values, static = split_numbers([partition, *[0] * (len(shape) - 1)])
    return tensor.insert_slice(part, tile, values, [], [], static, shape, [1] * len(shape))


PATTERNS = (
    (SelectExpertOp, lower_select_expert),
    (ExpertIndexOp, lower_expert_index),
    (ScaleGatherOp, lower_scale_gather),
    (ScaleLoadStaticOp, lower_scale_load_static),
)
