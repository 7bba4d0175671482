"""Random index expressions, written as IR and computed by brute force, for tests of proofs about offsets.

A tree is a tuple of a kind and its parts:

    ("constant", number)                        ("operation", arith name, tree, tree, "arith" or "index")
    ("input", number of the input)              ("narrow", bits, arith name, tree, tree, "arith" or "index")
    ("affine", affine tree, tree, tree)         an affine tree: "constant", "operand" (0, 1) and "operation" likewise

`narrow` computes on integers of fewer bits, between casts.
"""

import itertools
from dataclasses import dataclass

ARITH = ("addi", "subi", "muli", "floordivsi", "divsi", "divui", "remsi", "minsi", "maxsi", "minui", "maxui")
_INDEX = {
    "addi": "add",
    "subi": "sub",
    "muli": "mul",
    "floordivsi": "floordivs",
    "divsi": "divs",
    "divui": "divu",
    "remsi": "rems",
    "minsi": "mins",
    "maxsi": "maxs",
    "minui": "minu",
    "maxui": "maxu",
}
_AFFINE = {"addi": "+", "muli": "*", "floordivsi": "floordiv", "ceildiv": "ceildiv", "mod": "mod"}
_DIVIDES = ("floordivsi", "divsi", "divui", "remsi", "ceildiv", "mod")


class Undefined(Exception):
    """An operation has no defined result or, in strict evaluation, leaves the range of its type."""


@dataclass(frozen=True)
class Inputs:
    """What the six inputs of an expression are: two loop variables, two parameters, the block's number and count.

    `loops` are start, end and step of an scf.for and an scf.forall, `calls` the arguments of each call.
    """

    loops: tuple
    calls: tuple

    def environments(self):
        """Yield all values of the six inputs."""
        for loops in itertools.product(*(range(*loop) for loop in self.loops)):
            for call in self.calls:
                for block, count in ((0, 1), (1, 3)):
                    yield (*loops, *call, block, count)


def random_inputs(rng):
    def loop():
        start, step = rng.choice([0, 0, 16, 32, 2, -16, 5, -128]), rng.choice([16, 32, 2, 48, 1, 8, 64])
        return (start, start + rng.randint(1, 4) * step, step)

    calls = tuple(tuple(rng.choice([0, 16, 32, 96, 1, 8, -16]) for _ in range(2)) for _ in range(rng.randint(1, 3)))
    return Inputs((loop(), loop()), calls)


def random_constant(rng):
    return ("constant", rng.choice([0, 1, 2, 3, 4, 8, 16, 16, 32, 48, 64, 128, -1, -16, rng.randint(-70, 70)]))


def random_tree(rng, depth=3):
    """Return a random tree of operations that nest up to `depth` deep."""
    kind = rng.randrange(10)
    if depth == 0 or kind == 0:
        return random_constant(rng) if rng.randrange(3) == 0 else ("input", rng.randrange(6))
    # Mostly one side is shallow, as offsets are.
    sides = [random_tree(rng, depth - 1), random_tree(rng, rng.choice([0, 0, depth - 1]))]
    if rng.randrange(4) == 0:
        sides.reverse()
    via = rng.choice(["arith", "index"])
    if kind <= 3:
        name, divisor = rng.choice(["muli", "floordivsi", "remsi", "divui"]), rng.choice([2, 3, 16, 32])
        return ("operation", name, sides[0], ("constant", divisor), via)
    if kind == 4:
        return ("affine", _random_affine(rng, 2), *sides)
    if kind == 5:
        return ("narrow", rng.choice([8, 16]), rng.choice(ARITH), *sides, via)
    return ("operation", rng.choice(ARITH), *sides, via)


def _random_affine(rng, depth):
    """Return a random affine expression of two operands; what it multiplies and divides by is constant."""
    if depth == 0 or rng.randrange(5) == 0:
        return random_constant(rng) if rng.randrange(3) == 0 else ("operand", rng.randrange(2))
    inner = _random_affine(rng, depth - 1)
    if rng.randrange(2):
        return ("operation", "addi", inner, _random_affine(rng, depth - 1))
    by = ("constant", rng.choice([1, 2, 3, 4, 16, 32]))
    return ("operation", rng.choice(["muli", "floordivsi", "ceildiv", "mod"]), inner, by)


