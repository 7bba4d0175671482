"""Patterns that lower the shape operations to the same operation on each part; what must hold at run time is asserted."""

from collections.abc import Sequence
from typing import Any

from mx_dialect._mlir import arith, cf, ir, rewrite, tensor
from mx_dialect.fold_chain import chain, strip
from mx_dialect.generics import extent
from mx_dialect.lowering.parts import join, part_types, parts
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
        inside = arith.cmpi(arith.CmpIPredicate.ult, axis, _index(rank))
        cf.AssertOp(inside, f"mx.dim: the tensor has no such axis, only {rank}")


def lower_cast(op: CastOp, rewriter: rewrite.PatternRewriter) -> None:
    with rewriter.ip, op.location:
        unfolded, factor = strip(op.input)
        pair = parts(unfolded)
        _assert_extents(pair[0], op.output.type)
        cast = [
            part if part.type == type_ else tensor.cast(type_, part)
            for part, type_ in zip(pair, part_types(op.output.type), strict=True)
        ]
        whole = _folded(join(op.output.type, *cast), factor)
    rewriter.replace_op(op, [whole])


def _assert_extents(mantissa: Any, claimed: Any) -> None:
    """Assert the extents that a cast claims to be static."""
    dynamic = ir.ShapedType.get_dynamic_size()
    for axis, (known, claim) in enumerate(zip(mantissa.type.shape, claimed.shape, strict=True)):
        if known == dynamic and claim != dynamic:
            found = tensor.dim(mantissa, _index(axis))
            holds = arith.cmpi(arith.CmpIPredicate.eq, found, _index(claim))
            cf.AssertOp(holds, f"mx.cast: the extent of axis {axis} is not {claim}")


def lower_extract_slice(op: ExtractSliceOp, rewriter: rewrite.PatternRewriter) -> None:
    """Both parts are sliced; along the blocked axis the scales by the number of blocks."""
    with rewriter.ip, op.location:
        type_ = op.input.type
        axis, block_size = type_.axis, type_.block_size
        offsets = _numbers(op.static_offsets, op.offsets)
        sizes = _numbers(op.static_sizes, op.sizes)
        for number, what in ((offsets[axis], "offset"), (sizes[axis], "size")):
            _assert_whole_blocks(number, what, axis, block_size)
        unfolded, factor = strip(op.input)
        mantissa, scale = parts(unfolded)
        for i, (offset, size) in enumerate(zip(offsets, sizes, strict=True)):
            _assert_inside(mantissa, i, offset, size)
        sliced_types = part_types(op.output.type)
        scale_offsets = _in_blocks(offsets, axis, block_size)
        scale_sizes = _in_blocks(sizes, axis, block_size)
        sliced = (
            _slice(mantissa, offsets, sizes, sliced_types[0]),
            _slice(scale, scale_offsets, scale_sizes, sliced_types[1]),
        )
        whole = _folded(join(op.output.type, *sliced), factor)
    rewriter.replace_op(op, [whole])


def _folded(value: Any, factor: Any | None) -> Any:
    """Return a value times the factor that was folded into what it was made of, for its users to take over."""
    return value if factor is None else fold_scale(value, factor)


def _numbers(static: Any, values: Sequence[Any]) -> list[Any]:
    """Return a list of ints and index values."""
    waiting = iter(values)
    dynamic = ir.ShapedType.get_dynamic_size()
    return [next(waiting) if n == dynamic else n for n in static]


def _in_blocks(numbers: Sequence[Any], axis: int, block_size: int) -> list[Any]:
    def divided(number: Any) -> Any:
        return number // block_size if isinstance(number, int) else arith.divui(number, _index(block_size))

    return [divided(n) if i == axis else n for i, n in enumerate(numbers)]


def _slice(value: Any, offsets: Sequence[Any], sizes: Sequence[Any], type_: Any) -> Any:
    dynamic = ir.ShapedType.get_dynamic_size()
    return tensor.extract_slice(
        type_,
        value,
        [o for o in offsets if not isinstance(o, int)],
        [s for s in sizes if not isinstance(s, int)],
        [],
        [o if isinstance(o, int) else dynamic for o in offsets],
        [s if isinstance(s, int) else dynamic for s in sizes],
        [1] * len(offsets),
    )


def _assert_inside(value: Any, axis: int, offset: Any, size: Any) -> None:
    """Assert that a slice stays inside a tensor along an axis, where that is not known."""
    end = extent(value, axis)
    if all(isinstance(n, int) for n in (offset, size, end)):
        return
    # Unsigned, so that a negative number is far outside; the second test holds only if the first does.
    begins = arith.cmpi(arith.CmpIPredicate.ule, _value(offset), _value(end))
    rest = arith.subi(_value(end), _value(offset))
    ends = arith.cmpi(arith.CmpIPredicate.ule, _value(size), rest)
    inside = arith.andi(begins, ends)
    cf.AssertOp(inside, f"mx.extract_slice: the slice leaves the tensor along axis {axis}")


def _assert_whole_blocks(number: Any, what: str, axis: int, block_size: int) -> None:
    """Assert that a dynamic number is a multiple of the block size, unless it is seen to be."""
    if isinstance(number, int) or block_size == 1 or is_multiple(number, block_size):
        return
    rest = arith.remui(number, _index(block_size))
    whole = arith.cmpi(arith.CmpIPredicate.eq, rest, _index(0))
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


def _value(number: Any) -> Any:
    return _index(number) if isinstance(number, int) else number


def _index(value: int) -> Any:
    return arith.constant(ir.IndexType.get(), value)


PATTERNS = (
    (DimOp, lower_dim),
    (CastOp, lower_cast),
    (ExtractSliceOp, lower_extract_slice),
)
