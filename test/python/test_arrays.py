"""The array API against the numpy reference: bit for bit, or within the bound of a matmul."""

import itertools
import re

import ml_dtypes
import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import ROUNDINGS, float_blocks

import mx_dialect
from mx_dialect import MxArray, MxError, reference

F8 = ml_dtypes.float8_e4m3fn
SCALE = ml_dtypes.float8_e8m0fnu
FLOATS = (np.float32, np.float16, ml_dtypes.bfloat16)


def fail(message, function, *arguments, **options):
    with pytest.raises(MxError, match=re.escape(message)):
        function(*arguments, **options)


def random(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def assert_same_bits(result, expected):
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(result.view(np.uint8), expected.view(np.uint8))


def nvfp4(x, axis=-1):
    return mx_dialect.quantize(x, "f4E2M1FN", 16, axis, scale_type="f8E4M3FN")


def assert_quantized(result, expected):
    assert (result.axis, result.block_size, result.element_type) == (
        expected.axis,
        expected.block_size,
        expected.element_type,
    )
    assert_same_bits(result.scale, expected.scale)
    assert_same_bits(result.mantissa, expected.mantissa)


def assert_within_bound(result, a, b, acc=None, **options):
    expected, bound = reference.matmul(a, b, acc, **options), reference.matmul_bound(a, b, acc, **options)
    assert (result.shape, result.dtype) == (expected.shape, np.float32)
    assert np.isfinite(bound).all()
    assert (np.abs(result - expected) <= bound).all()


class TestMxArray:
    def test_attributes(self):
        q = MxArray(np.zeros((2, 64, 3), F8), np.ones((2, 4, 3), SCALE), block_size=16, axis=1)
        assert (q.shape, q.ndim, q.axis, q.block_size, q.element_type) == ((2, 64, 3), 3, 1, 16, "f8E4M3FN")
        assert repr(q) == "MxArray(!mx.tensor<2x64x3xf8E4M3FN, block_size = 16, scale_type = f8E8M0FNU, axis = 1>)"

    def test_axis_counts_from_the_front(self):
        assert MxArray(np.zeros((2, 64), F8), np.ones((2, 2), SCALE)).axis == 1
        assert MxArray(np.zeros((64, 2), F8), np.ones((2, 2), SCALE), axis=-2).axis == 0

    @pytest.mark.parametrize("element_type", oracle.ELEMENT_TYPES)
    def test_codes(self, element_type):
        codes = np.arange(32, dtype=np.uint8) % 16
        dtype = oracle.TABLE[element_type].dtype
        q = MxArray(codes, np.array([127], np.uint8), element_type=element_type)
        assert q.mantissa.dtype == dtype
        assert q.scale.dtype == SCALE
        assert q.mantissa.view(np.uint8).tolist() == codes.tolist()
        typed = MxArray(codes.view(dtype), q.scale)
        assert typed.element_type == element_type

    def test_scale_types(self):
        mantissa, ones = np.zeros(32, F8), np.full(2, 0x38, np.uint8)
        typed = MxArray(mantissa, ones.view(F8), 16)
        coded = MxArray(mantissa, ones, 16, scale_type="f8E4M3FN")
        for q in (typed, coded):
            assert (q.scale_type, q.scale.dtype) == ("f8E4M3FN", F8)
            assert q.scale.astype(np.float32).tolist() == [1, 1]
        assert MxArray(mantissa, ones, 16).scale_type == "f8E8M0FNU"
        assert repr(typed) == "MxArray(!mx.tensor<32xf8E4M3FN, block_size = 16, scale_type = f8E4M3FN>)"

    @pytest.mark.parametrize("element_type", oracle.ELEMENT_TYPES)
    @pytest.mark.parametrize("axis", [0, 1])
    def test_packed(self, element_type, axis):
        q = mx_dialect.quantize(random(32, 64), element_type, axis=axis)
        bits = {"i8": 8}.get(element_type) or ml_dtypes.finfo(q.mantissa.dtype).bits
        packed = q.packed()
        assert (packed.shape, packed.dtype) == ((32, 64 * bits // 8), np.uint8)
        again = MxArray.from_packed(packed, q.scale, element_type, axis=axis)
        assert_quantized(again, q)

    def test_packed_by_hand(self):
        """Two codes of FP4 a byte, the first in the low nibble."""
        codes = np.arange(1, 5, dtype=np.uint8)
        q = MxArray(codes, np.array([0x38], np.uint8), 4, element_type="f4E2M1FN", scale_type="f8E4M3FN")
        assert q.packed().tolist() == [0x21, 0x43]
        again = MxArray.from_packed(q.packed(), q.scale.view(np.uint8), "f4E2M1FN", 4, scale_type="f8E4M3FN")
        assert again.mantissa.view(np.uint8).tolist() == codes.tolist()
        assert again.scale_type == "f8E4M3FN"

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (
                lambda q: q.packed(),
                "the last axis of 4-bit codes to pack must be a multiple of 2, but the shape is (32, 3)",
            ),
            (lambda q: MxArray.from_packed(np.zeros(5, np.uint8), q.scale, "f6E2M3FN"), "must be a multiple of 3"),
            (lambda q: MxArray.from_packed(q.mantissa, q.scale, "f4E2M1FN"), "must have dtype uint8"),
            (lambda q: MxArray.from_packed([0], q.scale, "f4E2M1FN"), "mantissa must be a numpy array, not list"),
            (lambda q: MxArray.from_packed(np.zeros(5, np.uint8), q.scale, "f4"), "'f4' is not an MX element type"),
        ],
    )
    def test_packed_refused(self, call, message):
        fail(message, call, mx_dialect.quantize(random(32, 3), "f4E2M1FN", axis=0))

    def test_is_a_view(self):
        mantissa, scale = np.zeros(32, F8), np.ones(1, SCALE)
        q = MxArray(mantissa, scale)
        assert np.shares_memory(q.mantissa, mantissa)
        assert np.shares_memory(q.scale, scale)

    def test_compared_by_identity(self):
        q = MxArray(np.zeros(32, F8), np.ones(1, SCALE))
        assert q == q
        assert q != MxArray(q.mantissa, q.scale)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ((np.zeros(32, np.uint8), np.ones(1, SCALE)), 'needs element_type, such as "f8E4M3FN"'),
            ((np.zeros(32, np.float32), np.ones(1, SCALE)), "float32 holds no MX elements"),
            ((np.zeros(32, F8), np.ones(1, np.float32)), "float8_e8m0fnu, float8_e4m3fn or uint8, not float32"),
            (
                (np.zeros(32, F8), np.ones(1, SCALE), 32, 0, None, "f8E4M3FN"),
                "float8_e4m3fn or uint8, not float8_e8m0fnu",
            ),
            ((np.zeros(32, F8), np.ones(1, np.uint8), 32, 0, None, "f8"), "'f8' is not a supported scale type"),
            ((np.zeros(32, F8), np.ones(2, SCALE)), "scale has shape (2,)"),
            ((np.zeros(32, F8), np.ones((1, 1), SCALE)), "in blocks of 32 along axis 0 needs (1,)"),
            ((np.zeros(33, F8), np.ones(1, SCALE)), "extent 33 of blocked axis 0 is not a multiple of block size 32"),
            ((np.zeros(32, F8), np.ones(1, SCALE), 24), "block size must be a power of two"),
            ((np.zeros(32, F8), np.ones(1, SCALE), 32, 1), "axis 1 is out of range"),
            ((np.zeros(32, F8), np.ones(1, SCALE), 32, -2), "axis -2 is out of range"),
            ((np.zeros(32, F8), np.ones(1, SCALE), 32.0), "block size and axis must be integers"),
            ((np.zeros((), F8), np.ones((), SCALE)), "must have rank 1 or more"),
            ((np.zeros(32, F8), np.ones(1, SCALE), 32, 0, "f8E5M2"), "codes of MXFP8 E5M2"),
            ((np.zeros(32, F8), np.ones(1, SCALE), 32, 0, "f8"), "'f8' is not an MX element type"),
            ((np.full(32, 16, np.uint8), np.ones(1, SCALE), 32, 0, "f4E2M1FN"), "byte 0x10 is no code"),
            (([0.0] * 32, np.ones(1, SCALE)), "mantissa must be a numpy array, not list"),
            ((np.zeros(32, F8), None), "scale must be a numpy array, not NoneType"),
        ],
    )
    def test_refused(self, arguments, message):
        fail(message, MxArray, *arguments)


