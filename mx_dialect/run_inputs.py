"""The arguments of a function, from .npy and .npz files, numbers on the command line, or made up.

Files may come from anywhere: nothing is ever unpickled, and the header of an array is compared with the signature
before its data are read.
"""

import contextlib
import math
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from mx_dialect import reference
from mx_dialect.codes import numpy_dtype, scale_dtype
from mx_dialect.diagnostics import MxError
from mx_dialect.element_dtypes import code_bits
from mx_dialect.formats import ELEMENT_FORMATS
from mx_dialect.mx_array import MxArray
from mx_dialect.report.tensor_files import Array, Tensor, open_tensors, reading, spell
from mx_dialect.run_flags import Flags
from mx_dialect.runtime.signature import Signature, Slot, Value
from mx_dialect.tensor_spec import TensorSpec

# What random scales are around 1 for: codes of f8E8M0FNU.
_MODERATE_SCALES = (120, 135)


@dataclass(frozen=True)
class Source:
    """An array of a file that is open."""

    path: str
    tensor: Tensor

    @property
    def place(self) -> str:
        return f"{spell(self.path)}: {spell(self.tensor.name)}"

    @property
    def is_float(self) -> bool:
        """Tell whether it holds floats of 16 bits or more, not codes."""
        return self.tensor.dtype in ("f32", "f16", "bf16")

    def load(self) -> Array:
        """Return the array, with what numpy calls a void of one byte as a code.

        Raises:
            MxError: it is damaged.
        """
        with reading(self.path, self.tensor.name):
            array = np.array(self.tensor.load(), order="C")
        return array.view(np.uint8) if array.dtype == np.dtype("V1") else array


def require_memory(shape: Sequence[int], itemsize: int, place: str) -> None:
    """Refuse an array that cannot be held: the system would end the process, not return an error."""
    needed = math.prod(shape) * itemsize
    if hasattr(os, "sysconf") and needed > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
        raise MxError(f"{place}: {needed} bytes for shape {tuple(shape)} are more than this machine has")


class Files(contextlib.ExitStack):
    """The arrays of the files of a command line: those of .npy files in order, those of .npz files by name."""

    def __init__(self, paths: Sequence[str]):
        super().__init__()
        self.listed: list[Source] = []
        self.named: dict[str, Source] = {}
        for path in paths:
            sources = self.open(path)
            if path.lower().endswith(".npy"):
                self.listed += sources
                continue
            for source in sources:
                if source.tensor.name in self.named:
                    raise MxError(f"{source.place}: another array has the same name")
                self.named[source.tensor.name] = source

    def open(self, path: str) -> list[Source]:
        """Return the arrays of a file, which stays open.

        Raises:
            MxError: it cannot be read, or is none of .npy and .npz.
        """
        if not path.lower().endswith((".npy", ".npz")):
            raise MxError(f"{spell(path)}: expected an array file named .npy or .npz")
        try:
            return [Source(path, tensor) for tensor in self.enter_context(open_tensors(path))]
        except MxError as error:
            # What numpy calls a float8_e5m2 in a file is nothing that it can read.
            if "'<f1'" not in str(error):
                raise
            raise MxError(f"{spell(path)}: numpy cannot read float8_e5m2; save its codes, x.view(np.uint8)") from None


