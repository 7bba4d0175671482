"""The matrix products that `benchmarks.matmul` times: shapes, formats, their operands and their programs in MLIR."""

import re
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

import mx_dialect
from mx_dialect.codes import decode
from mx_dialect.formats import ELEMENT_FORMATS
from mx_dialect.layouts import packed
from mx_dialect.mx_array import MxArray

Array: TypeAlias = npt.NDArray[Any]

BLOCK = 32

_PACKED = "packed-"
_MEMORY = "@memory"

PACKABLE = tuple(name for name, fmt in ELEMENT_FORMATS.items() if fmt.bits < 8)


@dataclass(frozen=True)
class Shape:
    """C[m, n] += A[m, k] B[k, n]. With `memory`, A is one of many copies in turn, which no cache holds together."""

    m: int
    k: int
    n: int
    memory: bool = False

    def __str__(self) -> str:
        return f"{self.m}x{self.k}x{self.n}{_MEMORY if self.memory else ''}"

    @property
    def operations(self) -> int:
        """Return the multiplications and additions."""
        return 2 * self.m * self.k * self.n


def parse_shape(text: str) -> Shape:
    """Return the shape spelt MxKxN or MxKxN@memory.

    Raises:
        ValueError: it is spelt otherwise, or k is not a positive multiple of a block.
    """
    match = re.fullmatch(rf"(\d+)x(\d+)x(\d+)({_MEMORY})?", text)
    if not match:
        raise ValueError(f"'{text}' is no shape: MxKxN, or MxKxN{_MEMORY}")
    m, k, n = (int(match[i]) for i in (1, 2, 3))
    if min(m, k, n) < 1 or k % BLOCK:
        raise ValueError(f"'{text}': extents are positive, and K a multiple of {BLOCK}")
    return Shape(m, k, n, bool(match[4]))


@dataclass(frozen=True)
class Formats:
    """The element formats of A and of B, None for a B in f32; `packed` for an A stored without gaps."""

    a: str
    b: str | None = None
    packed: bool = False

    def __str__(self) -> str:
        return f"{_PACKED if self.packed else ''}{self.a}{f':{self.b}' if self.b else ''}"


def parse_formats(text: str) -> Formats:
    """Return the formats spelt A, packed-A, A:B or packed-A:B.

    Raises:
        ValueError: one is unknown, or has nothing to pack.
    """
    a, _, b = text.removeprefix(_PACKED).partition(":")
    for name in (a, *([b] if b else [])):
        if name not in ELEMENT_FORMATS:
            raise ValueError(f"'{name}' is no element format; they are {', '.join(ELEMENT_FORMATS)}")
    if text.startswith(_PACKED) and a not in PACKABLE:
        raise ValueError(f"codes of {a} fill their bytes; {', '.join(PACKABLE)} can be packed")
    return Formats(a, b or None, text.startswith(_PACKED))


def _square(extent: int) -> Shape:
    return Shape(extent, extent, extent)


SHAPES = (
    Shape(32, 64, 64),
    *(_square(extent) for extent in (512, 1024, 2048)),
    Shape(1000, 1024, 1000),
    *(Shape(4096, 4096, n) for n in (1, 2, 4, 8, 16, 32, 128)),
    Shape(11008, 4096, 1),
    Shape(4096, 14336, 1),
    *(Shape(m, k, 1, memory=True) for m, k in ((4096, 4096), (11008, 4096), (4096, 14336))),
)

FORMATS = (
    *(Formats(name) for name in ("f8E4M3FN", "f8E5M2", "f6E3M2FN", "f6E2M3FN", "f4E2M1FN")),
    Formats("f4E2M1FN", packed=True),
    Formats("i8"),
    Formats("i8", "i8"),
    Formats("f4E2M1FN", "i8"),
    Formats("f4E2M1FN", "i8", packed=True),
    Formats("f4E2M1FN", "f4E2M1FN"),
)


@dataclass(frozen=True)
class Operands:
    """A and B quantized as the formats say, both dequantized, and f32 B as it was before."""

    a: MxArray
    b: MxArray | None
    a_values: Array
    b_values: Array
    b_given: Array


