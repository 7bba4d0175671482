"""The numpy evaluation behind mx-run --check: casts from and to MX floats against ml_dtypes and kernels."""

import math

import ml_dtypes
import numpy as np
import pytest
from interpreter_checks import WIDE, assert_kernel_agrees, evaluated, fails, of_body

from mx_dialect import interpreter_narrow
from mx_dialect.interpreter_values import Floats

RNG = np.random.default_rng(0)
ML_DTYPES = {
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f6E3M2FN": ml_dtypes.float6_e3m2fn,
    "f6E2M3FN": ml_dtypes.float6_e2m3fn,
    "f4E2M1FN": ml_dtypes.float4_e2m1fn,
    "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
}


def halves():
    """Return every finite f16, as f32."""
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
    return values[np.isfinite(values)]


@pytest.mark.parametrize("element", ML_DTYPES)
def test_narrow_casts_are_those_of_ml_dtypes_and_of_kernels(element):
    """Where the two differ, saturation and NaN, docs/numerics.md says so."""
    to, back = np.dtype(ML_DTYPES[element]), "f32"
    x = halves()
    x = x[x >= 2.0**-24] if element == "f8E8M0FNU" else x[np.abs(x) <= float(ml_dtypes.finfo(to).max)]
    n = x.size
    text = of_body(
        (f"%x: tensor<{n}xf32>", f"tensor<{n}x{back}>"),
        f" %0 = arith.truncf %x : tensor<{n}xf32> to tensor<{n}x{element}>\n"
        f" %r = arith.extf %0 : tensor<{n}x{element}> to tensor<{n}x{back}>",
    )
    (value,) = assert_kernel_agrees(text, x)
    assert value.is_exact
    np.testing.assert_array_equal(value.values, x.astype(to).astype(np.float64))
    specials = np.array([np.nan, np.inf, -np.inf, 1e30, -0.0, 0.0, -1.0, 2.0**-140], np.float32)
    text = text.replace(f"<{n}x", "<8x")
    assert_kernel_agrees(text, specials)


def test_scales_round_to_the_nearest_power():
    cases = {1.0: 127, 1.49: 127, 1.5: 128, 3.0: 129, 0.0: 0, 2.0**-140: 0, 2.0**-127: 0, 1.4 * 2.0**127: 254}
    cases |= {1.5 * 2.0**127: 255, -1.0: 255, math.inf: 255, math.nan: 255, 1.5 * 2.0**-127: 1}
    values = Floats(np.array([*cases]), np.zeros(len(cases)), "f64")
    codes = interpreter_narrow.convert(values, "f64", "f8E8M0FNU")
    assert codes.view(np.uint8).tolist() == [*cases.values()]


@pytest.mark.parametrize("wide", WIDE)
def test_extension_of_every_scale(wide):
    """2^127 is no f16, and 2^-127 rounds to zero there."""
    codes = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e8m0fnu)
    text = of_body(
        ("%x: tensor<256xf8E8M0FNU>", f"tensor<256x{wide}>"),
        f" %r = arith.extf %x : tensor<256xf8E8M0FNU> to tensor<256x{wide}>",
    )
    (value,) = assert_kernel_agrees(text, codes)
    with np.errstate(over="ignore"):
        expected = np.append(np.ldexp(1.0, np.arange(-127, 128)), np.nan).astype(WIDE[wide]).astype(np.float64)
    np.testing.assert_array_equal(value.values, expected)


def test_scaling_casts():
    x = np.array([1.0, -3.0, 448.0, 0.5], np.float32)
    scale = np.array([128, 126, 130, 255], np.uint8).view(ml_dtypes.float8_e8m0fnu)
    text = """func.func @f(%x: tensor<4xf32>, %s: tensor<4xf8E8M0FNU>) -> (tensor<4xf8E4M3FN>, tensor<4xf32>) {
      %0 = arith.scaling_truncf %x, %s : tensor<4xf32>, tensor<4xf8E8M0FNU> to tensor<4xf8E4M3FN>
      %1 = arith.scaling_extf %0, %s : tensor<4xf8E4M3FN>, tensor<4xf8E8M0FNU> to tensor<4xf32>
      return %0, %1 : tensor<4xf8E4M3FN>, tensor<4xf32>
    }"""
    codes, values = assert_kernel_agrees(text, x, scale)
    np.testing.assert_array_equal(codes.astype(np.float32), [0.5, -6, 56, np.nan])
    np.testing.assert_array_equal(values.values, [1, -3, 448, np.nan])


@pytest.mark.parametrize("element", [e for e in ML_DTYPES if e != "f8E8M0FNU"])
def test_what_was_rounded_before_has_a_bound(element):
    """Whatever a kernel has within the error rounds to something within the new one, and some codes are certain."""
    top = float(ml_dtypes.finfo(ML_DTYPES[element]).max)
    x = RNG.uniform(-top, top, 500)
    error = np.abs(x) * 2.0 ** RNG.integers(-12, -2, x.size)
    rounded = interpreter_narrow.convert(Floats(x, error, "f32"), "f32", element)
    for share in (-1, -0.5, 0, 0.3, 1):
        near = np.clip(x + share * error, -top, top).astype(ML_DTYPES[element]).astype(np.float64)
        assert (np.abs(near - rounded.values) <= rounded.error).all()
    assert 0 < np.count_nonzero(rounded.error) < x.size


