"""`mx-legalize-cast`: make every cast of FP4 tiles one that the vector unit can run, from vec to vec.

    %x = mx.tile_load %w[0, 0] [16, 64] {target = "mat"} : tensor<16x64xf4E2M1FN> -> !mx.tile<16x64xf4E2M1FN, mat>
    %l = mx.tile_move %x : !mx.tile<16x64xf4E2M1FN, mat> -> !mx.tile<16x64xf4E2M1FN, left>
    %y = mx.tile_cast %l : !mx.tile<16x64xf4E2M1FN, left> -> !mx.tile<16x64xf8E4M3FN, left>

becomes

    %x = mx.tile_load %w[0, 0] [16, 64] {target = "vec"} : tensor<16x64xf4E2M1FN> -> !mx.tile<16x64xf4E2M1FN, vec>
    %c = mx.tile_cast %x : !mx.tile<16x64xf4E2M1FN, vec> -> !mx.tile<16x64xf8E4M3FN, vec>
    %m = mx.tile_move %c : !mx.tile<16x64xf8E4M3FN, vec> -> !mx.tile<16x64xf8E4M3FN, mat>
    %y = mx.tile_move %m : !mx.tile<16x64xf8E4M3FN, mat> -> !mx.tile<16x64xf8E4M3FN, left>

| cast                                    | becomes                                                       |
|-----------------------------------------|---------------------------------------------------------------|
| of a tile that was moved out of vec     | a cast of what was moved; a move that nothing else uses goes  |
| of a tile that is loaded for casts only | a cast of the tile loaded to vec                              |
| of another tile that is not in vec      | a cast of that tile moved to vec                              |
| to a tile in another memory             | a cast to vec and moves from there                            |
| to a tile that is not decided yet       | a cast to vec                                                 |

The last, where control flow, a call or a move takes the result, is left to `--mx-infer-memory-space`, which decides it
together with what it becomes. An FP4 tile that lies anywhere but in vec and mat afterwards is refused: the matrix unit
multiplies FP8 only.
"""

from typing import Any

from mx_dialect._mlir import ir
from mx_dialect.diagnostics import error_at
from mx_dialect.passes import NoOptions, Pass, register_pass
from mx_dialect.tile_matmul_ops import ELEMENT
from mx_dialect.tile_memory_ops import TileLoadOp
from mx_dialect.tile_ops import TileCastOp, TileMoveOp, tile_move
from mx_dialect.tile_slots import SLOTS, way
from mx_dialect.tile_spec import SCALE_SPACES, UNDECIDED
from mx_dialect.tile_types import TileType
from mx_dialect.transforms.tile_moves import Moves, in_space, is_plain, uses
from mx_dialect.walk import defined_values, defining, operations

_FP4 = "f4E2M1FN"
# What takes a tile from wherever it lies, in time for --mx-infer-memory-space to move it.
_ANYWHERE = frozenset((*SLOTS, "mx.tile_store"))
_FP4_SPACES = ("vec", "mat", UNDECIDED)


def _is_cast(op: Any) -> bool:
    return op.name == "mx.tile_cast"


def _skip_moves(cast: TileCastOp) -> list[TileMoveOp]:
    """Let a cast of a moved tile cast what was moved; return the moves between the two."""
    skipped: list[TileMoveOp] = []
    value = cast.input
    while value.type.spec.space != "vec":
        move = defining(value, TileMoveOp)
        if move is None or not is_plain(move):
            break
        skipped.append(move)
        value = move.input
    cast.operation.operands[0] = value
    return skipped


def _erase_unused(moves: list[TileMoveOp]) -> None:
    """Erase those of the moves that nothing uses any more, and then those whose last use that was."""
    present: dict[Any, TileMoveOp] = {move.output: move for move in moves}
    for output in list(present):
        move = present.get(output)
        while move is not None and not uses(move.output):
            del present[move.output]
            source = move.input
            move.operation.erase()
            move = present.get(source)


def _load_to_vec(value: Any) -> None:
    """Load a tile to vec that is loaded for casts only."""
    load = defining(value, TileLoadOp)
    if load is not None and all(_is_cast(user) for user, _ in uses(value)):
        load.output.set_type(in_space(load.output.type, "vec"))
        load.operation.attributes["target"] = ir.StringAttr.get("vec")


def _move_input(cast: TileCastOp, moves: Moves) -> None:
    value = cast.input
    moved = moves.bring(value, "vec", cast.operation)
    if moved is None:
        raise error_at(
            cast,
            f"'mx.tile_cast' op takes its input in vec, but it lies in {value.type.spec.space}, from which no way leads"
            " there; cast the tile before it is moved",
        )
    cast.operation.operands[0] = moved


def _move_result(cast: TileCastOp) -> None:
    """Cast to vec and move the result to where it is declared."""
    result = cast.output
    users, declared = uses(result), result.type.spec.space
    if declared == UNDECIDED:
        if all(user.name in _ANYWHERE for user, _ in users):
            result.set_type(in_space(result.type, "vec"))
        return
    path = None if declared in SCALE_SPACES else way("vec", declared)
    if path is None:
        raise error_at(cast, f"'mx.tile_cast' op gives its result in vec, from which no way leads to {declared}")
    result.set_type(in_space(result.type, "vec"))
    moved = result
    with ir.InsertionPoint.after(cast.operation):
        for space in path:
            moved = tile_move(moved, space, loc=cast.location)
    for user, number in users:
        user.operands[number] = moved


def _refuse_fp4_elsewhere(root: Any) -> None:
    """Refuse an FP4 tile that lies in a memory of the matrix unit."""

    def check(value: Any, op: Any) -> None:
        spec = value.type.spec if isinstance(value.type, TileType) else None
        if spec is not None and spec.element == _FP4 and spec.space not in _FP4_SPACES:
            raise error_at(
                op,
                f"'{op.name}' op has an FP4 tile in {spec.space}, but the matrix unit multiplies {ELEMENT} only;"
                f" cast the tile to {ELEMENT} with mx.tile_cast before it is moved there",
            )

    for op in operations(root, lambda _: True, outer_first=True):
        for value in defined_values(op):
            check(value, op)


def run(root: Any, options: NoOptions) -> None:
    """Make the casts under `root` go from vec to vec, in place.

    Raises:
        MxError: a cast whose input or result no moves connect with vec; an FP4 tile in a memory of the matrix unit.
    """
    with root.context:
        casts = [op.opview for op in operations(root, _is_cast, outer_first=True)]
        _erase_unused([move for cast in casts for move in _skip_moves(cast)])
        for value in {cast.input: None for cast in casts}:
            _load_to_vec(value)
        moves = Moves()
        for cast in casts:
            _move_input(cast, moves)
            _move_result(cast)
        _refuse_fp4_elsewhere(root)


PASS = register_pass(
    Pass(
        name="mx-legalize-cast",
        summary="Make casts of FP4 tiles run on the vector unit, with the moves that this takes",
        run=run,
        requires="valid mx operations",
        leaves="casts from vec to vec or to what --mx-infer-memory-space decides; FP4 tiles in vec and mat only",
    )
)
