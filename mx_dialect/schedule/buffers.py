"""What a schedule asks of a contraction on buffers."""

from typing import Any

from mx_dialect._mlir import memref
from mx_dialect.schedule.contraction import DYNAMIC, Contraction, divisor_of, loop_of
from mx_dialect.schedule.emitter import Size, index, scaled


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
