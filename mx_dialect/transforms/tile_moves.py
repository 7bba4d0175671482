"""Moving tiles to where their users need them, no more often than necessary."""

from dataclasses import replace
from typing import Any

from mx_dialect._mlir import ir
from mx_dialect.tile_ops import TileMoveOp, tile_move
from mx_dialect.tile_slots import way
from mx_dialect.tile_types import TileType


class Moves:
    """The moves of a program: at most one is made for a tile and a memory space in each block.

    A move serves what follows it in its block, never another block, so that none is taken out of a branch or a loop.
    Users of a block must be brought their tiles in program order.
    """

    def __init__(self) -> None:
        self._made: dict[tuple[Any, Any, str], Any] = {}

    def bring(self, value: Any, space: str, user: Any) -> Any | None:
        """Return a tile as it lies in a memory space, moved there before `user`; None if no way leads there."""
        path = way(value.type.spec.space, space)
        if path is None:
            return None
        for step in path:
            key = (user.block, value, step)
            if key not in self._made:
                self._made[key] = tile_move(value, step, loc=user.location, ip=ir.InsertionPoint(user))
            value = self._made[key]
        return value

    def offer(self, move: TileMoveOp) -> None:
        """Let a move that the program has serve the users that follow it."""
        if is_plain(move):
            spec = move.output.type.spec
            self._made.setdefault((move.operation.block, move.input, spec.space), move.output)


def is_plain(move: TileMoveOp) -> bool:
    """Tell whether a move changes nothing of its tile's type but the memory space."""
    result = move.output.type.spec
    return replace(move.input.type.spec, space=result.space) == result


def in_space(type_: TileType, space: str) -> TileType:
    """Return the type of a tile moved to a memory space."""
    return TileType.of(replace(type_.spec, space=space))


def uses(value: Any) -> list[tuple[Any, int]]:
    """Return the operations that use a value, each with the number of the operand."""
    return [(use.owner.operation, use.operand_number) for use in value.uses]
