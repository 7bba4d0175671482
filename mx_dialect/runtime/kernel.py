"""`Kernel`: a compiled function, called with numpy arrays."""

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from mx_dialect.diagnostics import Diagnostic, MxError
from mx_dialect.runtime.call_checks import Check
from mx_dialect.runtime.float_environment import default_float_environment
from mx_dialect.runtime.frame import Frame
from mx_dialect.runtime.memref import Array, copy, is_native, take
from mx_dialect.runtime.signature import (
    Signature,
    check_array,
    check_blocks,
    check_scalar,
    flatten,
    group,
    known_codes,
)


@dataclass(frozen=True)
class Interface:
    """How a compiled function is called.

    `aliases` maps each result slot that the function does not return, because an argument's buffer holds it, to that
    argument slot. A function with `asserts` takes a status as its last argument: 0, or after a failure the number of
    the assert, counted from 1.
    """

    signature: Signature
    checks: tuple[Check, ...]
    aliases: Mapping[int, int]
    asserts: tuple[Diagnostic, ...]
    takes_status: bool


class Kernel:
    """A function compiled for this machine.

    Called with one array (or scalar) for each argument; an `!mx.tensor` takes an `MxArray`, or its mantissa and scale
    arrays one after the other. It returns what the function returns, several results as a tuple, an `!mx.tensor` as an
    `MxArray`. Arrays must have the dtype, rank and extents of the signature, narrow floats may be uint8 codes; arrays
    that are not in C order, aligned and of native byte order are copied. Everything is checked before compiled code
    runs.

    The caller's arrays are never changed, unless `in_place=True`: a result that the function computes into an argument
    (an accumulator) is then computed in the array given for it, and that array is returned.

    A kernel may be called from several threads at once. Its results stay valid when it is gone.
    """

    def __init__(self, owner: Any, address: int, interface: Interface):
        """Take over what owns machine code, and the packed entry point of a function in it that has a C interface."""
        self._owner = owner
        self._function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)
        self._interface = interface
        signature = interface.signature
        arguments = signature.argument_slots
        self._updated = {argument for argument in interface.aliases.values() if arguments[argument].shape is not None}
        self._returned = [slot for number, slot in enumerate(signature.result_slots) if number not in interface.aliases]
        # Frames that no call uses. Taking one out and putting it back are atomic.
        self._frames: list[Frame] = []

    @property
    def interface(self) -> Interface:
        return self._interface

    @property
    def signature(self) -> str:
        """Return the type of the function as it was written."""
        return str(self._interface.signature)

    def __repr__(self) -> str:
        return f"<mx_dialect.Kernel @{self._interface.signature.name}{self._interface.signature}>"

    def __reduce__(self) -> NoReturn:
        raise MxError("a Kernel is machine code in this process and cannot be pickled; compile it where it is used")

    def __call__(self, *arguments: Any, in_place: bool = False) -> Any:
        """Run the function.

        Raises:
            MxError: an argument is not what the signature says, or arguments do not go together; with `in_place`, an
                array cannot be updated where it is; an assertion of the program failed.
        """
        signature = self._interface.signature
        given = flatten(signature, arguments)
        known = known_codes(arguments)
        checked = [
            check_scalar(slot, place, value)
            if slot.shape is None
            else check_array(slot, place, value, codes_known=id(value) in known)
            for slot, place, value in zip(signature.argument_slots, signature.places, given, strict=True)
        ]
        check_blocks(signature, checked)
        for check in self._interface.checks:
            check.require(signature, checked)
        if in_place:
            self._require_updatable(given, checked)
        ready = [
            value if is_native(value) and (in_place or number not in self._updated) else _copy(value)
            for number, value in enumerate(checked)
        ]
        if in_place:
            self._require_apart(ready)
        results = group(signature.results, self._run(ready, given if in_place else None))
        if not results:
            return None
        return results[0] if len(results) == 1 else tuple(results)

    def _require_updatable(self, given: Sequence[Any], arrays: Sequence[Array]) -> None:
        """Refuse arrays that compiled code cannot write to where they are."""
        if not self._updated:
            raise MxError(
                f"@{self._interface.signature.name} computes no result into an argument, so there is nothing to do in"
                " place"
            )
        for number in sorted(self._updated):
            array, place = arrays[number], self._interface.signature.places[number]
            if not isinstance(given[number], np.ndarray):
                raise MxError(f"{place} is updated in place, which takes an array, not {type(given[number]).__name__}")
            if not array.flags.writeable:
                raise MxError(f"{place} is updated in place, but the array is read-only")
            if not is_native(array):
                raise MxError(
                    f"{place} is updated in place, which takes a C-contiguous, aligned array of native byte order; this"
                    f" one has shape {array.shape}, strides {array.strides} and dtype {array.dtype.str}"
                )

    def _require_apart(self, arrays: Sequence[Array]) -> None:
        """Refuse arrays to be updated that share memory with another argument."""
        places = self._interface.signature.places
        for number in sorted(self._updated):
            for other, array in enumerate(arrays):
                # Contiguous arrays share memory if and only if their bounds overlap.
                if other != number and np.may_share_memory(arrays[number], array):
                    raise MxError(f"{places[number]} is updated in place, but shares memory with {places[other]}")

    def _run(self, arguments: Sequence[Array], updated: Sequence[Any] | None) -> list[Any]:
        """Call the compiled function and return the array or scalar of each result slot.

        `updated` has what the caller gave for each argument slot, where that was updated in place.
        """
        try:
            frame = self._frames.pop()
        except IndexError:
            slots = self._interface.signature.argument_slots
            frame = Frame(slots, self._returned, self._interface.takes_status)
        try:
            frame.fill(arguments)
            with default_float_environment():
                self._function(frame.address)
            if status := frame.status():
                raise MxError.of(self._interface.asserts[status - 1])
            fresh = self._take(frame)
        finally:
            self._frames.append(frame)
        return self._collect(fresh, arguments, updated) if self._interface.aliases else fresh

    def _collect(self, fresh: list[Any], arguments: Sequence[Array], updated: Sequence[Any] | None) -> list[Any]:
        """Return the result of each slot: the next fresh one, or one of the arguments."""
        remaining = iter(fresh)
        seen: set[int] = set()
        collected: list[Any] = []
        for number, slot in enumerate(self._interface.signature.result_slots):
            argument = self._interface.aliases.get(number)
            if argument is None:
                collected.append(next(remaining))
            elif slot.shape is None:
                collected.append(arguments[argument].view(slot.dtype)[()])
            elif updated is not None:
                collected.append(updated[argument])
            else:
                array = arguments[argument].view(slot.dtype)
                collected.append(array.copy() if argument in seen else array)
                seen.add(argument)
        return collected

    def _take(self, frame: Frame) -> list[Any]:
        """Return the arrays and scalars that the function returned. Arrays free their buffers."""
        taken: list[Any] = []
        owned: set[int] = set()
        for number, slot in enumerate(self._returned):
            if slot.shape is None:
                taken.append(frame.scalar(number, slot.dtype))
                continue
            rank = len(slot.shape)
            words = frame.memref(number, rank)
            # One buffer returned twice is two results that the caller may change apart.
            taken.append((copy if words[0] in owned else take)(words, rank, slot.dtype))
            owned.add(words[0])
        return taken


def _copy(array: Array) -> Array:
    """Return a native copy of an array."""
    return np.array(array, array.dtype.newbyteorder("="), order="C", copy=True)
