"""Block-scaled matrix products beside the BLAS of torch (MKL) and numpy, torchao and IREE, whichever are installed.

Everything is timed in one run, in interleaved rounds; what counts are ratios, the medians over rounds of another tool's
seconds over ours in the same round. `README.md` beside this file says what the figures mean.

    python -m benchmarks.matmul [--shapes MxKxN,MxKxN@memory,...] [--formats f8E4M3FN,packed-f4E2M1FN,i8:i8,...]
        [--threads 1,2] [--repeats 15] [--seconds 3] [--quick] [--markdown] [--json FILE] [--plot FILE] [--read FILE]
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import mx_dialect
from benchmarks import competitors, machine, rounds, table
from benchmarks.cases import (
    FORMATS,
    SHAPES,
    Formats,
    Operands,
    Shape,
    arguments,
    copies,
    copy_count,
    operands,
    parse_formats,
    parse_shape,
    program,
    weight_bytes,
)
from mx_dialect import MxError
from mx_dialect.parallel import available

OURS = "ours"
OURS_QUANTIZING = "ours, quantizing B"

QUICK_SHAPES = (Shape(32, 64, 64), Shape(33, 64, 1, memory=True))
QUICK_FORMATS = (Formats("f8E4M3FN"), Formats("i8", "i8"))

# An ordinary thread of another library spins this long for more work before it sleeps.
_SPINNING_SECONDS = 20e-3
# Rows of a result that are checked, at each end.
_CHECKED_ROWS = 16


@dataclass(frozen=True)
class Settings:
    """What is measured: `repeats` rounds at most, `seconds` for all rounds of a case at most, or about that.

    Weights "from memory" are as many copies as make up `memory_bytes`, which exceed the caches.
    """

    shapes: tuple[Shape, ...]
    formats: tuple[Formats, ...]
    threads: tuple[int, ...]
    repeats: int
    seconds: float
    peak_seconds: float
    memory_bytes: int


@dataclass(frozen=True)
class Case:
    """A product of given formats by a number of threads; copies of A in turn exceed `memory_bytes` if that is not 0."""

    shape: Shape
    formats: Formats
    threads: int
    memory_bytes: int

    @property
    def copies(self) -> int:
        return copy_count(weight_bytes(self.formats, self.shape), self.memory_bytes)

    def describe(self) -> dict[str, Any]:
        return {
            "shape": str(self.shape),
            "formats": str(self.formats),
            "threads": self.threads,
            "copies": self.copies,
            "operations": self.shape.operations,
            "weight_bytes": weight_bytes(self.formats, self.shape),
        }


def _require_right(case: Case, given: Operands, result: Any) -> None:
    """Check some rows of a first result, computed into zeros, by a sum in f64.

    Raises:
        MxError: they differ by more than the rounding of any order of summation in f32.
    """
    rows = sorted(
        {*range(min(_CHECKED_ROWS, case.shape.m)), *range(max(case.shape.m - _CHECKED_ROWS, 0), case.shape.m)}
    )
    a, b = given.a_values[rows].astype(np.float64), given.b_values.astype(np.float64)
    bound = (case.shape.k + 2) * 2.0**-23 * (np.abs(a) @ np.abs(b))
    worst = float(np.max(np.abs(result[rows] - a @ b) - bound))
    if not worst <= 0:
        raise MxError(f"the result is wrong, by {worst:.3g} more than rounding may be")


def _ours(case: Case, given: Operands, *, quantizes_b: bool) -> tuple[Callable[[], object], dict[str, float]]:
    """Return a call of this package's kernel, and the seconds it took to compile and to call the first time."""
    text = program(case.shape, case.formats, quantizes_b=quantizes_b)
    start = time.perf_counter()
    # A comment of its own makes the program new to the cache of kernels.
    kernel = mx_dialect.compile(f"// {start}\n{text}", threads=case.threads, cache=False)
    compiled = time.perf_counter()
    b: Any = given.b_given if quantizes_b or given.b is None else given.b
    weights = copies(case.copies, arguments(case.formats, given.a))
    result = np.zeros((case.shape.m, case.shape.n), np.float32)
    before = time.perf_counter()
    kernel(*weights[0], b, result, in_place=True)
    after = time.perf_counter()
    _require_right(case, given, result)
    turn = -1

    def call() -> None:
        nonlocal turn
        turn = (turn + 1) % len(weights)
        kernel(*weights[turn], b, result, in_place=True)

    return call, {"compile_seconds": compiled - start, "first_call_seconds": after - before}


def measure(case: Case, given: Operands, tools: tuple[competitors.Tool, ...], settings: Settings) -> dict[str, Any]:
    """Return what a case took: latencies of our kernel, median seconds by function, and ratios to ours."""
    functions: dict[str, Callable[[], object]] = {}
    functions[OURS], latency = _ours(case, given, quantizes_b=False)
    if case.formats.b is not None:
        functions[OURS_QUANTIZING], _ = _ours(case, given, quantizes_b=True)
    for tool in tools:
        functions |= tool.functions(case.shape, case.formats, given, case.threads, case.memory_bytes)
    pause = _SPINNING_SECONDS if case.threads > 1 else 0.0
    taken = rounds.samples(functions, settings.repeats, settings.seconds, pause)
    return {
        **case.describe(),
        **latency,
        "seconds": {name: statistics.median(values) for name, values in taken.items()},
        "ratios": {name: rounds.ratio(taken, name, OURS) for name in functions if name != OURS},
    }


