"""The picture of `mx_dialect.report`: for each tensor, SQNR by format and rounding, and the scales of its blocks."""

import io
import os
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from mx_dialect.diagnostics import MxError
from mx_dialect.formats import E8M0, ELEMENT_FORMATS
from mx_dialect.report.quantization_error import Case, Report, Summary
from mx_dialect.report.tensor_files import extra, spell

Array: TypeAlias = npt.NDArray[Any]

# A picture of more would be too tall to read.
_MOST_TENSORS = 6
# Cells of the heat map along an axis, about one a pixel.
_MOST_CELLS = 512

# Colours that stay apart for colour-blind readers (Okabe and Ito), one a rounding mode.
_COLOURS = {"floor": "#0072b2", "ceil": "#e69f00", "even": "#009e73", "rceil": "#cc79a7"}
_NAN_COLOUR, _ZERO_COLOUR, _TEXT, _GRID = "#d62728", "#dddddd", "#333333", "#e4e4e4"


def prepare(path: str) -> Callable[[Summary], None]:
    """Return what draws a summary into a file, which is written as a whole or not at all.

    Raises:
        MxError: matplotlib is missing, or the file could not be written in the end. The drawing raises it too.
    """
    figures = extra("matplotlib.figure", "plot", "--plot")
    backend = extra("matplotlib.backends.backend_agg", "plot", "--plot")
    kind = os.path.splitext(path)[1].lower().removeprefix(".")
    known = sorted(backend.FigureCanvasAgg.get_supported_filetypes())
    if kind not in known:
        raise MxError(f"--plot {spell(path)}: expected a file named .png, or one of .{', .'.join(known)}")
    if os.path.exists(path) and not os.path.isfile(path):
        raise MxError(f"--plot {spell(path)}: this exists and is no regular file")
    if not os.path.isdir(os.path.dirname(path) or "."):
        raise MxError(f"--plot {spell(path)}: there is no such folder")

    def draw(summary: Summary) -> None:
        if not summary.reports:
            raise MxError(f"--plot {spell(path)}: there is nothing to draw")
        image = io.BytesIO()
        _figure(figures, summary).savefig(image, format=kind, dpi=130)
        _write(path, image.getvalue())

    return draw


def _write(path: str, data: bytes) -> None:
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except OSError as error:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise MxError(f"--plot {spell(path)}: cannot be written: {error.strerror}") from None


def _figure(figures: Any, summary: Summary) -> Any:
    """Return a figure with a row a tensor: bars on the left, the heat map on the right."""
    largest = sorted(summary.reports, key=lambda r: -r.tensor.size)[:_MOST_TENSORS]
    shown = [report for report in summary.reports if report in largest]
    figure = figures.Figure(figsize=(13, 0.9 + 3.7 * len(shown)), layout="constrained")
    title = f"{_plain(os.path.basename(summary.path))}: blocks of {summary.block_size} along axis {summary.axis}"
    if len(shown) < len(summary.reports):
        title += f" (the {len(shown)} largest of {len(summary.reports)} tensors)"
    figure.suptitle(title, x=0.01, ha="left", fontsize=13, color=_TEXT, parse_math=False)
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)
    rows = figure.subplots(len(shown), 2, squeeze=False, width_ratios=(1.15, 1))
    for (bars, heat), report in zip(rows, shown, strict=True):
        _draw_errors(bars, report)
        _draw_scales(figure, heat, report)
    handles, modes = rows[0][0].get_legend_handles_labels()
    labels = [f"rounding: {modes[0]}", *modes[1:]]
    figure.legend(handles, labels, ncols=len(labels), frameon=False, loc="upper right", bbox_to_anchor=(1, 1))
    return figure


def _plain(name: str) -> str:
    """Return a name in letters that every font has, shortened in the middle."""
    text = spell(name).encode("ascii", "backslashreplace").decode()
    return text if len(text) <= 60 else f"{text[:28]} ... {text[-28:]}"


