"""Products in f32 of parts that the matrix unit cannot multiply: by panels, which are packed when they are needed."""

from typing import Any

from mx_dialect._mlir import arith, ir, memref
from mx_dialect.schedule.contraction import Contraction
from mx_dialect.schedule.emitter import if_true, index, release, scratch
from mx_dialect.schedule.panel import PanelPlan, PartPanels
from mx_dialect.schedule.panel_packing import Part
from mx_dialect.schedule.registers import LANES

_ROWS, _VECTORS, _UNROLL = 8, 2, 1


class F32Products:
    """Multiplies parts of the long side, the left one or the right, with one of the short side."""

    def __init__(self, contraction: Contraction, long: str, block_long: int, block_short: int, block_k: int):
        self._left_is_long = long == "lhs"
        block_m, block_n = (block_long, block_short)[:: 1 if self._left_is_long else -1]
        self._panels = PartPanels(contraction, PanelPlan(LANES, _ROWS, _VECTORS, _UNROLL, block_m, block_n, block_k))
        self._packed = scratch([1], ir.IntegerType.get_signless(1))

    def begin(self) -> None:
        """Begin with another part of the short side."""
        self._set_packed(False)

    def emit(self, long: Part, short: Part) -> list[Any]:
        """Add the product of parts to the result; the short side's is packed the first time."""
        panels = self._panels
        left, right = (long, short)[:: 1 if self._left_is_long else -1]
        pack_short, pack_long = (panels.pack_right, panels.pack_left)[:: 1 if self._left_is_long else -1]

        def pack() -> None:
            pack_short(short)
            self._set_packed(True)

        packed = memref.load(self._packed, [index(0)])
        if_true(arith.xori(packed, arith.constant(packed.type, 1)), pack)
        pack_long(long)
        panels.multiply(left, right)
        return []

    def release(self) -> None:
        self._panels.release()
        release(self._packed)

    def _set_packed(self, value: bool) -> None:
        memref.store(arith.constant(ir.IntegerType.get_signless(1), int(value)), self._packed, [index(0)])
