"""The figures of `benchmarks.matmul` as tables, one for each pair of formats and number of threads."""

from collections.abc import Sequence
from typing import Any

from benchmarks.competitors import COLUMNS

_OURS = "ours"
_QUANTIZING = "ours, quantizing B"


def _number(value: float) -> str:
    """Return a number in about three digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.3f}" if seconds < 1e-3 else _number(1e3 * seconds)


def _groups(results: dict[str, Any]) -> dict[tuple[str, int], list[dict[str, Any]]]:
    groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for case in results["cases"]:
        groups.setdefault((case["formats"], case["threads"]), []).append(case)
    return groups


def _rows(results: dict[str, Any], cases: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return the heads of columns, and the rows."""
    others = [name for name in (_QUANTIZING, *COLUMNS) if any(name in case["ratios"] for case in cases)]
    heads = ["MxKxN", "ms", "GFLOP/s", "% of FMA peak", "GB/s of A", *others, "compile ms"]
    return heads, [_row(results, case, others) for case in cases]


def _row(results: dict[str, Any], case: dict[str, Any], others: Sequence[str]) -> list[str]:
    seconds = case["seconds"][_OURS]
    gflops = case["operations"] / seconds / 1e9
    ratios = [_number(case["ratios"][name]) if name in case["ratios"] else "-" for name in others]
    return [
        case["shape"],
        _milliseconds(seconds),
        _number(gflops),
        f"{100 * gflops / results['peaks'][str(case['threads'])]['fma_gflops']:.0f}",
        _number(case["weight_bytes"] / seconds / 1e9),
        *ratios,
        _number(1e3 * case["compile_seconds"]),
    ]


def _machine(results: dict[str, Any]) -> list[str]:
    """Return lines that describe the machine and what it can do."""
    machine, latency = results["machine"], results["latency"]
    caches = ", ".join(f"L{level} {_size(machine[f'l{level}_bytes'])}" for level in (1, 2, 3))
    processors = f"{machine['processors']} processor{'s' if machine['processors'] != 1 else ''}"
    lines = [
        f"{machine['processor']}, {processors}, vectors of {machine['vector_bits']} bits; {caches}",
        ", ".join(f"{name} {version}" for name, version in machine["versions"].items()),
    ]
    for threads, peak in results["peaks"].items():
        lines.append(
            f"{threads} thread{'s' if threads != '1' else ''}: {_number(peak['fma_gflops'])} GFLOP/s of f32, reads"
            f" {_number(peak['l2_gbytes'])} GB/s from L2 and {_number(peak['memory_gbytes'])} GB/s from memory"
        )
    if not latency:
        return lines
    lines.append(
        f"compilation {_number(1e3 * latency['compile_seconds_median'])} ms (median), at most"
        f" {_number(1e3 * latency['compile_seconds_longest'])} ms; a call of the smallest product"
        f" {_number(1e6 * latency['smallest_call_seconds'])} us"
    )
    return lines


def _size(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 1 << 20 else f"{count >> 10} KiB"


def _title(formats: str, threads: int) -> str:
    a, _, b = formats.partition(":")
    return f"A {a}, B {b or 'f32'}, {threads} thread{'s' if threads != 1 else ''}"


_LEGEND = "Columns named after a tool: how many times as long as ours it takes; above 1, ours is faster."


def plain(results: dict[str, Any]) -> str:
    """Return tables for a terminal."""
    lines = [*_machine(results), _LEGEND]
    for (formats, threads), cases in _groups(results).items():
        heads, rows = _rows(results, cases)
        widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(len(heads))]
        lines += ["", _title(formats, threads)]
        for row in (heads, *rows):
            first, *cells = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            lines.append("  ".join([row[0].ljust(len(first)), *cells]))
    return "\n".join(lines)


def markdown(results: dict[str, Any]) -> str:
    """Return tables in Markdown."""
    lines = [*(f"* {line}" for line in _machine(results)), "", _LEGEND]
    for (formats, threads), cases in _groups(results).items():
        heads, rows = _rows(results, cases)
        lines += ["", f"### {_title(formats, threads)}", "", f"| {' | '.join(heads)} |"]
        lines += [f"|---{'|---:' * (len(heads) - 1)}|", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines)
