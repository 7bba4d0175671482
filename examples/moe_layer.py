"""A mixture-of-experts layer on a Neuron-style engine: from a checkpoint's weights to numbers, beside an error bound.

Run `python examples/moe_layer.py`. It compiles the experts of the file beside this script, routes tokens to two of four
experts each, and compares the layer with numpy, for MXFP4 and MXFP8 weights and two sizes of experts. `--ir` prints the
program after mx-neuron-expand-load.

The reference computes in float64 what the program computes in float32, and quantizes where it quantizes. The bound is
what rounding may do: gamma_n = n u / (1 - n u), u = 2^-24, times a sum's magnitudes; how far that moves SiLU(gate) *
up; how far this moves the quantized product, found by quantizing both ends of the interval that it may lie in; and what
all that makes of a row of the down projection.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

import mx_dialect
from mx_dialect.codes import decode, decode_scale
from mx_dialect.layouts import neuron, neuron_scales, neuron_weights

Array: TypeAlias = npt.NDArray[Any]
Doubles: TypeAlias = npt.NDArray[np.float64]

FILE = Path(__file__).with_name("moe_layer.mlir")
EXPERTS, HIDDEN, TOKENS, CHOSEN = 4, 1024, 12, 2
SLOTS = 16
"""The tokens of one call of an expert; those that are not there hold NaN."""
SIZES = (512, 192)
PASSES = "mx-neuron-expand-load,mx-neuron-to-linalg"
U = 2.0**-24
GROUP = 32


@dataclass(frozen=True)
class Weights:
    """Gate and up [E, H, I], down [E, I, H], quantized along the axis that is summed; biases [E, I], [E, I], [E, H]."""

    gate: mx_dialect.MxArray
    up: mx_dialect.MxArray
    down: mx_dialect.MxArray
    biases: tuple[Array, Array, Array]

    @classmethod
    def random(cls, rng: np.random.Generator, intermediate: int, element: str) -> "Weights":
        def quantized(*shape: int) -> mx_dialect.MxArray:
            values = rng.standard_normal(shape, dtype=np.float32) / np.float32(np.sqrt(shape[1]))
            return mx_dialect.quantize(values, element, axis=1)

        gate, up = (quantized(EXPERTS, HIDDEN, intermediate) for _ in range(2))
        down = quantized(EXPERTS, intermediate, HIDDEN)
        gate_bias, up_bias, down_bias = (
            rng.standard_normal((EXPERTS, n), dtype=np.float32) / 4 for n in (intermediate, intermediate, HIDDEN)
        )
        return cls(gate, up, down, (gate_bias, up_bias, down_bias))

    def packed(self) -> list[Array]:
        """Return the tensors that an expert's function loads from."""
        gate, up, down = (side.mantissa.view(np.uint8) for side in (self.gate, self.up, self.down))
        element = self.gate.element_type
        return [
            neuron_weights.pack_gate_up(gate, up, element),
            neuron_weights.pack_gate_up_scales(self.gate.scale, self.up.scale),
            neuron_weights.pack_gate_up_bias(*self.biases[:2]),
            neuron_weights.pack_down(down, element),
            neuron_weights.pack_down_scales(self.down.scale),
            self.biases[2],
        ]


@dataclass(frozen=True)
class Bounded:
    """Values, and how far those of the program may lie from them."""

    value: Doubles
    error: Doubles


def source(element: str) -> str:
    """Return the text of the experts; MXFP8 weights come in other integers and nothing else differs."""
    text = FILE.read_text()
    return text if element == "f4E2M1FN" else text.replace("ui16", "ui32").replace("f4E2M1FN", element)


def compiled(intermediate: int, element: str) -> mx_dialect.Kernel:
    """Return the function of an expert with so many intermediate features."""
    module = mx_dialect.parse(source(element), str(FILE))
    mx_dialect.run_pipeline(module, PASSES)
    return mx_dialect.compile(module, f"expert_{intermediate}", opt_level=1)


# Routing, on the host


def route(x: Array, router: Array) -> tuple[Array, Doubles]:
    """Return the two experts of each token, [T, 2], and their shares, which add up to 1."""
    logits = x.astype(np.float64) @ router
    chosen = np.argsort(-logits, axis=1)[:, :CHOSEN]
    weight = np.exp(np.take_along_axis(logits, chosen, axis=1))
    return chosen, weight / weight.sum(axis=1, keepdims=True)