def run(settings: Settings, progress: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Return all results as JSON would hold them; `progress` is called with each case as it is done.

    A case that does not compile, or whose result is wrong, is among the failures, and the others run.
    """
    start = time.perf_counter()
    peaks = {str(n): machine.peaks(n, settings.peak_seconds, settings.memory_bytes) for n in settings.threads}
    tools = competitors.tools()
    cases: list[dict[str, Any]] = []
    failures: list[str] = []
    for formats in settings.formats:
        for shape in settings.shapes:
            given = operands(shape, formats)
            memory_bytes = settings.memory_bytes if shape.memory else 0
            for threads in settings.threads:
                try:
                    cases.append(measure(Case(shape, formats, threads, memory_bytes), given, tools, settings))
                except MxError as error:
                    failures.append(f"{formats} {shape}, threads {threads}: {error}")
                    continue
                progress(cases[-1])
    return {
        "machine": machine.describe(),
        "settings": _described(settings),
        "seconds_in_all": time.perf_counter() - start,
        "peaks": peaks,
        "latency": _latency(cases),
        "cases": cases,
        "failures": failures,
    }


def _described(settings: Settings) -> dict[str, Any]:
    names = {"shapes": [str(shape) for shape in settings.shapes], "formats": [str(f) for f in settings.formats]}
    return asdict(settings) | names


def _latency(cases: list[dict[str, Any]]) -> dict[str, float]:
    """Return the median and the longest compilation, and the time of a call of the smallest product."""
    if not cases:
        return {}
    compilations = [case["compile_seconds"] for case in cases]
    smallest = min(cases, key=lambda case: case["operations"])
    return {
        "compile_seconds_median": statistics.median(compilations),
        "compile_seconds_longest": max(compilations),
        "smallest_call_seconds": smallest["seconds"][OURS],
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--shapes", help="comma-separated MxKxN, or MxKxN@memory for weights read from memory")
    parser.add_argument("--formats", help="comma-separated formats of A, or of A:B; packed-A for packed codes")
    parser.add_argument("--threads", default=None, help="comma-separated numbers of threads (1 and 2)")
    parser.add_argument("--repeats", type=int, default=15, help="rounds of each case")
    parser.add_argument("--seconds", type=float, default=3.0, help="for all rounds of a case; slow tools have fewer")
    parser.add_argument("--memory-mib", type=int, help="weights of the @memory cases together (twice the last cache)")
    parser.add_argument("--quick", action="store_true", help="two small shapes and formats, in seconds")
    parser.add_argument("--markdown", action="store_true", help="print tables in Markdown")
    parser.add_argument("--json", metavar="FILE", help="write all figures; - for standard output, without tables")
    parser.add_argument("--plot", metavar="FILE", help="draw the roofline (needs matplotlib: the extra 'plot')")
    parser.add_argument("--read", metavar="FILE", help="measure nothing, but show figures that --json wrote")
    return parser


def _settings(options: argparse.Namespace) -> Settings:
    """Return what the options ask for.

    Raises:
        ValueError: one has no meaning.
    """
    quick = options.quick
    shapes = tuple(map(parse_shape, options.shapes.split(","))) if options.shapes else QUICK_SHAPES if quick else SHAPES
    formats = QUICK_FORMATS if quick else FORMATS
    if options.formats:
        formats = tuple(map(parse_formats, options.formats.split(",")))
    threads = tuple(map(int, options.threads.split(","))) if options.threads else (1, 2)[: available()]
    if min(threads) < 1 or options.repeats < 1 or not options.seconds > 0 or (options.memory_mib or 1) < 1:
        raise ValueError("--threads, --repeats, --seconds and --memory-mib must be positive")
    memory = (options.memory_mib or (1 if quick else 0)) << 20 or machine.beyond_caches()
    repeats, seconds = (2, 0.1) if quick else (options.repeats, options.seconds)
    return Settings(shapes, formats, threads, repeats, seconds, 0.02 if quick else 2.0, memory)


def _show_progress(case: dict[str, Any]) -> None:
    ratio = case["ratios"].get(competitors.TORCH, case["ratios"].get(competitors.NUMPY))
    against = "" if ratio is None else f", sgemm takes {ratio:.2f} times as long"
    seconds = 1e3 * case["seconds"][OURS]
    print(f"{case['formats']} {case['shape']} threads {case['threads']}: {seconds:.3f} ms{against}", file=sys.stderr)


def main(arguments: list[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    # Compilation is measured, not the reading of what an earlier run left on disk.
    os.environ["MX_CACHE"] = "0"
    try:
        _require_folder(options.json)
        draw = _drawing(options.plot)
        if options.read:
            with open(options.read, encoding="utf-8") as file:
                results = json.load(file)
        else:
            results = run(_settings(options), _show_progress)
    # MxError is a ValueError: matplotlib is missing.
    except MxError as error:
        print(f"benchmarks.matmul: {error}", file=sys.stderr)
        return 1
    except (ValueError, OSError) as error:
        parser.error(str(error))
    _write(options, results)
    draw(results)
    for failure in results["failures"]:
        print(f"benchmarks.matmul: {failure}", file=sys.stderr)
    return 1 if results["failures"] else 0


def _require_folder(path: str | None) -> None:
    """Refuse a file that could not be written, before anything is measured.

    Raises:
        ValueError: its folder does not exist.
    """
    if path and not os.path.isdir(os.path.dirname(path) or "."):
        raise ValueError(f"--json {path}: there is no such folder")


def _drawing(path: str | None) -> Callable[[dict[str, Any]], None]:
    """Return what draws the roofline; matplotlib is missed before anything is measured."""
    if path is None:
        return lambda results: None
    from benchmarks import roofline

    return roofline.prepare(path)


def _write(options: argparse.Namespace, results: dict[str, Any]) -> None:
    text = json.dumps(results, indent=2)
    if options.json == "-":
        print(text)
        return
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            file.write(text + "\n")
    print(table.markdown(results) if options.markdown else table.plain(results))


if __name__ == "__main__":
    sys.exit(main())
