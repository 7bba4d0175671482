"""The named pipelines: what they are made of, and that products and conversions they compile are right and free memory."""

import os
import time

import ml_dtypes
import numpy as np
import pytest
from pipeline_programs import BOTH, LOOPS, VECTORS, run, tensor

import mx_dialect
from mx_dialect import dialect, driver, pipelines, reference

# Every value of f8E4M3FN by code, and the codes that are not NaN.
E4M3 = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float64)
FINITE = np.flatnonzero(np.isfinite(E4M3)).astype(np.uint8)


def mx_tensor(*shape, axis):
    where = "" if axis == len(shape) - 1 else f", axis = {axis}"
    sizes = "x".join(map(str, shape))
    return f"!mx.tensor<{sizes}xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU{where}>"


def matmul(batch, m, k, n, quantized):
    """Return a function of A, B and the accumulator; `quantized` names which of A and B are block-scaled."""
    rank = len(batch) + 2
    a = mx_tensor(*batch, m, k, axis=rank - 1) if "a" in quantized else tensor(*batch, m, k)
    b = mx_tensor(*batch, k, n, axis=rank - 2) if "b" in quantized else tensor(*batch, k, n)
    c = tensor(*batch, m, n)
    return f"""
      func.func @matmul(%a: {a}, %b: {b}, %c: {c}) -> {c} {{
        %0 = mx.block_matmul %a, %b, %c : {a}, {b}, {c} -> {c}
        return %0 : {c}
      }}"""


class Operands:
    """Random operands of a product, its value in f64 and how far a sum of products in f32 may be from that."""

    def __init__(self, batch, m, k, n, quantized, seed=0):
        self._random = np.random.default_rng(seed)
        a_arrays, a = self._operand((*batch, m, k), -1, "a" in quantized)
        b_arrays, b = self._operand((*batch, k, n), -2, "b" in quantized)
        c = self._random.standard_normal((*batch, m, n)).astype(np.float32)
        self.arrays = (*a_arrays, *b_arrays, c)
        self.exact = c + a @ b
        # gamma_n of n roundings: one for each addition and, but where it is fused, each product.
        rounding = (k + 1) * 2.0**-24
        self.bound = rounding / (1 - rounding) * (np.abs(c) + np.abs(a) @ np.abs(b))

    def _operand(self, shape, axis, quantized):
        if not quantized:
            values = self._random.standard_normal(shape).astype(np.float32)
            return (values,), values.astype(np.float64)
        codes = self._random.choice(FINITE, shape)
        blocks = list(shape)
        blocks[axis] //= 32
        scales = self._random.integers(120, 134, blocks, dtype=np.uint8)
        values = E4M3[codes] * np.repeat(np.exp2(scales - 127.0), 32, axis=axis)
        return (codes, scales), values

    def check(self, result):
        assert result.shape == self.exact.shape
        assert np.all(np.abs(result - self.exact) <= self.bound)


# --- what a pipeline is ---


def test_pipelines_are_found_by_name():
    assert {"mx-bufferize", LOOPS, VECTORS} <= set(pipelines.names())
    assert pipelines.get(LOOPS).stages == (*pipelines.TO_BUFFERS, *pipelines.TO_LLVM)
    assert pipelines.get(VECTORS).stages == (*pipelines.TO_BUFFERS_VECTORIZED, *pipelines.TO_LLVM)
    assert pipelines.get("mx-no-such-pipeline") is None


def test_a_name_is_registered_once():
    with pytest.raises(ValueError, match="'mx-bufferize' is registered already"):
        pipelines.register_pipeline(pipelines.Pipeline("mx-bufferize", "again", ("cse",)))


@pytest.mark.parametrize("name", pipelines.names())
def test_every_stage_is_one_element(name):
    context = dialect.load()
    for stage in pipelines.get(name).stages:
        assert len(driver.plan(stage, context)) == 1


# --- products ---


@pytest.mark.parametrize("quantized", ["a", "b", "ab"])
def test_matmul_in_loops(quantized):
    operands = Operands((), 7, 64, 5, quantized)
    operands.check(run(matmul((), 7, 64, 5, quantized), operands.arrays, LOOPS))


@pytest.mark.parametrize("quantized", ["a", "b", "ab"])
@pytest.mark.parametrize(
    ("m", "k", "n"),
    [(16, 64, 64), (7, 64, 5), (19, 96, 53), (1, 64, 37), (33, 64, 1), (8, 32, 2)],
    ids=lambda size: str(size),
)
def test_matmul_in_vectors(quantized, m, k, n):
    operands = Operands((), m, k, n, quantized)
    operands.check(run(matmul((), m, k, n, quantized), operands.arrays, VECTORS))


@BOTH
@pytest.mark.parametrize("batch", [(3,), (2, 1, 2)])
def test_batched_matmul(pipeline, batch):
    operands = Operands(batch, 9, 64, 20, "ab")
    operands.check(run(matmul(batch, 9, 64, 20, "ab"), operands.arrays, pipeline))


def test_matmul_of_several_panels():
    # The decoded B does not fit one panel of 256 KiB: 2048 * 4 bytes leave 32 columns of 96 to each.
    operands = Operands((), 9, 2048, 96, "ab")
    operands.check(run(matmul((), 9, 2048, 96, "ab"), operands.arrays, VECTORS))


@BOTH
@pytest.mark.parametrize("quantized", ["a", "ab"])
def test_dynamic_matmul(pipeline, quantized):
    kernel = mx_dialect.compile(matmul(("?",), "?", "?", "?", quantized), pipeline=pipeline)
    for sizes in [((2,), 7, 64, 5), ((1,), 1, 32, 1), ((3,), 4, 0, 5), ((3,), 0, 32, 2), ((0,), 4, 32, 2)]:
        operands = Operands(*sizes, quantized)
        operands.check(kernel(*operands.arrays))


