"""Compiled kernels against the numpy reference: every format, rounding, axis, block size, float type and lowering."""

import itertools
import re

import ml_dtypes
import numpy as np
import oracle
import pytest
from numeric_programs import (
    E4M3,
    E8M0,
    F32,
    FLOATS,
    FORMATS,
    NVFP4,
    Matmul,
    Quantize,
    assert_same_floats,
    call,
    codes,
    compiled,
    dequantize_program,
    dequantized,
    hard,
    matmul_program,
    matmuls,
    mx,
    open_extents,
    quantize_program,
    resized,
)

from mx_dialect import MxError, reference
from mx_dialect.reference import Quantized
from mx_dialect.tensor_spec import TensorSpec

LOOPS = "mx-lower-to-llvm"
every_format = pytest.mark.parametrize(("element", "scale"), FORMATS)
every_lowering = pytest.mark.parametrize("scale_products", ["elements", "exponent"])

# The blocked axis first, in the middle and last; the other extents leave remainders for vectors.
SHAPES = ((64, 9, 7), (13, 64, 7), (13, 9, 64))
BLOCK_SIZES = (1, 2, 16, 32, 64)  # The last one is all of the axis.


# Quantize and dequantize


def quantizations(element, scale):
    """Return cases of a format: all pairs of rounding and float type, with axes and block sizes in turn."""
    roundings = ("floor", "floor") if scale == E4M3 else oracle.ROUNDINGS
    blocks = list(itertools.product(BLOCK_SIZES, range(3)))
    turn = 2 * FORMATS.index((element, scale))
    return [
        Quantize(TensorSpec(SHAPES[axis], element, block, scale, axis), floats, rounding)
        for (block, axis), (rounding, floats) in zip(
            blocks[turn:] + blocks[:turn], itertools.product(roundings, FLOATS), strict=False
        )
    ]


def of_rank_2(*shape):
    """Return a case of each format, blocked along either axis of this shape."""
    axes = itertools.cycle([0, 1])
    return [
        Quantize(TensorSpec(shape, element, 32, scale, axis))
        for (element, scale), axis in zip(FORMATS, axes, strict=False)
    ]


def check_quantized(kernel, cases, shapes=None):
    inputs = [
        hard(FLOATS[case.floats], shape, case.spec.axis, seed)
        for seed, (case, shape) in enumerate(zip(cases, shapes or [c.spec.shape for c in cases], strict=True))
    ]
    for case, x, actual in zip(cases, inputs, call(kernel, inputs), strict=True):
        spec = case.spec
        expected = reference.quantize(x, spec.element, spec.block_size, spec.axis, case.rounding, spec.scale_type)
        np.testing.assert_array_equal(codes(actual.scale), codes(expected.scale), err_msg=str(case))
        np.testing.assert_array_equal(codes(actual.mantissa), codes(expected.mantissa), err_msg=str(case))


@every_format
def test_quantize_bits(element, scale):
    cases = quantizations(element, scale)
    check_quantized(compiled(quantize_program(cases), pipeline=LOOPS, opt_level=0), cases)


def test_quantize_bits_in_vectors():
    cases = of_rank_2(96, 96)
    check_quantized(compiled(quantize_program(cases)), cases)


def test_quantize_bits_of_open_extents():
    cases = of_rank_2(None, None)
    kernel = compiled(quantize_program(cases))
    for shape in ((96, 64), (32, 32), (0, 32), (32, 0), (0, 0)):
        check_quantized(kernel, cases, [shape] * len(cases))


def test_quantize_nvfp4_at_ties():
    x = oracle.nvfp4_ties()
    element, block, scale = NVFP4
    (actual,) = call(compiled(quantize_program([Quantize(mx(x.shape, element, block, scale))])), [x])
    expected = reference.quantize(x, element, block, scale_type=scale)
    np.testing.assert_array_equal(codes(actual.scale), codes(expected.scale))
    np.testing.assert_array_equal(codes(actual.mantissa), codes(expected.mantissa))


def any_codes(spec, shape, seed):
    """Return a block-scaled array of any codes, the special ones included."""
    rng = np.random.default_rng(seed)
    actual = TensorSpec(shape, spec.element, spec.block_size, spec.scale_type, spec.axis)
    dtype = reference.numpy_dtype(spec.element)
    bits = 8 if dtype == np.int8 else ml_dtypes.finfo(dtype).bits
    mantissa = rng.integers(0, 1 << bits, shape, dtype=np.uint8).view(dtype)
    scale_dtype = getattr(ml_dtypes, {E8M0: "float8_e8m0fnu", E4M3: "float8_e4m3fn"}[spec.scale_type])
    scale = rng.integers(0, 256, actual.scale_shape, dtype=np.uint8).view(scale_dtype)
    return Quantized(mantissa, scale, spec.block_size, spec.axis, spec.element)


