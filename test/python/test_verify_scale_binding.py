"""mx-verify-scale-binding: programs with their bindings pass, broken ones do not; a simulator tells which are broken."""

import functools
import random

import pytest
from binding_simulator import MATMULS, wrong_matmul
from hypothesis import given, settings
from hypothesis import strategies as st
from tile_programs import tile_programs

import mx_dialect
from mx_dialect import passes
from mx_dialect._mlir import ir
from mx_dialect.diagnostics import MxError
from mx_dialect.tile_matmul_ops import TgetScaleAddrOp
from mx_dialect.tile_ops import tile_create

CHECK = "mx-verify-scale-binding"
BIND = "mx.tget_scale_addr"


def complaints(module):
    """Return the messages of the checker about a module."""
    try:
        passes.get(CHECK).run(module.operation, passes.NoOptions())
    except MxError as error:
        return [diagnostic.message for diagnostic in error.diagnostics]
    return []


# Kernels that bind by hand, and whether a matmul in them reads a wrong address.
BOUND = """
  %ls0 = mx.tget_scale_addr %ls, %l : !ls, !l -> !ls
  %rs0 = mx.tget_scale_addr %rs, %r : !rs, !r -> !rs"""
MATMUL = "mx.matmul_mx %l, %ls0, %r, %rs0 : !l, !ls, !r, !rs -> !c"
KERNELS = {
    "bound": (f"{BOUND}\n %0 = {MATMUL}", False),
    "used twice": (f"{BOUND}\n %0 = {MATMUL}\n %1 = {MATMUL}", False),
    "not bound": ("%0 = mx.matmul_mx %l, %ls, %r, %rs : !l, !ls, !r, !rs -> !c", True),
    "left only": (
        "%ls0 = mx.tget_scale_addr %ls, %l : !ls, !l -> !ls\n %0 = mx.matmul_mx %l, %ls0, %r, %rs : !l, !ls, !r, !rs -> !c",
        True,
    ),
    "other data": (f"{BOUND}\n %0 = mx.matmul_mx %l1, %ls0, %r, %rs0 : !l, !ls, !r, !rs -> !c", True),
    "other scale": (f"{BOUND}\n %0 = mx.matmul_mx %l, %ls1, %r, %rs0 : !l, !ls, !r, !rs -> !c", True),
    "two scales": (f"{BOUND}\n %1 = mx.tget_scale_addr %ls1, %l : !ls, !l -> !ls\n %0 = {MATMUL}", True),
    "rebound": (f"{BOUND}\n %1 = mx.tget_scale_addr %rs, %r1 : !rs, !r -> !rs\n %0 = {MATMUL}", True),
    "another scale bound": (f"{BOUND}\n %1 = mx.tget_scale_addr %rs1, %r1 : !rs, !r -> !rs\n %0 = {MATMUL}", True),
    "moved to right": (f"{BOUND}\n %1 = mx.tile_move %x : !x -> !r\n %0 = {MATMUL}", True),
    "moved to bias": (f"{BOUND}\n %1 = mx.tile_move %b : !b -> !bias\n %0 = {MATMUL}", False),
    "call": (f"{BOUND}\n func.call @nothing() : () -> ()\n %0 = {MATMUL}", True),
    "submit": (f"{BOUND}\n mx.submit @nothing() : () -> ()\n %0 = {MATMUL}", True),
    "in a branch": (f"scf.if %p {{ {BOUND}\n %0 = {MATMUL} }}", False),
    "before a branch": (f"{BOUND}\n scf.if %p {{ %0 = {MATMUL} }}", True),
    "before and after a branch": (f"{BOUND}\n scf.if %p {{ }}\n %0 = {MATMUL}", True),
    "before a loop": (f"{BOUND}\n scf.for %i = %c0 to %n step %c1 {{ %0 = {MATMUL} }}", True),
    "in a loop": (f"scf.for %i = %c0 to %n step %c1 {{ {BOUND}\n %0 = {MATMUL} }}", False),
    "before a block": (f"{BOUND}\n cf.br ^next\n ^next:\n %0 = {MATMUL}\n cf.br ^last\n ^last:", True),
}


def kernel(body):
    tiles = "%l: !l, %l1: !l, %ls: !ls, %ls1: !ls, %r: !r, %r1: !r, %rs: !rs, %rs1: !rs, %x: !x, %b: !b"
    return f"""
!l = !mx.tile<16x64xf8E4M3FN, left>
!ls = !mx.tile<16x2xf8E8M0FNU, left_scale>
!r = !mx.tile<64x32xf8E4M3FN, right>
!rs = !mx.tile<2x32xf8E8M0FNU, right_scale>
!x = !mx.tile<64x32xf8E4M3FN, mat>
!b = !mx.tile<1x32xf32, mat>
!bias = !mx.tile<1x32xf32, bias>
!c = !mx.tile<16x32xf32, acc>
func.func private @nothing() {{
  return
}}
func.func @main({tiles}, %p: i1, %n: index) attributes {{mx.kernel = "aic"}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  {body}
  return
}}"""


@pytest.mark.parametrize("name", KERNELS)
def test_checker_and_simulator_tell_wrong_addresses(name):
    body, is_wrong = KERNELS[name]
    module = mx_dialect.parse(kernel(body))
    assert bool(complaints(module)) == is_wrong
    assert (wrong_matmul(module) is not None) == is_wrong


def test_the_checker_changes_nothing():
    module = mx_dialect.parse(kernel(KERNELS["bound"][0]))
    before = mx_dialect.to_asm(module)
    mx_dialect.run_pipeline(module, CHECK)
    assert mx_dialect.to_asm(module) == before


@functools.cache
def context():
    """Return a context for all random programs: to load the dialect costs more than to parse one."""
    return mx_dialect.load()


