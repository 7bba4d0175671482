"""Give back what compiling a program took: with large constants that is several times what its kernel holds."""

import ctypes
import gc
import sys


def give_back() -> None:
    """Free objects that only refer to each other, IR and the constants of its context with them; return memory."""
    gc.collect()
    # glibc keeps freed blocks of up to 32 MiB for later once it has seen some.
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
