"""Writes straight-line code of the random programs of `tile_programs`, a line for each operation."""

from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field

from hypothesis import strategies as st
from tile_program_sizes import AXES, CONTENTS, ELEMENTS, LAYOUTS, SPACES

STRAIGHT = ("matmul", "store", "load", "move", "create", "select", "unit", "note")

# Operations that give a unit, given one, and the constant they take.
_UNITS = (("remsi", 2), ("minsi", 1), ("maxsi", 0), ("divsi", 1))


@dataclass
class Scope:
    """What code can use at a place: tiles by sort, `a mat` for those of sort a in mat; index values; the output tensor.

    A unit is an index value of 0 or 1, a count is any small one. Offsets are index values by axis, of the first or the
    second tile along it.
    """

    tiles: dict = field(default_factory=lambda: defaultdict(list))
    units: list = field(default_factory=list)
    counts: list = field(default_factory=lambda: ["%sel"])
    offsets: dict = field(default_factory=lambda: defaultdict(list))
    out: str = "%out"

    def inner(self):
        """Return the scope of a region before its carried values: it sees all tiles but the accumulators."""
        tiles = {sort: list(names) for sort, names in self.tiles.items() if sort != "acc"}
        offsets = {axis: list(names) for axis, names in self.offsets.items()}
        copies = defaultdict(list, tiles), list(self.units), list(self.counts), defaultdict(list, offsets)
        return Scope(*copies)


