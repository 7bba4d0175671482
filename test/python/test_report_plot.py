"""The plots of the report."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_checks import Run, expected, exponent, measured, spread, write_archive

from mx_dialect.diagnostics import MxError
from mx_dialect.report import quantization_error
from mx_dialect.report.quantization_error import Case


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(capsys)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return write_archive(tmp_path)


def drawn(path: Path) -> Any:
    """Return a picture's pixels, after checking that it is a PNG."""
    matplotlib_image = pytest.importorskip("matplotlib.image")
    assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    return matplotlib_image.imread(path)


def test_plot(run: Run, tmp_path: Path):
    pytest.importorskip("matplotlib")
    x = spread(12, (64, 96))
    x[3, 4], x[5] = np.nan, 0
    arrays = {"$a_{$ 中": x[0], "cube": x.reshape(4, 16, 96), "nan": x[3, :32]}
    np.savez(tmp_path / "x.npz", **arrays)
    code, out, err = run(
        tmp_path / "x.npz", "--formats", "f4E2M1FN,i8", "--rounding", "all", "--plot", tmp_path / "x.png"
    )
    assert (code, err) == (0, "")
    assert "cube  4x16x96 f32" in out
    assert drawn(tmp_path / "x.png").std() > 0.1
    assert sorted(os.listdir(tmp_path)) == ["x.npz", "x.png"]


def test_plot_shows_the_largest_tensors(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("matplotlib")
    from matplotlib import figure

    from mx_dialect.report import plot

    monkeypatch.setattr(plot, "_MOST_TENSORS", 2)
    reports = [measured(np.ones(n, np.float32), [Case("i8", "floor")], with_scales=True) for n in (64, 32, 96)]
    picture = plot._figure(figure, quantization_error.Summary("x.npy", 32, -1, reports))
    titles = [axes.get_title() for axes in picture.axes]
    assert [title for title in titles if title.startswith("x ")] == ["x  64 f32", "x  96 f32"]
    assert picture.get_suptitle() == "x.npy: blocks of 32 along axis -1 (the 2 largest of 3 tensors)"


def test_plot_shows_what_was_measured():
    pytest.importorskip("matplotlib")
    from matplotlib import figure

    from mx_dialect.report import plot

    x = spread(13, (8, 64))
    x[2, 0], x[4] = np.inf, 0
    cases = [Case("f8E4M3FN", mode) for mode in ("floor", "ceil")]
    summary = quantization_error.Summary("x.npy", 32, -1, [measured(x, cases, with_scales=True)])
    bars, heat, *_ = plot._figure(figure, summary).axes
    heights = [patch.get_height() for patch in bars.patches]
    clean = x.copy()
    clean[2, :32] = 0
    assert heights == [pytest.approx(expected(clean, case, 32, -1).sqnr) for case in cases]
    (image,) = heat.images
    exponents = image.get_array()
    assert np.argwhere(np.ma.getmaskarray(exponents)).tolist() == [[2, 0]]
    assert exponents[0, 1] == exponent(np.abs(x[0, 32:]).max(), "f8E4M3FN", "floor")
    # Zero blocks do not stretch the colours.
    assert image.norm.vmin > -50 > exponents[4, 0]
    assert [text.get_text() for text in heat.get_legend().get_texts()] == ["NaN or Inf", "all zero"]


def test_large_grids_keep_their_largest_scale():
    pytest.importorskip("matplotlib")
    from mx_dialect.report import plot

    grid = np.random.default_rng(0).integers(0, 200, (1300, 3)).astype(np.uint8)
    grid[777, 1] = 250
    coarse = plot._largest_of_cells(grid)
    assert coarse.shape == (plot._MOST_CELLS, 3)
    assert np.argwhere(coarse == 250).tolist() == [[777 * plot._MOST_CELLS // 1300, 1]]
    np.testing.assert_array_equal(coarse.max(axis=0), grid.max(axis=0))


def test_plots_that_cannot_be(run: Run, archive: Path, tmp_path: Path):
    pytest.importorskip("matplotlib")
    before = sorted(os.listdir(tmp_path))
    assert "no such folder" in run.fails(archive, "--plot", tmp_path / "missing" / "x.png")
    assert "expected a file named .png" in run.fails(archive, "--plot", tmp_path / "x.npz")
    assert "expected a file named .png" in run.fails(archive, "--plot", tmp_path / "png")
    assert sorted(os.listdir(tmp_path)) == before
    (tmp_path / "x.png").mkdir()
    assert "no regular file" in run.fails(archive, "--plot", tmp_path / "x.png")
    np.save(tmp_path / "ids.npy", np.arange(3))
    code, out, err = run(tmp_path / "ids.npy", "--plot", tmp_path / "y.png")
    assert code == 1
    assert "skipped ids" in out
    assert err == f"python -m mx_dialect.report: error: --plot {tmp_path / 'y.png'}: there is nothing to draw\n"
    assert not (tmp_path / "y.png").exists()


def test_a_plot_is_whole_or_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("matplotlib")
    from mx_dialect.report import plot

    path = tmp_path / "x.png"
    path.write_bytes(b"before")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(MxError, match="cannot be written: No space left on device"):
        plot._write(str(path), b"after")
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["x.png"]