def check_dequantized(kernel, cases, shapes=None):
    inputs = [
        any_codes(case.spec, shape, seed)
        for seed, (case, shape) in enumerate(zip(cases, shapes or [c.spec.shape for c in cases], strict=True))
    ]
    for case, q, actual in zip(cases, inputs, call(kernel, inputs), strict=True):
        assert_same_floats(actual, dequantized(q, FLOATS[case.floats]))


def test_dequantize_bits():
    """Every format along every axis; block sizes and float types take turns."""
    turns = itertools.cycle(itertools.product(BLOCK_SIZES, FLOATS))
    cases = [
        Quantize(TensorSpec(SHAPES[axis], element, block, scale, axis), floats)
        for ((element, scale), axis), (block, floats) in zip(itertools.product(FORMATS, range(3)), turns, strict=False)
    ]
    check_dequantized(compiled(dequantize_program(cases), pipeline=LOOPS, opt_level=0), cases)


def test_dequantize_bits_in_vectors():
    cases = of_rank_2(96, 96)
    check_dequantized(compiled(dequantize_program(cases)), cases)


def test_dequantize_bits_of_open_extents():
    cases = of_rank_2(None, None)
    kernel = compiled(dequantize_program(cases))
    for shape in ((96, 64), (0, 32), (32, 0)):
        check_dequantized(kernel, cases, [shape] * len(cases))


# Matmul


MATMULS = matmuls()
# The first of each kind: two formats, a dense side, NVFP4, and all ways of broadcasting.
SOME = [MATMULS[i] for i in (1, 6, 8, 10, -3, -2, -1)]
STATIC, OPEN = matmul_program(MATMULS), matmul_program([open_extents(case) for case in SOME])


def check_matmuls(kernel, cases, operands, scale_products="elements", exact=False):
    """Compare results with the reference: equal, or within the bound."""
    flat = [operand for case in operands for operand in case]
    for case, (a, b, acc), actual in zip(cases, operands, call(kernel, flat), strict=True):
        expected = reference.matmul(a, b, acc, transpose_rhs=case.transpose_rhs)
        assert (actual.shape, actual.dtype) == (expected.shape, F32)
        if exact:
            assert_same_numbers(actual, expected, case)
            continue
        bound = reference.matmul_bound(a, b, acc, transpose_rhs=case.transpose_rhs, scale_products=scale_products)
        assert np.isfinite(bound).all(), case
        assert (np.abs(actual - expected) <= bound).all(), case


def assert_same_numbers(actual, expected, case):
    """Compare float32 results with exact float64 ones, which float32 must hold; NaN equals NaN."""
    rounded = expected.astype(np.float32)
    np.testing.assert_array_equal(rounded.astype(np.float64), expected)
    np.testing.assert_array_equal(actual, rounded, err_msg=str(case))


def quantized(x, spec):
    return reference.quantize(x, spec.element, spec.block_size, spec.axis, scale_type=spec.scale_type)


def random_operands(case, seed):
    """Return A, B and an accumulator of numbers, A and B with a different magnitude in each row or column."""
    rng = np.random.default_rng(seed)

    def side(given):
        shape = given.shape if isinstance(given, TensorSpec) else given[0]
        x = rng.standard_normal(shape) * np.exp2(rng.integers(-6, 7, (*shape[:-1], 1)))
        return quantized(x.astype(np.float32), given) if isinstance(given, TensorSpec) else x.astype(FLOATS[given[1]])

    return side(case.lhs), side(case.rhs), rng.standard_normal(case.acc).astype(np.float32)


def block_scaled(spec, values, scales):
    """Return a block-scaled array of these exact element values and scales."""
    dtype = reference.numpy_dtype(spec.element)
    mantissa = reference.encode(values, spec.element).view(dtype)
    np.testing.assert_array_equal(reference.decode(mantissa, spec.element), values)
    scale_dtype = ml_dtypes.float8_e8m0fnu if spec.scale_type == E8M0 else ml_dtypes.float8_e4m3fn
    return Quantized(mantissa, scales.astype(scale_dtype), spec.block_size, spec.axis, spec.element)


def integer_operands(case, seed):
    """Return operands of integers of which no sum exceeds 64 * (4 * 4)^2 + 4 < 2^24."""
    rng = np.random.default_rng(seed)

    def side(given):
        if not isinstance(given, TensorSpec):
            return rng.integers(-16, 17, given[0]).astype(FLOATS[given[1]])
        largest = 1 if given.element == "i8" else 4
        values = rng.integers(-largest, largest + 1, given.shape).astype(np.float64)
        return block_scaled(given, values, rng.choice([1.0, 2.0, 4.0], given.scale_shape))

    return side(case.lhs), side(case.rhs), rng.integers(-4, 5, case.acc).astype(np.float32)


