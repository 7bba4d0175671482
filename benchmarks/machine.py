"""The machine that a benchmark runs on: its description, and what it can do at most, measured.

The two measuring kernels are MLIR compiled by this package: sums in registers that depend on nothing else, for the rate
of fused multiply-adds, and sums over an array, for the rate at which memory or a cache is read.
"""

import importlib.metadata
import platform
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import mx_dialect
from mx_dialect.parallel import available
from mx_dialect.schedule.host import Host, detect

_L3_PATH = "/sys/devices/system/cpu/cpu0/cache/index3/size"
_L3_BYTES = 64 << 20

_PACKAGES = ("mx-dialect", "torch-mlir", "numpy", "torch", "torchao", "iree-base-compiler")


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def l3_bytes() -> int:
    """Return the size of the last cache, an ordinary one where the system does not say."""
    match = re.fullmatch(r"(\d+)([KM])\n", _read(_L3_PATH))
    return int(match[1]) << (10 if match[2] == "K" else 20) if match else _L3_BYTES


def free_bytes() -> int:
    """Return how much memory can be had without swapping, 4 GiB where the system does not say."""
    match = re.search(r"^MemAvailable:\s*(\d+) kB$", _read("/proc/meminfo"), re.MULTILINE)
    return int(match[1]) << 10 if match else 4 << 30


def beyond_caches() -> int:
    """Return how many bytes no cache holds: twice the last cache, if that leaves room for a few arrays of it."""
    return min(2 * l3_bytes(), free_bytes() // 8)


def describe() -> dict[str, Any]:
    """Return what the machine is and which versions run on it, for a reader of results."""
    host = detect()
    model = re.search(r"^model name\s*:\s*(.*)$", _read("/proc/cpuinfo"), re.MULTILINE)
    return {
        "processor": model[1] if model else platform.processor() or platform.machine(),
        "system": platform.platform(),
        "processors": available(),
        "vector_bits": host.vector_bits,
        "l1_bytes": host.l1_bytes,
        "l2_bytes": host.l2_bytes,
        "l3_bytes": l3_bytes(),
        "features": sorted(f for f in host.features if re.match(r"avx|amx|fma$|f16c|gfni|asimd|sve", f)),
        "versions": {"python": platform.python_version(), **_versions()},
    }


def _versions() -> dict[str, str]:
    found = {name: _version(name) for name in _PACKAGES}
    return {name: version for name, version in found.items() if version is not None}


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _fma_program(host: Host, sums: int) -> str:
    """Return a program that keeps `sums` vectors and multiplies and adds to each of them, `count` times."""
    type_ = f"vector<{host.lanes}xf32>"
    names = [f"%a{i}" for i in range(sums)]
    starts, types = ", ".join(f"%s{i}" for i in range(sums)), ", ".join([type_] * sums)
    lines = ["func.func @fma(%x: f32, %count: i64) -> f32 {"]
    lines += ["  %zero = arith.constant 0 : index", "  %one = arith.constant 1 : index"]
    lines += [f"  %v = vector.broadcast %x : f32 to {type_}", "  %n = arith.index_cast %count : i64 to index"]
    for i in range(sums):
        lines += [f"  %c{i} = arith.constant dense<{i}.0> : {type_}"]
        lines += [f"  %s{i} = arith.mulf %c{i}, %v : {type_}"]
    arguments = ", ".join(f"{a} = %s{i}" for i, a in enumerate(names))
    lines += [f"  %r:{sums} = scf.for %i = %zero to %n step %one iter_args({arguments}) -> ({types}) {{"]
    lines += [f"    %f{i} = vector.fma {a}, %v, %v : {type_}" for i, a in enumerate(names)]
    lines += [f"    scf.yield {', '.join(f'%f{i}' for i in range(sums))} : {types}", "  }"]
    lines += [f"  %t0 = arith.addf %r#0, {starts.split(', ')[0]} : {type_}"]
    lines += [f"  %t{i} = arith.addf %t{i - 1}, %r#{i} : {type_}" for i in range(1, sums)]
    lines += [f"  %out = vector.reduction <add>, %t{sums - 1} : {type_} into f32", "  return %out : f32", "}"]
    return "\n".join(lines)


def _read_program(host: Host, bytes_: int, sums: int = 8) -> str:
    """Return a program that reads an array once, a multiple of `sums` vectors, by the exclusive or of its bits."""
    lanes = host.vector_bits // 32
    type_, source = f"vector<{lanes}xi32>", f"tensor<{bytes_ // 4}xi32>"
    types = ", ".join([type_] * sums)
    arguments = ", ".join(f"%a{i} = %start" for i in range(sums))
    lines = [f"func.func @read(%x: {source}) -> i32 {{", "  %pad = arith.constant 0 : i32"]
    lines += [f"  %start = arith.constant dense<0> : {type_}", "  %zero = arith.constant 0 : index"]
    lines += [f"  %n = arith.constant {bytes_ // 4} : index", f"  %step = arith.constant {sums * lanes} : index"]
    lines += [f"  %r:{sums} = scf.for %i = %zero to %n step %step iter_args({arguments}) -> ({types}) {{"]
    for i in range(sums):
        lines += [f"    %o{i} = arith.constant {i * lanes} : index", f"    %i{i} = arith.addi %i, %o{i} : index"]
        lines += [f"    %v{i} = vector.transfer_read %x[%i{i}], %pad {{in_bounds = [true]}} : {source}, {type_}"]
        lines += [f"    %x{i} = arith.xori %a{i}, %v{i} : {type_}"]
    lines += [f"    scf.yield {', '.join(f'%x{i}' for i in range(sums))} : {types}", "  }"]
    lines += [f"  %t{i} = arith.xori {f'%t{i - 1}' if i > 1 else '%r#0'}, %r#{i} : {type_}" for i in range(1, sums)]
    lines += [f"  %out = vector.reduction <xor>, %t{sums - 1} : {type_} into i32", "  return %out : i32", "}"]
    return "\n".join(lines)


def _best(run: Callable[[int], object], threads: int, seconds: float) -> float:
    """Return the fewest seconds of `run` by so many threads at once, each with its number, tried for a while."""
    best, end = float("inf"), time.perf_counter() + seconds
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(run, range(threads)))
        while True:
            start = time.perf_counter()
            list(pool.map(run, range(threads)))
            now = time.perf_counter()
            best = min(best, now - start)
            if now > end:
                return best


