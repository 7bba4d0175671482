"""The memory of a call: what a compiled function is given, and where it leaves what it returns.

The packed entry point of a function takes an array of addresses, one of each argument, in this order: of a pointer to
the struct of its results, unless that is one scalar; of each argument, a pointer to a memref or a scalar; of a pointer
to the memref of the status; of the one scalar that it returns. All of this lies in one array of words of 8 bytes. What
is the same in every call is written when a frame is made, so that a call has little left to write.
"""

import ctypes
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mx_dialect.runtime.memref import Array, sizes_and_strides
from mx_dialect.runtime.signature import Slot

# Of a memref: the allocated and the aligned pointer and the offset come before sizes and strides.
_POINTERS = 3


class Frame:
    """Memory for one call at a time of a function with these arguments, which returns these results.

    `address` is what the packed entry point takes. A frame keeps no array alive.
    """

    def __init__(self, arguments: Sequence[Slot], returned: Sequence[Slot], takes_status: bool):
        ranks = [None if slot.shape is None else len(slot.shape) for slot in arguments] + [1] * takes_status
        self._offsets, size = _struct(returned)
        # At most: an address and a pointer for each argument and the results, memrefs, results, and the status.
        count = 2 * (len(ranks) + 1) + sum(_memref_words(rank) for rank in ranks) + -(-size // 8) + 1
        self._words: Any = (ctypes.c_int64 * count)()
        self.address = ctypes.addressof(self._words)
        self._used = len(ranks) + bool(returned)
        self._results = self._reserve(-(-size // 8))
        self._status = self._reserve(1)
        one_scalar = len(returned) == 1 and returned[0].shape is None
        first = 0
        if one_scalar:
            self._words[len(ranks)] = self._address_of(self._results)
        elif returned:
            self._words[0] = self._address_of(self._pointer_to(self._results))
            first = 1
        # For each argument: the word that takes its address, and whether it is a memref and has sizes to fill in.
        self._plan: list[tuple[int, bool, bool]] = []
        for number, rank in enumerate(ranks):
            self._plan.append(
                self._place(first + number, rank, None if number == len(arguments) else arguments[number])
            )
        if takes_status:
            at, *_ = self._plan.pop()
            self._words[at] = self._words[at + 1] = self._address_of(self._status)
            self._words[at + _POINTERS : at + _POINTERS + 2] = [1, 1]

    def _place(self, entry: int, rank: int | None, slot: Slot | None) -> tuple[int, bool, bool]:
        """Lay out an argument whose address is the given entry."""
        if rank is None:
            return entry, False, False
        at = self._reserve(_memref_words(rank))
        self._words[entry] = self._address_of(self._pointer_to(at))
        shape = () if slot is None or slot.shape is None else slot.shape
        static = [extent for extent in shape if extent is not None]
        if len(static) < len(shape):
            return at, True, True
        self._words[at + _POINTERS : at + _POINTERS + 2 * len(static)] = sizes_and_strides(tuple(static))
        return at, True, False

    def _reserve(self, count: int) -> int:
        """Return the first of so many words that nothing else uses."""
        first = self._used
        self._used += count
        return first

    def _address_of(self, word: int) -> int:
        return self.address + 8 * word

    def _pointer_to(self, word: int) -> int:
        """Return a word that has the address of another."""
        pointer = self._reserve(1)
        self._words[pointer] = self._address_of(word)
        return pointer

    def fill(self, arrays: Iterable[Array]) -> None:
        """Write down the arguments: native arrays, of rank 0 for scalars.

        The caller keeps them alive during the call.
        """
        words = self._words
        words[self._status] = 0
        for array, (at, is_memref, is_open) in zip(arrays, self._plan, strict=True):
            words[at] = address = array.ctypes.data
            if is_memref:
                words[at + 1] = address
            if is_open:
                filled = sizes_and_strides(array.shape)
                words[at + _POINTERS : at + _POINTERS + len(filled)] = filled

    def status(self) -> int:
        """Return what the function left as its status, 0 if it has none."""
        return self._words[self._status]

    def memref(self, number: int, rank: int) -> list[int]:
        """Return the words of a memref that the function returned: pointers, offset, sizes, strides."""
        first = self._results + self._offsets[number] // 8
        return self._words[first : first + _memref_words(rank)]

    def scalar(self, number: int, dtype: np.dtype[Any]) -> Any:
        """Return a scalar that the function returned."""
        start = 8 * self._results + self._offsets[number]
        return np.frombuffer(self._words, np.uint8, dtype.itemsize, start).view(dtype)[0]


def _memref_words(rank: int | None) -> int:
    return 0 if rank is None else _POINTERS + 2 * rank


def _struct(returned: Sequence[Slot]) -> tuple[list[int], int]:
    """Return the offset of each result in the struct that the function stores them in, and its size, in bytes."""
    offsets: list[int] = []
    end = 0
    for slot in returned:
        size, alignment = slot.dtype.itemsize, slot.dtype.itemsize
        if slot.shape is not None:
            size, alignment = 8 * _memref_words(len(slot.shape)), 8
        offsets.append(-(-end // alignment) * alignment)
        end = offsets[-1] + size
    return offsets, end
