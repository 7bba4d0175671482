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
import re
import sys
import zipfile
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, NamedTuple, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

from mx_dialect import reference
from mx_dialect.diagnostics import MxError
from mx_dialect.formats import DEFAULT_ROUNDING, E8M0, ELEMENT_FORMATS, ROUNDING_MODES

Array: TypeAlias = npt.NDArray[Any]

PROGRAM = "python -m mx_dialect.report"

_BF16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
_FLOATS: dict[np.dtype[Any], str] = {
    np.dtype(np.float32): "f32",
    np.dtype(np.float16): "f16",
    _BF16: "bf16",
    np.dtype(np.float64): "f64",
}

_CONVERSIONS = {"f64": "f64 converted to f32 first"}

# A piece: large enough that calls cost nothing, small enough for the caches.
_PIECE = 1 << 17
_LARGEST_BLOCK = 1 << 20
# Up to this many elements numpy is done before a kernel is compiled; both give the same bits.
_COMPILED_FROM = 1 << 22


class Case(NamedTuple):
    """An element format, as MLIR spells it, and a rounding mode."""

    element_type: str
    rounding: str


@dataclass(frozen=True)
class Tensor:
    """A tensor of a file: `load` reads it; `dtype` is f32, f16, bf16 or f64, or the name of a type to skip."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    load: Callable[[], Array]
    note: str = ""

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def obstacle(self, axis: int) -> str | None:
        """Return why there is nothing to say about this tensor, or None."""
        if self.dtype not in _FLOATS.values():
            return f"its type is none of {', '.join(_FLOATS.values())}"
        if not self.shape:
            return "a 0-d tensor has no axis to divide into blocks"
        if not -len(self.shape) <= axis < len(self.shape):
            return f"it has no axis {axis}"
        return None if self.size else "it is empty"


@dataclass
class Error:
    """The sums that the three figures of a case are made of; sums of several tensors can be added.

    `count` elements were looked at, `nonzero` of them not zero; `signal` is sum x^2, `noise` sum (x - dq)^2.
    """

    count: int = 0
    nonzero: int = 0
    signal: float = 0.0
    noise: float = 0.0
    saturated: int = 0
    zeroed: int = 0

    def __add__(self, other: "Error") -> "Error":
        return Error(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))

    @property
    def sqnr(self) -> float:
        """Return decibels; inf if nothing was lost, NaN if there was nothing but zeros."""
        if not self.signal:
            return math.nan
        ratio = self.signal / self.noise if self.noise else math.inf
        return 10 * math.log10(ratio) if ratio else -math.inf

    @property
    def saturation(self) -> float:
        return self.saturated / self.count if self.count else math.nan

    @property
    def underflow(self) -> float:
        return self.zeroed / self.nonzero if self.nonzero else math.nan


@dataclass(eq=False)
class Report:
    """What was found about one tensor.

    `non_finite` of its values are NaN or infinite, `left_out` lie in blocks with such a value. `padding` zeros fill up
    the last block of each row. `scales`, if asked for, has the scale code of each block for the first case, in the
    shape of the tensor with the blocked axis divided.
    """

    tensor: Tensor
    axis: int
    padding: int
    errors: dict[Case, Error]
    non_finite: int = 0
    left_out: int = 0
    scales: Array | None = None

    def notes(self) -> Iterator[str]:
        if self.tensor.note:
            yield self.tensor.note
        if self.padding:
            extent = self.tensor.shape[self.axis]
            yield f"axis {self.axis} zero-padded from {extent} to {extent + self.padding}"
        if self.non_finite:
            yield f"{self.non_finite} NaN or Inf: their blocks, {self.left_out} values, are left out"


@dataclass
class Summary:
    """What was found in a file; `skipped` are tensors with the reason."""

    path: str
    block_size: int
    axis: int
    reports: list[Report] = field(default_factory=lambda: [])
    skipped: list[tuple[Tensor, str]] = field(default_factory=lambda: [])

    def total(self) -> dict[Case, Error]:
        """Return the errors of all tensors taken as one."""
        cases = self.reports[0].errors if self.reports else ()
        return {case: sum((r.errors[case] for r in self.reports), Error()) for case in cases}


def summarize(
    path: str,
    cases: Sequence[Case],
    block_size: int = 32,
    axis: int = -1,
    with_scales: bool = False,
) -> Summary:
    """Measure every tensor of a file in every case; a progress bar appears on a terminal when that takes long.

    Raises:
        MxError: the file cannot be read, or reading it needs a package that is not installed.
    """
    summary = Summary(path, block_size, axis)
    with _open(path) as tensors:
        todo: list[Tensor] = []
        for tensor in tensors:
            obstacle = tensor.obstacle(axis)
            if obstacle is None:
                todo.append(tensor)
            else:
                summary.skipped.append((tensor, obstacle))
        elements = sum(t.size for t in todo)
        compiled = elements >= _COMPILED_FROM
        with _progress(elements * len(cases)) as advance:
            for tensor in todo:
                with _reading(path, tensor.name):
                    values = tensor.load()
                summary.reports.append(measure(tensor, values, cases, block_size, axis, with_scales, compiled, advance))
    return summary


def measure(
    tensor: Tensor,
    values: Array,
    cases: Sequence[Case],
    block_size: int,
    axis: int,
    with_scales: bool = False,
    compiled: bool = False,
    advance: Callable[[int], None] = lambda _: None,
) -> Report:
    """Measure one tensor, whose `values` are as `tensor` says; `advance` hears of elements times cases done."""
    axis %= values.ndim
    extent = values.shape[axis]
    report = Report(tensor, axis, -extent % block_size, {case: Error() for case in cases})
    # A block that is larger than the extent would hold the same values and more zeros.
    block_size = min(block_size, 1 << (extent - 1).bit_length())
    blocks = -(-extent // block_size)

    # In the order of memory, as [before, extent, after].
    flipped = values.flags.f_contiguous and not values.flags.c_contiguous
    ordered, at = (values.T, values.ndim - 1 - axis) if flipped else (values, axis)
    before, after = ordered.shape[:at], ordered.shape[at + 1 :]
    source = ordered.reshape(math.prod(before), extent, math.prod(after))
    scales = np.zeros((source.shape[0], blocks, source.shape[2]), np.uint8) if with_scales else None

    # All pieces have one shape, so that one kernel a case is compiled; what is not used of a piece is zero.
    piece = np.zeros((max(1, _PIECE // block_size), block_size), np.float32)
    for b, g, a in _ranges((source.shape[0], blocks, source.shape[2]), len(piece)):
        part = source[b, g.start * block_size : g.stop * block_size, a].swapaxes(1, 2)
        rows = (*part.shape[:2], -(-part.shape[2] // block_size))
        used = math.prod(rows)
        filled = piece[:used].reshape(*rows[:2], rows[2] * block_size)
        with np.errstate(over="ignore", invalid="ignore"):
            filled[..., : part.shape[2]] = part
        filled[..., part.shape[2] :] = 0
        piece[used:] = 0

        lengths = np.full(rows, block_size)
        lengths[..., -1] -= filled.shape[2] - part.shape[2]
        bad = ~np.isfinite(piece).all(axis=1)
        left_out = int(lengths.reshape(-1)[bad[:used]].sum())
        report.non_finite += int(np.count_nonzero(~np.isfinite(piece[bad])))
        report.left_out += left_out
        piece[bad] = 0

        codes = _add_errors(report.errors, piece if compiled else piece[:used], part.size - left_out, compiled)
        advance(part.size * len(cases))
        if scales is not None:
            codes = np.where(bad[:used], E8M0.nan_code, codes[:used, 0])
            scales[b, g, a] = codes.reshape(rows).swapaxes(1, 2)
    if scales is not None:
        shaped = scales.reshape(*before, blocks, *after)
        report.scales = shaped.T if flipped else shaped
    return report


def _ranges(shape: tuple[int, int, int], limit: int) -> Iterator[tuple[slice, slice, slice]]:
    """Yield ranges that cover a box, each with at most `limit` points, last axis first."""
    steps = [0, 0, 0]
    for axis in (2, 1, 0):
        steps[axis] = max(1, min(shape[axis], limit))
        limit //= steps[axis]
    for i in range(0, shape[0], steps[0]):
        for j in range(0, shape[1], steps[1]):
            for k in range(0, shape[2], steps[2]):
                yield slice(i, i + steps[0]), slice(j, j + steps[1]), slice(k, k + steps[2])


def _add_errors(errors: dict[Case, Error], x: Array, count: int, compiled: bool) -> Array:
    """Add the errors of blocks [n, block size], finite float32, to those of each case.

    `count` is how many of the elements count. Returns the scale codes of the first case, [n, 1].
    """
    quantize, dequantize = _functions(compiled)
    exact = x.astype(np.float64)
    magnitude = np.abs(exact)
    signal, nonzero = float(np.vdot(exact, exact)), int(np.count_nonzero(x))
    scales: list[Array] = []
    for case in errors:
        quantized = quantize(x, case.element_type, x.shape[1], -1, case.rounding)
        values: Array = dequantize(quantized)
        largest = ELEMENT_FORMATS[case.element_type].max_normal * reference.decode_scale(quantized.scale)
        difference = exact - values
        errors[case] += Error(
            count,
            nonzero,
            signal,
            float(np.vdot(difference, difference)),
            int(np.count_nonzero(magnitude > largest)),
            nonzero - int(np.count_nonzero(values)),
        )
        scales.append(quantized.scale.view(np.uint8))
    return scales[0]


def _functions(compiled: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    if not compiled:
        return reference.quantize, reference.dequantize
    from mx_dialect import arrays

    return arrays.quantize, arrays.dequantize


# Reading.


@contextlib.contextmanager
def _open(path: str) -> Generator[list[Tensor]]:
    """List the tensors of a file, which stays open meanwhile."""
    readers = {".npy": _npy, ".npz": _npz, ".safetensors": _safetensors}
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in readers:
        raise MxError(f"{spell(path)}: expected a file named .npy, .npz or .safetensors")
    if not os.path.exists(path):
        raise MxError(f"{spell(path)}: no such file")
    if not os.path.isfile(path):
        raise MxError(f"{spell(path)}: not a regular file")
    with contextlib.ExitStack() as stack:
        with _reading(path):
            tensors = readers[suffix](path, stack)
        yield tensors


@contextlib.contextmanager
def _reading(path: str, name: str | None = None) -> Generator[None]:
    """Turn what goes wrong in a library that reads a file into an error about the file.

    Raises:
        MxError: anything was raised; the parsers of damaged files raise nearly everything.
    """
    try:
        yield
    except MxError:
        raise
    except Exception as error:
        where = spell(path) if name is None else f"{spell(path)}: {spell(name)}"
        detail = str(error).strip().split("\n")[0] or type(error).__name__
        raise MxError(f"{where}: cannot be read: {spell(detail)}") from error


def _npy(path: str, stack: contextlib.ExitStack) -> list[Tensor]:
    def load() -> Array:
        mapped: Array = np.load(path, mmap_mode="r", allow_pickle=False)
        return mapped.view(np.ndarray)

    with open(path, "rb") as file:
        name = os.path.splitext(os.path.basename(path))[0]
        return [_array(name, file, os.path.getsize(path), load)]


def _npz(path: str, stack: contextlib.ExitStack) -> list[Tensor]:
    archive = stack.enter_context(zipfile.ZipFile(path))

    def member(info: zipfile.ZipInfo) -> Tensor:
        def load() -> Array:
            with archive.open(info) as file:
                return np.lib.format.read_array(file, allow_pickle=False)

        with _reading(path, info.filename), archive.open(info) as file:
            return _array(info.filename.removesuffix(".npy"), file, info.file_size, load)

    members = [info for info in archive.infolist() if info.filename.endswith(".npy")]
    if not members:
        raise MxError(f"{spell(path)}: no numpy array in this archive")
    return [member(info) for info in members]


def _array(name: str, file: IO[bytes], size: int, load: Callable[[], Array]) -> Tensor:
    """Return the tensor that a .npy header at the start of a file of `size` bytes describes."""
    version = np.lib.format.read_magic(file)
    # Version 3 differs from 2 in the encoding of field names only, and arrays with fields are skipped.
    old = version == (1, 0)
    read_header = np.lib.format.read_array_header_1_0 if old else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(file)
    # Python's integers hold the size of any shape; numpy's would overflow.
    needed, left = math.prod(shape) * dtype.itemsize, size - file.tell()
    if min(shape, default=0) < 0:
        raise ValueError(f"there is a negative extent in its shape {shape}")
    if needed > left and not dtype.hasobject:
        raise ValueError(f"shape {shape} of {dtype} needs {needed} bytes, but only {left} follow")
    # numpy writes bfloat16, which it does not know, as two bytes without a meaning.
    if dtype == np.dtype("V2"):
        return Tensor(name, shape, "bf16", lambda: load().view(_BF16), "2-byte values without a type, taken as bf16")
    kind = _FLOATS.get(dtype.newbyteorder("="), spell(str(dtype)))
    return Tensor(name, shape, kind, load, _CONVERSIONS.get(kind, ""))


def _safetensors(path: str, stack: contextlib.ExitStack) -> list[Tensor]:
    library = extra("safetensors", "safetensors", "reading .safetensors files")
    file = stack.enter_context(library.safe_open(path, framework="numpy"))

    def tensor(name: str) -> Tensor:
        header = file.get_slice(name)
        kind = str(header.get_dtype()).lower()
        shape = tuple(header.get_shape())
        return Tensor(name, shape, kind, lambda: file.get_tensor(name), _CONVERSIONS.get(kind, ""))

    return [tensor(name) for name in sorted(file.keys(), key=_natural)]


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a sorting key by which layer 2 comes before layer 10."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", name)]


def extra(module: str, name: str, purpose: str) -> Any:
    """Import a package that an extra of this one installs.

    Raises:
        MxError: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise MxError(f"{purpose} needs {package}, which is not installed: pip install 'mx-dialect[{name}]'") from None


