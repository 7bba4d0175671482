"""mx-quantize-linear: the numbers of rewritten products, what is shared, what is said, and hostile modules."""

import re

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import left_of_blocks

import mx_dialect
from mx_dialect import driver, reference
from mx_dialect.ingress.linear import in_new_context, quantize_linear

FORMATS = ["f8E4M3FN", "f8E5M2", "f6E3M2FN", "f6E2M3FN", "f4E2M1FN", "i8"]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def dense(x, element="f32"):
    """Return an array as MLIR's hexadecimal text."""
    dtype = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}[element]
    shape = "x".join(map(str, x.shape))
    return f'dense<"0x{x.astype(dtype).tobytes().hex()}"> : tensor<{shape}x{element}>'


def product(w, on_the_left, element="f32", rows=3):
    """Return a module that multiplies x by a weight [N, K] seen as [K, N], or w [M, K] by x [K, rows]."""
    n, k = w.shape
    weight = f"tensor<{n}x{k}x{element}>"
    if on_the_left:
        x, y = f"tensor<{k}x{rows}xf32>", f"tensor<{n}x{rows}xf32>"
        body, operands = "", f"%w, %x : {weight}, {x}"
    else:
        x, y, t = f"tensor<{rows}x{k}xf32>", f"tensor<{rows}x{n}xf32>", f"tensor<{k}x{n}x{element}>"
        body = f"""%e = tensor.empty() : {t}
          %t = linalg.transpose ins(%w : {weight}) outs(%e : {t}) permutation = [1, 0]"""
        operands = f"%x, %t : {x}, {t}"
    return f"""func.func @f(%x: {x}, %acc: {y}) -> {y} {{
      %w = arith.constant {dense(w, element)}
      {body}
      %y = linalg.matmul ins({operands}) outs(%acc : {y}) -> {y}
      return %y : {y}
    }}"""


def expected(w, x, on_the_left, fmt, block_size=32):
    """Return the product in double precision, with the weight quantized by the reference."""
    values = reference.dequantize(reference.quantize(w, fmt, block_size, -1, "floor")).astype(np.float64)
    return values @ x if on_the_left else x @ values.T


@pytest.mark.parametrize("on_the_left", [False, True])
@pytest.mark.parametrize("fmt", FORMATS)
def test_products_are_those_of_quantized_weights(rng, fmt, on_the_left):
    w = rng.standard_normal((5, 64), dtype=np.float32)
    x = rng.standard_normal((64, 3) if on_the_left else (3, 64), dtype=np.float32)
    module = mx_dialect.parse(product(w, on_the_left))
    (row,) = quantize_linear(module, fmt)
    assert "mx.block_matmul" in mx_dialect.to_asm(module)
    assert "linalg.matmul" not in mx_dialect.to_asm(module)
    out = mx_dialect.compile(module)(x, np.zeros((5, 3) if on_the_left else (3, 5), np.float32))
    np.testing.assert_allclose(out, expected(w, x, on_the_left, fmt), rtol=1e-5, atol=1e-4)
    values = reference.dequantize(reference.quantize(w, fmt, 32, -1, "floor")).astype(np.float64)
    signal, noise = np.sum(np.square(w, dtype=np.float64)), np.sum(np.square(w - values))
    assert row.sqnr_db == pytest.approx(10 * np.log10(signal / noise), abs=1e-6)


