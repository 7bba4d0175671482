"""What a kernel takes and returns: a function's type, and the checks of the arrays given for it.

Every check that needs no data is made here, in Python, before any compiled code runs.
"""

import numbers
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from mx_dialect.diagnostics import MxError
from mx_dialect.element_dtypes import code_bits
from mx_dialect.mx_array import MxArray, as_array
from mx_dialect.runtime.memref import Array
from mx_dialect.tensor_spec import TensorSpec

Shape = tuple[int | None, ...]


@dataclass(frozen=True)
class Slot:
    """One native argument or result: an array, or a scalar where `shape` is None.

    `type` is spelt as in MLIR; `role` says which part of an mx tensor it is, if of one.
    """

    type: str
    shape: Shape | None
    element: str
    dtype: np.dtype[Any]
    role: str = ""

    @cached_property
    def accepted(self) -> tuple[np.dtype[Any], ...]:
        """Return the dtypes, of native byte order, that an array for this slot may have."""
        if code_bits(self.element):
            return (self.dtype, np.dtype(np.uint8))
        if self.element[0] == "i" and self.dtype.kind == "i":
            # MLIR's integers have no sign of their own.
            return (self.dtype, np.dtype(f"uint{8 * self.dtype.itemsize}"))
        return (self.dtype,)

    @cached_property
    def code_bits(self) -> int | None:
        """Return the width of the codes of a narrow float that do not fill a byte, None for all other elements."""
        bits = code_bits(self.element)
        return None if bits == 8 else bits


@dataclass(frozen=True)
class Value:
    """One argument or result of the function as written. An mx tensor (`spec`) has two slots, anything else one."""

    type: str
    slots: tuple[Slot, ...]
    spec: TensorSpec | None = None


@dataclass(frozen=True)
class Signature:
    """The name, arguments and results of a function."""

    name: str
    arguments: tuple[Value, ...]
    results: tuple[Value, ...]

    @cached_property
    def argument_slots(self) -> tuple[Slot, ...]:
        return tuple(slot for value in self.arguments for slot in value.slots)

    @cached_property
    def result_slots(self) -> tuple[Slot, ...]:
        return tuple(slot for value in self.results for slot in value.slots)

    @cached_property
    def open_pairs(self) -> tuple[tuple[int, int, TensorSpec], ...]:
        """Return each mx tensor of dynamic shape among the arguments: its number, its first slot, and its spec."""
        found: list[tuple[int, int, TensorSpec]] = []
        position = 0
        for number, value in enumerate(self.arguments):
            if value.spec is not None and None in value.spec.shape:
                found.append((number, position, value.spec))
            position += len(value.slots)
        return tuple(found)

    @cached_property
    def places(self) -> tuple[str, ...]:
        """Return what messages call each argument slot: `argument 0 (scale)`."""
        return tuple(
            f"argument {number}" + (f" ({slot.role})" if slot.role else "")
            for number, value in enumerate(self.arguments)
            for slot in value.slots
        )

    def __str__(self) -> str:
        results = [value.type for value in self.results]
        spelled = results[0] if len(results) == 1 else f"({', '.join(results)})"
        return f"({', '.join(value.type for value in self.arguments)}) -> {spelled}"


def flatten(signature: Signature, given: Sequence[Any]) -> list[Any]:
    """Return what a caller gave for each argument slot: an mx tensor comes as an MxArray or as its two arrays.

    Raises:
        MxError: too few or too many arguments, or an MxArray of another format.
    """
    remaining = list(given)
    slots: list[Any] = []
    for number, value in enumerate(signature.arguments):
        if not remaining:
            raise _count_error(signature, len(given))
        first = remaining.pop(0)
        if value.spec is None:
            if isinstance(first, MxArray):
                raise MxError(f"argument {number} must be an array for {value.type}, not an MxArray")
            slots.append(first)
        elif isinstance(first, MxArray):
            _check_format(first, value.spec, number)
            slots += [first.mantissa, first.scale]
        elif not remaining or isinstance(remaining[0], MxArray):
            raise MxError(
                f"argument {number} must be an MxArray for {value.type}, or its mantissa and scale arrays one after the"
                f" other; got one {type(first).__name__}"
            )
        else:
            slots += [first, remaining.pop(0)]
    if remaining:
        raise _count_error(signature, len(given))
    return slots


def _count_error(signature: Signature, count: int) -> MxError:
    pairs = sum(1 for value in signature.arguments if value.spec is not None)
    least = len(signature.arguments)
    expected = f"{least}" if not pairs else f"{least} to {least + pairs}"
    listed = ", ".join(value.type for value in signature.arguments)
    note = "; an !mx.tensor is an MxArray, or its two arrays" if pairs else ""
    return MxError(f"@{signature.name} takes {expected} arguments, ({listed}), but got {count}{note}")


def _check_format(array: MxArray, spec: TensorSpec, number: int) -> None:
    if array.spec == spec:
        return
    for name, found, expected in (
        ("element type", array.element_type, spec.element),
        ("block size", array.block_size, spec.block_size),
        ("scale type", array.scale_type, spec.scale_type),
        ("rank", array.ndim, len(spec.shape)),
        ("blocked axis", array.axis, spec.axis),
    ):
        if found != expected:
            raise MxError(
                f"argument {number} must have {name} {expected} for {spec.custom()}, but {array!r} has {found}"
            )


def known_codes(arguments: Sequence[Any]) -> frozenset[int]:
    """Return the ids of mantissas whose bytes are known to be codes: those of MxArrays, which were checked once.

    Looking at them again would take as long as a product with a vector. Bytes written there since that are no codes
    give numbers that mean nothing, and do no harm.
    """
    return frozenset(id(given.mantissa) for given in arguments if isinstance(given, MxArray))


