"""Which memory each tile of a program should lie in, where that is not decided yet.

Values that control flow, calls or arith.select hand on as one another, with nothing in between, form a group and get
one memory. Producers, which are the operations that make tiles, are outside: a tile on its way into a group can be
moved. The rules, the first that applies:

| tile                               | memory                                                                   |
|------------------------------------|--------------------------------------------------------------------------|
| result of a matmul                 | acc                                                                      |
| result of a cast or a quantization | vec                                                                      |
| loaded with a target               | the target                                                               |
| loaded scales                      | mat                                                                      |
| loaded                             | vec if that is what is asked for, else mat                               |
| created                            | what is asked for, but mat for a scale space; vec if nothing is          |
| a group                            | that of a member which is decided; else what is asked for; else where    |
|                                    | its producers make their tiles, or mat if they differ, or vec without any |

What is asked for is acc, if any user needs the tile there, since no way leads there; else the one memory that all users
need it in, if it can also be stored from there where it is; else mat, from where a way leads to all of them.
"""

from dataclasses import dataclass, field
from typing import Any

from mx_dialect._mlir import ir
from mx_dialect.analysis.value_flow import CARRIERS, Boundary
from mx_dialect.diagnostics import MxError, at, error_at
from mx_dialect.tile_memory_ops import TileLoadOp
from mx_dialect.tile_ops import TileMoveOp
from mx_dialect.tile_slots import RESULT_SPACES, SLOTS, STORABLE
from mx_dialect.tile_spec import SCALE_SPACES, UNDECIDED
from mx_dialect.tile_types import TileType, layout_of
from mx_dialect.transforms.tile_moves import is_plain
from mx_dialect.transforms.tile_program import TileOperation, TileProgram, is_undecided
from mx_dialect.walk import defined_values


@dataclass
class _Wishes:
    """What the users of a tile ask for: the first operation to ask for each memory, and whether the tile is stored."""

    users: dict[str, Any] = field(default_factory=lambda: {})
    is_stored: bool = False

    def ask(self, space: str, user: Any) -> None:
        self.users.setdefault(space, user)

    def space(self) -> str | None:
        """Return what is asked for, None if nothing is."""
        if "acc" in self.users:
            return "acc"
        if len(self.users) != 1:
            return "mat" if self.users else None
        (space,) = self.users
        return "mat" if self.is_stored and space not in STORABLE else space


@dataclass
class _Group:
    """Values and function boundaries that share a memory, and the tiles that come in."""

    members: list[Any]
    incoming: list[Any] = field(default_factory=lambda: [])
    wishes: _Wishes = field(default_factory=_Wishes)
    space: str = UNDECIDED


