"""How to run a linalg.generic in vectors: which loop becomes lanes, which one rows, what is precomputed.

The machine model is small: vectors of one dimension; loads and stores that cost one instruction along contiguous memory
and one a lane across it; registers for the accumulators of eight rows of two vectors. The plan of a matrix product
C[m, n] += A[m, k] * B[k, n] is the usual one: lanes along n, eight rows of m, every load of B serving all rows.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from mx_dialect._mlir import ir
from mx_dialect.transforms.structured import Loops, Structured, is_whole_bytes

_VECTORS_PER_ROW = 2
_ROWS = 8
_FEWEST_ELEMENTWISE_LANES = 4

# Precomputed operands that every row reads are kept within a level-2 cache.
_PANEL_BYTES = 256 * 1024

# Operations that combine the lanes of a vector into one number, and about how many instructions that takes.
_LANE_COMBINERS = frozenset(
    f"arith.{name}"
    for name in (
        *("addf", "mulf", "maximumf", "minimumf", "maxnumf", "minnumf"),
        *("addi", "muli", "maxsi", "minsi", "maxui", "minui", "andi", "ori", "xori"),
    )
)
_LANE_COMBINING_COST = 6


class Level(IntEnum):
    """Where something precomputed is computed: once for all rows, or once for each tile of rows."""

    ALL_ROWS = 0
    ROW_TILE = 1


@dataclass(frozen=True)
class Precomputed:
    """A value of the body that depends on few enough loops to be worth computing once, before.

    `loops` are the loops it depends on, in the order of the dimensions it is stored with: the lanes' loop last.
    """

    value: Any
    loops: tuple[int, ...]
    level: Level


@dataclass(frozen=True)
class Plan:
    """The loops of an operation by role.

    `outer` are the parallel loops that are neither lanes nor rows. `panel` is how many iterations of the lanes' loop
    run at a time, so that what is precomputed for all rows stays small; None for all of them.
    """

    lanes: int
    rows: int | None
    outer: tuple[int, ...]
    precomputed: tuple[Precomputed, ...] = ()
    panel: int | None = None


def plan(structured: Structured, lane_count: int) -> Plan | None:
    """Choose roles with which an iteration takes the fewest instructions; None if no loop can be lanes."""
    candidates = [_plan_with(structured, loop, lane_count) for loop in _possible_lanes(structured)]
    return min(candidates, key=lambda candidate: _cost(structured, candidate, lane_count), default=None)


def _possible_lanes(structured: Structured) -> list[int]:
    """Return the loops along which the first output is contiguous, and the reductions that lanes can share.

    Without a reduction, whose sums would stay in registers, a few lanes are slower than what LLVM makes of the loops.
    """
    fewest = 2 if structured.reductions else _FEWEST_ELEMENTWISE_LANES
    running = [loop for loop in structured.loops if structured.extents[loop] >= fewest]
    shared = structured.reductions if _combines_lanes(structured) else Loops()
    return [
        loop
        for loop in running
        if loop in shared or (loop not in structured.reductions and structured.runs_along(loop, structured.input_count))
    ]


def _plan_with(structured: Structured, lanes: int, lane_count: int) -> Plan:
    rows = _rows(structured, lanes) if structured.reductions else None
    outer = tuple(
        d
        for d in structured.loops
        if structured.extents[d] > 1 and d not in structured.reductions and d not in (lanes, rows)
    )
    if not structured.reductions or len(structured.maps) > structured.input_count + 1:
        return Plan(lanes, rows, outer)
    found = _precomputed(structured, lanes, rows)
    return Plan(lanes, rows, outer, found, _panel(structured, lanes, found, lane_count))


def lane_tile(extent: int, lane_count: int) -> int | None:
    """Return how many iterations of the lanes' loop a vector runs, None when the loop must be split first."""
    wide = _VECTORS_PER_ROW * lane_count
    if extent % wide == 0:
        return wide
    return extent if extent <= lane_count else None


def row_tile(extent: int) -> int | None:
    """Return how many rows run together, None when the loop must be split first."""
    if extent % _ROWS == 0:
        return _ROWS
    return extent if extent < _ROWS else None


def split_point(structured: Structured, chosen: Plan, lane_count: int) -> tuple[int, int] | None:
    """Return the loop to split and the iterations of the first part, None when tiles cover all loops exactly."""
    extent = structured.extents[chosen.lanes]
    if lane_tile(extent, lane_count) is None:
        wide = _VECTORS_PER_ROW * lane_count
        return chosen.lanes, extent // wide * wide or lane_count
    if chosen.rows is not None:
        extent = structured.extents[chosen.rows]
        if row_tile(extent) is None:
            return chosen.rows, extent // _ROWS * _ROWS
    return None


