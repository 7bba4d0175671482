"""The functions of the math dialect on what `interpreter` computes with, each with a bound.

A kernel calls the C library for most of them, which promises nothing. The bounds are what OpenCL C requires of every
implementation (full profile, "Relative Error as ULPs"), in units in the last place of the exact result, for f32 and
f64. The C libraries in use are well within: the largest errors that Gladman, Innocente, Mather and Zimmermann found
(Accuracy of Mathematical Functions in Single, Double, Double Extended, and Quadruple Precision), for f32 by trying
every number, are a half or less of most of these bounds. f16 and bf16 are computed in f32 and rounded once more.

The library of numpy and Python computes the reference, within the same bound in f64, which counts for results in f64.

The argument's error: a function that never falls, or never rises, maps the interval around an argument to that between
the values of its ends; sin and cos move no more than their argument does.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mx_dialect.interpreter_values import Array, Doubles, Floats, rounded

Function = Callable[[Array], Array]

_NONE = "#arith.fastmath<none>"


@dataclass(frozen=True)
class _Library:
    """A function of the C library: how numpy computes it, its bound in ulps, and whether it is monotonic."""

    function: Function
    ulps: int
    is_monotonic: bool = True


def evaluate(op: Any, operands: list[Any]) -> Floats | None:
    """Return the result of an operation of math, None if it is none that is known.

    With fast-math flags, which allow any approximation, it has no bound.
    """
    result = _evaluate(op.name, operands)
    if result is None or str(op.attributes.get("fastmath", _NONE)) == _NONE:
        return result
    return Floats(result.values, np.full(result.values.shape, np.inf), result.element)


def _evaluate(name: str, operands: list[Any]) -> Floats | None:
    if name in _LIBRARY:
        return _of_library(_LIBRARY[name], *operands)
    if name in _STEPS:
        values, error = _image(_STEPS[name], operands[0])
        return Floats(values, error, operands[0].element)
    return _OPERATIONS[name](*operands) if name in _OPERATIONS else None


def _of_library(entry: _Library, value: Floats) -> Floats:
    if entry.is_monotonic:
        values, error = _image(entry.function, value)
    else:
        with np.errstate(all="ignore"):
            values, error = entry.function(value.values), value.error
    return _computed(values, error, value.element, entry.ulps)


def _computed(values: Array, error: Array, element: str, ulps: int) -> Floats:
    """Return what a function of the library gives that is so many ulps off."""
    # An ulp is at most two roundings.
    if element in ("f32", "f64"):
        return rounded(values, error, element, 2 * ulps)
    single = rounded(values, error, "f32", 2 * ulps)
    return rounded(single.values, single.error, element)


def _image(function: Function, value: Floats) -> tuple[Doubles, Doubles]:
    """Return the values of a monotonic function, and how far those of an argument within its error may lie."""
    with np.errstate(all="ignore"):
        values = function(value.values)
        ends = [np.abs(function(value.values + side * value.error) - values) for side in (-1, 1)]
        error = np.where(value.error == 0, 0, np.maximum(*ends))
    # An end that is outside the domain, or without a bound, has no finite value.
    return values, np.where(np.isfinite(error) & np.isfinite(value.error), error, np.inf)


def _absolute(value: Floats) -> Floats:
    return Floats(np.abs(value.values), value.error, value.element)


def _square_root(value: Floats) -> Floats:
    return rounded(*_image(np.sqrt, value), value.element)


def _reciprocal_root(value: Floats) -> Floats:
    """Return 1 / sqrt(x), of which a kernel rounds the root and the quotient."""
    values, error = _image(lambda x: 1 / np.sqrt(x), value)
    return rounded(values, error, value.element, 2)


def _exponential_less_one(value: Floats) -> Floats:
    """Return exp(x) - 1, which a kernel computes as that, with a rounding each."""
    power = _of_library(_LIBRARY["math.exp"], value)
    with np.errstate(all="ignore"):
        return rounded(np.expm1(value.values), power.error, value.element)


def _logarithm_of_one_more(value: Floats) -> Floats:
    """Return log(1 + x), which a kernel computes as that, with a rounding each."""
    with np.errstate(all="ignore"):
        more = rounded(1 + value.values, value.error, value.element)
        logarithm = _of_library(_LIBRARY["math.log"], more)
        # The value is not that of the rounded sum, but of the number itself.
        return Floats(np.log1p(value.values), logarithm.error, value.element)


def _multiply_add(left: Floats, right: Floats, addend: Floats) -> Floats:
    with np.errstate(all="ignore"):
        error = np.abs(left.values) * right.error + (np.abs(right.values) + right.error) * left.error + addend.error
        size = np.abs(left.values * right.values) + np.abs(addend.values) + error
        # As if product and sum were rounded one after the other: the reference does so.
        return rounded(left.values * right.values + addend.values, error, left.element, 2, size)


def _power(base: Floats, exponent: Floats) -> Floats:
    """Return a power, with a bound where base and exponent are exact."""
    with np.errstate(all="ignore"):
        values = np.power(base.values, exponent.values)
    error = np.where((base.error == 0) & (exponent.error == 0), 0, np.inf)
    return _computed(values, error, base.element, 16)


def _elementwise(function: Callable[[float], float]) -> Function:
    """Return a function of Python's math module on arrays."""
    return np.vectorize(function, otypes=[np.float64])


def _half_away(values: Array) -> Array:
    whole = np.trunc(values)
    return np.where(np.abs(values - whole) >= 0.5, whole + np.copysign(1, values), whole)


_LIBRARY = {
    "math.exp": _Library(np.exp, 3),
    "math.exp2": _Library(np.exp2, 3),
    "math.log": _Library(np.log, 3),
    "math.log2": _Library(np.log2, 3),
    "math.log10": _Library(np.log10, 3),
    "math.tanh": _Library(np.tanh, 5),
    "math.sinh": _Library(np.sinh, 4),
    "math.asinh": _Library(np.arcsinh, 4),
    "math.acosh": _Library(np.arccosh, 4),
    "math.atanh": _Library(np.arctanh, 5),
    "math.asin": _Library(np.arcsin, 4),
    "math.acos": _Library(np.arccos, 4),
    "math.atan": _Library(np.arctan, 5),
    # glibc's is off by more than 3 in f64, and OpenCL would have 2.
    "math.cbrt": _Library(np.cbrt, 4),
    "math.erf": _Library(_elementwise(math.erf), 16),
    "math.erfc": _Library(_elementwise(math.erfc), 16),
    "math.sin": _Library(np.sin, 4, is_monotonic=False),
    "math.cos": _Library(np.cos, 4, is_monotonic=False),
}

# Functions to integers, which round nothing.
_STEPS: dict[str, Function] = {
    "math.ceil": np.ceil,
    "math.floor": np.floor,
    "math.trunc": np.trunc,
    "math.round": _half_away,
    "math.roundeven": np.rint,
}

_OPERATIONS: dict[str, Callable[..., Floats]] = {
    "math.absf": _absolute,
    "math.sqrt": _square_root,
    "math.rsqrt": _reciprocal_root,
    "math.expm1": _exponential_less_one,
    "math.log1p": _logarithm_of_one_more,
    "math.fma": _multiply_add,
    "math.powf": _power,
}
