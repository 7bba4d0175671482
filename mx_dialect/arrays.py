"""Block-scaled arrays without writing IR: quantize, dequantize and multiply numpy arrays, on compiled kernels.

Each function compiles a one-operation program for the shapes it meets, once, and keeps the kernel.
"""

import functools
import operator
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

from mx_dialect.codes import format_named, require_rounding, scale_format_named
from mx_dialect.diagnostics import MxError
from mx_dialect.formats import DEFAULT_ROUNDING, E8M0, SCALE_FORMATS
from mx_dialect.mx_array import MxArray, as_array
from mx_dialect.runtime import compile
from mx_dialect.runtime.kernel import Kernel
from mx_dialect.tensor_spec import TensorSpec, spell_shape

__all__ = ["MxArray", "dequantize", "matmul", "quantize"]

Array: TypeAlias = npt.NDArray[Any]

_FLOAT_TYPES = {
    np.dtype(np.float32): "f32",
    np.dtype(np.float16): "f16",
    np.dtype(ml_dtypes.bfloat16): "bf16",
}


def quantize(
    x: Array,
    element_type: str = "f8E4M3FN",
    block_size: int = 32,
    axis: int = -1,
    rounding: str = DEFAULT_ROUNDING,
    scale_type: str = E8M0.mlir,
) -> MxArray:
    """Quantize a float32, float16 or bfloat16 array of rank 1 or more in blocks along `axis`.

    `element_type` and `scale_type` are spelt as in MLIR. `rounding` says how the shared exponent of a block follows
    from its largest magnitude: "floor" (OCP), "ceil", "even" or "rceil". With scale_type="f8E4M3FN" (NVFP4: "f4E2M1FN",
    block size 16) the scale is the largest magnitude over the largest element instead, rounded to nearest even, and
    there is no rounding to choose. Elements are rounded to nearest even and saturated. A block with a NaN or an
    infinity gets the NaN scale.

    Raises:
        MxError: another dtype or rank, an unknown element type, scale type or rounding, a block size that is no power
            of two, or an extent along `axis` that is not a multiple of it.
    """
    x = as_array(x, "quantize's x")
    source = _float_type(x, "quantize")
    format_named(element_type)
    require_rounding(rounding, scale_format_named(scale_type))
    try:
        block_size, axis = operator.index(block_size), operator.index(axis)
    except TypeError as error:
        raise MxError(f"block size and axis must be integers: {error}") from None
    from_front = axis + x.ndim if -x.ndim <= axis < 0 else axis
    spec = TensorSpec(x.shape, element_type, block_size, scale_type, from_front)
    problem = spec.error()
    if problem is not None:
        raise MxError(problem)
    quantized: MxArray = _quantize_kernel(spec, source, rounding)(x)
    return quantized


def dequantize(q: MxArray, *, factor: float | None = None) -> npt.NDArray[np.float32]:
    """Return the values of a block-scaled array, element times scale, as float32. A NaN scale makes its block NaN.

    `factor`, a float32, multiplies each of them: the scale of the whole tensor that NVFP4 keeps beside the blocks'.

    Raises:
        MxError: `q` is no MxArray, `factor` no number.
    """
    given: Any = q
    if not isinstance(given, MxArray):
        raise MxError(f"dequantize takes an MxArray, not {type(given).__name__}")
    kernel = _dequantize_kernel(q.spec, factor is not None)
    values: npt.NDArray[np.float32] = kernel(q) if factor is None else kernel(q, factor)
    return values


def matmul(
    a: MxArray | Array,
    b: MxArray | Array,
    acc: Array | None = None,
    *,
    transpose_rhs: bool = False,
    factor: float | None = None,
) -> npt.NDArray[np.float32]:
    """Return acc + a @ b as float32: a is [batch..., M, K], b [batch..., K, N], acc [batch..., M, N] or None for 0.

    One or both of `a` and `b` are MxArrays with their blocks along K, `a`'s last axis and `b`'s second-to-last; the
    other may be a float32, float16 or bfloat16 array. With `transpose_rhs`, `b` is [batch..., N, K] with its blocks
    along the last axis, the way checkpoints store weights. Batch axes broadcast as in numpy, to those of `acc` if it is
    given. Products and sums are float32, in no promised order. `acc` is not changed.

    `factor`, a float32, multiplies the product: of the scales of whole tensors that NVFP4 keeps beside the blocks'. It
    is multiplied into each value of the MxArray, of `a` if both are one.

    Raises:
        MxError: neither is an MxArray, blocks along another axis, shapes that do not go together, another dtype.
    """
    a = a if isinstance(a, MxArray) else as_array(a, "matmul's a")
    b = b if isinstance(b, MxArray) else as_array(b, "matmul's b")
    lhs, rhs = _operand_type(a), _operand_type(b)
    if not isinstance(a, MxArray) and not isinstance(b, MxArray):
        raise MxError("matmul needs an MxArray as a or b; for two float arrays use a @ b")
    acc = None if acc is None else as_array(acc, "acc")
    if acc is not None and acc.dtype != np.float32:
        raise MxError(f"acc must have dtype float32, but has {acc.dtype}")
    shape = _product_shape(a, b, acc, transpose_rhs)

    result = np.zeros(shape, np.float32) if acc is None else np.array(acc, np.float32, order="C", copy=True)
    folded = None if factor is None else "%a" if isinstance(a, MxArray) else "%b"
    kernel = _matmul_kernel(lhs, rhs, f"tensor<{spell_shape(shape, 'f32')}>", bool(transpose_rhs), folded)
    kernel(a, b, result, *() if factor is None else (factor,), in_place=True)
    return result


