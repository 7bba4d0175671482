"""MXFP4 tensors as ggml and GGUF files store them: rows of 17-byte blocks.

A block is the f8E8M0FNU code of its scale and 16 bytes of codes: elements 0 to 15 are the low nibbles, elements 16 to
31 the high nibbles. Rows of G blocks are uint8 [..., 17 G].

ggml multiplies twice the element by half the scale, which is the same number, but for two codes. Its table has no
negative zero, so that -0 is read as 0 there; the code is kept here. And it reads a scale of code 255 as 2^128, where
f8E8M0FNU has NaN: neither can stand for the other, so that both directions refuse it.
"""

import numpy as np
import numpy.typing as npt

from mx_dialect.diagnostics import MxError
from mx_dialect.formats import E8M0
from mx_dialect.ingress.gpt_oss import BLOCK_BYTES, BLOCK_SIZE, ELEMENT_TYPE, require_mxfp4
from mx_dialect.mx_array import Array, MxArray, as_array

BYTES = 1 + BLOCK_BYTES


def from_blocks(data: Array) -> MxArray:
    """Return the tensor [..., 32 G] of blocks [..., 17 G]; the scales are a view.

    Raises:
        MxError: no uint8 array of rank 1 or more, a last axis that is no multiple of 17, or a scale of code 255.
    """
    data = as_array(data, "ggml blocks")
    if data.dtype != np.uint8:
        raise MxError(f"ggml blocks must have dtype uint8, not {data.dtype}")
    if not data.ndim or data.shape[-1] % BYTES:
        raise MxError(f"ggml blocks must have shape [..., {BYTES} G], but the shape is {data.shape}")
    *rows, extent = data.shape
    blocks = data.reshape(*rows, extent // BYTES, BYTES)
    scale, content = blocks[..., 0], blocks[..., 1:]
    _require_numbers(scale)
    codes = np.concatenate([content & 0xF, content >> 4], axis=-1)
    return MxArray(codes.reshape(*rows, extent // BYTES * BLOCK_SIZE), scale, BLOCK_SIZE, -1, ELEMENT_TYPE)


def to_blocks(q: MxArray) -> npt.NDArray[np.uint8]:
    """Return the blocks [..., 17 G] of a tensor [..., 32 G].

    Raises:
        MxError: no MxArray of f4E2M1FN in blocks of 32 with f8E8M0FNU scales along its last axis, or a NaN scale.
    """
    require_mxfp4(q, "a ggml tensor")
    scale = q.scale.view(np.uint8)
    _require_numbers(scale)
    codes = q.mantissa.view(np.uint8).reshape(*scale.shape, 2, BLOCK_BYTES)
    blocks = np.empty((*scale.shape, BYTES), np.uint8)
    blocks[..., 0] = scale
    blocks[..., 1:] = codes[..., 0, :] | codes[..., 1, :] << 4
    return blocks.reshape(*scale.shape[:-1], scale.shape[-1] * BYTES)


def _require_numbers(scale: npt.NDArray[np.uint8]) -> None:
    if (scale == E8M0.nan_code).any():
        raise MxError(f"a scale has code {E8M0.nan_code}, which is NaN in {E8M0.mlir} but 2^128 in ggml")
