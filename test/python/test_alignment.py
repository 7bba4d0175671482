"""Proofs of divisibility and sign: sound against brute force, complete as far as their tables go, bounded."""

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_programs import Emitter, Inputs, Undefined, evaluate, program, random_inputs, random_tree

from mx_dialect import dialect
from mx_dialect._mlir import ir
from mx_dialect.analysis.alignment import BUDGET, Prover, prove_multiple_of, prove_non_negative
from mx_dialect.analysis.call_sites import CallSites
from mx_dialect.walk import operations

# What may be asked of a value.
DIVISORS = (1, 2, 16)


def _context() -> Any:
    context = dialect.load()
    context.allow_unregistered_dialects = True
    return context


CONTEXT = _context()


class Program:
    """A module and the operands of its test.use operations, in order."""

    def __init__(self, text: str):
        with CONTEXT:
            self.module = ir.Module.parse(text)
        uses = operations(self.module.operation, lambda op: op.name == "test.use", outer_first=True)
        self.values = [value for use in uses for value in use.operands]
        self.call_sites = CallSites(self.module.operation)

    def proofs(self) -> list[tuple[bool, bool]]:
        """Return for each value whether it is proven to be a multiple of 16 and to be 0 or more."""
        return [
            (bool(prove_multiple_of(v, 16, self.call_sites)), bool(prove_non_negative(v, self.call_sites)))
            for v in self.values
        ]


def uses(trees: list[Any]) -> list[str]:
    """Return the lines that compute trees and use each."""
    emitter = Emitter()
    values = [emitter.tree(tree) for tree in trees]
    return [*emitter.lines, *(f'"test.use"({value}) : (index) -> ()' for value in values)]


def values_of(tree: Any, inputs: Inputs, strict: bool) -> set[int]:
    """Return all that a tree can be, but for runs without a defined result (`strict`: or with arithmetic that wraps)."""
    found: set[int] = set()
    for environment in inputs.environments():
        with contextlib.suppress(Undefined):
            found.add(evaluate(tree, environment, strict))
    return found


@settings(max_examples=25)
@given(st.randoms(use_true_random=True))
def test_what_is_proven_holds(rng: Any) -> None:
    inputs = random_inputs(rng)
    trees = [random_tree(rng) for _ in range(60)]
    made = Program(program(uses(trees), inputs))
    prover = Prover(made.call_sites)
    for tree, value in zip(trees, made.values, strict=True):
        # Divisibility holds also when arithmetic wraps around.
        proven = [divisor for divisor in DIVISORS if prover.multiple_of(value, divisor)]
        for divisor in proven:
            assert all(n % divisor == 0 for n in values_of(tree, inputs, strict=False)), (tree, inputs, divisor)
        if prover.non_negative(value):
            assert all(n >= 0 for n in values_of(tree, inputs, strict=True)), (tree, inputs)


@settings(max_examples=10)
@given(st.randoms(use_true_random=True))
def test_what_was_asked_before_does_not_matter(rng: Any) -> None:
    trees = [random_tree(rng, depth=5) for _ in range(20)]
    made = Program(program(uses([*trees, *trees]), random_inputs(rng)))
    shared = Prover(made.call_sites)
    for value in made.values:
        for divisor in DIVISORS:
            fresh = prove_multiple_of(value, divisor, made.call_sites)
            assert shared.multiple_of(value, divisor).reason == fresh.reason
        assert shared.non_negative(value).reason == prove_non_negative(value, made.call_sites).reason


