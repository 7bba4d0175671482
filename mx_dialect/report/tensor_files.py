"""The tensors of a .npy, .npz or .safetensors file, as numpy arrays that are mapped into memory where they can be.

Files may come from anywhere: nothing is ever unpickled, and whatever is wrong with one is an `MxError` about it.
"""

import contextlib
import importlib
import math
import os
import re
import zipfile
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import IO, Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

from mx_dialect.diagnostics import MxError

Array: TypeAlias = npt.NDArray[Any]

_BF16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
_FLOATS: dict[np.dtype[Any], str] = {
    np.dtype(np.float32): "f32",
    np.dtype(np.float16): "f16",
    _BF16: "bf16",
    np.dtype(np.float64): "f64",
}
FLOATS = tuple(_FLOATS.values())


@dataclass(frozen=True)
class Tensor:
    """A tensor of a file. `dtype` is one of `FLOATS`, or the name of another type. `note` is what a reader must know.

    `load` returns the values, and raises nearly anything if the file is damaged: see `reading`.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    load: Callable[[], Array]
    note: str = ""

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def __str__(self) -> str:
        return f"{spell(self.name)}  {'x'.join(map(str, self.shape)) or '0-d'} {self.dtype}"


@contextlib.contextmanager
def open_tensors(path: str) -> Generator[list[Tensor]]:
    """List the tensors of a file, which stays open meanwhile; those of .safetensors by name, as people count.

    Raises:
        MxError: the file cannot be read, or reading it needs a package that is not installed.
    """
    readers = {".npy": _npy, ".npz": _npz, ".safetensors": _safetensors}
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in readers:
        raise MxError(f"{spell(path)}: expected a file named .npy, .npz or .safetensors")
    if not os.path.exists(path):
        raise MxError(f"{spell(path)}: no such file")
    if not os.path.isfile(path):
        raise MxError(f"{spell(path)}: not a regular file")
    with contextlib.ExitStack() as stack:
        with reading(path):
            tensors = readers[suffix](path, stack)
        yield tensors


@contextlib.contextmanager
def reading(path: str, name: str | None = None) -> Generator[None]:
    """Turn what goes wrong in a library that reads a file into an error about the file.

    Raises:
        MxError: anything was raised; the parsers of damaged files raise nearly everything.
    """
    try:
        yield
    except MxError:
        raise
    except Exception as error:
        where = spell(path) if name is None else f"{spell(path)}: {spell(name)}"
        detail = str(error).strip().split("\n")[0]
        if not detail or isinstance(error, LookupError | TypeError | AttributeError | AssertionError):
            # What these say, such as a KeyError its key, does not stand by itself.
            detail = f"{type(error).__name__}: {detail}".removesuffix(": ")
        raise MxError(f"{where}: cannot be read: {spell(detail)}") from error


def _npy(path: str, stack: contextlib.ExitStack) -> list[Tensor]:
    def load() -> Array:
        mapped: Array = np.load(path, mmap_mode="r", allow_pickle=False)
        return mapped.view(np.ndarray)

    with open(path, "rb") as file:
        name = os.path.splitext(os.path.basename(path))[0]
        return [_array(name, file, os.path.getsize(path), load)]


def _npz(path: str, stack: contextlib.ExitStack) -> list[Tensor]:
    archive = stack.enter_context(zipfile.ZipFile(path))

    def member(info: zipfile.ZipInfo) -> Tensor:
        def load() -> Array:
            with archive.open(info) as file:
                return np.lib.format.read_array(file, allow_pickle=False)

        with reading(path, info.filename), archive.open(info) as file:
            return _array(info.filename.removesuffix(".npy"), file, info.file_size, load)

    members = [info for info in archive.infolist() if info.filename.endswith(".npy")]
    if not members:
        raise MxError(f"{spell(path)}: no numpy array in this archive")
    return [member(info) for info in members]


def _array(name: str, file: IO[bytes], size: int, load: Callable[[], Array]) -> Tensor:
    """Return the tensor that a .npy header at the start of a file of `size` bytes describes."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    elif version in ((2, 0), (3, 0)):
        # They differ in the encoding of field names only, and arrays with fields are skipped.
        shape, _, dtype = np.lib.format.read_array_header_2_0(file)
    else:
        raise ValueError(f"version {version[0]}.{version[1]} of the format is not known")
    # Python's integers hold the size of any shape; numpy's would overflow.
    needed, left = math.prod(shape) * dtype.itemsize, size - file.tell()
    if min(shape, default=0) < 0:
        raise ValueError(f"there is a negative extent in its shape {shape}")
    if needed > left and not dtype.hasobject:
        raise ValueError(f"shape {shape} of {dtype} needs {needed} bytes, but only {left} follow")
    # numpy writes bfloat16, which it does not know, as two bytes without a meaning.
    if dtype == np.dtype("V2"):
        return Tensor(name, shape, "bf16", lambda: load().view(_BF16), "2-byte values without a type, taken as bf16")
    return Tensor(name, shape, _FLOATS.get(dtype.newbyteorder("="), spell(str(dtype))), load)


def _safetensors(path: str, stack: contextlib.ExitStack) -> list[Tensor]:
    library = extra("safetensors", "safetensors", "reading .safetensors files")
    file = stack.enter_context(library.safe_open(path, framework="numpy"))

    def tensor(name: str) -> Tensor:
        header = file.get_slice(name)
        dtype = str(header.get_dtype()).lower()
        return Tensor(name, tuple(header.get_shape()), dtype, lambda: file.get_tensor(name))

    return [tensor(name) for name in sorted(file.keys(), key=_natural)]


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a sorting key by which layer 2 comes before layer 10: numbers by their length, then by their digits."""
    parts = [part.lstrip("0") if part.isdecimal() else part for part in re.split(r"(\d+)", name)]
    return [(len(part) if part.isdecimal() else 0, part) for part in parts]


def extra(module: str, name: str, purpose: str) -> Any:
    """Import a package that an extra of this one installs.

    Raises:
        MxError: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise MxError(f"{purpose} needs {package}, which is not installed: pip install 'mx-dialect[{name}]'") from None


def spell(name: str) -> str:
    """Return a name from outside as it may be printed: on one line, without what a terminal would obey."""
    return name if name.isprintable() else ascii(name)
