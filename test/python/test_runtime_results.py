"""Kernel: what it returns, and updates in place."""

import itertools

import numpy as np
import pytest
from runtime_programs import ACC, MATMUL, MX, NEGATE, ONES, PIPELINES, PRODUCT, TWOS, B, fail

import mx_dialect
from mx_dialect import MxArray


class TestResults:
    """A result belongs to the caller, whatever the function made it of."""

    TEXT = """
    func.func @f(%x: tensor<4xf32>, %p: i1) -> (tensor<4xf32>, tensor<4xf32>, tensor<2xf32>, tensor<4xf32>,
                                               tensor<4xf32>, tensor<4xf32>, tensor<2x2xf32>) {
      %constant = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
      %slice = tensor.extract_slice %x[2] [2] [1] : tensor<4xf32> to tensor<2xf32>
      %either = scf.if %p -> tensor<4xf32> {
        scf.yield %x : tensor<4xf32>
      } else {
        scf.yield %constant : tensor<4xf32>
      }
      %sum = arith.addf %x, %constant : tensor<4xf32>
      %square = tensor.expand_shape %sum [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>
      return %x, %constant, %slice, %either, %sum, %sum, %square : tensor<4xf32>, tensor<4xf32>, tensor<2xf32>,
        tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2x2xf32>
    }
    """

    @pytest.mark.parametrize("pipeline", PIPELINES)
    @pytest.mark.parametrize("p", [True, False])
    def test_each_its_own(self, p, pipeline):
        kernel = mx_dialect.compile(self.TEXT, pipeline=pipeline)
        x = np.float32([5, 6, 7, 8])
        constant = [1, 2, 3, 4]
        expected = [
            [5, 6, 7, 8],
            constant,
            [7, 8],
            [5, 6, 7, 8] if p else constant,
            [6, 8, 10, 12],
            [6, 8, 10, 12],
            [[6, 8], [10, 12]],
        ]
        for _ in range(2):
            results = kernel(x, p)
            assert [r.tolist() for r in results] == expected
            for a, b in itertools.combinations([x, *results], 2):
                assert not np.shares_memory(a, b)
            for result in results:
                assert result.flags.writeable
                result[...] = -1
            assert x.tolist() == [5, 6, 7, 8]

    def test_mx_result(self):
        text = f"""
        func.func @f(%x: tensor<4x64xf32>, %y: {MX}) -> ({MX}, {MX}, f32) {{
          %0 = mx.quantize_block %x : tensor<4x64xf32> -> {MX}
          %1 = arith.constant 1.0 : f32
          return %y, %0, %1 : {MX}, {MX}, f32
        }}"""
        same, quantized, one = mx_dialect.compile(text)(np.full((4, 64), 6, np.float32), ONES, TWOS)
        assert isinstance(same, MxArray)
        assert same.mantissa.tobytes() == ONES.tobytes()
        assert not np.shares_memory(same.mantissa, ONES)
        # 6 = 1.5 * 2^2, scaled to the top binade of E4M3, 2^8: 384 * 2^-6.
        assert (quantized.mantissa.astype(np.float32) == 384).all()
        assert (quantized.scale.view(np.uint8) == 127 - 6).all()
        assert (quantized.shape, quantized.axis, quantized.block_size, one) == ((4, 64), 1, 32, 1.0)


