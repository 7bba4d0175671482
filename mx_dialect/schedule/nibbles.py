"""Reading codes of four bits, two a byte, as if each had a byte."""

from collections.abc import Sequence
from typing import Any

from mx_dialect._mlir import arith, ir, vector
from mx_dialect.schedule.emitter import Size, floordiv, index, load, load_vector, vector_type
from mx_dialect.schedule.packed import CODES_PER_BYTE

_WIDTH = 4
_BOTH = 0x0F0F


def bytes_at(places: Sequence[Size]) -> list[Size]:
    """Return the indices of the byte that holds the code at some indices."""
    return [*places[:-1], floordiv(places[-1], CODES_PER_BYTE)]


def load_nibble(buffer: Any, places: Sequence[Size]) -> Any:
    """Load one code, i8."""
    i8 = ir.IntegerType.get_signless(8)
    byte = load(buffer, bytes_at(places))
    odd = arith.andi(index(places[-1]), arith.constant(ir.IndexType.get(), 1))
    shift = arith.shli(arith.index_cast(i8, odd), arith.constant(i8, _WIDTH // CODES_PER_BYTE))
    return arith.andi(arith.shrui(byte, shift), arith.constant(i8, (1 << _WIDTH) - 1))


def load_nibbles(buffer: Any, places: Sequence[Size], lanes: int, mask: Any = None) -> Any:
    """Load neighbouring codes along the last axis from an even one on, a vector of i8.

    With a mask, which must be the same for both codes of a byte, only the lanes it has, zeros for the others.
    """
    half = None
    if mask is not None:
        half = vector.shuffle(mask, mask, ir.DenseI64ArrayAttr.get(list(range(0, lanes, CODES_PER_BYTE))))
    packed = load_vector(buffer, bytes_at(places), lanes // CODES_PER_BYTE, half)
    # A byte becomes a word of 16 bits, then each half of it has one of the codes.
    i16 = ir.IntegerType.get_signless(16)
    wide = arith.extui(vector_type(lanes // CODES_PER_BYTE, i16), packed)
    shifted = arith.shli(wide, _splat(wide.type, _WIDTH))
    both = arith.andi(arith.ori(wide, shifted), _splat(wide.type, _BOTH))
    return vector.bitcast(vector_type(lanes, ir.IntegerType.get_signless(8)), both)


def _splat(type_: Any, value: int) -> Any:
    return arith.constant(type_, ir.DenseElementsAttr.get_splat(type_, ir.IntegerAttr.get(type_.element_type, value)))
