"""Comparing the results of a kernel: with what `interpreter` computes, within its bounds, or with arrays of a file."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mx_dialect.codes import Bools, Doubles
from mx_dialect.diagnostics import MxError
from mx_dialect.formats import ELEMENT_FORMATS
from mx_dialect.interpreter_values import PRECISIONS, Array, Blocks, Floats, Value
from mx_dialect.mx_array import MxArray
from mx_dialect.report.tensor_files import spell
from mx_dialect.run_flags import Flags
from mx_dialect.run_inputs import Files
from mx_dialect.run_outputs import is_code, parts
from mx_dialect.runtime.signature import Signature, Slot, flatten

_DEFAULT_RTOL = 1e-5


@dataclass(frozen=True)
class Expected:
    """What an array of the results should be: floats within `error` (Inf claims nothing), or the same codes (None)."""

    values: Array
    error: Doubles | None


def of_reference(values: Sequence[Value], flags: Flags) -> list[Expected]:
    """Return what the results should be by the reference, or by the tolerances of the command line around it."""
    expected: list[Expected] = []
    for value in values:
        if isinstance(value, Floats):
            given = flags.rtol is not None or flags.atol is not None
            expected.append(Expected(value.values, _tolerance(value.values, flags, 0.0) if given else value.error))
        elif isinstance(value, Blocks):
            codes = np.zeros(()) if value.exact else np.full((), np.inf)
            expected += [_codes(value.data.mantissa, codes), _codes(value.data.scale, codes)]
        else:
            expected.append(Expected(value, None))
    return expected


def regrouped(written: Signature, compiled: Signature, arguments: Sequence[Any]) -> list[Any] | None:
    """Return arguments of a compiled function as the function takes them that it was made of.

    None if the two do not take and return the same arrays: an mx tensor may come apart, nothing else may change.
    """
    for slots in (
        (written.argument_slots, compiled.argument_slots),
        (written.result_slots, compiled.result_slots),
    ):
        if [_storage(slot) for slot in slots[0]] != [_storage(slot) for slot in slots[1]]:
            return None
    arrays = list(flatten(compiled, arguments))
    grouped: list[Any] = []
    for value in written.arguments:
        given, arrays = arrays[: len(value.slots)], arrays[len(value.slots) :]
        spec = value.spec
        if spec is None:
            grouped.append(given[0])
            continue
        codes = given[0].view(np.uint8) & np.uint8((1 << ELEMENT_FORMATS[spec.element].bits) - 1)
        grouped.append(MxArray(codes, given[1], spec.block_size, spec.axis, spec.element, spec.scale_type))
    return grouped


def _storage(slot: Slot) -> tuple[Any, ...]:
    """Return the shape of a slot and how its entries are stored: a code of less than a byte as i8 or as itself."""
    return slot.shape, "i8" if slot.code_bits else slot.element


def _codes(array: Array, error: Doubles) -> Expected:
    """Return codes that are to be equal, or of which nothing is claimed."""
    return Expected(array, None) if np.isfinite(error) else Expected(array, error)


def of_file(path: str, signature: Signature, results: Sequence[Any], flags: Flags) -> list[Expected]:
    """Return what the arrays of a file, named as `mx-run -o` names them, say that the results should be.

    Raises:
        MxError: an array is missing, or is of another shape or dtype than the result.
    """
    expected: list[Expected] = []
    with Files([]) as files:
        sources = files.open(path)
        named = {source.tensor.name: source for source in sources}
        arrays = parts(signature, results)
        for name, array in arrays.items():
            # The one array of a .npy file has the name of the file.
            source = sources[0] if path.endswith(".npy") and len(arrays) == 1 else named.get(name)
            if source is None:
                raise MxError(f"{spell(path)}: there is no array {name}")
            if source.tensor.shape != array.shape:
                raise MxError(f"{source.place}: {name} has shape {array.shape}, but the array {source.tensor.shape}")
            expected.append(_in_file(source.load(), array, source.place, flags))
    return expected


def _in_file(given: Array, result: Array, place: str, flags: Flags) -> Expected:
    is_float = result.dtype in [precision.dtype for precision in PRECISIONS.values()]
    if is_float != (given.dtype.kind == "f" or given.dtype == PRECISIONS["bf16"].dtype):
        raise MxError(f"{place}: the result has dtype {result.dtype}, but the array {given.dtype}")
    if is_float:
        values = given.astype(np.float64)
        return Expected(values, _tolerance(values, flags, _DEFAULT_RTOL))
    if given.dtype != (np.uint8 if is_code(result.dtype) else result.dtype):
        raise MxError(f"{place}: the result has dtype {result.dtype}, but the array {given.dtype}")
    return Expected(given, None)


def _tolerance(values: Doubles, flags: Flags, rtol: float) -> Doubles:
    with np.errstate(all="ignore"):
        error = (flags.atol or 0.0) + (rtol if flags.rtol is None else flags.rtol) * np.abs(values)
    return np.where(np.isfinite(values), error, 0)


def report(name: str, result: Array, expected: Expected) -> tuple[bool, str]:
    """Return whether an array is as expected, and a line that says how far it is."""
    if not result.size:
        return True, f"{name}: ok, empty"
    if expected.error is None:
        different = int(np.count_nonzero(_bits(result) != _bits(expected.values)))
        if different:
            return False, f"{name}: FAILED, {different} of {result.size} values differ"
        return True, f"{name}: ok, all {result.size} values equal"
    if expected.error.ndim == 0 and result.ndim:
        return False, f"{name}: FAILED, nothing is known of codes that were rounded from rounded values; {_REMEDY}"
    return _report_floats(name, result, expected.values, expected.error)


_REMEDY = "compare with --check=FILE.npz"


def _bits(array: Array) -> Array:
    return array.view(np.uint8) if array.dtype.itemsize == 1 else array


def _report_floats(name: str, result: Array, values: Doubles, error: Doubles) -> tuple[bool, str]:
    with np.errstate(all="ignore"):
        actual = result.astype(np.float64)
        distance = np.where(actual == values, 0, np.abs(actual - values))
    # Two NaNs are the same; a NaN on one side is infinitely far away.
    distance = np.where(np.isnan(distance), np.where(np.isnan(actual) & np.isnan(values), 0, np.inf), distance)
    claimed: Bools = error < np.inf
    unclaimed = int(claimed.size - np.count_nonzero(claimed))
    if unclaimed == claimed.size:
        return False, f"{name}: FAILED, no bound can be derived; give --rtol or --atol, or {_REMEDY}"
    failed = int(np.count_nonzero(claimed & (distance > error)))
    seen = np.where(claimed, distance, -1)
    worst = np.unravel_index(int(np.argmax(np.where(claimed, distance - error, -np.inf))), seen.shape)
    largest = np.unravel_index(int(np.argmax(seen)), seen.shape)
    at = worst if failed else largest
    place = ", ".join(str(int(i)) for i in at)
    text = f"max error {seen[at]:.3g} at [{place}], bound there {error[at]:.3g}"
    if failed:
        text = f"{failed} of {result.size} values outside their bounds; error {seen[at]:.3g} at [{place}], bound there"
        text += f" {error[at]:.3g}: {actual[at]:.9g} instead of {values[at]:.9g}"
    if unclaimed:
        text += f"; {unclaimed} values have no bound and were not compared"
    return not failed, f"{name}: {'FAILED' if failed else 'ok'}, {text}"
