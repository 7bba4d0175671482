"""Codes of less than a byte packed without gaps along the last axis.

Code i of a group occupies the bits from i * bits on of its bytes, which are in little-endian order: two FP4 codes are a
byte, the first one in the low nibble, and four FP6 codes are three bytes. Each row is packed by itself.

Source: the packing that OCP Microscaling v1.0 leaves open, as checkpoints have it.
"""

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from mx_dialect.diagnostics import MxError

Codes: TypeAlias = npt.NDArray[np.uint8]


class Group(NamedTuple):
    """The smallest number of codes that fill whole bytes, and how many bytes."""

    codes: int
    bytes: int


def group(bits: int) -> Group:
    """Return the group of codes with this many bits, 1 to 8."""
    together = math.lcm(bits, 8)
    return Group(together // bits, together // 8)


def pack(codes: npt.NDArray[Any], bits: int) -> Codes:
    """Return codes, one a byte, packed along the last axis: n codes become n * bits / 8 bytes.

    Raises:
        MxError: no uint8 array of rank 1 or more, a code of more than `bits` bits, or a last axis that is not a
            multiple of the codes in a group.
    """
    size = group(bits)
    _require(codes, size.codes, f"{bits}-bit codes to pack")
    if codes.size and int(codes.max()) >> bits:
        raise MxError(f"byte {int(codes.max()):#04x} is no code of {bits} bits")
    return _regroup(codes, size.codes, bits, size.bytes, 8)


def unpack(packed: npt.NDArray[Any], bits: int) -> Codes:
    """Return packed codes one a byte, the inverse of `pack`: n bytes become n * 8 / bits codes.

    Raises:
        MxError: no uint8 array of rank 1 or more, or a last axis that is not a multiple of the bytes of a group.
    """
    size = group(bits)
    _require(packed, size.bytes, f"packed {bits}-bit codes")
    return _regroup(packed, size.bytes, 8, size.codes, bits)


def _regroup(fields: Codes, count: int, bits: int, new_count: int, new_bits: int) -> Codes:
    """Return groups of `count` fields of `bits` bits as groups of `new_count` fields of `new_bits` bits."""
    *rows, extent = fields.shape
    groups = fields.reshape(*rows, extent // count, count)
    word = np.zeros(groups.shape[:-1], np.uint64)
    for i in range(count):
        word |= groups[..., i].astype(np.uint64) << np.uint64(bits * i)
    regrouped = np.empty((*word.shape, new_count), np.uint8)
    for i in range(new_count):
        regrouped[..., i] = (word >> np.uint64(new_bits * i)) & np.uint64((1 << new_bits) - 1)
    return regrouped.reshape(*rows, extent // count * new_count)


def _require(array: npt.NDArray[Any], multiple: int, what: str) -> None:
    """Refuse arrays that are no rows of whole groups of bytes."""
    if array.dtype != np.uint8:
        raise MxError(f"{what} must have dtype uint8, not {array.dtype}")
    if not array.ndim:
        raise MxError(f"{what} must have rank 1 or more")
    if array.shape[-1] % multiple:
        raise MxError(f"the last axis of {what} must be a multiple of {multiple}, but the shape is {array.shape}")
