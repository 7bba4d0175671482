"""x4 containers, and the two orders in which the rows of a weight fill them.

A container is an unsigned integer that holds four elements, its lanes: lane q of an FP4 container, 16 bits, is bits 4q
to 4q + 3, lane q of an FP8 container, 32 bits, is bits 8q to 8q + 7. Containers lie along the axis that a matmul sums
over: element 4f + q of that axis is lane q of container f.

A weight [H, I] becomes containers [H/4, I] in one of two layouts. With MX_CONTIGUOUS lane q of container r is row
4r + q, so that one scale covers 32 adjacent rows. With MX_INTERLEAVED lane 2a + b of container r is row
a * H/2 + 2r + b: the order in which a transposing DMA leaves activations. There a scale covers rows 16g to 16g + 15 and
the same in the second half, so that a weight is quantized after `interleaved_order` has been applied to it.

The index formulas use `+`, `*`, `%` and whole division only. They take integers, numpy arrays of them and MLIR's affine
expressions alike.
"""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from mx_dialect.codes import element_codes, format_named, format_of_dtype
from mx_dialect.diagnostics import MxError
from mx_dialect.layouts import packed
from mx_dialect.near_miss import expected_one_of

Array: TypeAlias = npt.NDArray[Any]
Codes: TypeAlias = npt.NDArray[np.uint8]
# An int, a numpy array of integers, or an affine expression.
Index: TypeAlias = Any

LANES = 4
MX_CONTIGUOUS = "MX_CONTIGUOUS"
MX_INTERLEAVED = "MX_INTERLEAVED"
WEIGHT_LAYOUTS = (MX_CONTIGUOUS, MX_INTERLEAVED)

_CONTAINER_DTYPES = {4: np.dtype(np.uint16), 8: np.dtype(np.uint32)}
_LANE_BITS = {np.dtype(np.uint16): 4, np.dtype(np.int16): 4, np.dtype(np.uint32): 8, np.dtype(np.int32): 8}
_DEFAULT_ELEMENT = {4: "f4E2M1FN", 8: "f8E4M3FN"}
X4_ELEMENT_TYPES = ("f4E2M1FN", "f8E4M3FN", "f8E5M2")


def quotient(index: Index, divisor: int) -> Index:
    """Return index // divisor; affine expressions, which have no such operator, have a method for it."""
    floor_div = getattr(index, "get_floor_div", None)
    return index // divisor if floor_div is None else floor_div(index, divisor)


def lane_shift(lane: Index, bits: int) -> Index:
    """Return the lowest bit of a lane in its container."""
    return lane * bits


def contiguous_row(container_row: Index, lane: Index) -> Index:
    """Return the row of the weight, or the element of an axis, that MX_CONTIGUOUS puts in this lane."""
    return container_row * LANES + lane


