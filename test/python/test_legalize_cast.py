"""mx-legalize-cast over random programs of loads, moves and casts: casts run from vec to vec, and nothing else changes."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tile_checks import check_places, space, walk, without_moves

import mx_dialect

SHAPE = "16x64x"
LAYOUT = {None: "", "vec": ", vec", "mat": ", mat", "left": ", left", "right": ", right"}
TARGETS = [None, "mat", "vec"]
MOVES = {None: ["vec", "mat"], "mat": ["vec"], "vec": ["mat"]}


def tile(element, where):
    return f"!mx.tile<{SHAPE}{element}{LAYOUT[where]}>"


class Writer:
    """Writes a kernel: `narrow` and `wide` are the tiles of FP4 and FP8 that can be used, with their memories."""

    def __init__(self, draw):
        self.draw = draw
        self.lines = []
        self.names = 0
        self.narrow = [("%given", None)]
        self.wide = []

    def one_of(self, choices):
        return self.draw(st.sampled_from(choices))

    def define(self, text):
        self.names += 1
        self.lines.append(f"%v{self.names} = {text}")
        return f"%v{self.names}"

    def move(self, name, source, target):
        return self.define(f"mx.tile_move {name} : {tile('f4E2M1FN', source)} -> {tile('f4E2M1FN', target)}")

    def load(self):
        target = self.one_of(TARGETS)
        attribute = f'{{target = "{target}"}} ' if target else ""
        text = f"mx.tile_load %w[0, 0] [16, 64] {attribute}: tensor<{SHAPE}f4E2M1FN> -> {tile('f4E2M1FN', target)}"
        self.narrow.append((self.define(text), target))

    def move_narrow(self):
        name, source = self.one_of(self.narrow)
        target = self.one_of(MOVES[source])
        self.narrow.append((self.move(name, source, target), target))

    def cast(self):
        name, where = self.one_of(self.narrow)
        if where != "vec" and self.draw(st.booleans()):
            # What only the cast uses may lie where FP4 is not allowed otherwise.
            target = self.one_of(["left", "right"])
            name, where = self.move(name, where, target), target
        declared = self.one_of(list(LAYOUT))
        text = f"mx.tile_cast {name} : {tile('f4E2M1FN', where)} -> {tile('f8E4M3FN', declared)}"
        self.wide.append((self.define(text), declared))

    def select(self):
        name, where = self.one_of(self.narrow)
        other = self.one_of([n for n, w in self.narrow if w == where])
        self.narrow.append((self.define(f"arith.select %p, {name}, {other} : {tile('f4E2M1FN', where)}"), where))

    def store(self):
        tensor = f"tensor<{SHAPE}f4E2M1FN>"
        name, where = self.one_of(self.narrow)
        self.define(f"mx.tile_store {name}, %w[0, 0] : {tile('f4E2M1FN', where)}, {tensor} -> {tensor}")

    def use(self):
        ready = [(name, where) for name, where in self.wide if where != "right"]
        if not ready:
            return
        name, where = self.one_of(ready)
        if where == "left" or self.draw(st.booleans()):
            types = f"{tile('f8E4M3FN', where)}, !as, !b, !bs -> !mx.tile<16x32xf32>"
            self.define(f"mx.matmul_mx {name}, %as, %b, %bs : {types}")
        else:
            tensor = f"tensor<{SHAPE}f8E4M3FN>"
            self.define(f"mx.tile_store {name}, %out[0, 0] : {tile('f8E4M3FN', where)}, {tensor} -> {tensor}")

    def pass_on(self):
        ready = [name for name, where in self.wide if where is None]
        if ready:
            value, type_ = self.one_of(ready), tile("f8E4M3FN", None)
            head = (
                f"scf.if %p -> ({type_}) {{\nscf.yield {value} : {type_}\n}} else {{\nscf.yield {value} : {type_}\n}}"
            )
            self.wide.append((self.define(head), None))


STEPS = ["load", "move_narrow", "cast", "cast", "cast", "select", "store", "use", "use", "pass_on"]


@st.composite
def programs(draw):
    writer = Writer(draw)
    for step in draw(st.lists(st.sampled_from(STEPS), max_size=14)):
        getattr(writer, step)()
    lines = "\n  ".join(writer.lines)
    return f"""
!as = !mx.tile<16x2xf8E8M0FNU>
!b = !mx.tile<64x32xf8E4M3FN>
!bs = !mx.tile<2x32xf8E8M0FNU>
func.func @k(%p: i1, %given: {tile("f4E2M1FN", None)}, %w: tensor<{SHAPE}f4E2M1FN>, %out: tensor<{SHAPE}f8E4M3FN>,
             %as: !as, %b: !b, %bs: !bs) attributes {{mx.kernel = "incore"}} {{
  {lines}
  return
}}"""


@settings(max_examples=40)
@given(programs())
def test_casts_run_on_the_vector_unit(text):
    module = mx_dialect.parse(text)
    before = without_moves(module)
    mx_dialect.run_pipeline(module, "mx-legalize-cast")
    casts = [op for op in walk(module) if op.name == "mx.tile_cast"]
    assert all(space(op.operands[0]) == "vec" and space(op.results[0]) in ("vec", "undecided") for op in casts)
    once = mx_dialect.to_asm(module)
    mx_dialect.run_pipeline(module, "mx-legalize-cast")
    assert mx_dialect.to_asm(module) == once
    assert without_moves(module) == before
    mx_dialect.run_pipeline(module, "mx-infer-memory-space")
    check_places(module)
    assert without_moves(module) == before
