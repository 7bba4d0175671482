"""The named pipelines: what they are made of, and that what they compile computes the right numbers and frees memory."""

import os
import time

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mx_dialect
from mx_dialect import dialect, driver, pipelines, reference

LOOPS, VECTORS = "mx-lower-to-llvm", "mx-lower-to-llvm-vectorized"
BOTH = pytest.mark.parametrize("pipeline", [LOOPS, VECTORS])

# Every value of f8E4M3FN by code, and the codes that are not NaN.
E4M3 = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float64)
FINITE = np.flatnonzero(np.isfinite(E4M3)).astype(np.uint8)


def tensor(*shape, element="f32"):
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


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


def run(text, arguments, pipeline):
    return mx_dialect.compile(text, pipeline=pipeline)(*arguments)


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


# --- everything else that has to lower ---

X = (np.arange(32, dtype=np.float32).reshape(4, 8) - 11) / 8
# A subnormal, which some conversions to bf16 flush to zero.
X[0, 1] = 1e-39


def insertions(x, i):
    result = np.hstack([x[:, 4:], x[:, 4:]])
    result[i, i] = x[i, i]
    return result, x[i, i]


PROGRAMS = {
    "pad": (
        """
        func.func @f(%x: tensor<4x8xf32>, %n: index) -> tensor<?x10xf32> {
          %c = arith.constant 2.5 : f32
          %0 = tensor.pad %x low[%n, 2] high[0, 0] {
          ^bb0(%i: index, %j: index):
            tensor.yield %c : f32
          } : tensor<4x8xf32> to tensor<?x10xf32>
          return %0 : tensor<?x10xf32>
        }""",
        [X, 3],
        lambda x, n: np.pad(x, ((n, 0), (2, 0)), constant_values=2.5),
    ),
    "slices of an argument": (
        """
        func.func @f(%x: tensor<4x8xf32>) -> (tensor<32xf32>, tensor<2x8xf32>, tensor<4x3xf32>) {
          %0 = tensor.collapse_shape %x [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>
          %1 = tensor.extract_slice %x[2, 0] [2, 8] [1, 1] : tensor<4x8xf32> to tensor<2x8xf32>
          %2 = tensor.extract_slice %x[0, 1] [4, 3] [1, 2] : tensor<4x8xf32> to tensor<4x3xf32>
          return %0, %1, %2 : tensor<32xf32>, tensor<2x8xf32>, tensor<4x3xf32>
        }""",
        [X],
        lambda x: (x.ravel(), x[2:], x[:, 1:7:2]),
    ),
    "insertions": (
        """
        func.func @f(%x: tensor<4x8xf32>, %i: index) -> (tensor<4x8xf32>, tensor<f32>) {
          %0 = tensor.extract %x[%i, %i] : tensor<4x8xf32>
          %1 = tensor.extract_slice %x[0, 4] [4, 4] [1, 1] : tensor<4x8xf32> to tensor<4x4xf32>
          %2 = tensor.insert_slice %1 into %x[0, 0] [4, 4] [1, 1] : tensor<4x4xf32> into tensor<4x8xf32>
          %3 = tensor.insert %0 into %2[%i, %i] : tensor<4x8xf32>
          %4 = tensor.from_elements %0 : tensor<f32>
          return %3, %4 : tensor<4x8xf32>, tensor<f32>
        }""",
        [X, 2],
        insertions,
    ),
    "a loop that carries new buffers": (
        """
        func.func @f(%x: tensor<4x8xf32>, %n: index) -> tensor<4x8xf32> {
          %zero = arith.constant 0 : index
          %one = arith.constant 1 : index
          %0 = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> tensor<4x8xf32> {
            %empty = tensor.empty() : tensor<4x8xf32>
            %1 = linalg.abs ins(%a : tensor<4x8xf32>) outs(%empty : tensor<4x8xf32>) -> tensor<4x8xf32>
            %2 = linalg.add ins(%1, %a : tensor<4x8xf32>, tensor<4x8xf32>) outs(%empty : tensor<4x8xf32>) -> tensor<4x8xf32>
            scf.yield %2 : tensor<4x8xf32>
          }
          return %0 : tensor<4x8xf32>
        }""",
        [X, 3],
        lambda x, n: np.maximum(x, 0) * 2**n,
    ),
    "a branch that returns its argument or a new buffer": (
        """
        func.func @f(%x: tensor<4x8xf32>, %new: i1) -> tensor<4x8xf32> {
          cf.cond_br %new, ^compute, ^done(%x : tensor<4x8xf32>)
        ^compute:
          %empty = tensor.empty() : tensor<4x8xf32>
          %0 = linalg.negf ins(%x : tensor<4x8xf32>) outs(%empty : tensor<4x8xf32>) -> tensor<4x8xf32>
          cf.br ^done(%0 : tensor<4x8xf32>)
        ^done(%r: tensor<4x8xf32>):
          return %r : tensor<4x8xf32>
        }""",
        [X, True],
        lambda x, new: -x if new else x,
    ),
    "scalar arithmetic": (
        """
        func.func @f(%x: tensor<4x8xf32>, %n: index) -> (tensor<4x8xf32>, tensor<4x8xi32>, tensor<4x8xf32>, index) {
          %floats = tensor.empty() : tensor<4x8xf32>
          %ints = tensor.empty() : tensor<4x8xi32>
          %0:3 = linalg.generic {
              indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>,
                               affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
              iterator_types = ["parallel", "parallel"]}
              ins(%x : tensor<4x8xf32>) outs(%floats, %ints, %floats : tensor<4x8xf32>, tensor<4x8xi32>, tensor<4x8xf32>) {
          ^bb0(%a: f32, %b: f32, %c: i32, %d: f32):
            %rounded = math.roundeven %a : f32
            %bits = arith.bitcast %a : f32 to i32
            %magnitude = math.absi %bits : i32
            %zeros = math.ctlz %magnitude : i32
            %half = arith.truncf %a : f32 to bf16
            %whole = arith.extf %half : bf16 to f32
            linalg.yield %rounded, %zeros, %whole : f32, i32, f32
          } -> (tensor<4x8xf32>, tensor<4x8xi32>, tensor<4x8xf32>)
          %three = index.constant 3
          %groups = index.ceildivu %n, %three
          %1 = affine.apply affine_map<(d0)[s0] -> (d0 * 5 + s0 floordiv 2)>(%groups)[%n]
          return %0#0, %0#1, %0#2, %1 : tensor<4x8xf32>, tensor<4x8xi32>, tensor<4x8xf32>, index
        }""",
        [X, 7],
        lambda x, n: (
            np.rint(x),
            np.array([[32 - int(abs(b)).bit_length() for b in row] for row in x.view(np.int32).tolist()]),
            x.astype(ml_dtypes.bfloat16).astype(np.float32),
            -(-n // 3) * 5 + n // 2,
        ),
    ),
    "rank 0": (
        """
        func.func @f(%x: tensor<f32>) -> tensor<f32> {
          %empty = tensor.empty() : tensor<f32>
          %0 = linalg.negf ins(%x : tensor<f32>) outs(%empty : tensor<f32>) -> tensor<f32>
          return %0 : tensor<f32>
        }""",
        [np.float32(1.5).reshape(())],
        lambda x: -x,
    ),
    "a constant": (
        """
        func.func @f() -> tensor<3xi32> {
          %0 = arith.constant dense<[5, 6, 7]> : tensor<3xi32>
          return %0 : tensor<3xi32>
        }""",
        [],
        lambda: np.array([5, 6, 7], np.int32),
    ),
}


@BOTH
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(pipeline, name):
    text, arguments, compute = PROGRAMS[name]
    results, expected = run(text, arguments, pipeline), compute(*arguments)
    if not isinstance(expected, tuple):
        results, expected = (results,), (expected,)
    for result, value in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result, value)