class TestInPlace:
    @pytest.mark.parametrize("pipeline", PIPELINES)
    def test_updates_the_accumulator(self, pipeline):
        kernel = mx_dialect.compile(MATMUL, pipeline=pipeline)
        acc, others = ACC.copy(), (ONES.copy(), TWOS.copy(), B.copy())
        assert kernel(*others, acc, in_place=True) is acc
        np.testing.assert_array_equal(acc, PRODUCT)
        for used, before in zip(others, (ONES, TWOS, B), strict=True):
            assert used.tobytes() == before.tobytes()

    @pytest.mark.parametrize("pipeline", PIPELINES)
    def test_changes_nothing_unless_asked(self, pipeline):
        kernel = mx_dialect.compile(MATMUL, pipeline=pipeline)
        acc = ACC.copy()
        result = kernel(ONES, TWOS, B, acc)
        assert acc.tobytes() == ACC.tobytes()
        assert not np.shares_memory(result, acc)

    def test_view_of_the_callers_array(self):
        """The memory that is written is the caller's own, whichever array stands for it."""
        acc = np.zeros((6, 8), np.float32)
        acc[1:5] = ACC
        view = acc[1:5]
        assert mx_dialect.compile(MATMUL)(ONES, TWOS, B, view, in_place=True) is view
        np.testing.assert_array_equal(acc[1:5], PRODUCT)
        assert not acc[[0, 5]].any()

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda acc: np.asfortranarray(acc), "C-contiguous"),
            (lambda acc: np.repeat(acc, 2, axis=1)[:, ::2], "C-contiguous"),
            (lambda acc: acc.astype(acc.dtype.newbyteorder()), "native byte order"),
            (lambda acc: np.broadcast_to(acc, acc.shape), "read-only"),
        ],
    )
    def test_refused(self, make, message):
        fail(message, mx_dialect.compile(MATMUL), ONES, TWOS, B, make(ACC.copy()), in_place=True)

    def test_rank_zero(self):
        text = """
        func.func @dot(%x: tensor<3xf32>, %sum: tensor<f32>) -> tensor<f32> {
          %0 = linalg.dot ins(%x, %x : tensor<3xf32>, tensor<3xf32>) outs(%sum : tensor<f32>) -> tensor<f32>
          return %0 : tensor<f32>
        }"""
        kernel = mx_dialect.compile(text)
        x, total = np.float32([1, 2, 3]), np.array(1, np.float32)
        assert kernel(x, np.float32(1)) == 15
        fail(
            "argument 1 is updated in place, which takes an array, not float32", kernel, x, np.float32(1), in_place=True
        )
        assert kernel(x, total, in_place=True) is total
        assert total == 15

    def test_beside_other_results(self):
        """Results that are passed through, fresh, and updated, in one call."""
        text = """
        func.func @f(%n: i32, %x: tensor<2x2xf32>, %acc: tensor<2x2xf32>) -> (i32, tensor<2x2xf32>, tensor<2x2xf32>, i32,
                                                                              tensor<2x2xf32>) {
          %0 = linalg.matmul ins(%x, %x : tensor<2x2xf32>, tensor<2x2xf32>) outs(%acc : tensor<2x2xf32>) -> tensor<2x2xf32>
          %1 = arith.negf %x : tensor<2x2xf32>
          %2 = arith.addi %n, %n : i32
          return %n, %0, %1, %2, %0 : i32, tensor<2x2xf32>, tensor<2x2xf32>, i32, tensor<2x2xf32>
        }"""
        kernel = mx_dialect.compile(text)
        x, acc = np.ones((2, 2), np.float32), np.ones((2, 2), np.float32)
        n, first, negative, double, second = kernel(5, x, acc)
        assert (n, double) == (5, 10)
        assert not np.shares_memory(first, second)
        assert (acc == 1).all()
        for array, value in ((first, 3), (second, 3), (negative, -1)):
            assert (array == value).all()
        n, first, negative, double, second = kernel(5, x, acc, in_place=True)
        assert (n, double) == (5, 10)
        assert first is acc
        assert second is acc
        assert (acc == 3).all()
        assert (negative == -1).all()

    def test_overlap_refused(self):
        kernel = mx_dialect.compile(MATMUL)
        b = B.copy()
        fail(
            "argument 2 is updated in place, but shares memory with argument 1",
            kernel,
            ONES,
            TWOS,
            b,
            b[8:12],
            in_place=True,
        )
        np.testing.assert_array_equal(b, B)
        # Without in_place the accumulator is copied, and may be anything.
        np.testing.assert_array_equal(kernel(ONES, TWOS, b, b[8:12]), PRODUCT - ACC + B[8:12])

    def test_argument_copied_before_the_update(self):
        """A strided argument is read before the accumulator that it shares memory with is written."""
        b = np.zeros((64, 16), np.float32)
        b[:, ::2] = B
        np.testing.assert_array_equal(mx_dialect.compile(MATMUL)(ONES, TWOS, b[:, ::2], ACC), PRODUCT)

    def test_nothing_to_update(self):
        kernel = mx_dialect.compile(NEGATE.format(5))
        fail("computes no result into an argument", kernel, np.ones(5, np.float32), in_place=True)

    @pytest.mark.parametrize("pipeline", PIPELINES)
    def test_argument_needed_after_its_update(self, pipeline):
        """acc is read again when the sum is there: no buffer can be both."""
        text = f"""
        func.func @f(%a: {MX}, %b: tensor<64x8xf32>, %acc: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {{
          %0 = mx.block_matmul %a, %b, %acc : {MX}, tensor<64x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
          %1 = arith.subf %0, %acc : tensor<4x8xf32>
          return %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
        }}"""
        acc = ACC.copy()
        total, difference = mx_dialect.compile(text, pipeline=pipeline)(ONES, TWOS, B, acc)
        np.testing.assert_array_equal(total, PRODUCT)
        np.testing.assert_array_equal(difference, PRODUCT - ACC)
        np.testing.assert_array_equal(acc, ACC)

    @pytest.mark.parametrize("pipeline", PIPELINES)
    def test_scratch_is_not_the_callers(self, pipeline):
        """A result computed from the updated accumulator gives the compiler no right to the accumulator itself."""
        text = f"""
        func.func @f(%a: {MX}, %b: tensor<64x8xf32>, %acc: tensor<4x8xf32>) -> tensor<8x4xf32> {{
          %0 = mx.block_matmul %a, %b, %acc : {MX}, tensor<64x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
          %1 = tensor.empty() : tensor<8x4xf32>
          %2 = linalg.transpose ins(%0 : tensor<4x8xf32>) outs(%1 : tensor<8x4xf32>) permutation = [1, 0]
          return %2 : tensor<8x4xf32>
        }}"""
        kernel = mx_dialect.compile(text, pipeline=pipeline)
        acc = ACC.copy()
        np.testing.assert_array_equal(kernel(ONES, TWOS, B, acc), PRODUCT.T)
        np.testing.assert_array_equal(acc, ACC)
        fail("computes no result into an argument", kernel, ONES, TWOS, B, acc, in_place=True)

    def test_through_a_loop(self):
        text = f"""
        func.func @f(%a: {MX}, %b: tensor<64x8xf32>, %acc: tensor<4x8xf32>) -> tensor<4x8xf32> {{
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %c3 = arith.constant 3 : index
          %0 = scf.for %i = %c0 to %c3 step %c1 iter_args(%sum = %acc) -> tensor<4x8xf32> {{
            %1 = mx.block_matmul %a, %b, %sum : {MX}, tensor<64x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
            scf.yield %1 : tensor<4x8xf32>
          }}
          return %0 : tensor<4x8xf32>
        }}"""
        kernel = mx_dialect.compile(text)
        acc = ACC.copy()
        np.testing.assert_array_equal(kernel(ONES, TWOS, B, acc), 3 * (PRODUCT - ACC) + ACC)
        np.testing.assert_array_equal(acc, ACC)
        assert kernel(ONES, TWOS, B, acc, in_place=True) is acc
        np.testing.assert_array_equal(acc, 3 * (PRODUCT - ACC) + ACC)
