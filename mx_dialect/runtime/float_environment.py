"""The floating-point environment that compiled code runs in: round to nearest, subnormals kept.

Other libraries in a process may have set the processor to flush subnormals to zero (FTZ, DAZ), as code linked with
-ffast-math does when it is loaded. The setting belongs to the thread and would change a kernel's results.
"""

import ctypes
import sys
from typing import Any

# Larger than any C library's fenv_t, and aligned as strictly.
_Saved = ctypes.c_longlong * (256 // 8)


def _libm() -> Any | None:
    """Return the C library's <fenv.h> functions, or None where the default environment cannot be named."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        # They take no time, and so keep the interpreter's lock.
        library = ctypes.PyDLL("libm.so.6", use_errno=False)
        for name in ("fegetenv", "fesetenv"):
            getattr(library, name).argtypes = [ctypes.c_void_p]
    except (OSError, AttributeError):
        return None
    return library


_LIBRARY = _libm()
# FE_DFL_ENV of glibc and musl: a pointer that is no address. It keeps subnormals whatever was set before.
_DEFAULT = ctypes.c_void_p(-1)


class default_float_environment:
    """Run a block of code of this thread in the C library's default environment, and restore the one before."""

    __slots__ = ("_saved",)

    def __enter__(self) -> None:
        if _LIBRARY is not None:
            self._saved: Any = _Saved()
            _LIBRARY.fegetenv(self._saved)
            _LIBRARY.fesetenv(_DEFAULT)

    def __exit__(self, *error: object) -> None:
        if _LIBRARY is not None:
            _LIBRARY.fesetenv(self._saved)
