"""Patterns that lower the shape operations to the same operation on each part; what must hold at run time is asserted."""

from collections.abc import Sequence
from typing import Any

from mx_dialect._mlir import arith, cf, ir, rewrite, tensor
from mx_dialect.lowering.parts import join, part_types, parts
from mx_dialect.shape_ops import CastOp, DimOp, ExtractSliceOp


def lower_dim(op: DimOp, rewriter: rewrite.PatternRewriter) -> None:
    with rewriter.ip, op.location:
        mantissa, _ = parts(op.input)
        extent = tensor.dim(mantissa, op.axis)
    rewriter.replace_op(op, [extent])


def lower_cast(op: CastOp, rewriter: rewrite.PatternRewriter) -> None:
    with rewriter.ip, op.location:
        pair = parts(op.input)
        _assert_extents(pair[0], op.output.type)
        cast = [
            part if part.type == type_ else tensor.cast(type_, part)
            for part, type_ in zip(pair, part_types(op.output.type), strict=True)
        ]
        whole = join(op.output.type, *cast)
    rewriter.replace_op(op, [whole])


def _assert_extents(mantissa: Any, claimed: Any) -> None:
    """Assert the extents that a cast claims to be static."""
    dynamic = ir.ShapedType.get_dynamic_size()
    for axis, (extent, claim) in enumerate(zip(mantissa.type.shape, claimed.shape, strict=True)):
        if extent == dynamic and claim != dynamic:
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
        mantissa, scale = parts(op.input)
        sliced_types = part_types(op.output.type)
        whole = join(
            op.output.type,
            _slice(mantissa, offsets, sizes, sliced_types[0]),
            _slice(
                scale,
                _in_blocks(offsets, axis, block_size),
                _in_blocks(sizes, axis, block_size),
                sliced_types[1],
            ),
        )
    rewriter.replace_op(op, [whole])


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


def _assert_whole_blocks(number: Any, what: str, axis: int, block_size: int) -> None:
    """Assert that a dynamic number is a multiple of the block size, unless it is seen to be."""
    if isinstance(number, int) or block_size == 1 or is_multiple(number, block_size):
        return
    rest = arith.remui(number, _index(block_size))
    whole = arith.cmpi(arith.CmpIPredicate.eq, rest, _index(0))
    message = f"mx.extract_slice: the {what} along blocked axis {axis} is not a multiple of block size {block_size}"
    cf.AssertOp(whole, message)


def is_multiple(value: Any, divisor: int) -> bool:
    """Tell whether an index is a constant multiple of a number or a product with one, as the IR shows it."""
    if not isinstance(value, ir.OpResult):
        return False
    owner = value.owner
    if owner.name == "arith.constant":
        return ir.IntegerAttr(owner.attributes["value"]).value % divisor == 0
    # A wrapped product is still a multiple: block sizes are powers of two.
    return owner.name in ("arith.muli", "index.mul") and any(is_multiple(factor, divisor) for factor in owner.operands)


def _index(value: int) -> Any:
    return arith.constant(ir.IndexType.get(), value)


PATTERNS = (
    (DimOp, lower_dim),
    (CastOp, lower_cast),
    (ExtractSliceOp, lower_extract_slice),
)