def _draw_errors(axes: Any, report: Report) -> None:
    formats = list(dict.fromkeys(case.element_type for case in report.errors))
    modes = list(dict.fromkeys(case.rounding for case in report.errors))
    finite = [e.sqnr for e in report.errors.values() if np.isfinite(e.sqnr)]
    top, bottom = max([1.0, *finite]), min([0.0, *finite])
    width = 0.8 / len(modes)
    for m, mode in enumerate(modes):
        places = [f + (m - (len(modes) - 1) / 2) * width for f in range(len(formats))]
        errors = [report.errors[Case(element_type, mode)].sqnr for element_type in formats]
        # What has no height: nothing lost reaches the top, the rest (all zeros; infinite error) stays on the floor.
        heights = [e if np.isfinite(e) else top if e == np.inf else 0.0 for e in errors]
        axes.bar(places, heights, width * 0.92, color=_COLOURS[mode], label=mode)
        for place, height, error in zip(places, heights, errors, strict=True):
            text = "exact" if error == np.inf else "none" if np.isnan(error) else f"{error:.1f}"
            axes.annotate(
                text,
                (place, max(height, 0)),
                xytext=(0, 2),
                textcoords="offset points",
                ha="center",
                va="bottom",
                fontsize=8 if len(modes) < 3 else 7,
                rotation=0 if len(modes) < 3 else 90,
                color=_TEXT,
            )
    axes.set_title(_plain(str(report.tensor)), fontsize=10, parse_math=False)
    axes.set_xticks(range(len(formats)), [ELEMENT_FORMATS[f].name.replace(" ", "\n") for f in formats], fontsize=9)
    axes.set_ylabel("SQNR (dB)")
    axes.set_ylim(bottom * 1.1, top * 1.18)
    if not finite:
        axes.set_yticks([])
    axes.set_axisbelow(True)
    axes.grid(axis="y", color=_GRID)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_scales(figure: Any, axes: Any, report: Report) -> None:
    assert report.scales is not None
    grid, rows, columns = _grid(report.scales, report.axis)
    cells = _largest_of_cells(grid)
    exponents = np.ma.masked_equal(cells, E8M0.nan_code).astype(np.float64) - E8M0.bias
    # Zero blocks have the smallest scale of all; they must not set the range of colours.
    ordinary = cells[(cells > 0) & (cells != E8M0.nan_code)].astype(np.int64) - E8M0.bias
    low, high = (int(ordinary.min()), int(ordinary.max())) if ordinary.size else (0, 0)
    image = axes.imshow(
        exponents,
        aspect="auto",
        interpolation="nearest",
        cmap="viridis",
        vmin=low - 0.5,
        vmax=high + 0.5,
        extent=(-0.5, grid.shape[1] - 0.5, grid.shape[0] - 0.5, -0.5),
    )
    image.set_cmap(image.get_cmap().with_extremes(bad=_NAN_COLOUR, under=_ZERO_COLOUR))
    case = next(iter(report.errors))
    coarse = ", largest of each cell" if cells.shape != grid.shape else ""
    axes.set_title(f"block scales, {case.element_type} {case.rounding}{coarse}", fontsize=10)
    axes.set_xlabel(columns)
    axes.set_ylabel(rows)
    bar = figure.colorbar(image, ax=axes, label="log2 of the scale")
    for line in (axes.xaxis, axes.yaxis, bar.ax.yaxis):
        line.get_major_locator().set_params(integer=True, min_n_ticks=1)
    if grid.shape[0] == 1:
        axes.set_yticks([])
    marks = [("NaN or Inf", _NAN_COLOUR, E8M0.nan_code), ("all zero", _ZERO_COLOUR, 0)]
    for label, colour, code in marks:
        if (cells == code).any():
            axes.plot([], [], "s", color=colour, markeredgecolor=_TEXT, markeredgewidth=0.5, label=label)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8, ncols=2, frameon=False, loc="upper right", bbox_to_anchor=(1.02, -0.09))


def _grid(scales: Array, axis: int) -> tuple[Array, str, str]:
    """Return the scales of all blocks in two dimensions, and what its rows and its columns are."""
    if scales.ndim == 1:
        return scales[np.newaxis], "", "block"
    if scales.ndim == 2:
        names = [f"block along axis {a}" if a == axis else f"index along axis {a}" for a in (0, 1)]
        return scales, names[0], names[1]
    rows = np.moveaxis(scales, axis, -1)
    return rows.reshape(-1, rows.shape[-1]), "index along the other axes", f"block along axis {axis}"


def _largest_of_cells(grid: Array) -> Array:
    """Return the grid made so coarse that it can be drawn, each cell the largest of what it covers."""
    for axis in (0, 1):
        cells = min(grid.shape[axis], _MOST_CELLS)
        starts = [cell * grid.shape[axis] // cells for cell in range(cells)]
        grid = np.maximum.reduceat(grid, starts, axis=axis)
    return grid