def layer(x: Array, routes: tuple[Array, Doubles], expert: Callable[[Array, int], Doubles]) -> Doubles:
    """Return the sum over each token's experts of its share times what the expert makes of it."""
    chosen, shares = routes
    out = np.zeros((len(x), HIDDEN))
    for e in range(EXPERTS):
        tokens, place = np.nonzero(chosen == e)
        if tokens.size:
            out[tokens] += shares[tokens, place, None] * expert(x[tokens], e)
    return out


def call(kernel: mx_dialect.Kernel, x: Array, packed: list[Array], e: int) -> tuple[Array, Array, Doubles]:
    """Return what an expert makes of [T, H] tokens: its output, and its product [T, I] as it is and quantized."""
    slots = np.full((SLOTS, HIDDEN), np.nan, np.float32)
    slots[: len(x)] = x
    y, product, data, scale = kernel(neuron_weights.permute_hidden(slots), *packed, e)
    return y[: len(x)], product.T[: len(x)], _activations(data, scale.view(np.uint8))[: len(x)]


def _activations(data: Array, scale: Array) -> Doubles:
    """Return the values [T, K] of containers [K/4, T] with their tile of scales."""
    dense = neuron_scales.dense_scales(scale, len(data) // neuron_scales.PARTITIONS_PER_SCALE)
    factors = np.repeat(decode_scale(dense), neuron_scales.BLOCK_SIZE, axis=0)
    with np.errstate(invalid="ignore"):  # Slots without a token hold NaN.
        return (decode(neuron.unpack_x4(data, axis=0), "f8E4M3FN") * factors).T


# The reference and its bound


def gamma(roundings: int) -> float:
    return roundings * U / (1 - roundings * U)


def projected(x: Bounded, weight: Doubles, bias: Array) -> Bounded:
    """Return bias + x @ weight: the products are exact in float32, each of K sums is rounded, and once in float64."""
    extent = len(weight)
    size = np.abs(bias) + (np.abs(x.value) + x.error) @ np.abs(weight)
    error = gamma(extent + 1) * size + x.error @ np.abs(weight) + extent * 2.0**-149
    return Bounded(bias + x.value @ weight, error)


def activated(gate: Bounded, up: Bounded) -> Bounded:
    """Return SiLU(gate) * up, rounded to float32.

    SiLU's slope is below 1.1. exp is within 2 ulp, which is 4u, and each of three more operations within u; one more u
    is for their products. Where exp overflows, SiLU is less than 2^-120 from the 0 that results.
    """
    silu = gate.value / (1 + np.exp(-gate.value))
    moved = 1.1 * gate.error
    off = moved + 7 * U * (np.abs(silu) + moved) + 2.0**-120
    product = silu * up.value
    size = (np.abs(silu) + off) * (np.abs(up.value) + up.error)
    error = off * (np.abs(up.value) + up.error) + np.abs(silu) * up.error + U * size + 2.0**-149
    value = product.astype(np.float32).astype(np.float64)
    return Bounded(value, error + np.abs(value - product))


def exponents(largest: Doubles) -> Array:
    """Return the exponents of the scales of groups with these largest magnitudes; subnormals count as 2^-127."""
    exponent = np.where(largest < 2.0**-126, -127, np.frexp(largest)[1] - 1)
    return np.maximum(exponent - 8, -127)


def rounded(groups: Doubles, exponent: Array) -> Doubles:
    """Return groups [..., 32] in f8E4M3FN with scales of these exponents: clipped, rounded to nearest even."""
    scale = np.exp2(exponent.astype(np.float64))[..., None]
    return np.clip(groups / scale, -448, 448).astype(ml_dtypes.float8_e4m3fn).astype(np.float64) * scale


def quantized(x: Bounded) -> Bounded:
    """Return [T, K] quantized to MXFP8, groups of 32 along K, each of which has one scale.

    Rounding is monotonic: what is quantized of an interval lies between what is of its ends. That holds for each scale
    that the group may get.
    """
    shape = (*x.value.shape[:-1], -1, GROUP)
    value, error = x.value.reshape(shape), x.error.reshape(shape)
    result = rounded(value, exponents(np.abs(value).max(axis=-1)))
    least, most = (exponents(size.max(axis=-1)) for size in (np.abs(value) - error, np.abs(value) + error))
    if (most - least > 1).any():
        raise ValueError("the errors are too large for a bound: a scale may be one of three or more")
    ends = [rounded(end, scale) for end in (value - error, value + error) for scale in (least, most)]
    away = np.max([np.abs(end - result) for end in ends], axis=0)
    return Bounded(result.reshape(x.value.shape), away.reshape(x.value.shape))


def exactly(x: Array) -> Bounded:
    return Bounded(x.astype(np.float64), np.zeros(x.shape))


class Reference:
    """The experts in float64."""

    def __init__(self, weights: Weights):
        self._biases = weights.biases
        self._gate, self._up, self._down = (
            mx_dialect.reference.dequantize(side).astype(np.float64)
            for side in (weights.gate, weights.up, weights.down)
        )

    def product(self, x: Array, e: int) -> Bounded:
        """Return the product [T, I] of an expert, before it is quantized."""
        hidden = quantized(exactly(x))
        gate, up = (
            projected(hidden, side[e], bias[e])
            for side, bias in zip((self._gate, self._up), self._biases[:2], strict=True)
        )
        return activated(gate, up)

    def down(self, inner: Bounded, e: int) -> Bounded:
        """Return the output [T, H] of an expert for its quantized product."""
        return projected(inner, self._down[e], self._biases[2][e])


class Worst:
    """The largest error seen beside its bound."""

    def __init__(self) -> None:
        self.error, self.bound, self.ratio = 0.0, 0.0, 0.0

    def see(self, actual: Array, expected: Bounded) -> None:
        error = np.abs(actual - expected.value)
        self.error = max(self.error, float(error.max()))
        self.bound = max(self.bound, float(expected.error.max()))
        # NaN, which compares with nothing, is out of bounds.
        ratio = np.where(error <= expected.error, error / expected.error, np.inf)
        self.ratio = max(self.ratio, float(ratio.max()))

    def __str__(self) -> str:
        return f"{self.error:9.1e} {self.bound:9.1e} {self.ratio:9.1e}"


def check(intermediate: int, element: str, seed: int = 0) -> tuple[str, bool]:
    """Run the layer and return a line about it, and whether all errors are within their bounds."""
    rng = np.random.default_rng(seed)
    weights = Weights.random(rng, intermediate, element)
    x = rng.standard_normal((TOKENS, HIDDEN), dtype=np.float32)
    routes = route(x, rng.standard_normal((HIDDEN, EXPERTS)) / np.sqrt(HIDDEN))
    kernel, packed, reference = compiled(intermediate, element), weights.packed(), Reference(weights)
    product, down, whole = Worst(), Worst(), Worst()
    outputs: dict[int, Bounded] = {}

    def expert(tokens: Array, e: int) -> Doubles:
        y, inner, inner_quantized = call(kernel, tokens, packed, e)
        expected = reference.product(tokens, e)
        outputs[e] = reference.down(quantized(expected), e)
        product.see(inner, expected)
        down.see(y, reference.down(exactly(inner_quantized), e))
        return y.astype(np.float64)

    actual = layer(x, routes, expert)
    value = layer(x, routes, lambda _, e: outputs[e].value)
    error = layer(x, routes, lambda _, e: outputs[e].error)
    # The sum over two experts is in float64 on both sides.
    whole.see(actual, Bounded(value, error + 2.0**-50 * np.abs(value)))
    line = f"{element:10}{intermediate:5}   {product}   {down}   {whole}"
    return line, max(product.ratio, down.ratio, whole.ratio) <= 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ir", action="store_true", help="print the program after mx-neuron-expand-load")
    flags = parser.parse_args()
    if flags.ir:
        module = mx_dialect.parse(source("f4E2M1FN"), str(FILE))
        mx_dialect.run_pipeline(module, "mx-neuron-expand-load")
        print(mx_dialect.to_asm(module))
    print(f"{TOKENS} tokens, {CHOSEN} of {EXPERTS} experts each, H = {HIDDEN}; largest error, bound, error / bound")
    print(f"{'weights':10}{'I':>5}   {'SiLU(gate) * up':29}   {'down, of what it got':29}   the layer")
    good = True
    for element in ("f4E2M1FN", "f8E4M3FN"):
        for intermediate in SIZES:
            line, is_within = check(intermediate, element)
            print(line)
            good = good and is_within
    print("all errors are within their bounds" if good else "SOMETHING IS WRONG")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
