"""Scales of blocks of rows that lie along k, sixteen blocks at once, and what zeros need."""

from collections.abc import Sequence
from typing import Any

from mx_dialect._mlir import arith, ir
from mx_dialect.schedule.contraction import Contraction, Side, divisor_of, loop_of
from mx_dialect.schedule.dots_codes import IntegerSide
from mx_dialect.schedule.emitter import Size, f32, first_lanes, minimum
from mx_dialect.schedule.registers import LANES, splat
from mx_dialect.schedule.side import SideReader

_SMALLEST_NORMAL = 2.0**-126


class ScaleReader:
    """Reads the scales of neighbouring blocks of a side that lies along k."""

    def __init__(self, contraction: Contraction, side: Side, integers: IntegerSide):
        self._scale = integers.code.scale
        self._reader = SideReader(contraction, side, contraction.k[0], LANES, by_blocks=True)

    def read(self, loops: Sequence[Size], count: Size) -> tuple[Any, Any]:
        """Return the scales of 16 blocks from `loops` on, and the mask of the `count` that there are, None for all."""
        mask = None if isinstance(count, int) and count >= LANES else first_lanes(LANES, minimum(LANES, count))
        return self._reader.over_blocks(loops, mask)[self._scale], mask


def can_read(contraction: Contraction, integers: IntegerSide) -> bool:
    """Tell whether the scales of neighbouring blocks of a side are neighbours in memory."""
    places = integers.scale.map.results
    along = [loop_of(r) in contraction.k for r in places]
    step = contraction.block if len(contraction.k) == 1 else 1
    return along.count(True) == 1 and along[-1] and divisor_of(places[-1]) == step


def is_tiny(scale: Any) -> Any:
    """Tell whether a scale, or each of a vector of them, is subnormal: processors multiply such numbers slowly."""
    return arith.cmpf(arith.CmpFPredicate.OLT, scale, _like(scale, _SMALLEST_NORMAL))


def harmless(scale: Any, is_zero: Any) -> Any:
    """Return 1 instead of a subnormal scale of a block of zeros, which is what quantization gives such blocks."""
    return arith.select(arith.andi(is_tiny(scale), is_zero), _like(scale, 1.0), scale)


def _like(scale: Any, value: float) -> Any:
    if isinstance(scale.type, ir.VectorType):
        return splat(value, LANES, f32())
    return arith.constant(f32(), value)
