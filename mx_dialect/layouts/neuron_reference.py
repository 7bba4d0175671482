"""What the instructions on x4 containers compute, quantize_mx and nc_matmul_mx: the oracle of their lowerings.

Products are exact in float64. Nothing here shares code with the lowerings.
"""

import ml_dtypes
import numpy as np
import numpy.typing as npt

from mx_dialect.codes import decode, decode_scale, format_named, numpy_dtype
from mx_dialect.diagnostics import MxError
from mx_dialect.formats import E8M0
from mx_dialect.layouts.neuron import LANES, Array, Codes, container_element, pack_x4, unpack_x4
from mx_dialect.layouts.neuron_scales import BLOCK_SIZE, PARTITIONS, PARTITIONS_PER_SCALE, dense_scales

MAX_STATIONARY = 128
MAX_MOVING = 512
ACTIVATION_TYPES = ("f8E5M2", "f8E4M3FN")

_SOURCES = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32))


def quantize_mx(x: Array, element_type: str, headroom: int = 0) -> tuple[Array, Codes]:
    """Quantize activations [P, 4F] to FP8 containers [P, F] and their dense scales [P/8, F].

    8 partitions x 4 elements share a scale. Its code is the largest biased exponent among their float32 values, less
    the exponent of the element type's largest value, plus `headroom`, 0 or 1 (a scale twice as large, so that nothing
    saturates), and at least 0. The exponent of a zero or a subnormal counts as 0. Elements are x / 2^(code - 127)
    clipped to the largest finite values, rounded to nearest, ties to even. Infinities are clipped; a NaN stays one,
    and neither makes the scale NaN.

    Raises:
        MxError: `x` is not float16, bfloat16 or float32 of rank 2, its extents are no multiples of 8 and 4, or an
            element type or a headroom that does not exist here.
    """
    if element_type not in ACTIVATION_TYPES:
        raise MxError(f"quantize_mx makes {' or '.join(ACTIVATION_TYPES)}, not {element_type}")
    if headroom not in (0, 1):
        raise MxError(f"headroom is 0 or 1, not {headroom}")
    if x.dtype not in _SOURCES:
        raise MxError(f"quantize_mx takes float16, bfloat16 or float32, not {x.dtype}")
    if x.ndim != 2 or x.shape[0] % PARTITIONS_PER_SCALE or x.shape[1] % LANES:
        raise MxError(f"quantize_mx takes [P, 4F] with P a multiple of 8, but the shape is {x.shape}")
    fmt = format_named(element_type)
    with np.errstate(invalid="ignore"):  # A signalling NaN sets the invalid flag.
        values = x.astype(np.float32).reshape(
            x.shape[0] // PARTITIONS_PER_SCALE, PARTITIONS_PER_SCALE, x.shape[1] // LANES, LANES
        )
        exponent = (values.view(np.uint32) >> 23 & 0xFF).astype(np.int32).max(axis=(1, 3), keepdims=True)
        code = np.maximum(exponent - fmt.emax + headroom, 0)
        scaled = np.ldexp(values.astype(np.float64), E8M0.bias - code)
        elements = np.clip(scaled, -fmt.max_normal, fmt.max_normal).astype(numpy_dtype(element_type))
    return pack_x4(elements.reshape(x.shape)), code.astype(np.uint8)[:, 0, :, 0]


def nc_matmul_mx(
    dst: Array,
    stationary: Array,
    moving: Array,
    stationary_scale: Array,
    moving_scale: Array,
    *,
    stationary_type: str | None = None,
    moving_type: str | None = None,
    stationary_offset: int = 0,
    moving_offset: int = 0,
    accumulate: bool = False,
) -> npt.NDArray[np.float64]:
    """Return the product [I, J] of containers [P, I] and [P, J], summed over partitions and lanes.

    `dst`, [I, J], is added if `accumulate` is true; it is not changed. The element types follow from the dtypes, see
    `container_element`, unless they are named. Scales are tiles with a partition offset, or dense if P <= 32; see
    `neuron_scales`. Each product is exact, sums are rounded to float64.

    Raises:
        MxError: no containers, both of FP4, another rank, extents that differ, more than 128 x 128 stationary or
            128 x 512 moving containers, P no multiple of 8, or scales that do not cover them.
    """
    left_type = _element_type(stationary, stationary_type, "stationary")
    right_type = _element_type(moving, moving_type, "moving")
    if left_type not in ACTIVATION_TYPES and right_type not in ACTIVATION_TYPES:
        raise MxError("nc_matmul_mx multiplies FP8 activations; only one operand may be FP4")
    _require_shapes(dst, stationary, moving)
    left = _values(stationary, left_type, stationary_scale, stationary_offset, "stationary")
    right = _values(moving, right_type, moving_scale, moving_offset, "moving")
    with np.errstate(invalid="ignore"):  # Inf - Inf and Inf * 0 are NaN by definition.
        product = left.T @ right
        return product + dst.astype(np.float64) if accumulate else product


def _element_type(containers: Array, named: str | None, name: str) -> str:
    element_type = container_element(containers.dtype, named)
    if element_type is None:
        raise MxError(f"{name} containers are integers of 16 or 32 bits, not {containers.dtype}")
    return element_type


def _require_shapes(dst: Array, stationary: Array, moving: Array) -> None:
    if stationary.ndim != 2 or moving.ndim != 2 or stationary.shape[0] != moving.shape[0]:
        raise MxError(
            f"nc_matmul_mx takes containers [P, I] and [P, J], but the shapes are {stationary.shape} and {moving.shape}"
        )
    partitions, columns = stationary.shape
    if partitions > PARTITIONS or columns > MAX_STATIONARY or moving.shape[1] > MAX_MOVING:
        raise MxError(
            f"stationary is at most {PARTITIONS} x {MAX_STATIONARY} containers and moving {PARTITIONS} x {MAX_MOVING},"
            f" but the shapes are {stationary.shape} and {moving.shape}"
        )
    if partitions % PARTITIONS_PER_SCALE:
        raise MxError(f"{partitions} partitions are no multiple of the {PARTITIONS_PER_SCALE} that share a scale")
    if dst.shape != (columns, moving.shape[1]):
        raise MxError(f"dst has shape {dst.shape}; the product has {(columns, moving.shape[1])}")


def _values(containers: Array, element_type: str, scale: Array, offset: int, name: str) -> npt.NDArray[np.float64]:
    """Return the values [4P, F] of containers [P, F], row 4p + q being lane q of partition p."""
    partitions, columns = containers.shape
    if scale.ndim != 2 or scale.shape[1] != columns:
        raise MxError(f"the {name} scale has shape {scale.shape}; containers {containers.shape} need {columns} columns")
    dense = dense_scales(scale, partitions // PARTITIONS_PER_SCALE, offset)
    scales = np.repeat(decode_scale(dense), BLOCK_SIZE, axis=0)
    with np.errstate(invalid="ignore"):
        return decode(unpack_x4(containers, axis=0), element_type) * scales
