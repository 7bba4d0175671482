"""Patterns that lower `mx.pack` and `mx.unpack` to generics of shifts over groups of codes.

A group is the fewest codes that fill whole bytes: two 4-bit codes in one byte, four 6-bit codes in three. The last axis
is split into groups, and a byte gathers the bits of every code of its group, or a code those of every byte, as a
reduction by `or`.
"""

from collections.abc import Callable
from typing import Any

from mx_dialect._mlir import arith, cf, ir, linalg, rewrite
from mx_dialect.formats import ElementFormat
from mx_dialect.generics import (
    PARALLEL,
    REDUCTION,
    affine_map,
    collapse,
    dims,
    divided,
    empty,
    expand,
    extent,
    generic,
)
from mx_dialect.storage_ops import PackOp, UnpackOp, format_of


def lower_pack(op: PackOp, rewriter: rewrite.PatternRewriter) -> None:
    with rewriter.ip, op.location:
        fmt = format_of(op)
        mask = (1 << fmt.bits) - 1

        def bits_of_code(code: Any, code_index: Any, byte_index: Any) -> Any:
            """Return the bits that a code contributes to a byte: its place in the group, moved to the byte's."""
            kept = arith.andi(code, _constant(code.type, mask))
            return _moved(kept, fmt, code_index, fmt.bits, byte_index, 8)

        packed = _regrouped(op.codes, op.packed.type, fmt, fmt.codes_per_group, fmt.bytes_per_group, bits_of_code)
    rewriter.replace_op(op, [packed])


def lower_unpack(op: UnpackOp, rewriter: rewrite.PatternRewriter) -> None:
    with rewriter.ip, op.location:
        fmt = format_of(op)
        mask = (1 << fmt.bits) - 1

        def bits_of_byte(byte: Any, byte_index: Any, code_index: Any) -> Any:
            """Return the bits that a byte contributes to a code."""
            moved = _moved(byte, fmt, byte_index, 8, code_index, fmt.bits)
            return arith.andi(moved, _constant(moved.type, mask))

        codes = _regrouped(op.packed, op.codes.type, fmt, fmt.bytes_per_group, fmt.codes_per_group, bits_of_byte)
    rewriter.replace_op(op, [codes])


def _moved(
    value: Any, fmt: ElementFormat, source_index: Any, source_bits: int, target_index: Any, target_bits: int
) -> Any:
    """Return an i8, the `source_index`-th of its width in a group, moved to where the `target_index`-th begins.

    Bits outside the target are cut off. A group of one byte is shifted as i8, a larger one as i32.
    """
    i8 = ir.IntegerType.get_signless(8)
    wide = i8 if fmt.bytes_per_group == 1 else ir.IntegerType.get_signless(32)
    if wide != i8:
        value = arith.extui(wide, value)
    if source_index is not None:
        value = arith.shli(value, _bit_offset(source_index, source_bits, wide))
    if target_index is not None:
        value = arith.shrui(value, _bit_offset(target_index, target_bits, wide))
    return value if wide == i8 else arith.trunci(i8, value)


def _bit_offset(index: Any, bits: int, type_: Any) -> Any:
    return arith.muli(arith.index_cast(type_, index), _constant(type_, bits))


def _constant(type_: Any, value: int) -> Any:
    return arith.constant(type_, value)


def _regrouped(
    source: Any,
    result_type: Any,
    fmt: ElementFormat,
    source_count: int,
    target_count: int,
    bits: Callable[[Any, Any, Any], Any],
) -> Any:
    """Return a tensor whose last axis has `target_count` entries for each `source_count` of the source's.

    `bits(entry, source index, target index)` gives what an entry contributes; an index is None where the count is 1.
    """
    axis = source.type.rank - 1
    _assert_whole_groups(source, axis, source_count)
    i8 = ir.IntegerType.get_signless(8)
    groups = divided(extent(source, axis), source_count)
    leading = [*(extent(source, i) for i in range(axis)), groups]
    # Loops: the leading axes, the group, then the target's and the source's place in it where there are several.
    loops = axis + 1
    target_at = loops if target_count > 1 else None
    loops += target_count > 1
    source_at = loops if source_count > 1 else None
    loops += source_count > 1
    all_dims = dims(loops)
    before = all_dims[: axis + 1]
    source_access = before if source_at is None else [*before, all_dims[source_at]]
    target_access = before if target_at is None else [*before, all_dims[target_at]]
    split = source if source_at is None else expand(source, axis, source_count)
    sizes = leading if target_at is None else [*leading, target_count]
    zeros = linalg.fill(arith.constant(i8, 0), outs=[empty(sizes, i8)])

    def body(entry: Any, so_far: Any) -> Any:
        places = [None if at is None else linalg.IndexOp(at).result for at in (source_at, target_at)]
        return arith.ori(so_far, bits(entry, *places))

    iterators = [REDUCTION if i == source_at else PARALLEL for i in range(loops)]
    maps = [affine_map(loops, source_access), affine_map(loops, target_access)]
    result = generic([split], zeros, maps, iterators, body)
    return result if target_at is None else collapse(result, axis, result_type)


def _assert_whole_groups(source: Any, axis: int, count: int) -> None:
    """Assert that a dynamic last extent is a whole number of groups."""
    size = extent(source, axis)
    if isinstance(size, int) or count == 1:
        return
    index = ir.IndexType.get()
    rest = arith.remui(size, arith.constant(index, count))
    whole = arith.cmpi(arith.CmpIPredicate.eq, rest, arith.constant(index, 0))
    cf.AssertOp(whole, f"mx.pack, mx.unpack: the last extent is not a multiple of {count}")


PATTERNS = (
    (PackOp, lower_pack),
    (UnpackOp, lower_unpack),
)
