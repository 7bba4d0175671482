"""Which schedule a contraction gets, and its sizes: a table of rules, each with its reason.

The rules are tried in order. They compare extents with thresholds found by trying; sizes follow from the host's
registers and caches.
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mx_dialect.schedule.amx import AmxPlan
from mx_dialect.schedule.amx_packing import GRANULE as AMX_GRANULE
from mx_dialect.schedule.amx_packing import parts_of
from mx_dialect.schedule.amx_tiles import ROWS as AMX_ROWS
from mx_dialect.schedule.amx_words import EXACT
from mx_dialect.schedule.columns import ColumnsPlan
from mx_dialect.schedule.contraction import DYNAMIC, Contraction, reads_along
from mx_dialect.schedule.dots import DotsPlan, sides
from mx_dialect.schedule.dots_rows import DotRowsPlan
from mx_dialect.schedule.dots_tiles import DotTilesPlan
from mx_dialect.schedule.host import Host
from mx_dialect.schedule.panel import PanelPlan
from mx_dialect.schedule.registers import LANES
from mx_dialect.schedule.rows import BODY, NIBBLES, TABLE, RowsPlan
from mx_dialect.schedule.rows_groups import table_reader
from mx_dialect.schedule.rows_nibbles import nibble_reader
from mx_dialect.schedule.schedules import SCHEDULES, Plan

_VNNI = frozenset({"avx512_vnni", "avx512vbmi"})
_AMX = frozenset({"amx_tile", "amx_bf16", "avx512bw", "avx512vbmi"})
_AMX_BYTES = _VNNI | {"amx_tile", "amx_int8"}
_FEW_FOR_TILES, _FEW_WITHOUT_TABLES = 2, 4
_SHORT = 128
_FEW_DOTS = 6
_ROWS_AHEAD = 24

FEW = 8
"""Up to so many columns or rows of the result, dot products are faster than panels."""

SKINNY = 64
"""Up to so many columns, the right side fits the cache as a whole next to rows of the left one."""


@dataclass(frozen=True)
class Problem:
    """What the rules look at: extents, or DYNAMIC, along which loops the sides lie in memory, and which side's
    elements tables decode or are packed nibbles, and whether both are integers whose blocks have exact dot products."""

    m: int
    n: int
    k: int
    block: int
    lhs_along_k: bool
    rhs_along_k: bool
    rhs_along_n: bool
    table: Mapping[str, bool]
    nibbles: Mapping[str, bool]
    exact: Mapping[str, bool]
    integers: bool

    @classmethod
    def of(cls, c: Contraction) -> "Problem":
        place = c.k[-1]
        return cls(
            c.extents[c.m],
            c.extents[c.n],
            c.depth,
            c.block,
            reads_along(c.lhs, place),
            reads_along(c.rhs, place),
            reads_along(c.rhs, c.n),
            {"lhs": table_reader(c, c.lhs) is not None, "rhs": table_reader(c, c.rhs) is not None},
            {"lhs": nibble_reader(c, c.lhs) is not None, "rhs": nibble_reader(c, c.rhs) is not None},
            {"lhs": parts_of(c, c.lhs) == EXACT, "rhs": parts_of(c, c.rhs) == EXACT},
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
        decode = NIBBLES if problem.nibbles[long] and host.lanes == LANES else decode
        return RowsPlan(host.lanes, at_once, strips, long, decode)

    return plan


def _columns_plan(problem: Problem, host: Host) -> Plan:
    vectors = max(1, min(8, (host.registers - 8) // max(problem.m, 1)))
    return ColumnsPlan(host.lanes, vectors, 1)


def _multiple(size: int, block: int) -> int:
    """Return the largest multiple of the block that is not more than a size, at least one block."""
    return max(size // block, 1) * block


def _panel_plan(problem: Problem, host: Host) -> Plan:
    vectors = 1 if 0 < problem.n <= host.lanes else 2
    columns = host.lanes * vectors
    # A strip of the right panel takes two thirds of the first cache, next to a tile of the left one; the right panel
    # half of the second.
    block_k = _multiple(host.l1_bytes * 2 // 3 // (4 * host.lanes * 2), problem.block)
    right = host.l2_bytes // 2 // 4
    if 0 < problem.n <= SKINNY:
        # All columns for long rows of the left side, which is read once, in few streams: as few as are prefetched.
        block_k = _multiple(right // (-(-problem.n // columns) * columns), problem.block)
        return PanelPlan(host.lanes, 8, vectors, 4, 8, columns * -(-problem.n // columns), block_k)
    # The register tile: sums, vectors of the right side, a broadcast element of the left one.
    rows = (host.registers - vectors - 2) // vectors
    block_n = max(right // block_k // columns, 1) * columns
    # Rows of the result may be a page apart each: two tiles of them are soon seen again, in the next columns.
    return PanelPlan(host.lanes, rows, vectors, 2, 2 * rows, block_n, block_k)


def _dots_plan(problem: Problem, host: Host) -> Plan:
    # Sixteen sums beside sixteen dot products: some are spilled, which costs less than a smaller tile.
    rows, vectors = (16, 1) if 0 <= problem.n <= LANES else (8, 2)
    columns = LANES * vectors
    if 0 <= problem.n <= 2 * columns:
        # The right panel is small. The left side is read once, in long rows.
        return DotsPlan(rows, vectors, rows, 2 * columns, 4096)
    # Two strips of 16 columns, 48 bytes for each entry along k with their scales, fill half of the first cache.
    block_k = max(host.l1_bytes // 2 // 48 // 128 * 128, 128)
    # The right panel stays in half of the second cache. Rows of the result are pages apart: few at once.
    block_n = max(host.l2_bytes // 2 // (2 * block_k) // columns, 1) * columns
    return DotsPlan(rows, vectors, 64, block_n, block_k)


def _dot_tiles_plan(problem: Problem, host: Host) -> Plan:
    # A tile of rows and what it meets of a strip of columns are in the first cache together.
    block_k = _multiple(1024, problem.block)
    if 0 <= problem.n <= 2 * LANES:
        return DotTilesPlan(AMX_ROWS, 2 * LANES, 4 * block_k)
    # The right panel, three vectors of i32 or f32 for a block besides its bytes, takes two thirds of the second cache.
    bytes_a_column = block_k + 12 * (block_k // problem.block)
    block_n = max(host.l2_bytes * 2 // 3 // bytes_a_column // LANES, 1) * LANES
    return DotTilesPlan(AMX_ROWS, block_n, block_k)


def _amx_plan(long: str) -> Callable[[Problem, Host], Plan]:
    def plan(problem: Problem, host: Host) -> Plan:
        short = problem.n if long == "lhs" else problem.m
        if 0 < short <= AMX_GRANULE:
            # Tiles are summed while rows are packed: most of the work is packing, and k need not be cut.
            return AmxPlan(long, AMX_GRANULE, AMX_GRANULE, _multiple(host.l2_bytes // 512, problem.block))
        # The short side's panel, of six bytes an entry, takes less than half of the second cache; a short one is in it
        # with long rows.
        block_k = 1024 if 0 < short <= _SHORT else 512
        block_short = _multiple(host.l2_bytes * 3 // 8 // (6 * block_k), AMX_GRANULE)
        return AmxPlan(long, AMX_GRANULE, block_short, _multiple(block_k, problem.block))

    return plan


def _amx_applies(long: str) -> Callable[[Problem], bool]:
    """Tell whether a side is exact and has tiles' worth of rows, and the other more than few."""

    def applies(p: Problem) -> bool:
        rows, others = (p.m, p.n) if long == "lhs" else (p.n, p.m)
        along_k = p.lhs_along_k if long == "lhs" else p.rhs_along_k
        few = _FEW_FOR_TILES if p.table[long] else _FEW_WITHOUT_TABLES
        many = (rows == DYNAMIC or rows >= AMX_GRANULE) and (others == DYNAMIC or others > few)
        return p.exact[long] and along_k and not p.integers and many

    return applies


