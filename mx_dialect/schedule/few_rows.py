"""One kernel for any number of rows: a contraction whose m is not known chooses its schedule when it runs.

scf.index_switch %m
case 1 { the schedule for one row }
...
case 8 { the schedule for eight rows }
default { the schedule for many }
"""

from collections.abc import Callable
from typing import Any

from mx_dialect._mlir import ir, memref, scf
from mx_dialect.schedule import contraction as contractions
from mx_dialect.schedule.buffers import extent
from mx_dialect.schedule.contraction import DYNAMIC, Contraction, divisor_of, loop_of
from mx_dialect.schedule.emitter import index


def is_open(found: Contraction) -> bool:
    """Tell whether the number of rows of a contraction is not known."""
    return found.extents[found.m] == DYNAMIC and found.depth != DYNAMIC


def emit_by_rows(found: Contraction, few: int, emit: Callable[[Contraction], None]) -> None:
    """Replace a contraction by a choice among copies for 1 to `few` rows, and one for more; `emit` replaces each."""
    if not few:
        emit(found)
        return
    op = found.op
    copies: list[Any] = []
    with op.location, ir.InsertionPoint(op):
        rows = index(extent(found, found.m))
        switch = scf.IndexSwitchOp([], rows, list(range(1, few + 1)))
        blocks = [switch.default_block, *(switch.case_block(i) for i in range(few))]
        for count, block in enumerate(blocks):
            with ir.InsertionPoint(block):
                copies.append(_copy(found, count) if count else op.clone().operation)
                scf.yield_([])
    op.erase()
    for copy in copies:
        matched = contractions.match(copy)
        assert matched is not None
        emit(matched)


def _copy(found: Contraction, rows: int) -> Any:
    """Return a copy of a contraction for a known number of rows."""
    operands = [_with_rows(found, map_, value, rows) for map_, value in zip(found.maps, found.op.operands, strict=True)]
    copy = found.op.clone().operation
    for number, value in enumerate(operands):
        copy.operands[number] = value
    return copy


def _with_rows(found: Contraction, map_: Any, value: Any, rows: int) -> Any:
    """Return an operand with the number of rows in its type."""
    type_ = value.type
    if not isinstance(type_, ir.MemRefType):
        return value
    shape = list(type_.shape)
    for axis, result in enumerate(map_.results):
        if loop_of(result) == found.m and divisor_of(result) == 1:
            shape[axis] = rows
    if shape == list(type_.shape):
        return value
    return memref.cast(ir.MemRefType.get(shape, type_.element_type, type_.layout, type_.memory_space), value)
