"""`mx-infer-memory-space`: decide in which memory each tile of a kernel lies, and move tiles to where they are needed.

    %x = mx.tile_load %a[0, 0] [16, 64] : tensor<16x64xf8E4M3FN> -> !mx.tile<16x64xf8E4M3FN>
    ...
    %c = mx.matmul_mx %x, %xs, %y, %ys : ...

becomes

    %x = mx.tile_load %a[0, 0] [16, 64] {target = "mat"} : tensor<16x64xf8E4M3FN> -> !mx.tile<16x64xf8E4M3FN, mat>
    ...
    %l = mx.tile_move %x : !mx.tile<16x64xf8E4M3FN, mat> -> !mx.tile<16x64xf8E4M3FN, left>
    ...
    %c = mx.matmul_mx %l, %ls, %r, %rs : ...

This is done in kernel functions and in functions that exchange tiles with them through calls; how a memory is chosen is
in `tile_spaces`. An operand that does not lie where it is needed, whether it was decided here or before, is moved right
before the operation, by the shortest way: vec to mat to left. There is at most one such move of a tile to a memory in a
block, and none is used in another block. A move of a tile to where it is made anyway goes.
"""

from typing import Any

from mx_dialect._mlir import ir
from mx_dialect.analysis.value_flow import CALLS, CARRIERS
from mx_dialect.diagnostics import MxError, at, error_at
from mx_dialect.passes import NoOptions, Pass, register_pass
from mx_dialect.tile_memory_ops import TileLoadOp
from mx_dialect.tile_ops import TileMoveOp
from mx_dialect.tile_slots import RESULT_SPACES, SLOTS
from mx_dialect.tile_spec import UNDECIDED
from mx_dialect.tile_types import TileType, layout_of
from mx_dialect.transforms.tile_moves import Moves, in_space, is_plain
from mx_dialect.transforms.tile_program import TileFunction, TileOperation, TileProgram, is_undecided
from mx_dialect.transforms.tile_spaces import Spaces
from mx_dialect.walk import defined_values

_UNDERSTOOD = frozenset((*SLOTS, "mx.tile_load", "mx.tile_store", "mx.tile_create", "mx.tile_move"))


def _check(operation: TileOperation) -> None:
    """Refuse what the rules do not cover, and a tile that is declared where its operation does not make it."""
    op = operation.op
    if isinstance(op.opview, TileLoadOp) and layout_of(op.opview.source.type) is not None:
        _check_scale_load(op.opview)
    made_in = RESULT_SPACES.get(op.name)
    for value in op.results if made_in is not None else ():
        space = value.type.spec.space
        if space not in (made_in, UNDECIDED):
            remedy = "run --mx-legalize-cast first" if op.name == "mx.tile_cast" else "move it there afterwards"
            raise error_at(op, f"'{op.name}' op makes its result in {made_in}, not in {space}; {remedy}")
    if op.name not in _UNDERSTOOD:
        _check_carrier(operation)


def _check_scale_load(load: TileLoadOp) -> None:
    """Refuse a load of scales to a memory that only moves fill; of other tiles the verifier does."""
    space = load.output.type.spec.space
    space = load.target or "mat" if space == UNDECIDED else space
    if space != "mat":
        raise error_at(load, f"'mx.tile_load' op loads to {space}, but scales are loaded to mat and moved from there")


def _check_carrier(operation: TileOperation) -> None:
    """Refuse an operation that may do anything with a tile that is not decided yet."""
    op = operation.op
    if op.name in CALLS and operation.callee is None and any(is_undecided(v.type) for v in (*op.operands, *op.results)):
        raise error_at(
            op,
            f"'{op.name}' op passes tiles whose memory space is not decided yet, but calls no function of this module"
            " that takes and gives as many values; declare their memory spaces",
        )
    known = {op.operands[number] for number in operation.handed_on()}
    if op.name in CARRIERS:
        known.update(defined_values(op))
    # Arguments of other blocks come from branches, which are looked at by themselves.
    known.update(a for region in op.regions for block in list(region)[1:] for a in block.arguments)
    for value in (*op.operands, *defined_values(op)):
        if _holds_undecided(value.type) and (value not in known or not isinstance(value.type, TileType)):
            raise _not_covered(op, value.type)


def _check_signature(function: TileFunction) -> None:
    for _, type_ in function.boundaries():
        if _holds_undecided(type_) and not isinstance(type_, TileType):
            raise _not_covered(function.op, type_)


def _holds_undecided(type_: Any) -> bool:
    return f'"{UNDECIDED}"' in str(type_)