def of_type(x, element):
    return x.astype({"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}[element])


# Significant bits of each type.
PRECISION = {"f32": 24, "f16": 11, "bf16": 8}


@settings(deadline=None, max_examples=20)
@given(
    fmt=st.sampled_from(FORMATS),
    n=st.integers(1, 70),
    k=st.integers(1, 100),
    rows=st.integers(1, 9),
    is_open=st.booleans(),
    block_size=st.sampled_from([8, 32]),
    side=st.sampled_from(["rhs", "rhs transposed", "lhs", "lhs transposed"]),
    half=st.sampled_from(["f16", "bf16"]),
    are_half=st.tuples(st.booleans(), st.booleans(), st.booleans()),
)
def test_any_shape_format_and_precision(fmt, n, k, rows, is_open, block_size, side, half, are_half):
    """The result lies as near to that of the quantized weight as f32 does, or as the type of the result does."""
    rng = np.random.default_rng([n, k, rows])
    weights, activations, out = (half if is_half else "f32" for is_half in are_half)
    w = of_type(rng.standard_normal((n, k)), weights)
    x = of_type(rng.standard_normal((rows, k)), activations)
    acc = of_type(rng.standard_normal((n, rows) if "lhs" in side else (rows, n)), out)
    module = mx_dialect.parse(layer(w, weights, side, "?" if is_open else rows, activations, out))
    (row,) = quantize_linear(module, fmt, block_size=block_size)
    text = mx_dialect.to_asm(module)
    assert "linalg.matmul" not in text
    assert row.padding == -k % block_size
    kernel = mx_dialect.compile(module, opt_level=1)
    given_x = np.ascontiguousarray(x.T) if side == "lhs" else x
    actual = kernel(given_x, acc).astype(np.float64)

    left = left_of_blocks(w.astype(np.float32), fmt, block_size)
    exact = x.astype(np.float64) @ left.T
    size = np.abs(x.astype(np.float64)) @ np.abs(left.T)
    if "lhs" in side:
        exact, size = exact.T, size.T
    exact, size = exact + acc.astype(np.float64), size + np.abs(acc.astype(np.float64))
    # Sums of k + 1 products in any order; then the result is rounded to its own type.
    bound = (k + 2) * 2.0**-24 * size
    bound += 2.0 ** -PRECISION[out] * (np.abs(exact) + bound) + 2.0**-24
    assert (np.abs(actual - exact) <= bound).all()


def layer(w, weights, side, rows, activations, out):
    """Return a product of x [rows, K] and a weight [N, K] on one side, stored transposed or not; x, too, on the left."""
    n, k = w.shape
    stored, shape = (w.T, f"{k}x{n}") if side in ("rhs", "lhs transposed") else (w, f"{n}x{k}")
    maps = {
        "rhs": ("(m, n, k) -> (m, k)", "(m, n, k) -> (k, n)"),
        "rhs transposed": ("(m, n, k) -> (m, k)", "(m, n, k) -> (n, k)"),
        "lhs": ("(m, n, k) -> (m, k)", "(m, n, k) -> (k, n)"),
        "lhs transposed": ("(m, n, k) -> (k, m)", "(m, n, k) -> (n, k)"),
    }[side]
    weight, result = f"tensor<{shape}x{weights}>", f"{n}x{rows}" if "lhs" in side else f"{rows}x{n}"
    x, y = f"tensor<{f'{k}x{rows}' if side == 'lhs' else f'{rows}x{k}'}x{activations}>", f"tensor<{result}x{out}>"
    operands = f"%w, %x : {weight}, {x}" if "lhs" in side else f"%x, %w : {x}, {weight}"
    affine = ", ".join(f"affine_map<{m}>" for m in (*maps, "(m, n, k) -> (m, n)"))
    return f"""func.func @f(%x: {x}, %acc: {y}) -> {y} {{
      %w = arith.constant {dense(stored, weights)}
      %y = linalg.matmul indexing_maps = [{affine}] ins({operands}) outs(%acc : {y}) -> {y}
      return %y : {y}
    }}"""


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_weights_that_are_extended_before_the_product(rng, element):
    """As torch exports layers of half precision: behind a transposition, by a generic or by an operation on tensors."""
    w = of_type(rng.standard_normal((5, 40)), element)
    x = rng.standard_normal((3, 40), dtype=np.float32)
    t = "tensor<40x5xf32>"
    extension = f"""%e = tensor.empty() : {t}
      %h = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
          iterator_types = ["parallel", "parallel"]}} ins(%w : tensor<5x40x{element}>) outs(%e : {t}) {{
      ^bb0(%p: {element}, %o: f32):
        %0 = arith.extf %p : {element} to f32
        linalg.yield %0 : f32
      }} -> {t}"""
    on_tensors = f"""%e = tensor.empty() : {t}
      %g = arith.extf %w : tensor<5x40x{element}> to tensor<5x40xf32>
      %h = linalg.transpose ins(%g : tensor<5x40xf32>) outs(%e : {t}) permutation = [1, 0]"""
    for views in (extension, on_tensors):
        module = mx_dialect.parse(f"""func.func @f(%x: tensor<3x40xf32>, %acc: tensor<3x5xf32>) -> tensor<3x5xf32> {{
          %w = arith.constant {dense(w, element)}
          {views}
          %y = linalg.matmul ins(%x, %h : tensor<3x40xf32>, {t}) outs(%acc : tensor<3x5xf32>) -> tensor<3x5xf32>
          return %y : tensor<3x5xf32>
        }}""")
        (row,) = quantize_linear(module)
        assert row.bytes_before == 2 * w.size
        assert not re.search("linalg|extf", mx_dialect.to_asm(module))
        out = mx_dialect.compile(module)(x, np.zeros((3, 5), np.float32))
        wanted = x.astype(np.float64) @ left_of_blocks(w.astype(np.float32), "f8E4M3FN", 32).T
        np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-5)


def test_what_is_given_too_long_along_k_is_refused(rng):
    """An open K of the activations is that of the weight, not one that padding would hide."""
    text = layer(rng.standard_normal((5, 40), dtype=np.float32), "f32", "rhs", 3, "f32", "f32")
    module = mx_dialect.parse(text.replace("tensor<3x40xf32>", "tensor<3x?xf32>"))
    quantize_linear(module)
    kernel = mx_dialect.compile(module)
    assert kernel(np.ones((3, 40), np.float32), np.zeros((3, 5), np.float32)).shape == (3, 5)
    for k in (39, 64):
        with pytest.raises(mx_dialect.MxError, match="40"):
            kernel(np.ones((3, k), np.float32), np.zeros((3, 5), np.float32))


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_small_constants_of_half_precision_are_read_exactly(element):
    dtype = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}[element]
    codes = np.arange(1 << 16, dtype=np.uint16)
    codes = codes[np.isfinite(codes.view(dtype).astype(np.float32))][::37]
    for start in range(0, len(codes) - 64, 64):
        w = codes[start : start + 64].view(dtype).astype(np.float32).reshape(2, 32)
        module = mx_dialect.parse(product(w, True, element))
        (row,) = quantize_linear(module)
        values = reference.dequantize(reference.quantize(w, "f8E4M3FN", 32, -1, "floor")).astype(np.float64)
        noise = np.sum(np.square(w - values))
        wanted = 10 * np.log10(np.sum(np.square(w, dtype=np.float64)) / noise) if noise else np.inf
        assert row.sqnr_db == pytest.approx(wanted, abs=1e-6)


