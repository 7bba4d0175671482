"""A new element format, f8E3M4: constants and conversions against ml_dtypes, kernels against the reference."""

import ml_dtypes
import numpy as np

import mx_dialect
from mx_dialect.formats import ELEMENT_FORMATS

FMT = ELEMENT_FORMATS["f8E3M4"]
INFO = ml_dtypes.finfo(ml_dtypes.float8_e3m4)


def test_constants() -> None:
    assert FMT.max_normal == float(INFO.max)
    assert FMT.min_normal == float(INFO.smallest_normal)
    assert FMT.min_subnormal == float(INFO.smallest_subnormal)
    nan = np.array(np.nan, ml_dtypes.float8_e3m4).view(np.uint8)
    assert nan == FMT.nan_magnitude


def test_reference_reads_all_codes() -> None:
    codes = np.arange(256, dtype=np.uint8)
    expected = codes.view(ml_dtypes.float8_e3m4).astype(np.float32)
    np.testing.assert_array_equal(mx_dialect.reference.decode(codes, FMT.mlir), expected)


def test_kernels_agree_with_the_reference() -> None:
    x = np.random.default_rng(0).standard_normal((8, 64), dtype=np.float32)
    expected = mx_dialect.reference.quantize(x, FMT.mlir)
    found = mx_dialect.quantize(x, FMT.mlir)
    np.testing.assert_array_equal(found.mantissa.view(np.uint8), expected.mantissa.view(np.uint8))
    np.testing.assert_array_equal(mx_dialect.dequantize(found), mx_dialect.reference.dequantize(expected))
    b = np.ones((64, 4), np.float32)
    error = np.abs(mx_dialect.matmul(found, b) - mx_dialect.reference.matmul(expected, b))
    assert (error <= mx_dialect.reference.matmul_bound(expected, b)).all()
