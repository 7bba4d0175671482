"""What MX quantization does to the tensors of a file: `python -m mx_dialect.report weights.safetensors`.

For every tensor, element format and rounding mode, with dq the dequantized value of x and scale that of its block:

    SQNR         10 log10(sum x^2 / sum (x - dq)^2) in decibels, summed in float64
    saturated    the share of elements with |x / scale| above the format's max_normal, before rounding
    underflow    the share of the nonzero elements that become zero

Scales are f8E8M0FNU, as in OCP Microscaling Formats (MX) v1.0. A NaN or an infinity makes its whole block NaN, so such
blocks are left out of all three, and counted. The last block of an extent that is no multiple of the block size is
filled up with zeros, which count nowhere. A finite x may dequantize to infinity (rounding modes other than floor, near
the largest float32); the SQNR is -inf then.

Files are mapped into memory where they can be, and tensors go through in pieces of a few megabytes. Nothing is ever
unpickled.
"""

import argparse
import contextlib
import importlib
import json
import math
import os
import sys
from collections.abc import Callable, Generator, Sequence
from typing import Any

from mx_dialect.diagnostics import MxError
from mx_dialect.formats import DEFAULT_ROUNDING, ELEMENT_FORMATS, ROUNDING_MODES
from mx_dialect.report.quantization_error import Advance, Case, Error, Report, Summary, summarize
from mx_dialect.report.tensor_files import spell

PROGRAM = "python -m mx_dialect.report"

_LARGEST_BLOCK = 1 << 20


def table(summary: Summary) -> str:
    """Return the summary as lines of aligned columns."""
    lines = [f"{spell(summary.path)}: blocks of {summary.block_size} along axis {summary.axis}"]
    if summary.reports:
        head = f"{'':2}{'format':<12}{'rounding':<10}{'SQNR dB':>10}{'saturated':>13}{'underflow':>13}"
        lines += ["", head, "-" * len(head)]
    groups = [(str(r.tensor), [*r.notes()], r.errors) for r in summary.reports]
    if len(groups) > 1:
        groups.append((f"all {len(groups)} tensors", [], summary.total()))
    for title, notes, errors in groups:
        lines += [title, *(f"  ({note})" for note in notes)]
        previous = ""
        for case, error in errors.items():
            shown = case.element_type if case.element_type != previous else ""
            previous = case.element_type
            lines.append(
                f"{'':2}{shown:<12}{case.rounding:<10}{_decibels(error.sqnr):>10}"
                f"{_percent(error.saturation):>13}{_percent(error.underflow):>13}"
            )
        lines.append("")
    if not groups:
        lines.append("")
    lines += [f"skipped {tensor}: {reason}" for tensor, reason in summary.skipped]
    return "\n".join(lines).rstrip("\n")


def _decibels(value: float) -> str:
    if math.isnan(value):
        return "-"
    return "exact" if value == math.inf else f"{value:.2f}"


def _percent(share: float) -> str:
    if math.isnan(share):
        return "-"
    percent = f"{100 * share:.3f} %"
    return "< 0.001 %" if share and percent == "0.000 %" else percent if share else "0 %"


def as_json(summary: Summary) -> str:
    """Return the summary as JSON. What is undefined or infinite is null; of SQNR, `signal` and `noise` tell which."""

    def number(value: float) -> float | None:
        return value if math.isfinite(value) else None

    def result(case: Case, error: Error) -> dict[str, Any]:
        return {
            "format": case.element_type,
            "rounding": case.rounding,
            "sqnr_db": number(error.sqnr),
            "saturated": number(error.saturation),
            "underflow": number(error.underflow),
            "signal": error.signal,
            "noise": number(error.noise),
        }

    def tensor(report: Report) -> dict[str, Any]:
        return {
            "name": report.tensor.name,
            "shape": report.tensor.shape,
            "dtype": report.tensor.dtype,
            "padding": report.padding,
            "non_finite": report.non_finite,
            "left_out": report.left_out,
            "results": [result(case, error) for case, error in report.errors.items()],
        }

    return json.dumps(
        {
            "file": summary.path,
            "block_size": summary.block_size,
            "axis": summary.axis,
            "tensors": [tensor(report) for report in summary.reports],
            "skipped": [{"name": t.name, "reason": reason} for t, reason in summary.skipped],
        },
        indent=1,
        allow_nan=False,
    )