def _not_covered(op: Any, type_: Any) -> MxError:
    message = (
        f"'{op.name}' op holds '{type_}', and --mx-infer-memory-space does not know which memory space it needs there;"
        " declare the memory space"
    )
    return error_at(op, message)


def _decide(program: TileProgram, spaces: Spaces) -> None:
    """Give the tiles of a program their memories."""
    for op in (operation.op for operation in program.operations):
        for value in defined_values(op):
            if is_undecided(value.type):
                value.set_type(in_space(value.type, spaces.of(value)))
        if isinstance(op.opview, TileLoadOp):
            op.attributes["target"] = ir.StringAttr.get(op.results[0].type.spec.space)
    for function in program.functions.values():
        _decide_signature(function, spaces)


def _decide_signature(function: TileFunction, spaces: Spaces) -> None:
    decided = [
        in_space(type_, spaces.of(boundary)) if is_undecided(type_) else type_
        for boundary, type_ in function.boundaries()
    ]
    count = len(function.arguments)
    function.arguments, function.results = decided[:count], decided[count:]
    type_ = ir.FunctionType.get(function.arguments, function.results)
    function.op.attributes["function_type"] = ir.TypeAttr.get(type_)


def _place_moves(program: TileProgram, spaces: Spaces) -> None:
    """Move the operands of a decided program to where they are needed."""
    moves = Moves()
    superfluous: list[Any] = []
    for operation in program.operations:
        op = operation.op
        if isinstance(op.opview, TileMoveOp):
            if not _complete_move(op.opview, moves):
                superfluous.append(op)
            continue
        for number, space in _needed(operation, program).items():
            moved = moves.bring(op.operands[number], space, op)
            if moved is None:
                raise _unreachable(op, number, space, spaces.asked_by(operation.handed_on().get(number)))
            op.operands[number] = moved
    # Not earlier: `moves` knows values by their addresses.
    for op in superfluous:
        op.erase()


def _needed(operation: TileOperation, program: TileProgram) -> dict[int, str]:
    """Return the memories that the operands of an operation have to lie in, by their numbers."""
    op = operation.op
    needed = {number: slot.space for number, slot in enumerate(SLOTS.get(op.name, ()))}
    for number, target in operation.handed_on().items():
        type_ = program.type_of(target)
        if isinstance(type_, TileType) and isinstance(op.operands[number].type, TileType):
            needed[number] = type_.spec.space
    return needed


def _complete_move(move: TileMoveOp, moves: Moves) -> bool:
    """Make sure that a way leads from where a move takes its tile; False if the move goes nowhere and is not used."""
    source, target = move.input.type.spec.space, move.output.type.spec.space
    if source == target and is_plain(move):
        move.output.replace_all_uses_with(move.input)
        return False
    if source not in TileMoveOp.sources[target]:
        moved = moves.bring(move.input, TileMoveOp.sources[target][0], move.operation)
        if moved is None:
            raise _unreachable(move.operation, 0, target, None)
        move.operation.operands[0] = moved
    moves.offer(move)
    return True


def _unreachable(op: Any, number: int, space: str, asked_by: Any | None) -> MxError:
    value = op.operands[number]
    slots = SLOTS.get(op.name)
    name = slots[number].name if slots else f"operand #{number}"
    found = value.type.spec.space
    notes = [at(value, "note", f"the tile in {found} comes from here")]
    if asked_by is not None:
        notes.append(at(asked_by, "note", f"'{asked_by.name}' needs it in {space}"))
    remedy = "an accumulator starts as a matmul or mx.tile_create" if space == "acc" else "move it from mat instead"
    return error_at(
        op,
        f"'{op.name}' op needs {name} in {space}, but it lies in {found}, from which no way leads there; {remedy}",
        tuple(notes),
    )


def run(root: Any, options: NoOptions) -> None:
    """Decide the memory spaces of the kernels under `root` and of what exchanges tiles with them, in place.

    Raises:
        MxError: an operation that the rules do not cover holds a tile without memory space; a tile is needed where no
            moves bring it; two places that must agree are declared in different memories; a
            function is marked as no kind of kernel.
    """
    with root.context:
        program = TileProgram(root)
        for function in program.functions.values():
            _check_signature(function)
        for operation in program.operations:
            _check(operation)
        spaces = Spaces(program)
        _decide(program, spaces)
        _place_moves(program, spaces)


PASS = register_pass(
    Pass(
        name="mx-infer-memory-space",
        summary="Decide the memory spaces of tiles in kernels and move tiles to where they are needed",
        run=run,
        requires="casts give their results in vec (after mx-legalize-cast); scales are loaded to mat",
        leaves="every tile in a kernel in a memory that is decided, every operand in the one that it is needed in",
    )
)