def check_array(slot: Slot, place: str, given: Any, codes_known: bool = False) -> Array:
    """Return the array given for a slot, its dtype, rank, static extents and, if they are not known, codes checked.

    Raises:
        MxError: naming the argument, what was expected and what was found.
    """
    array = as_array(given, place)
    if array.dtype not in slot.accepted and array.dtype.newbyteorder("=") not in slot.accepted:
        codes = " (or uint8 codes)" if code_bits(slot.element) else ""
        raise MxError(f"{place} must have dtype {slot.dtype}{codes} for {slot.type}, but has {array.dtype}")
    expected = slot.shape or ()
    if array.ndim != len(expected):
        raise MxError(f"{place} must have rank {len(expected)} for {slot.type}, but has shape {array.shape}")
    if array.shape != expected:
        for axis, (found, extent) in enumerate(zip(array.shape, expected, strict=True)):
            if extent is not None and found != extent:
                raise MxError(
                    f"{place} must have extent {extent} along axis {axis} for {slot.type}, but has shape {array.shape}"
                )
    if slot.code_bits is not None and array.size and not codes_known:
        largest = int(array.view(np.uint8).max())
        if largest >> slot.code_bits:
            raise MxError(
                f"{place} holds byte {largest:#04x}, which is no code of {slot.element} ({slot.code_bits} bits)"
            )
    return array


def check_blocks(signature: Signature, arrays: Sequence[Any]) -> None:
    """Check the dynamic extents of each mx tensor: whole blocks, and a scale that goes with its mantissa.

    Raises:
        MxError: naming the argument, what was expected and what was found.
    """
    for number, position, spec in signature.open_pairs:
        shape: tuple[int, ...] = arrays[position].shape
        found: tuple[int, ...] = arrays[position + 1].shape
        blocks, rest = divmod(shape[spec.axis], spec.block_size)
        if rest or found != (*shape[: spec.axis], blocks, *shape[spec.axis + 1 :]):
            raise _block_error(shape, found, signature.arguments[number].type, spec, number)


def _block_error(shape: tuple[int, ...], found: tuple[int, ...], type_: str, spec: TensorSpec, number: int) -> MxError:
    """Return the error for a mantissa and a scale of these shapes that do not make blocks."""
    actual = TensorSpec(shape, spec.element, spec.block_size, spec.scale_type, spec.axis)
    problem = actual.error()
    if problem is not None:
        return MxError(f"argument {number} has shape {shape} for {type_}: {problem}")
    return MxError(
        f"argument {number} (scale) must have shape {actual.scale_shape} beside a mantissa of shape {shape} for"
        f" {type_}, but has {found}"
    )


def check_scalar(slot: Slot, place: str, given: Any) -> Array:
    """Return the number given for a scalar slot as an array of rank 0.

    Raises:
        MxError: no number, an integer out of range, or a fraction for an integer.
    """
    if isinstance(given, np.ndarray) and cast(Array, given).ndim == 0:
        given = cast(Array, given)[()]
    kind = slot.dtype.kind
    if kind == "b":
        if not isinstance(given, bool | np.bool_):
            raise MxError(f"{place} must be a bool for {slot.type}, but is {given!r}")
        return np.array(given, slot.dtype)
    if isinstance(given, np.ndarray | bool | np.bool_):
        raise MxError(f"{place} must be a number for {slot.type}, but is {_shown(given)}")
    if kind in "iu":
        return _integer(slot, place, given)
    # The scalars of ml_dtypes are no numbers.Real; numpy calls their kind "V".
    if not isinstance(given, numbers.Real) and not _is_narrow(given):
        raise MxError(f"{place} must be a number for {slot.type}, but is {_shown(given)}")
    try:
        value = float(cast(Any, given))
    except (TypeError, ValueError, OverflowError) as error:
        raise MxError(f"{place} must be a number for {slot.type}, but is {_shown(given)}: {error}") from None
    with np.errstate(all="ignore"):
        return np.array(value).astype(slot.dtype)


def _integer(slot: Slot, place: str, given: Any) -> Array:
    try:
        value = operator.index(given)
    except TypeError:
        raise MxError(f"{place} must be an integer for {slot.type}, but is {_shown(given)}") from None
    width = 8 * slot.dtype.itemsize
    lowest = 0 if slot.dtype.kind == "u" else -(1 << (width - 1))
    # An integer without signedness may be meant either way.
    highest = (1 << (width - 1)) - 1 if slot.element[0] == "s" or slot.element == "index" else (1 << width) - 1
    if not lowest <= value <= highest:
        raise MxError(f"{place} must be in {lowest}..{highest} for {slot.type}, but is {value}")
    return np.array(value % (1 << width), f"uint{width}").view(slot.dtype)


def _is_narrow(given: Any) -> bool:
    return isinstance(given, np.generic) and cast(Any, given).dtype.kind == "V"


def _shown(given: Any) -> str:
    if isinstance(given, np.ndarray):
        return f"an array of shape {cast(Array, given).shape}"
    return f"{type(given).__name__} {given!r}"


def group(values: Sequence[Value], slots: Sequence[Any]) -> list[Any]:
    """Return what a caller gets for each result: an MxArray for an mx tensor."""
    grouped: list[Any] = []
    position = 0
    for value in values:
        if value.spec is None:
            grouped.append(slots[position])
        else:
            mantissa, scale = slots[position : position + 2]
            grouped.append(MxArray(mantissa, scale, value.spec.block_size, value.spec.axis, value.spec.element))
        position += len(value.slots)
    return grouped
