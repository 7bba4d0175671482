"""The roofline picture of `benchmarks.matmul`: each product's rate over the operations it has for a byte of operands.

The roofs are the measured rates of multiply-adds and of reading memory. A product in caches may lie above the sloping
roof, exact integer products above the flat one.
"""

import os
from collections.abc import Callable
from typing import Any

from benchmarks.cases import parse_shape
from benchmarks.competitors import NUMPY, TORCH
from mx_dialect.diagnostics import MxError
from mx_dialect.report.tensor_files import extra

_OURS = "ours"
# Colours that stay apart for colour-blind readers (Okabe and Ito).
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442")
_MARKERS = "osD^vPX*<>h"
_GREY, _GRID = "#777777", "#e4e4e4"


def prepare(path: str) -> Callable[[dict[str, Any]], None]:
    """Return what draws results into a file.

    Raises:
        MxError: matplotlib is missing, or a file of that name cannot be drawn.
    """
    figures = extra("matplotlib.figure", "plot", "--plot")
    backend = extra("matplotlib.backends.backend_agg", "plot", "--plot")
    kind = os.path.splitext(path)[1].lower().removeprefix(".")
    known = sorted(backend.FigureCanvasAgg.get_supported_filetypes())
    if kind not in known:
        raise MxError(f"--plot {path}: expected a file named .png, or one of .{', .'.join(known)}")
    if not os.path.isdir(os.path.dirname(path) or "."):
        raise MxError(f"--plot {path}: there is no such folder")

    def draw(results: dict[str, Any]) -> None:
        _figure(figures, results).savefig(path, format=kind, dpi=130)

    return draw


def _figure(figures: Any, results: dict[str, Any]) -> Any:
    """Return a figure with a plot for each number of threads."""
    threads = list(results["peaks"])
    figure = figures.Figure(figsize=(7.5 * len(threads), 6), layout="constrained")
    for axes, number in zip(figure.subplots(1, len(threads), squeeze=False)[0], threads, strict=True):
        cases = [case for case in results["cases"] if str(case["threads"]) == number]
        _draw(axes, results["peaks"][number], cases)
        axes.set_title(f"{number} thread{'s' if number != '1' else ''}", fontsize=11)
    figure.suptitle(results["machine"]["processor"], fontsize=12, parse_math=False)
    return figure


def _intensity(case: dict[str, Any], bytes_of_a: float) -> float:
    """Return operations for each byte read or written: A once, B in f32 once, the result twice."""
    shape = parse_shape(case["shape"])
    return case["operations"] / (bytes_of_a + 4 * shape.k * shape.n + 8 * shape.m * shape.n)


def _draw(axes: Any, peak: dict[str, float], cases: list[dict[str, Any]]) -> None:
    points = [(case, _intensity(case, case["weight_bytes"])) for case in cases]
    low = min((x for _, x in points), default=0.1) / 4
    high = max((x for _, x in points), default=1e3) * 2
    ridge = peak["fma_gflops"] / peak["memory_gbytes"]
    edges = [low, min(max(ridge, low), high), high]
    roof = [min(peak["fma_gflops"], x * peak["memory_gbytes"]) for x in edges]
    axes.plot(edges, roof, color="black", linewidth=1.5, label="roof: multiply-adds in f32, memory")
    for number, formats in enumerate(dict.fromkeys(case["formats"] for case in cases)):
        own = [(x, _rate(case, _OURS)) for case, x in points if case["formats"] == formats]
        style = {"color": _COLOURS[number % len(_COLOURS)], "marker": _MARKERS[number % len(_MARKERS)]}
        axes.plot(*zip(*own, strict=True), linestyle="none", markersize=6, label=formats, **style)
    baseline = next((name for name in (TORCH, NUMPY) if any(name in case["seconds"] for case in cases)), None)
    if baseline is not None:
        # The BLAS reads an A of four bytes each; the same product in several formats is one to it.
        seen = {case["shape"]: case for case in cases if baseline in case["seconds"]}
        theirs = [(_intensity(case, 4 * _elements(case)), _rate(case, baseline)) for case in seen.values()]
        axes.plot(*zip(*theirs, strict=True), "x", color=_GREY, markersize=7, label=f"{baseline}, A in f32")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("operations for a byte of A, B and the result")
    axes.set_ylabel("GFLOP/s")
    axes.set_axisbelow(True)
    axes.grid(color=_GRID)
    axes.legend(fontsize=8, frameon=False, loc="lower right")


def _elements(case: dict[str, Any]) -> int:
    shape = parse_shape(case["shape"])
    return shape.m * shape.k


def _rate(case: dict[str, Any], name: str) -> float:
    return case["operations"] / case["seconds"][name] / 1e9
