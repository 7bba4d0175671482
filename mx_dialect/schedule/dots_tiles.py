"""The dot_tiles schedule: the dots schedule with products by the matrix unit of x86 (AMX), 16 x 16 blocks at once."""

from dataclasses import dataclass

from mx_dialect._mlir import ir
from mx_dialect.schedule import dots
from mx_dialect.schedule.amx_tiles import ROWS
from mx_dialect.schedule.contraction import Contraction
from mx_dialect.schedule.dots import DotsPlan
from mx_dialect.schedule.span import Division, Span


@dataclass(frozen=True)
class DotTilesPlan:
    """Cache blocks of the dot_tiles schedule, in rows, columns and entries along k."""

    block_m: int
    block_n: int
    block_k: int


def _dots_plan(plan: DotTilesPlan) -> DotsPlan:
    return DotsPlan(ROWS, 1, plan.block_m, plan.block_n, plan.block_k)


def emit(contraction: Contraction, plan: DotTilesPlan, span: Span | None = None) -> None:
    """Replace a contraction on buffers, or a span of it, by the schedule."""
    with ir.InsertionPoint(contraction.op), contraction.op.location:
        dots.build(contraction, _dots_plan(plan), span, by_tiles=True)
    contraction.op.erase()


def refusal(contraction: Contraction, plan: DotTilesPlan) -> str | None:
    """Return why the schedule does not apply to a contraction, or None."""
    return dots.refusal(contraction, _dots_plan(plan))


def division(contraction: Contraction, plan: DotTilesPlan, parts: int) -> Division:
    """Return how to divide the work in so many parts: by columns if they are many, else by rows."""
    return dots.division(contraction, _dots_plan(plan), parts)
