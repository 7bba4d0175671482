"""Slices with offsets and sizes that are ints or index values, and the asserts of what must hold at run time."""

from collections.abc import Sequence
from typing import Any

from mx_dialect._mlir import arith, cf, ir, tensor
from mx_dialect.generics import extent

_DYNAMIC = -(2**63)


def index(number: Any) -> Any:
    """Return a number, an int or an index value, as an index value."""
    return arith.constant(ir.IndexType.get(), number) if isinstance(number, int) else number


def numbers(static: Any, values: Sequence[Any]) -> list[Any]:
    """Return a list of ints and index values from an attribute and the operands for its dynamic entries."""
    waiting = iter(values)
    return [next(waiting) if n == _DYNAMIC else n for n in static]


def split_numbers(mixed: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """Return the index values of a list of ints and index values, and the ints with dynamic entries for the rest."""
    return [n for n in mixed if not isinstance(n, int)], [n if isinstance(n, int) else _DYNAMIC for n in mixed]


def slice_of(value: Any, offsets: Sequence[Any], sizes: Sequence[Any], type_: Any) -> Any:
    """Return a slice of a tensor; the type's dynamic extents are those of the sizes."""
    offset_values, static_offsets = split_numbers(offsets)
    size_values, static_sizes = split_numbers(sizes)
    ones = [1] * len(offsets)
    return tensor.extract_slice(type_, value, offset_values, size_values, [], static_offsets, static_sizes, ones)


def assert_inside(end: Any, offset: Any, size: Any, message: str) -> None:
    """Assert that `size` entries from `offset` on end at `end` or before, where that is not known."""
    if all(isinstance(n, int) for n in (end, offset, size)) and 0 <= offset <= end - size:
        return
    # Unsigned, so that a negative number is far outside.
    if isinstance(offset, int) and offset == 0:
        cf.AssertOp(arith.cmpi(arith.CmpIPredicate.ule, index(size), index(end)), message)
        return
    # The second test holds only if the first does.
    begins = arith.cmpi(arith.CmpIPredicate.ule, index(offset), index(end))
    rest = arith.subi(index(end), index(offset))
    ends = arith.cmpi(arith.CmpIPredicate.ule, index(size), rest)
    cf.AssertOp(arith.andi(begins, ends), message)


def assert_equal(found: Any, expected: Any, message: str) -> None:
    """Assert that two numbers are equal, where that is not known."""
    if isinstance(found, int) and isinstance(expected, int) and found == expected:
        return
    cf.AssertOp(arith.cmpi(arith.CmpIPredicate.eq, index(found), index(expected)), message)


def assert_extents(value: Any, claimed: Any, name: str) -> None:
    """Assert the extents of a tensor that another type claims to be static; `name` is the operation's."""
    for axis, (known, claim) in enumerate(zip(value.type.shape, claimed.shape, strict=True)):
        if known == _DYNAMIC and claim != _DYNAMIC:
            assert_equal(extent(value, axis), claim, f"{name}: the extent of axis {axis} is not {claim}")


def with_type(value: Any, type_: Any, name: str) -> Any:
    """Return a tensor with other extents static, which is asserted for the operation called `name`."""
    if value.type == type_:
        return value
    assert_extents(value, type_, name)
    return tensor.cast(type_, value)
