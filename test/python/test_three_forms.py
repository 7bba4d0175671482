"""One source program in three forms: at the value level, on tiles of an A5-like engine, on x4 containers of a Neuron-style one."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from matmul_cases import Case, sums_along_k
from numeric_programs import assert_same_floats, call

import mx_dialect
from mx_dialect import reference

LOOPS = "mx-lower-to-llvm"
VECTORS = "mx-lower-to-llvm-vectorized"
# What both engines multiply; of two FP4 sides neither could be the Neuron engine's activations.
ELEMENTS = (("f8E4M3FN", "f8E4M3FN"), ("f8E4M3FN", "f4E2M1FN"), ("f4E2M1FN", "f8E4M3FN"))


def forms(case):
    """Return the passes to each form, by its name. Tiles are small, so that there are several."""
    return {
        "cpu": "",
        "a5": f"{case.tile_pass},mx-tile-pipeline,mx-tile-to-linalg",
        "neuron": "mx-neuron-matmul{m=16 n=24 k=128},mx-neuron-to-linalg",
    }


def results(case, inputs, pipeline=LOOPS):
    """Return what the source program of a case computes in each form."""
    found = {}
    for form, passes in forms(case).items():
        module = mx_dialect.parse(case.text)
        mx_dialect.run_pipeline(module, passes)
        (found[form],) = call(mx_dialect.compile(module, pipeline=pipeline, opt_level=0), inputs)
    return found


def check_bits(case, inputs):
    """Demand sums along K in order, from zero or from the accumulator, to the bit in loops."""
    lhs, rhs, *acc = inputs
    found = results(case, inputs)
    product = np.broadcast_to(sums_along_k(lhs, rhs, case.transpose_rhs), case.acc_shape)
    if case.zero:
        for actual in found.values():
            assert_same_floats(actual, product)
        return
    # The A5 engine's accumulators start from zero; there the sum with the given one is the last.
    assert_same_floats(found["neuron"], found["cpu"])
    assert_same_floats(found["a5"], acc[0] + product)
    check_bounds(case, inputs, found)


def check_bounds(case, inputs, found):
    exact = reference.matmul(*inputs, transpose_rhs=case.transpose_rhs)
    bound = reference.matmul_bound(*inputs, transpose_rhs=case.transpose_rhs)
    for form, actual in found.items():
        assert (np.abs(actual - exact) <= bound).all(), form


@given(
    st.builds(
        lambda elements, **rest: Case(lhs=elements[0], rhs=elements[1], **rest),
        st.sampled_from(ELEMENTS),
        m=st.integers(1, 40),
        n=st.integers(1, 60),
        k=st.integers(1, 9).map(lambda blocks: 32 * blocks),
        transpose_rhs=st.booleans(),
        zero=st.booleans(),
    ),
    st.integers(0, 1000),
)
@settings(max_examples=3, deadline=None)
def test_random_problems(case, seed):
    check_bits(case, case.inputs(seed))


def test_every_remainder_at_once():
    check_bits(
        case := Case(m=35, n=70, k=416, rhs="f4E2M1FN", transpose_rhs=True, lhs_batch=(2, 1), acc_batch=(2, 1)),
        case.inputs(),
    )


def test_special_values():
    """NaN elements and scales reach the rows and columns that they reach at the value level, and no others."""
    case = Case(m=19, n=40, k=96, rhs="f4E2M1FN")
    inputs = case.inputs(special=True)
    expected = sums_along_k(*inputs, case.transpose_rhs)
    assert 0 < np.isnan(expected).mean() < 1
    for actual in results(case, inputs).values():
        assert_same_floats(actual, expected)


def test_vectorized():
    """In vectors sums have another order in each form, and stay within the bound."""
    case = Case(m=17, n=64, k=160, zero=False)
    inputs = case.inputs()
    check_bounds(case, inputs, results(case, inputs, VECTORS))