def test_nan_and_infinity_spoil_their_blocks_only(rng):
    w = rng.standard_normal((4, 64), dtype=np.float32)
    w[1, 3], w[2, 40] = np.nan, np.inf
    module = mx_dialect.parse(product(w, False))
    (row,) = quantize_linear(module)
    out = mx_dialect.compile(module)(np.ones((3, 64), np.float32), np.zeros((3, 4), np.float32))
    assert row.non_finite == 2
    assert np.isfinite(row.sqnr_db)
    assert np.array_equal(np.isnan(out), np.broadcast_to([False, True, True, False], (3, 4)))


def test_layers_that_feed_each_other_in_two_functions(rng):
    w = rng.standard_normal((32, 32), dtype=np.float32)
    t = "tensor<32x32xf32>"
    body = f"""(%x: {t}, %acc: {t}) -> {t} {{
      %w = arith.constant {dense(w)}
      %0 = linalg.matmul ins(%x, %w : {t}, {t}) outs(%acc : {t}) -> {t}
      %1 = linalg.matmul ins(%0, %w : {t}, {t}) outs(%0 : {t}) -> {t}
      return %1 : {t}
    }}"""
    module = mx_dialect.parse(f"func.func @f{body}\nmodule @inner {{ func.func @f{body} }}")
    rows = quantize_linear(module)
    text = mx_dialect.to_asm(module)
    assert len(rows) == 1
    assert text.count("mx.compose") == 2
    assert text.count("mx.block_matmul") == 4
    module.operation.verify()
    in_new_context(module).operation.verify()


def test_globals_of_one_name_in_two_modules_are_different():
    t = "tensor<2x32xf32>"
    inner = """module {{
      ml_program.global private @"a b"(dense<{value}> : tensor<2x32xf32>) : tensor<2x32xf32>
      func.func @f(%x: tensor<32x2xf32>, %acc: tensor<2x2xf32>) -> tensor<2x2xf32> {{
        %w = ml_program.global_load_const @"a b" : tensor<2x32xf32>
        %y = linalg.matmul ins(%w, %x : tensor<2x32xf32>, tensor<32x2xf32>) outs(%acc : tensor<2x2xf32>) -> tensor<2x2xf32>
        return %y : tensor<2x2xf32>
      }}
    }}"""
    module = mx_dialect.parse(inner.format(value="1.0") + inner.format(value="2.0"))
    rows = quantize_linear(module)
    text = mx_dialect.to_asm(module)
    assert [row.name for row in rows] == ["a b", "a b"]
    assert "ml_program" not in text
    assert t not in text
    assert re.findall(r"dense<(\S+)> : tensor<2x1xf8E8M0FNU>", text) == ["3.906250e-03", "7.812500e-03"]


def test_remarks_arrive_although_a_kernel_is_compiled_inside(rng):
    w = rng.standard_normal((512, 512), dtype=np.float32)
    module, seen = mx_dialect.parse(product(w, False)), []
    driver.run_pipeline(module, "mx-quantize-linear", driver.Settings(on_diagnostic=seen.append))
    assert [d.severity for d in seen] == ["remark"]
    assert "512x512 to f8E4M3FN" in seen[0].message
    x = rng.standard_normal((3, 512), dtype=np.float32)
    out = mx_dialect.compile(module)(x, np.zeros((3, 512), np.float32))
    np.testing.assert_allclose(out, expected(w, x, False, "f8E4M3FN"), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("format=f4", "option 'format' of pass 'mx-quantize-linear' is one of"),
        ("block-size=24", "is a power of two from 8 on, not '24'"),
        ("rounding=up", "option 'rounding' of pass"),
        ("min-elements=few", "takes an integer, not 'few'"),
    ],
)
def test_options_that_are_refused(options, message):
    module = mx_dialect.parse("")
    with pytest.raises(mx_dialect.MxError, match=re.escape(message)):
        mx_dialect.run_pipeline(module, f"mx-quantize-linear{{{options}}}")


def test_one_pattern_may_be_given_without_a_list():
    module = mx_dialect.parse(product(np.ones((2, 32), np.float32), True).replace("xf32>\n", 'xf32> loc("a.b")\n', 1))
    assert quantize_linear(module, exclude="a.*") == []
