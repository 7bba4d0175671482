"""mx-vectorize: run linalg.generic operations on tensors in vectors.

Each operation with static shapes and projected permutations for maps is tiled until what is left fits registers, and
that is vectorized. Which loop becomes lanes and which one rows of accumulators is decided in `vector_plan.py`. What the
body computes from few loops, the decoding of a quantized operand above all, is moved out (`precompute.py`) and computed
a panel at a time. A product of matrices, C[m, n] += decode(A[m, k]) * B[k, n] with m = 32, n = k = 64, becomes

    scf.for %m = 0 to 32 step 8
      scf.for %r = 0 to 8, %k = 0 to 64 step 32
        ... %panel[%r, %k to %k + 32] = decode(A[%m + %r, %k to %k + 32])
      scf.for %n = 0 to 64 step 32
        scf.for %k = 0 to 64
          %b = vector.transfer_read %B[%k, %n] : vector<32xf32>
          ... for each r from 0 to 7, without a loop:
          %a = vector.transfer_read %panel[r, %k] : vector<f32>
          %c = vector.transfer_read %C[%m + r, %n] : vector<32xf32>
          ... %C[%m + r, %n] = %c + %a * %b

and loop-invariant-subset-hoisting then keeps the eight %c in registers while %k runs.

Extents that tiles do not divide are split, and the remainder is vectorized with shorter vectors: no masks, no reads
beyond a buffer. A multiplication that feeds an addition to an accumulator may become one fused operation, and where
lanes run along a reduction the order of additions changes; both stay within the error bound of a dot product.

What cannot run in vectors stays a linalg operation, which lowers to loops, and a remark says why.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mx_dialect import diagnostics, passes
from mx_dialect._mlir import ir
from mx_dialect.diagnostics import MxError
from mx_dialect.schedule.attribute import ATTRIBUTE
from mx_dialect.transforms.precompute import move_out
from mx_dialect.transforms.structured import Structured, Unsuitable
from mx_dialect.transforms.vector_plan import (
    Level,
    Plan,
    Precomputed,
    innermost,
    lane_tile,
    plan,
    row_tile,
    split_point,
)
from mx_dialect.transforms.vector_program import REFUSED, TAG, VectorProgram


@dataclass(frozen=True)
class Options:
    """Options of mx-vectorize."""

    vector_lanes: int = passes.option(16, "how many 32-bit elements a vector register holds; a power of two")


def _linalg_operations(root: Any) -> Iterator[Any]:
    """Yield the linalg operations under `root` that have no schedule, without what is inside their bodies."""
    for region in root.regions:
        for block in region:
            for op in block:
                if op.operation.name.startswith("linalg."):
                    if ATTRIBUTE not in op.operation.attributes:
                        yield op.operation
                else:
                    yield from _linalg_operations(op.operation)


def _tagged(root: Any) -> list[Any]:
    return [op for op in _linalg_operations(root) if TAG in op.attributes]


def _tag(op: Any, tag: str) -> str:
    op.attributes[TAG] = ir.StringAttr.get(tag)
    return tag


def _is_suitable(op: Any, lane_count: int) -> bool:
    """Tell whether vectors can run an operation; a remark says why not."""
    try:
        if plan(Structured.of(op), lane_count) is None:
            raise Unsuitable("it has no loop to run in vectors")
    except Unsuitable as reason:
        diagnostics.remark_at(op, f"mx-vectorize leaves this {op.name} as it is: {reason}")
        return False
    return True


def _split(root: Any, lane_count: int) -> bool:
    """Split each tagged operation that tiles do not cover exactly in two; return whether there were any."""
    program = VectorProgram()
    found = False
    for number, op in enumerate(_tagged(root)):
        # The parts of an operation that was split carry the same tag.
        tag = _tag(op, str(number))
        structured = Structured.of(op)
        chosen = plan(structured, lane_count)
        point = split_point(structured, chosen, lane_count) if chosen else None
        if point is not None:
            program.split(program.match(tag), *point)
            found = True
    if found:
        program.interpret(root)
    return found


def _allow_fused_multiplication(structured: Structured) -> None:
    """Let a multiplication and the addition of its result to an accumulator round once."""
    body = structured.body
    for output in range(len(body.yielded)):
        addition = body.combiner(output)
        if addition is None or addition.name != "arith.addf":
            continue
        for value in addition.operands:
            if body.is_computed(value) and value.owner.operation.name == "arith.mulf":
                _allow_contraction(addition)
                _allow_contraction(value.owner.operation)


def _allow_contraction(op: Any) -> None:
    if str(op.attributes["fastmath"]) == "#arith.fastmath<none>":
        op.attributes["fastmath"] = ir.Attribute.parse("#arith.fastmath<contract>")


@dataclass(frozen=True)
class _Producer:
    """An operation that `move_out` made, and of which value."""

    tag: str
    structured: Structured
    item: Precomputed


class _Scheduler:
    """Adds operations to a program, one after the other, and gathers the loops to vectorize in."""

    def __init__(self, lane_count: int):
        self.program = VectorProgram()
        self.lane_count = lane_count
        self.innermost: list[str] = []
        self.unrolled: dict[str, int] = {}

    def reduction(self, tag: str, structured: Structured, chosen: Plan, producers: Sequence[_Producer]) -> None:
        """Schedule an operation with reductions, and the producers of its operands inside its loops."""
        program, rank = self.program, len(structured.extents)
        target = program.match(tag)
        handles = {p.tag: program.match(p.tag) for p in producers}

        def fuse(loop: str, level: Level) -> None:
            tags = [p.tag for p in producers if p.item.level >= level]
            handles.update(zip(tags, program.fuse([handles[t] for t in tags], loop), strict=True))

        tiles = dict.fromkeys(chosen.outer, 1)
        if chosen.panel is not None:
            tiles[chosen.lanes] = chosen.panel
        target, loops = program.tile(target, tiles, rank)
        if loops:
            fuse(loops[-1], Level.ALL_ROWS)
        row_tiles = dict(tiles)
        if chosen.rows is not None:
            rows = {chosen.rows: row_tile(structured.extents[chosen.rows]) or 1}
            row_tiles.update(rows)
            target, loops = program.tile(target, rows, rank)
            fuse(loops[-1], Level.ROW_TILE)

        for producer in producers:
            reached = row_tiles if producer.item.level is Level.ROW_TILE else tiles
            extents = tuple(reached.get(loop, structured.extents[loop]) for loop in producer.item.loops)
            self.elementwise(handles[producer.tag], replace(producer.structured, extents=extents))

        self._accumulate(target, structured, chosen, row_tiles)

    def _accumulate(self, target: str, structured: Structured, chosen: Plan, tiles: dict[int, int]) -> None:
        """Tile the loops over which accumulators are live, down to one vector for each row."""
        rank = len(structured.extents)
        extent = tiles.get(chosen.lanes, structured.extents[chosen.lanes])
        lanes = {chosen.lanes: lane_tile(extent, self.lane_count) or extent}
        steps = {loop: 1 for loop in structured.reductions if structured.extents[loop] > 1}
        nest = [{**steps, **lanes}] if chosen.lanes in structured.reductions else [lanes, steps]
        if chosen.rows is not None:
            nest.append({chosen.rows: 1})
        innermost_loop = ""
        for sizes in nest:
            target, loops = self.program.tile(target, sizes, rank)
            innermost_loop = loops[-1] if loops else innermost_loop
        self.innermost.append(innermost_loop)
        if chosen.rows is not None and tiles[chosen.rows] > 1:
            self.unrolled[innermost_loop] = tiles[chosen.rows]

    def elementwise(self, target: str, structured: Structured) -> None:
        """Schedule an operation without reductions, one vector at a time."""
        chosen = plan(structured, self.lane_count)
        if chosen is None:
            return
        point = split_point(structured, chosen, self.lane_count)
        if point is not None:
            loop, at = point
            for part, extent in zip(
                self.program.split(target, loop, at), (at, structured.extents[loop] - at), strict=True
            ):
                extents = [*structured.extents]
                extents[loop] = extent
                self.elementwise(part, replace(structured, extents=tuple(extents)))
            return
        rank = len(structured.extents)
        inside = innermost(structured, chosen.lanes)
        extent = structured.extents[chosen.lanes]
        loops: list[str] = []
        for sizes in (
            {loop: 1 for loop in chosen.outer if loop not in inside},
            {chosen.lanes: lane_tile(extent, self.lane_count) or extent},
            dict.fromkeys(sorted(inside), 1),
        ):
            target, new_loops = self.program.tile(target, sizes, rank)
            loops += new_loops
        self.innermost.append(loops[-1])


def _schedule(root: Any, lane_count: int) -> None:
    """Tile and vectorize the tagged operations, which tiles cover exactly."""
    scheduler = _Scheduler(lane_count)
    for number, op in enumerate(_tagged(root)):
        structured = Structured.of(op)
        tag = _tag(op, str(number))
        chosen = plan(structured, lane_count)
        if chosen is None:
            # What a split left over: a single iteration.
            continue
        if not structured.reductions:
            scheduler.elementwise(scheduler.program.match(tag), structured)
            continue
        _allow_fused_multiplication(structured)
        consumer, made = move_out(structured, chosen.precomputed)
        _tag(consumer, tag)
        producers = [
            _Producer(_tag(new, f"{tag}.{i}"), Structured.of(new), item)
            for i, (new, item) in enumerate(zip(made, chosen.precomputed, strict=True))
        ]
        scheduler.reduction(tag, Structured.of(consumer), chosen, producers)
    scheduler.program.vectorize(scheduler.innermost, scheduler.unrolled)
    scheduler.program.interpret(root)


def _untag(root: Any) -> None:
    for op in _tagged(root):
        if ir.StringAttr(op.attributes[TAG]).value == REFUSED:
            diagnostics.remark_at(op, f"mx-vectorize leaves a tile of this {op.name} to loops")
        del op.attributes[TAG]


def run(root: Any, options: Options) -> None:
    """Vectorize every linalg.generic under `root` that vectors can run, in place.

    Raises:
        MxError: the number of lanes is not a power of two.
    """
    lanes = options.vector_lanes
    if lanes < 1 or lanes & (lanes - 1):
        raise MxError(f"option 'vector-lanes' of pass 'mx-vectorize' is a power of two, not {lanes}")
    with root.context, ir.Location.unknown():
        suitable = [op for op in _linalg_operations(root) if _is_suitable(op, lanes)]
        for op in suitable:
            _tag(op, "suitable")
        if not suitable:
            return
        while _split(root, lanes):
            pass
        _schedule(root, lanes)
        _untag(root)


PASS = passes.register_pass(
    passes.Pass(
        name="mx-vectorize",
        summary="Tile and vectorize linalg.generic operations of static shape",
        run=run,
        options=Options,
        requires="linalg.generic on tensors, maps that are projected permutations (mx-expand-k makes them)",
        leaves="vectors of one dimension in loops; as they were, the operations that a remark names",
    )
)