@contextlib.contextmanager
def _progress(total: int) -> Generator[Advance]:
    """Show a bar on standard error if that is a terminal, tqdm is installed and the work takes over a second."""
    try:
        tqdm = importlib.import_module("tqdm").tqdm
    except ImportError:
        yield lambda _: None
        return
    layout = "{percentage:3.0f}% |{bar}| {elapsed} elapsed, {remaining} left"
    with tqdm(total=total, delay=1, leave=False, disable=None, bar_format=layout, file=sys.stderr) as bar:
        yield bar.update


def _choice(what: str, known: Sequence[str]) -> Callable[[str], list[str]]:
    """Return a reader of a comma-separated choice among `known`, or "all"."""

    def read(text: str) -> list[str]:
        chosen = list(known) if text == "all" else list(dict.fromkeys(text.split(",")))
        for one in chosen:
            if one not in known:
                raise argparse.ArgumentTypeError(f"'{one}' is no {what}; expected all, or of {','.join(known)}")
        return chosen

    return read


def _block_size(text: str) -> int:
    size = int(text) if text.isdecimal() else 0
    if not 0 < size <= _LARGEST_BLOCK or size & (size - 1):
        raise argparse.ArgumentTypeError(f"'{text}' is no power of two from 1 to {_LARGEST_BLOCK}")
    return size


def _parser() -> argparse.ArgumentParser:
    formats = "\n".join(f"  {name:<10} {row.name}" for name, row in ELEMENT_FORMATS.items())
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description=(__doc__ or "").partition("\n\n")[2],
        epilog=f"formats:\n{formats}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", help="a .npy, .npz or .safetensors file")
    formats, modes = _choice("format", list(ELEMENT_FORMATS)), _choice("rounding mode", ROUNDING_MODES)
    parser.add_argument("--formats", type=formats, default="all", metavar="F,...", help="default: all (see below)")
    parser.add_argument(
        "--rounding",
        type=modes,
        default=DEFAULT_ROUNDING,
        metavar="R,...",
        help=f"how a block's exponent is chosen: {', '.join(ROUNDING_MODES)}, or all; default: {DEFAULT_ROUNDING}",
    )
    parser.add_argument("--block-size", type=_block_size, default=32, metavar="N", help="default: 32")
    parser.add_argument(
        "--axis", type=int, default=-1, metavar="N", help="the axis of the blocks; default: -1, the last"
    )
    parser.add_argument(
        "--plot", metavar="OUT.png", help="draw SQNR by format and rounding, and the scales of the blocks"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with these arguments (the process's own if None) and return its exit code.

    Raises:
        SystemExit: as argparse does, code 2 for arguments that make no sense, 0 for --help.
    """
    arguments = _parser().parse_args(argv)
    try:
        _run(arguments)
    except MxError as error:
        print(f"{PROGRAM}: error: {error}", file=sys.stderr)
        return 1
    except MemoryError:
        print(f"{PROGRAM}: error: {spell(arguments.file)}: not enough memory", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader of our output went away; point stdout at nothing for the final flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _run(arguments: argparse.Namespace) -> None:
    draw: Callable[[Summary], None] | None = None
    if arguments.plot is not None:
        from mx_dialect.report import plot

        draw = plot.prepare(arguments.plot)
    cases = [Case(element_type, mode) for element_type in arguments.formats for mode in arguments.rounding]
    summary = summarize(arguments.file, cases, arguments.block_size, arguments.axis, draw is not None, _progress)
    text = as_json(summary) if arguments.json else table(summary)
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)
    if draw is not None:
        draw(summary)
