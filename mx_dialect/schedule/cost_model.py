"""Which schedule a contraction gets, and its sizes: a table of rules, each with its reason.

The rules are tried in order. They compare extents with thresholds that were measured (`benchmarks/README.md`); sizes
follow from the host's registers and caches.
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mx_dialect.schedule.columns import ColumnsPlan
from mx_dialect.schedule.contraction import DYNAMIC, Contraction, reads_along
from mx_dialect.schedule.dots import DotsPlan, sides
from mx_dialect.schedule.host import Host
from mx_dialect.schedule.panel import PanelPlan
from mx_dialect.schedule.registers import LANES
from mx_dialect.schedule.rows import BODY, TABLE, RowsPlan
from mx_dialect.schedule.rows_groups import table_reader
from mx_dialect.schedule.schedules import SCHEDULES, Plan

FEW = 8
"""Up to so many columns or rows of the result, dot products are faster than panels."""


@dataclass(frozen=True)
class Problem:
    """What the rules look at: extents, or DYNAMIC, along which loops the sides lie in memory, and which side's
    elements tables decode, and whether both sides are integers whose blocks have exact dot products."""

    m: int
    n: int
    k: int
    lhs_along_k: bool
    rhs_along_k: bool
    rhs_along_n: bool
    table: Mapping[str, bool]
    integers: bool

    @classmethod
    def of(cls, c: Contraction) -> "Problem":
        place = c.k[-1]
        return cls(
            c.extents[c.m],
            c.extents[c.n],
            c.depth,
            reads_along(c.lhs, place),
            reads_along(c.rhs, place),
            reads_along(c.rhs, c.n),
            {"lhs": table_reader(c, c.lhs) is not None, "rhs": table_reader(c, c.rhs) is not None},
            not isinstance(sides(c), str),
        )


@dataclass(frozen=True)
class Rule:
    """A schedule, when it is chosen, and why; `needs` are features of the host that it cannot do without."""

    kind: str
    applies: Callable[[Problem], bool]
    plan: Callable[[Problem, Host], Plan]
    reason: str
    needs: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Choice:
    """A plan and the reason for it."""

    plan: Plan
    reason: str


def _few(extent: int) -> bool:
    return 0 <= extent <= FEW


def _rows_plan(long: str) -> Callable[[Problem, Host], Plan]:
    def plan(problem: Problem, host: Host) -> Plan:
        columns = max(problem.n if long == "lhs" else problem.m, 1)
        # Sums, one vector of each side and a decoded block must fit the registers.
        at_once = max(1, min(4, (host.registers - 8) // columns // 2 * 2 if columns > 1 else 4))
        strips = 2 if at_once * columns <= 4 else 1
        decode = TABLE if problem.table[long] and "avx512vbmi" in host.features else BODY
        return RowsPlan(host.lanes, at_once, strips, long, decode)

    return plan


def _columns_plan(problem: Problem, host: Host) -> Plan:
    vectors = max(1, min(8, (host.registers - 8) // max(problem.m, 1)))
    return ColumnsPlan(host.lanes, vectors, 1)


def _panel_plan(problem: Problem, host: Host) -> Plan:
    vectors = 2
    columns = host.lanes * vectors
    # The register tile: sums, vectors of the right side, a broadcast element of the left one.
    rows = (host.registers - vectors - 2) // vectors
    # A strip of the right panel and a tile of the left one stay in the first cache, the right panel in a quarter of the
    # second, the left one in a sixteenth. With fewer columns the right panel has room for longer rows of the left side.
    block_k = host.l1_bytes * 3 // 4 // (4 * columns) // 128 * 128
    block_n = max(host.l2_bytes // 4 // (4 * block_k) // columns, 1) * columns
    if 0 < problem.n < block_n:
        wanted = -(-problem.n // columns) * columns
        block_k *= block_n // wanted
    block_m = max(host.l2_bytes // 16 // (4 * block_k) // rows, 1) * rows
    return PanelPlan(host.lanes, rows, vectors, 2, block_m, block_n, max(block_k, 128))


def _dots_plan(problem: Problem, host: Host) -> Plan:
    # Twelve sums in f32, twelve dot products in i32 and what they are made of fit 32 registers.
    rows, vectors = (12, 1) if 0 <= problem.n <= LANES else (6, 2)
    columns = LANES * vectors
    if 0 <= problem.n <= 2 * columns:
        # The right panel is small. The left side is read once, in long rows.
        return DotsPlan(rows, vectors, 12, 2 * columns, 4096)
    # Two strips of 16 columns, 48 bytes for each entry along k with their scales, fill half of the first cache.
    block_k = max(host.l1_bytes // 2 // 48 // 128 * 128, 128)
    # The right panel stays in half of the second cache. Rows of the result are pages apart: few at once.
    block_n = max(host.l2_bytes // 2 // (2 * block_k) // columns, 1) * columns
    return DotsPlan(rows, vectors, 48, block_n, block_k)


RULES = (
    Rule(
        "dots",
        lambda p: p.integers,
        _dots_plan,
        "both sides are small integers: dot products of blocks are exact, at four times the rate of f32",
        frozenset({"avx512_vnni", "avx512vbmi"}),
    ),
    Rule(
        "rows",
        lambda p: _few(p.n) and p.k != DYNAMIC and p.lhs_along_k,
        _rows_plan("lhs"),
        "few columns: the left side is read once, and a panel would cost more than the product",
    ),
    Rule(
        "rows",
        lambda p: _few(p.m) and p.k != DYNAMIC and p.rhs_along_k,
        _rows_plan("rhs"),
        "few rows, and the right side's rows lie along k: it is read once",
    ),
    Rule(
        "columns",
        lambda p: _few(p.m) and p.k != DYNAMIC and p.rhs_along_n,
        _columns_plan,
        "few rows, and the right side's rows lie along n: it is read once",
    ),
    Rule(
        "panel",
        lambda p: p.lhs_along_k and (p.rhs_along_k or p.rhs_along_n),
        _panel_plan,
        "many rows and columns: both sides are decoded to panels in cache and used many times",
    ),
)


def choose(contraction: Contraction, host: Host, kind: str | None = None) -> Choice | str:
    """Return the plan for a contraction, of a given kind if one is given, or why there is none."""
    problem = Problem.of(contraction)
    refusals: list[str] = []
    for rule in RULES:
        if kind not in (None, rule.kind) or not (kind is not None or rule.applies(problem)):
            continue
        if rule.needs - host.features:
            refusals.append(f"{rule.kind}: the processor lacks {', '.join(sorted(rule.needs - host.features))}")
            continue
        plan = rule.plan(problem, host)
        refusal = SCHEDULES[rule.kind].refusal(contraction, plan)
        if refusal is None:
            return Choice(plan, rule.reason)
        refusals.append(f"{rule.kind}: {refusal}")
    return "; ".join(refusals) or "neither side's rows lie along the loops that vectors run along"


def override(plan: Plan, sizes: Mapping[str, Any]) -> Plan:
    """Return a plan with some sizes replaced."""
    return dataclasses.replace(plan, **sizes)