def bound(module, reuse):
    """Return a copy of a module, an operation, with its scales bound."""
    copy = module.operation.clone()
    insert = passes.get("mx-insert-scale-addr")
    insert.run(copy, insert.options(reuse=reuse))
    return copy


@settings(max_examples=80)
@given(program=tile_programs())
def test_bound_programs_pass(program):
    module = mx_dialect.parse(program.text, context=context())
    for reuse in (True, False):
        copy = bound(module, reuse)
        assert not complaints(copy)
        assert wrong_matmul(copy) is None


@settings(max_examples=15)
@given(program=tile_programs(), reuse=st.booleans(), to_blocks=st.booleans())
def test_bindings_outlast_other_passes(program, reuse, to_blocks):
    module = mx_dialect.parse(program.text, context=context())
    bind = f"mx-insert-scale-addr{{reuse={str(reuse).lower()}}}"
    blocks = "convert-scf-to-cf," if to_blocks else ""
    mx_dialect.run_pipeline(module, f"{blocks}{bind},{CHECK},cse,canonicalize,loop-invariant-code-motion,{CHECK}")
    assert wrong_matmul(module) is None


def sites(module):
    """Return the bindings, and (matmul, number of a scale operand, bindings of its type that it could use) for each."""
    bindings, matmuls = [], []

    def visit(block, above):
        known = list(above)
        for op in block:
            operation = op.operation
            if operation.name in MATMULS:
                for number in (MATMULS[operation.name] + 1, MATMULS[operation.name] + 3):
                    type_ = operation.operands[number].type
                    matmuls.append((operation, number, [b for b in known if b.results[0].type == type_]))
            if operation.name == BIND:
                known.append(operation)
                bindings.append(operation)
            for region in operation.regions:
                for inner in region:
                    visit(inner, known)

    visit(module.regions[0].blocks[0], [])
    return bindings, matmuls


# Ways to break a program whatever it is. Each takes what `sites` gives and a function that chooses one of several; it
# returns whether there was something to break.


def remove(bindings, matmuls, choose):
    """Matmuls read a scale that was bound before, or never."""
    binding = choose(bindings)
    binding.results[0].replace_all_uses_with(binding.operands[0])
    binding.erase()
    return True


def bind_other_data(bindings, matmuls, choose):
    binding = choose(bindings)
    with binding.context, ir.InsertionPoint(binding), binding.location:
        binding.operands[1] = tile_create(binding.operands[1].type)
    return True


def invalidate(bindings, matmuls, choose):
    """Something is put into the memory of a matmul's data right before it."""
    matmul, number, _ = choose(matmuls)
    with matmul.context, ir.InsertionPoint(matmul), matmul.location:
        tile_create(matmul.operands[number - 1].type)
    return True


def part(bindings, matmuls, choose):
    """Control flow comes right before a matmul."""
    matmul, _, _ = choose(matmuls)
    with matmul.context, ir.InsertionPoint(matmul), matmul.location:
        region = ir.Operation.create("scf.execute_region", regions=1).regions[0]
        with ir.InsertionPoint(region.blocks.append()):
            ir.Operation.create("scf.yield")
    return True


def use_other_binding(bindings, matmuls, choose):
    """A matmul reads what another binding gave, earlier or around it."""
    pairs = [
        (matmul, number, binding)
        for matmul, number, known in matmuls
        for binding in known
        if binding.results[0] != matmul.operands[number]
    ]
    if pairs:
        matmul, number, binding = choose(pairs)
        matmul.operands[number] = binding.results[0]
    return bool(pairs)


def hoist(bindings, matmuls, choose):
    """A binding moves out of control flow, right before it."""
    loose = [b for b in bindings if b.parent.name != "func.func" and all(_block(v) != b.block for v in b.operands)]
    if loose:
        binding = choose(loose)
        binding.move_before(binding.parent)
    return bool(loose)


def _block(value):
    return value.owner.operation.block if isinstance(value, ir.OpResult) else value.owner


@settings(max_examples=25)
@given(program=tile_programs(), reuse=st.booleans(), seed=st.integers(0, 99))
def test_broken_programs_are_found(program, reuse, seed):
    module = bound(mx_dialect.parse(program.text, context=context()), reuse)
    choose = random.Random(seed).choice
    for break_it in (remove, bind_other_data, invalidate, part, use_other_binding, hoist):
        broken = module.clone()
        bindings, matmuls = sites(broken)
        if bindings and break_it(bindings, matmuls, choose):
            assert complaints(broken), break_it.__name__


def rebind(matmuls, choose):
    """Bind a scale for a matmul, somewhere before it and maybe to other data: the program may or may not be right."""
    matmul, number, known = choose(matmuls)
    scale, data = choose(known).operands[0], choose([matmul.operands[number - 1], choose(known).operands[1]])
    ops = [op.operation for op in matmul.block]
    defined = [
        ops.index(v.owner.operation) for v in (scale, data) if isinstance(v, ir.OpResult) and _block(v) == matmul.block
    ]
    place = choose(ops[max(defined, default=-1) + 1 : ops.index(matmul) + 1])
    with matmul.context, place.location:
        matmul.operands[number] = TgetScaleAddrOp(scale, data, scale.type, ip=ir.InsertionPoint(place)).output


@settings(max_examples=20)
@given(program=tile_programs(), reuse=st.booleans(), seed=st.integers(0, 99))
def test_what_passes_reads_no_wrong_address(program, reuse, seed):
    module = bound(mx_dialect.parse(program.text, context=context()), reuse)
    choose = random.Random(seed).choice
    for _ in range(4):
        changed = module.clone()
        _, matmuls = sites(changed)
        if matmuls:
            rebind(matmuls, choose)
            assert complaints(changed) or wrong_matmul(changed) is None