@BOTH
def test_a_function_of_the_c_library(pipeline):
    text = """
      func.func @f(%x: tensor<5xf32>) -> tensor<5xf32> {
        %empty = tensor.empty() : tensor<5xf32>
        %0 = linalg.tanh ins(%x : tensor<5xf32>) outs(%empty : tensor<5xf32>) -> tensor<5xf32>
        return %0 : tensor<5xf32>
      }"""
    x = np.linspace(-2, 2, 5, dtype=np.float32)
    np.testing.assert_allclose(run(text, [x], pipeline), np.tanh(x.astype(np.float64)), rtol=1e-6)


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


# --- any operation that can be vectorized computes what it says ---


@st.composite
def operations(draw):
    """Draw a linalg.generic on i32: maps, iterator types, and a body of additions and maxima."""
    extents = draw(st.lists(st.sampled_from([1, 2, 3, 7, 8, 16, 17, 33, 40]), min_size=1, max_size=4))
    while np.prod(extents) > 40_000:
        extents[extents.index(max(extents))] = 2
    loops = range(len(extents))
    reductions = [draw(st.booleans()) for _ in loops]
    output = draw(st.permutations([loop for loop in loops if not reductions[loop]]))
    inputs = [
        draw(st.permutations(draw(st.lists(st.sampled_from(loops), unique=True))))
        for _ in range(draw(st.integers(1, 3)))
    ]
    # linalg demands that the maps together tell the extent of each loop.
    inputs.append(draw(st.permutations([loop for loop in loops if reductions[loop] or draw(st.booleans())])))
    steps = draw(
        st.lists(
            st.tuples(st.sampled_from(["addi", "muli", "maxsi"]), st.integers(0, 9), st.integers(0, 9)), max_size=4
        )
    )
    combiner = draw(st.sampled_from(["addi", "maxsi"]))
    return extents, reductions, inputs, output, steps, combiner, draw(st.integers(0, 2**32 - 1))


