"""What docs/numerics.md promises of a matmul whose scales are extreme, for each way of applying them."""

from fractions import Fraction

import numpy as np
import pytest

import mx_dialect

LOWERINGS = ("elements", "exponent")
SCALES = (0, 1, 2, 60, 126, 127, 128, 190, 250, 253, 254)
K = 32
ONE, LARGEST = 0x38, 0x7E  # Codes of f8E4M3FN: 1 and 448.


def compiled(lhs, rhs, scale_products, pipeline="mx-lower-to-llvm-vectorized", opt_level=3):
    """Return the kernel of a matmul of [n, K] and [K, n] for n scales: each row and column has its own."""
    n = len(SCALES)
    types = [
        f"tensor<{shape}xf32>" if element == "f32" else f"!mx.tensor<{shape}x{element}, block_size = {K}, {rest}>"
        for element, shape, rest in (
            (lhs, f"{n}x{K}", "scale_type = f8E8M0FNU"),
            (rhs, f"{K}x{n}", "scale_type = f8E8M0FNU, axis = 0"),
            ("f32", f"{n}x{n}", ""),
        )
    ]
    module = mx_dialect.parse(
        f"""func.func @f(%a: {types[0]}, %b: {types[1]}, %acc: {types[2]}) -> {types[2]} {{
              %0 = mx.block_matmul %a, %b, %acc : {", ".join(types)} -> {types[2]}
              return %0 : {types[2]}
            }}"""
    )
    mx_dialect.run_pipeline(module, f"mx-to-linalg{{scale-products={scale_products}}}")
    return mx_dialect.compile(module, pipeline=pipeline, opt_level=opt_level)


def multiplied(a, b, scale_products, **options):
    """Return the products of two operands, MxArrays or float32, as float32 [n, n]."""
    kernel = compiled(*(getattr(x, "element_type", "f32") for x in (a, b)), scale_products, **options)
    parts = [part for x in (a, b) for part in ((x,) if isinstance(x, np.ndarray) else (x.mantissa, x.scale))]
    return kernel(*parts, np.zeros((len(SCALES), len(SCALES)), np.float32))


def rows(codes, element_type):
    """Return [n, K] of the same codes in every row, with each scale once."""
    scale = np.array(SCALES, np.uint8)[:, None]
    return mx_dialect.MxArray(np.tile(codes, (len(SCALES), 1)), scale, K, element_type=element_type)


def columns(codes, element_type):
    """Return the same as [K, n], blocked along its first axis."""
    q = rows(codes, element_type)
    return mx_dialect.MxArray(q.mantissa.T, q.scale.T, K, axis=0)


def exact(codes_a, type_a, codes_b, type_b):
    """Return the dot product for each pair of scales, as Fractions."""
    a, b = (mx_dialect.reference.decode(c, t) for c, t in ((codes_a, type_a), (codes_b, type_b)))
    dot = sum(Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a, b, strict=True))
    return [[dot * Fraction(2) ** (i + j - 254) for j in SCALES] for i in SCALES]


def operands():
    """Return codes of small integers, whose products and sums are exact, and of the largest elements."""
    rng = np.random.default_rng(8)
    integers = rng.integers(-7, 8, (2, K)).astype(np.float32)
    types = "f8E4M3FN", "f8E5M2"
    small = [mx_dialect.reference.encode(x, t) for x, t in zip(integers, types, strict=True)]
    large = np.full(K, LARGEST, np.uint8), np.full(K, 0x7B, np.uint8)  # 448 and 57344, both 7 times a power of two.
    return [(a, types[0], b, types[1]) for a, b in (small, large)]


@pytest.mark.parametrize("codes", operands())
def test_exponents_scale_a_block_exactly_wherever_it_is_a_normal_float32(codes):
    expected = exact(*codes)
    result = multiplied(rows(*codes[:2]), columns(*codes[2:]), "exponent")
    for i, j in np.ndindex(result.shape):
        value, wanted = float(result[i, j]), expected[i][j]
        if abs(wanted) >= 2**128:
            assert value == np.copysign(np.inf, float(wanted > 0) - 0.5)
        elif abs(wanted) >= Fraction(2) ** -126:
            assert Fraction(value) == wanted, (SCALES[i], SCALES[j])
        else:
            assert abs(Fraction(value) - wanted) <= Fraction(2) ** -149, (SCALES[i], SCALES[j])


def test_exponents_make_nothing_of_zero_elements():
    zeros = np.zeros(K, np.uint8)
    result = multiplied(rows(np.full(K, LARGEST, np.uint8), "f8E4M3FN"), columns(zeros, "f8E4M3FN"), "exponent")
    np.testing.assert_array_equal(result, np.zeros_like(result))


