"""mx-tile-matmul: one matmul at the value level, on tiles, after each pass of the tile level, and in numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matmul_cases import Case, sums_along_k
from numeric_programs import assert_same_floats, call

import mx_dialect
from mx_dialect import pipelines, reference

LOOPS = "mx-lower-to-llvm"
ELEMENTS = ("f8E4M3FN", "f4E2M1FN")


def stages():
    """Return what is run at each stage: nothing, mx-tile-matmul, and then one more pass of the pipeline each time."""
    return ["value level", "mx-tile-matmul", *pipelines.PIPELINES["mx-tile-pipeline"].stages]


def first_and_last():
    """Return the stages that a program is run at where it is one of many."""
    return [stages()[1], stages()[-1]]


def results(case, inputs, at=None, pipeline=LOOPS, opt_level=0):
    """Return what the program computes after each of the stages `at`, all unless given, by the name of the stage."""
    found = {}
    module = mx_dialect.parse(case.text)
    for stage in stages():
        if stage != "value level":
            mx_dialect.run_pipeline(module, case.tile_pass if stage == "mx-tile-matmul" else stage)
        if at is not None and stage not in at:
            continue
        plain = mx_dialect.parse(mx_dialect.to_asm(module))
        mx_dialect.run_pipeline(plain, "mx-tile-to-linalg")
        (found[stage],) = call(mx_dialect.compile(plain, pipeline=pipeline, opt_level=opt_level), inputs)
    return found


def check(case, inputs, at=None):
    """Check stages, all unless given: against its order of summation to the bit where the accumulator is zero, else to the bound."""
    lhs, rhs, *acc = inputs
    exact = reference.matmul(lhs, rhs, *acc, transpose_rhs=case.transpose_rhs)
    bound = reference.matmul_bound(lhs, rhs, *acc, transpose_rhs=case.transpose_rhs)
    product = sums_along_k(lhs, rhs, case.transpose_rhs)
    product = np.broadcast_to(product, case.acc_shape)
    for stage, actual in results(case, inputs, at).items():
        if case.zero:
            assert_same_floats(actual, product)
        elif stage != "value level":
            assert_same_floats(actual, acc[0] + product)
        assert not (np.abs(actual - exact) > bound).any(), stage


@given(
    st.builds(
        Case,
        m=st.integers(1, 50),
        n=st.integers(1, 70),
        k=st.integers(1, 9).map(lambda blocks: 32 * blocks),
        lhs=st.sampled_from(ELEMENTS),
        rhs=st.sampled_from(ELEMENTS),
        transpose_rhs=st.booleans(),
        zero=st.booleans(),
        tile=st.tuples(st.sampled_from([16, 32]), st.sampled_from([32, 64]), st.sampled_from([64, 128])),
    ),
    st.integers(0, 1000),
)
@settings(max_examples=5)
def test_random_problems(case, seed):
    check(case, case.inputs(seed), first_and_last())


def test_every_remainder_at_once():
    """Several tiles along M, N and K, the last one of each smaller, and one block of K that is padded."""
    case = Case(m=41, n=70, k=416, rhs="f4E2M1FN", transpose_rhs=True)
    check(case, case.inputs())


def test_special_values():
    """NaN elements and scales reach the rows and columns that they reach at the value level, and no others."""
    case = Case(m=20, n=40, k=96, rhs="f4E2M1FN")
    inputs = case.inputs(special=True)
    found = results(case, inputs, [stages()[0], *first_and_last()])
    assert len(found) == 3
    expected = sums_along_k(*inputs, case.transpose_rhs)
    assert 0 < np.isnan(expected).mean() < 1
    for actual in found.values():
        assert_same_floats(actual, expected)


@pytest.mark.parametrize(
    ("lhs_batch", "rhs_batch", "acc_batch"),
    [((2, 1), (3,), (2, 3)), ((), (2,), (2,)), ((1,), (1,), (2, 1))],
)
def test_batches(lhs_batch, rhs_batch, acc_batch):
    case = Case(m=5, n=7, k=96, lhs_batch=lhs_batch, rhs_batch=rhs_batch, acc_batch=acc_batch, transpose_rhs=True)
    check(case, case.inputs(), first_and_last())


def test_vectorized():
    """In vectors sums have another order, and stay within the bound."""
    case = Case(m=40, n=96, k=160, zero=False)
    inputs = case.inputs()
    bound = reference.matmul_bound(*inputs)
    exact = reference.matmul(*inputs)
    actual = results(case, inputs, first_and_last(), pipeline="mx-lower-to-llvm-vectorized")
    assert len(actual) == 2
    for stage, values in actual.items():
        assert (np.abs(values - exact) <= bound).all(), stage


def test_folded_factors():
    """Factors multiply the product, one after the other, before the accumulator is added."""
    case = Case(m=20, n=40, k=64, zero=False)
    a, b, c = *(spec.custom() for spec in case.specs), "tensor<20x40xf32>"
    text = f"""
        func.func @f(%a: {a}, %b: {b}, %acc: {c}, %f: f32, %g: f32) -> {c} {{
          %0 = mx.fold_scale %a, %f : {a}, f32 -> {a}
          %1 = mx.fold_scale %b, %g : {b}, f32 -> {b}
          %2 = mx.block_matmul %0, %1, %acc : {a}, {b}, {c} -> {c}
          return %2 : {c}
        }}"""
    module = mx_dialect.parse(text)
    mx_dialect.run_pipeline(module, f"{case.tile_pass},mx-tile-to-linalg")
    inputs = case.inputs()
    f, g = np.float32(0.3), np.float32(-7.1)
    (actual,) = call(mx_dialect.compile(module, pipeline=LOOPS, opt_level=0), [*inputs, np.array(f), np.array(g)])
    assert_same_floats(actual, inputs[2] + sums_along_k(*inputs[:2], False) * f * g)


def test_a_matmul_of_a_matmul():
    """The accumulator of one is the result of another, and both share a kernel."""
    case = Case(m=20, n=40, k=64, zero=False)
    a, b, c = *(spec.custom() for spec in case.specs), "tensor<20x40xf32>"
    text = f"""
        func.func @f(%a: {a}, %b: {b}, %acc: {c}) -> {c} {{
          %0 = mx.block_matmul %a, %b, %acc : {a}, {b}, {c} -> {c}
          %1 = mx.block_matmul %a, %b, %0 : {a}, {b}, {c} -> {c}
          return %1 : {c}
        }}"""
    module = mx_dialect.parse(text)
    mx_dialect.run_pipeline(module, case.tile_pass)
    assert mx_dialect.to_asm(module).count("mx.kernel") == 1
    mx_dialect.run_pipeline(module, "mx-tile-to-linalg")
    inputs = case.inputs()
    product = sums_along_k(*inputs[:2], False)
    (actual,) = call(mx_dialect.compile(module, pipeline=LOOPS, opt_level=0), inputs)
    assert_same_floats(actual, inputs[2] + product + product)


def test_generic_passes_in_between():
    """What canonicalize, cse and loop-invariant-code-motion make of a program changes neither proofs nor results."""
    case = Case(m=41, n=70, k=416, rhs="f4E2M1FN", transpose_rhs=True)
    inputs = case.inputs()
    module = mx_dialect.parse(case.text)
    for stage in (case.tile_pass, *stages()[2:]):
        mx_dialect.run_pipeline(module, f"{stage},canonicalize,cse,loop-invariant-code-motion")
    mx_dialect.run_pipeline(module, "mx-verify-scale-binding,mx-tile-to-linalg")
    (actual,) = call(mx_dialect.compile(module, pipeline=LOOPS, opt_level=0), inputs)
    assert_same_floats(actual, sums_along_k(*inputs, case.transpose_rhs))