def innermost(structured: Structured, lanes: int) -> Loops:
    """Return the loops to run inside the lanes' loop: those that something computed along the lanes does not depend on.

    The scale of a block along another axis than the lanes is converted once a block then, not once an element.
    """
    return frozenset(
        d
        for d in structured.loops
        if d != lanes
        and structured.extents[d] > 1
        and any(
            lanes in structured.body.loops_of(result) and d not in structured.body.loops_of(result)
            for op in structured.body.ops
            for result in op.results
        )
    )


def _combines_lanes(structured: Structured) -> bool:
    combiner = structured.body.combiner(0) if len(structured.maps) == structured.input_count + 1 else None
    return combiner is not None and combiner.name in _LANE_COMBINERS


def _cost(structured: Structured, chosen: Plan, lane_count: int) -> float:
    """Return about how many instructions an iteration takes, what is precomputed included."""
    body, lanes = structured.body, chosen.lanes
    full = _VECTORS_PER_ROW * lane_count
    width = min(structured.extents[lanes], full)
    ready = [item.value for item in chosen.precomputed]
    steps = body.needed_for(body.yielded, ready)
    cost = float(len(steps) + len(ready))
    inputs = body.inputs_read(steps, body.yielded)
    cost += sum(_transfer_cost(structured, operand, lanes, width) for operand in inputs)
    # Accumulators stay in registers over the reductions.
    outputs = range(structured.input_count, len(structured.maps))
    stores = sum(_transfer_cost(structured, operand, lanes, width) for operand in outputs)
    cost += stores / structured.iterations(structured.reductions)
    if lanes in structured.reductions:
        cost += _LANE_COMBINING_COST
    cost /= width
    for item in chosen.precomputed:
        steps = body.needed_for([item.value])
        inputs = body.inputs_read(steps)
        instructions = len(steps) + sum(_transfer_cost(structured, operand, item.loops[-1], full) for operand in inputs)
        reuse = structured.iterations(set(structured.loops) - set(item.loops))
        cost += instructions / (full * reuse)
    return cost


def _transfer_cost(structured: Structured, operand: int, lanes: int, width: int) -> int:
    """Return about how many instructions it takes to read or write an operand for a vector of iterations."""
    strided = lanes in structured.loops_of(operand) and not structured.runs_along(lanes, operand)
    return width if strided else 1


def _rows(structured: Structured, lanes: int) -> int | None:
    """Return the parallel loop whose iterations share most inputs; of several the one further in."""
    candidates = [
        d for d in structured.loops if d != lanes and d not in structured.reductions and structured.extents[d] > 1
    ]

    def shared_inputs(d: int) -> int:
        return sum(d not in structured.loops_of(operand) for operand in structured.inputs)

    return max(candidates, key=lambda d: (shared_inputs(d), d)) if candidates else None


def _precomputed(structured: Structured, lanes: int, rows: int | None) -> tuple[Precomputed, ...]:
    """Return the values to precompute: of each computation that few loops change, the last that memory can hold."""
    body = structured.body
    found: dict[Any, Precomputed] = {}
    pending = [value for value in body.yielded if body.is_computed(value)]
    visited = set(pending)
    while pending:
        value = pending.pop()
        loops = body.loops_of(value)
        level = _level(structured, loops, lanes, rows)
        if level is not None and _is_storable(value.type):
            found[value] = Precomputed(value, tuple(sorted(loops, key=lambda d: (d == lanes, d))), level)
            continue
        for operand in value.owner.operation.operands:
            if body.is_computed(operand) and operand not in visited:
                visited.add(operand)
                pending.append(operand)
    return tuple(found.values())


def _level(structured: Structured, loops: Loops, lanes: int, rows: int | None) -> Level | None:
    """Return where to precompute a value that these loops change, None when each iteration does better on its own."""
    if not loops or structured.iterations(set(structured.loops) - loops) == 1:
        return None
    if rows is not None and rows not in loops:
        return Level.ALL_ROWS
    if lanes in loops:
        return None
    return Level.ALL_ROWS if rows is None else Level.ROW_TILE


def _panel(structured: Structured, lanes: int, precomputed: tuple[Precomputed, ...], lane_count: int) -> int | None:
    """Return the widest panel of whole vectors that divides the lanes' loop and keeps to _PANEL_BYTES; None for all."""
    sizes = [
        structured.iterations(set(p.loops) - {lanes}) * p.value.type.width // 8
        for p in precomputed
        if p.level is Level.ALL_ROWS and lanes in p.loops
    ]
    extent = structured.extents[lanes]
    tile = lane_tile(extent, lane_count)
    if not sizes or tile is None or lanes in structured.reductions:
        return None
    count = extent // tile
    fitting = max(_PANEL_BYTES // (sum(sizes) * tile), 1)
    widest = max(n for n in range(1, count + 1) if count % n == 0 and n <= fitting)
    return None if widest == count else widest * tile


def _is_storable(type_: Any) -> bool:
    return isinstance(type_, ir.IntegerType | ir.FloatType) and is_whole_bytes(type_)