class TestQuantize:
    @given(st.data())
    @settings(max_examples=80)
    def test_bits_of_the_reference(self, data):
        dtype = data.draw(st.sampled_from(FLOATS))
        x = np.concatenate([data.draw(float_blocks(32, dtype, finite=False)) for _ in range(2)]).reshape(1, 64)
        rounding = data.draw(ROUNDINGS) if dtype is np.float32 else "floor"
        assert_quantized(mx_dialect.quantize(x, rounding=rounding), reference.quantize(x, rounding=rounding))

    @pytest.mark.parametrize("rounding", oracle.ROUNDINGS)
    def test_random_bits(self, rounding):
        """Blocks of any bit patterns, and of such whose exponents lie near each other."""
        bits = np.random.default_rng(4).integers(0, 1 << 32, (1024, 32), np.uint32)
        bits[512:] = (bits[512:] & 0x83FFFFFF) | (bits[512:, :1] & 0x78000000)
        x = bits.view(np.float32)
        assert_quantized(mx_dialect.quantize(x, rounding=rounding), reference.quantize(x, rounding=rounding))

    @pytest.mark.parametrize("element_type", oracle.ELEMENT_TYPES)
    def test_formats(self, element_type):
        # Magnitudes from far below to far above every block's scale, and blocks of every kind.
        x = random(8, 64) * np.exp2(np.random.default_rng(1).integers(-12, 12, (8, 64))).astype(np.float32)
        x[1, :32] = 0
        x[2, 3], x[3, 40], x[4, 5] = np.inf, np.nan, -np.inf
        x[5] *= np.float32(2.0**-130)
        x[6] *= np.float32(2.0**110)
        assert_quantized(mx_dialect.quantize(x, element_type), reference.quantize(x, element_type))

    @pytest.mark.parametrize(
        ("shape", "block_size", "axis"),
        [((64,), 32, 0), ((64, 5), 32, 0), ((3, 64, 5), 16, -2), ((2, 3, 64), 64, -1), ((7, 3), 1, 1)],
    )
    def test_axes_and_blocks(self, shape, block_size, axis):
        x = random(*shape)
        result = mx_dialect.quantize(x, block_size=block_size, axis=axis)
        assert_quantized(result, reference.quantize(x, block_size=block_size, axis=axis))

    @pytest.mark.parametrize(("shape", "axis"), [((32, 5), 0), ((3, 64), -1)])
    def test_nvfp4(self, shape, axis):
        x = random(*shape)
        result = nvfp4(x, axis)
        assert result.scale_type == "f8E4M3FN"
        assert_quantized(result, reference.quantize(x, "f4E2M1FN", 16, axis, scale_type="f8E4M3FN"))

    @pytest.mark.parametrize("view", [lambda x: x.T, lambda x: x[::-1], lambda x: x[:, ::-1], lambda x: x[::2]])
    def test_views(self, view):
        x = view(random(64, 64))
        assert_quantized(mx_dialect.quantize(x), reference.quantize(x))

    @pytest.mark.parametrize("shape", [(0, 64), (4, 0), (0,)])
    def test_empty(self, shape):
        x = np.zeros(shape, np.float32)
        assert_quantized(mx_dialect.quantize(x), reference.quantize(x))

    def test_input_unchanged(self):
        x = random(2, 64)
        before = x.copy()
        mx_dialect.quantize(x)
        np.testing.assert_array_equal(x, before)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ((random(64, dtype=np.float64),), "not float64; convert with x.astype(np.float32)"),
            ((np.zeros(64, np.int32),), "not int32"),
            (([1.0] * 32,), "must be a numpy array, not list"),
            ((random(64), "f8"), "'f8' is not an MX element type"),
            ((random(65),), "extent 65 of blocked axis 0 is not a multiple of block size 32"),
            ((random(64), "f8E4M3FN", 33), "block size must be a power of two"),
            ((random(64), "f8E4M3FN", 0), "block size must be a power of two"),
            ((random(64), "f8E4M3FN", 32, 1), "axis 1 is out of range"),
            ((random(64), "f8E4M3FN", 32, "last"), "block size and axis must be integers"),
            ((random(64), "f8E4M3FN", 32, 0, "nearest"), "unknown rounding mode 'nearest'; expected one of floor"),
            (
                (random(64), "f8E4M3FN", 32, 0, "floor", "f8"),
                "'f8' is not a supported scale type; expected one of f8E8M0FNU",
            ),
            ((random(64), "f8E4M3FN", 32, 0, "ceil", "f8E4M3FN"), "rounding 'ceil' chooses a shared exponent"),
            ((np.float32(1),), "must have rank 1 or more"),
        ],
    )
    def test_refused(self, arguments, message):
        fail(message, mx_dialect.quantize, *arguments)


