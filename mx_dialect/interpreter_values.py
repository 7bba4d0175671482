"""What `interpreter` computes with: floats in double precision, each with a bound on how far a compiled result may lie.

A float value of a program is a real number that a kernel knows up to roundings. `Floats` holds the number as this
package computes it in float64, and an error: what a kernel computes in the type of the program, in any order that the
operations allow, lies within `error` of `values`. The error is Inf where nothing is claimed.

Let u be half the distance of 1 to the next number of a type. A rounded result r is off by at most u |r|, and by half
the smallest subnormal number where it is subnormal; n roundings of a term multiply it by a factor within
gamma_n = n u / (1 - n u) of 1. This presumes gradual underflow.

Source: Higham, Accuracy and Stability of Numerical Algorithms, sections 2.1, 3.1 and 3.3.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

from mx_dialect._mlir import ir
from mx_dialect.reference import Quantized

Array: TypeAlias = npt.NDArray[Any]
Doubles: TypeAlias = npt.NDArray[np.float64]


class Precision(NamedTuple):
    """A float type: its numpy dtype, u, half its smallest subnormal number, and a magnitude that cannot overflow."""

    dtype: np.dtype[Any]
    unit: float
    underflow: float
    limit: float


PRECISIONS = {
    "f16": Precision(np.dtype(np.float16), 2.0**-11, 2.0**-25, 2.0**15),
    "bf16": Precision(np.dtype(ml_dtypes.bfloat16), 2.0**-8, 2.0**-134, 2.0**127),
    "f32": Precision(np.dtype(np.float32), 2.0**-24, 2.0**-150, 2.0**127),
    "f64": Precision(np.dtype(np.float64), 2.0**-53, 2.0**-1074, 2.0**1023),
}

# The roundings of this package's own arithmetic in float64, as a share of those of the program's types.
_OWN = 1 + 2.0**-20


@dataclass(frozen=True, eq=False)
class Floats:
    """A float scalar (rank 0) or tensor of a type of `PRECISIONS`; `values` and `error` have the same shape."""

    values: Doubles
    error: Doubles
    element: str

    @property
    def is_exact(self) -> bool:
        """Tell whether a kernel has these very numbers."""
        return not self.error.any()

    def stored(self) -> Array:
        """Return the values in their own type, which holds exact ones as they are."""
        with np.errstate(all="ignore"):
            return self.values.astype(PRECISIONS[self.element].dtype)


@dataclass(frozen=True, eq=False)
class Blocks:
    """An mx tensor, and the factor that folds multiply its elements by (None without a fold).

    Its codes are those of a kernel, unless it is not `exact`: then a kernel may have rounded to others.
    """

    data: Quantized
    exact: bool = True
    factor: Floats | None = None


# Integers, bools and indices are numpy arrays of their dtype, narrow floats of a dtype of ml_dtypes: all are exact.
Value: TypeAlias = Floats | Blocks | Array


def element_of(type_: Any) -> str:
    """Return the element type of a tensor or vector, or the type of a scalar, as MLIR spells it."""
    return str(type_.element_type if isinstance(type_, ir.ShapedType) else type_)


def exact(values: Array, element: str) -> Floats:
    """Return numbers that a kernel has as they are."""
    with np.errstate(invalid="ignore"):
        doubles = np.asarray(values).astype(np.float64)
    return Floats(doubles, np.zeros(doubles.shape), element)


def rounded(values: Array, error: Array, element: str, roundings: int = 1, size: Array | None = None) -> Floats:
    """Return values that a kernel rounds: their error so far, and that of so many roundings of terms of this size.

    `size` is the sum of the magnitudes of the terms that are rounded, that of the values if None.
    """
    _, unit, underflow, limit = PRECISIONS[element]
    with np.errstate(all="ignore"):
        total = np.abs(values) + error if size is None else np.asarray(size)
        # float64 is no wider than itself, so that its own roundings count in full.
        share = roundings * unit * (2.01 if element == "f64" else _OWN)
        grown = error + share / (1 - share) * total + roundings * underflow * 2
        claimed = np.where(total < limit, grown, np.inf)
    shape = np.broadcast_shapes(np.shape(values), claimed.shape)
    return Floats(np.broadcast_to(values, shape), np.broadcast_to(claimed, shape), element)


def times(left: Floats, right: Floats) -> Floats:
    """Return the rounded products."""
    with np.errstate(all="ignore"):
        error = np.abs(left.values) * right.error + (np.abs(right.values) + right.error) * left.error
        return rounded(left.values * right.values, error, left.element)


def product(left: Floats, right: Floats, start: Floats) -> Floats:
    """Return start + left @ right in f32, for [..., M, K], [..., K, N] and [..., M, N], the sums in any order."""
    extent = left.values.shape[-1]
    with np.errstate(all="ignore"):
        sizes = np.abs(left.values), np.abs(right.values) + right.error
        carried = sizes[0] @ right.error + left.error @ sizes[1] + start.error
        total = (sizes[0] + left.error) @ sizes[1] + np.abs(start.values) + start.error
        return rounded(left.values @ right.values + start.values, carried, start.element, extent + 2, total)
