"""Bounded proofs about integer values: that one is a multiple of a power of two, that one is not negative.

    proof = prove_multiple_of(offset, 16, call_sites)
    if not proof:
        print(proof.reason)

A proof looks at definitions, loop bounds and, through `CallSites`, at what functions are called with. It takes at most
256 steps, one for each value and each part of an affine expression that it looks at. Out of steps means not proven, so
that recursive functions need no other treatment and a pass that proves something of each of N operations stays O(N).

A value is a multiple of d, a power of two, if

| expression                | rule                                                                                 |
|---------------------------|--------------------------------------------------------------------------------------|
| constant                  | it is                                                                                |
| a * b                     | either is                                                                            |
| a + b, a - b, min, max    | both are                                                                             |
| a / c                     | c is a constant power of two, and a a multiple of c * d; divui: and a is not negative |
| loop variable             | start and step are constants and multiples                                           |
| parameter                 | all that the function is called with is                                              |
| index_cast                | its operand is                                                                       |

and not negative if

| expression                | rule                                                                                 |
|---------------------------|--------------------------------------------------------------------------------------|
| constant                  | it is not                                                                            |
| a * b, a + b, min         | neither is (min and max without sign likewise)                                       |
| max                       | one is not                                                                           |
| a / c, a % c              | c is a positive constant, and a is not negative                                      |
| a - b                     | never                                                                                |
| block number, block count | always                                                                               |
| loop variable             | start and step are constants and not negative                                        |
| parameter                 | all that the function is called with is not                                          |
| index_cast                | its operand is not, and no bits are dropped                                          |

Nothing else is proven; what a loop carries never is. The first rules hold when arithmetic wraps around, the second
assume that signed arithmetic does not. Operations on constants are computed, and one that overflows proves nothing.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, NamedTuple

from mx_dialect.analysis.call_sites import CallSites
from mx_dialect.analysis.index_expressions import (
    Arithmetic,
    BlockNumber,
    Cast,
    Constant,
    LoopVariable,
    Parameter,
    Term,
    constant_of,
    place,
    read,
)

BUDGET = 256
"""How many steps a proof may take."""
_LARGEST = 2**63 - 1


@dataclass(frozen=True)
class Proof:
    """What a proof found; true if the fact was proven. Otherwise `reason` says why not, and `where` of which value.

    Out of budget there is no such value.
    """

    reason: str | None = None
    where: Any = None
    out_of_budget: bool = False

    def __bool__(self) -> bool:
        return self.reason is None


def prove_multiple_of(value: Any, divisor: int, call_sites: CallSites | None = None) -> Proof:
    """Prove that an integer or index value is a multiple of `divisor` whenever it is computed, as `Prover` does."""
    return Prover(call_sites).multiple_of(value, divisor)


def prove_non_negative(value: Any, call_sites: CallSites | None = None) -> Proof:
    """Prove that an integer or index value is 0 or more whenever it is computed, as `Prover` does."""
    return Prover(call_sites).non_negative(value)


class _Goal(NamedTuple):
    """To show that a term is a multiple of the divisor or, where that is None, not negative."""

    term: Term
    divisor: int | None

    def of(self, term: Term) -> "_Goal":
        return _Goal(term, self.divisor)


class _Found(NamedTuple):
    """Whether a goal was reached; the value of the term if it is computed from constants."""

    proof: Proof
    constant: int | None = None


_PROVEN = _Found(Proof())

# A rule yields the goals that it depends on, is sent what was found of each, and returns what that makes of its own.
_Rule = Generator[_Goal, Any, _Found]


class Prover:
    """Proofs about the values of a program, which must not change meanwhile.

    Without `call_sites` nothing is known of a function's parameters. What was found is remembered, and with it how many
    steps that took: a proof that comes by it again is charged as many, so that none depends on what was asked before.
    """

    def __init__(self, call_sites: CallSites | None = None):
        self._call_sites = call_sites
        # What was found of a goal, and in how many steps.
        self._known: dict[_Goal, tuple[_Found, int]] = {}

    def multiple_of(self, value: Any, divisor: int) -> Proof:
        """Prove that an integer or index value is a multiple of `divisor` whenever it is computed.

        Raises:
            ValueError: the divisor is not a power of two.
        """
        if not _is_power_of_two(divisor):
            raise ValueError(f"a divisor must be a power of two, but is {divisor}")
        return self._search(_Goal(value, divisor))

    def non_negative(self, value: Any) -> Proof:
        """Prove that an integer or index value is 0 or more whenever it is computed, if no signed arithmetic wraps."""
        return self._search(_Goal(value, None))

    def _search(self, goal: _Goal) -> Proof:
        # The stack of rules is our own: goals nest as deep as the budget, and Python's stack may be deep already.
        waiting: list[tuple[_Goal, _Rule, int]] = []
        asked: _Goal | None = goal
        steps = 0
        while asked is not None:
            found, taken = self._known.get(asked, (None, 1))
            if found is None:
                waiting.append((asked, self._rule(asked), steps))
            steps += taken
            if steps > BUDGET:
                return Proof(f"the proof takes more than {BUDGET} steps", out_of_budget=True)
            asked = None
            while waiting and asked is None:
                reached, rule, before = waiting[-1]
                try:
                    asked = rule.send(found)
                except StopIteration as finished:
                    waiting.pop()
                    found = finished.value
                    self._known[reached] = found, steps - before
        return self._known[goal][0].proof

    def _rule(self, goal: _Goal) -> _Rule:
        expression = read(goal.term)
        if isinstance(expression, Arithmetic):
            rules = _NOT_NEGATIVE if goal.divisor is None else _MULTIPLE
            rule = rules.get(expression.kind)
            if rule is None:
                return _failed(goal, "a remainder can be any number")
            return (yield from rule(goal, expression))
        if isinstance(expression, Constant):
            return _judged(goal, expression.value)
        if isinstance(expression, Cast):
            return (yield from _cast(goal, expression))
        if isinstance(expression, LoopVariable):
            return _loop_variable(goal, expression)
        if isinstance(expression, Parameter):
            return (yield from _parameter(goal, expression, self._call_sites))
        if isinstance(expression, BlockNumber):
            return _PROVEN if goal.divisor is None else _failed(goal, "the number of a block can be any")
        return _failed(goal, f"{expression.what} is not followed")


def _failed(goal: _Goal, reason: str) -> _Found:
    return _Found(Proof(reason, place(goal.term)))


def _wanted(goal: _Goal) -> str:
    return "0 or more" if goal.divisor is None else f"a multiple of {goal.divisor}"


def _holds(goal: _Goal, number: int) -> bool:
    return number >= 0 if goal.divisor is None else number % goal.divisor == 0


def _judged(goal: _Goal, number: int) -> _Found:
    """Return what a term that is a constant is found to be."""
    if _holds(goal, number):
        return _Found(Proof(), number)
    return _Found(Proof(f"{number} is not {_wanted(goal)}", place(goal.term)), number)


def _is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def _truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) if (a < 0) == (b < 0) else -(abs(a) // abs(b))


# What an operation gives for constants; a divisor is positive wherever these are used.
_COMPUTE: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "min": min,
    "max": max,
    "floordiv": lambda a, b: a // b,
    "ceildiv": lambda a, b: -(-a // b),
    "div": _truncated,
    "rem": lambda a, b: a - b * _truncated(a, b),
    "mod": lambda a, b: a % b,
}


def _computed(goal: _Goal, expression: Arithmetic, lhs: _Found, rhs: _Found) -> _Found | None:
    """Return what an operation on constants is found to be, None if it is on something else."""
    compute = _COMPUTE.get(expression.kind)
    if lhs.constant is None or rhs.constant is None or compute is None:
        return None
    number = compute(lhs.constant, rhs.constant)
    limit = 2 ** (expression.bits - 1)
    if not -limit <= number < limit:
        return _failed(goal, f"{number} overflows {expression.bits} bits")
    return _judged(goal, number)


def _both(goal: _Goal, expression: Arithmetic) -> _Rule:
    lhs = yield goal.of(expression.lhs)
    if not lhs.proof and lhs.constant is None:
        return lhs
    rhs = yield goal.of(expression.rhs)
    computed = _computed(goal, expression, lhs, rhs)
    if computed is not None:
        return computed
    return _Found(rhs.proof if lhs.proof else lhs.proof)


def _either(goal: _Goal, expression: Arithmetic) -> _Rule:
    lhs = yield goal.of(expression.lhs)
    if lhs.proof and (lhs.constant is None or constant_of(expression.rhs) is None):
        return _PROVEN
    rhs = yield goal.of(expression.rhs)
    computed = _computed(goal, expression, lhs, rhs)
    if computed is not None:
        return computed
    return _Found(lhs.proof if lhs.proof else rhs.proof)


def _difference(goal: _Goal, expression: Arithmetic) -> _Rule:
    """Follow a difference for its sign, which is known for constants only."""
    unknown = _failed(goal, "a difference can be negative")
    lhs = yield goal.of(expression.lhs)
    if lhs.constant is None:
        return unknown
    rhs = yield goal.of(expression.rhs)
    return _computed(goal, expression, lhs, rhs) or unknown


def _divided(goal: _Goal, expression: Arithmetic) -> _Rule:
    """Follow a quotient or a remainder."""
    divisor = constant_of(expression.rhs)
    if divisor is None or divisor <= 0:
        return _failed(goal, "a divisor is not a positive constant")
    wanted = None
    if goal.divisor is not None:
        wanted = goal.divisor * divisor
        if not _is_power_of_two(divisor) or wanted > _LARGEST:
            return _failed(goal, f"a division by {divisor} need not leave a multiple of {goal.divisor}")
        if expression.kind == "divu":
            unsigned = yield _Goal(expression.lhs, None)
            if not unsigned.proof:
                return _Found(unsigned.proof)
    dividend = yield _Goal(expression.lhs, wanted)
    computed = _computed(goal, expression, dividend, _Found(Proof(), divisor))
    return computed or _Found(dividend.proof)


def _cast(goal: _Goal, expression: Cast) -> _Rule:
    if expression.widens:
        return (yield goal.of(expression.operand))
    if goal.divisor is None:
        return _failed(goal, "a cast that drops bits can give a negative number")
    found = yield goal.of(expression.operand)
    return _Found(found.proof)


def _loop_variable(goal: _Goal, loop: LoopVariable) -> _Found:
    if loop.start is None or loop.step is None:
        return _failed(goal, "a loop has a start or step that is not a constant")
    if goal.divisor is None and not loop.is_signed:
        return _failed(goal, "a loop counts without sign")
    if _holds(goal, loop.start) and _holds(goal, loop.step):
        return _PROVEN
    return _failed(goal, f"a loop starts at {loop.start} and steps by {loop.step}, and each must be {_wanted(goal)}")


def _parameter(goal: _Goal, parameter: Parameter, call_sites: CallSites | None) -> _Rule:
    if call_sites is None:
        return _failed(goal, "nothing is known of what the function is called with")
    problem = call_sites.problem(parameter.function)
    if problem is not None:
        return _failed(goal, problem)
    for actual in call_sites.actuals(parameter.function, parameter.number):
        found = yield goal.of(actual)
        if not found.proof:
            return _Found(found.proof)
    return _PROVEN


_MULTIPLE: dict[str, Callable[[_Goal, Arithmetic], _Rule]] = {
    "mul": _either,
    "add": _both,
    "sub": _both,
    "min": _both,
    "max": _both,
    "minu": _both,
    "maxu": _both,
    "floordiv": _divided,
    "ceildiv": _divided,
    "div": _divided,
    "divu": _divided,
}
_NOT_NEGATIVE: dict[str, Callable[[_Goal, Arithmetic], _Rule]] = {
    "mul": _both,
    "add": _both,
    "sub": _difference,
    "min": _both,
    "max": _either,
    "minu": _both,
    "maxu": _both,
    "floordiv": _divided,
    "ceildiv": _divided,
    "div": _divided,
    "divu": _divided,
    "rem": _divided,
    "mod": _divided,
}
