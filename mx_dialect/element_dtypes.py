"""The numpy dtypes of MLIR's element types, as they lie in buffers: narrow floats take one byte an element."""

import functools
import re
from typing import Any

import ml_dtypes
import numpy as np


@functools.lru_cache(maxsize=256)
def dtype_of(element: str) -> np.dtype[Any] | None:
    """Return the numpy dtype for an element type as MLIR spells it, or None where numpy and ml_dtypes have none.

    An i1 is numpy's bool, an integer without signedness numpy's signed one, an index 64 bits.
    """
    if element == "i1":
        return np.dtype(np.bool_)
    if element == "index":
        return np.dtype(np.int64)
    if element == "bf16":
        return np.dtype(ml_dtypes.bfloat16)
    if match := re.fullmatch(r"(s|u)?i(8|16|32|64)", element):
        return np.dtype(f"{'uint' if match[1] == 'u' else 'int'}{match[2]}")
    if match := re.fullmatch(r"f(16|32|64)", element):
        return np.dtype(f"float{match[1]}")
    if match := re.fullmatch(r"f([468])(E\w+)", element):
        scalar_type = getattr(ml_dtypes, f"float{match[1]}_{match[2].lower()}", None)
        return None if scalar_type is None else np.dtype(scalar_type)
    return None


def code_bits(element: str) -> int | None:
    """Return the width of a float type of 8 bits or less, which is stored as one code a byte; None for others."""
    match = re.fullmatch(r"f([468])E\w+", element)
    return int(match[1]) if match else None
