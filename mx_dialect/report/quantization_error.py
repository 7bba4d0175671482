"""What MX quantization does to tensors, in figures: `Error` for one format and rounding mode, `summarize` for a file.

The figures are defined in `mx_dialect.report`.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from mx_dialect import reference
from mx_dialect.formats import E8M0, ELEMENT_FORMATS
from mx_dialect.report.tensor_files import FLOATS, Tensor, open_tensors, reading

Array: TypeAlias = npt.NDArray[Any]
# Told how many steps have been done.
Advance: TypeAlias = Callable[[int], object]

# Elements of a piece: enough that calls cost nothing, few enough for the caches.
_PIECE = 1 << 17
# Up to this many elements numpy is done before kernels are compiled; both give the same bits.
_COMPILED_FROM = 1 << 22


class Case(NamedTuple):
    """An element format, as MLIR spells it, and a rounding mode."""

    element_type: str
    rounding: str


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
        if self.tensor.dtype == "f64":
            yield "converted to f32 first"
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


def _no_progress(total: int) -> AbstractContextManager[Advance]:
    return contextlib.nullcontext(lambda _: None)


def summarize(
    path: str,
    cases: Sequence[Case],
    block_size: int = 32,
    axis: int = -1,
    with_scales: bool = False,
    progress: Callable[[int], AbstractContextManager[Advance]] = _no_progress,
) -> Summary:
    """Measure every tensor of a file in every case. `progress` gets the number of steps, and returns what counts.

    Raises:
        MxError: the file cannot be read, or reading it needs a package that is not installed.
    """
    summary = Summary(path, block_size, axis)
    with open_tensors(path) as tensors:
        obstacles = [(tensor, _obstacle(tensor, axis)) for tensor in tensors]
        summary.skipped = [(tensor, obstacle) for tensor, obstacle in obstacles if obstacle is not None]
        todo = [tensor for tensor, obstacle in obstacles if obstacle is None]
        elements = sum(tensor.size for tensor in todo)
        with progress(elements * len(cases)) as advance:
            for tensor in todo:
                with reading(path, tensor.name):
                    values = tensor.load()
                report = measure(
                    tensor, values, cases, block_size, axis, with_scales, elements >= _COMPILED_FROM, advance
                )
                summary.reports.append(report)
    return summary


def _obstacle(tensor: Tensor, axis: int) -> str | None:
    """Return why there is nothing to say about a tensor, or None."""
    if tensor.dtype not in FLOATS:
        return f"its type is none of {', '.join(FLOATS)}"
    if not tensor.shape:
        return "a 0-d tensor has no axis to divide into blocks"
    if not -len(tensor.shape) <= axis < len(tensor.shape):
        return f"it has no axis {axis}"
    return None if tensor.size else "it is empty"


def measure(
    tensor: Tensor,
    values: Array,
    cases: Sequence[Case],
    block_size: int,
    axis: int,
    with_scales: bool = False,
    compiled: bool = False,
    advance: Advance = lambda _: None,
) -> Report:
    """Measure one tensor, not empty, of rank 1 or more, whose `values` are as `tensor` says.

    `compiled` chooses kernels over numpy, which only time can tell apart. `advance` hears of elements times cases.
    """
    axis %= values.ndim
    extent = values.shape[axis]
    report = Report(tensor, axis, -extent % block_size, {case: Error() for case in cases})
    # A block that is larger than the extent would hold the same values and more zeros.
    block_size = min(block_size, 1 << (extent - 1).bit_length())

    # In the order of memory, as [before, extent, after].
    flipped = values.flags.f_contiguous and not values.flags.c_contiguous
    ordered, at = (values.T, values.ndim - 1 - axis) if flipped else (values, axis)
    before, after = ordered.shape[:at], ordered.shape[at + 1 :]
    source = ordered.reshape(math.prod(before), extent, math.prod(after))
    blocks = (source.shape[0], -(-extent // block_size), source.shape[2])
    scales = np.zeros(blocks if with_scales else (0, 0, 0), np.uint8)

    # All pieces have one shape, so that one kernel a case is compiled.
    piece = np.zeros((max(1, _PIECE // block_size), block_size), np.float32)
    for place in _ranges(blocks, len(piece)):
        lengths = _fill(piece, source, place)
        used = lengths.size
        finite = np.isfinite(piece)
        bad = ~np.all(finite, axis=1)
        left_out = int(lengths.reshape(-1)[bad[:used]].sum())
        report.non_finite += int(finite.size - np.count_nonzero(finite))
        report.left_out += left_out
        piece[bad] = 0

        count = int(lengths.sum())
        codes = _add_errors(report.errors, piece if compiled else piece[:used], count - left_out, compiled)
        advance(count * len(cases))
        if with_scales:
            codes = np.where(bad[:used], E8M0.nan_code, codes[:used, 0])
            scales[place] = codes.reshape(lengths.shape).swapaxes(1, 2)
    if with_scales:
        shaped = scales.reshape(*before, blocks[1], *after)
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


def _fill(piece: Array, source: Array, place: tuple[slice, slice, slice]) -> npt.NDArray[np.int64]:
    """Copy blocks of `source` [before, extent, after] into the first rows of `piece`; all else of it becomes zero.

    Returns how many elements of each block there are, fewer than a block has at the end of an extent only, as
    [before, after, blocks], which is the order of the rows.
    """
    block_size = piece.shape[1]
    before, blocks, after = place
    part = source[before, blocks.start * block_size : blocks.stop * block_size, after].swapaxes(1, 2)
    extent = part.shape[2]
    rows = (*part.shape[:2], -(-extent // block_size))
    used = math.prod(rows)
    filled = piece[:used].reshape(*rows[:2], rows[2] * block_size)
    # A float64 may become infinite; a signalling NaN sets a flag.
    with np.errstate(over="ignore", invalid="ignore"):
        filled[..., :extent] = part
    filled[..., extent:] = 0
    piece[used:] = 0
    lengths = np.full(rows, block_size, np.int64)
    lengths[..., -1] -= filled.shape[2] - extent
    return lengths


def _add_errors(errors: dict[Case, Error], x: Array, count: int, compiled: bool) -> Array:
    """Add the errors of blocks [n, block size], finite float32, to those of each case.

    `count` is how many of the elements count. Returns the scale codes of the first case, [n, 1].
    """
    quantize, dequantize = _functions(compiled)
    exact = x.astype(np.float64)
    magnitude = np.abs(exact)
    signal, nonzero = _energy(exact), int(np.count_nonzero(x))
    scales: list[Array] = []
    for case in errors:
        quantized = quantize(x, case.element_type, x.shape[1], -1, case.rounding)
        values: Array = dequantize(quantized)
        largest = ELEMENT_FORMATS[case.element_type].max_normal * reference.decode_scale(quantized.scale)
        errors[case] += Error(
            count,
            nonzero,
            signal,
            _energy(exact - values),
            int(np.count_nonzero(magnitude > largest)),
            nonzero - int(np.count_nonzero(values)),
        )
        scales.append(quantized.scale.view(np.uint8))
    return scales[0]


def _energy(x: npt.NDArray[np.float64]) -> float:
    # Not with vdot: the threads of BLAS gain nothing on a piece, and wait for each other on a busy machine.
    return float(np.sum(np.square(x)))


def _functions(compiled: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    if not compiled:
        return reference.quantize, reference.dequantize
    from mx_dialect import arrays

    return arrays.quantize, arrays.dequantize
