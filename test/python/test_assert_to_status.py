"""A failing assert is an exception with its own message and position; the process and the kernel live on."""

import threading

import numpy as np
import pytest

import mx_dialect
from mx_dialect import MxError
from mx_dialect._mlir import execution_engine, ir, passmanager

BOTH = ("mx-lower-to-llvm", "mx-lower-to-llvm-vectorized")

# Fails with "a" if x[0] is not above 0, with "b" if x[1] is not.
TWO = """
func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %a = tensor.extract %x[%c0] : tensor<2xf32>
  %a_holds = arith.cmpf ogt, %a, %zero : f32
  cf.assert %a_holds, "a must be \\22positive\\22"
  %sum = arith.addf %x, %x : tensor<2xf32>
  %b = tensor.extract %x[%c1] : tensor<2xf32>
  %b_holds = arith.cmpf ogt, %b, %zero : f32
  cf.assert %b_holds, "b must be positive"
  return %sum : tensor<2xf32>
}
"""

# The entry calls @twice, which calls @once: an assert two calls down, and values that come back.
NESTED = """
func.func private @once(%x: f32) -> (f32, i32) {
  %zero = arith.constant 0.0 : f32
  %holds = arith.cmpf oge, %x, %zero : f32
  cf.assert %holds, "negative"
  %seven = arith.constant 7 : i32
  %root = math.sqrt %x : f32
  return %root, %seven : f32, i32
}
func.func private @twice(%x: f32) -> (f32, i32) {
  %0:2 = call @once(%x) : (f32) -> (f32, i32)
  %one = arith.constant 1.0 : f32
  %lower = arith.subf %0#0, %one : f32
  %1:2 = call @once(%lower) : (f32) -> (f32, i32)
  %sum = arith.addi %0#1, %1#1 : i32
  return %1#0, %sum : f32, i32
}
func.func @f(%x: f32, %unused: i16) -> (i32, f32) {
  %0:2 = call @twice(%x) : (f32) -> (f32, i32)
  return %0#1, %0#0 : i32, f32
}
"""

# Sums x; fails at the first element that is negative. The loop holds a branch.
LOOP = """
func.func @f(%x: tensor<?xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> f32 {
    %v = tensor.extract %x[%i] : tensor<?xf32>
    %small = arith.cmpf olt, %v, %zero : f32
    scf.if %small {
      %false = arith.constant false
      cf.assert %false, "negative element"
    }
    %1 = arith.addf %sum, %v : f32
    scf.yield %1 : f32
  }
  return %0 : f32
}
"""


def message_of(kernel, *arguments):
    with pytest.raises(MxError) as caught:
        kernel(*arguments)
    (diagnostic,) = caught.value.diagnostics
    return diagnostic


@pytest.mark.parametrize("pipeline", BOTH)
def test_each_assert_has_its_message(pipeline):
    kernel = mx_dialect.compile(TWO, pipeline=pipeline)
    good, bad = np.float32([1, 2]), np.float32([-1, -1])
    assert kernel(good).tolist() == [2, 4]
    assert message_of(kernel, np.float32([-1, 2])).message == 'a must be "positive"'
    assert message_of(kernel, np.float32([1, -2])).message == "b must be positive"
    # The first that fails.
    first = message_of(kernel, bad)
    assert (first.message, first.severity) == ('a must be "positive"', "error")
    # Nothing is left over from a failure.
    assert kernel(good).tolist() == [2, 4]


def test_position():
    diagnostic = message_of(mx_dialect.compile(TWO), np.float32([1, -2]))
    assert (diagnostic.line, diagnostic.column) == (12, 3)


@pytest.mark.parametrize("pipeline", BOTH)
def test_nested_calls(pipeline):
    kernel = mx_dialect.compile(NESTED, entry="f", pipeline=pipeline)
    assert kernel(4.0, 0) == (14, 1.0)
    assert message_of(kernel, -1.0, 0).message == "negative"
    # The second call fails: sqrt(0.25) - 1 is negative.
    assert message_of(kernel, 0.25, 0).message == "negative"


@pytest.mark.parametrize("pipeline", BOTH)
def test_loop(pipeline):
    kernel = mx_dialect.compile(LOOP, pipeline=pipeline)
    assert kernel(np.float32([1, 2, 3])) == 6
    assert kernel(np.zeros(0, np.float32)) == 0
    assert message_of(kernel, np.float32([1, -2, 3])).message == "negative element"


def test_mixed_with_functions_that_cannot_fail():
    text = """
    func.func private @add(%x: i32) -> i32 {
      %0 = arith.addi %x, %x : i32
      return %0 : i32
    }
    func.func private @check(%x: i32) {
      %c9 = arith.constant 9 : i32
      %small = arith.cmpi ult, %x, %c9 : i32
      cf.assert %small, "too large"
      return
    }
    func.func @f(%x: i32) -> i32 {
      %0 = call @add(%x) : (i32) -> i32
      call @check(%0) : (i32) -> ()
      %1 = call @add(%0) : (i32) -> i32
      return %1 : i32
    }"""
    kernel = mx_dialect.compile(text)
    assert kernel(4) == 16
    assert message_of(kernel, 5).message == "too large"


