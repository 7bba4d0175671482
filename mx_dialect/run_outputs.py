"""The results of a function: as files that are there whole or not at all, and as text."""

import contextlib
import io
import os
import tempfile
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from mx_dialect.diagnostics import MxError
from mx_dialect.mx_array import Array, MxArray
from mx_dialect.opt_flags import UsageError
from mx_dialect.report.tensor_files import spell
from mx_dialect.runtime.signature import Signature

_SHOWN = 4


def parts(signature: Signature, results: Sequence[Any]) -> dict[str, Array]:
    """Return the arrays of all results by name: result0, or result0.mantissa and result0.scale of an mx tensor."""
    found: dict[str, Array] = {}
    for number, result in enumerate(results):
        if isinstance(result, MxArray):
            found[f"result{number}.mantissa"] = result.mantissa
            found[f"result{number}.scale"] = result.scale
        else:
            found[f"result{number}"] = np.asarray(result)
    return found


def write(path: str, arrays: dict[str, Array]) -> None:
    """Write arrays to a file, .npy for a single one or .npz, in place of what was there.

    Narrow floats are written as their codes, uint8; bf16, for which the format has no name, as its two bytes.

    Raises:
        MxError: several arrays for .npy.
        UsageError: the file cannot be written; a file that was there is as it was.
    """
    stored = {name: _stored(array) for name, array in arrays.items()}
    data = io.BytesIO()
    if path.endswith(".npz"):
        np.savez(data, allow_pickle=False, **cast(Any, stored))
    elif len(stored) == 1:
        np.save(data, next(iter(stored.values())), allow_pickle=False)
    else:
        raise MxError(f"{spell(path)}: the results are {len(stored)} arrays ({', '.join(stored)}); name a .npz file")
    try:
        _replace(os.path.realpath(path), data.getvalue())
    except OSError as error:
        raise UsageError(f"error: cannot write output file '{spell(path)}': {error.strerror}") from None


def _stored(array: Array) -> Array:
    if is_code(array.dtype):
        return array.view(np.uint8)
    return array.view("V2") if array.dtype.kind == "V" else array


def is_code(dtype: np.dtype[Any]) -> bool:
    """Tell whether a dtype of ml_dtypes holds a code a byte; numpy's kind for them is not always the same."""
    return dtype.itemsize == 1 and dtype.kind in "fV"


def _replace(path: str, data: bytes) -> None:
    """Write a file next to its place, and move it there when it is whole; into a device as it is."""
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as device:
            device.write(data)
        return
    if os.path.exists(path) and not os.access(path, os.W_OK):
        raise PermissionError(13, "Permission denied")
    handle, temporary = tempfile.mkstemp(prefix=".mx-run-", dir=os.path.dirname(path) or ".")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, _mode(path))
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _mode(path: str) -> int:
    """Return the permissions of a file, or those that a new one gets."""
    if os.path.exists(path):
        return os.stat(path).st_mode & 0o7777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def summary(signature: Signature, results: Sequence[Any]) -> list[str]:
    """Return a line for each array of the results: its type, least, greatest and mean value, and the first ones."""
    lines: list[str] = []
    arrays = iter(parts(signature, results).items())
    for value in signature.results:
        for slot in value.slots:
            name, array = next(arrays)
            if slot.shape is None:
                lines.append(f"{name}: {slot.type} = {_spelled(array.reshape(1)[0])}")
            else:
                lines.append(f"{name}: {'x'.join(map(str, array.shape)) or '0-d'} {slot.element}{_statistics(array)}")
    return lines


def _statistics(array: Array) -> str:
    if not array.size:
        return ", empty"
    flat = array.reshape(-1)
    shown = ", ".join(_spelled(x) for x in flat[:_SHOWN]) + (", ..." if flat.size > _SHOWN else "")
    if array.dtype.kind == "b":
        return f", {int(flat.sum())} true, [{shown}]"
    with np.errstate(all="ignore"):
        values = flat.astype(np.float64)
        finite = values[np.isfinite(values)]
        if not finite.size:
            return f", no finite value, [{shown}]"
        text = f", min {finite.min():.6g}, max {finite.max():.6g}, mean {finite.mean():.6g}"
    others = values.size - finite.size
    return f"{text}{f', {others} not finite' if others else ''}, [{shown}]"


def _spelled(value: Any) -> str:
    if value.dtype.kind == "b":
        return "true" if value else "false"
    return str(int(value)) if value.dtype.kind in "iu" else f"{float(value):.6g}"