def peaks(threads: int, seconds: float, memory_bytes: int) -> dict[str, float]:
    """Return the most that so many threads reach together: GFLOP/s of f32, GB/s read from memory and from a cache.

    Each figure is the best of `seconds`. `memory_bytes` are read to read from memory, half of the second cache a thread
    to read from it.
    """
    host = detect()
    # Two units with a latency of four cycles need eight; a few more also hide the loop's own instructions.
    sums = 12
    fma = mx_dialect.compile(_fma_program(host, sums), threads=1)
    # A short call would measure the calling, a long one the neighbours.
    count = 200_000
    half = np.float32(0.5)
    taken = _best(lambda _: fma(half, count), threads, seconds)
    figures = {"fma_gflops": 2.0 * threads * count * sums * host.lanes / taken / 1e9}
    for name, each in (("memory_gbytes", memory_bytes // threads), ("l2_gbytes", host.l2_bytes // 2)):
        granule = 8 * host.vector_bits // 8
        each = max(each // granule, 1) * granule
        kernel = mx_dialect.compile(_read_program(host, each), threads=1)
        arrays = [np.ones(each // 4, np.int32) for _ in range(threads)]
        # Small arrays are read many times over, so that a call takes about as long as one of a large array.
        times = max(1, (8 << 20) // each)
        taken = _best(_repeated(kernel, arrays, times), threads, seconds)
        figures[name] = threads * each * times / taken / 1e9
    return figures


def _repeated(kernel: Callable[[Any], object], arrays: list[Any], times: int) -> Callable[[int], None]:
    def run(number: int) -> None:
        for _ in range(times):
            kernel(arrays[number])

    return run