@contextlib.contextmanager
def _progress(total: int) -> Generator[Callable[[int], None]]:
    """Show a bar on standard error if that is a terminal, tqdm is installed and the work takes over a second."""
    try:
        tqdm = importlib.import_module("tqdm").tqdm
    except ImportError:
        yield lambda _: None
        return
    layout = "{percentage:3.0f}% |{bar}| {elapsed} elapsed, {remaining} left"
    with tqdm(total=total, delay=1, leave=False, disable=None, bar_format=layout, file=sys.stderr) as bar:
        yield bar.update


# Writing.


def spell(name: str) -> str:
    """Return a name from outside as it may be printed: on one line, without what a terminal would obey."""
    return name if name.isprintable() else ascii(name)


def table(summary: Summary) -> str:
    """Return the summary as lines of aligned columns."""
    lines = [f"{spell(summary.path)}: blocks of {summary.block_size} along axis {summary.axis}"]
    if summary.reports:
        head = f"{'':2}{'format':<12}{'rounding':<10}{'SQNR dB':>10}{'saturated':>13}{'underflow':>13}"
        lines += ["", head, "-" * len(head)]
    groups = [(_title(r.tensor), [*r.notes()], r.errors) for r in summary.reports]
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
    lines += [f"skipped {_title(tensor)}: {reason}" for tensor, reason in summary.skipped]
    return "\n".join(lines).rstrip("\n")


def _title(tensor: Tensor) -> str:
    shape = "x".join(map(str, tensor.shape)) or "0-d"
    return f"{spell(tensor.name)}  {shape} {tensor.dtype}"


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


# The command.


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
        from mx_dialect import report_plot

        draw = report_plot.prepare(arguments.plot)
    cases = [Case(element_type, mode) for element_type in arguments.formats for mode in arguments.rounding]
    summary = summarize(arguments.file, cases, arguments.block_size, arguments.axis, draw is not None)
    text = as_json(summary) if arguments.json else table(summary)
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)
    if draw is not None:
        draw(summary)


if __name__ == "__main__":
    sys.exit(main())
