"""What the report should say, computed without it, and how tests run its command."""

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mx_dialect import report
from mx_dialect.report.quantization_error import Case, Error, Report, measure
from mx_dialect.report.tensor_files import Tensor

# dtype, exponent of the largest value, mantissa bits; from OCP Microscaling Formats (MX) v1.0, section 5.3.
FORMATS = {
    "f8E5M2": (ml_dtypes.float8_e5m2, 15, 2),
    "f8E4M3FN": (ml_dtypes.float8_e4m3fn, 8, 3),
    "f6E3M2FN": (ml_dtypes.float6_e3m2fn, 4, 2),
    "f6E2M3FN": (ml_dtypes.float6_e2m3fn, 2, 3),
    "f4E2M1FN": (ml_dtypes.float4_e2m1fn, 2, 1),
    "i8": (None, 0, 6),
}
MODES = ("floor", "ceil", "even", "rceil")


def largest(element_type: str) -> float:
    dtype = FORMATS[element_type][0]
    return 127 / 64 if dtype is None else float(ml_dtypes.finfo(dtype).max)


def exponent(amax: float, element_type: str, rounding: str) -> int:
    """Return the shared exponent of a block, in exact arithmetic."""
    _, emax, mantissa_bits = FORMATS[element_type]
    if amax == 0:
        return -127
    value, e = Fraction(float(amax)), math.frexp(amax)[1] - 1
    if rounding == "even":
        step = Fraction(2) ** (e - mantissa_bits)
        value = math.floor(value / step + Fraction(1, 2)) * step
        e += value == Fraction(2) ** (e + 1)
    elif rounding == "ceil":
        e += value > Fraction(2) ** e
    elif rounding == "rceil":
        e += value > Fraction(largest(element_type)) * Fraction(2) ** (e - emax)
    return max(-127, min(e - emax, 127))


def expected(x: np.ndarray, case: Case, block_size: int, axis: int) -> Error:
    """Return the error of finite float32 values, block by block."""
    total = Error()
    dtype = FORMATS[case.element_type][0]
    for row in np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis]):
        for start in range(0, len(row), block_size):
            block = row[start : start + block_size].astype(np.float64)
            e = exponent(np.abs(block).max(), *case)
            scaled = np.ldexp(block, -e)
            kept = np.clip(scaled, -largest(case.element_type), largest(case.element_type))
            rounded = np.rint(kept * 64) / 64 if dtype is None else kept.astype(dtype).astype(np.float64)
            values = np.ldexp(rounded, e)
            total += Error(
                len(block),
                np.count_nonzero(block),
                math.fsum(block**2),
                math.fsum((block - values) ** 2),
                np.count_nonzero(np.abs(scaled) > largest(case.element_type)),
                np.count_nonzero((values == 0) & (block != 0)),
            )
    return total


def agree(found: Error, wanted: Error) -> None:
    for name, value in vars(wanted).items():
        assert getattr(found, name) == pytest.approx(value, rel=1e-12), name


def measured(x: np.ndarray, cases: list[Case], block_size: int = 32, axis: int = -1, **options: Any) -> Report:
    return measure(Tensor("x", x.shape, "f32", lambda: x), x, cases, block_size, axis, **options)


def spread(seed: int, shape: tuple[int, ...], deviation: float = 3) -> np.ndarray:
    """Return values of all magnitudes around 1, some zero."""
    random = np.random.default_rng(seed)
    x = random.standard_normal(shape) * np.exp2(random.normal(0, deviation, shape))
    return np.where(random.random(shape) < 0.05, 0, x).astype(np.float32)


class Run:
    """Runs the command in process and keeps what it printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str]):
        self._capsys = capsys

    def __call__(self, *arguments: object) -> tuple[int, str, str]:
        try:
            code = report.main([str(a) for a in arguments])
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = self._capsys.readouterr()
        return code, out, err

    def fails(self, *arguments: object) -> str:
        """Return the one line on standard error of a run that must fail with code 1 and print nothing else."""
        code, out, err = self(*arguments)
        assert (code, out) == (1, "")
        assert err.startswith("python -m mx_dialect.report: error: ")
        assert err.count("\n") == 1
        return err


def write_archive(folder: Path) -> Path:
    """Write tensors that are measured, and some that are not, and return the file."""
    path = folder / "weights.npz"
    np.savez_compressed(
        path,
        weight=spread(8, (16, 40)),
        bias=np.ones(64, np.float16),
        ids=np.arange(4),
        mask=np.zeros((2, 2), bool),
        objects=np.array([{}, None], object),
        scalar=np.float32(2),
        empty=np.zeros((0, 32), np.float32),
        **{"na\x1b[31mme": np.zeros(32, np.float32)},
    )
    return path


# Packages that need not be there.


def has(module: str) -> bool:
    try:
        __import__(module)
    except ImportError:
        return False
    return True
