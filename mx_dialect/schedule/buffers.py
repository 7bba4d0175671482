"""What a schedule asks of a contraction on buffers."""

from collections.abc import Callable, Sequence
from typing import Any

from mx_dialect._mlir import memref
from mx_dialect.schedule.contraction import DYNAMIC, Contraction, divisor_of, loop_of
from mx_dialect.schedule.emitter import Size, index, loop, scaled


def extent(contraction: Contraction, loop: int) -> Size:
    """Return the extent of a loop that some operand's axis is: an int, or an index value where it is dynamic."""
    known = contraction.extents[loop]
    if known != DYNAMIC:
        return known
    for map_, operand in zip(contraction.maps, contraction.op.operands, strict=True):
        for axis, result in enumerate(map_.results):
            if loop_of(result) == loop and divisor_of(result) == 1:
                return memref.dim(operand, index(axis))
    raise AssertionError("no operand has the loop")


def depth(contraction: Contraction) -> Size:
    """Return the extent along k."""
    first = extent(contraction, contraction.k[0])
    return first if len(contraction.k) == 1 else scaled(first, contraction.block)


def output(contraction: Contraction) -> Any:
    return contraction.op.operands[len(contraction.op.operands) - 1]


def for_each_batch(contraction: Contraction, body: Callable[[list[Any]], None]) -> None:
    """Build the loops over the batch dimensions around a body, which gets their indices."""

    def level(outer: list[Any], loops: Sequence[int]) -> None:
        if not loops:
            body(outer)
            return

        def one(i: Any) -> list[Any]:
            level([*outer, i], loops[1:])
            return []

        loop(0, extent(contraction, loops[0]), 1, one)

    level([], contraction.batch)
