"""The parameters of an `!mx.tile` as plain values: its rules and its two spellings, as `tensor_spec` for tensors.

    !mx.tile<16x64xf8E4M3FN, left, valid = 8x?>

is stored as `!mx.tile<tensor<16x64xf8E4M3FN>, "left", [8, -9223372036854775808]>`.
"""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from mx_dialect.tensor_spec import spell_shape, split_shape

MEMORY_SPACES = ("vec", "mat", "left", "right", "acc", "bias", "left_scale", "right_scale")
"""The engine's memories: vector unit, L1, the four inputs of the matrix unit with their scales, its accumulator."""
SCALE_SPACES = ("left_scale", "right_scale")
UNDECIDED = "undecided"

TILE_ELEMENTS = ("f8E4M3FN", "f8E5M2", "f4E2M1FN", "f8E8M0FNU", "i8", "ui8", "i32", "f16", "bf16", "f32")

_DYNAMIC = -(2**63)
STORAGE = re.compile(r'!mx\.tile<tensor<([^<>]*)>, "(\w*)", \[(|-?\d{1,19}(?:, -?\d{1,19})*)\]>', re.ASCII)


@dataclass(frozen=True)
class TileSpec:
    """A tile type: logical `shape`, `element` as MLIR spells it, memory `space`, and `valid` shape; None is dynamic."""

    shape: tuple[int | None, ...]
    element: str
    space: str
    valid: tuple[int | None, ...]

    def error(self) -> str | None:
        """Return what makes the type invalid, or None."""
        if len(self.shape) != 2:
            return f"a tile must have rank 2, but has {len(self.shape)}"
        if self.element not in TILE_ELEMENTS:
            return f"'{self.element}' is not an element type of tiles; expected one of {', '.join(TILE_ELEMENTS)}"
        if self.space not in (*MEMORY_SPACES, UNDECIDED):
            return f"'{self.space}' is not a memory space; expected one of {', '.join(MEMORY_SPACES)}"
        if len(self.valid) != len(self.shape):
            return f"a valid shape has the rank of its tile, 2, but has {len(self.valid)}"
        for axis, (extent, valid) in enumerate(zip(self.shape, self.valid, strict=True)):
            if valid is not None and (valid < 0 or (extent is not None and valid > extent)):
                bound = "be 0 or more" if extent is None or valid < 0 else f"be at most the extent {extent}"
                return f"valid extent {valid} of axis {axis} must {bound}"
        return None

    def body(self) -> str:
        """Return the custom spelling between the angle brackets."""
        parts = [spell_shape(self.shape, self.element)]
        if self.space != UNDECIDED:
            parts.append(self.space)
        if self.valid != self.shape:
            parts.append(f"valid = {spell_extents(self.valid)}")
        return ", ".join(parts)

    def custom(self) -> str:
        return f"!mx.tile<{self.body()}>"

    def storage(self) -> str:
        """Return the spelling that the bindings parse: the type's parameters as plain attributes."""
        valid = ", ".join(str(_DYNAMIC if extent is None else extent) for extent in self.valid)
        return f'!mx.tile<tensor<{spell_shape(self.shape, self.element)}>, "{self.space}", [{valid}]>'


def spell_extents(extents: Sequence[int | None]) -> str:
    """Return `16x?` for (16, None)."""
    return "x".join("?" if extent is None else str(extent) for extent in extents)


@functools.lru_cache(maxsize=4096)
def from_storage(text: str) -> TileSpec | None:
    """Return the parameters of a type in its storage spelling, as the bindings print it; None if it is malformed."""
    match = STORAGE.fullmatch(text)
    return of_match(match) if match else None


def of_match(match: re.Match[str]) -> TileSpec:
    """Return the parameters of a match of `STORAGE`."""
    shape, element = split_shape(match[1])
    valid = tuple(None if int(n) == _DYNAMIC else int(n) for n in re.findall(r"-?\d+", match[3]))
    return TileSpec(shape, element, match[2], valid)
