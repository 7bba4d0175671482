"""Rearranging registers of sixteen words by quarters, four words each, which processors do in one instruction."""

from collections.abc import Sequence
from typing import Any

from mx_dialect._mlir import arith
from mx_dialect.schedule.registers import LANES, shuffle

QUARTER = 4
"""Words of a quarter, and quarters of a register."""


def sums_of_quarters(rows: Sequence[Any]) -> Any:
    """Return, for four registers, the sum of each quarter of each; those of one quarter lie beside each other."""
    return _added(_added(rows[0], rows[1], 1), _added(rows[2], rows[3], 1), 2)


def _added(a: Any, b: Any, size: int) -> Any:
    """Return the sums of both halves of each quarter, `size` of one register and `size` of the other in turn."""
    half = QUARTER // 2
    within = [v * LANES + lane for i in range(0, half, size) for v in (0, 1) for lane in range(i, i + size)]
    return arith.addi(_in_quarters(a, b, within), _in_quarters(a, b, [lane + half for lane in within]))


def _in_quarters(a: Any, b: Any, lanes: Sequence[int]) -> Any:
    """Return the given lanes of every quarter; those of the second register count from LANES on."""
    return shuffle(a, b, [q * QUARTER + lane for q in range(QUARTER) for lane in lanes])


def transposed_quarters(rows: Sequence[Any]) -> list[Any]:
    """Return register q of the quarters q of four registers."""

    def pick(a: Any, b: Any, quarters: Sequence[int]) -> Any:
        return shuffle(a, b, [q * QUARTER + lane for q in quarters for lane in range(QUARTER)])

    low = [pick(rows[i], rows[i + 1], (0, 1, 4, 5)) for i in (0, 2)]
    high = [pick(rows[i], rows[i + 1], (2, 3, 6, 7)) for i in (0, 2)]
    return [pick(a, b, quarters) for a, b in (low, high) for quarters in ((0, 2, 4, 6), (1, 3, 5, 7))]


def transposed_within_quarters(rows: Sequence[Any]) -> list[Any]:
    """Return register i of the words i of each quarter of four registers, those of a quarter beside each other."""
    pairs = [[_in_quarters(rows[i], rows[i + 1], (w, LANES + w, w + 1, LANES + w + 1)) for i in (0, 2)] for w in (0, 2)]
    return [
        _in_quarters(a, b, (start, start + 1, LANES + start, LANES + start + 1)) for a, b in pairs for start in (0, 2)
    ]