# What is accepted and what is not, form by form: (operations, multiple of 16, 0 or more). `%r` is what is asked about,
# `%any` anything, `%m` and `%p` multiples of 16 that are, and are not known to be, 0 or more, `%n` 0 or more.
FORMS = {
    "constant": ("%r = arith.constant 32 : index", True, True),
    "constant, not a multiple": ("%r = arith.constant 8 : index", False, True),
    "constant, negative": ("%r = arith.constant -16 : index", True, False),
    "constant of index": ("%r = index.constant 48", True, True),
    "product, left": ("%r = arith.muli %m, %n : index", True, True),
    "product, right": ("%r = arith.muli %any, %m : index", True, False),
    "product, neither": ("%r = arith.muli %n, %n : index", False, True),
    "sum": ("%r = arith.addi %m, %m : index", True, True),
    "sum, one": ("%r = arith.addi %m, %n : index", False, True),
    "sum, sign of one": ("%r = arith.addi %m, %p : index", True, False),
    "difference": ("%r = arith.subi %m, %m : index", True, False),
    "difference of index": ("%r = index.sub %m, %n", False, False),
    "floordiv": ("%x = arith.muli %m, %c4 : index\n%r = arith.floordivsi %x, %c4 : index", False, True),
    "floordiv, enough": ("%x = arith.muli %n, %c64 : index\n%r = arith.floordivsi %x, %c4 : index", True, True),
    "divsi": ("%x = arith.muli %any, %c64 : index\n%r = arith.divsi %x, %c4 : index", True, False),
    "divui": ("%x = arith.muli %n, %c64 : index\n%r = arith.divui %x, %c4 : index", True, True),
    "divui, any sign": ("%x = arith.muli %any, %c64 : index\n%r = arith.divui %x, %c4 : index", False, False),
    "division by 3": ("%x = arith.muli %n, %c48 : index\n%r = arith.floordivsi %x, %c3 : index", False, True),
    "division by 0": ("%r = arith.divsi %m, %c0 : index", False, False),
    "division by -4": ("%x = arith.muli %n, %c64 : index\n%r = arith.floordivsi %x, %c-4 : index", False, False),
    "division by what is not constant": ("%r = arith.divsi %m, %n : index", False, False),
    "division by 2^62": ("%r = arith.divsi %m, %large : index", False, True),
    "ceildiv is not in the tables": ("%r = arith.ceildivsi %m, %c4 : index", False, False),
    "remainder": ("%r = arith.remsi %m, %c64 : index", False, True),
    "remainder of any": ("%r = arith.remsi %any, %c64 : index", False, False),
    "remainder by what is not constant": ("%r = index.rems %m, %n", False, False),
    "minimum": ("%r = arith.minsi %m, %m : index", True, True),
    "minimum, one": ("%r = arith.minsi %m, %any : index", False, False),
    "maximum": ("%r = arith.maxsi %any, %n : index", False, True),
    "maximum, right": ("%r = index.maxs %p, %m", True, True),
    "maximum, neither": ("%r = arith.maxsi %p, %p : index", True, False),
    "unsigned minimum": ("%r = arith.minui %m, %m : index", True, True),
    "unsigned maximum, one": ("%r = arith.maxui %m, %p : index", True, False),
    "block number": ('%r = "mx.block_idx"() : () -> index', False, True),
    "block count": ('%r = "mx.block_num"() : () -> index', False, True),
    "widening cast": ("%x = arith.constant 16 : i32\n%r = arith.index_cast %x : i32 to index", True, True),
    "narrowing cast": ("%x = arith.index_cast %m : index to i32\n%r = index.casts %x : i32 to index", True, False),
    "unsigned cast": ("%x = arith.constant 16 : i32\n%r = arith.index_castui %x : i32 to index", False, False),
    "an i1 that is -1": ("%x = arith.constant true\n%r = arith.index_cast %x : i1 to index", False, False),
    "affine sum": ("%r = affine.apply affine_map<(d0)[s0] -> (d0 * 16 + s0 + 32)>(%n)[%m]", True, True),
    "affine difference": ("%r = affine.apply affine_map<(d0, d1) -> (d0 - d1)>(%m, %m)", True, False),
    "affine mod": ("%r = affine.apply affine_map<(d0) -> ((d0 mod 4) * 16)>(%n)", True, True),
    "affine mod of any": ("%r = affine.apply affine_map<(d0) -> ((d0 mod 4) * 16)>(%any)", True, False),
    "affine floordiv": ("%r = affine.apply affine_map<(d0) -> ((d0 * 64) floordiv 4)>(%n)", True, True),
    "affine ceildiv": ("%r = affine.apply affine_map<(d0) -> ((d0 * 8) ceildiv 3)>(%m)", False, True),
    "affine constant": ("%r = affine.apply affine_map<() -> (32)>()", True, True),
    "computed": ("%r = arith.muli %c4, %c4 : index", True, True),
    "computed, negative": ("%r = arith.subi %c4, %c64 : index", False, False),
    "computed twice": ("%x = arith.addi %c4, %c64 : index\n%r = arith.subi %x, %c4 : index", True, True),
    "computed quotient, to zero": (
        "%x = arith.constant -33 : index\n%y = arith.constant 2 : index\n%r = arith.divsi %x, %y : index",
        True,
        False,
    ),
    "computed quotient, down": (
        "%x = arith.constant -33 : index\n%y = arith.constant 2 : index\n%r = arith.floordivsi %x, %y : index",
        False,
        False,
    ),
    "unsigned quotient of what is negative": (
        "%x = arith.divui %c-4, %c4 : index\n%r = arith.muli %x, %c4 : index",
        False,
        False,
    ),
    "computed remainder": ("%r = arith.remsi %c-4, %c3 : index", False, False),
    "overflow": ("%r = arith.muli %large, %c4 : index", False, False),
    "overflow of i8": (
        "%x = arith.constant 112 : i8\n%y = arith.addi %x, %x : i8\n%r = arith.index_cast %y : i8 to index",
        False,
        False,
    ),
    "select": ("%t = arith.constant true\n%r = arith.select %t, %m, %m : index", False, False),
    "shift": ("%r = arith.shli %n, %c4 : index", False, False),
    "extremes": ("%r = arith.constant 9223372036854775807 : index", False, True),
    "least": ("%r = arith.constant -9223372036854775808 : index", True, False),
    "i128": ("%x = arith.constant 16 : i128\n%r = arith.index_cast %x : i128 to index", False, False),
    "what is carried": (
        "%r = scf.for %i = %c0 to %c64 step %c4 iter_args(%x = %c0) -> index {\nscf.yield %x : index\n}",
        False,
        False,
    ),
}


