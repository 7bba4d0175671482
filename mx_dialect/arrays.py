"""Block-scaled arrays without writing IR: quantize, dequantize and multiply numpy arrays, on compiled kernels.

Each function compiles a one-operation program for the shapes it meets, once, and keeps the kernel.
"""

import functools
import operator
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

from mx_dialect.codes import format_named
from mx_dialect.diagnostics import MxError
from mx_dialect.formats import DEFAULT_ROUNDING, E8M0, ROUNDING_MODES
from mx_dialect.kernel import Kernel
from mx_dialect.mx_array import MxArray, as_array
from mx_dialect.runtime import compile
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
) -> MxArray:
    """Quantize a float32, float16 or bfloat16 array of rank 1 or more in blocks along `axis`.

    `element_type` is spelt as in MLIR. `rounding` says how the shared exponent of a block follows from its largest
    magnitude: "floor" (OCP), "ceil", "even" or "rceil". Elements are rounded to nearest even and saturated. A block
    with a NaN or an infinity gets the NaN scale.

    Raises:
        MxError: another dtype or rank, an unknown element type or rounding, a block size that is no power of two, or
            an extent along `axis` that is not a multiple of it.
    """
    x = as_array(x, "quantize's x")
    source = _float_type(x, "quantize")
    format_named(element_type)
    if rounding not in ROUNDING_MODES:
        raise MxError(f"unknown rounding mode '{rounding}'; expected one of {', '.join(ROUNDING_MODES)}")
    try:
        block_size, axis = operator.index(block_size), operator.index(axis)
    except TypeError as error:
        raise MxError(f"block size and axis must be integers: {error}") from None
    from_front = axis + x.ndim if -x.ndim <= axis < 0 else axis
    spec = TensorSpec(x.shape, element_type, block_size, E8M0.mlir, from_front)
    problem = spec.error()
    if problem is not None:
        raise MxError(problem)
    quantized: MxArray = _quantize_kernel(spec, source, rounding)(x)
    return quantized


def dequantize(q: MxArray) -> npt.NDArray[np.float32]:
    """Return the values of a block-scaled array, element times scale, as float32. A NaN scale makes its block NaN.

    Raises:
        MxError: `q` is no MxArray.
    """
    given: Any = q
    if not isinstance(given, MxArray):
        raise MxError(f"dequantize takes an MxArray, not {type(given).__name__}")
    values: npt.NDArray[np.float32] = _dequantize_kernel(q.spec)(q)
    return values


def matmul(a: MxArray | Array, b: MxArray | Array, acc: Array | None = None) -> npt.NDArray[np.float32]:
    """Return acc + a @ b as float32: a is [batch..., M, K], b [batch..., K, N], acc [batch..., M, N] or None for 0.

    One or both of `a` and `b` are MxArrays with their blocks along K, `a`'s last axis and `b`'s second-to-last; the
    other may be a float32, float16 or bfloat16 array. Batch axes must be equal. Products and sums are float32, in no
    promised order. `acc` is not changed.

    Raises:
        MxError: neither is an MxArray, blocks along another axis, shapes that do not go together, another dtype.
    """
    a = a if isinstance(a, MxArray) else as_array(a, "matmul's a")
    b = b if isinstance(b, MxArray) else as_array(b, "matmul's b")
    lhs, rhs = _operand_type(a), _operand_type(b)
    if not isinstance(a, MxArray) and not isinstance(b, MxArray):
        raise MxError("matmul needs an MxArray as a or b; for two float arrays use a @ b")
    shapes = f"matmul of shapes {a.shape} and {b.shape}"
    if a.ndim < 2 or a.ndim != b.ndim:
        raise MxError(f"{shapes}: both must have the same rank, 2 or more")
    for operand, name, axis in ((a, "a", a.ndim - 1), (b, "b", b.ndim - 2)):
        if isinstance(operand, MxArray) and operand.axis != axis:
            raise MxError(
                f"{name} must be blocked along K, its axis {axis}, but is blocked along axis {operand.axis};"
                f" quantize it with axis={axis}"
            )
    if a.shape[-1] != b.shape[-2]:
        raise MxError(f"{shapes}: K is {a.shape[-1]} in a and {b.shape[-2]} in b")
    if a.shape[:-2] != b.shape[:-2]:
        raise MxError(f"{shapes}: the batch axes {a.shape[:-2]} and {b.shape[:-2]} must be equal")

    shape = (*a.shape[:-1], b.shape[-1])
    result: npt.NDArray[np.float32]
    if acc is None:
        result = np.zeros(shape, np.float32)
    else:
        acc = as_array(acc, "acc")
        if acc.dtype != np.float32:
            raise MxError(f"acc must have dtype float32, but has {acc.dtype}")
        if acc.shape != shape:
            raise MxError(f"acc has shape {acc.shape}; the product has {shape}")
        result = np.array(acc, np.float32, order="C", copy=True)
    kernel = _matmul_kernel(lhs, rhs, f"tensor<{spell_shape(shape, 'f32')}>")
    kernel(a, b, result, in_place=True)
    return result


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
    return compile(
        f"""func.func @quantize(%x: {source}) -> {result} {{
              %0 = mx.quantize_block %x {{rounding = "{rounding}"}} : {source} -> {result}
              return %0 : {result}
            }}"""
    )


@functools.lru_cache(maxsize=128)
def _dequantize_kernel(spec: TensorSpec) -> Kernel:
    source, result = spec.custom(), f"tensor<{spell_shape(spec.shape, 'f32')}>"
    return compile(
        f"""func.func @dequantize(%x: {source}) -> {result} {{
              %0 = mx.dequantize_block %x : {source} -> {result}
              return %0 : {result}
            }}"""
    )


@functools.lru_cache(maxsize=128)
def _matmul_kernel(lhs: str, rhs: str, acc: str) -> Kernel:
    return compile(
        f"""func.func @matmul(%a: {lhs}, %b: {rhs}, %acc: {acc}) -> {acc} {{
              %0 = mx.block_matmul %a, %b, %acc : {lhs}, {rhs}, {acc} -> {acc}
              return %0 : {acc}
            }}"""
    )
