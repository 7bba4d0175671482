"""From PyTorch to a kernel with MX weights: export, quantize, compile, run; what that costs in accuracy and memory.

    pip install -e '.[torch]'
    python examples/torch_mlp.py
    python examples/torch_mlp.py --model transformer --format f4E2M1FN

torch_mlir exports a model as linalg on tensors, its weights as constants. `quantize_linear` (the pass
mx-quantize-linear) makes codes and scales of those that matrix products use, and `compile` makes a kernel that is
called with numpy arrays. A context never frees a constant, so the module moves to a new one before.
"""

import argparse
import importlib
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

import mx_dialect
from mx_dialect.ingress.linear import QuantizedWeight, in_new_context, quantize_linear

try:
    torch: Any = importlib.import_module("torch")
except ModuleNotFoundError:
    sys.exit("torch_mlp.py: error: this example needs PyTorch: pip install -e '.[torch]'")

Array = npt.NDArray[np.float32]


class Block(torch.nn.Module):  # pyright: ignore[reportUntypedBaseClass]
    """A transformer block: attention with several heads and an MLP, each behind a norm and beside a residual."""

    def __init__(self, width: int, heads: int):
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self.heads = heads
        self.norms = torch.nn.ModuleList([torch.nn.LayerNorm(width) for _ in range(2)])
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        split = self.qkv(self.norms[0](x)).split(width, -1)
        q, k, v = (y.reshape(batch, length, self.heads, width // self.heads).transpose(1, 2) for y in split)
        weights = torch.softmax(q @ k.transpose(-1, -2) * (width // self.heads) ** -0.5, -1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))
        return x + self.down(torch.nn.functional.silu(self.up(self.norms[1](x))))


def mlp(width: int) -> Any:
    """Return two linear layers with GELU in between."""
    nn = torch.nn
    return nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))


def model_and_input(name: str, width: int) -> tuple[Any, Any]:
    """Return a model with random weights, always the same, and an input for it."""
    torch.manual_seed(0)
    if name == "mlp":
        return mlp(width).eval(), torch.randn(16, width)
    return Block(width, heads=4).eval(), torch.randn(2, 16, width)


def export(model: Any, x: Any) -> Any:
    """Return a model as a module of linalg on tensors."""
    fx: Any = importlib.import_module("torch_mlir.fx")
    return fx.export_and_import(model, x, output_type="linalg-on-tensors")


def quantized(model: Any, x: Any, format: str) -> tuple[Any, list[QuantizedWeight]]:
    """Return a model as a module whose linear layers have weights in a format, in a context of its own."""
    module = export(model, x)
    mx_dialect.load(module.context)
    rows = quantize_linear(module, format=format)
    return in_new_context(module), rows


def with_rounded_weights(model: Any, format: str) -> Any:
    """Return a copy of a model whose linear layers have, in f32, the values that quantization leaves of weights."""
    copied: Any = importlib.import_module("copy").deepcopy(model)
    for layer in copied.modules():
        if isinstance(layer, torch.nn.Linear):
            rounded = mx_dialect.dequantize(mx_dialect.quantize(layer.weight.detach().numpy(), format))
            layer.weight.data = torch.from_numpy(np.ascontiguousarray(rounded))
    return copied


def run_torch(model: Any, x: Any) -> Array:
    with torch.no_grad():
        return model(x).numpy()


def decibels(reference: Array, values: Array) -> float:
    """Return the ratio of a reference's power to that of the difference from it."""
    noise = float(((values - reference).astype(np.float64) ** 2).sum())
    return float(10 * np.log10(float((reference.astype(np.float64) ** 2).sum()) / noise)) if noise else float("inf")


def _milliseconds(run: Callable[[], object]) -> float:
    run()
    times: list[float] = []
    for _ in range(20):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Run a PyTorch model with MX weights and compare.")
    parser.add_argument("--model", choices=("mlp", "transformer"), default="mlp")
    parser.add_argument("--format", default="f8E4M3FN", help="element format of the weights")
    parser.add_argument("--width", type=int, default=256, help="features, a multiple of 128")
    options = parser.parse_args(arguments)
    if options.width < 1 or options.width % 128:
        parser.error(f"--width is a positive multiple of 128, not {options.width}")

    model, x = model_and_input(options.model, options.width)
    module, rows = quantized(model, x, options.format)
    for row in rows:
        print(row)
    kernel = mx_dialect.compile(module)
    array = x.numpy()
    actual = kernel(array)
    plain = run_torch(model, x)
    rounded = run_torch(with_rounded_weights(model, options.format), x)
    before, after = sum(r.bytes_before for r in rows), sum(r.bytes_after for r in rows)
    print(f"weights of linear layers: {before} to {after} bytes, {before / after:.2f} times less")
    print(f"beside the model in f32: SQNR {decibels(plain, actual):.1f} dB")
    print(f"beside PyTorch with the same weights in f32: largest difference {np.abs(actual - rounded).max():.1e}")
    print(f"a call: {_milliseconds(lambda: kernel(array)):.2f} ms, PyTorch {_milliseconds(lambda: model(x)):.2f} ms")


if __name__ == "__main__":
    main()
