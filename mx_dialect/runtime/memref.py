"""Memrefs and numpy arrays without copies, both ways: the C interface of compiled functions, in ctypes.

A ranked memref is a struct of the allocated and the aligned pointer, an offset, sizes and strides, the last three in
elements (MLIR, "Ranked MemRef Types" in the LLVM dialect's target documentation). Narrow floats take one byte an
element.
"""

import ctypes
import functools
import re
import sys
import weakref
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]


@functools.lru_cache(maxsize=256)
def dtype_of(element: str) -> np.dtype[Any] | None:
    """Return the numpy dtype for an element type as MLIR spells it, or None where numpy and ml_dtypes have none.

    An i1 is numpy's bool, an integer without signedness numpy's signed one, an index 64 bits.
    """
    if element == "i1":
        return np.dtype(np.bool_)
    if element == "index":
        return np.dtype(np.int64)
    if element == "bf16":
        return np.dtype(ml_dtypes.bfloat16)
    if match := re.fullmatch(r"(s|u)?i(8|16|32|64)", element):
        return np.dtype(f"{'uint' if match[1] == 'u' else 'int'}{match[2]}")
    if match := re.fullmatch(r"f(16|32|64)", element):
        return np.dtype(f"float{match[1]}")
    if match := re.fullmatch(r"f([468])(E\w+)", element):
        scalar_type = getattr(ml_dtypes, f"float{match[1]}_{match[2].lower()}", None)
        return None if scalar_type is None else np.dtype(scalar_type)
    return None


def code_bits(element: str) -> int | None:
    """Return the width of a float type of 8 bits or less, which is stored as one code a byte; None for others."""
    match = re.fullmatch(r"f([468])E\w+", element)
    return int(match[1]) if match else None


@functools.cache
def descriptor_type(rank: int) -> type[ctypes.Structure]:
    """Return the struct of a memref of that rank."""
    fields: list[tuple[str, Any]] = [
        ("allocated", ctypes.c_void_p),
        ("aligned", ctypes.c_void_p),
        ("offset", ctypes.c_int64),
    ]
    if rank:
        fields += [("sizes", ctypes.c_int64 * rank), ("strides", ctypes.c_int64 * rank)]
    return type(f"Memref{rank}", (ctypes.Structure,), {"_fields_": fields})


def is_native(array: Array) -> bool:
    """Tell whether compiled code can use the array's memory as it is: C order, aligned, native byte order."""
    flags = array.flags
    return bool(flags.c_contiguous and flags.aligned and array.dtype.isnative)


def describe(array: Array) -> ctypes.Structure:
    """Return the memref of a native array. The caller keeps the array alive while the memref is in use."""
    descriptor: Any = descriptor_type(array.ndim)()
    descriptor.allocated = descriptor.aligned = array.ctypes.data
    if array.ndim:
        descriptor.sizes[:] = array.shape
        # numpy leaves the strides of an axis with fewer than two elements undefined; these are defined.
        stride = 1
        for axis in reversed(range(array.ndim)):
            descriptor.strides[axis] = stride
            stride *= array.shape[axis]
    return descriptor


def _load_free() -> Any:
    """Return `free` of the C library whose `malloc` compiled code calls."""
    library = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
    free = library.free
    free.argtypes, free.restype = [ctypes.c_void_p], None
    return free


_free = _load_free()


class _Memory:
    """A memref as numpy's array interface."""

    def __init__(self, descriptor: Any, rank: int, itemsize: int):
        self.__array_interface__ = {
            "version": 3,
            "shape": tuple(descriptor.sizes) if rank else (),
            "strides": tuple(stride * itemsize for stride in descriptor.strides) if rank else (),
            "typestr": np.dtype(f"u{itemsize}").str,
            "data": (descriptor.aligned + descriptor.offset * itemsize, False),
        }


def take(descriptor: Any, rank: int, dtype: np.dtype[Any]) -> Array:
    """Return the array over a memref allocated with malloc, which is freed with the last array over it."""
    if rank and 0 in tuple(descriptor.sizes):
        _free(descriptor.allocated)
        return np.empty(tuple(descriptor.sizes), dtype)
    memory = _Memory(descriptor, rank, dtype.itemsize)
    # At exit the process gives the memory back, while arrays over it may still be in use.
    weakref.finalize(memory, _free, descriptor.allocated).atexit = False
    return np.asarray(memory).view(dtype)


def copy(descriptor: Any, rank: int, dtype: np.dtype[Any]) -> Array:
    """Return a copy of what a memref holds."""
    if rank and 0 in tuple(descriptor.sizes):
        return np.empty(tuple(descriptor.sizes), dtype)
    return np.array(np.asarray(_Memory(descriptor, rank, dtype.itemsize)).view(dtype), order="C")
