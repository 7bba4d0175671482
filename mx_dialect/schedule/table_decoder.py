"""Decoding 64 codes at once by byte tables in registers (AVX-512 VBMI): f32 vectors, in an order of their own.

Every value of the FP8, FP6 and FP4 formats is a bf16, whose two bytes two table lookups give; NaNs and subnormals are
entries like others. Bytes interleave to bf16 in 32-bit words, two of them each, and a shift and a mask make f32 of
those. The four vectors hold the codes in the order `ORDER`, so what they are multiplied by must be in it too.
"""

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from mx_dialect._mlir import arith, ir, llvm, vector
from mx_dialect.schedule.emitter import f32

GROUP = 64
"""Codes decoded at once."""
STRIPS = 4
LANES = 16
_LANE_BYTES = 16


def _interleaved(half: int) -> list[int]:
    """Return, for the low or high half of every 16 bytes, first one operand's byte and then the other's."""
    start = half * _LANE_BYTES // 2
    places = [lane + start + i for lane in range(0, GROUP, _LANE_BYTES) for i in range(_LANE_BYTES // 2)]
    return [p for place in places for p in (place, place + GROUP)]


def _order() -> tuple[int, ...]:
    order: list[int] = []
    for half in (0, 1):
        words = _interleaved(half)[::2]
        order += [*words[::2], *words[1::2]]
    return tuple(order)


ORDER = _order()
"""Entry i of the four vectors, one after the other, is code ORDER[i]."""


def decodes(table: Any) -> bool:
    """Tell whether codes with these 256 f32 values can be decoded here."""
    bits = _bfloat16_bits(table)
    return bits is not None and (_repeats(bits) or _mirrors(bits))


def _bfloat16_bits(table: Any) -> Any:
    """Return the bits of a table as bf16, None if that would change a value."""
    with np.errstate(invalid="ignore"):
        values = table.astype(ml_dtypes.bfloat16)
    same = (values.astype(np.float32) == table) | np.isnan(table)
    return values.view(np.uint16) if same.all() else None


def _repeats(bits: Any) -> bool:
    """Tell whether the upper two bits of a code do not matter."""
    return all((part == bits[:GROUP]).all() for part in np.split(bits, len(bits) // GROUP))


def _mirrors(bits: Any) -> bool:
    """Tell whether bit 7 of a code is a sign, and the rest a magnitude; the sign of NaN does not matter."""
    lower, upper = np.split(bits, 2)
    return bool(((upper == lower | 0x8000) | (lower & 0x7FFF > 0x7F80)).all())


class TableDecoder:
    """Decodes codes of 8 bits with given values; its tables are constants where it is made."""

    def __init__(self, table: Any):
        bits = _bfloat16_bits(table)
        self._signed = not _repeats(bits)
        used = bits[: 2 * GROUP if self._signed else GROUP]
        self._low, self._high = (
            [_bytes(part) for part in np.split(b, len(b) // GROUP)] for b in (used & 255, used >> 8)
        )
        self._sign = _bytes(np.full(GROUP, 0x80))
        self._i32 = ir.VectorType.get([LANES], ir.IntegerType.get_signless(32))
        self._upper = _splat(self._i32, -0x10000)
        self._sixteen = _splat(self._i32, 16)

    def vectors(self, codes: Any) -> list[Any]:
        """Return the four f32 vectors of a vector of 64 i8 codes."""
        found: list[Any] = []
        for words in self.words(codes):
            pairs = vector.bitcast(self._i32, words)
            halves = (arith.shli(pairs, self._sixteen), arith.andi(pairs, self._upper))
            found += [arith.bitcast(ir.VectorType.get([LANES], f32()), bits) for bits in halves]
        return found

    def words(self, codes: Any) -> list[Any]:
        """Return the bytes of two vectors of 32 bf16; two neighbours follow ORDER at the same place and 16 on."""
        low, high = _lookup(codes, self._low), _lookup(codes, self._high)
        if self._signed:
            high = arith.ori(high, arith.andi(codes, self._sign))
        return [vector.shuffle(low, high, ir.DenseI64ArrayAttr.get(_interleaved(half))) for half in (0, 1)]


def _lookup(codes: Any, tables: Sequence[Any]) -> Any:
    """Return the bytes of one table of 64 entries, or of two that bit 6 of a code tells apart."""
    if len(tables) == 1:
        return _intrinsic("llvm.x86.avx512.permvar.qi.512", codes.type, tables[0], codes)
    return _intrinsic("llvm.x86.avx512.vpermi2var.qi.512", codes.type, tables[0], codes, tables[1])


def _intrinsic(name: str, type_: Any, *operands: Any) -> Any:
    return llvm.call_intrinsic(type_, ir.StringAttr.get(name), list(operands), [], [])


def _bytes(values: Any) -> Any:
    type_ = ir.VectorType.get([GROUP], ir.IntegerType.get_signless(8))
    signed = np.asarray(values).astype(np.uint8).view(np.int8)
    return arith.constant(type_, ir.DenseElementsAttr.get(np.ascontiguousarray(signed), type=type_))


def _splat(type_: Any, value: int) -> Any:
    return arith.constant(type_, ir.DenseElementsAttr.get_splat(type_, ir.IntegerAttr.get(type_.element_type, value)))