class TestDequantize:
    @pytest.mark.parametrize("element_type", oracle.ELEMENT_TYPES)
    def test_every_code_and_scale(self, element_type):
        """Bit for bit: every element code with every scale code. NaNs compare as NaN."""
        bits = 8 if element_type == "i8" else ml_dtypes.finfo(oracle.TABLE[element_type].dtype).bits
        codes = np.broadcast_to(np.arange(1 << bits, dtype=np.uint8), (256, 1 << bits))
        scale = np.arange(256, dtype=np.uint8).reshape(256, 1)
        q = MxArray(codes, scale, block_size=1 << bits, element_type=element_type)
        result, expected = mx_dialect.dequantize(q), reference.dequantize(q)
        assert result.dtype == np.float32
        np.testing.assert_array_equal(np.isnan(result), np.isnan(expected))
        real = ~np.isnan(expected)
        np.testing.assert_array_equal(result.view(np.uint32)[real], expected.view(np.uint32)[real])

    @pytest.mark.parametrize(("shape", "axis"), [((64,), 0), ((64, 3), 0), ((2, 64, 3), 1), ((0, 32), 1)])
    def test_axes(self, shape, axis):
        q = mx_dialect.quantize(random(*shape), axis=axis)
        np.testing.assert_array_equal(mx_dialect.dequantize(q), reference.dequantize(q))

    @pytest.mark.parametrize("make", [mx_dialect.quantize, nvfp4])
    def test_factor(self, make):
        """One more product, rounded to float32."""
        q, factor = make(random(4, 64)), np.float32(0.1)
        np.testing.assert_array_equal(mx_dialect.dequantize(q, factor=factor), reference.dequantize(q) * factor)
        np.testing.assert_array_equal(mx_dialect.dequantize(q, factor=2), reference.dequantize(q) * 2)

    def test_nvfp4_with_the_factor_of_its_tensor(self):
        """The recipe: the factor brings the tensor's largest magnitude to 6 * 448; the blocks then have any size."""
        x = (random(64, 64) * np.exp2(np.random.default_rng(0).integers(-6, 3, (64, 64)))).astype(np.float32) * 1e9
        factor = np.abs(x).max() / np.float32(6 * 448)
        values = mx_dialect.dequantize(nvfp4(x / factor), factor=factor)
        largest = np.abs(x).reshape(64, 4, 16).max(axis=2).repeat(16, axis=1)
        # Half the widest step between elements, 1 in 6, and what rounding the scale to 3 bits adds.
        assert (np.abs(values - x) <= largest * (1 / 6 + 1 / 16)).all()

    def test_refused(self):
        fail("dequantize takes an MxArray, not ndarray", mx_dialect.dequantize, random(64))
        fail("must be a number for f32, but is str", lambda: mx_dialect.dequantize(nvfp4(random(64)), factor="2"))


