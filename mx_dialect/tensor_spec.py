"""The parameters of an `!mx.tensor` as plain values: its rules and its two spellings.

The custom spelling is what users read and write; the storage spelling is how the bindings parse and print the type.
Both, and the rules that make a type valid, live here only; `types.py` and `asm.py` share them.
"""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from mx_dialect.formats import ELEMENT_FORMATS, SCALE_FORMATS
from mx_dialect.near_miss import expected_one_of

STORAGE = re.compile(r"!mx\.tensor<tensor<([^<>]*)>, (-?\d+) : i64, ([^<>,]+), (-?\d+) : i64>")


@dataclass(frozen=True)
class TensorSpec:
    """A block-scaled tensor type: logical `shape` (None is a dynamic extent), `element` and `scale_type` as MLIR
    spells them, `block_size`, and the blocked `axis` counted from the front."""

    shape: tuple[int | None, ...]
    element: str
    block_size: int
    scale_type: str
    axis: int

    def error(self) -> str | None:
        """Return what makes the type invalid, or None."""
        if not self.shape:
            return "mx tensor must have rank 1 or more"
        if not 0 <= self.axis < len(self.shape):
            return f"axis {self.axis} is out of range for an mx tensor of rank {len(self.shape)}"
        if self.element not in ELEMENT_FORMATS:
            return f"'{self.element}' is not an MX element type; {expected_one_of(self.element, ELEMENT_FORMATS)}"
        if self.scale_type not in SCALE_FORMATS:
            return (
                f"'{self.scale_type}' is not a supported scale type; {expected_one_of(self.scale_type, SCALE_FORMATS)}"
            )
        if self.block_size < 1 or self.block_size & (self.block_size - 1):
            return f"block size must be a power of two >= 1, but is {self.block_size}"
        extent = self.shape[self.axis]
        if extent is not None and extent % self.block_size:
            return f"extent {extent} of blocked axis {self.axis} is not a multiple of block size {self.block_size}"
        return None

    @property
    def scale_shape(self) -> tuple[int | None, ...]:
        """Return the shape of the scale tensor: the blocked extent divided by the block size."""
        return tuple(
            extent // self.block_size if i == self.axis and extent is not None else extent
            for i, extent in enumerate(self.shape)
        )

    def body(self) -> str:
        """Return the custom spelling between the angle brackets."""
        axis = "" if self.axis == len(self.shape) - 1 else f", axis = {self.axis}"
        return (
            f"{spell_shape(self.shape, self.element)}, block_size = {self.block_size}, "
            f"scale_type = {self.scale_type}{axis}"
        )

    def custom(self) -> str:
        return f"!mx.tensor<{self.body()}>"

    def storage(self) -> str:
        """Return the spelling that the bindings parse: the type's parameters as plain attributes."""
        tensor = spell_shape(self.shape, self.element)
        return f"!mx.tensor<tensor<{tensor}>, {self.block_size} : i64, {self.scale_type}, {self.axis} : i64>"


def spell_shape(shape: Sequence[int | None], element: str) -> str:
    """Return `32x?xf32` for ((32, None), "f32")."""
    return "".join(f"{'?' if extent is None else extent}x" for extent in shape) + element


def split_shape(text: str) -> tuple[tuple[int | None, ...], str]:
    """Return shape and element type of `32x?xf32`; whatever follows the last extent is the element type.

    A number of more than 19 digits is no extent.
    """
    extents: list[int | None] = []
    position = 0
    for match in re.finditer(r"\s*(\d{1,19}|\?)\s*x\s*", text):
        if match.start() != position:
            break
        extents.append(None if match[1] == "?" else int(match[1]))
        position = match.end()
    return tuple(extents), text[position:].strip()


def of_match(match: re.Match[str]) -> TensorSpec:
    """Return the parameters of a match of `STORAGE`."""
    shape, element = split_shape(match[1])
    return TensorSpec(shape, element, int(match[2]), match[3], int(match[4]))


@functools.lru_cache(maxsize=1024)
def from_storage(text: str) -> TensorSpec | None:
    """Return the parameters of a type in its storage spelling, as the bindings print it; None if it is malformed."""
    match = STORAGE.fullmatch(text)
    return of_match(match) if match else None
