"""Runs the kernels of a module as the matrix engine would, with buffers and addresses and made-up branch outcomes.

The concrete counterpart of what `--mx-verify-scale-binding` proves, and nothing else of the engine: every tile is a
buffer, `mx.tget_scale_addr` makes a pair of buffers the latest binding of its side, and a matmul is wrong if the latest
binding of a side is not of the two buffers that it reads there. Bindings end where the specification of the engine says
so: at operations on tiles in a side's memories, at calls, and wherever control flow enters or leaves a block.
"""

import itertools
import random
import re

MATMULS = {"mx.matmul_mx": 0, "mx.matmul_mx_acc": 1, "mx.matmul_mx_bias": 0}
"""The matmuls, and the number of their first data operand; its scale, the other data and its scale follow."""

_SPACE = re.compile(r'!mx\.tile<.*"(left|right)(?:_scale)?"')


class _OutOfSteps(Exception):
    """A run was long enough."""


def wrong_matmul(module, runs=4, steps=1000):
    """Return a matmul that reads a wrong address in one of some runs of @main with random branch outcomes, or None."""
    return next(filter(None, (_first_wrong(_Run(module, seed, steps)) for seed in range(runs))), None)


def _first_wrong(run):
    try:
        run.function("main")
    except _OutOfSteps:
        return None
    except _WrongMatmul as found:
        return found.args[0]
    return None


class _WrongMatmul(Exception):
    """A matmul reads a wrong address."""


class _Run:
    def __init__(self, module, seed, steps):
        self.functions = {str(op.name).strip('"'): op for op in module.operation.regions[0].blocks[0]}
        self.outcomes = random.Random(seed)
        self.steps = steps
        self.buffers = itertools.count()
        self.latest = {}
        self.sides = {}

    def function(self, name, arguments=None):
        region = self.functions[name].regions[0]
        if arguments is None:
            arguments = [self.new() for _ in region.blocks[0].arguments]
        self.latest.clear()
        results = self.region(region, arguments, {})
        self.latest.clear()
        return results

    def new(self):
        return next(self.buffers)

    def region(self, region, arguments, values):
        """Run a region from its first block on; return what its last operation gives."""
        block = region.blocks[0]
        while True:
            values.update(zip(block.arguments, arguments, strict=True))
            self.latest.clear()
            for op in block:
                self.step(op.operation, values)
            self.latest.clear()
            last = op.operation
            operands = [values[value] for value in last.operands]
            if last.name == "cf.br":
                block, arguments = last.successors[0], operands
            elif last.name == "cf.cond_br":
                _, first, second = last.attributes["operandSegmentSizes"]
                taken = self.outcomes.randrange(2)
                arguments = operands[1 + first : 1 + first + second] if taken else operands[1 : 1 + first]
                block = last.successors[taken]
            elif last.name == "cf.switch":
                taken = self.outcomes.randrange(len(last.successors))
                counts = [last.attributes["operandSegmentSizes"][1], *last.attributes["case_operand_segments"]]
                start = 1 + sum(counts[:taken])
                block, arguments = last.successors[taken], operands[start : start + counts[taken]]
            else:
                return operands

    def step(self, op, values):
        self.steps -= 1
        if not self.steps:
            raise _OutOfSteps
        operands = [values[value] for value in op.operands]
        if len(op.regions):
            self.latest.clear()
            results = self.control(op, operands, values)
            self.latest.clear()
        elif op.name in ("func.call", "mx.submit"):
            callee = str(op.attributes["callee"]).removeprefix("@")
            count = len(self.functions[callee].regions[0].blocks[0].arguments)
            results = self.function(callee, operands[:count])
            results += [self.new() for _ in range(len(op.results) - len(results))]
        else:
            results = self.plain(op, operands)
        values.update(zip(op.results, results, strict=True))

    def control(self, op, operands, values):
        """Run what has regions and return its results."""
        if op.name == "scf.for":
            carried = operands[3:]
            for _ in range(self.outcomes.randrange(3)):
                carried = self.region(op.regions[0], [self.new(), *carried], values)
            return carried
        if op.name == "scf.while":
            carried = self.region(op.regions[0], operands, values)[1:]
            while self.outcomes.randrange(2):
                carried = self.region(op.regions[1], carried, values)
                carried = self.region(op.regions[0], carried, values)[1:]
            return carried
        taken = [region for region in op.regions if len(region.blocks)]
        if op.name == "scf.if" and len(taken) < 2:
            taken = [*taken, None]
        region = self.outcomes.choice(taken)
        return [] if region is None else self.region(region, [], values)

    def plain(self, op, operands):
        """Run what has no regions and return its results."""
        if op.name == "mx.tget_scale_addr":
            scale, data = operands
            self.latest[self.side(op.operands[1])] = (scale, data)
            return [scale]
        if op.name in MATMULS:
            first = MATMULS[op.name]
            left, left_scale, right, right_scale = operands[first : first + 4]
            bound = {"left": (left_scale, left), "right": (right_scale, right)}
            if self.latest != bound:
                raise _WrongMatmul(op)
            return operands[:first] or [self.new()]
        for value in (*op.operands, *op.results):
            self.latest.pop(self.side(value), None)
        if op.name == "arith.select":
            return [self.outcomes.choice(operands[1:])]
        return [self.new() for _ in op.results]

    def side(self, value):
        """Return which side's memories a value lies in, None for neither."""
        type_ = value.type
        if type_ not in self.sides:
            match = _SPACE.search(str(type_))
            self.sides[type_] = match and match[1]
        return self.sides[type_]
