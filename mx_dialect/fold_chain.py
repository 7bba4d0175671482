"""Chains of `mx.fold_scale`: what they multiply by, for lowering and simplification alike."""

import ctypes
import functools
import math
from typing import Any

from mx_dialect._mlir import arith, ir
from mx_dialect.ops import FoldScaleOp


def _fold_of(value: Any) -> FoldScaleOp | None:
    owner = value.owner
    if isinstance(value, ir.OpResult) and isinstance(owner.opview, FoldScaleOp):
        return owner.opview
    return None


def chain(value: Any) -> tuple[Any, list[Any]]:
    """Return the value under a chain of folds and their factors, innermost first."""
    factors: list[Any] = []
    while (fold := _fold_of(value)) is not None:
        factors.insert(0, fold.factor)
        value = fold.input
    return value, factors


def strip(value: Any) -> tuple[Any, Any | None]:
    """Return the value under a chain of folds and the product of their factors (None without a fold).

    The factors are multiplied in f32, innermost first; the multiplications are built at the insertion point.
    """
    value, factors = chain(value)
    return value, functools.reduce(arith.mulf, factors) if factors else None


def constant_factor(value: Any) -> float | None:
    """Return the value of an f32 that an arith.constant defines, or None."""
    if not isinstance(value, ir.OpResult) or value.owner.name != "arith.constant":
        return None
    return float(ir.FloatAttr(value.owner.attributes["value"]).value)


def product(first: float, second: float) -> float:
    """Return the f32 product of two f32 values, rounded to nearest even."""
    # The product of two 24-bit significands is exact in a double, so this rounds once.
    return ctypes.c_float(first * second).value


def power_of_two(factor: float) -> int | None:
    """Return k where factor = 2^k, or None."""
    if not math.isfinite(factor) or factor <= 0:
        return None
    fraction, exponent = math.frexp(factor)
    return exponent - 1 if fraction == 0.5 else None
