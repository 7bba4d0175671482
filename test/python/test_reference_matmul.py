"""The numpy reference: matmul against exact rational arithmetic, and its error bound."""

from fractions import Fraction
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference_checks import FLOATS, all_codes, f32, from_bits, normal, quantize_nvfp4
from strategies import float_blocks

from mx_dialect import reference


def exact_matmul(a, b, acc):
    """Return acc + a @ b of 2-D arrays as Fractions."""
    return [
        [
            Fraction(float(acc[m, n]))
            + sum(Fraction(float(p)) * Fraction(float(q)) for p, q in zip(a[m], b[:, n], strict=True))
            for n in range(b.shape[1])
        ]
        for m in range(a.shape[0])
    ]


@pytest.mark.parametrize("a_type", ["f32", *oracle.ELEMENT_TYPES])
@pytest.mark.parametrize("b_type", ["f32", *oracle.ELEMENT_TYPES])
def test_matmul_is_the_product_of_the_dequantized_operands(a_type, b_type):
    a, b, acc = normal(5, 3, 8), normal(6, 8, 2), normal(7, 3, 2)
    left, right, a_values, b_values = a, b, a, b
    if a_type != "f32":
        left = reference.quantize(a, a_type, 4)
        a_values = reference.dequantize(left)
    if b_type != "f32":
        right = reference.quantize(b, b_type, 4, axis=0)
        b_values = reference.dequantize(right)
    expected = exact_matmul(a_values, b_values, acc)
    actual = reference.matmul(left, right, acc)
    assert actual.dtype == np.float64
    total = np.abs(a_values.astype(float)) @ np.abs(b_values.astype(float)) + np.abs(acc)
    for m, n in np.ndindex(actual.shape):
        assert abs(Fraction(float(actual[m, n])) - expected[m][n]) <= 9 * Fraction(2) ** -52 * Fraction(total[m, n])


def test_matmul_takes_every_spelling_of_an_operand():
    a, b = normal(8, 4, 64), normal(9, 64, 4)
    qa, qb = reference.quantize(a, block_size=16), reference.quantize(b, axis=0)
    expected = reference.matmul(reference.dequantize(qa), reference.dequantize(qb))
    other = SimpleNamespace(mantissa=qa.mantissa, scale=qa.scale, block_size=16, axis=-1)
    for left in (qa, (*qa, 16), other):
        for right in (qb, tuple(qb), (*qb, 32)):
            np.testing.assert_array_equal(reference.matmul(left, right), expected)
    half = a.astype(np.float16)
    np.testing.assert_array_equal(reference.matmul(half, b), reference.matmul(half.astype(np.float32), b))


def test_matmul_of_a_transposed_side():
    a, b, acc = normal(8, 2, 3, 64), normal(9, 4, 64), normal(10, 2, 3, 4)
    qa, qb = reference.quantize(a, "f4E2M1FN"), quantize_nvfp4(b)
    for right in (b, qb, (qb.mantissa, qb.scale, 16)):
        values = right if right is b else reference.dequantize(qb)
        for function in (reference.matmul, reference.matmul_bound):
            actual = function(qa, right, acc, transpose_rhs=True)
            np.testing.assert_array_equal(actual, function(qa, values.swapaxes(-1, -2), acc))


def test_matmul_broadcasts_to_the_accumulator():
    a, b, acc = normal(8, 1, 3, 32), normal(9, 32, 4), normal(10, 5, 2, 3, 4)
    actual = reference.matmul(reference.quantize(a), b, acc)
    assert actual.shape == acc.shape
    np.testing.assert_array_equal(actual, reference.matmul(reference.quantize(a), b) + acc)


def test_matmul_keeps_what_exceeds_float32():
    """Scales of 2^127 and 2^-127 cancel, though 448 * 2^127 is no float32."""
    ones = np.full((1, 2), 0x7E, np.uint8).view(ml_dtypes.float8_e4m3fn)
    a, b = (ones, np.full((1, 1), 254, np.uint8), 2), (ones.T, np.zeros((1, 1), np.uint8), 2)
    assert reference.matmul(a, b) == 2 * 448 * 448
    assert np.isinf(reference.dequantize(*a[:2], block_size=2)).all()
    assert np.isinf(reference.matmul_bound(a, b))
    assert reference.matmul_bound(a, b, scale_products="exponent") == pytest.approx(6 * 2.0**-24 * 2 * 448 * 448)