RULES = (
    Rule(
        "amx",
        _amx_applies("lhs"),
        _amx_plan("lhs"),
        "the left side's values are bf16, whose products with bf16 are several times as fast as f32's",
        _AMX,
    ),
    Rule(
        "amx",
        _amx_applies("rhs"),
        _amx_plan("rhs"),
        "the right side's values are bf16, whose products with bf16 are several times as fast as f32's",
        _AMX,
    ),
    Rule(
        "dot_rows",
        lambda p: p.integers and 0 <= p.n <= _FEW_DOTS and p.lhs_along_k,
        lambda p, h: DotRowsPlan("lhs", _ROWS_AHEAD),
        "few columns of small integers: the left side is read once, sixteen rows at a time",
        _VNNI,
    ),
    Rule(
        "dot_rows",
        lambda p: p.integers and 0 <= p.m <= _FEW_DOTS and p.rhs_along_k,
        lambda p, h: DotRowsPlan("rhs", _ROWS_AHEAD),
        "few rows of small integers: the right side is read once, sixteen of its rows at a time",
        _VNNI,
    ),
    Rule(
        "dot_tiles",
        lambda p: p.integers and (p.m == DYNAMIC or p.m >= AMX_ROWS),
        _dot_tiles_plan,
        "both sides are small integers: the matrix unit makes exact dot products of blocks, 16 rows at once",
        _AMX_BYTES,
    ),
    Rule(
        "dots",
        lambda p: p.integers,
        _dots_plan,
        "both sides are small integers: dot products of blocks are exact, at four times the rate of f32",
        _VNNI,
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


def few_rows(contraction: Contraction, plan: Plan, host: Host) -> int:
    """Return up to how many rows a contraction has another kind of schedule than a plan's, FEW at most.

    It is asked where the number of rows is not known before the kernel runs.
    """
    for rows in range(FEW, 0, -1):
        extents = [rows if loop == contraction.m else size for loop, size in enumerate(contraction.extents)]
        choice = choose(dataclasses.replace(contraction, extents=tuple(extents)), host)
        if not isinstance(choice, str) and not isinstance(choice.plan, type(plan)):
            return rows
    return 0


def override(plan: Plan, sizes: Mapping[str, Any]) -> Plan:
    """Return a plan with some sizes replaced."""
    return dataclasses.replace(plan, **sizes)
