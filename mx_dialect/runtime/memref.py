"""Memrefs and numpy arrays without copies, both ways: the C interface of compiled functions, in ctypes.

A ranked memref is a struct of the allocated and the aligned pointer, an offset, sizes and strides, the last three in
elements (MLIR, "Ranked MemRef Types" in the LLVM dialect's target documentation).
"""

import ctypes
import functools
import sys
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]


def is_native(array: Array) -> bool:
    """Tell whether compiled code can use the array's memory as it is: C order, aligned, native byte order."""
    flags = array.flags
    return bool(flags.c_contiguous and flags.aligned and array.dtype.isnative)


@functools.lru_cache(maxsize=1024)
def sizes_and_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the sizes and strides, in elements, of a contiguous array of this shape.

    numpy leaves the strides of an axis with fewer than two elements undefined; these are defined.
    """
    strides: list[int] = []
    stride = 1
    for extent in reversed(shape):
        strides.append(stride)
        stride *= extent
    return (*shape, *reversed(strides))


def _load_free() -> Any:
    """Return `free` of the C library whose `malloc` compiled code calls."""
    library = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
    free = library.free
    free.argtypes, free.restype = [ctypes.c_void_p], None
    return free


_free = _load_free()


class _Memory:
    """A memref as numpy's array interface; `words` are its pointers, offset, sizes and strides."""

    __slots__ = ("__array_interface__", "_allocated", "_release")

    def __init__(self, words: Sequence[int], rank: int, itemsize: int, is_owner: bool):
        self._allocated = words[0]
        # Kept here, for at exit this module may be gone first.
        self._release = _free if is_owner else None
        self.__array_interface__ = {
            "version": 3,
            "shape": tuple(words[3 : 3 + rank]),
            "strides": tuple([stride * itemsize for stride in words[3 + rank :]]),
            "typestr": _TYPE_STRINGS[itemsize],
            "data": (words[1] + words[2] * itemsize, False),
        }

    def __del__(self) -> None:
        # numpy drops this with the last array over it.
        if self._release is not None:
            self._release(self._allocated)


_TYPE_STRINGS = {size: np.dtype(f"u{size}").str for size in (1, 2, 4, 8)}


def take(words: Sequence[int], rank: int, dtype: np.dtype[Any]) -> Array:
    """Return the array over a memref allocated with malloc, which is freed with the last array over it."""
    if 0 in words[3 : 3 + rank]:
        _free(words[0])
        return np.empty(words[3 : 3 + rank], dtype)
    return np.asarray(_Memory(words, rank, dtype.itemsize, True)).view(dtype)


def copy(words: Sequence[int], rank: int, dtype: np.dtype[Any]) -> Array:
    """Return a copy of what a memref holds."""
    if 0 in words[3 : 3 + rank]:
        return np.empty(words[3 : 3 + rank], dtype)
    return np.array(np.asarray(_Memory(words, rank, dtype.itemsize, False)).view(dtype), order="C")