def operands(shape: Shape, formats: Formats) -> Operands:
    """Return random operands, normally distributed before they are quantized."""
    random = np.random.default_rng(0)
    a = mx_dialect.quantize(random.standard_normal((shape.m, shape.k), dtype=np.float32), formats.a, BLOCK)
    given = random.standard_normal((shape.k, shape.n), dtype=np.float32)
    b = None if formats.b is None else mx_dialect.quantize(given, formats.b, BLOCK, axis=0)
    return Operands(a, b, mx_dialect.dequantize(a), given if b is None else mx_dialect.dequantize(b), given)


def arguments(formats: Formats, a: MxArray) -> tuple[Any, ...]:
    """Return what a kernel takes for A: the array, or packed codes and scales."""
    if not formats.packed:
        return (a,)
    codes = packed.pack(a.mantissa.view(np.uint8), ELEMENT_FORMATS[formats.a].bits)
    return (codes.view(np.int8), a.scale)


def copies(count: int, arrays: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Return so many copies of arrays, each in memory of its own; the first is the given one."""
    return [arrays, *(tuple(_copy(array) for array in arrays) for _ in range(count - 1))]


def copy_count(bytes_: int, memory_bytes: int) -> int:
    """Return how many copies of so many bytes exceed `memory_bytes`; one if that is 0."""
    return max(2, -(-memory_bytes // bytes_)) if memory_bytes else 1


def _copy(array: Any) -> Any:
    if isinstance(array, MxArray):
        return MxArray(array.mantissa.copy(), array.scale.copy(), array.block_size, array.axis)
    return array.copy()


def weight_bytes(formats: Formats, shape: Shape) -> int:
    """Return the bytes of A as a kernel reads it: codes and scales."""
    fmt = ELEMENT_FORMATS[formats.a]
    count = shape.m * shape.k
    return count * (fmt.bits if formats.packed else 8) // 8 + count // BLOCK


def program(shape: Shape, formats: Formats, *, quantizes_b: bool = False) -> str:
    """Return the program of a product in MLIR; `quantizes_b` for one that takes B in f32 and quantizes it itself."""
    m, k, n = shape.m, shape.k, shape.n

    def spelled(extents: str, element: str | None, axis: str = "") -> str:
        return f"{extents}x{element}, block_size = {BLOCK}, scale_type = f8E8M0FNU{axis}"

    a, c = f"!mx.tensor<{spelled(f'{m}x{k}', formats.a)}>", f"tensor<{m}x{n}xf32>"
    plain_b = f"tensor<{k}x{n}xf32>"
    b = plain_b if formats.b is None else f"!mx.tensor<{spelled(f'{k}x{n}', formats.b, ', axis = 0')}>"
    given_a, body = f"%a: {a}", ""
    if formats.packed:
        fmt = ELEMENT_FORMATS[formats.a]
        stored, scales = f"tensor<{m}x{k * fmt.bits // 8}xi8>", f"tensor<{m}x{k // BLOCK}xf8E8M0FNU>"
        codes = f"tensor<{m}x{k}xi8>"
        given_a = f"%stored: {stored}, %scales: {scales}"
        body += f"  %codes = mx.unpack %stored {{element = {formats.a}}} : {stored} -> {codes}\n"
        body += f"  %a = mx.compose %codes, %scales : {codes}, {scales} -> {_short(a)}\n"
    given_b = f"%b: {b}"
    if quantizes_b:
        given_b = f"%given: {plain_b}"
        body += f"  %b = mx.quantize_block %given : {plain_b} -> {_short(b)}\n"
    body += f"  %0 = mx.block_matmul %a, %b, %c : {_short(a)}, {_short(b)}, {c} -> {c}\n"
    return f"func.func @matmul({given_a}, {given_b}, %c: {c}) -> {c} {{\n{body}  return %0 : {c}\n}}\n"


def _short(type_: str) -> str:
    return type_.removeprefix("!mx.tensor")


def values_of_codes(element_type: str) -> Array:
    """Return the value of each byte as a code, f32; bytes that are no codes repeat those that are."""
    bits = ELEMENT_FORMATS[element_type].bits
    return decode((np.arange(256) % (1 << bits)).astype(np.uint8), element_type).astype(np.float32)
