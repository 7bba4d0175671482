"""Models from PyTorch with MX weights: the same results as PyTorch with the values that those weights stand for."""

import copy
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from oracle import left_of_blocks

import mx_dialect

if os.environ.get("MX_REQUIRE_ORACLES") != "1":
    pytest.importorskip("torch")
    pytest.importorskip("torch_mlir.fx")

EXAMPLE = Path(__file__).parents[2] / "examples" / "torch_mlp.py"

# Bytes of f32 over those of codes and scales.
SAVED = {"f8E4M3FN": 3.8, "f8E5M2": 3.8, "f6E2M3FN": 5.1, "f4E2M1FN": 7.5, "i8": 3.8}

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("torch_mlp", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _with_numpy_weights(model: Any, fmt: str) -> Any:
    """Return a copy of a model with what quantization leaves of the weights of linear layers, by the test's numpy."""
    torch = importlib.import_module("torch")
    copied = copy.deepcopy(model)
    for layer in copied.modules():
        if isinstance(layer, torch.nn.Linear):
            left = left_of_blocks(layer.weight.detach().numpy(), fmt)
            # Each number is a product of an element and a power of two, which f32 has.
            layer.weight.data = torch.from_numpy(left.astype(np.float32))
    return copied


def _check(example: Any, name: str, fmt: str) -> None:
    model, x = example.model_and_input(name, 128)
    module, rows = example.quantized(model, x, fmt)
    assert len(rows) == {"mlp": 2, "transformer": 4}[name]
    actual = mx_dialect.compile(module)(x.numpy())
    same_weights = example.run_torch(_with_numpy_weights(model, fmt), x)
    # Sums of at most 512 products of numbers near 1, some of them one after the other.
    assert np.abs(actual - same_weights).max() <= 1e-4
    assert np.array_equal(example.run_torch(example.with_rounded_weights(model, fmt), x), same_weights)
    # What the kernel loses is what rounding the weights loses, as PyTorch with those weights shows: a relative change of
    # the noise by 1 % is 0.1 dB.
    unquantized = example.run_torch(model, x)
    lost = example.decibels(unquantized, same_weights)
    assert example.decibels(unquantized, actual) == pytest.approx(lost, abs=0.1)
    for row, weight in zip(rows, _in_order(model, rows), strict=True):
        noise = np.sum(np.square(weight - left_of_blocks(weight, fmt)))
        assert row.sqnr_db == pytest.approx(10 * np.log10(np.sum(np.square(weight)) / noise), abs=1e-4)
    before, after = sum(r.bytes_before for r in rows), sum(r.bytes_after for r in rows)
    assert before == sum(4 * p.numel() for n, p in model.named_parameters() if p.ndim == 2), "all linear layers"
    assert before / after >= SAVED[fmt]
    # The module holds nothing else of their size: biases, norms and its own text.
    assert len(mx_dialect.asm.to_bytecode(module)) <= after + 40_000


def _in_order(model: Any, rows: Any) -> list[Any]:
    """Return the weights that rows are about, in doubles; no two of a model have the same shape."""
    weights = {tuple(p.shape): p.detach().numpy().astype(np.float64) for p in model.parameters() if p.ndim == 2}
    return [weights[row.shape] for row in rows]


@pytest.mark.parametrize("fmt", sorted(SAVED))
def test_mlp(example: ModuleType, fmt: str) -> None:
    _check(example, "mlp", fmt)


@pytest.mark.parametrize("fmt", ["f8E4M3FN", "f4E2M1FN"])
def test_transformer_block(example: ModuleType, fmt: str) -> None:
    _check(example, "transformer", fmt)


def test_open_number_of_rows(example: ModuleType) -> None:
    """One kernel for any number of tokens, from a model exported so."""
    torch, fx = importlib.import_module("torch"), importlib.import_module("torch_mlir.fx")
    model, x = example.model_and_input("mlp", 128)
    rows = torch.export.Dim("rows", min=2, max=512)
    module = fx.export_and_import(model, x, output_type="linalg-on-tensors", dynamic_shapes=({0: rows},))
    mx_dialect.load(module.context)
    mx_dialect.run_pipeline(module, "mx-quantize-linear{format=f8E4M3FN}")
    kernel = mx_dialect.compile(module)
    rounded = example.with_rounded_weights(model, "f8E4M3FN")
    for count in (2, 5, 40):
        x = torch.randn(count, 128)
        assert np.abs(kernel(x.numpy()) - example.run_torch(rounded, x)).max() <= 1e-4


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_half_precision_and_layers_of_any_width(example: ModuleType, name: str) -> None:
    """Layers whose inputs are not whole blocks; PyTorch rounds to half precision where the kernel does."""
    torch = importlib.import_module("torch")
    torch.manual_seed(0)
    dtype = getattr(torch, name)
    model = torch.nn.Sequential(torch.nn.Linear(40, 75), torch.nn.GELU(), torch.nn.Linear(75, 9, bias=False)).eval()
    model, x = model.to(dtype), torch.randn(6, 40).to(dtype)
    module, rows = example.quantized(model, x, "f4E2M1FN")
    assert [row.padding for row in rows] == [24, 21]
    # numpy has no bfloat16 of its own; the bits are the same.
    given = x.view(torch.uint16).numpy().view({"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}[name])
    actual = mx_dialect.compile(module)(given).astype(np.float64)
    rounded = _with_numpy_weights(model.float(), "f4E2M1FN").to(dtype)
    wanted = rounded(x).detach().double().numpy()
    # Each layer may be off by a unit in the last place or two, from sums in another order.
    unit = {"float16": 2.0**-10, "bfloat16": 2.0**-7}[name]
    assert np.abs(actual - wanted).max() <= 2 * unit * np.abs(wanted).max()


MEMORY = """
import ctypes, gc, sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
import mx_dialect, torch_mlp

def resident():
    gc.collect()
    # What is free already, but kept for later by the C library, is not held by anybody.
    getattr(ctypes.CDLL(None), "malloc_trim", lambda _: 0)(0)
    return int(open("/proc/self/statm").read().split()[1]) * 4096

warm, x = torch_mlp.model_and_input("mlp", 128)
mx_dialect.compile(torch_mlp.quantized(warm, x, "f4E2M1FN")[0], cache=False)(x.numpy())
model, x = torch_mlp.model_and_input("mlp", 1536)
module, rows = torch_mlp.quantized(model, x, "f4E2M1FN")
x = x.numpy().copy()
del model
before = resident()
kernel = mx_dialect.compile(module, cache=False)
del module
kernel(x)
print(resident() - before, sum(r.bytes_before for r in rows))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_kernel_holds_its_weights_once() -> None:
    """That is 0.133 of f32 for MXFP4, and there is some memory that does not depend on weights."""
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(EXAMPLE.parent)], capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    grown, weights = map(int, done.stdout.split())
    assert grown <= 0.2 * weights, f"{grown} bytes for weights that had {weights}"