@BOTH
@pytest.mark.parametrize(("m", "k", "n"), [(0, 64, 4), (4, 0, 4), (4, 64, 0)], ids=str)
def test_empty_matmul(pipeline, m, k, n):
    operands = Operands((), m, k, n, "a")
    operands.check(run(matmul((), m, k, n, "a"), operands.arrays, pipeline))


@BOTH
def test_the_constant_scale_nan_is_nan(pipeline):
    # MLIR folds this extension to infinity.
    text = f"""
      func.func @f(%x: {tensor(40)}) -> {tensor(40)} {{
        %scale = arith.constant 0xFF : f8E8M0FNU
        %0 = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}} outs(%x : {tensor(40)}) {{
        ^bb0(%a: f32):
          %factor = arith.extf %scale : f8E8M0FNU to f32
          %1 = arith.mulf %a, %factor : f32
          linalg.yield %1 : f32
        }} -> {tensor(40)}
        return %0 : {tensor(40)}
      }}"""
    assert np.all(np.isnan(run(text, [np.ones(40, np.float32)], pipeline)))


@BOTH
def test_conversions_of_whole_tensors(pipeline):
    # Codes 0, 127 and 255: 2^-127, 1 and NaN.
    text = f"""
      func.func @f(%x: {tensor("?", 3)}) -> ({tensor(3)}, {tensor("?", 3, element="f8E4M3FN")}) {{
        %scale = arith.constant dense<[0x00, 0x7F, 0xFF]> : {tensor(3, element="f8E8M0FNU")}
        %0 = arith.extf %scale : {tensor(3, element="f8E8M0FNU")} to {tensor(3)}
        %1 = arith.truncf %x : {tensor("?", 3)} to {tensor("?", 3, element="f8E4M3FN")}
        return %0, %1 : {tensor(3)}, {tensor("?", 3, element="f8E4M3FN")}
      }}"""
    scales, codes = run(text, [np.array([[1, 500, -0.3]], np.float32)], pipeline)
    np.testing.assert_array_equal(scales, np.array([2.0**-127, 1, np.nan]))
    np.testing.assert_array_equal(codes.astype(np.float32), [[1, 448, -0.3125]])


def test_vectors_are_faster_than_loops():
    operands = Operands((), 256, 256, 256, "a")
    seconds = {}
    for pipeline in (LOOPS, VECTORS):
        kernel = mx_dialect.compile(matmul((), 256, 256, 256, "a"), pipeline=pipeline)
        times = []
        for _ in range(5):
            start = time.perf_counter()
            kernel(*operands.arrays)
            times.append(time.perf_counter() - start)
        seconds[pipeline] = min(times)
    # About a hundred times on AVX-512, and whatever else the machine is doing.
    assert seconds[VECTORS] < seconds[LOOPS] / 5


def test_code_size_does_not_grow_with_the_shape():
    def lines(size):
        module = mx_dialect.parse(matmul((), size, size, size, "ab"))
        driver.run_pipeline(module, VECTORS)
        return str(module).count("\n")

    # From where on every loop over blocks runs more than once.
    assert lines(8192) <= 1.1 * lines(4096)


# --- conversions ---


@BOTH
@pytest.mark.parametrize(("shape", "axis"), [((5, 64), 1), ((64, 21), 0), ((2, 32, 3), 1)], ids=str)
def test_quantize_and_dequantize(pipeline, shape, axis):
    random = np.random.default_rng(1)
    x = (random.standard_normal(shape) * np.exp2(random.integers(-140, 120, shape))).astype(np.float32)
    x.flat[:3] = np.nan, -0.0, np.inf
    expected = reference.quantize(x, "f8E4M3FN", axis=axis)
    quantized = mx_tensor(*shape, axis=axis)
    text = f"""
      func.func @f(%x: {tensor(*shape)}) -> ({quantized}, {tensor(*shape)}) {{
        %q = mx.quantize_block %x : {tensor(*shape)} -> {quantized}
        %v = mx.dequantize_block %q : {quantized} -> {tensor(*shape)}
        return %q, %v : {quantized}, {tensor(*shape)}
      }}"""
    q, values = run(text, [x], pipeline)
    np.testing.assert_array_equal(q.mantissa.view(np.uint8), expected.mantissa.view(np.uint8))
    np.testing.assert_array_equal(q.scale.view(np.uint8), expected.scale.view(np.uint8))
    np.testing.assert_array_equal(values, reference.dequantize(expected))


# --- memory ---


def resident_bytes():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@BOTH
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
def test_buffers_are_freed(pipeline):
    # An intermediate and a returned buffer of 8 KiB each: a leak of one is 80 MB here.
    kind = tensor(16, 128)
    text = f"""
      func.func @f(%x: {kind}) -> {kind} {{
        %empty = tensor.empty() : {kind}
        %0 = linalg.exp ins(%x : {kind}) outs(%empty : {kind}) -> {kind}
        %1 = linalg.add ins(%0, %x : {kind}, {kind}) outs(%empty : {kind}) -> {kind}
        %2 = linalg.mul ins(%0, %1 : {kind}, {kind}) outs(%empty : {kind}) -> {kind}
        return %2 : {kind}
      }}"""
    kernel = mx_dialect.compile(text, pipeline=pipeline)
    x = np.zeros((16, 128), np.float32)
    for _ in range(1000):
        kernel(x)
    before = resident_bytes()
    for _ in range(10_000):
        kernel(x)
    assert resident_bytes() - before < 8 * 2**20
