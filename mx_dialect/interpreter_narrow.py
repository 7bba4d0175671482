"""Conversions from and to the MX floats (arith.extf, truncf, convertf and their scaling forms) for `interpreter`.

A value of an MX float is an array of the dtype of ml_dtypes where a kernel has these very codes. Where roundings may
have led it to others it is a `Floats` of that element type, which nothing computes with but conversions. Rounding never
falls: what lies within e of x rounds to no less than x - e does and to no more than x + e does, and that bounds the
error of the rounded value.

The values are those of docs/numerics.md, "Conversions in the IR", by `codes` in integers.
"""

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from mx_dialect.codes import Codes, decode, decode_scale, encode, numpy_dtype, scale_dtype
from mx_dialect.formats import E8M0, ELEMENT_FORMATS
from mx_dialect.interpreter_values import PRECISIONS, Array, Doubles, Floats, Value, exact, rounded

_ELEMENTS = tuple(name for name, fmt in ELEMENT_FORMATS.items() if not fmt.is_integer)

NARROW_FLOATS = (*_ELEMENTS, E8M0.mlir)
"""The element types of these arrays, as MLIR spells them."""


def floats_of(value: Value, element: str) -> Floats:
    """Return a value of an MX float as `Floats`, which hold it exactly."""
    return value if isinstance(value, Floats) else exact(cast(Array, value), element)


def convert(value: Value, source: str, element: str) -> Value | None:
    """Return a float or an MX float in another float type, rounded once.

    None where neither is an MX float, or the other type is none that is known.
    """
    if element in NARROW_FLOATS:
        return _narrowed(floats_of(value, source), element)
    if source in NARROW_FLOATS and element in PRECISIONS:
        return _widened(floats_of(value, source), element)
    return None


def extend_scaled(value: Value, source: str, scale: Value, scale_source: str, element: str) -> Value | None:
    """Return value * scale in a float type, rounded once; None for a scale that is not exact."""
    factor = _scale(scale, scale_source)
    if factor is None or element not in PRECISIONS:
        return None
    return _widened(_times(floats_of(value, source), factor), element)


def truncate_scaled(value: Value, source: str, scale: Value, scale_source: str, element: str) -> Value | None:
    """Return value / scale in an MX float, rounded once; None for a scale that is not exact."""
    factor = _scale(scale, scale_source)
    if factor is None or element not in NARROW_FLOATS:
        return None
    return _narrowed(_times(floats_of(value, source), 1 / factor), element)


def _scale(scale: Value, source: str) -> Doubles | None:
    """Return what a scale is worth, a power of two or NaN; another float is rounded to one first."""
    floats = floats_of(scale, source)
    return decode_scale(_codes(floats.values, E8M0.mlir)) if floats.is_exact else None


def _times(value: Floats, factor: Doubles) -> Floats:
    """Return the exact product with powers of two, in float64."""
    with np.errstate(all="ignore"):
        return Floats(value.values * factor, np.where(value.error == 0, 0, value.error * factor), "f64")


def _widened(value: Floats, element: str) -> Floats:
    dtype = PRECISIONS[element].dtype
    with np.errstate(all="ignore"):
        values = value.values.astype(dtype).astype(np.float64)
    is_held = np.array_equal(values, value.values, equal_nan=True)
    if value.is_exact or is_held:
        # A number that does not fit is rounded from float64 at once.
        return Floats(values, value.error, element)
    return rounded(value.values, value.error, element)


def _narrowed(value: Floats, element: str) -> Value:
    with np.errstate(all="ignore"):
        nearest = _codes(value.values, element)
        least, most = (_codes(value.values + side * value.error, element) for side in (-1, 1))
    dtype = scale_dtype(element) if element == E8M0.mlir else numpy_dtype(element)
    # Without a bound even a NaN may have become a number.
    bounded = np.isfinite(value.error)
    if np.all((value.error == 0) | (bounded & (least == most))):
        return nearest.view(dtype)
    of: Callable[[Codes], Doubles] = decode_scale if element == E8M0.mlir else lambda codes: decode(codes, element)
    with np.errstate(all="ignore"):
        error = np.maximum(of(most) - of(nearest), of(nearest) - of(least))
    error = np.where(value.error == 0, 0, np.where(bounded & ~np.isnan(error), error, np.inf))
    return Floats(of(nearest), error, element)


def _codes(values: Doubles, element: str) -> Codes:
    return _power_codes(values) if element == E8M0.mlir else encode(values, element)


def _power_codes(values: Doubles) -> Codes:
    """Return the code of f8E8M0FNU nearest to each value, a tie going up; NaN for what is negative or too large."""
    with np.errstate(all="ignore"):
        significand, exponent = np.frexp(values)
        # A value is significand * 2^exponent with a significand from 1/2 on; 3/4 lies between two powers.
        code = np.where(values > 0, exponent - 1 + (significand >= 0.75) + E8M0.bias, 0)
        is_nan = ~np.isfinite(values) | (values < 0) | (code > E8M0.max_code)
    return np.where(is_nan, E8M0.nan_code, np.maximum(code, 0)).astype(np.uint8)


def unify(left: Value, right: Value, element: str) -> tuple[Any, Any]:
    """Return two values as either `Floats` or arrays, both the same."""
    if isinstance(left, Floats) or isinstance(right, Floats):
        return floats_of(left, element), floats_of(right, element)
    return left, right
