"""Exact numpy semantics of the value level: quantize, dequantize and matmul, the oracle of the tests.

Nothing here shares code with the lowerings or needs the bindings; `codes.py` has the conversions of single
values.

Sources: OCP Microscaling Formats (MX) v1.0, section 6.3 (conversion); Higham, Accuracy and Stability of
Numerical Algorithms, sections 2.1, 3.1 and 3.5 (the error bound of a matmul).
"""

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias, overload, runtime_checkable

import ml_dtypes
import numpy as np
import numpy.typing as npt

from mx_dialect.codes import (
    FRACTION_BITS,
    FRACTION_MASK,
    Array,
    Bits,
    Codes,
    Doubles,
    Singles,
    decode,
    decode_scale,
    encode,
    encode_bits,
    format_named,
    format_of_dtype,
    numpy_dtype,
    require_rounding,
    scale_dtype,
    scale_format_named,
    scale_format_of,
    split,
    to_singles,
    unpack,
)
from mx_dialect.diagnostics import MxError
from mx_dialect.formats import DEFAULT_ROUNDING, E8M0, ElementFormat, ScaleFormat, rounding_threshold
from mx_dialect.tensor_spec import TensorSpec

__all__ = [
    "BlockScaled",
    "Operand",
    "Quantized",
    "decode",
    "decode_scale",
    "dequantize",
    "encode",
    "matmul",
    "matmul_bound",
    "numpy_dtype",
    "quantize",
]


@runtime_checkable
class BlockScaled(Protocol):
    """Any block-scaled array: `Quantized` here, `MxArray` of the JIT API.

    `mantissa` has an element dtype (see `numpy_dtype`), `scale` that of a scale format (float8_e8m0fnu or
    float8_e4m3fn; uint8 is taken as codes of the first), with scale.shape[axis] == mantissa.shape[axis] // block_size
    and all other extents equal.
    """

    @property
    def mantissa(self) -> Array: ...
    @property
    def scale(self) -> Array: ...
    @property
    def block_size(self) -> int: ...
    @property
    def axis(self) -> int: ...


@dataclass(frozen=True, eq=False)
class Quantized:
    """What `quantize` returns; unpacks as `mantissa, scale = quantize(x)`. `axis` counts from the front."""

    mantissa: Array
    scale: Array
    block_size: int
    axis: int
    element_type: str

    def __iter__(self) -> Iterator[Array]:
        return iter((self.mantissa, self.scale))


# A matmul operand: a float array, a block-scaled array, or (mantissa, scale, block size), 32 if left out, with its
# blocks along K.
Operand: TypeAlias = Array | BlockScaled | tuple[Array, Array] | tuple[Array, Array, int]

_INPUT_DTYPES = (np.dtype(np.float32), np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))


def quantize(
    x: npt.ArrayLike,
    element_type: str = "f8E4M3FN",
    block_size: int = 32,
    axis: int = -1,
    rounding: str = DEFAULT_ROUNDING,
    scale_type: str = E8M0.mlir,
) -> Quantized:
    """Quantize a float32, float16 or bfloat16 array of rank >= 1 to blocks of `block_size` along `axis`.

    The shared exponent follows from the block's largest magnitude by `rounding`
    (`formats.rounding_threshold`) and is clamped to the scale's -127..127. Elements are x / 2^exponent
    rounded to nearest, ties to even, and saturated to the largest normal value. Where the OCP specification
    leaves a choice:

    * a block with a NaN or Inf gets the NaN scale (code 255); its elements are the codes of the unscaled
      values, Inf saturated, NaN the format's positive NaN code, or 0 where the format has none;
    * an all-zero block gets scale code 0; zeros keep their sign;
    * subnormal inputs count in full; MXINT8 produces neither -128 nor a negative zero.

    `rceil` never saturates, except that MXINT8 does above 127/64 * 2^127, where the exponent is clamped.

    With f8E4M3FN scales (NVFP4: f4E2M1FN in blocks of 16) the scale is amax / max_normal rounded to nearest, ties to
    even, and clamped to the scale's positive normal values, 2^-6..448; an all-zero block gets 2^-6. Elements are the
    exact x / scale, rounded once and saturated. There is no choice of rounding; special blocks are as above, with the
    scale's NaN.

    Raises:
        MxError: another dtype, an unknown element or scale type, an unknown rounding or one with f8E4M3FN scales, a
            block size that is no power of two, an axis that is out of range or whose extent is not a multiple of the
            block size.
    """
    array = _require_float(x, "quantize")
    fmt, scale_format = format_named(element_type), scale_format_named(scale_type)
    require_rounding(rounding, scale_format)
    spec = _spec(array.shape, element_type, block_size, axis, scale_type)
    bits: Bits = split(_blocked(array, spec))
    within = spec.axis + 1
    largest = Bits(np.zeros((), np.bool_), bits.magnitude.max(axis=within, keepdims=True), bits.layout)
    special = largest.magnitude >= bits.layout.infinity

    if scale_format.is_power_of_two:
        scale_code = _shared_exponents(largest, fmt, scale_format, rounding)
    else:
        scale_code = _rounded_scales(largest, fmt, scale_format)
    codes = encode_bits(bits, fmt, np.where(special, 1, decode_scale(scale_code, scale_type)))

    return Quantized(
        codes.reshape(array.shape).view(numpy_dtype(element_type)),
        np.where(special, np.uint8(scale_format.nan_code), scale_code).squeeze(within).view(scale_dtype(scale_type)),
        spec.block_size,
        spec.axis,
        element_type,
    )


