"""Matmuls of two MX values that the tests of engines share: their text, inputs, and sums in one order."""

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from mx_dialect.reference import Quantized
from mx_dialect.tensor_spec import TensorSpec

DTYPES = {
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f4E2M1FN": ml_dtypes.float4_e2m1fn,
}
# The first code, without its sign, that is no finite number.
FIRST_SPECIAL = {"f8E4M3FN": 0x7F, "f8E5M2": 0x7C, "f4E2M1FN": 0x10}


@dataclass(frozen=True)
class Case:
    """acc + lhs * rhs: extents, formats, tiles, batch axes of each side and of the accumulator."""

    m: int
    n: int
    k: int
    lhs: str = "f8E4M3FN"
    rhs: str = "f8E4M3FN"
    transpose_rhs: bool = False
    zero: bool = True
    tile: tuple = (32, 64, 128)
    lhs_batch: tuple = ()
    rhs_batch: tuple = ()
    acc_batch: tuple = ()

    @property
    def specs(self):
        rhs = (self.n, self.k) if self.transpose_rhs else (self.k, self.n)
        rhs_axis = len(self.rhs_batch) + (1 if self.transpose_rhs else 0)
        return (
            TensorSpec((*self.lhs_batch, self.m, self.k), self.lhs, 32, "f8E8M0FNU", len(self.lhs_batch) + 1),
            TensorSpec((*self.rhs_batch, *rhs), self.rhs, 32, "f8E8M0FNU", rhs_axis),
        )

    @property
    def acc_shape(self):
        return (*self.acc_batch, self.m, self.n)

    @property
    def text(self):
        a, b = (spec.custom() for spec in self.specs)
        c = f"tensor<{'x'.join(map(str, self.acc_shape))}xf32>"
        acc = f"%acc = arith.constant dense<0.0> : {c}" if self.zero else ""
        attributes = " {transpose_rhs}" if self.transpose_rhs else ""
        return f"""
            func.func @f(%a: {a}, %b: {b}{"" if self.zero else f", %acc: {c}"}) -> {c} {{
              {acc}
              %0 = mx.block_matmul %a, %b, %acc{attributes} : {a}, {b}, {c} -> {c}
              return %0 : {c}
            }}"""

    @property
    def tile_pass(self):
        m, n, k = self.tile
        return f"mx-tile-matmul{{m={m} n={n} k={k}}}"

    def inputs(self, seed=0, special=False):
        """Return both sides, elements of any code (finite unless `special`) and moderate scales, and the accumulator."""
        rng = np.random.default_rng(seed)
        sides = [self._side(rng, spec, special) for spec in self.specs]
        acc = rng.standard_normal(self.acc_shape).astype(np.float32) * 1000
        return sides if self.zero else [*sides, acc]

    def _side(self, rng, spec, special):
        codes = rng.integers(0, 16 if spec.element == "f4E2M1FN" else 256, spec.shape, dtype=np.uint8)
        if not special:
            codes = np.where(codes & 0x7F >= FIRST_SPECIAL[spec.element], 0, codes)
        scales = rng.integers(120, 135, spec.scale_shape, dtype=np.uint8)
        if special:
            scales = np.where(rng.integers(0, 40, spec.scale_shape) == 0, 255, scales).astype(np.uint8)
        return Quantized(
            codes.view(DTYPES[spec.element]), scales.view(ml_dtypes.float8_e8m0fnu), 32, spec.axis, spec.element
        )


def sums_along_k(lhs, rhs, transpose_rhs):
    """Return the product in f32, summed from zero along K in order, each product and each sum rounded."""

    def values(side):
        with np.errstate(invalid="ignore"):
            elements = side.mantissa.astype(np.float32)
            scales = np.repeat(side.scale.astype(np.float32), 32, side.axis)
            return elements * scales

    a, b = values(lhs), values(rhs)
    b = b.swapaxes(-1, -2) if transpose_rhs else b
    total = np.float32(0)
    with np.errstate(invalid="ignore"):
        for k in range(a.shape[-1]):
            total = total + a[..., :, k : k + 1] * b[..., k : k + 1, :]
    return total
