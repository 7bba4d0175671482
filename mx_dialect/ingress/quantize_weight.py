"""A weight quantized by compiled kernels, piece by piece, and what that did to it."""

import contextvars
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mx_dialect.mx_array import MxArray

# Elements of a piece. One kernel serves all weights; the last piece is filled up with zeros.
_PIECE = 1 << 20
# Up to this many elements numpy is done before a kernel is compiled; both give the same bits.
_COMPILED_FROM = 1 << 17


@dataclass(frozen=True)
class Quantized:
    """A quantized weight, the ratio of signal to noise in decibels, and how many of its values are NaN or infinite.

    Blocks with such values count for neither signal nor noise; the ratio is inf if nothing was lost, NaN if there was
    nothing but zeros.
    """

    array: MxArray
    sqnr_db: float
    non_finite: int


def quantize_weight(
    x: npt.NDArray[np.float32],
    element_type: str,
    block_size: int,
    rounding: str,
    advance: Callable[[int], object],
) -> Quantized:
    """Quantize f32 [..., K], whole blocks, in blocks along its last axis. `advance` is told of elements done."""
    blocks = np.ascontiguousarray(x).reshape(-1, block_size)
    piece = max(_PIECE // block_size, 1)
    mantissas: list[Any] = []
    scales: list[Any] = []
    signal = noise = 0.0
    for start in range(0, len(blocks), piece):
        part = blocks[start : start + piece]
        mantissa, scale, values = _round_trip(part, x.size, piece, element_type, block_size, rounding)
        mantissas.append(mantissa)
        scales.append(scale)
        kept = np.isfinite(part).all(axis=1)
        exact, error = (part, part - values) if kept.all() else (part[kept], part[kept] - values[kept])
        signal += float(np.sum(np.square(exact, dtype=np.float64)))
        noise += float(np.sum(np.square(error, dtype=np.float64)))
        advance(part.size)
    array = MxArray(
        np.concatenate(mantissas).reshape(x.shape),
        np.concatenate(scales).reshape(*x.shape[:-1], x.shape[-1] // block_size),
        block_size,
    )
    return Quantized(array, _decibels(signal, noise), x.size - int(np.count_nonzero(np.isfinite(x))))


def _round_trip(
    part: npt.NDArray[np.float32], total: int, piece: int, element_type: str, block_size: int, rounding: str
) -> tuple[Any, Any, Any]:
    from mx_dialect import arrays, reference

    if total < _COMPILED_FROM:
        plain = reference.quantize(part, element_type, block_size, -1, rounding)
        return plain.mantissa, plain.scale, reference.dequantize(plain)
    count = len(part)
    if count < piece:
        part = np.concatenate([part, np.zeros((piece - count, block_size), np.float32)])
    # What compiling these kernels has to say is not about the program at hand.
    apart = contextvars.Context()
    quantized = apart.run(arrays.quantize, part, element_type, block_size, -1, rounding)
    values = apart.run(arrays.dequantize, quantized)
    return quantized.mantissa[:count], quantized.scale[:count], values[:count]


def _decibels(signal: float, noise: float) -> float:
    if not signal:
        return math.nan
    return 10 * math.log10(signal / noise) if noise else math.inf