class TestMatmul:
    @pytest.mark.parametrize(("left", "right"), [(True, False), (False, True), (True, True)])
    @pytest.mark.parametrize(
        ("batch", "m", "k", "n"),
        [((), 32, 64, 48), ((), 1, 32, 1), ((), 5, 96, 7), ((2,), 3, 64, 4), ((2, 3), 4, 32, 2)],
    )
    def test_within_bound(self, left, right, batch, m, k, n):
        a, b, acc = random(*batch, m, k), random(*batch, k, n, seed=1), random(*batch, m, n, seed=2)
        a = mx_dialect.quantize(a) if left else a
        b = mx_dialect.quantize(b, axis=-2) if right else b
        assert_within_bound(mx_dialect.matmul(a, b), a, b)
        before = acc.copy()
        assert_within_bound(mx_dialect.matmul(a, b, acc), a, b, acc)
        np.testing.assert_array_equal(acc, before)

    @given(st.data())
    @settings(max_examples=40)
    def test_any_values(self, data):
        """One dot product of random blocks: extreme scales, cancellation, zeros, subnormals."""
        a = np.concatenate([data.draw(float_blocks(32)) for _ in range(2)]).reshape(1, 64)
        b = np.concatenate([data.draw(float_blocks(32)) for _ in range(2)]).reshape(64, 1)
        q = mx_dialect.quantize(a)
        result, expected, bound = mx_dialect.matmul(q, b), reference.matmul(q, b), reference.matmul_bound(q, b)
        with np.errstate(invalid="ignore"):
            assert ((np.abs(result - expected) <= bound) | ~np.isfinite(bound)).all()

    def test_exact_for_small_integers(self):
        rng = np.random.default_rng(3)
        a = rng.integers(-8, 9, (6, 128)).astype(np.float32)
        b = rng.integers(-8, 9, (128, 10)).astype(np.float32)
        np.testing.assert_array_equal(mx_dialect.matmul(mx_dialect.quantize(a), b), a @ b)

    @pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
    def test_half_precision_operand(self, dtype):
        a, b = mx_dialect.quantize(random(4, 64)), random(64, 6, seed=1).astype(dtype)
        assert_within_bound(mx_dialect.matmul(a, b), a, b)

    @pytest.mark.parametrize("element_type", oracle.ELEMENT_TYPES)
    def test_formats(self, element_type):
        a, b = mx_dialect.quantize(random(8, 64), element_type), random(64, 16, seed=1)
        assert_within_bound(mx_dialect.matmul(a, b), a, b)

    def test_two_formats_and_block_sizes(self):
        a = mx_dialect.quantize(random(8, 64), "f4E2M1FN", block_size=16)
        b = mx_dialect.quantize(random(64, 8, seed=1), "f8E5M2", axis=0)
        assert_within_bound(mx_dialect.matmul(a, b), a, b)

    def test_nvfp4(self):
        a, b = nvfp4(random(8, 64)), nvfp4(random(64, 8, seed=1), axis=0)
        assert_within_bound(mx_dialect.matmul(a, b), a, b)

    @pytest.mark.parametrize("weights", [mx_dialect.quantize, nvfp4, lambda x: x])
    def test_transposed(self, weights):
        a, b, acc = mx_dialect.quantize(random(5, 64)), weights(random(7, 64, seed=1)), random(5, 7, seed=2)
        result = mx_dialect.matmul(a, b, acc, transpose_rhs=True)
        assert_within_bound(result, a, b, acc, transpose_rhs=True)

    @pytest.mark.parametrize(
        ("a_batch", "b_batch", "acc_batch"),
        [((2,), (1,), None), ((), (3,), None), ((2, 1), (3,), (2, 3)), ((1,), (), (4,)), ((0,), (1,), None)],
    )
    @pytest.mark.parametrize("transposed", [False, True])
    def test_broadcasts(self, a_batch, b_batch, acc_batch, transposed):
        a = mx_dialect.quantize(random(*a_batch, 3, 32))
        b = random(*b_batch, *((4, 32) if transposed else (32, 4)), seed=1)
        acc = None if acc_batch is None else random(*acc_batch, 3, 4, seed=2)
        result = mx_dialect.matmul(a, b, acc, transpose_rhs=transposed)
        assert_within_bound(result, a, b, acc, transpose_rhs=transposed)

    @pytest.mark.parametrize("quantized", ["a", "b", "both"])
    def test_factor(self, quantized):
        a, b, acc, factor = random(4, 64), random(64, 6, seed=1), random(4, 6, seed=2), np.float32(1e-3)
        if quantized == "b":
            b = mx_dialect.quantize(b, axis=0)
            result, b = mx_dialect.matmul(a, b, acc, factor=factor), reference.dequantize(b) * factor
        else:
            a = nvfp4(a)
            b = b if quantized == "a" else nvfp4(b, axis=0)
            result, a = mx_dialect.matmul(a, b, acc, factor=factor), reference.dequantize(a) * factor
        assert_within_bound(result, a, b, acc)

    def test_nan_scale_reaches_its_row_only(self):
        x = random(4, 64)
        x[2, 40] = np.nan
        result = mx_dialect.matmul(mx_dialect.quantize(x), random(64, 5))
        np.testing.assert_array_equal(np.isnan(result), np.arange(4)[:, None] + np.zeros(5) == 2)

    @pytest.mark.parametrize(("m", "k", "n"), [(0, 64, 4), (4, 0, 4), (4, 64, 0), (0, 0, 0)])
    def test_empty(self, m, k, n):
        a, b, acc = mx_dialect.quantize(np.ones((m, k), np.float32)), random(k, n), random(m, n)
        np.testing.assert_array_equal(mx_dialect.matmul(a, b), np.zeros((m, n)) + k * 0)
        if k == 0:
            np.testing.assert_array_equal(mx_dialect.matmul(a, b, acc), acc)

    @pytest.mark.parametrize("order", list(itertools.product([False, True], repeat=3)))
    def test_views(self, order):
        def view(x, reverse):
            return np.asfortranarray(x)[::-1, ::-1] if reverse else x

        a, b, acc = random(8, 64), random(64, 6, seed=1), random(8, 6, seed=2)
        q = mx_dialect.quantize(a)
        q = MxArray(view(q.mantissa, order[0]), view(q.scale, order[0]))
        b, acc = view(b, order[1]), view(acc, order[2])
        before = acc.copy()
        assert_within_bound(mx_dialect.matmul(q, b, acc), q, b, acc)
        np.testing.assert_array_equal(acc, before)

    @pytest.mark.parametrize(
        ("a", "b", "acc", "message"),
        [
            (random(4, 64), random(64, 4), None, "matmul needs an MxArray as a or b; for two float arrays use a @ b"),
            ("q", random(32, 4), None, "matmul of shapes (4, 64) and (32, 4): K is 64 in a and 32 in b"),
            ("q", random(64), None, "matmul of shapes (4, 64) and (64,): both must have rank 2 or more"),
            (
                "q",
                random(2, 64, 4),
                np.zeros((1, 4, 4), np.float32),
                "acc has shape (1, 4, 4); the product has (2, 4, 4)",
            ),
            ("q", random(64, 4), np.zeros(4, np.float32), "acc has shape (4,); the product has (4, 4)"),
            ("q", random(64, 4, dtype=np.float64), None, "matmul takes float32, float16 or bfloat16 arrays"),
            ("q", [[1.0]], None, "matmul's b must be a numpy array, not list"),
            (
                "q",
                "q",
                None,
                "b must be blocked along K, its axis 0, but is blocked along axis 1; quantize it with axis=0",
            ),
            (random(4, 4), "q", None, "b must be blocked along K"),
            ("q", random(64, 4), np.zeros((4, 5), np.float32), "acc has shape (4, 5); the product has (4, 4)"),
            ("q", random(64, 4), np.zeros((4, 4)), "acc must have dtype float32, but has float64"),
            ("q", random(64, 4), 0.0, "acc must be a numpy array, not float"),
        ],
    )
    def test_refused(self, a, b, acc, message):
        q = mx_dialect.quantize(random(4, 64))
        fail(message, mx_dialect.matmul, *(q if isinstance(x, str) else x for x in (a, b)), acc)

    def test_batch_axes_do_not_broadcast(self):
        a = mx_dialect.quantize(random(2, 4, 64))
        fail("the batch axes (2,) and (3,) do not broadcast", mx_dialect.matmul, a, random(3, 64, 4))

    def test_transposed_refused(self):
        a, b = mx_dialect.quantize(random(4, 64)), mx_dialect.quantize(random(64, 4), axis=0)
        fail(
            "b must be blocked along K, its axis 1, but is blocked along axis 0; quantize it with axis=1",
            lambda: mx_dialect.matmul(a, b, transpose_rhs=True),
        )
        fail("K is 64 in a and 32 in b", lambda: mx_dialect.matmul(a, random(4, 32), transpose_rhs=True))
