"""The pipelines to machine code: whatever has to lower computes the right numbers, any operation in vectors."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pipeline_programs import BOTH, VECTORS, run, tensor

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