def _shared_exponents(largest: Bits, fmt: ElementFormat, scale_format: ScaleFormat, rounding: str) -> Codes:
    """Return the codes of the power-of-two scales of blocks with these largest magnitudes."""
    threshold = rounding_threshold(fmt, rounding)
    exponent, significand = unpack(largest.magnitude, largest.layout)
    round_up = (significand & FRACTION_MASK) > (threshold << (FRACTION_BITS - 23))
    # A zero block's exponent lies below every other (see unpack), so that the clamp gives it code 0.
    shared = np.clip(exponent - fmt.emax + round_up, scale_format.min_exponent, scale_format.max_exponent)
    return (shared + scale_format.bias).astype(np.uint8)


def _rounded_scales(largest: Bits, fmt: ElementFormat, scale_format: ScaleFormat) -> Codes:
    """Return the codes of the scales with significands of blocks with these largest magnitudes."""
    least = 1 << scale_format.element.mantissa_bits  # The smallest normal value.
    return np.maximum(encode_bits(largest, scale_format.element, np.asarray(fmt.max_normal)), np.uint8(least))


@overload
def dequantize(mantissa: BlockScaled) -> Singles: ...
@overload
def dequantize(
    mantissa: Array, scale: Array, block_size: int = 32, axis: int = -1, scale_type: str | None = None
) -> Singles: ...
def dequantize(
    mantissa: Array | BlockScaled,
    scale: Array | None = None,
    block_size: int = 32,
    axis: int = -1,
    scale_type: str | None = None,
) -> Singles:
    """Return scale * element as float32, from a block-scaled array or from its parts.

    The dtype of the scales says what they are; uint8 codes are of f8E8M0FNU unless `scale_type` says otherwise. The
    exact product is rounded once, to nearest even. It is in fact never inexact: element and scale have at most 7 and 4
    significant bits, and no product but 0 is below 2^-143. What exceeds the largest float32 becomes Inf. A NaN scale
    makes its whole block NaN; Inf and NaN elements stay. NaN is always 0x7FC00000.

    Raises:
        MxError: a mantissa of no element dtype, a scale of no scale dtype or not that of `scale_type`, or shapes, block
            size and axis that do not go together.
    """
    if isinstance(mantissa, BlockScaled):
        if scale is not None:
            raise MxError("dequantize takes a block-scaled array, or a mantissa and a scale array; not both")
        return to_singles(_values(mantissa.mantissa, mantissa.scale, mantissa.block_size, mantissa.axis))
    if scale is None:
        raise MxError("dequantize needs the scale array beside the mantissa array")
    return to_singles(_values(mantissa, scale, block_size, axis, scale_type))