@dataclass
class Inputs:
    """The arguments in the making. `names` has the names of each argument, `say` tells the user something."""

    flags: Flags
    signature: Signature
    names: Sequence[Sequence[str]]
    files: Files
    say: Callable[[str], None]
    _used: set[str] = field(default_factory=lambda: set())

    def arguments(self) -> list[Any]:
        """Return an array, a scalar or an MxArray for each argument.

        Raises:
            MxError: one is missing, given twice, or not what the signature says; something that is given has no
                argument.
        """
        values = self.signature.arguments
        made = [self._given(number, value) for number, value in enumerate(values)]
        waiting = list(reversed(self.files.listed))
        for number, value in enumerate(values):
            if made[number] is None and waiting:
                made[number] = self._next(number, value, waiting)
        if waiting:
            raise MxError(f"{spell(waiting[-1].path)}: there is no argument left for it; {self._takes()}")
        unknown = {*self.flags.named, *self.flags.shapes, *self.files.named} - self._used - self._known()
        if unknown:
            raise MxError(f"there is no argument '{spell(min(unknown))}'; {self._takes()}")
        rng = np.random.default_rng(self.flags.seed)
        for number, value in enumerate(values):
            if made[number] is None:
                made[number] = self._random(number, value, rng)
        return made

    def _takes(self) -> str:
        listed = ", ".join(f"{self.names[i][-1]}: {v.type}" for i, v in enumerate(self.signature.arguments))
        return f"@{self.signature.name} takes ({listed})"

    def _known(self) -> set[str]:
        """Return the names of arguments, whether anything was given under them or not."""
        return {name for names in self.names for name in names}

    def _place(self, number: int) -> str:
        return f"argument {number} ({self.names[number][-1]})"

    def _given(self, number: int, value: Value) -> Any:
        """Return what is given for an argument by name, None if nothing is."""
        found: list[Any] = []
        for name in self.names[number]:
            if name in self.flags.named:
                found.append(self._from_text(number, value, self.flags.named[name]))
            if name in self.files.named:
                found.append(self._single(number, value, self.files.named[name]))
            parts = [self.files.named.get(f"{name}.{role}") for role in ("mantissa", "scale")]
            if value.spec is not None and any(parts):
                self._used.update(f"{name}.{role}" for role in ("mantissa", "scale"))
                if parts[0] is None or parts[1] is None:
                    lacking = "mantissa" if parts[0] is None else "scale"
                    raise MxError(f"{self._place(number)} needs {name}.{lacking} beside its other array")
                found.append(self._pair(number, value, parts[0], parts[1]))
        if len(found) > 1:
            raise MxError(f"{self._place(number)} is given twice")
        return found[0] if found else None

    def _from_text(self, number: int, value: Value, text: str) -> Any:
        if text.lower().endswith(".npy"):
            return self._single(number, value, self.files.open(text)[0])
        if value.spec is not None or value.slots[0].shape is not None:
            raise MxError(f"{self._place(number)} is {value.type}; --arg takes a .npy file for it, not '{spell(text)}'")
        return _scalar(value.slots[0], self._place(number), text)

    def _next(self, number: int, value: Value, waiting: list[Source]) -> Any:
        """Return an argument from the next .npy files, of which an mx tensor of codes takes two."""
        first = waiting.pop()
        if value.spec is None or first.is_float:
            return self._single(number, value, first)
        if not waiting:
            raise MxError(f"{first.place}: codes of {value.type} need the file of their scales after it")
        return self._pair(number, value, first, waiting.pop())

    def _single(self, number: int, value: Value, source: Source) -> Any:
        """Return an argument from one array: floats for an mx tensor are quantized."""
        if value.spec is None:
            return self._load(value.slots[0], source, self._place(number))
        if not source.is_float:
            raise MxError(
                f"{source.place}: {value.type} takes float32, float16 or bfloat16, which is quantized, or codes and"
                f" scales as {self.names[number][-1]}.mantissa and {self.names[number][-1]}.scale; this is"
                f" {source.tensor.dtype}"
            )
        self._require_shape(value.slots[0], source, self._place(number))
        self.say(f"mx-run: note: {source.place}: {source.tensor.dtype} quantized to {value.type}")
        return quantized(source.load(), value.spec)

    def _pair(self, number: int, value: Value, mantissa: Source, scale: Source) -> Any:
        assert value.spec is not None  # Two arrays are taken for mx tensors only.
        elements, scales = (
            self._load(slot, source, f"{self._place(number)} ({slot.role})")
            for slot, source in zip(value.slots, (mantissa, scale), strict=True)
        )
        spec = value.spec
        return MxArray(elements, scales, spec.block_size, spec.axis, spec.element, spec.scale_type)

    def _load(self, slot: Slot, source: Source, place: str) -> Any:
        self._require_shape(slot, source, place)
        array = source.load()
        if array.dtype == np.uint8 and code_bits(slot.element) and not slot.code_bits:
            array = array.view(slot.dtype)
        native = array.dtype.newbyteorder("=")
        if native not in slot.accepted:
            raise MxError(f"{source.place}: {place} is {slot.type}, but the array has dtype {array.dtype}")
        return array.astype(native, copy=False)

    def _require_shape(self, slot: Slot, source: Source, place: str) -> None:
        expected, found = slot.shape or (), source.tensor.shape
        fits = len(expected) == len(found) and all(e is None or e == f for e, f in zip(expected, found, strict=True))
        if not fits:
            raise MxError(f"{source.place}: {place} is {slot.type}, but the array has shape {found}")
        require_memory(found, slot.dtype.itemsize, source.place)

    def _random(self, number: int, value: Value, rng: np.random.Generator) -> Any:
        place = self._place(number)
        if self.flags.seed is None:
            raise MxError(f"{place} is not given; {self._takes()}; --random makes it up")
        slot = value.slots[0]
        shape = self._shape(number, value)
        require_memory(shape, 8, place)
        if value.spec is not None:
            return quantized(rng.standard_normal(shape, np.float32), value.spec)
        if slot.shape is None and slot.dtype.kind in "iu":
            raise MxError(
                f"{place} is {slot.type}, for which no number is made up; use --arg={self.names[number][-1]}=N"
            )
        array = _random_array(slot, shape, rng)
        return array if slot.shape is not None else array[()]

    def _shape(self, number: int, value: Value) -> tuple[int, ...]:
        """Return the shape of a random argument."""
        slot, name = value.slots[0], self.names[number][-1]
        asked = next((self.flags.shapes[n] for n in self.names[number] if n in self.flags.shapes), None)
        expected = slot.shape or ()
        if asked is None:
            if None in expected:
                raise MxError(f"{self._place(number)} is {value.type}; give its extents with --shape={name}:...")
            return cast(tuple[int, ...], expected)
        if len(asked) != len(expected) or any(e not in (None, a) for e, a in zip(expected, asked, strict=False)):
            raise MxError(f"{self._place(number)} is {value.type}, which cannot have shape {asked}")
        return asked