class Spaces:
    """The memories of the tiles of a program. The program is not changed."""

    def __init__(self, program: TileProgram):
        self._program = program
        self._groups: dict[Any, _Group] = {}
        self._wishes: dict[Any, _Wishes] = {}
        self._decided: dict[Any, str] = {}
        self._form_groups()
        for op in program.operations:
            self._note_uses(op)
        for group in {id(group): group for group in self._groups.values()}.values():
            self._decide_group(group)
        self._note_incoming()
        for op in program.operations:
            for value in op.op.results:
                if is_undecided(value.type) and value not in self._groups:
                    self._decided[value] = self._produced(value)

    def of(self, place: Any) -> str:
        """Return the memory of a tile: a value, or an argument or result of a function."""
        group = self._groups.get(place)
        if group is not None:
            return group.space
        return self._decided.get(place) or self._program.type_of(place).spec.space

    def asked_by(self, place: Any) -> Any | None:
        """Return an operation for whose sake the group of a place lies where it does, None if there is none."""
        group = self._groups.get(place)
        return None if group is None else group.wishes.users.get(group.space)

    def _form_groups(self) -> None:
        for function in self._program.functions.values():
            for boundary, type_ in function.boundaries():
                if is_undecided(type_):
                    self._group(boundary)
        for op in self._program.operations:
            for value in defined_values(op.op):
                if is_undecided(value.type) and _is_handed_on(value):
                    self._group(value)
            for one, other in op.ties():
                if self._must_be_joined(one, other):
                    self._join(one, other)
            for number, target in op.handed_on().items():
                value = op.op.operands[number]
                if _is_handed_on(value) and is_undecided(value.type) and is_undecided(self._program.type_of(target)):
                    self._join(value, target)

    def _must_be_joined(self, one: Any, other: Any) -> bool:
        """Tell whether the types of two places have to become equal: only those of a submit and its callee differ."""
        types = [self._program.type_of(place) for place in (one, other)]
        return all(isinstance(t, TileType) for t in types) and (is_undecided(types[0]) or types[0] != types[1])

    def _group(self, place: Any) -> _Group:
        if place not in self._groups:
            self._groups[place] = _Group([place])
        return self._groups[place]

    def _join(self, one: Any, other: Any) -> None:
        smaller, larger = sorted((self._group(one), self._group(other)), key=lambda group: len(group.members))
        if smaller is larger:
            return
        larger.members += smaller.members
        for member in smaller.members:
            self._groups[member] = larger

    def _note_uses(self, operation: TileOperation) -> None:
        """Note what an operation asks of its operands, but for those that it hands on to tiles not decided yet."""
        op = operation.op
        for number, space in asked(op).items():
            self._wishes_for(op.operands[number]).ask(space, op)
        if op.name == "mx.tile_store":
            self._wishes_for(op.operands[0]).is_stored = True
        for number, target in operation.handed_on().items():
            value, type_ = op.operands[number], self._program.type_of(target)
            if not isinstance(type_, TileType):
                continue
            if target not in self._groups:
                self._wishes_for(value).ask(type_.spec.space, op)
            elif self._groups.get(value) is not self._groups[target]:
                self._groups[target].incoming.append(value)

    def _wishes_for(self, value: Any) -> _Wishes:
        group = self._groups.get(value)
        return self._wishes.setdefault(value, _Wishes()) if group is None else group.wishes

    def _decide_group(self, group: _Group) -> None:
        decided: dict[str, Any] = {}
        for member in group.members:
            space = self._program.type_of(member).spec.space
            if space != UNDECIDED:
                decided.setdefault(space, member)
        if len(decided) > 1:
            raise self._conflict(*list(decided.items())[:2])
        group.space = next(iter(decided), None) or group.wishes.space() or _common_home(group.incoming)

    def _note_incoming(self) -> None:
        """Let the producers that groups are given tiles by know where these have to go."""
        for group in self._groups.values():
            for value in group.incoming:
                self._wishes_for(value).ask(group.space, None)
            group.incoming = []

    def _produced(self, value: Any) -> str:
        """Return the memory of a tile that an operation makes."""
        asked_for = self._wishes_for(value).space()
        if _may_load_to_vec(value):
            return "vec" if asked_for == "vec" else "mat"
        home = _home(value)
        if home is not None:
            return home
        return "mat" if asked_for in SCALE_SPACES else asked_for or "vec"

    def _conflict(self, one: tuple[str, Any], other: tuple[str, Any]) -> MxError:
        (space, place), (other_space, other_place) = one, other
        spelled = self._spelled(place)
        note = at(self._location(place), "note", f"{spelled} lies in {space}")
        return error_at(
            self._location(other_place),
            f"{self._spelled(other_place)} lies in {other_space}, but has to agree with {spelled}, which lies in"
            f" {space}; declare both in one memory",
            (note,),
        )

    def _location(self, place: Any) -> Any:
        return self._program.functions[place.function].op.location if isinstance(place, Boundary) else place.location

    def _spelled(self, place: Any) -> str:
        if isinstance(place, Boundary):
            return f"{place.kind} #{place.number} of @{self._program.functions[place.function].name}"
        if isinstance(place, ir.BlockArgument):
            return f"block argument #{place.arg_number}"
        return f"result #{place.result_number} of '{place.owner.name}'"


def asked(op: Any) -> dict[int, str]:
    """Return the memories that an operation itself asks for its operands, by their numbers."""
    if op.name == "mx.tile_move":
        move = op.opview
        target = move.output.type.spec.space
        return {0: target if is_plain(move) else TileMoveOp.sources[target][0]}
    return {number: slot.space for number, slot in enumerate(SLOTS.get(op.name, ()))}


def _is_handed_on(value: Any) -> bool:
    """Tell whether control flow, a call or a select is where a value comes from, rather than a producer."""
    return isinstance(value, ir.BlockArgument) or value.owner.name in CARRIERS


def _may_load_to_vec(value: Any) -> bool:
    load = value.owner.opview
    return isinstance(load, TileLoadOp) and load.target is None and layout_of(load.source.type) is None


def _home(value: Any) -> str | None:
    """Return where a producer makes a tile without being asked; None where it makes tiles in any memory."""
    if not is_undecided(value.type):
        return value.type.spec.space
    producer = value.owner.opview
    if isinstance(producer, TileLoadOp):
        return producer.target or "mat"
    return RESULT_SPACES.get(value.owner.name)


def _common_home(values: list[Any]) -> str:
    homes = {home for value in values if (home := _home(value)) is not None}
    if len(homes) == 1:
        return homes.pop()
    return "mat" if homes else "vec"
