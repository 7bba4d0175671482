# %% [markdown]
# # MX formats in pictures
#
# What each element format keeps of a number, how a block's shared scale is rounded, and what that costs. A script in
# cells: run it as a whole, `python examples/formats_tour.py`, or cell by cell in an editor that knows `# %%`. It needs
# matplotlib (`pip install 'mx-dialect[plot]'`), writes its pictures to docs/pictures, or to `$MX_TOUR_OUTPUT`, and
# quantizes `$MX_TOUR_SIZE` values for each bar.

# %%
import importlib
import os
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

import mx_dialect
from mx_dialect.formats import ELEMENT_FORMATS, ROUNDING_MODES, ElementFormat

Array: TypeAlias = npt.NDArray[Any]

# Files are drawn, no windows opened.
importlib.import_module("matplotlib").use("Agg")
pyplot: Any = importlib.import_module("matplotlib.pyplot")
pillow: Any = importlib.import_module("PIL.Image")

OUTPUT = Path(os.environ.get("MX_TOUR_OUTPUT", Path(__file__).parents[1] / "docs" / "pictures"))
SIZE = int(os.environ.get("MX_TOUR_SIZE", 1 << 18))

# Colours that stay apart for colour-blind readers (Okabe and Ito).
COLOURS = ("#0072b2", "#56b4e9", "#009e73", "#e69f00", "#d55e00", "#cc79a7")
FORMAT_COLOURS = dict(zip(ELEMENT_FORMATS, COLOURS, strict=True))
ROUNDING_COLOURS = dict(zip(ROUNDING_MODES, ("#0072b2", "#e69f00", "#009e73", "#cc79a7"), strict=True))

pyplot.rcParams.update(
    {
        "figure.dpi": 100,
        "figure.constrained_layout.use": True,
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
    }
)


def save(figure: Any, name: str) -> None:
    """Write a picture: few colours make a small file, and the same drawing the same bytes."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    figure.canvas.draw()
    image = pillow.fromarray(np.asarray(figure.canvas.buffer_rgba())).convert("RGB")
    image.quantize(64, dither=0).save(OUTPUT / name, optimize=True)
    pyplot.close(figure)


def title_of(fmt: ElementFormat) -> str:
    """Return a format's OCP name with its bits for each element, scale included."""
    return f"{fmt.name} ({fmt.bits + 8 / 32:g} bits)"


# %% [markdown]
# ## The values of each format
#
# Every positive value of an element, before the scale, on a logarithmic axis. Within a power of two floats are evenly
# spaced; below the smallest normal value subnormals get sparse, one by one. MXINT8 has one spacing for all.


# %%
def positive_values(fmt: ElementFormat) -> Array:
    """Return all positive finite values of a format."""
    codes = np.arange(1, fmt.max_magnitude + 1, dtype=np.uint8)
    return mx_dialect.reference.decode(codes, fmt.mlir)


def draw_values() -> None:
    """Draw a row of ticks for each format, subnormals lighter."""
    figure, axes = pyplot.subplots(figsize=(8.6, 3.4))
    for row, fmt in enumerate(reversed(ELEMENT_FORMATS.values())):
        values = positive_values(fmt)
        subnormal = values < fmt.min_normal
        for chosen, alpha in ((~subnormal, 1.0), (subnormal, 0.45)):
            axes.vlines(values[chosen], row - 0.33, row + 0.33, color=FORMAT_COLOURS[fmt.mlir], alpha=alpha, lw=0.9)
        axes.annotate(f"{len(values)}", (1.01, row), xycoords=("axes fraction", "data"), va="center", fontsize=9)
    axes.annotate("values", (1.01, len(ELEMENT_FORMATS) - 0.4), xycoords=("axes fraction", "data"), fontsize=9)
    axes.set_xscale("log", base=2)
    axes.set_yticks(range(len(ELEMENT_FORMATS)), [f.name for f in reversed(ELEMENT_FORMATS.values())])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("positive values of an element; subnormals are lighter")
    axes.set_title("What an element can be")
    save(figure, "formats-values.png")


draw_values()

# %% [markdown]
# ## How the shared scale is rounded
#
# The scale of a block is a power of two that follows from its largest magnitude, amax. `floor`, the OCP rule, never
# rounds it up: amax just below the next power of two is then larger than the largest element, and saturates. `rceil`
# goes up exactly where that would happen, `even` where amax, rounded to as many bits as an element has, reaches the
# next power of two, and `ceil` unless amax is a power of two: it never saturates, but leaves the upper half of the
# elements' range unused. Below 1.75 all modes give amax the same error.


# %%
def relative_error_of_amax(fmt: ElementFormat, rounding: str, amax: Array) -> Array:
    """Return |error| / amax of blocks whose largest magnitude is amax and whose other values are zero."""
    blocks = np.zeros((len(amax), 32), np.float32)
    blocks[:, 0] = amax
    quantized = mx_dialect.reference.quantize(blocks, fmt.mlir, rounding=rounding)
    found = mx_dialect.reference.dequantize(quantized)
    return np.abs(found[:, 0] - blocks[:, 0]) / blocks[:, 0]


