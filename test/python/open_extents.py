"""Functions of open extents, and calls that are refused because extents do not go together."""

import re

import ml_dtypes
import numpy as np
import pytest

import mx_dialect
from mx_dialect import MxArray, MxError

F8 = ml_dtypes.float8_e4m3fn
SCALE = ml_dtypes.float8_e8m0fnu
LOOPS = "mx-lower-to-llvm"
A = "!mx.tensor<?x?xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>"
B = "!mx.tensor<?x?xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU, axis = 0>"
T = "tensor<?x?xf32>"


def matmul(arguments, body, a="%a", b="%b", b_type=T, results="%0"):
    """A function of open extents that ends in one matmul."""
    return f"""
    func.func @f({arguments}) -> {T} {{
      {body}
      %0 = mx.block_matmul {a}, {b}, %acc : {A}, {b_type}, {T} -> {T}
      return {results} : {T}
    }}"""


def mx(m, k, axis=1):
    """A block-scaled array of ones."""
    shape = [m, k]
    shape[axis] //= 32
    return MxArray(np.ones((m, k), F8), np.ones(shape, SCALE), axis=axis)


def ones(*shape):
    return np.ones(shape, np.float32)


def native_calls(kernel, monkeypatch):
    """Count the calls of compiled code."""
    calls = []
    function = kernel._function
    monkeypatch.setattr(kernel, "_function", lambda packed: (calls.append(1), function(packed)))
    return calls


def refusal_check(monkeypatch):
    """Return what the fixture `refused` is."""

    def check(text, arguments, message, *, before=True):
        """The call fails with the message: before compiled code runs, or (`before` False) when it returns."""
        kernel = mx_dialect.compile(text, pipeline=LOOPS)
        calls = native_calls(kernel, monkeypatch)
        with pytest.raises(MxError, match=re.escape(message)) as caught:
            kernel(*arguments)
        assert len(calls) == (0 if before else 1)
        return caught.value

    return check
