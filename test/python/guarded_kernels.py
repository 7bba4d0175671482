"""Kernels on arrays that lie against pages that nothing may touch: one access beyond an array ends the process."""

import ctypes
import mmap
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np


def assert_stays_inside(kernel: Any, arrays: list[Any], what: Any) -> None:
    """Call a kernel on arrays after a page, and before one, that ends the process if it is touched."""
    plain = [np.ascontiguousarray(x).view(np.uint8) if x.dtype.itemsize == 1 else x for x in arrays]
    expected = kernel(*plain)
    for at_end in (True, False):
        given = [_guarded(x, at_end) for x in plain]
        assert np.array_equal(kernel(*given, in_place=True), expected, equal_nan=True), what


def _guarded(array: Any, at_end: bool) -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    page = mmap.PAGESIZE
    body = -(-max(array.nbytes, 1) // page) * page
    memory = mmap.mmap(-1, body + 2 * page)
    view = np.frombuffer(memory, np.uint8)
    for start in (0, page + body):
        assert libc.mprotect(view.ctypes.data + start, page, 0) == 0
    first = page + (body - array.nbytes if at_end else 0)
    placed = view[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    placed[...] = array
    return placed


def run_in_a_process(code: str) -> None:
    """Run a program that may import the modules of the tests, and fail if it does not reach its end."""
    start = f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\n"
    command = [sys.executable, "-c", f'{start}{code}\nprint("inside")']
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "inside"