def _values(mantissa: Array, scale: Array, block_size: int, axis: int, scale_type: str | None = None) -> Doubles:
    """Return scale * element as float64, which holds each exactly, with the errors of `dequantize`."""
    mantissa, scale = np.asarray(mantissa), np.asarray(scale)
    fmt, scale_format = format_of_dtype(mantissa.dtype), scale_format_of(scale, scale_type)
    spec = _spec(mantissa.shape, fmt.mlir, block_size, axis, scale_format.mlir)
    if scale.shape != spec.scale_shape:
        raise MxError(
            f"scale has shape {scale.shape}; a mantissa of shape {mantissa.shape} in blocks of "
            f"{spec.block_size} along axis {spec.axis} needs {spec.scale_shape}"
        )
    elements = _blocked(decode(mantissa, fmt.mlir), spec)
    scales = np.expand_dims(decode_scale(scale, scale_format.mlir), spec.axis + 1)
    with np.errstate(invalid="ignore"):  # A scale with significands may be zero, and Inf times that is NaN.
        return (elements * scales).reshape(mantissa.shape)


def matmul(a: Operand, b: Operand, acc: npt.ArrayLike | None = None, *, transpose_rhs: bool = False) -> Doubles:
    """Return acc + A @ B in float64, for A [..., M, K], B [..., K, N] and acc [..., M, N].

    Either operand is block-scaled, with its blocks along K (A's last axis, B's second-to-last), or a float32,
    float16 or bfloat16 array. With `transpose_rhs` B is given as [..., N, K], its blocks along the last axis. Leading
    batch axes broadcast as in numpy, to those of acc if it is given.

    A block-scaled operand is worth scale * element, exactly: unlike what `dequantize` returns, the product does not
    overflow. Products of both sides are exact too (24 + 24 significant bits fit in 53, and no exponent leaves float64's
    range) and sums are rounded to float64: the result is within (K + 1) * 2^-52 * (|acc| + sum |a||b|) of the exact
    one.

    Raises:
        MxError: shapes that do not go together, blocks along another axis, or another dtype.
    """
    left, right, start = _operands(a, b, acc, transpose_rhs)
    with np.errstate(invalid="ignore"):  # Inf - Inf and Inf * 0 are NaN by definition.
        return left @ right + start


def matmul_bound(
    a: Operand,
    b: Operand,
    acc: npt.ArrayLike | None = None,
    *,
    transpose_rhs: bool = False,
    scale_products: str = "elements",
) -> Doubles:
    """Return how far a float32 result may lie from `matmul(a, b, acc)`, element by element, [..., M, N].

    `scale_products` says where the scales are multiplied in, as the pass option of that name does.

    Let u = 2^-24 and gamma_n = n u / (1 - n u). With "elements", forming scale * element rounds nothing (see
    `dequantize`). A term a*b is rounded once as a product, and at most K times while acc and the K products are added
    up in any order, with or without fused multiply-adds; so it enters the result with a factor within gamma_{K+1} of 1,
    and so does acc. One more u covers the float64 roundings of `matmul` and of this function. Hence

        |result - matmul(a, b, acc)| <= gamma_{K+2} * (|acc| + sum |a||b|) + K * 2^-149

    where the last term covers products that are subnormal in float32: each is off by up to 2^-150, which later
    roundings may at most double. This presumes gradual underflow.

    With "exponent" the terms are products of elements without scales, added up block by block, which is one of the
    orders; a block's sum is then multiplied by powers of two, which rounds only what is subnormal, by no more than
    2^-149 in all, and once more by each scale with significands: gamma_{K+4}, and K * 2^-148.

    The bound is Inf where it claims nothing, as Inf and NaN may appear: where a float32 sum may overflow; where an
    operand is not finite; with "elements", where a scale * element is not finite in float32; with "exponent", where a
    value of an operand without scales is outside 2^-110..2^89, so that it times an element may not be a normal float32.

    Raises:
        MxError: as `matmul`; an unknown `scale_products`; K of 2^22 or more, where the bound says little.
    """
    if scale_products not in ("elements", "exponent"):
        raise MxError(f"unknown scale_products '{scale_products}'; expected elements or exponent")
    left, right, start = _operands(a, b, acc, transpose_rhs)
    extent = left.shape[-1]
    if extent >= 1 << 22:
        raise MxError(f"no useful error bound for a contraction over {extent} elements; the limit is 2^22 - 1")
    with np.errstate(invalid="ignore"):
        total = _sizes(a, left, scale_products) @ _sizes(b, right, scale_products) + np.abs(start)
    roundings, subnormal = (extent + 2, 2.0**-149) if scale_products == "elements" else (extent + 4, 2.0**-148)
    rounded = roundings * 2.0**-24
    bound = rounded / (1 - rounded) * total + extent * subnormal
    # No partial sum exceeds (1 + gamma) * total < 2 * total: below 2^127 none overflows. NaN compares false.
    return np.where(total < 2.0**127, bound, np.inf)


