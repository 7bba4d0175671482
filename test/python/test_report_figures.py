"""The figures of the report, by hand and against exact arithmetic."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_checks import FORMATS, MODES, agree, expected, exponent, measured, spread

from mx_dialect.report import quantization_error
from mx_dialect.report.quantization_error import Case, Error, summarize


@pytest.mark.parametrize("compiled", [False, True], ids=["numpy", "compiled"])
def test_figures_by_hand(compiled: bool):
    # E2M1 has 0, 0.5, 1, 1.5, 2, 3, 4, 6; amax 7 makes the scale 2^(2-2). 0.25 is a tie and goes to 0.
    x = np.array([[7, -7, 0.25, 0.2, 0, -0.0, 0.26, 2.4] + [1] * 24], np.float32)
    error = measured(x, [Case("f4E2M1FN", "floor")], compiled=compiled).errors["f4E2M1FN", "floor"]
    signal = 2 * 49 + 0.25**2 + float(np.float32(0.2)) ** 2 + float(np.float32(0.26)) ** 2 + 24
    signal += float(np.float32(2.4)) ** 2
    noise = 2 + 0.25**2 + float(np.float32(0.2)) ** 2
    noise += (0.5 - float(np.float32(0.26))) ** 2 + (float(np.float32(2.4)) - 2) ** 2
    agree(error, Error(32, 30, signal, noise, 2, 2))
    assert error.saturation == 2 / 32
    assert error.underflow == 2 / 30
    assert error.sqnr == pytest.approx(10 * math.log10(signal / noise), rel=1e-12)


@pytest.mark.parametrize("rounding", MODES)
@pytest.mark.parametrize("element_type", FORMATS)
def test_figures_of_every_case(element_type: str, rounding: str):
    x = spread(1, (12, 64))
    x[3, :32] = 0
    x[4, :32] = np.ldexp(np.linspace(1, 2, 32, dtype=np.float32), -140)
    case = Case(element_type, rounding)
    agree(measured(x, [case]).errors[case], expected(x, case, 32, -1))


@settings(max_examples=50)
@given(
    shape=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    axis=st.integers(0, 3),
    log_block=st.integers(0, 5),
    log_piece=st.integers(0, 8),
    fortran=st.booleans(),
)
def test_figures_do_not_depend_on_pieces(shape: list[int], axis: int, log_block: int, log_piece: int, fortran: bool):
    axis %= len(shape)
    x = spread(2, tuple(shape))
    case = Case("f8E4M3FN", "floor")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantization_error, "_PIECE", 1 << log_piece)
        array = np.asfortranarray(x) if fortran else x
        found = measured(array, [case], 1 << log_block, axis - len(shape), with_scales=True)
    agree(found.errors[case], expected(x, case, 1 << log_block, axis))
    extent = shape[axis]
    assert found.padding == -(-extent // (1 << log_block)) * (1 << log_block) - extent
    padded = np.pad(x, [(0, found.padding if a == axis else 0) for a in range(x.ndim)])
    blocks = np.abs(np.moveaxis(padded, axis, -1)).reshape(*np.delete(shape, axis), -1, 1 << log_block).max(axis=-1)
    codes = np.vectorize(lambda amax: exponent(amax, *case) + 127, otypes=[np.uint8])(blocks)
    assert found.scales is not None
    np.testing.assert_array_equal(np.moveaxis(found.scales, axis, -1), codes)


def test_compiled_figures_are_those_of_numpy(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(quantization_error, "_PIECE", 1 << 10)
    x = spread(3, (5, 7, 100))
    x[1, 2, 3] = np.nan
    cases = [Case("f8E5M2", "rceil"), Case("i8", "floor")]
    with_numpy = measured(x, cases, 32, 2, with_scales=True)
    with_kernels = measured(x, cases, 32, 2, with_scales=True, compiled=True)
    for case in cases:
        # The sums run over rows of zeros as well, in another grouping.
        agree(with_kernels.errors[case], with_numpy.errors[case])
    np.testing.assert_array_equal(with_kernels.scales, with_numpy.scales)
    assert with_kernels.left_out == with_numpy.left_out == 32


@pytest.mark.parametrize(("elements", "used"), [(31, False), (32, True)])
def test_long_inputs_are_compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, elements: int, used: bool):
    monkeypatch.setattr(quantization_error, "_COMPILED_FROM", 32)
    seen: list[bool] = []
    functions = quantization_error._functions

    def spy(compiled: bool) -> Any:
        seen.append(compiled)
        return functions(False)

    monkeypatch.setattr(quantization_error, "_functions", spy)
    np.save(tmp_path / "x.npy", np.ones(elements, np.float32))
    summarize(str(tmp_path / "x.npy"), [Case("i8", "floor")])
    assert seen == [used]


def test_blocks_with_nan_or_inf_are_left_out_and_counted():
    x = spread(4, (4, 80))
    clean = x.copy()
    x[0, 3], x[0, 5], x[2, 70] = np.nan, -np.inf, np.inf
    clean[0, :32] = clean[2, 64:] = 0
    case = Case("f6E2M3FN", "floor")
    found = measured(x, [case], with_scales=True)
    wanted = expected(clean, case, 32, -1)
    wanted.count -= 32 + 16
    agree(found.errors[case], wanted)
    assert (found.non_finite, found.left_out) == (3, 48)
    assert found.scales is not None
    assert np.argwhere(found.scales == 255).tolist() == [[0, 0], [2, 2]]
    assert "3 NaN or Inf: their blocks, 48 values, are left out" in list(found.notes())


def test_sqnr_at_its_limits():
    case = Case("f8E4M3FN", "ceil")
    top = np.full(32, np.finfo(np.float32).max)
    assert measured(top, [case]).errors[case].sqnr == -math.inf
    assert measured(np.ones(32, np.float32), [case]).errors[case].sqnr == math.inf
    for empty in (np.zeros(32, np.float32), np.full(32, np.nan, np.float32)):
        assert math.isnan(measured(empty, [case]).errors[case].sqnr)
    assert math.isnan(measured(np.full(32, np.nan, np.float32), [case]).errors[case].saturation)


def test_a_block_beyond_the_extent_costs_no_memory():
    x = spread(5, (3, 5))
    case = Case("i8", "floor")
    found = measured(x, [case], 1 << 60)
    agree(found.errors[case], expected(x, case, 8, -1))
    assert found.padding == (1 << 60) - 5


def test_progress_reaches_its_total(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(quantization_error, "_PIECE", 64)
    x = spread(7, (10, 50))
    x[0, 0] = np.nan
    np.savez(tmp_path / "x.npz", a=x, b=x[0], c=np.arange(3))
    steps: list[int] = []

    class Progress:
        def __init__(self, total: int):
            steps.append(-total)

        def __enter__(self) -> Callable[[int], None]:
            return steps.append

        def __exit__(self, *_: object) -> None:
            pass

    summarize(str(tmp_path / "x.npz"), [Case("i8", "floor"), Case("i8", "ceil")], progress=Progress)
    assert steps[0] == -2 * 550
    assert sum(steps) == 0
    assert len(steps) > 5
