"""Values of f32 as words of two bf16: exactly, in one word or in the sum of three.

A bf16 is the upper half of an f32. One of at most eight significant bits is that half; any other is the sum of three
such, each what the ones before leave.
"""

from typing import Any

import numpy as np

from mx_dialect._mlir import arith, ir
from mx_dialect.schedule.registers import LANES, bitcast, i32, splat

EXACT, SPLIT = 1, 3
"""In how many words a value is."""

EXACT_BITS = 8
"""How many significant bits one word has."""

MANTISSA_BITS = 23
F32_BITS = MANTISSA_BITS + 1
_HALF = 16
_UPPER = -(1 << _HALF)


def words(low: Any, high: Any, parts: int) -> list[Any]:
    """Return vectors of words with the bf16 of two f32 vectors, `low` in the lower halves."""
    found: list[Any] = []
    for part in range(parts):
        bits = [bitcast(value, i32()) for value in (low, high)]
        upper = [arith.andi(b, splat(_UPPER, LANES, i32())) for b in bits]
        found.append(arith.ori(upper[1], arith.shrui(bits[0], splat(_HALF, LANES, i32()))))
        if part + 1 < parts:
            low, high = (
                arith.subf(value, bitcast(u, ir.F32Type.get())) for value, u in zip((low, high), upper, strict=True)
            )
    return found


def significant_bits(table: Any) -> int:
    """Return how many bits the finite values of a table of f32 need at most, from the first to the last that is set."""
    values = np.asarray(table, np.float32)
    mantissas, _ = np.frexp(values[np.isfinite(values)].astype(np.float64))
    last = int(np.bitwise_or.reduce(np.abs(mantissas * 2.0**F32_BITS).astype(np.int64), initial=0))
    return F32_BITS + 1 - (last & -last).bit_length() if last else 0
