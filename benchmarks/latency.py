"""Latency: compiling a kernel, finding it on disk in another process, and calling it with small arrays.

Compilation and disk are timed in processes of their own, each with one product of f8E4M3FN and f32 per size: first with
an empty cache, then with a full one. Times are those after numpy is imported; `imports` is what this package and
llvmlite take once a process. The first kernel that is compiled pays for the bindings. Calls are the best of many
rounds, beside a product of numpy with as small arrays: what is left when the machine is quiet.

    python -m benchmarks.latency [--rounds 5] [--json]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import mx_dialect
from mx_dialect.runtime import object_code

SIZES = (64, 128, 256, 512, 1024)


def product(m: int | str, n: int, k: int) -> str:
    """Return a program that adds the product of an MXFP8 matrix and an f32 one to a third."""
    lhs = f"!mx.tensor<{m}x{k}xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>"
    rhs, acc = f"tensor<{k}x{n}xf32>", f"tensor<{m}x{n}xf32>"
    return f"""func.func @product(%a: {lhs}, %b: {rhs}, %c: {acc}) -> {acc} {{
      %0 = mx.block_matmul %a, %b, %c : {lhs}, {rhs}, {acc} -> {acc}
      return %0 : {acc}
    }}"""


_PROCESS = """
import json, sys, time
import numpy
programs = json.load(sys.stdin)
start = time.perf_counter()
import mx_dialect
compile = mx_dialect.compile
from mx_dialect.runtime import object_code
if object_code.is_available():
    object_code.target()
marks = [time.perf_counter()]
for program in programs:
    compile(program)
    marks.append(time.perf_counter())
seconds = [later - earlier for earlier, later in zip(marks, marks[1:])]
print(json.dumps({"import": marks[0] - start, "first": seconds[0], "next": seconds[1:]}))
"""


def process(folder: str) -> dict[str, Any]:
    """Return the seconds that a process with this cache takes for its imports, its first kernel and the others."""
    environment = {**os.environ, "MX_CACHE": "1", "MX_CACHE_DIR": folder}
    programs = json.dumps([product(size, size, size) for size in SIZES])
    command = [sys.executable, "-c", _PROCESS]
    done = subprocess.run(
        command, input=programs, env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=600
    )
    return json.loads(done.stdout)


def kernels(rounds: int) -> dict[str, float]:
    """Return the median seconds of making kernels and of finding them on disk."""
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            stages = ("compiled", "from disk") if object_code.is_available() else ("compiled",)
            for stage in stages:
                seconds = process(folder)
                found.setdefault(f"{stage}, imports", []).append(seconds["import"])
                found.setdefault(f"{stage}, first kernel", []).append(seconds["first"])
                found.setdefault(f"{stage}, another kernel", []).extend(seconds["next"])
    return {name: statistics.median(values) for name, values in found.items()}


def calls() -> dict[str, float]:
    """Return the least seconds of a call with small arrays, in each of several ways."""
    x = np.ones(3, np.float32)
    a = mx_dialect.quantize(np.ones((4, 64), np.float32))
    b, c = np.ones((64, 8), np.float32), np.zeros((4, 8), np.float32)
    wide = np.ones((4, 64), np.float32)
    negate = mx_dialect.compile(
        "func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> {\n%0 = arith.negf %x : tensor<3xf32>\n"
        "return %0 : tensor<3xf32>\n}"
    )
    static, open_ = mx_dialect.compile(product(4, 8, 64)), mx_dialect.compile(product("?", 8, 64))
    functions: dict[str, Callable[[], object]] = {
        "call, one array": lambda: negate(x),
        "call, product": lambda: static(a, b, c),
        "call, product in place": lambda: static(a, b, c, in_place=True),
        "call, product of open M": lambda: open_(a, b, c),
        "mx_dialect.matmul": lambda: mx_dialect.matmul(a, b, acc=c),
        "numpy.matmul": lambda: np.matmul(wide, b),
    }
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(100):
        for name, function in functions.items():
            start = time.perf_counter()
            for _ in range(50):
                function()
            best[name] = min(best[name], (time.perf_counter() - start) / 50)
    return best


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="processes of each kind (default 5)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    seconds = {**kernels(options.rounds), **calls()}
    if options.json:
        print(json.dumps({"seconds": seconds}, indent=2))
        return 0
    for name, value in seconds.items():
        unit, factor = ("us", 1e6) if value < 1e-3 else ("ms", 1e3)
        print(f"{name:28}{factor * value:9.1f} {unit}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
