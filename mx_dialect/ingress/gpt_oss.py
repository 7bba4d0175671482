"""MXFP4 weights as gpt-oss checkpoints store them: a tensor of `blocks` and one of `scales`.

`blocks`, uint8 [..., G, 16], has two codes a byte, element 2j of a block in the low nibble of its byte j; `scales`,
uint8 [..., G], has one f8E8M0FNU code a block. Together they are a tensor [..., 32 G] whose blocks lie along the last
axis, the one that a matmul sums over. Rows of gate and of up weights alternate: slice both tensors before they are
converted.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from mx_dialect.diagnostics import MxError
from mx_dialect.formats import E8M0
from mx_dialect.mx_array import Array, MxArray, as_array

BLOCK_SIZE = 32
BLOCK_BYTES = BLOCK_SIZE // 2
ELEMENT_TYPE = "f4E2M1FN"


def from_tensors(blocks: Array, scales: Array) -> MxArray:
    """Return the tensor [..., 32 G] of blocks [..., G, 16] and scales [..., G]; the scales are not copied.

    Raises:
        MxError: blocks that are not uint8, scales that are neither uint8 nor float8_e8m0fnu, or other shapes.
    """
    blocks, scales = as_array(blocks, "blocks"), as_array(scales, "scales")
    if blocks.dtype != np.uint8:
        raise MxError(f"blocks must have dtype uint8, not {blocks.dtype}")
    if blocks.ndim < 2 or blocks.shape[-1] != BLOCK_BYTES:
        raise MxError(f"blocks must have shape [..., G, {BLOCK_BYTES}], but the shape is {blocks.shape}")
    if scales.shape != blocks.shape[:-1]:
        raise MxError(
            f"scales must have shape {blocks.shape[:-1]} for blocks of shape {blocks.shape}, not {scales.shape}"
        )
    data = blocks.reshape(*blocks.shape[:-2], blocks.shape[-2] * BLOCK_BYTES)
    return MxArray.from_packed(data, scales, ELEMENT_TYPE, BLOCK_SIZE, scale_type=E8M0.mlir)


def to_tensors(q: MxArray) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Return blocks [..., G, 16] and scales [..., G] of a tensor [..., 32 G]; the scales are not copied.

    Raises:
        MxError: no MxArray of f4E2M1FN in blocks of 32 with f8E8M0FNU scales along its last axis.
    """
    require_mxfp4(q, "a gpt-oss checkpoint")
    *rows, extent = q.shape
    return q.packed().reshape(*rows, extent // BLOCK_SIZE, BLOCK_BYTES), q.scale.view(np.uint8)


def require_mxfp4(q: Any, where: str) -> None:
    """Refuse what is no MXFP4 tensor with its blocks along the last axis; `MxError`."""
    if not isinstance(q, MxArray):
        raise MxError(f"{where} holds an MxArray, not {type(q).__name__}")
    if (q.element_type, q.scale_type, q.block_size) != (ELEMENT_TYPE, E8M0.mlir, BLOCK_SIZE):
        raise MxError(f"{where} holds {ELEMENT_TYPE} in blocks of {BLOCK_SIZE} with {E8M0.mlir} scales, not {q!r}")
    if q.axis != q.ndim - 1:
        raise MxError(f"{where} has its blocks along the last axis, but {q!r} along axis {q.axis}; transpose it first")
