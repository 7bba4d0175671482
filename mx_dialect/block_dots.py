"""Exact numpy semantics of a matmul by block dots: the oracle of schedules that multiply integers.

Elements that are integers times one power of two (MXFP4, MXFP6 E2M3, MXINT8) have exact dot products. Only the sum over
blocks rounds, once a block.

Sources: OCP Microscaling Formats (MX) v1.0, section 6.2 (Dot, DotGeneral); Boldo and Melquiond, When double rounding is
odd (2005).
"""

import numpy as np
import numpy.typing as npt

from mx_dialect.codes import Doubles, Ints, Singles, decode, decode_scale, format_of_dtype, scale_format_of
from mx_dialect.diagnostics import MxError
from mx_dialect.formats import ElementFormat
from mx_dialect.reference import BlockScaled

_LARGEST = 1 << 7


def matmul_block_dots(
    a: BlockScaled, b: BlockScaled, acc: npt.ArrayLike | None = None, *, transpose_rhs: bool = False
) -> Singles:
    """Return acc + A @ B in float32, block by block, for A [..., M, K], B [..., K, N] and acc [..., M, N].

    Both operands are block-scaled along K; with `transpose_rhs` B is given as [..., N, K]. For the blocks along K in
    order (the smaller ones, where the two sides differ)

        sum = round(sum + dot * scale_a * scale_b)

    where `dot`, the sum of the products of elements, and the bracket are exact, and `round` is to float32, to nearest
    even. So a contribution neither overflows nor underflows before it is added. A NaN scale makes the sum NaN.

    Raises:
        MxError: elements of a format that is not integers of 8 bits times a power of two, scales that are no powers of
            two, shapes that do not go together, or blocks along another axis.
    """
    left, left_scale, left_block = _parts(a, "A", -1)
    right, right_scale, right_block = _parts(b, "B", -1 if transpose_rhs else -2)
    if not transpose_rhs:
        right, right_scale = right.swapaxes(-1, -2), right_scale.swapaxes(-1, -2)
    if left.shape[-1] != right.shape[-1]:
        raise MxError(f"A has {left.shape[-1]} elements along K and B {right.shape[-1]}")
    shape = (*np.broadcast_shapes(left.shape[:-2], right.shape[:-2]), left.shape[-2], right.shape[-2])
    total = np.zeros(shape, np.float32) if acc is None else np.array(acc, np.float32)
    step = min(left_block, right_block)
    unit = 2.0 ** -(_fraction_bits(a) + _fraction_bits(b))
    for start in range(0, left.shape[-1], step):
        stop = start + step
        dot = np.einsum("...mk,...nk->...mn", left[..., start:stop], right[..., start:stop])
        rows, columns = left_scale[..., start // left_block], right_scale[..., start // right_block]
        total = _rounded_sum(total, (dot * unit) * (rows[..., :, None] * columns[..., None, :]))
    return total


def _format(x: BlockScaled) -> ElementFormat:
    return format_of_dtype(np.asarray(x.mantissa).dtype)


def _fraction_bits(x: BlockScaled) -> int:
    """Return f for elements that are integers times 2^-f."""
    return int(-np.log2(_format(x).min_subnormal))


def _parts(x: BlockScaled, name: str, blocked_axis: int) -> tuple[Ints, Doubles, int]:
    """Return the elements as integers, the scales, and the block size."""
    mantissa, scale = np.asarray(x.mantissa), np.asarray(x.scale)
    fmt = _format(x)
    if fmt.max_normal / fmt.min_subnormal > _LARGEST:
        raise MxError(f"operand {name} is {fmt.mlir}, whose elements are no integers of 8 bits times a power of two")
    if x.axis not in (blocked_axis, mantissa.ndim + blocked_axis):
        raise MxError(f"operand {name} is blocked along axis {x.axis}, not along the contracted axis {blocked_axis}")
    if not scale_format_of(scale).is_power_of_two:
        raise MxError(f"operand {name} has scales that are no powers of two")
    integers = np.ldexp(decode(mantissa, fmt.mlir), _fraction_bits(x)).astype(np.int64)
    return integers, decode_scale(scale), x.block_size


def _rounded_sum(total: Singles, term: Doubles) -> Singles:
    """Return total + term rounded once to float32.

    The sum rounded to odd in float64 rounds to float32 as the exact sum does, as float64 has more than two bits more.
    """
    start = total.astype(np.float64)
    with np.errstate(all="ignore"):
        rounded = start + term
        part = rounded - start
        error = (start - (rounded - part)) + (term - part)
        even = rounded.view(np.uint64) & np.uint64(1) == 0
        inexact = np.isfinite(rounded) & (error != 0) & even
        odd = np.where(inexact, np.nextafter(rounded, np.copysign(np.inf, error)), rounded)
        return odd.astype(np.float32)