def test_rounded_codes_that_are_certain_stay_codes():
    x = Floats(np.array([1.0, -0.0, 2.01]), np.array([0, 0, 2.0**-10]), "f32")
    assert interpreter_narrow.convert(x, "f32", "f8E4M3FN").view(np.uint8).tolist() == [0x38, 0x80, 0x40]
    unknown = interpreter_narrow.convert(Floats(np.ones(1), np.full(1, np.inf), "f32"), "f32", "f8E4M3FN")
    assert np.isinf(unknown.error).all()


ROUNDED_CODES = """
func.func @f(%x: tensor<2x32xf32>, %n: index) -> {result} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %y = arith.mulf %x, %x : tensor<2x32xf32>
  %q = arith.truncf %y : tensor<2x32xf32> to tensor<2x32xf8E4M3FN>
  %s = arith.constant dense<1.0> : tensor<2x1xf8E8M0FNU>
  {body}
}}"""


def test_rounded_codes_as_results_and_in_other_operations():
    x = RNG.standard_normal((2, 32)).astype(np.float32)
    kept = ROUNDED_CODES.format(
        result="tensor<2x32xf8E4M3FN>",
        body="""%e = tensor.empty() : tensor<2x32xf8E4M3FN>
          %a = tensor.extract %q[%c0, %c1] : tensor<2x32xf8E4M3FN>
          %b = tensor.insert %a into %e[%c1, %c1] : tensor<2x32xf8E4M3FN>
          %r = tensor.extract_slice %q[0, 0] [1, 32] [1, 1] : tensor<2x32xf8E4M3FN> to tensor<1x32xf8E4M3FN>
          %t = tensor.insert_slice %r into %b[0, 0] [1, 32] [1, 1] : tensor<1x32xf8E4M3FN> into tensor<2x32xf8E4M3FN>
          return %t : tensor<2x32xf8E4M3FN>""",
    )
    x[0, :4] = np.sqrt(np.float32(1.0625))
    (value,) = evaluated(kept, x, 1)
    # 1.0625 lies between two codes.
    np.testing.assert_array_equal(value.error[0] != 0, np.arange(32) < 4)
    assert np.flatnonzero(value.error[1]).tolist() == [1]
    np.testing.assert_array_equal(value.values[0], (x[0] * x[0]).astype(ml_dtypes.float8_e4m3fn).astype(np.float64))
    composed = ROUNDED_CODES.format(
        result="tensor<2x32xf32>",
        body="""%m = mx.compose %q, %s : tensor<2x32xf8E4M3FN>, tensor<2x1xf8E8M0FNU> -> <2x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
          %r = mx.dequantize_block %m : <2x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU> -> tensor<2x32xf32>
          return %r : tensor<2x32xf32>""",
    )
    near_ties = np.sqrt(np.full((2, 32), 1.0625, np.float32))
    fails("'mx.compose' op takes codes that roundings may change", composed, near_ties, 1)
    added = ROUNDED_CODES.format(
        result="tensor<2x32xf8E4M3FN>",
        body="%r = arith.addf %q, %q : tensor<2x32xf8E4M3FN>\n return %r : tensor<2x32xf8E4M3FN>",
    )
    fails("'arith.addf' op is not evaluated", added, x, 1)


@pytest.mark.parametrize(
    "body",
    [
        "%r = arith.addf %x, %x : f8E5M2FNUZ",
        "%r = arith.negf %x : f8E5M2FNUZ",
        "%w = arith.extf %x : f8E5M2FNUZ to f32\n %y = arith.mulf %w, %w : f32\n %r = arith.truncf %y : f32 to f8E5M2FNUZ",
        "%y = arith.convertf %x : f8E5M2FNUZ to f8E4M3FN\n %r = arith.convertf %y : f8E4M3FN to f8E5M2FNUZ",
    ],
)
def test_other_narrow_floats_are_only_read(body):
    text = of_body(("%x: f8E5M2FNUZ", "f8E5M2FNUZ"), f" {body}")
    fails("op is not evaluated", text, np.array(1.5, ml_dtypes.float8_e5m2fnuz))
    read = of_body(("%x: f8E5M2FNUZ", "f32"), " %r = arith.extf %x : f8E5M2FNUZ to f32")
    assert evaluated(read, np.array(1.5, ml_dtypes.float8_e5m2fnuz))[0].values == 1.5


def test_rounding_modes_are_refused():
    text = of_body(("%x: f32", "bf16"), " %r = arith.truncf %x upward : f32 to bf16")
    fails("'arith.truncf' op is not evaluated", text, np.float32(1))
