"""Hypothesis strategies for floats as bit patterns, dense where conversions go wrong."""

import ml_dtypes
import numpy as np
import oracle
from hypothesis import strategies as st

ELEMENT_TYPES = st.sampled_from(oracle.ELEMENT_TYPES)
ROUNDINGS = st.sampled_from(oracle.ROUNDINGS)

_LAYOUTS = {
    np.dtype(np.float32): (np.uint32, 8, 23),
    np.dtype(np.float16): (np.uint16, 5, 10),
    np.dtype(ml_dtypes.bfloat16): (np.uint16, 8, 7),
}


@st.composite
def _fractions(draw, bits):
    """Draw a fraction field: any, or at and beside a multiple of a power of two, where ties and thresholds lie."""
    if draw(st.booleans()):
        return draw(st.integers(0, (1 << bits) - 1))
    free = draw(st.integers(0, bits))
    fraction = (draw(st.integers(0, (1 << (bits - free)) - 1)) << free) + draw(st.integers(-1, 1))
    return min(max(fraction, 0), (1 << bits) - 1)


@st.composite
def float_blocks(draw, size, dtype=np.float32, finite=True):
    """Draw a 1-D array of `size` floats of one block: exponents near each other or any, zeros, subnormals.

    With `finite` False some are NaN or infinite.
    """
    unsigned, exponent_bits, fraction_bits = _LAYOUTS[np.dtype(dtype)]
    top = (1 << exponent_bits) - 1
    highest = draw(st.one_of(st.integers(0, top - 1), st.sampled_from([0, 1, 2, top - 2, top - 1])))
    patterns = []
    for _ in range(size):
        exponent = max(highest - draw(st.integers(0, 20)), 0)
        fraction = draw(_fractions(fraction_bits))
        kind = draw(st.integers(0, 9))
        if kind == 0:
            exponent = fraction = 0
        elif kind == 1:
            exponent = draw(st.integers(0, top - 1))
        elif kind == 2 and not finite:
            exponent, fraction = top, draw(st.sampled_from([0, 1, fraction]))
        sign = draw(st.integers(0, 1))
        patterns.append((sign << (exponent_bits + fraction_bits)) | (exponent << fraction_bits) | fraction)
    return np.array(patterns, unsigned).view(dtype)
