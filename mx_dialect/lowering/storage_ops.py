"""Patterns that lower `mx.pack` and `mx.unpack` to generics of shifts over groups of codes.

A group is the fewest codes that fill whole bytes: two 4-bit codes in one byte, four 6-bit codes in three. The last axis
is split into groups, and a byte gathers the bits of every code of its group, or a code those of every byte, as a
reduction by `or`.
"""

from dataclasses import dataclass
from typing import Any

from mx_dialect._mlir import arith, cf, ir, linalg, rewrite
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
from mx_dialect.schedule.packed import UNPACKS
from mx_dialect.storage_ops import PackOp, UnpackOp, format_of


def lower_pack(op: PackOp, rewriter: rewrite.PatternRewriter) -> None:
    with rewriter.ip, op.location:
        fmt = format_of(op)
        codes = _Places(fmt.codes_per_group, fmt.bits)
        packed = _regrouped(op.codes, op.packed.type, codes, _Places(fmt.bytes_per_group, 8))
    rewriter.replace_op(op, [packed])


def lower_unpack(op: UnpackOp, rewriter: rewrite.PatternRewriter) -> None:
    with rewriter.ip, op.location:
        fmt = format_of(op)
        codes = _Places(fmt.codes_per_group, fmt.bits)
        unpacked = _regrouped(op.packed, op.codes.type, _Places(fmt.bytes_per_group, 8), codes)
        if fmt.bytes_per_group == 1:
            # Schedules read nibbles themselves.
            unpacked.owner.operands[0].owner.attributes[UNPACKS] = op.operation.attributes["element"]
    rewriter.replace_op(op, [unpacked])


@dataclass(frozen=True)
class _Places:
    """The entries of a group: how many, and how many bits of it each of them is."""

    count: int
    width: int

    @property
    def mask(self) -> int:
        return (1 << self.width) - 1

    def offsets(self, type_: Any) -> Any:
        """Return a constant tensor of the bits before each entry."""
        values = [ir.IntegerAttr.get(type_, i * self.width) for i in range(self.count)]
        tensor_type = ir.RankedTensorType.get([self.count], type_)
        return arith.constant(tensor_type, ir.DenseElementsAttr.get(values, tensor_type))


def _regrouped(source: Any, result_type: Any, given: _Places, wanted: _Places) -> Any:
    """Return a tensor whose last axis has the `wanted` entries of each group for the `given` ones of the source.

    Loops: the leading axes, the group, then the wanted and the given place in it where there are several. The bits
    before each place are read from constants, which vectorize, where an index of the loop would not.
    """
    axis = source.type.rank - 1
    _assert_whole_groups(source, axis, given.count)
    i8 = ir.IntegerType.get_signless(8)
    wide = i8 if given.count * given.width == 8 else ir.IntegerType.get_signless(32)
    sizes = [*(extent(source, i) for i in range(axis)), divided(extent(source, axis), given.count)]
    loops = axis + 1
    inputs, accesses = [source], [list(range(loops))]
    target = list(range(loops))
    iterators = [PARALLEL] * loops
    shifts: list[Any] = []
    for places, kind, shift in ((wanted, PARALLEL, arith.shrui), (given, REDUCTION, arith.shli)):
        if places.count == 1:
            continue
        if places is wanted:
            target.append(loops)
            sizes.append(wanted.count)
        else:
            inputs[0] = expand(source, axis, given.count)
            accesses[0].append(loops)
        inputs.append(places.offsets(wide))
        accesses.append([loops])
        iterators.append(kind)
        shifts.append(shift)
        loops += 1

    def body(entry: Any, *rest: Any) -> Any:
        *amounts, so_far = rest
        bits = arith.andi(entry, arith.constant(i8, given.mask)) if given.width < 8 else entry
        bits = bits if wide == i8 else arith.extui(wide, bits)
        # First to its place in the group, then to where the wanted entry begins.
        for shift, amount in reversed(list(zip(shifts, amounts, strict=True))):
            bits = shift(bits, amount)
        bits = bits if wide == i8 else arith.trunci(i8, bits)
        bits = arith.andi(bits, arith.constant(i8, wanted.mask)) if wanted.width < 8 else bits
        return arith.ori(so_far, bits)

    zeros = linalg.fill(arith.constant(i8, 0), outs=[empty(sizes, i8)])
    all_dims = dims(loops)
    maps = [affine_map(loops, [all_dims[i] for i in access]) for access in (*accesses, target)]
    result = generic(inputs, zeros, maps, iterators, body)
    return result if wanted.count == 1 else collapse(result, axis, result_type)


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
