"""The floating-point environment that compiled code runs in: round to nearest, subnormals kept.

Other libraries in a process may have set the processor to flush subnormals to zero (FTZ, DAZ), as code linked with
-ffast-math does when it is loaded. The setting belongs to the thread and would change a kernel's results.
"""

import ctypes
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

# Larger than any C library's fenv_t, and aligned as strictly.
_SIZE = 256


def _libm() -> Any | None:
    """Return the C library's <fenv.h> functions, or None where the default environment cannot be named."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        library = ctypes.CDLL("libm.so.6", use_errno=False)
        for name in ("fegetenv", "fesetenv"):
            getattr(library, name).argtypes = [ctypes.c_void_p]
    except (OSError, AttributeError):
        return None
    return library


_LIBRARY = _libm()
# FE_DFL_ENV of glibc and musl: a pointer that is no address. It keeps subnormals whatever was set before.
_DEFAULT = ctypes.c_void_p(-1)


@contextmanager
def default_float_environment() -> Generator[None, None, None]:
    """Run a block of code of this thread in the C library's default environment, and restore the one before."""
    if _LIBRARY is None:
        yield
        return
    saved = (ctypes.c_longlong * (_SIZE // 8))()
    _LIBRARY.fegetenv(saved)
    _LIBRARY.fesetenv(_DEFAULT)
    try:
        yield
    finally:
        _LIBRARY.fesetenv(saved)