def power_operands(case, seed):
    """Return operands with one product for each result, a power of two; the scales of A and B are far from 1."""
    rng = np.random.default_rng(seed)
    # Two sides of f8E8M0FNU scales cancel; an element times its scale is in range, as both lowerings need it.
    scales = [side.scale_type for side in (case.lhs, case.rhs) if isinstance(side, TensorSpec)]
    far = int(rng.choice([-124, -60, 60, 124])) if scales == [E8M0, E8M0] else 0

    def side(given, exponent, single):
        shape = given.shape if isinstance(given, TensorSpec) else given[0]
        values = rng.choice([-1.0, 1.0], shape)
        if single:
            values *= np.arange(shape[-1]) == rng.integers(0, shape[-1], (*shape[:-1], 1))
        if isinstance(given, TensorSpec):
            return block_scaled(given, values, np.exp2(exponent + rng.integers(-3, 4, given.scale_shape)))
        return (values * np.exp2(rng.integers(-3, 4, shape))).astype(FLOATS[given[1]])

    return side(case.lhs, far, True), side(case.rhs, -far, False), np.zeros(case.acc, np.float32)


def nan_operands(case, seed):
    """Return integer operands of which the second row of A or column of B has a NaN scale, its elements being zero."""
    a, b, acc = integer_operands(case, seed)
    number = (0, 1)[seed % 2] if isinstance(case.lhs, TensorSpec) and isinstance(case.rhs, TensorSpec) else None
    for side, (operand, axis) in enumerate(((a, -2), (b, -2 if case.transpose_rhs else -1))):
        if isinstance(operand, Quantized) and number in (side, None):
            second = (..., 1, slice(None)) if axis == -2 else (..., slice(None), 1)
            codes(operand.scale)[second] = 255 if operand.scale.dtype == ml_dtypes.float8_e8m0fnu else 0x7F
            codes(operand.mantissa)[second] = 0
    assert np.isnan(reference.matmul(a, b, transpose_rhs=case.transpose_rhs)).any()
    return a, b, acc


def extreme_operands(case, seed):
    """Return integer operands of two sides, one with the largest scales and one with the smallest, or zero elements."""
    a, b, acc = integer_operands(case, seed)
    if all(isinstance(x, Quantized) and x.scale.dtype == ml_dtypes.float8_e8m0fnu for x in (a, b)):
        for operand, code in ((a, (254, 0, 254)[seed % 3]), (b, (0, 254, 254)[seed % 3])):
            codes(operand.scale)[...] = code
        if seed % 3 == 2:
            codes(a.mantissa)[...] = 0
    return a, b, acc


def check_operands(kernel, cases, operands, scale_products):
    given = [operands(case, seed) for seed, case in enumerate(cases)]
    check_matmuls(kernel, cases, given, scale_products, exact=operands is not random_operands)


@pytest.mark.parametrize("operands", [random_operands, integer_operands, power_operands, nan_operands])
@every_lowering
def test_matmul(scale_products, operands):
    check_operands(compiled(STATIC, scale_products), MATMULS, operands, scale_products)


def test_matmul_with_scales_as_exponents_has_no_extremes():
    check_operands(compiled(STATIC, "exponent"), MATMULS, extreme_operands, "exponent")


@every_lowering
def test_matmul_unoptimized(scale_products):
    cases = [MATMULS[1], MATMULS[6]]
    kernel = compiled(matmul_program(cases), scale_products, LOOPS, opt_level=0)
    for operands in (integer_operands, power_operands, nan_operands):
        check_operands(kernel, cases, operands, scale_products)


@every_lowering
@pytest.mark.parametrize(("m", "k", "n"), [(5, 64, 7), (2, 128, 33), (0, 64, 7), (5, 0, 7), (5, 64, 0), (0, 0, 0)])
def test_matmul_of_open_extents(m, k, n, scale_products):
    cases = [resized(case, m, k, n) for case in SOME]
    for operands in (random_operands, integer_operands, *((nan_operands,) if m * k * n else ())):
        check_operands(compiled(OPEN, scale_products), cases, operands, scale_products)


