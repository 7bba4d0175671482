"""Evaluating a function in numpy and compiling it, for the tests of the interpreter."""

import ml_dtypes
import numpy as np
import pytest

import mx_dialect
from mx_dialect import MxError, interpreter
from mx_dialect.interpreter_values import Floats
from mx_dialect.run_check import Expected, report

WIDE = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}


def evaluated(text, *arguments):
    """Return the results of the function @f of a module for arrays."""
    return interpreter.evaluate(mx_dialect.parse(text), "f", arguments)


def of_body(signature, body):
    return f"func.func @f({signature[0]}) -> ({signature[1]}) {{\n{body}\n return %r : {signature[1]}\n}}"


def assert_kernel_agrees(text, *arguments):
    """Compile @f too, and compare its results with the evaluation within its bounds."""
    results = mx_dialect.compile(text)(*arguments)
    values = evaluated(text, *arguments)
    for result, value in zip([results] if len(values) == 1 else results, values, strict=True):
        expected = Expected(value.values, value.error) if isinstance(value, Floats) else Expected(value, None)
        good, line = report("result", np.asarray(result), expected)
        assert good, line
    return values


def fails(pattern, text, *arguments):
    with pytest.raises(MxError, match=pattern) as caught:
        evaluated(text, *arguments)
    assert "--check=FILE.npz" in str(caught.value) or "nest deeper" in str(caught.value)
