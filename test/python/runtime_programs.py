"""Functions that the tests of compile() and of kernels call, with arguments and results worked out by hand."""

import re

import ml_dtypes
import numpy as np
import pytest

from mx_dialect import MxError

PIPELINES = ("mx-lower-to-llvm", "mx-lower-to-llvm-vectorized")
MX = "!mx.tensor<4x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>"

MATMUL = f"""
func.func @matmul(%a: {MX}, %b: tensor<64x8xf32>, %acc: tensor<4x8xf32>) -> tensor<4x8xf32> {{
  %0 = mx.block_matmul %a, %b, %acc : {MX}, tensor<64x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}}
"""

# Returns a new buffer that holds the argument's elements 1 to 3.
SLICE = """
func.func @slice(%x: tensor<4x{0}>) -> tensor<3x{0}> {{
  %0 = tensor.extract_slice %x[1] [3] [1] : tensor<4x{0}> to tensor<3x{0}>
  return %0 : tensor<3x{0}>
}}
"""

NEGATE = """
func.func @negate(%x: tensor<{0}xf32>) -> tensor<{0}xf32> {{
  %0 = arith.negf %x : tensor<{0}xf32>
  return %0 : tensor<{0}xf32>
}}
"""

# A function that compiles, beside others.
SEVERAL = """
func.func @first(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
func.func @second(%x: tensor<3xf32>) -> tensor<3xf32> {
  return %x : tensor<3xf32>
}
func.func private @hidden(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func private @declared(%x: tensor<5xf32>) -> tensor<5xf32>
"""
ONES = np.ones((4, 64), ml_dtypes.float8_e4m3fn)

# Code 128 is 2^(128 - 127) = 2.
TWOS = np.full((4, 2), 128, np.uint8).view(ml_dtypes.float8_e8m0fnu)
B = np.arange(64 * 8, dtype=np.float32).reshape(64, 8)
ACC = np.arange(32, dtype=np.float32).reshape(4, 8)

# Small integers: exact in any order of summation.
PRODUCT = 2 * B.sum(axis=0, keepdims=True) + ACC


def fail(message, function, *arguments, **options):
    with pytest.raises(MxError, match=re.escape(message)):
        function(*arguments, **options)