class Emitter:
    """Writes trees as IR, one operation a line."""

    def __init__(self):
        self.lines = []

    def _line(self, text):
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def tree(self, tree):
        """Return the name of the value that a tree becomes."""
        kind, *parts = tree
        if kind == "constant":
            return self._line(f"arith.constant {parts[0]} : index")
        if kind == "input":
            return f"%input{parts[0]}"
        if kind == "operation":
            name, lhs, rhs, via = parts
            return self._operation(name, self.tree(lhs), self.tree(rhs), "index", via)
        if kind == "narrow":
            bits, name, lhs, rhs, via = parts
            operands = [self._cast(self.tree(part), "index", f"i{bits}", via) for part in (lhs, rhs)]
            return self._cast(self._operation(name, *operands, f"i{bits}", "arith"), f"i{bits}", "index", via)
        expression, dimension, symbol = affine_text(parts[0]), self.tree(parts[1]), self.tree(parts[2])
        return self._line(f"affine.apply affine_map<(d0)[s0] -> ({expression})>({dimension})[{symbol}]")

    def _operation(self, name, lhs, rhs, type_, via):
        if via == "index":
            return self._line(f"index.{_INDEX[name]} {lhs}, {rhs}")
        return self._line(f"arith.{name} {lhs}, {rhs} : {type_}")

    def _cast(self, value, source, target, via):
        name = "arith.index_cast" if via == "arith" else "index.casts"
        return self._line(f"{name} {value} : {source} to {target}")


def affine_text(tree):
    kind, *parts = tree
    if kind == "constant":
        return f"({parts[0]})"
    if kind == "operand":
        return ("d0", "s0")[parts[0]]
    return f"({affine_text(parts[1])} {_AFFINE[parts[0]]} {affine_text(parts[2])})"


def wrap(number, bits):
    """Return a number in two's complement."""
    return (number + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def compute(kind, a, b, bits):
    """Return what an operation gives before it is cut to its width."""
    if kind in _DIVIDES and b == 0:
        raise Undefined
    unsigned_a, unsigned_b = a % (1 << bits), b % (1 << bits)
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else 0
    return {
        "addi": lambda: a + b,
        "subi": lambda: a - b,
        "muli": lambda: a * b,
        "floordivsi": lambda: a // b,
        "ceildiv": lambda: -(-a // b),
        "mod": lambda: a % b,
        "divsi": lambda: quotient,
        "divui": lambda: unsigned_a // unsigned_b,
        "remsi": lambda: a - b * quotient,
        "minsi": lambda: min(a, b),
        "maxsi": lambda: max(a, b),
        "minui": lambda: a if unsigned_a < unsigned_b else b,
        "maxui": lambda: a if unsigned_a > unsigned_b else b,
    }[kind]()


def evaluate(tree, environment, strict):
    """Return the value of a tree; `strict` raises `Undefined` where signed arithmetic wraps around."""
    kind, *parts = tree
    if kind == "constant":
        return parts[0]
    if kind in ("input", "operand"):
        return environment[parts[0]]
    if kind == "affine":
        inner = tuple(evaluate(part, environment, strict) for part in parts[1:])
        return evaluate(parts[0], inner, strict)
    bits, name, lhs, rhs = parts[:4] if kind == "narrow" else (64, *parts[:3])
    operands = [wrap(evaluate(part, environment, strict), bits) for part in (lhs, rhs)]
    number = compute(name, *operands, bits)
    if strict and wrap(number, bits) != number:
        raise Undefined
    return wrap(number, bits)


def program(body, inputs, parameters="", arguments="", types=""):
    """Return a kernel that does `body`, lines that use the inputs, in two loops, and a function that calls it.

    `parameters`, `arguments` and `types` are those of the kernel and of the calls besides the two index inputs.
    """
    (start, end, step), (first, last, by) = inputs.loops
    calls = "\n".join(
        f"%a{i} = arith.constant {a} : index\n%b{i} = arith.constant {b} : index\n"
        f"func.call @kernel(%a{i}, %b{i}{arguments}) : (index, index{types}) -> ()"
        for i, (a, b) in enumerate(inputs.calls)
    )
    lines = "\n".join(body)
    return f"""
    func.func @kernel(%input2: index, %input3: index{parameters}) {{
      %start = arith.constant {start} : index
      %end = arith.constant {end} : index
      %step = arith.constant {step} : index
      %input4 = "mx.block_idx"() : () -> index
      %input5 = "mx.block_num"() : () -> index
      scf.for %input0 = %start to %end step %step {{
        scf.forall (%input1) = ({first}) to ({last}) step ({by}) {{
          {lines}
        }}
      }}
      return
    }}
    func.func @root({parameters.removeprefix(", ")}) {{
      {calls}
      return
    }}"""
