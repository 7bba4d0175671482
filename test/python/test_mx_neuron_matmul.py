"""mx-neuron-matmul: kernels on x4 containers compute what the matmul at the value level does, and nothing of padding."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matmul_cases import Case, sums_along_k
from numeric_programs import assert_same_floats, call

import mx_dialect
from mx_dialect import reference

LOOPS = "mx-lower-to-llvm"
TO_LINALG = "mx-neuron-to-linalg"
SMALL = "mx-neuron-matmul{m=8 n=12 k=64}"
PAIRS = (
    ("f8E5M2", "f8E4M3FN"),
    ("f8E4M3FN", "f8E5M2"),
    ("f8E5M2", "f4E2M1FN"),
    ("f4E2M1FN", "f8E5M2"),
    ("f8E4M3FN", "f4E2M1FN"),
)


def lowered(text, to_kernels=SMALL):
    module = mx_dialect.parse(text)
    mx_dialect.run_pipeline(module, to_kernels)
    return module


def run(module, inputs, pipeline=LOOPS, opt_level=0):
    mx_dialect.run_pipeline(module, TO_LINALG)
    (result,) = call(mx_dialect.compile(module, pipeline=pipeline, opt_level=opt_level), inputs)
    return result


def in_order(inputs, transpose_rhs):
    """Return acc + lhs * rhs in f32, summed along K from the accumulator on, each product and each sum rounded."""
    lhs, rhs, *acc = inputs
    if not acc:
        return sums_along_k(lhs, rhs, transpose_rhs)
    values = [reference.dequantize(side).astype(np.float32) for side in (lhs, rhs)]
    a, b = values[0], values[1].swapaxes(-1, -2) if transpose_rhs else values[1]
    total = acc[0]
    for k in range(a.shape[-1]):
        total = total + a[..., :, k : k + 1] * b[..., k : k + 1, :]
    return total


def check(case, inputs, to_kernels=SMALL, opt_level=0):
    actual = run(lowered(case.text, to_kernels), inputs, opt_level=opt_level)
    assert_same_floats(actual, np.broadcast_to(in_order(inputs, case.transpose_rhs), case.acc_shape))


@given(
    st.builds(
        lambda pair, **rest: Case(lhs=pair[0], rhs=pair[1], **rest),
        st.sampled_from(PAIRS),
        m=st.integers(1, 20),
        n=st.integers(1, 30),
        k=st.integers(1, 6).map(lambda blocks: 32 * blocks),
        transpose_rhs=st.booleans(),
        zero=st.booleans(),
    ),
    st.integers(0, 1000),
)
@settings(max_examples=5, deadline=None)
def test_random_problems(case, seed):
    check(case, case.inputs(seed))


def test_full_tiles_and_every_remainder():
    """With the tiles that the engine has: 128 of 131 rows, 512 of 520 columns, 512 of 544 along K."""
    case = Case(m=131, n=520, k=544, rhs="f4E2M1FN", transpose_rhs=True)
    check(case, case.inputs(), "mx-neuron-matmul", opt_level=1)


@pytest.mark.parametrize("pair", [PAIRS[2], PAIRS[3]])
def test_special_values(pair):
    """NaNs and infinities reach the rows and columns they reach at the value level; one row of the last tile is padding."""
    case = Case(m=11, n=40, k=64, lhs=pair[0], rhs=pair[1])
    inputs = case.inputs(special=True)
    expected = sums_along_k(*inputs, case.transpose_rhs)
    assert 0 < np.isfinite(expected).mean() < 1
    assert_same_floats(run(lowered(case.text, "mx-neuron-matmul{m=8 n=12 k=32}"), inputs), expected)


@pytest.mark.parametrize(
    ("lhs_batch", "rhs_batch", "acc_batch", "zero"),
    [((2, 1), (3,), (2, 3), True), ((), (2,), (2,), False), ((1,), (1,), (2, 1), True), ((2,), (), (2,), False)],
)
def test_batches(lhs_batch, rhs_batch, acc_batch, zero):
    batches = {"lhs_batch": lhs_batch, "rhs_batch": rhs_batch, "acc_batch": acc_batch}
    case = Case(m=5, n=7, k=96, transpose_rhs=True, zero=zero, **batches)
    check(case, case.inputs())


# NaN, or the code of a NaN, as what nothing was written to may hold.
GARBAGE = {"f32": "0x7FC00000", "f8E4M3FN": "0xFF", "f8E5M2": "0xFF"}


def with_garbage(module):
    """Return a module whose every tensor.empty is a constant of garbage."""

    def constant(match):
        element = match[2]
        return f"arith.constant dense<{GARBAGE.get(element, -1)}> : tensor<{match[1]}{element}>"

    text, count = re.subn(r"tensor\.empty\(\) : tensor<((?:\d+x)*)(\w+)>", constant, mx_dialect.to_asm(module))
    assert count
    assert "tensor.empty" not in text
    return mx_dialect.parse(text)


@pytest.mark.parametrize("zero", [True, False])
@pytest.mark.parametrize(
    ("m", "k", "batch"),
    [(5, 32, ()), (16, 64, ()), (19, 224, (2,))],
)
def test_what_an_empty_tensor_holds_reaches_nothing(m, k, batch, zero):
    """One tile of K, a whole tile, several and a rest; odd and even rows; kernels that add and that do not."""
    case = Case(m=m, n=14, k=k, zero=zero, lhs_batch=batch, acc_batch=batch)
    inputs = case.inputs()
    expected = np.broadcast_to(in_order(inputs, case.transpose_rhs), case.acc_shape)
    kernels = with_garbage(lowered(case.text))
    mx_dialect.run_pipeline(kernels, TO_LINALG)
    assert_same_floats(run(with_garbage(kernels), inputs), expected)


def test_vectorized():
    """In vectors sums have another order, and stay within the bound."""
    case = Case(m=33, n=48, k=160, rhs="f4E2M1FN", zero=False)
    inputs = case.inputs()
    actual = run(lowered(case.text, "mx-neuron-matmul"), inputs, "mx-lower-to-llvm-vectorized")
    assert (np.abs(actual - reference.matmul(*inputs)) <= reference.matmul_bound(*inputs)).all()


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
    inputs = case.inputs()
    f, g = np.float32(0.3), np.float32(-7.1)
    actual = run(lowered(text), [*inputs, np.array(f), np.array(g)])
    assert_same_floats(actual, inputs[2] + sums_along_k(*inputs[:2], False) * f * g)


def test_a_matmul_of_a_matmul():
    """The accumulator of one is the result of another, and both share a kernel. The argument stays what it was."""
    case = Case(m=20, n=40, k=64, zero=False)
    a, b, c = *(spec.custom() for spec in case.specs), "tensor<20x40xf32>"
    module = lowered(f"""
        func.func @f(%a: {a}, %b: {b}, %acc: {c}) -> {c} {{
          %0 = mx.block_matmul %a, %b, %acc : {a}, {b}, {c} -> {c}
          %1 = mx.block_matmul %a, %b, %0 : {a}, {b}, {c} -> {c}
          return %1 : {c}
        }}""")
    assert mx_dialect.to_asm(module).count("func.func private") == 1
    inputs = case.inputs()
    before = inputs[2].copy()
    once = in_order(inputs, False)
    assert_same_floats(run(module, inputs), in_order([*inputs[:2], once], False))
    np.testing.assert_array_equal(inputs[2], before)


def test_generic_passes_in_between():
    """What canonicalize, cse and loop-invariant-code-motion make of a program changes no result."""
    case = Case(m=19, n=30, k=224, rhs="f4E2M1FN", transpose_rhs=True)
    module = lowered(case.text)
    mx_dialect.run_pipeline(module, "canonicalize,cse,loop-invariant-code-motion")
    inputs = case.inputs()
    assert_same_floats(run(module, inputs), sums_along_k(*inputs, case.transpose_rhs))