NUMPY = {"addi": np.add, "muli": np.multiply, "maxsi": np.maximum}


def generic_text(extents, reductions, inputs, output, steps, combiner):
    def kind(loops):
        return tensor(*(extents[loop] for loop in loops), element="i32")

    def affine_map(loops):
        dims = ", ".join(f"d{loop}" for loop in range(len(extents)))
        return f"affine_map<({dims}) -> ({', '.join(f'd{loop}' for loop in loops)})>"

    values = [f"%x{i}" for i in range(len(inputs))]
    body = []
    for op, left, right in steps:
        body.append(f"%t{len(body)} = arith.{op} {values[left % len(values)]}, {values[right % len(values)]} : i32")
        values.append(f"%t{len(body) - 1}")
    iterators = ", ".join('"reduction"' if r else '"parallel"' for r in reductions)
    arguments = ", ".join(f"%a{i}: {kind(loops)}" for i, loops in enumerate(inputs))
    names = ", ".join(f"%a{i}" for i in range(len(inputs)))
    return f"""
      func.func @f({arguments}, %out: {kind(output)}) -> {kind(output)} {{
        %0 = linalg.generic {{
            indexing_maps = [{", ".join(affine_map(loops) for loops in [*inputs, output])}],
            iterator_types = [{iterators}]}}
            ins({names} : {", ".join(kind(loops) for loops in inputs)}) outs(%out : {kind(output)}) {{
        ^bb0({", ".join(f"%x{i}: i32" for i in range(len(inputs)))}, %acc: i32):
          {" ".join(f"{line}" + chr(10) for line in body)}
          %r = arith.{combiner} %acc, {values[-1]} : i32
          linalg.yield %r : i32
        }} -> {kind(output)}
        return %0 : {kind(output)}
      }}"""


@settings(max_examples=30)
@given(operations())
def test_any_operation_in_vectors(drawn):
    extents, reductions, inputs, output, steps, combiner, seed = drawn
    random = np.random.default_rng(seed)

    def draw(loops):
        return random.integers(-(2**31), 2**31, [extents[loop] for loop in loops], dtype=np.int32)

    def over_all_loops(array, loops):
        ordered = np.transpose(array, np.argsort(loops)) if loops else array
        shape = [extents[loop] if loop in loops else 1 for loop in range(len(extents))]
        return np.broadcast_to(ordered.reshape(shape), extents)

    arrays, accumulator = [draw(loops) for loops in inputs], draw(output)
    values = [over_all_loops(array, loops) for array, loops in zip(arrays, inputs, strict=True)]
    for op, left, right in steps:
        values.append(NUMPY[op](values[left % len(values)], values[right % len(values)]))
    reduced = tuple(loop for loop, reduction in enumerate(reductions) if reduction)
    ufunc = NUMPY[combiner]
    total = ufunc.reduce(values[-1], axis=reduced, dtype=np.int32) if reduced else values[-1]
    in_order = sorted(output)
    total = np.transpose(total, [in_order.index(loop) for loop in output])

    text = generic_text(extents, reductions, inputs, output, steps, combiner)
    result = run(text, [*arrays, accumulator], VECTORS)
    np.testing.assert_array_equal(result, ufunc(accumulator, total))
