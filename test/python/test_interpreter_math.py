"""The numpy evaluation behind mx-run --check: functions of math, and the bounds of compiled ones."""

import math

import ml_dtypes
import numpy as np
import pytest
from interpreter_checks import WIDE, assert_kernel_agrees, evaluated, of_body

from mx_dialect import interpreter_math
from mx_dialect.interpreter_values import Floats

RNG = np.random.default_rng(0)

ARGUMENTS = {
    "acosh": (1, 50),
    "erfc": (-5, 1.5),
    "atanh": (-0.9, 0.9),
    "asin": (-0.9, 0.9),
    "acos": (-0.9, 0.9),
    "log": (1e-3, 50),
    "log2": (1e-3, 50),
    "log10": (1e-3, 50),
    "log1p": (-0.5, 50),
    "rsqrt": (1e-3, 50),
    "sqrt": (1e-3, 50),
}
ROOTS_AND_SUMS = ("math.sqrt", "math.rsqrt", "math.expm1", "math.log1p")
FUNCTIONS = [name.removeprefix("math.") for name in (*interpreter_math._LIBRARY, *ROOTS_AND_SUMS)]
EXACT = {
    name: np.vectorize(getattr(math, name), otypes=[np.float64])
    for name in FUNCTIONS
    if hasattr(math, name) and name != "cbrt"
} | {"exp2": lambda x: 2.0**x, "cbrt": np.cbrt, "rsqrt": lambda x: 1 / np.sqrt(x)}


def test_kernels_of_functions_lie_within_bounds_that_say_something():
    """Of every function and type, in one program; the values are Python's, which numpy's are compared with."""
    size = 32
    cases = [(name, element) for name in FUNCTIONS for element in WIDE]
    inputs = {n: RNG.uniform(*ARGUMENTS.get(n, (-5, 5)), size) for n in FUNCTIONS}
    arguments = [inputs[name].astype(WIDE[element]) for name, element in cases]
    types = [f"tensor<{size}x{element}>" for _, element in cases]
    body = "\n".join(f" %r{i} = math.{n} %x{i} : {t}" for i, ((n, _), t) in enumerate(zip(cases, types, strict=True)))
    text = (
        f"func.func @f({', '.join(f'%x{i}: {t}' for i, t in enumerate(types))}) -> ({', '.join(types)}) {{\n{body}\n"
        f" return {', '.join(f'%r{i}' for i in range(len(cases)))} : {', '.join(types)}\n}}"
    )
    values = assert_kernel_agrees(text, *arguments)
    for (name, element), x, value in zip(cases, arguments, values, strict=True):
        exact = EXACT[name](x.astype(np.float64))
        np.testing.assert_allclose(value.values, exact, rtol=1e-14, err_msg=name)
        # 16 ulps are the widest, in f64 those of the reference as well; the sums may cancel.
        ulp = float(ml_dtypes.finfo(WIDE[element]).eps)
        assert (value.error <= (33 if element == "f64" else 16.1) * ulp * (np.abs(exact) + ("1" in name))).all()
        assert (value.error >= 0.49 * ulp * np.abs(exact)).all()


def test_error_of_an_argument_goes_through_functions():
    x = RNG.uniform(0.1, 0.9, 200)
    for name in FUNCTIONS:
        moved = x + 1.0 if name == "acosh" else x
        error = 2.0**-10 * moved
        value = interpreter_math._evaluate(f"math.{name}", [Floats(moved, error, "f32")])
        for share in (-1, -0.4, 0.7, 1):
            assert (np.abs(EXACT[name](moved + share * error) - value.values) <= value.error).all(), name
        assert (value.error < 0.02).all(), name


def test_no_bound_outside_a_domain_or_with_fast_math():
    value = interpreter_math._evaluate("math.log", [Floats(np.array([1e-3, 1.0]), np.array([1e-2, 1e-2]), "f32")])
    assert np.isfinite(value.error).tolist() == [False, True]
    fast = of_body(("%x: f32", "f32"), " %r = math.exp %x fastmath<fast> : f32")
    assert np.isinf(evaluated(fast, np.float32(1))[0].error)
    assert np.isinf(evaluated(fast.replace("fastmath<fast> ", ""), np.float32(200))[0].error)


@pytest.mark.parametrize("name", ["ceil", "floor", "trunc", "round", "roundeven", "absf"])
def test_functions_that_round_nothing(name):
    x = np.array([-2.5, -1.5, -0.5, 0.49999997, 0.5, 1.5, 2.5, 8388609.0, -0.0, np.inf], np.float32)
    text = of_body(("%x: tensor<10xf32>", "tensor<10xf32>"), f" %r = math.{name} %x : tensor<10xf32>")
    (value,) = assert_kernel_agrees(text, x)
    assert value.is_exact


def test_fused_multiply_add_and_power():
    x, y, z = RNG.uniform(0.5, 2, (3, 32)).astype(np.float32)
    text = """func.func @f(%x: tensor<32xf32>, %y: tensor<32xf32>, %z: tensor<32xf32>) -> (tensor<32xf32>, tensor<32xf32>) {
      %0 = math.fma %x, %y, %z : tensor<32xf32>
      %1 = math.powf %x, %y : tensor<32xf32>
      return %0, %1 : tensor<32xf32>, tensor<32xf32>
    }"""
    total, power = assert_kernel_agrees(text, x, y, z)
    np.testing.assert_allclose(total.values, x.astype(np.float64) * y + z, rtol=1e-15)
    np.testing.assert_allclose(power.values, x.astype(np.float64) ** y, rtol=1e-14)
    assert (total.error < 1e-6).all()
    assert (power.error < 1e-4).all()