def form(operations_: str) -> str:
    constants = "\n".join(f"%c{n} = arith.constant {n} : index" for n in (0, 3, 4, 48, 64, -4))
    return f"""
    func.func @f(%any: index) {{
      {constants}
      %large = arith.constant 4611686018427387904 : index
      %c16 = arith.constant 16 : index
      %n = "mx.block_idx"() : () -> index
      %m = arith.muli %n, %c16 : index
      %p = arith.muli %any, %c16 : index
      {operations_}
      "test.use"(%r) : (index) -> ()
      return
    }}"""


@pytest.mark.parametrize("name", FORMS)
def test_forms(name: str) -> None:
    text, multiple, sign = FORMS[name]
    assert Program(form(text)).proofs() == [(multiple, sign)]


LOOP_FORMS = {
    "scf.for %r = %c0 to %any step %c16 {": (True, True),
    "scf.for %r = %c16 to %any step %c8 {": (False, True),
    "scf.for %r = %c8 to %any step %c16 {": (False, True),
    "scf.for %r = %c-16 to %any step %c16 {": (True, False),
    "scf.for %r = %any to %any step %c16 {": (False, False),
    "scf.for %r = %c0 to %any step %any {": (False, False),
    "scf.for unsigned %r = %c0 to %any step %c16 {": (True, False),
    "scf.forall (%x, %r) = (0, 16) to (64, 64) step (1, 32) {": (True, True),
    "scf.forall (%x, %r) = (8, %c0) to (64, %any) step (%c8, %c16) {": (True, True),
    "scf.forall (%x, %r) = (%any, 16) to (64, %any) step (%any, %c8) {": (False, True),
    "scf.forall (%r, %x) = (%any, 16) to (64, %any) step (16, %c8) {": (False, False),
    "scf.parallel (%r) = (%c0) to (%any) step (%c16) {": (False, False),
}


@pytest.mark.parametrize("loop", LOOP_FORMS)
def test_loop_variables(loop: str) -> None:
    text = f"""
    func.func @f(%any: index) {{
      %c0 = arith.constant 0 : index
      %c8 = arith.constant 8 : index
      %c16 = arith.constant 16 : index
      %c-16 = arith.constant -16 : index
      {loop}
        "test.use"(%r) : (index) -> ()
      }}
      return
    }}"""
    assert Program(text).proofs() == [LOOP_FORMS[loop]]


