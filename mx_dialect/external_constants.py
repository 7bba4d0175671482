"""Large constants outside of machine code, which refers to them by symbol: a kernel holds their data once, here.

`mx-externalize-constants` leaves the symbols, `compile` fills the memory and tells the linker where it is, and a kernel
on disk has the memory beside its machine code.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

PREFIX = "mx_constant_"
"""How the symbols begin."""

ALIGNMENT = 64
"""In bytes, of each constant and of the memory of all."""


def _nothing() -> npt.NDArray[np.uint8]:
    return np.empty(0, np.uint8)


@dataclass(frozen=True)
class Constants:
    """One piece of memory, bytes [total], and where in it each constant begins: offsets by symbol."""

    memory: npt.NDArray[np.uint8] = field(default_factory=_nothing)
    offsets: Mapping[str, int] = field(default_factory=lambda: {})

    def addresses(self) -> dict[str, int]:
        """Return where each constant is, as long as this object is kept."""
        first: int = self.memory.ctypes.data
        return {symbol: first + offset for symbol, offset in self.offsets.items()}


def laid_out(sizes: Iterable[tuple[str, int]]) -> Constants:
    """Return memory for constants of these symbols and sizes in bytes, to be filled."""
    offsets: dict[str, int] = {}
    end = 0
    for symbol, size in sizes:
        offsets[symbol] = end
        end += -(-size // ALIGNMENT) * ALIGNMENT
    # numpy promises less.
    memory = np.zeros(end + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return Constants(memory[start : start + end], offsets)


def over(memory: Any, offsets: Any) -> Constants:
    """Return the constants that a buffer of bytes has at these offsets; the buffer is kept, and not copied.

    Raises:
        TypeError, ValueError: the offsets are none of places in it, or it is not aligned.
    """
    places = {str(symbol): int(offset) for symbol, offset in dict(offsets).items()}
    array = np.frombuffer(memory, np.uint8) if len(memory) else _nothing()
    if any(not 0 <= offset < len(array) or offset % ALIGNMENT for offset in places.values()):
        raise ValueError("constants are not in their memory")
    if places and array.ctypes.data % ALIGNMENT:
        raise ValueError("the memory of constants is not aligned")
    return Constants(array, places)
