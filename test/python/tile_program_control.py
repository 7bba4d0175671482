"""Writes control flow, functions and whole modules of the random programs of `tile_programs`."""

import re

from hypothesis import strategies as st
from tile_program_sizes import SPACES
from tile_program_writer import Scope, Writer

CONTROL = ("for", "if", "while", "switch", "region", "call")
COMPILED = tuple(step for step in CONTROL if step != "switch")
"""Those that compile: MLIR's bufferization does not see that a callee writes into an argument that a switch hands on."""

# How many steps a program has at most.
STEPS = 50
# How many times as often as others a step is drawn.
WEIGHTS = {"matmul": 5}

MAX_SELECTOR = 3
"""The largest argument %sel of a program, which decides branches and counts iterations."""

_NOTE = """func.func private @note(%i: index) {
  return
}"""


class ProgramWriter(Writer):
    """Draws a program. `$PARAMETERS` and the like stand for the global tensors, which are known in the end."""

    def __init__(self, draw, sizes, decided, steps, length, depth):
        super().__init__(draw, sizes, decided)
        self.steps = steps
        self.length = length
        self.depth = depth
        self.left = STEPS
        self.in_helper = False
        self.helpers = []
        self.functions = []

    # Steps with control flow: every region carries the output, and tiles.

    def body(self, scope):
        """Draw the steps of a block of code."""
        level = self.level + self.in_helper
        allowed = [step for step in self.steps if step not in CONTROL or level < self.depth]
        if self.in_helper:
            allowed = [step for step in allowed if step != "call"]
        allowed = [step for step in allowed for _ in range(WEIGHTS.get(step, 1))]
        length = self.length // (level + 1)
        steps = self.draw(st.lists(st.sampled_from(allowed), max_size=min(length, self.left)))
        self.left -= len(steps)
        for step in steps:
            getattr(self, f"step_{step}")(scope)

    def carried(self, scope):
        """Draw what control flow carries: the sorts of tiles, and the values, the output first."""
        sorts, values = [], [scope.out]
        for _ in range(3):
            known = [sort for sort in SPACES if scope.tiles[sort]]
            if not known or not self.flag():
                break
            sorts.append(self.one_of(known))
            values.append(self.take(scope, sorts[-1]))
        return sorts, values

    def types(self, sorts):
        return ", ".join(["!out", *map(self.type, sorts)])

    def enter(self, scope, sorts, names):
        """Return the scope of a region in which the carried values have these names."""
        inner = scope.inner()
        inner.out = names[0]
        for sort, name in zip(sorts, names[1:], strict=True):
            inner.tiles[sort].append(name)
        return inner

    def leave(self, scope, sorts, yields="scf.yield"):
        values = [scope.out, *(self.take(scope, sort) for sort in sorts)]
        self.emit(f"{yields} {', '.join(values)} : {self.types(sorts)}")

    def resume(self, scope, sorts, result, first=0):
        """Take over what control flow gives, from one of its results on."""
        scope.out = f"{result}#{first}"
        for number, sort in enumerate(sorts, first + 1):
            scope.tiles[sort].append(f"{result}#{number}")

    def branch(self, head, scope, sorts, values):
        """Write a region that is entered with the carried values as they are."""
        with self.region(head):
            inner = self.enter(scope, sorts, values)
            self.body(inner)
            self.leave(inner, sorts)

    def step_if(self, scope):
        condition = self.condition(scope)
        (sorts, values), result = self.carried(scope), self.fresh()
        self.branch(f"{result}:{len(values)} = scf.if {condition} -> ({self.types(sorts)}) {{", scope, sorts, values)
        self.branch("} else {", scope, sorts, values)
        self.emit("}")
        self.resume(scope, sorts, result)

    def step_switch(self, scope):
        (sorts, values), result = self.carried(scope), self.fresh()
        selector = self.one_of(scope.counts)
        self.emit(f"{result}:{len(values)} = scf.index_switch {selector} -> {self.types(sorts)}")
        for label in [*(f"case {n}" for n in range(self.one_of([1, 2, 0]))), "default"]:
            self.branch(f"{label} {{", scope, sorts, values)
            self.emit("}")
        self.resume(scope, sorts, result)

    def step_region(self, scope):
        (sorts, values), result = self.carried(scope), self.fresh()
        head = f"{result}:{len(values)} = scf.execute_region -> ({self.types(sorts)}) {{"
        self.branch(head, scope, sorts, values)
        self.emit("}")
        self.resume(scope, sorts, result)

    def step_for(self, scope):
        """A loop over units, over offsets along an axis, or of a number of iterations that is not known."""
        kind = self.one_of(["unit", "count", "m", "n", "k"])
        extent = self.sizes.extent(kind) if len(kind) == 1 else 1
        end = "%sel" if kind == "count" else f"%c{extent * self.one_of([2, 1])}"
        (sorts, values), result, variable = self.carried(scope), self.fresh(), self.fresh()
        names = [self.fresh() for _ in values]
        pairs = ", ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True))
        bounds = f"{variable} = %c0 to {end} step %c{extent}"
        types = self.types(sorts)
        with self.region(f"{result}:{len(values)} = scf.for {bounds} iter_args({pairs}) -> ({types}) {{"):
            inner = self.enter(scope, sorts, names)
            known = {"unit": inner.units, "count": inner.counts}.get(kind)
            (inner.offsets[kind] if known is None else known).append(variable)
            self.body(inner)
            self.leave(inner, sorts)
        self.emit("}")
        self.resume(scope, sorts, result)

    def step_while(self, scope):
        """A loop of as many iterations as a count says, which computes before its condition, too."""
        (sorts, values), result, bound = self.carried(scope), self.fresh(), self.one_of(scope.counts)
        before, after = ([self.fresh() for _ in ["", *values]] for _ in range(2))
        types = f"index, {self.types(sorts)}"
        pairs = ", ".join(f"{name} = {value}" for name, value in zip(before, ["%c0", *values], strict=True))
        with self.region(f"{result}:{len(before)} = scf.while ({pairs}) : ({types}) -> ({types}) {{"):
            inner = self.enter(scope, sorts, before[1:])
            if self.flag():
                self.body(inner)
            more = self.define(f"arith.cmpi slt, {before[0]}, {bound} : index")
            outs = ", ".join([before[0], inner.out, *(self.take(inner, sort) for sort in sorts)])
            self.emit(f"scf.condition({more}) {outs} : {types}")
        with self.region("} do {"):
            heads = zip(after, types.split(", "), strict=True)
            self.emit(f"^bb0({', '.join(f'{name}: {type_}' for name, type_ in heads)}):")
            inner = self.enter(scope, sorts, after[1:])
            inner.counts.append(after[0])
            self.body(inner)
            outs = [self.define(f"arith.addi {after[0]}, %c1 : index"), inner.out]
            outs += [self.take(inner, sort) for sort in sorts]
            self.emit(f"scf.yield {', '.join(outs)} : {types}")
        self.emit("}")
        scope.counts.append(f"{result}#0")
        self.resume(scope, sorts, result, 1)

    # Functions: all take the global tensors, the output, a count %sel, a unit %unit, and maybe %valid.

    def scalars(self):
        return ["%sel", "%unit", *(["%valid"] if self.sizes.valid_rows is None else [])]

    def function(self, name, sorts, kind):
        """Write a kernel function of the output and tiles of these sorts; return the sorts of tiles it gives back."""
        tiles = [f"%arg{number}" for number, _ in enumerate(sorts)]
        scope = self.enter(Scope(units=["%unit"]), sorts, ["%out", *tiles])
        self.body(scope)
        if not self.in_helper:
            self.step_store(scope)
        returned = [sort for sort in sorts if self.flag()]
        self.leave(scope, returned, "return")
        parameters = ["%out: !out", *(f"{scalar}: index" for scalar in self.scalars())]
        parameters += [f"{tile}: {self.type(sort)}" for tile, sort in zip(tiles, sorts, strict=True)]
        head = f"func.func private @{name}($PARAMETERS{', '.join(parameters)}) -> ({self.types(returned)})"
        self.functions.append(closed(f'{head} attributes {{mx.kernel = "{kind}"}}', self.lines))
        return returned

    def helper(self):
        """Write another kernel that takes tiles, and is nested as deeply as a region."""
        sorts = self.draw(st.lists(st.sampled_from(["a", "as", "b", "bs", "acc"]), max_size=4))
        name = f"helper{len(self.helpers)}"
        outer = self.lines, self.level
        self.lines, self.level, self.in_helper = [], 0, True
        self.helpers.append((name, sorts, self.function(name, sorts, "incore")))
        self.lines, self.level = outer
        self.in_helper = False

    def step_call(self, scope):
        """Call one of at most two other kernels, which get tiles and give some back."""
        if len(self.helpers) < 2 and (not self.helpers or self.flag()):
            self.helper()
            name, sorts, returned = self.helpers[-1]
        else:
            name, sorts, returned = self.one_of(self.helpers)
        scalars = [self.one_of(scope.counts), self.one_of(["%c0", "%c1", *scope.units]), *self.scalars()[2:]]
        values = [scope.out, *scalars, *(self.take(scope, sort) for sort in sorts)]
        types = ["!out", *["index"] * len(scalars), *map(self.type, sorts)]
        result = self.fresh()
        call = f"func.call @{name}($ARGUMENTS{', '.join(values)}) : ($TYPES{', '.join(types)})"
        self.emit(f"{result}:{1 + len(returned)} = {call} -> ({self.types(returned)})")
        self.resume(scope, returned, result)

    def main(self):
        """Write the function that launches the kernel, once or twice, by calls or submits."""
        self.lines = []
        scope, tasks = Scope(), []
        for _ in range(self.one_of([1, 2])):
            operands = [scope.out, "%sel", self.one_of(["%c0", "%c1"]), *self.scalars()[2:]]
            types = ["!out", *["index"] * (len(operands) - 1)]
            result, arguments = self.fresh(), f"($ARGUMENTS{', '.join(operands)})"
            if self.flag():
                tail, tail_types = self.launch(scope, tasks)
                types = ", ".join([*types, *tail_types])
                self.emit(f"{result}:2 = mx.submit @kernel{arguments}{tail} : $TYPES{types} -> (!out, !mx.task)")
                tasks = [f"{result}#1"]
            else:
                self.emit(f"{result}:1 = func.call @kernel{arguments} : ($TYPES{', '.join(types)}) -> !out")
            scope.out = f"{result}#0"
        self.emit(f"return {scope.out} : !out")
        parameters = ["%out: !out", "%sel: index", *(f"{name}: index" for name in self.scalars()[2:])]
        self.functions.append(closed(f"func.func @main($PARAMETERS{', '.join(parameters)}) -> !out", self.lines))

    def launch(self, scope, tasks):
        """Return how a submit waits, on how many cores it runs, and whether; and the types of these operands."""
        text, types = (f" after({tasks[0]})", ["!mx.task"]) if tasks else ("", [])
        if any("scf.execute_region" in function for function in self.functions):
            # On the CPU only a result that is seen to be an argument with stores can come from many blocks, or none.
            return text, types
        cores = self.one_of(["", "%c1", "%c2"])
        if cores:
            text, types = f"{text} cores({cores})", [*types, "index"]
        if self.flag():
            text, types = f"{text} if({self.condition(scope)})", [*types, "i1"]
        return text, types

    def module(self):
        """Draw the whole program."""
        self.function("kernel", [], self.one_of(["aic", "incore", "aiv"]))
        self.main()
        text = "\n".join([*([_NOTE] if self.notes else []), *self.functions])
        types = [self.sizes.tensor_type(name) for name in self.tensors]
        parameters = [f"%{name}: {type_}" for name, type_ in zip(self.tensors, types, strict=True)]
        marks = {"PARAMETERS": parameters, "ARGUMENTS": [f"%{name}" for name in self.tensors], "TYPES": types}
        for mark, entries in marks.items():
            text = text.replace(f"${mark}", "".join(f"{entry}, " for entry in entries))
        used = {alias: type_ for alias, type_ in self.aliases.items() if re.search(rf"{alias}\b", text)}
        return "".join(f"{alias} = {type_}\n" for alias, type_ in used.items()) + text


def closed(head, lines):
    """Return a function with the constants that its lines use."""
    used = sorted({int(n) for n in re.findall(r"%c(\d+)\b", "\n".join(lines))})
    constants = [f"  %c{n} = arith.constant {n} : index" for n in used]
    return "\n".join([f"{head} {{", *constants, *lines, "}"])