def test_a_value_that_a_loop_carries_is_not_followed() -> None:
    text = """
    func.func @f(%c: i1) {
      %c0 = arith.constant 0 : index
      %0 = scf.while (%x = %c0) : (index) -> index {
        "test.use"(%x) : (index) -> ()
        scf.condition(%c) %x : index
      } do {
      ^bb0(%y: index):
        "test.use"(%y) : (index) -> ()
        scf.yield %y : index
      }
      scf.for %i = %c0 to %c0 step %c0 iter_args(%z = %c0) -> index {
        "test.use"(%z) : (index) -> ()
        scf.yield %z : index
      }
      cf.br ^bb1(%c0 : index)
    ^bb1(%b: index):
      "test.use"(%b) : (index) -> ()
      return
    }"""
    assert Program(text).proofs() == [(False, False)] * 4


def called(calls: str, kernel: str = "func.func @kernel(%r: index, %x: index)") -> Program:
    return Program(f"""
    {kernel} {{
      "test.use"(%r) : (index) -> ()
      return
    }}
    func.func @root(%any: index) {{
      %c0 = arith.constant 0 : index
      %c8 = arith.constant 8 : index
      %c16 = arith.constant 16 : index
      %c-16 = arith.constant -16 : index
      {calls}
      return
    }}""")


def call(*arguments: str) -> str:
    types = ", ".join(["index"] * len(arguments))
    return f"func.call @kernel({', '.join(arguments)}) : ({types}) -> ()"


def submit(*arguments: str) -> str:
    """Return a submit with a core count, which is no argument, in generic form."""
    sizes = [1] * len(arguments) + [0] * (65 - len(arguments)) + [1, 0]
    types = ", ".join(["index"] * (len(arguments) + 1))
    return (
        f'"mx.submit"({", ".join([*arguments, "%any"])}) {{callee = @kernel,'
        f" operandSegmentSizes = array<i32: {', '.join(map(str, sizes))}>,"
        f" resultSegmentSizes = array<i32: {', '.join(['0'] * 16)}>}} : ({types}) -> ()"
    )


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([call("%c16", "%any")], (True, True)),
        ([call("%c0", "%any"), call("%c16", "%any"), submit("%c16", "%c8")], (True, True)),
        ([call("%c0", "%any"), submit("%c8", "%any")], (False, True)),
        ([call("%c-16", "%any"), call("%c0", "%any")], (True, False)),
        ([call("%any", "%c0")], (False, False)),
        ([], (False, False)),
        ([call("%c0", "%c0"), submit("%c0")], (False, False)),
        ([call("%c0", "%c0"), submit("%c0", "%c0", "%c0")], (False, False)),
        ([call("%c0", "%c0"), "%f = func.constant @kernel : (index, index) -> ()"], (False, False)),
    ],
)
def test_parameters(calls: list[str], expected: tuple[bool, bool]) -> None:
    assert called("\n".join(calls)).proofs() == [expected]


def test_parameters_without_call_sites() -> None:
    made = called(call("%c16", "%c16"))
    assert not prove_multiple_of(made.values[0], 16)
    assert "nothing is known" in (prove_non_negative(made.values[0]).reason or "")


def test_many_equal_arguments_count_once() -> None:
    constants = [f"%d{i} = arith.constant 32 : index\n{call(f'%d{i}', '%any')}" for i in range(2 * BUDGET)]
    assert called("\n".join(constants)).proofs() == [(True, True)]


def test_many_different_arguments_are_too_many() -> None:
    constants = [f"%d{i} = arith.constant {16 * i} : index\n{call(f'%d{i}', '%any')}" for i in range(BUDGET)]
    made = called("\n".join(constants))
    assert prove_multiple_of(made.values[0], 16, made.call_sites).out_of_budget
    fewer = called("\n".join(constants[:-1]))
    assert fewer.proofs() == [(True, True)]


