"""Patterns that lower the shape operations to the same operation on each part; what must hold at run time is asserted."""

from collections.abc import Sequence
from typing import Any

from mx_dialect._mlir import arith, cf, ir, rewrite, tensor
from mx_dialect.fold_chain import chain, strip
from mx_dialect.generics import extent
from mx_dialect.lowering.parts import join, part_types, parts
from mx_dialect.lowering.slices import assert_extents, assert_inside, index, numbers, slice_of
from mx_dialect.ops import fold_scale
from mx_dialect.shape_ops import CastOp, DimOp, ExtractSliceOp


def lower_dim(op: DimOp, rewriter: rewrite.PatternRewriter) -> None:
    with rewriter.ip, op.location:
        unfolded, _ = chain(op.input)
        mantissa, _ = parts(unfolded)
        _assert_axis(op.axis, mantissa.type.rank)
        size = tensor.dim(mantissa, op.axis)
    rewriter.replace_op(op, [size])


def _assert_axis(axis: Any, rank: int) -> None:
    """Assert that a dynamic axis is one of the tensor's."""
    known = _constant(axis)
    if known is None or not 0 <= known < rank:
        inside = arith.cmpi(arith.CmpIPredicate.ult, axis, index(rank))
        cf.AssertOp(inside, f"mx.dim: the tensor has no such axis, only {rank}")


def lower_cast(op: CastOp, rewriter: rewrite.PatternRewriter) -> None:
    with rewriter.ip, op.location:
        unfolded, factor = strip(op.input)
        pair = parts(unfolded)
        assert_extents(pair[0], op.output.type, "mx.cast")
        cast = [
            part if part.type == type_ else tensor.cast(type_, part)
            for part, type_ in zip(pair, part_types(op.output.type), strict=True)
        ]
        whole = _folded(join(op.output.type, *cast), factor)
    rewriter.replace_op(op, [whole])


def lower_extract_slice(op: ExtractSliceOp, rewriter: rewrite.PatternRewriter) -> None:
    """Both parts are sliced; along the blocked axis the scales by the number of blocks."""
    with rewriter.ip, op.location:
        type_ = op.input.type
        axis, block_size = type_.axis, type_.block_size
        offsets = numbers(op.static_offsets, op.offsets)
        sizes = numbers(op.static_sizes, op.sizes)
        for number, what in ((offsets[axis], "offset"), (sizes[axis], "size")):
            _assert_whole_blocks(number, what, axis, block_size)
        unfolded, factor = strip(op.input)
        mantissa, scale = parts(unfolded)
        for i, (offset, size) in enumerate(zip(offsets, sizes, strict=True)):
            message = f"mx.extract_slice: the slice leaves the tensor along axis {i}"
            assert_inside(extent(mantissa, i), offset, size, message)
        sliced_types = part_types(op.output.type)
        scale_offsets = _in_blocks(offsets, axis, block_size)
        scale_sizes = _in_blocks(sizes, axis, block_size)
        sliced = (
            slice_of(mantissa, offsets, sizes, sliced_types[0]),
            slice_of(scale, scale_offsets, scale_sizes, sliced_types[1]),
        )
        whole = _folded(join(op.output.type, *sliced), factor)
    rewriter.replace_op(op, [whole])


def _folded(value: Any, factor: Any | None) -> Any:
    """Return a value times the factor that was folded into what it was made of, for its users to take over."""
    return value if factor is None else fold_scale(value, factor)


def _in_blocks(numbers: Sequence[Any], axis: int, block_size: int) -> list[Any]:
    def divided(number: Any) -> Any:
        return number // block_size if isinstance(number, int) else arith.divui(number, index(block_size))

    return [divided(n) if i == axis else n for i, n in enumerate(numbers)]


def _assert_whole_blocks(number: Any, what: str, axis: int, block_size: int) -> None:
    """Assert that a dynamic number is a multiple of the block size, unless it is seen to be."""
    if isinstance(number, int) or block_size == 1 or is_multiple(number, block_size):
        return
    rest = arith.remui(number, index(block_size))
    whole = arith.cmpi(arith.CmpIPredicate.eq, rest, index(0))
    message = f"mx.extract_slice: the {what} along blocked axis {axis} is not a multiple of block size {block_size}"
    cf.AssertOp(whole, message)


def is_multiple(value: Any, divisor: int) -> bool:
    """Tell whether an index is a multiple of a power of two, as a constant or a product with one shows."""
    factors = [value]
    # A wrapped product is still a multiple of a power of two.
    if isinstance(value, ir.OpResult) and value.owner.name in ("arith.muli", "index.mul"):
        factors += value.owner.operands
    return any(known is not None and known % divisor == 0 for known in map(_constant, factors))


def _constant(value: Any) -> int | None:
    """Return the number of an index that an arith.constant defines, or None."""
    if not isinstance(value, ir.OpResult) or value.owner.name != "arith.constant":
        return None
    return ir.IntegerAttr(value.owner.attributes["value"]).value


PATTERNS = (
    (DimOp, lower_dim),
    (CastOp, lower_cast),
    (ExtractSliceOp, lower_extract_slice),
)