def quantized(array: Array, spec: TensorSpec) -> MxArray:
    """Return floats in the format of an mx tensor type, blocked along its axis."""
    data = reference.quantize(array, spec.element, spec.block_size, spec.axis, scale_type=spec.scale_type)
    return MxArray(data.mantissa, data.scale, spec.block_size, spec.axis, spec.element, spec.scale_type)


def _random_array(slot: Slot, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Return values around 0 in the type of a slot."""
    kind = slot.dtype.kind
    if kind == "b":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if kind in "iu":
        return rng.integers(-8 if kind == "i" else 0, 8, shape).astype(slot.dtype)
    if slot.dtype == scale_dtype("f8E8M0FNU"):
        return rng.integers(*_MODERATE_SCALES, shape).astype(np.uint8).view(slot.dtype)
    normal = rng.standard_normal(shape, np.float32)
    if slot.element in ELEMENT_FORMATS:
        return reference.encode(normal, slot.element).view(numpy_dtype(slot.element))
    return np.asarray(normal.astype(slot.dtype))


def _scalar(slot: Slot, place: str, text: str) -> Any:
    """Return the number that a text spells for a scalar."""
    problem = MxError(f"{place} is {slot.type}, which '{spell(text)}' does not spell")
    if slot.dtype.kind == "b":
        if text not in ("true", "false", "1", "0"):
            raise problem
        return text in ("true", "1")
    if slot.dtype.kind in "iu":
        if not re.fullmatch(r"[-+]?[0-9]{1,20}", text):
            raise problem
        return int(text)
    try:
        return slot.dtype.type(float(text))
    except (ValueError, OverflowError):
        raise problem from None


def argument_names(function: Any, text: str | None) -> list[list[str]]:
    """Return the names of each argument of a function: `argN`, and the one that the text has where the argument is."""
    lines = [] if text is None else text.split("\n")
    names: list[list[str]] = []
    for number, argument in enumerate(function.regions[0].blocks[0].arguments):
        known = [f"arg{number}"]
        place = re.search(r":(\d+):(\d+)\)$", str(argument.location))
        if place is not None and 0 < int(place[1]) <= len(lines):
            rest = lines[int(place[1]) - 1].encode()[int(place[2]) - 1 :].decode("utf-8", "replace")
            spelled = re.match(r"%([A-Za-z_$.][\w$.-]*)", rest)
            if spelled is not None and spelled[1] not in known:
                known.append(spelled[1])
        names.append(known)
    taken = [names[i][1] for i in range(len(names)) if len(names[i]) > 1]
    standard = {f"arg{i}" for i in range(len(names))}
    # %arg1 as the name of the first argument would be two arguments' name.
    return [[n[0], *(x for x in n[1:] if x not in standard and taken.count(x) == 1)] for n in names]