def test_matmul_broadcasts_batches_as_numpy():
    a, b = normal(10, 2, 1, 3, 32), normal(11, 5, 32, 4)
    qa, qb = reference.quantize(a), reference.quantize(b, axis=-2)
    actual, bound = reference.matmul(qa, qb), reference.matmul_bound(qa, qb)
    assert actual.shape == bound.shape == (2, 5, 3, 4)
    for i, j in np.ndindex(2, 5):
        np.testing.assert_allclose(
            actual[i, j], reference.matmul(reference.dequantize(qa)[i, 0], reference.dequantize(qb)[j]), rtol=1e-12
        )


def test_matmul_of_nothing_is_the_accumulator():
    acc = normal(12, 3, 2)
    empty = reference.quantize(np.zeros((3, 0), np.float32)), reference.quantize(np.zeros((0, 2), np.float32), axis=0)
    np.testing.assert_array_equal(reference.matmul(*empty, acc), acc.astype(np.float64))
    np.testing.assert_array_equal(reference.matmul(*empty), np.zeros((3, 2)))


def test_a_nan_scale_reaches_its_row_alone():
    a = np.ones((2, 64), np.float32)
    a[0, 40] = np.inf
    result = reference.matmul(reference.quantize(a), np.ones((64, 3), np.float32))
    assert np.isnan(result[0]).all()
    np.testing.assert_array_equal(result[1], [64, 64, 64])


def test_infinite_products_are_ieee():
    a = np.array([[0x7C, 0x3C], [0xFC, 0x7C]], np.uint8).view(ml_dtypes.float8_e5m2)
    left = (a, np.full((2, 1), 127, np.uint8), 2)
    result = reference.matmul(left, f32(1, 1)[:, None])
    np.testing.assert_array_equal(result, [[np.inf], [np.nan]])


def test_a_signalling_nan_is_a_nan():
    result = reference.matmul(from_bits(0x7F800001)[:, None], f32(1)[:, None])
    assert np.isnan(result).all()


def sums_in_float32(terms):
    """Yield float32 sums of float32 terms: forwards, backwards, in pairs, and in a random order."""
    shuffled = np.random.default_rng(0).permutation(terms)
    for order in (terms, terms[::-1], shuffled):
        total = np.float32(0)
        for term in order:
            total = np.float32(total + term)
        yield total
    pairs = list(terms)
    while len(pairs) > 1:
        pairs = [np.sum(pairs[i : i + 2], dtype=np.float32) for i in range(0, len(pairs), 2)]
    yield pairs[0]


@given(st.data(), st.integers(1, 12))
def test_float32_sums_in_any_order_are_within_the_bound(data, extent):
    a, b = data.draw(float_blocks(extent)), data.draw(float_blocks(extent))
    acc = data.draw(float_blocks(1))
    expected = reference.matmul(a[None], b[:, None], acc[None])[0, 0]
    bound = reference.matmul_bound(a[None], b[:, None], acc[None])[0, 0]
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        products = a * b
        for result in sums_in_float32(np.concatenate([acc, products])):
            assert np.isinf(bound) or abs(float(result) - expected) <= bound


def test_the_bound_by_hand():
    ones = np.ones((1, 6), np.float32)
    rounded = Fraction(8, 2**24)
    exact = rounded / (1 - rounded) * 6 + 6 * Fraction(2) ** -149
    assert reference.matmul_bound(ones, ones.T)[0, 0] == pytest.approx(float(exact), rel=1e-12)
    with_acc = reference.matmul_bound(ones, ones.T, f32(-6)[None])[0, 0]
    assert with_acc == pytest.approx(2 * float(exact), rel=1e-12)