def draw_rounding() -> None:
    """Draw the error of a block's largest value over where it lies between two powers of two."""
    amax = np.linspace(1.5, 2, 256, endpoint=False, dtype=np.float32)
    shown = ("f8E4M3FN", "f6E2M3FN", "f4E2M1FN")
    figure, panels = pyplot.subplots(len(shown), 1, figsize=(8.6, 5.2), sharex=True)
    # Wide lines below narrow ones, so that modes that agree are both seen.
    widths = dict(zip(ROUNDING_MODES, (6.0, 4.2, 2.6, 1.2), strict=True))
    for axes, mlir in zip(panels, shown, strict=True):
        fmt = ELEMENT_FORMATS[mlir]
        for rounding, colour in ROUNDING_COLOURS.items():
            error = 100 * relative_error_of_amax(fmt, rounding, amax)
            axes.plot(amax, error, color=colour, lw=widths[rounding], label=rounding, solid_joinstyle="round")
        axes.set_title(f"{fmt.name}: largest element {fmt.max_normal:g}", fontsize=10)
        axes.set_ylabel("error in %")
        axes.set_ylim(bottom=0)
        axes.grid(axis="y", color="#e4e4e4")
    panels[0].legend(ncols=len(ROUNDING_MODES), loc="upper left", frameon=False, fontsize=9)
    panels[-1].set_xlabel("amax of the block, as a multiple of a power of two")
    save(figure, "formats-rounding.png")


draw_rounding()

# %% [markdown]
# ## What quantizing costs
#
# The ratio of signal to noise after quantizing and dequantizing, in decibels (6 dB are a bit), for four kinds of data.
# In a block with an outlier the scale follows the outlier, and what is small becomes smaller than an element's step.


# %%
def samples(kind: str, size: int, rng: np.random.Generator) -> Array:
    """Return `size` values, in rows of 1024."""
    shape = (max(size // 1024, 1), 1024)
    values = rng.standard_normal(shape, dtype=np.float32)
    if kind == "uniform":
        return rng.uniform(-1, 1, shape).astype(np.float32)
    if kind == "outliers":
        # One value in 256 is 50 times as large as it would be.
        return np.where(rng.random(shape) < 1 / 256, 50 * values, values)
    if kind == "heavy tail":
        return rng.standard_t(2.5, shape).astype(np.float32)
    return values


KINDS = ("normal", "uniform", "heavy tail", "outliers")


def sqnr(x: Array, mlir: str, block_size: int = 32, rounding: str = "floor") -> float:
    """Return 10 log10 of signal to noise of the values that are not outliers, that is up to 5 in magnitude."""
    # Exact numpy, to the bit what mx_dialect.quantize computes; for a picture that is faster than compiling kernels.
    quantized = mx_dialect.reference.quantize(x, mlir, block_size=block_size, rounding=rounding)
    found = mx_dialect.reference.dequantize(quantized)
    bulk = np.abs(x) <= 5
    noise = (np.asarray(found, np.float64) - x)[bulk]
    return float(10 * np.log10(np.square(x[bulk], dtype=np.float64).sum() / max(np.square(noise).sum(), 1e-300)))


def draw_sqnr() -> None:
    """Draw a group of bars for each kind of data, a bar for each format."""
    figure, axes = pyplot.subplots(figsize=(8.6, 3.8))
    data = {kind: samples(kind, SIZE, np.random.default_rng(0)) for kind in KINDS}
    width = 0.8 / len(ELEMENT_FORMATS)
    for number, (mlir, fmt) in enumerate(ELEMENT_FORMATS.items()):
        heights = [sqnr(data[kind], mlir) for kind in KINDS]
        places = np.arange(len(KINDS)) + (number - (len(ELEMENT_FORMATS) - 1) / 2) * width
        bars = axes.bar(places, heights, width * 0.92, color=FORMAT_COLOURS[mlir], label=title_of(fmt))
        axes.bar_label(bars, fmt="%.0f", fontsize=8, padding=1)
    axes.set_xticks(range(len(KINDS)), KINDS)
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel("signal to noise in dB")
    axes.set_ylim(0, 60)
    axes.grid(axis="y", color="#e4e4e4")
    axes.set_axisbelow(True)
    axes.legend(ncols=3, loc="upper right", frameon=False, fontsize=9)
    axes.set_title("Blocks of 32, rounding floor; values up to 5 in magnitude")
    save(figure, "formats-sqnr.png")


draw_sqnr()

# %% [markdown]
# ## Small blocks or many bits
#
# A smaller block has its own scale nearer at hand, so an outlier spoils fewer neighbours, and costs more bits. Each
# line is a format, each point a block size from 8 to 128; further up is less noise, further left less memory.

# %%
BLOCK_SIZES = (8, 16, 32, 64, 128)


def draw_block_sizes() -> None:
    """Draw signal to noise over bits for each element, scale included, on data with outliers."""
    figure, panels = pyplot.subplots(1, 2, figsize=(8.6, 3.9), sharey=True)
    for axes, kind in zip(panels, ("normal", "outliers"), strict=True):
        x = samples(kind, SIZE, np.random.default_rng(0))
        for mlir, fmt in ELEMENT_FORMATS.items():
            bits = [fmt.bits + 8 / block for block in BLOCK_SIZES]
            ratios = [sqnr(x, mlir, block) for block in BLOCK_SIZES]
            axes.plot(bits, ratios, color=FORMAT_COLOURS[mlir], lw=1.5, marker="o", markersize=4, label=fmt.name)
            # The OCP block size stands out.
            place = BLOCK_SIZES.index(32)
            axes.plot(bits[place], ratios[place], "o", color=FORMAT_COLOURS[mlir], markersize=8)
        axes.set_title(kind, fontsize=10)
        axes.set_xlabel("bits an element, scale included")
        axes.grid(color="#e4e4e4")
    panels[0].set_ylabel("signal to noise in dB")
    panels[0].legend(frameon=False, fontsize=8.5, loc="upper left")
    panels[1].annotate("large dots: blocks of 32", (0.98, 0.03), xycoords="axes fraction", ha="right", fontsize=9)
    save(figure, "formats-blocks.png")


draw_block_sizes()