def _sizes(operand: Operand, values: Doubles, scale_products: str) -> Doubles:
    """Return the magnitudes of an operand's values, Inf where `matmul_bound` claims nothing for them."""
    size = np.abs(values)
    if scale_products == "elements":
        return np.where(size < 2.0**128, size, np.inf)
    if isinstance(operand, tuple | BlockScaled):
        return size
    is_normal = (size >= 2.0**-110) & (size < 2.0**89)
    return np.where(is_normal | (size == 0), size, np.inf)


def _operands(
    a: Operand, b: Operand, acc: npt.ArrayLike | None, transpose_rhs: bool
) -> tuple[Doubles, Doubles, Doubles]:
    """Return A, B [..., K, N] and the accumulator (zeros if None) as float64, their shapes checked."""
    left, right = _operand(a, "A", -1), _operand(b, "B", -1 if transpose_rhs else -2)
    shapes = f"matmul of shapes {left.shape} and {right.shape}"
    if transpose_rhs:
        right = right.swapaxes(-1, -2)
    if left.shape[-1] != right.shape[-2]:
        raise MxError(f"{shapes}: A's last axis must be as long as B's {'' if transpose_rhs else 'second-to-'}last")
    try:
        batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    except ValueError:
        raise MxError(f"{shapes}: the batch axes do not broadcast") from None
    shape = (*batch, left.shape[-2], right.shape[-1])
    if acc is None:
        return left, right, np.zeros(shape)
    start = _require_float(acc, "matmul")
    try:
        fits = start.ndim >= 2 and np.broadcast_shapes(batch, start.shape[:-2]) == start.shape[:-2]
    except ValueError:
        fits = False
    if not fits or start.shape[-2:] != shape[-2:]:
        raise MxError(f"accumulator has shape {start.shape}; the product has {shape}")
    return left, right, _to_double(start)


def _operand(x: Operand, name: str, blocked_axis: int) -> Doubles:
    """Return one operand's values; `blocked_axis` (from the back) is where its blocks must lie."""
    if isinstance(x, tuple):
        mantissa, scale, block_size = x if len(x) == 3 else (*x, 32)
        values = _values(mantissa, scale, block_size, blocked_axis)
    elif isinstance(x, BlockScaled):
        values = _values(x.mantissa, x.scale, x.block_size, x.axis)
        if x.axis not in (blocked_axis, values.ndim + blocked_axis):
            raise MxError(
                f"matmul operand {name} is blocked along axis {x.axis}, not along the contracted axis "
                f"{values.ndim + blocked_axis}; quantize it with axis={blocked_axis}"
            )
    else:
        values = _to_double(_require_float(x, "matmul"))
    if values.ndim < 2:
        raise MxError(f"matmul operand {name} has shape {values.shape}; expected rank 2 or more")
    return values


def _to_double(x: Array) -> Doubles:
    with np.errstate(invalid="ignore"):  # A signalling NaN sets the invalid flag.
        return x.astype(np.float64)


def _require_float(x: npt.ArrayLike, what: str) -> Array:
    array = np.asarray(x)
    if array.dtype not in _INPUT_DTYPES:
        raise MxError(
            f"{what} takes float32, float16 or bfloat16 arrays, not {array.dtype}; convert with x.astype(np.float32)"
        )
    return array


def _spec(shape: tuple[int, ...], element_type: str, block_size: int, axis: int, scale_type: str) -> TensorSpec:
    """Return the checked parameters of a block-scaled array, `axis` counted from the front."""
    try:
        block_size, axis = operator.index(block_size), operator.index(axis)
    except TypeError as error:
        raise MxError(f"block size and axis must be integers: {error}") from None
    from_front = axis + len(shape) if -len(shape) <= axis < 0 else axis
    spec = TensorSpec(shape, element_type, block_size, scale_type, from_front)
    message = spec.error()
    if message is not None:
        raise MxError(message)
    return spec


def _blocked(x: Array, spec: TensorSpec) -> Array:
    """Return `x` with its blocked axis split into (blocks, block size)."""
    before, extent, after = x.shape[: spec.axis], x.shape[spec.axis], x.shape[spec.axis + 1 :]
    return x.reshape(*before, extent // spec.block_size, spec.block_size, *after)