def test_names_belong_to_their_module() -> None:
    """Two kernels of one name, in modules of their own, are called with different offsets."""

    def part(offset: int) -> str:
        return f"""
        builtin.module {{
          func.func @kernel(%r: index) {{
            "test.use"(%r) : (index) -> ()
            return
          }}
          func.func @root() {{
            %c = arith.constant {offset} : index
            func.call @kernel(%c) : (index) -> ()
            return
          }}
        }}"""

    assert Program(part(16) + part(8)).proofs() == [(True, True), (False, True)]


def chain(length: int) -> Program:
    """Return a sum of `length` terms, each addition and each term one step."""
    lines = ["%x0 = arith.constant 16 : index"]
    lines += [f"%x{i} = arith.addi %x{i - 1}, %i : index" for i in range(1, length)]
    body = "\n".join(lines)
    return Program(f"""
    func.func @f(%end: index) {{
      %c16 = arith.constant 16 : index
      scf.for %i = %c16 to %end step %c16 {{
        {body}
        "test.use"(%x{length - 1}) : (index) -> ()
      }}
      return
    }}""")


def test_the_budget() -> None:
    # A chain of n terms takes 2n - 1 steps.
    assert BUDGET == 256
    assert chain(128).proofs() == [(True, True)]
    long = chain(129)
    assert long.proofs() == [(False, False)]
    proof = prove_multiple_of(long.values[0], 16)
    assert proof.out_of_budget
    assert proof.where is None
    assert proof.reason == "the proof takes more than 256 steps"


def test_each_affine_part_is_a_step() -> None:
    # Every part of the sum (n - 1 additions, n products of a dimension and a constant), its operand, the apply itself.
    def proofs(terms: int) -> list[tuple[bool, bool]]:
        names = ", ".join(f"d{i}" for i in range(terms))
        total = " + ".join(f"d{i} * 16" for i in range(terms))
        values = ", ".join(["%n"] * terms)
        return Program(form(f"%r = affine.apply affine_map<({names}) -> ({total})>({values})")).proofs()

    assert proofs(20) == [(True, True)]
    assert proofs(60) == [(False, False)]


def test_recursion_runs_out_of_budget() -> None:
    made = Program("""
    func.func @kernel(%r: index) {
      %c16 = arith.constant 16 : index
      "test.use"(%r) : (index) -> ()
      %next = arith.addi %r, %c16 : index
      func.call @kernel(%next) : (index) -> ()
      return
    }
    func.func @mutual(%r: index) {
      "test.use"(%r) : (index) -> ()
      func.call @mutual(%r) : (index) -> ()
      return
    }""")
    assert made.proofs() == [(False, False), (False, False)]
    assert prove_multiple_of(made.values[1], 16, made.call_sites).out_of_budget


def test_values_that_depend_on_themselves() -> None:
    """In a block that is never reached a value may be its own operand."""
    made = Program("""
    func.func @f() {
      return
    ^bb1:
      %x = arith.addi %x, %x : index
      "test.use"(%x) : (index) -> ()
      cf.br ^bb1
    }""")
    assert made.proofs() == [(False, False)]


def test_deep_expressions_need_no_deep_stack() -> None:
    operations_ = "\n".join(f"%x{i} = arith.muli %x{i - 1}, %n : index" for i in range(1, 50_000))
    made = Program(form(f"%x0 = arith.muli %n, %n : index\n{operations_}\n%r = arith.addi %x49999, %m : index"))
    assert made.proofs() == [(False, False)]


def test_a_failed_proof_names_the_value() -> None:
    made = called(call("%c16", "%any") + "\n" + call("%c8", "%any"))
    proof = prove_multiple_of(made.values[0], 16, made.call_sites)
    assert proof.reason == "8 is not a multiple of 16"
    argument = made.call_sites.actuals(made.values[0].owner.owner.operation, 0)[1]
    assert proof.where == argument.owner.location


@pytest.mark.parametrize("divisor", [0, -16, 3, 24])
def test_divisors_are_powers_of_two(divisor: int) -> None:
    made = called(call("%c16", "%any"))
    with pytest.raises(ValueError, match="must be a power of two"):
        prove_multiple_of(made.values[0], divisor)
