"""The tile registers of x86's matrix unit (AMX): eight of 16 rows of 64 bytes, and their products.

A tile of the left side has 16 rows of words along k, at most 16. One of the right side has a row of 16 words, one a
column, for each word of the left side's rows. A word is two bf16 or four bytes that meet a word of the other side; the
product of both is added to a tile of 16 x 16 f32 or i32.
"""

from collections.abc import Sequence
from typing import Any

from mx_dialect._mlir import arith, ir, llvm, memref
from mx_dialect.schedule.emitter import Size, add, index, release, scaled, scratch, store_vector
from mx_dialect.schedule.registers import byte_constant, i8, i32

ROWS = 16
WORDS = 16
DEPTH = 2 * WORDS
"""Entries along k of a tile of either side."""
REGISTERS = 8
_ROW_BYTES = 4 * WORDS
_TILE_BYTES = ROWS * _ROW_BYTES
_PALETTE = 1

# Where the 64 bytes that configure tiles have the bytes of a row (of 16 bits) and the rows of each register.
_ROW_BYTES_AT, _ROWS_AT = 16, 48


_WHOLE = (ROWS, _ROW_BYTES)


class Tiles:
    """The tile registers between `Tiles()` and `release`; `shapes`: rows and bytes of each, 16 and 64 if not given."""

    def __init__(self, shapes: Sequence[tuple[int, int]] = (_WHOLE,) * REGISTERS) -> None:
        values = [0] * 64
        values[0] = _PALETTE
        for register, (rows, row_bytes) in enumerate(shapes):
            values[_ROW_BYTES_AT + 2 * register] = row_bytes
            values[_ROWS_AT + register] = rows
        self._configuration = scratch([len(values)], i8())
        store_vector(byte_constant(values), self._configuration, [0])
        _call("ldtilecfg", _pointer(self._configuration, 0))

    def release(self) -> None:
        _call("tilerelease")
        release(self._configuration)

    def clear(self, register: int) -> None:
        _call("tilezero", _register(register))

    def load(self, register: int, panel: Any, tile: Size) -> None:
        """Load a tile of a buffer that is nothing but tiles."""
        self.load_rows(register, panel, scaled(tile, _TILE_BYTES), _ROW_BYTES)

    def load_rows(self, register: int, buffer: Any, offset: Size, pitch: int) -> None:
        """Load rows that begin at a byte of a buffer and are `pitch` bytes apart."""
        _call("tileloadd64", _register(register), _pointer(buffer, offset), _i64(pitch))

    def store(self, register: int, panel: Any, tile: Size) -> None:
        _call("tilestored64", _register(register), _pointer(panel, scaled(tile, _TILE_BYTES)), _i64(_ROW_BYTES))

    def add_product(self, total: int, left: int, right: int) -> None:
        """Add the products of bf16."""
        _call("tdpbf16ps", *(_register(r) for r in (total, left, right)))

    def add_byte_product(self, total: int, left: int, right: int) -> None:
        """Add the products of unsigned bytes of the left side and signed ones of the right."""
        _call("tdpbusd", *(_register(r) for r in (total, left, right)))


def tile_panel(*shape: int) -> Any:
    """Allocate a panel of tiles of words; the caller frees it with `release`."""
    return scratch([*shape, ROWS, WORDS], i32())


def _call(name: str, *operands: Any) -> None:
    llvm.call_intrinsic(None, ir.StringAttr.get(f"llvm.x86.{name}"), list(operands), [], [])


def _register(number: int) -> Any:
    return llvm.mlir_constant(ir.IntegerAttr.get(i8(), number))


def _i64(value: int) -> Any:
    return llvm.mlir_constant(ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value))


def _pointer(buffer: Any, offset: Size) -> Any:
    """Return the address of a byte of a buffer."""
    address = add(index(memref.extract_aligned_pointer_as_index(buffer)), offset)
    word = arith.index_cast(ir.IntegerType.get_signless(64), address)
    return llvm.inttoptr(ir.Type.parse("!llvm.ptr"), word)