@pytest.mark.parametrize("code_b", [0, ONE])
def test_elements_overflow_where_a_scaled_element_does(code_b):
    """448 * 2^120 exceeds float32: Inf, whatever the other side is, or NaN where that is zero."""
    a, b = np.full(K, LARGEST, np.uint8), np.full(K, code_b, np.uint8)
    result = multiplied(rows(a, "f8E4M3FN"), columns(b, "f8E4M3FN"), "elements")
    over = np.array(SCALES) >= 247
    assert over.any()
    products = exact(a, "f8E4M3FN", b, "f8E4M3FN")
    wanted = np.array([[float(value) if value < 2**128 else np.inf for value in row] for row in products])
    wanted[over] = np.nan if code_b == 0 else np.inf
    normal = (wanted == 0) | ~(np.abs(wanted) < 2.0**-126)
    np.testing.assert_array_equal(result[normal], wanted[normal])


@pytest.mark.parametrize(("scale", "dense", "lost"), [(0, 2.0**125, np.inf), (254, 2.0**-143, 0.0)])
def test_against_floats_elements_are_the_lowering_that_keeps_the_range(scale, dense, lost):
    """An element without its scale times an extreme float leaves the range first."""
    code = LARGEST if scale == 0 else 1  # 448 and 2^-9.
    a = rows(np.full(K, code, np.uint8), "f8E4M3FN")
    b = np.full((K, len(SCALES)), dense, np.float32)
    row = SCALES.index(scale)
    element = mx_dialect.reference.decode(np.array([code], np.uint8), "f8E4M3FN")[0]
    wanted = K * element * 2.0 ** (scale - 127) * dense
    assert (multiplied(a, b, "elements")[row] == wanted).all()
    assert (multiplied(a, b, "exponent")[row] == lost).all()


@pytest.mark.parametrize("opt_level", [0, 1, 2, 3])
@pytest.mark.parametrize("pipeline", ["mx-lower-to-llvm", "mx-lower-to-llvm-vectorized"])
@pytest.mark.parametrize("scale_products", LOWERINGS)
def test_a_nan_scale_makes_all_that_it_touches_nan(scale_products, pipeline, opt_level):
    """Even times zero elements; and nothing else."""
    a, b = rows(np.zeros(K, np.uint8), "f8E4M3FN"), columns(np.full(K, ONE, np.uint8), "f8E4M3FN")
    scale = a.scale.copy()
    scale.view(np.uint8)[3] = 255
    a = mx_dialect.MxArray(a.mantissa, scale, K)
    result = multiplied(a, b, scale_products, pipeline=pipeline, opt_level=opt_level)
    np.testing.assert_array_equal(np.isnan(result).all(axis=1), np.arange(len(SCALES)) == 3)
    np.testing.assert_array_equal(np.delete(result, 3, axis=0), 0)


def test_compile_chooses_where_scales_come_in() -> None:
    """448 * 2^127 times 2^-127 is 448 when the exponents meet first, and Inf when the elements are scaled."""
    text = """
    func.func @f(%a: !mx.tensor<?x?xf8E4M3FN, block_size = 4, scale_type = f8E8M0FNU>, %b: !mx.tensor<?x?xf8E4M3FN, block_size = 4, scale_type = f8E8M0FNU, axis = 0>, %c: tensor<?x?xf32>) -> tensor<?x?xf32> {
      %0 = mx.block_matmul %a, %b, %c : <?x?xf8E4M3FN, block_size = 4, scale_type = f8E8M0FNU>, <?x?xf8E4M3FN, block_size = 4, scale_type = f8E8M0FNU, axis = 0>, tensor<?x?xf32> -> tensor<?x?xf32>
      return %0 : tensor<?x?xf32>
    }"""
    a = mx_dialect.MxArray(np.full((1, 4), 0x7E, np.uint8), np.full((1, 1), 254, np.uint8), 4, element_type="f8E4M3FN")
    b = mx_dialect.MxArray(
        np.full((4, 1), 0x38, np.uint8), np.full((1, 1), 0, np.uint8), 4, axis=0, element_type="f8E4M3FN"
    )
    zero = np.zeros((1, 1), np.float32)
    assert mx_dialect.compile(text, scale_products="exponent")(a, b, zero) == 4 * 448
    assert np.isinf(mx_dialect.compile(text)(a, b, zero))
    with pytest.raises(mx_dialect.MxError, match="scale_products is one of elements, exponent, not 'both'"):
        mx_dialect.compile(text, scale_products="both")
    # Six elements are no whole number of blocks; the check belongs to the argument, whatever the lowering.
    with pytest.raises(mx_dialect.MxError):
        mx_dialect.compile(text, scale_products="exponent")(
            np.zeros((1, 6), np.uint8),
            np.zeros((1, 1), np.uint8),
            np.zeros((6, 1), np.uint8),
            np.zeros((1, 1), np.uint8),
            zero,
        )
