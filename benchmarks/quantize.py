"""Quantize and dequantize a 4096x4096 f32 matrix: GB/s beside a memcpy of the same bytes, ml_dtypes and torchao.

Bytes are those read and written: the f32 matrix, the elements (a byte each) and the scales. `memcpy` moves as many with
numpy. `ml_dtypes` converts elements only, without looking for a scale. torchao (`to_mx`, `to_dtype`) runs if it is
installed. With two threads, each quantizes half of the rows. Every call makes new arrays, the competitors' as well; the
memcpy does not.

    python -m benchmarks.quantize [--size 4096] [--rounds 7] [--json]
"""

import argparse
import importlib
import json
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ml_dtypes
import numpy as np

import mx_dialect
from benchmarks.timing import medians
from mx_dialect.formats import ELEMENT_FORMATS

BLOCK = 32


def torchao_functions(x: Any, fmt: str) -> dict[str, Callable[[], object]]:
    """Return torchao's conversions of a matrix, none if it is not installed or lacks the format."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch: Any = importlib.import_module("torch")
            mx_tensor: Any = importlib.import_module("torchao.prototype.mx_formats.mx_tensor")
    except ImportError:
        return {}
    dtypes = {"f8E4M3FN": torch.float8_e4m3fn, "f8E5M2": torch.float8_e5m2, "f4E2M1FN": torch.float4_e2m1fn_x2}
    if fmt not in dtypes:
        return {}
    torch.set_num_threads(1)
    tensor, dtype = torch.from_numpy(x), dtypes[fmt]
    scale, data = mx_tensor.to_mx(tensor, dtype, BLOCK)
    return {
        "torchao quantize": lambda: mx_tensor.to_mx(tensor, dtype, BLOCK),
        "torchao dequantize": lambda: mx_tensor.to_dtype(data, scale, dtype, BLOCK, torch.float32),
    }


def functions(x: Any, fmt: str, pool: ThreadPoolExecutor) -> dict[str, Callable[[], object]]:
    """Return what is timed for one format."""
    half = x.shape[0] // 2
    parts = [x[:half], x[half:]]

    def quantize(part: Any) -> object:
        return mx_dialect.quantize(part, fmt, BLOCK)

    q = mx_dialect.quantize(x, fmt, BLOCK)
    halves = [mx_dialect.quantize(part, fmt, BLOCK) for part in parts]
    moved = x.nbytes + q.mantissa.nbytes + q.scale.nbytes
    source, target = np.zeros(moved // 2, np.uint8), np.zeros(moved // 2, np.uint8)
    dtype = np.dtype(getattr(ml_dtypes, ELEMENT_FORMATS[fmt].ml_dtype, np.int8))
    elements = x.astype(dtype)
    return {
        "memcpy": lambda: np.copyto(target, source),
        "quantize": lambda: quantize(x),
        "dequantize": lambda: mx_dialect.dequantize(q),
        "quantize, 2 threads": lambda: list(pool.map(quantize, parts)),
        "dequantize, 2 threads": lambda: list(pool.map(mx_dialect.dequantize, halves)),
        "ml_dtypes quantize": lambda: x.astype(dtype),
        "ml_dtypes dequantize": lambda: elements.astype(np.float32),
        **torchao_functions(x, fmt),
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", type=int, default=4096, help="rows and columns (default 4096)")
    parser.add_argument("--rounds", type=int, default=7, help="calls of each function (default 7)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    if options.size < 64 or options.size % 64 or options.rounds < 1:
        parser.error("--size must be a multiple of 64 and --rounds at least 1")
    x = np.random.default_rng(0).standard_normal((options.size, options.size), dtype=np.float32)
    moved = x.nbytes + x.size + x.size // BLOCK
    results: dict[str, dict[str, float]] = {}
    with ThreadPoolExecutor(2) as pool:
        for fmt in ELEMENT_FORMATS:
            seconds = medians(functions(x, fmt, pool), options.rounds)
            results[fmt] = seconds
            if options.json:
                continue
            print(f"{fmt}, {options.size}x{options.size}")
            for name, value in seconds.items():
                ratio = value / seconds["memcpy"]
                print(f"  {name:24}{1e3 * value:9.1f} ms {moved / value / 1e9:8.2f} GB/s  {ratio:8.2f} x memcpy")
            sys.stdout.flush()
    if options.json:
        print(json.dumps({"size": options.size, "bytes": moved, "seconds": results}, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