def _product_shape(a: MxArray | Array, b: MxArray | Array, acc: Array | None, transpose_rhs: bool) -> tuple[int, ...]:
    """Return the shape of acc + a @ b.

    Raises:
        MxError: the shapes do not go together, or blocks do not lie along K.
    """
    shapes = f"matmul of shapes {a.shape} and {b.shape}"
    if a.ndim < 2 or b.ndim < 2:
        raise MxError(f"{shapes}: both must have rank 2 or more")
    k_of_b, n_of_b = (b.ndim - 1, b.ndim - 2) if transpose_rhs else (b.ndim - 2, b.ndim - 1)
    for operand, name, axis in ((a, "a", a.ndim - 1), (b, "b", k_of_b)):
        if isinstance(operand, MxArray) and operand.axis != axis:
            raise MxError(
                f"{name} must be blocked along K, its axis {axis}, but is blocked along axis {operand.axis};"
                f" quantize it with axis={axis}"
            )
    if a.shape[-1] != b.shape[k_of_b]:
        raise MxError(f"{shapes}: K is {a.shape[-1]} in a and {b.shape[k_of_b]} in b")
    matrix = (a.shape[-2], b.shape[n_of_b])
    batch = _broadcast(a.shape[:-2], b.shape[:-2])
    if batch is None:
        raise MxError(f"{shapes}: the batch axes {a.shape[:-2]} and {b.shape[:-2]} do not broadcast")
    if acc is None:
        return (*batch, *matrix)
    if acc.shape[-2:] != matrix or _broadcast(batch, acc.shape[:-2]) != acc.shape[:-2]:
        raise MxError(f"acc has shape {acc.shape}; the product has {(*batch, *matrix)}")
    return acc.shape


def _broadcast(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return what two shapes broadcast to, or None if they do not."""
    try:
        return np.broadcast_shapes(left, right)
    except ValueError:
        return None


def _float_type(x: Array, what: str) -> str:
    """Return the MLIR element type of a float array."""
    element = _FLOAT_TYPES.get(x.dtype.newbyteorder("="))
    if element is None:
        raise MxError(
            f"{what} takes float32, float16 or bfloat16 arrays, not {x.dtype}; convert with x.astype(np.float32)"
        )
    return element


def _operand_type(x: MxArray | Array) -> str:
    """Return the MLIR type of a matmul operand."""
    if isinstance(x, MxArray):
        return x.spec.custom()
    return f"tensor<{spell_shape(x.shape, _float_type(x, 'matmul'))}>"


@functools.lru_cache(maxsize=128)
def _quantize_kernel(spec: TensorSpec, element: str, rounding: str) -> Kernel:
    source, result = f"tensor<{spell_shape(spec.shape, element)}>", spec.custom()
    attributes = f'{{rounding = "{rounding}"}}' if SCALE_FORMATS[spec.scale_type].is_power_of_two else ""
    return compile(
        f"""func.func @quantize(%x: {source}) -> {result} {{
              %0 = mx.quantize_block %x {attributes} : {source} -> {result}
              return %0 : {result}
            }}"""
    )


@functools.lru_cache(maxsize=128)
def _dequantize_kernel(spec: TensorSpec, has_factor: bool) -> Kernel:
    source, result = spec.custom(), f"tensor<{spell_shape(spec.shape, 'f32')}>"
    parameter, fold, value = _folded("%x", source) if has_factor else ("", "", "%x")
    return compile(
        f"""func.func @dequantize(%x: {source}{parameter}) -> {result} {{
              {fold}
              %0 = mx.dequantize_block {value} : {source} -> {result}
              return %0 : {result}
            }}"""
    )


@functools.lru_cache(maxsize=128)
def _matmul_kernel(lhs: str, rhs: str, acc: str, transpose_rhs: bool, folded: str | None) -> Kernel:
    """Return the kernel for operands of these types, with a factor for the one named `folded`, if any."""
    parameter, fold, value = ("", "", "") if folded is None else _folded(folded, lhs if folded == "%a" else rhs)
    a, b = (value if name == folded else name for name in ("%a", "%b"))
    attributes = " {transpose_rhs}" if transpose_rhs else ""
    return compile(
        f"""func.func @matmul(%a: {lhs}, %b: {rhs}, %acc: {acc}{parameter}) -> {acc} {{
              {fold}
              %0 = mx.block_matmul {a}, {b}, %acc{attributes} : {lhs}, {rhs}, {acc} -> {acc}
              return %0 : {acc}
            }}"""
    )


def _folded(name: str, type_: str) -> tuple[str, str, str]:
    """Return IR that multiplies a value by a factor: the factor's parameter, the operation and its result's name."""
    return ", %factor: f32", f"%folded = mx.fold_scale {name}, %factor : {type_}, f32 -> {type_}", "%folded"