@pytest.mark.parametrize("shape", [(5, 1, 7), (8, 1, 64), (5, 64, 7), (32, 32, 32)])
def test_an_accumulator_used_twice(shape):
    """Both results are returned, so that one of them needs a buffer of its own."""
    m, k, n = shape
    case = Matmul(mx((m, k), "f8E4M3FN", min(k, 32)), ((k, n), "f32"), (m, n))
    a, b, acc = case.types
    kernel = compiled(
        f"""func.func @f(%a: {a}, %b: {b}, %acc: {acc}) -> ({acc}, {acc}) {{
              %0 = mx.block_matmul %a, %b, %acc : {a}, {b}, {acc} -> {acc}
              %1 = mx.block_matmul %a, %b, %0 : {a}, {b}, {acc} -> {acc}
              return %0, %1 : {acc}, {acc}
            }}"""
    )
    left, right, start = integer_operands(case, 0)
    once, twice = call(kernel, (left, right, start))
    np.testing.assert_array_equal(once, reference.matmul(left, right, start))
    np.testing.assert_array_equal(twice, 2 * reference.matmul(left, right) + start)


# Open extents that do not fit, and constants


@pytest.mark.parametrize("operation", ["quantize", "matmul"])
def test_an_open_k_of_partial_blocks_is_refused_before_native_code(operation, monkeypatch):
    shape, shapes = (None, None), ((3, 40), (40, 2), (3, 2))
    if operation == "quantize":
        kernel = compiled(quantize_program([Quantize(mx(shape, "f4E2M1FN"))]))
        operands = [np.ones(shapes[0], np.float32)]
    else:
        kernel = compiled(matmul_program([Matmul(mx(shape, "f4E2M1FN"), (shape, "f32"), shape)]))
        operands = [np.ones(shapes[0], np.uint8), np.ones((3, 1), np.uint8)]
        operands += [np.ones(shape, np.float32) for shape in shapes[1:]]
    called = []
    monkeypatch.setattr(kernel, "_function", called.append)
    with pytest.raises(MxError, match=re.escape("multiple of") + ".*32"):
        kernel(*operands)
    assert not called


def constant(array, type_, resource):
    """Return (value of an arith.constant of these bytes, its resource or nothing)."""
    if resource is None:
        return f'dense<"0x{array.tobytes().hex().upper()}"> : {type_}', ""
    # Four bytes that say how it is aligned come first.
    return f"dense_resource<{resource}> : {type_}", f'{resource}: "0x01000000{array.tobytes().hex().upper()}"'


@pytest.mark.parametrize("opt_level", [0, 3])
@pytest.mark.parametrize("in_resources", [False, True])
@pytest.mark.parametrize(("element", "code_type"), [("f8E4M3FN", "f8E4M3FN"), ("f4E2M1FN", "i8"), ("i8", "i8")])
def test_constant_weights(element, code_type, in_resources, opt_level):
    """One scale is NaN."""
    weights, n, k = mx((6, 64), element), 6, 64
    q = quantized(np.random.default_rng(7).standard_normal((n, k)).astype(np.float32), weights)
    codes(q.scale)[2, 1] = 255
    parts = (f"tensor<{n}x{k}x{code_type}>", f"tensor<{n}x2x{E8M0}>")
    values, resources = zip(
        *(
            constant(codes(array), type_, name if in_resources else None)
            for array, type_, name in zip((q.mantissa, q.scale), parts, ("elements", "scales"), strict=True)
        ),
        strict=True,
    )
    kernel = compiled(
        f"""func.func @f(%x: tensor<3x{k}xf32>, %acc: tensor<3x{n}xf32>) -> (tensor<3x{n}xf32>, tensor<{n}x{k}xf32>) {{
              %m = arith.constant {values[0]}
              %s = arith.constant {values[1]}
              %w = mx.compose %m, %s : {", ".join(parts)} -> {weights.custom()}
              %0 = mx.block_matmul %x, %w, %acc {{transpose_rhs}} : tensor<3x{k}xf32>, {weights.custom()}, tensor<3x{n}xf32> -> tensor<3x{n}xf32>
              %1 = mx.dequantize_block %w : {weights.custom()} -> tensor<{n}x{k}xf32>
              return %0, %1 : tensor<3x{n}xf32>, tensor<{n}x{k}xf32>
            }}
            {"{-# dialect_resources: { builtin: { " + ", ".join(resources) + " } } #-}" if in_resources else ""}""",
        opt_level=opt_level,
    )
    case = Matmul(((3, k), "f32"), weights, (3, n), True)
    x, _, acc = integer_operands(case, 1)
    product, values = kernel(x, acc)
    assert_same_floats(values, reference.dequantize(q))
    expected = reference.matmul(x, q, acc, transpose_rhs=True)
    bound = reference.matmul_bound(x, q, acc, transpose_rhs=True)
    np.testing.assert_array_equal(np.isnan(product), np.isnan(expected))
    real = ~np.isnan(expected)
    assert (np.abs(product - expected) <= bound)[real].all()
    assert np.isfinite(bound[real]).all()
    assert np.isnan(expected[:, 2]).all()
    assert real[:, [0, 1, 3, 4, 5]].all()
