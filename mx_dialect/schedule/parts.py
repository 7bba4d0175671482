"""Moving a contraction on buffers into a function that works on a range of it, to be called for parts by threads."""

from typing import Any

from mx_dialect._mlir import arith, func, ir
from mx_dialect.schedule import contraction as contractions
from mx_dialect.schedule.buffers import extent
from mx_dialect.schedule.contraction import DYNAMIC, Contraction
from mx_dialect.schedule.emitter import index
from mx_dialect.schedule.span import Division, Span

PARALLEL = "mx.parallel"
"""The attribute of a call whose first two operands are a range that may be divided, at multiples of the attribute.

The first two, because passes append: mx-assert-to-status adds an argument at the end.
"""

WORTHWHILE = 1 << 21
"""Multiplications from which on a product is divided: a guess, at tens of microseconds of work; not measured."""


def is_worthwhile(found: Contraction) -> bool:
    """Tell whether dividing a contraction pays; one whose extents are not known is taken to be large."""
    work = 1
    for size in found.extents:
        work *= WORTHWHILE if size == DYNAMIC else size
    return work >= WORTHWHILE


def move(found: Contraction, division: Division) -> tuple[Contraction, Span]:
    """Move a contraction to a new function that works on a range, called with all of it.

    Returns the contraction there and the span of it that the function's arguments say.
    """
    op = found.op
    operands = [v for v in op.operands if not _is_constant(v)]
    with op.location, ir.InsertionPoint(op):
        total = index(extent(found, division.loop))
    name, moved, span = _add_function(op, operands, division.loop)
    with op.location, ir.InsertionPoint(op):
        zero = arith.constant(ir.IndexType.get(), 0)
        call = func.CallOp([], name, [zero, total, *operands])
        call.operation.attributes[PARALLEL] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), division.granule)
    op.erase()
    return moved, span


def _is_constant(value: Any) -> bool:
    return isinstance(value, ir.OpResult) and value.owner.name == "arith.constant"


def _add_function(op: Any, operands: list[Any], loop: int) -> tuple[str, Contraction, Span]:
    """Add a function with a copy of a contraction to the module."""
    parent = op
    while parent.name != "func.func":
        parent = parent.parent.operation
    table = ir.SymbolTable(parent.parent)
    end = ir.IndexType.get()
    with op.location, ir.InsertionPoint(parent):
        base = ir.StringAttr(parent.attributes["sym_name"]).value
        type_ = ir.FunctionType.get([end, end, *(v.type for v in operands)], [])
        function = func.FuncOp(f"{base}.part", type_, visibility="private")
        name = ir.StringAttr(table.insert(function)).value
        block = function.add_entry_block()
    start, stop, *others = block.arguments
    arguments = dict(zip(operands, others, strict=True))
    with op.location, ir.InsertionPoint(block):
        inside = [arguments[v] if v in arguments else v.owner.operation.clone().operation.result for v in op.operands]
        clone = op.clone().operation
        for number, value in enumerate(inside):
            clone.operands[number] = value
        func.ReturnOp([])
    moved = contractions.match(clone)
    assert moved is not None
    return name, moved, Span(loop, start, stop)