def test_scale_that_leaves_its_range():
    """The case that needs all this: whether 2^9 still fits into the scales is in the data."""
    t = "!mx.tensor<1x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>"
    text = f"""
    func.func @f(%x: {t}) -> {t} {{
      %factor = arith.constant 512.0 : f32
      %0 = mx.fold_scale %x, %factor : {t}, f32 -> {t}
      return %0 : {t}
    }}"""
    kernel = mx_dialect.compile(text)
    codes = np.full((1, 32), 56, np.uint8)
    for scale, expected in ((127, 136), (245, 254), (0, 9), (255, 255)):
        result = kernel(codes, np.full((1, 1), scale, np.uint8))
        assert result.scale.view(np.uint8).tolist() == [[expected]]
        assert result.mantissa.view(np.uint8).tolist() == codes.tolist()
    for scale in (246, 254):
        diagnostic = message_of(kernel, codes, np.full((1, 1), scale, np.uint8))
        assert "leaves the range" in diagnostic.message
        assert diagnostic.line == 4


def test_in_place_update_is_not_begun():
    """An assert before the matmul leaves the accumulator alone."""
    text = """
    func.func @f(%x: tensor<2x2xf32>, %p: i1, %acc: tensor<2x2xf32>) -> tensor<2x2xf32> {
      cf.assert %p, "no"
      %0 = linalg.matmul ins(%x, %x : tensor<2x2xf32>, tensor<2x2xf32>) outs(%acc : tensor<2x2xf32>) -> tensor<2x2xf32>
      return %0 : tensor<2x2xf32>
    }"""
    kernel = mx_dialect.compile(text)
    x, acc = np.ones((2, 2), np.float32), np.ones((2, 2), np.float32)
    with pytest.raises(MxError, match=r"error: no$"):
        kernel(x, False, acc, in_place=True)
    assert (acc == 1).all()
    assert kernel(x, True, acc, in_place=True) is acc
    assert (acc == 3).all()


def test_threads_fail_apart():
    """Odd threads fail every call, even ones none."""
    kernel = mx_dialect.compile(TWO)
    outcomes = {number: set() for number in range(4)}

    def run(number):
        x = np.float32([-1 if number % 2 else 1, 2])
        for _ in range(300):
            outcomes[number].add(outcome(x))

    def outcome(x):
        try:
            return tuple(kernel(x).tolist())
        except MxError as error:
            return error.diagnostics[0].message

    threads = [threading.Thread(target=run, args=(number,)) for number in outcomes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [outcomes[number] for number in range(4)] == [{(2, 4)}, {'a must be "positive"'}] * 2


def test_recursion():
    """A function that calls itself passes its own status on."""
    text = """
    func.func private @count(%n: i32) -> i32 {
      %zero = arith.constant 0 : i32
      %more = arith.cmpi ne, %n, %zero : i32
      cf.cond_br %more, ^more, ^done
    ^more:
      %c100 = arith.constant 100 : i32
      %small = arith.cmpi slt, %n, %c100 : i32
      cf.assert %small, "too deep"
      %one = arith.constant 1 : i32
      %less = arith.subi %n, %one : i32
      %below = call @count(%less) : (i32) -> i32
      %not_13 = arith.cmpi ne, %n, %c100 : i32
      cf.assert %not_13, "never"
      %sum = arith.addi %below, %one : i32
      return %sum : i32
    ^done:
      return %zero : i32
    }
    func.func @f(%n: i32) -> i32 attributes {llvm.emit_c_interface} {
      %0 = call @count(%n) : (i32) -> i32
      return %0 : i32
    }"""
    kernel = mx_dialect.compile(text)
    assert kernel(99) == 99
    assert message_of(kernel, 100).message == "too deep"


def test_no_assert_no_status():
    module = mx_dialect.parse("func.func @f(%x: i32) -> i32 {\n  return %x : i32\n}")
    before = mx_dialect.to_asm(module)
    mx_dialect.run_pipeline(module, "mx-assert-to-status")
    assert mx_dialect.to_asm(module) == before


def test_poison_results_reach_llvm():
    """The results of a failed call are poison of every kind of type, which LLVM must take."""
    text = """
    func.func @f(%p: i1) -> (memref<4xf32>, memref<?x2xi8>, f32, bf16, i1, index, vector<4xf32>)
        attributes {llvm.emit_c_interface} {
      cf.assert %p, "no"
      %0 = memref.alloc() : memref<4xf32>
      %c = arith.constant 3 : index
      %1 = memref.alloc(%c) : memref<?x2xi8>
      %2 = arith.constant 1.0 : f32
      %3 = arith.constant 1.0 : bf16
      %4 = arith.constant dense<1.0> : vector<4xf32>
      return %0, %1, %2, %3, %p, %c, %4 : memref<4xf32>, memref<?x2xi8>, f32, bf16, i1, index, vector<4xf32>
    }"""
    module = mx_dialect.parse(text)
    mx_dialect.run_pipeline(module, "mx-assert-to-status")
    with module.context, ir.Location.unknown():
        passmanager.PassManager.parse(
            "builtin.module(convert-vector-to-llvm,finalize-memref-to-llvm,convert-arith-to-llvm,convert-cf-to-llvm,"
            "convert-func-to-llvm,convert-ub-to-llvm,reconcile-unrealized-casts)"
        ).run(module.operation)
        assert execution_engine.ExecutionEngine(module).raw_lookup("_mlir_ciface_f")