class Writer:
    """Draws code. Each method `step_...` draws one step and appends its lines."""

    def __init__(self, draw, sizes, decided):
        self.draw = draw
        self.sizes = sizes
        self.decided = decided
        self.tensors = []
        self.aliases = {"!out": sizes.tensor_type("acc")}
        self.lines = []
        self.level = 0
        self.names = 0
        self.notes = False

    def one_of(self, choices):
        return self.draw(st.sampled_from(list(choices)))

    def flag(self):
        return self.draw(st.booleans())

    # Text.

    def emit(self, text):
        self.lines.append("  " * (self.level + 1) + text)

    def fresh(self):
        self.names += 1
        return f"%v{self.names}"

    def define(self, text):
        name = self.fresh()
        self.emit(f"{name} = {text}")
        return name

    @contextmanager
    def region(self, head):
        self.emit(head)
        self.level += 1
        yield
        self.level -= 1

    def type(self, sort, space=None, content=None):
        """Return the type of a sort of tile as an alias such as !a, !a_mat, !a_f4_vec.

        Without a space it lies where a matmul takes it. No tile lies anywhere in programs without decided spaces.
        """
        space = (space or SPACES[sort]) if self.decided else None
        alias = "_".join(["!" + sort, *filter(None, [content, space if space != SPACES[sort] else None])])
        shape, valid = self.sizes.tile(sort)
        parts = ["x".join(map(str, (*shape, CONTENTS.get(content, ELEMENTS[sort]))))]
        parts += [space] if space else []
        parts += [] if valid == shape else ["valid = " + "x".join("?" if e is None else str(e) for e in valid)]
        self.aliases[alias] = f"!mx.tile<{', '.join(parts)}>"
        return alias

    def tensor(self, name):
        """Return a global tensor, which all functions take then, and its type."""
        if name not in self.tensors:
            self.tensors.append(name)
        return f"%{name}", self.sizes.tensor_type(name)

    # Values.

    def offset(self, scope, axis):
        """Return where along an axis the first or the second tile starts."""
        if axis == "1":
            return "0"
        along = scope.offsets["k" if axis == "g" else axis]
        choice = self.one_of([0, 1, *scope.units, *along])
        if choice in (0, 1):
            return str(choice * self.sizes.extent(axis))
        if axis == "g" and (choice in along or self.flag()):
            depth = choice if choice in along else self.times(choice, self.sizes.depth)
            return self.define(f"arith.floordivsi {depth}, %c32 : index")
        return choice if choice in along else self.times(choice, self.sizes.extent(axis))

    def times(self, unit, extent):
        return self.define(f"arith.muli {unit}, %c{extent} : index")

    def condition(self, scope):
        value = self.one_of([*scope.counts, *scope.units])
        return self.define(f"arith.cmpi {self.one_of(['eq', 'slt'])}, {value}, %c{self.one_of([1, 2])} : index")

    def load(self, scope, sort, space, content=None):
        """Load a tile from a global tensor; scales may come from bytes that are viewed as scales."""
        if sort in LAYOUTS and self.flag():
            source, type_ = self.view(sort), self.sizes.tensor_type(sort)
        else:
            source, type_ = self.tensor(sort if content is None else f"{sort}_{content}")
        offsets = ", ".join(self.offset(scope, axis) for axis in AXES[sort])
        shape, valid = self.sizes.tile(sort)
        listed = "" if valid == shape else ", ".join("%valid" if e is None else str(e) for e in valid)
        target = f' {{target = "{space}"}}' if self.decided or sort in LAYOUTS else ""
        window = ", ".join(map(str, shape))
        result = self.type(sort, space, content)
        return self.define(f"mx.tile_load {source}[{offsets}] [{window}] [{listed}]{target} : {type_} -> {result}")

    def view(self, sort):
        source, type_ = self.tensor(f"{sort}_nd")
        shape = ", ".join(map(str, self.sizes.tensor(sort)))
        return self.define(f"mx.tensor_view {source} [{shape}] : {type_} -> {self.sizes.tensor_type(sort)}")

    def move(self, sort, tile, source, target):
        if not self.decided:
            return tile
        return self.define(f"mx.tile_move {tile} : {self.type(sort, source)} -> {self.type(sort, target)}")

    def from_mat(self, scope, sort, tile):
        """Put a tile that lies in mat where a matmul takes its sort."""
        scope.tiles[f"{sort} mat"].append(tile)
        scope.tiles[sort].append(self.move(sort, tile, "mat", SPACES[sort]))

    def from_vec(self, scope, sort, tile):
        self.from_mat(scope, sort, self.move(sort, tile, "vec", "mat"))

    def quantize(self, scope, data, scale):
        """Get data and scales from floats."""
        floats = self.load(scope, data, "vec", "f32")
        names = self.fresh(), self.fresh()
        types = self.type(data, "vec", "f32"), self.type(data, "vec"), self.type(scale, "vec")
        layout = f'{{layout = "{LAYOUTS[scale]}"}}'
        self.emit(f"{names[0]}, {names[1]} = mx.quant_mx {floats} {layout} : {types[0]} -> ({types[1]}, {types[2]})")
        self.from_vec(scope, data, names[0])
        self.from_vec(scope, scale, names[1])

    def cast(self, scope, sort):
        """Get data from FP4."""
        narrow = self.load(scope, sort, "vec", "f4")
        types = self.type(sort, "vec", "f4"), self.type(sort, "vec")
        self.from_vec(scope, sort, self.define(f"mx.tile_cast {narrow} : {types[0]} -> {types[1]}"))

    def pick(self, scope, sort):
        """Return a tile of a sort, a new one if there is none and now and then."""
        if not scope.tiles[sort] or self.one_of([False, False, False, True]):
            self.get(scope, sort)
        return self.one_of(reversed(scope.tiles[sort]))

    def get(self, scope, sort):
        """Bring a tile of a sort that is loaded into the scope."""
        ways = {"a": ["load", "quantize", "cast"], "b": ["load", "quantize", "cast"]}
        way = self.one_of(ways.get(sort, ["load"]))
        if way == "load":
            self.from_mat(scope, sort, self.load(scope, sort, "mat"))
        elif way == "cast":
            self.cast(scope, sort)
        else:
            self.quantize(scope, sort, sort + "s")

    def take(self, scope, sort):
        """Return a tile to carry; an accumulator leaves the scope."""
        if sort != "acc":
            return self.pick(scope, sort)
        if not scope.tiles[sort]:
            self.step_matmul(scope)
        return scope.tiles[sort].pop(self.draw(st.integers(0, len(scope.tiles[sort]) - 1)))

    # Steps without control flow.

    def step_matmul(self, scope):
        form = self.one_of(["", "_acc", "_bias"] if scope.tiles["acc"] else ["", "_bias"])
        operands = [(self.pick(scope, sort), self.type(sort)) for sort in ("a", "as", "b", "bs")]
        if form == "_acc":
            operands.insert(0, (self.take(scope, "acc"), self.type("acc")))
        if form == "_bias":
            operands.append((self.pick(scope, "bias"), self.type("bias")))
        names, types = (", ".join(column) for column in zip(*operands, strict=True))
        scope.tiles["acc"].append(self.define(f"mx.matmul_mx{form} {names} : {types} -> {self.type('acc')}"))

    def step_store(self, scope):
        if not scope.tiles["acc"]:
            self.step_matmul(scope)
        tile, type_ = self.one_of(reversed(scope.tiles["acc"])), self.type("acc")
        if self.decided and self.flag():
            tile, type_ = self.move("acc", tile, "acc", "vec"), self.type("acc", "vec")
        offsets = ", ".join(self.offset(scope, axis) for axis in AXES["acc"])
        scope.out = self.define(f"mx.tile_store {tile}, {scope.out}[{offsets}] : {type_}, !out -> !out")

    def step_load(self, scope):
        self.get(scope, self.one_of(["a", "as", "b", "bs", "bias"]))

    def step_move(self, scope):
        """Move a tile from mat once more: another buffer with the same content."""
        sort = self.one_of(["a", "as", "b", "bs"])
        if scope.tiles[f"{sort} mat"]:
            tile = self.one_of(scope.tiles[f"{sort} mat"])
            scope.tiles[sort].append(self.move(sort, tile, "mat", SPACES[sort]))
        else:
            self.get(scope, sort)

    def step_create(self, scope):
        if self.sizes.valid_rows is not None:
            scope.tiles["acc"].append(self.define(f"mx.tile_create : () -> {self.type('acc')}"))

    def step_select(self, scope):
        """One of two tiles, or two names for one."""
        sort = self.one_of(["a", "as", "b", "bs"])
        first, second = self.pick(scope, sort), self.pick(scope, sort)
        condition = self.condition(scope)
        scope.tiles[sort].append(self.define(f"arith.select {condition}, {first}, {second} : {self.type(sort)}"))

    def step_unit(self, scope):
        """A unit more: the number of the block, or what arithmetic makes of another."""
        op, bound = self.one_of([("block_idx", 0), *(_UNITS if scope.units else [])])
        if op == "block_idx":
            scope.units.append(self.define("mx.block_idx : () -> index"))
        else:
            scope.units.append(self.define(f"arith.{op} {self.one_of(scope.units)}, %c{bound} : index"))

    def step_note(self, scope):
        """Call a function that has nothing to do with tiles."""
        self.emit(f"func.call @note({self.one_of(scope.counts)}) : (index) -> ()")
        self.notes = True
