"""What the numpy reference refuses, and what it says then."""

import ml_dtypes
import numpy as np
import pytest
from reference_checks import f32, normal

from mx_dialect import reference
from mx_dialect.diagnostics import MxError


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: reference.quantize([1.0] * 32), r"not float64; convert with x\.astype\(np\.float32\)"),
        (lambda: reference.quantize(np.ones(32, np.int32)), "quantize takes float32, float16 or bfloat16"),
        (lambda: reference.quantize(np.ones(32, ">f4")), "convert with"),
        (lambda: reference.quantize(f32(*range(48))), "extent 48 of blocked axis 0 is not a multiple of block size 32"),
        (lambda: reference.quantize(f32(1, 2, 3), block_size=3), "power of two >= 1, but is 3"),
        (lambda: reference.quantize(f32(1), block_size=0), "power of two >= 1, but is 0"),
        (lambda: reference.quantize(f32(1), block_size=1.0), "block size and axis must be integers"),
        (lambda: reference.quantize(f32(1), block_size=1, axis=1), "axis 1 is out of range"),
        (lambda: reference.quantize(f32(1), block_size=1, axis=-2), "axis -2 is out of range"),
        (lambda: reference.quantize(np.float32(1), block_size=1), "rank 1 or more"),
        (lambda: reference.quantize(f32(1), "f8E4M3"), "'f8E4M3' is not an MX element type; expected one of f8E5M2"),
        (lambda: reference.quantize(f32(1), block_size=1, rounding="up"), "unknown rounding mode 'up'"),
        (lambda: reference.encode(np.ones(1, np.int8), "i8"), "encode takes float64, float32"),
        (lambda: reference.decode(np.array([16], np.uint8), "f4E2M1FN"), "0x10 is no code of MXFP4 E2M1.* 4 bits"),
        (lambda: reference.decode(np.ones(1, np.int8), "f8E4M3FN"), "have dtype float8_e4m3fn or uint8, not int8"),
        (lambda: reference.decode_scale(f32(1)), "float8_e8m0fnu, float8_e4m3fn or uint8, not float32"),
        (
            lambda: reference.decode_scale(np.ones(1, ml_dtypes.float8_e8m0fnu), "f8E4M3FN"),
            "float8_e4m3fn or uint8, not float8_e8m0fnu",
        ),
        (lambda: reference.decode_scale(np.ones(1, np.uint8), "f32"), "'f32' is not a supported scale type"),
        (lambda: reference.quantize(f32(1), block_size=1, scale_type="f8E5M2"), "'f8E5M2' is not a supported scale"),
        (
            lambda: reference.quantize(f32(1), block_size=1, rounding="ceil", scale_type="f8E4M3FN"),
            "rounding 'ceil' chooses a shared exponent; f8E4M3FN scales take the nearest",
        ),
        (lambda: reference.dequantize(np.zeros(32, np.uint8), np.zeros(1, np.uint8)), "uint8 holds no MX elements"),
        (lambda: reference.dequantize(np.zeros(32, np.int8)), "needs the scale array"),
        (
            lambda: reference.dequantize(np.zeros((2, 64), np.int8), np.zeros((2, 1), np.uint8)),
            r"scale has shape \(2, 1\); a mantissa of shape \(2, 64\) in blocks of 32 along axis 1 needs \(2, 2\)",
        ),
        (
            lambda: reference.dequantize(reference.quantize(normal(0, 32)), np.zeros(1, np.uint8)),
            "not both",
        ),
        (lambda: reference.matmul(normal(0, 2, 3), normal(0, 2, 3)), r"\(2, 3\) and \(2, 3\): A's last axis"),
        (lambda: reference.matmul(normal(0, 2, 3), normal(0, 4, 2), transpose_rhs=True), "must be as long as B's last"),
        (lambda: reference.matmul(normal(0, 2, 2, 3), normal(0, 3, 3, 3)), "batch axes do not broadcast"),
        (
            lambda: reference.matmul(normal(0, 2, 2, 3), normal(0, 3, 4), normal(0, 1, 2, 4)),
            r"has shape \(1, 2, 4\).* \(2, 2, 4\)",
        ),
        (lambda: reference.matmul(normal(0, 3), normal(0, 3, 3)), r"operand A has shape \(3,\); expected rank 2"),
        (lambda: reference.matmul(normal(0, 2, 3), normal(0, 3, 4), normal(0, 4)), r"has shape \(4,\).* \(2, 4\)"),
        (lambda: reference.matmul(normal(0, 2, 3), normal(0, 3, 4).astype(float)), "matmul takes float32"),
        (
            lambda: reference.matmul(reference.quantize(normal(0, 32, 32), axis=0), normal(0, 32, 32)),
            "operand A is blocked along axis 0, not along the contracted axis 1; quantize it with axis=-1",
        ),
        (
            lambda: reference.matmul(normal(0, 32, 32), reference.quantize(normal(0, 32, 32))),
            "operand B is blocked along axis 1, not along the contracted axis 0; quantize it with axis=-2",
        ),
        (
            lambda: reference.matmul(
                normal(0, 32, 32), reference.quantize(normal(0, 32, 32), axis=0), transpose_rhs=True
            ),
            "operand B is blocked along axis 0, not along the contracted axis 1; quantize it with axis=-1",
        ),
        (lambda: reference.matmul_bound(normal(0, 2, 3), normal(0, 3, 2), scale_products="both"), "'both'; expected"),
        (
            lambda: reference.matmul_bound(np.zeros((0, 1 << 22), np.float32), np.zeros((1 << 22, 0), np.float32)),
            "no useful error bound",
        ),
    ],
)
def test_refusals_say_what_is_wrong(call, message):
    with pytest.raises(MxError, match=message):
        call()
