"""Functions of the tile level in text, run on the CPU, and what they are compared with."""

import functools
import re
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest

import mx_dialect
from mx_dialect.layouts import a5

LOOPS, VECTORS = "mx-lower-to-llvm", "mx-lower-to-llvm-vectorized"
A, B = '#mx.layout<"MX_A_ZZ">', '#mx.layout<"MX_B_NN">'
E4M3, E8M0 = "f8E4M3FN", "f8E8M0FNU"


@functools.cache
def compiled(text, pipeline=LOOPS, passes="mx-tile-to-linalg", entry="f"):
    module = mx_dialect.parse(text)
    mx_dialect.run_pipeline(module, passes)
    return mx_dialect.compile(module, entry, pipeline=pipeline, opt_level=0)


def failing(message):
    return pytest.raises(mx_dialect.MxError, match=re.escape(message))


def function(arguments, body, result):
    """Return a function @f that gives what its body calls %r."""
    return f"func.func @f({arguments}) -> {result} {{\n{body}\nreturn %r : {result}\n}}"


def spelled(shape):
    return "x".join("?" if isinstance(extent, str) else str(extent) for extent in shape)


@dataclass(frozen=True)
class Global:
    """A tensor in global memory: its value, logical shape, element type and layout."""

    name: str
    shape: tuple
    element: str
    layout: str = ""

    @property
    def type(self):
        return f"tensor<{spelled(self.shape)}x{self.element}{', ' if self.layout else ''}{self.layout}>"

    @property
    def argument(self):
        return f"%{self.name}: {self.type}"

    def tile(self, shape, valid=None, space=None):
        """Return the type of a tile of its elements; an extent that is text is an index value."""
        space = space or ("mat" if self.layout else "")
        return f"!mx.tile<{spelled(shape)}x{self.element}{', ' if space else ''}{space}, valid = {spelled(valid or shape)}>"

    def load(self, result, shape, valid=None, offsets=(0, 0)):
        listed = "" if valid is None else str([*valid]).replace("'", "")
        window, offsets = (str([*numbers]).replace("'", "") for numbers in (shape, offsets))
        return f"%{result} = mx.tile_load %{self.name}{offsets} {window} {listed} {{}} : {self.type} -> {self.tile(shape, valid)}"


def codes(rng, shape, low=0, high=256):
    return rng.integers(low, high, shape).astype(np.uint8)


def data(rng, shape):
    """Return codes of f8E4M3FN without NaN."""
    return codes(rng, shape, 0, 0x7F) | (codes(rng, shape, 0, 2) << 7)


def small_integers(rng, shape):
    """Return the codes of integers from -8 to 8."""
    return rng.integers(-8, 9, shape).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)


def scaled(elements, scale_codes, axis):
    """Return what elements are worth, with the scale of each 32 of them along an axis; the last may serve fewer."""
    powers = np.repeat(2.0 ** (scale_codes.astype(np.int64) - 127), 32, axis)
    return elements.view(ml_dtypes.float8_e4m3fn).astype(np.float64) * np.take(
        powers, range(elements.shape[axis]), axis
    )


def assert_product(result, a, b, initial=0.0):
    """Compare a product with float64 sums, within the error bound of a dot product in f32, the first term included."""
    units = (a.shape[1] + 1) * 2.0**-24
    magnitudes = np.abs(a) @ np.abs(b) + np.abs(initial)
    assert result.shape == (a.shape[0], b.shape[1])
    assert (np.abs(result - (a @ b + initial)) <= units / (1 - units) * magnitudes).all()


@dataclass(frozen=True)
class Matmul:
    """A matmul of tiles, of which `valid` (M, N, K) takes part, the rest being garbage; `dynamic`: given at run time."""

    m: int
    n: int
    k: int
    valid: tuple
    kind: str = ""
    dynamic: bool = False

    @property
    def groups(self):
        return -(-self.valid[2] // 32)

    def program(self):
        m, n, k, groups = self.m, self.n, self.k, self.k // 32
        vm, vn, vk, vg = ("%m", "%n", "%k", "%g") if self.dynamic else (*self.valid, self.groups)
        rows, valid_rows = (1, 1) if self.kind == "_bias" else (m, vm)
        sides = [
            (Global("a", (m, k), E4M3), (vm, vk)),
            (Global("s", (m, groups), E8M0, A), (vm, vg)),
            (Global("b", (k, n), E4M3), (vk, vn)),
            (Global("t", (groups, n), E8M0, B), (vg, vn)),
        ]
        third = (Global("c", (rows, n), "f32"), (valid_rows, vn))
        out = Global("out", (m, n), "f32")
        ordered = {"": sides, "_bias": [*sides, third], "_acc": [third, *sides]}[self.kind]
        values = ", ".join(f"%t{side.name}" for side, _ in ordered)
        types = ", ".join(side.tile(side.shape, valid) for side, valid in ordered)
        product = out.tile((m, n), (vm, vn))
        lines = [side.load(f"t{side.name}", side.shape, valid) for side, valid in ordered]
        lines += [
            f"%p = mx.matmul_mx{self.kind} {values} : {types} -> {product}",
            f"%r = mx.tile_store %p, %out[0, 0] : {product}, {out.type} -> {out.type}",
        ]
        arguments = [side.argument for side, _ in [*sides, *([third] if self.kind else [])]] + [out.argument]
        arguments += [f"{extent}: index" for extent in (vm, vn, vk, vg) if self.dynamic]
        return function(", ".join(arguments), "\n".join(lines), out.type)

    def operands(self, rng, elements=data):
        """Return the arrays that are multiplied, [M, K], [M, G], [K, N], [G, N] and what is added."""
        vm, vn, vk = self.valid
        rows = 1 if self.kind == "_bias" else vm
        third = rng.integers(-9, 9, (rows, vn)).astype(np.float32) if self.kind else np.zeros((1, vn), np.float32)
        low, high = (127, 128) if elements is small_integers else (110, 140)
        return (
            elements(rng, (vm, vk)),
            codes(rng, (vm, self.groups), low, high),
            elements(rng, (vk, vn)),
            codes(rng, (self.groups, vn), low, high),
            third,
        )

    def run(self, operands, pipeline):
        """Run the program on operands with garbage around them: NaN data, NaN scales."""
        m, n, k, groups = self.m, self.n, self.k, self.k // 32
        shapes = [(m, k), (m, groups), (k, n), (groups, n), (1 if self.kind == "_bias" else m, n)]
        garbage = [0x7F, 0xFF, 0x7F, 0xFF, np.nan]
        filled = [np.full(shape, fill, part.dtype) for shape, fill, part in zip(shapes, garbage, operands, strict=True)]
        for whole, part in zip(filled, operands, strict=True):
            whole[: part.shape[0], : part.shape[1]] = part
        filled[1] = a5.pack(filled[1], a5.MX_A_ZZ)
        filled[3] = a5.pack(filled[3], a5.MX_B_NN)
        out = np.full((m, n), 7, np.float32)
        extents = (*self.valid, self.groups) if self.dynamic else ()
        kernel = compiled(self.program(), pipeline)
        result = kernel(*filled[: 5 if self.kind else 4], out, *extents)
        valid = result[: self.valid[0], : self.valid[1]].copy()
        result[: self.valid[0], : self.valid[1]] = 7
        assert (result == 7).all(), "a store beyond the valid part"
        return valid