def test_the_bound_catches_one_lost_product():
    a, b = normal(13, 16, 256), normal(14, 256, 16)
    wrong = a.copy()
    wrong[:, 17] = 0
    error = np.abs(reference.matmul(wrong, b) - reference.matmul(a, b))
    assert (error > reference.matmul_bound(a, b)).mean() > 0.9


def test_the_bound_of_exponents_claims_nothing_where_an_element_times_a_float_is_not_normal():
    one = np.ones((1, 1), ml_dtypes.float8_e5m2), np.full((1, 1), 127, np.uint8), 1

    def is_finite(x, **options):
        return bool(np.isfinite(reference.matmul_bound(one, f32(x)[None], **options))[0, 0])

    for x in (0.0, 2.0**-110, -(2.0**88), 1.0):
        assert is_finite(x, scale_products="exponent")
    for x in (2.0**-111, -(2.0**89), np.inf, np.nan):
        assert not is_finite(x, scale_products="exponent")
    assert is_finite(2.0**-149)
    assert is_finite(2.0**126)


def float32_exponent_matmul(a, b, acc):
    """Return acc + A @ B of one row and column: float32 dot products of the elements of blocks, then their scales."""
    (a_elements, a_scales), (b_elements, b_scales) = a, b
    total = np.float32(acc)
    for i, a_scale in enumerate(a_scales):
        dot = np.float32(0)
        for x, y in zip(a_elements[i], b_elements[i], strict=True):
            dot = np.float32(dot + np.float32(np.float32(x) * np.float32(y)))
        total = np.float32(total + np.float32(np.ldexp(dot.astype(np.float64), a_scale + b_scales[i])))
    return total


@given(st.data(), st.sampled_from(FLOATS), st.sampled_from(FLOATS), st.integers(1, 4), st.integers(0, 2))
def test_float32_sums_of_scaled_blocks_are_within_the_bound(data, a_type, b_type, blocks, log_size):
    size = 1 << log_size
    sides, operands = [], []
    for element_type, axis in ((a_type, -1), (b_type, 0)):
        finite = [
            c for c in all_codes(element_type).tolist() if np.isfinite(reference.decode(np.uint8([c]), element_type)[0])
        ]
        codes = np.uint8([[data.draw(st.sampled_from(finite)) for _ in range(size)] for _ in range(blocks)])
        scales = np.uint8([data.draw(st.integers(0, 254)) for _ in range(blocks)])
        sides.append((reference.decode(codes, element_type), scales.astype(int) - 127))
        mantissa = codes.reshape(1, -1).view(oracle.TABLE[element_type].dtype)
        operands.append((mantissa, scales[None], size) if axis else (mantissa.T, scales[:, None], size))
    acc = data.draw(float_blocks(1))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        result = float(float32_exponent_matmul(*sides, acc[0]))
    expected = reference.matmul(*operands, acc[None])[0, 0]
    bound = reference.matmul_bound(*operands, acc[None], scale_products="exponent")[0, 0]
    assert np.isinf(bound) or abs(result - expected) <= bound


def test_the_bound_claims_nothing_where_float32_overflows():
    huge = f32(2.0**100)[None]
    assert reference.matmul_bound(huge, huge) == np.inf
    assert reference.matmul_bound(f32(np.nan)[None], f32(1)[None]) == np.inf
    assert np.isfinite(reference.matmul_bound(huge, f32(2.0**26)[None]))
    # The exact sum, 2^128 - 2^103, is below 2^128, but float32 rounds it to Inf.
    halves = f32(2.0**127, 2.0**127 - 2.0**103)[None]
    with np.errstate(over="ignore"):
        assert np.isinf(halves[0, 0] + halves[0, 1])
    assert reference.matmul_bound(halves, f32(1, 1)[:, None]) == np.inf


def test_the_bound_covers_subnormal_products():
    """Each product 2^-150 is a tie that rounds to 0: the float32 result is 0, the exact one K * 2^-150."""
    a, b = np.full((1, 8), 2.0**-75, np.float32), np.full((8, 1), 2.0**-75, np.float32)
    assert not (a[0] * b[:, 0]).any()
    assert 0 < reference.matmul(a, b)[0, 0] <= reference.matmul_bound(a, b)[0, 0] < 2.0**-145