def interleaved_row(container_row: Index, lane: Index, rows: int) -> Index:
    """Return which of the weight's `rows` MX_INTERLEAVED puts in this lane."""
    return quotient(lane, 2) * (rows // 2) + container_row * 2 + lane % 2


def interleaved_position(row: Index, rows: int) -> Index:
    """Return where MX_INTERLEAVED puts a row of the weight: lane position % 4 of container position // 4."""
    half = rows // 2
    return quotient(row % half, 2) * LANES + quotient(row, half) * 2 + row % 2


def weight_row(layout: str, container_row: Index, lane: Index, rows: int) -> Index:
    """Return which of the weight's `rows` a layout puts in this lane.

    Raises:
        MxError: an unknown layout.
    """
    require_layout(layout)
    if layout == MX_INTERLEAVED:
        return interleaved_row(container_row, lane, rows)
    return contiguous_row(container_row, lane)


def interleaved_order(rows: int) -> npt.NDArray[np.int64]:
    """Return the permutation of MX_INTERLEAVED: w[order] packed as MX_CONTIGUOUS is w packed as MX_INTERLEAVED.

    Raises:
        MxError: `rows` is no multiple of 4.
    """
    _require_whole(rows, "the number of rows of a weight")
    position = np.arange(rows, dtype=np.int64)
    order: npt.NDArray[np.int64] = interleaved_row(position // LANES, position % LANES, rows)
    return order


def interleaved_inverse(rows: int) -> npt.NDArray[np.int64]:
    """Return the inverse of `interleaved_order`.

    Raises:
        MxError: `rows` is no multiple of 4.
    """
    _require_whole(rows, "the number of rows of a weight")
    if not rows:
        return np.empty(0, np.int64)
    inverse: npt.NDArray[np.int64] = interleaved_position(np.arange(rows, dtype=np.int64), rows)
    return inverse


def container_element(dtype: np.dtype[Any], target: str | None = None) -> str | None:
    """Return the element type of the containers that a checkpoint carries as this dtype, None if it is no container.

    Signed and unsigned integers of 16 bits are f4E2M1FN, those of 32 bits f8E4M3FN, unless `target` says another
    type of the same width. Anything else, float16 and float32 included, is what it is.

    Raises:
        MxError: `target` is no type of x4 elements, or of another width.
    """
    bits = _LANE_BITS.get(dtype)
    if target is None or bits is None:
        return None if bits is None else _DEFAULT_ELEMENT[bits]
    _require_x4(target)
    if format_named(target).bits != bits:
        raise MxError(
            f"{dtype} containers have lanes of {bits} bits, but {target} has {format_named(target).bits}; only casts"
            f" of the same width exist, from 16-bit integers for FP4 and 32-bit integers for FP8"
        )
    return target


def pack_x4(elements: Array, element_type: str | None = None, axis: int = -1) -> Array:
    """Return elements as containers along an axis, which becomes a quarter as long: FP4 uint16, FP8 uint32.

    `elements` has a dtype of ml_dtypes, or is uint8, codes of `element_type`, one a byte. FP8 is not copied where its
    lanes already lie side by side and aligned in memory, as along the last axis of a contiguous array.

    Raises:
        MxError: another dtype, an element type that has no containers, a byte that is no code of it, or an axis that
            does not exist or is no multiple of 4 long.
    """
    codes, bits = _element_codes(elements, element_type)
    axis = _axis(codes, axis)
    before, extent, after = codes.shape[:axis], codes.shape[axis], codes.shape[axis + 1 :]
    _require_whole(extent, f"the length of axis {axis} of elements to put in x4 containers")
    lanes = np.moveaxis(codes.reshape(*before, extent // LANES, LANES, *after), axis + 1, -1)
    return _words(lanes if bits == 8 else packed.pack(lanes, bits))


def unpack_x4(containers: Array, axis: int = -1) -> Codes:
    """Return containers as codes, one a byte, along an axis, which becomes four times as long; inverse of `pack_x4`.

    16-bit integers give FP4 codes, 32-bit integers FP8 codes; FP8 is not copied where memory allows.

    Raises:
        MxError: another dtype, or an axis that does not exist.
    """
    content = _bytes(containers)
    axis = _axis(containers, axis)
    lanes = content if content.shape[-1] == LANES else packed.unpack(content, 4)
    extents = list(containers.shape)
    extents[axis] *= LANES
    return np.moveaxis(lanes, -1, axis + 1).reshape(extents)


def containers_of_packed(data: Array) -> npt.NDArray[np.uint16]:
    """Return FP4 codes packed two a byte, the first in the low nibble, as containers along the last axis.

    Two bytes are one container as they are, so that nothing is copied if the memory is aligned.

    Raises:
        MxError: no uint8 array of rank 1 or more, or an odd number of bytes along the last axis.
    """
    if data.dtype != np.uint8 or not data.ndim:
        raise MxError(f"packed FP4 codes are a uint8 array of rank 1 or more, not {data.dtype} of rank {data.ndim}")
    if data.shape[-1] % 2:
        raise MxError(f"an FP4 container is two bytes, but the last axis of shape {data.shape} is odd")
    return _words(data.reshape(*data.shape[:-1], data.shape[-1] // 2, 2))


def packed_of_containers(containers: Array) -> Codes:
    """Return FP4 containers along the last axis as codes packed two a byte; inverse of `containers_of_packed`.

    Raises:
        MxError: no 16-bit integers, or rank 0.
    """
    content = _bytes(containers)
    if content.shape[-1] != 2:
        raise MxError(f"FP4 containers have dtype uint16 or int16, not {containers.dtype}")
    _axis(containers, -1)
    return content.reshape(*containers.shape[:-1], containers.shape[-1] * 2)


def pack_weight(weight: Array, layout: str, element_type: str | None = None) -> Array:
    """Return a weight [..., H, I] as containers [..., H/4, I] in a layout; dtypes as for `pack_x4`.

    Raises:
        MxError: an unknown layout, rank below 2, H no multiple of 4, and as for `pack_x4`.
    """
    _require_weight(weight, layout)
    if layout == MX_INTERLEAVED:
        weight = np.take(weight, interleaved_order(weight.shape[-2]), axis=-2)
    return pack_x4(weight, element_type, axis=-2)


def unpack_weight(containers: Array, layout: str) -> Codes:
    """Return the codes [..., H, I] of a weight's containers [..., H/4, I]; the inverse of `pack_weight`.

    Raises:
        MxError: an unknown layout, rank below 2, or a dtype that is no container's.
    """
    _require_weight(containers, layout)
    codes = unpack_x4(containers, axis=-2)
    if layout == MX_INTERLEAVED:
        return np.take(codes, interleaved_inverse(codes.shape[-2]), axis=-2)
    return codes


def require_layout(layout: str) -> None:
    """Refuse a name that is no weight layout; `MxError`."""
    if layout not in WEIGHT_LAYOUTS:
        raise MxError(f"unknown weight layout '{layout}'; {expected_one_of(layout, WEIGHT_LAYOUTS)}")


def is_container(dtype: np.dtype[Any]) -> bool:
    """Return whether arrays of this dtype are x4 containers."""
    return dtype in _LANE_BITS


def _require_weight(weight: Array, layout: str) -> None:
    require_layout(layout)
    if weight.ndim < 2:
        raise MxError(f"a weight has rank 2 or more, [..., H, I], but the shape is {weight.shape}")


def _require_whole(extent: int, what: str) -> None:
    if extent < 0 or extent % LANES:
        raise MxError(f"{what} must be a multiple of {LANES}, but is {extent}")


def _require_x4(element_type: str) -> None:
    if element_type not in X4_ELEMENT_TYPES:
        raise MxError(f"x4 containers hold {', '.join(X4_ELEMENT_TYPES)}, not {element_type}")


def _axis(array: Array, axis: int) -> int:
    """Return an axis counted from the front."""
    if not -array.ndim <= axis < array.ndim:
        raise MxError(f"axis {axis} is out of range for shape {array.shape}")
    return axis % array.ndim


def _element_codes(elements: Array, element_type: str | None) -> tuple[Codes, int]:
    """Return elements as codes, one a byte, and the bits of a code."""
    if element_type is None and elements.dtype == np.uint8:
        raise MxError('uint8 codes need element_type, such as "f4E2M1FN"')
    fmt = format_of_dtype(elements.dtype) if element_type is None else format_named(element_type)
    _require_x4(fmt.mlir)
    return element_codes(elements, fmt), fmt.bits


def _words(content: Codes) -> Array:
    """Return the bytes of containers [..., 2 or 4], the lowest first, as integers, a view if memory allows."""
    dtype = _CONTAINER_DTYPES[content.shape[-1] * 8 // LANES]
    if content.strides[-1] != 1:
        content = np.ascontiguousarray(content)
    words = content.view(dtype.newbyteorder("<"))[..., 0]
    # An unaligned view is legal in numpy, but compiled code may not read it.
    return np.require(words, dtype, "A")


def _bytes(containers: Array) -> Codes:
    """Return the bytes of containers, the lowest first, as a new last axis."""
    bits = _LANE_BITS.get(containers.dtype)
    if bits is None:
        raise MxError(f"x4 containers are uint16 or int16 for FP4, uint32 or int32 for FP8, not {containers.dtype}")
    dtype = _CONTAINER_DTYPES[bits]
    words = containers.view(dtype).astype(dtype.newbyteorder("<"), copy=False)
    return words[..., np.newaxis].view(np.uint8)
