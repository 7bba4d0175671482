"""The report on a file: its figures against sums formed here with ml_dtypes, its errors, what it prints and draws."""

import io
import json
import math
import os
import pickle
import struct
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mx_dialect import report
from mx_dialect.diagnostics import MxError
from mx_dialect.report import quantization_error
from mx_dialect.report.quantization_error import Case, Error, Report, measure, summarize
from mx_dialect.report.tensor_files import Tensor, reading

ROOT = Path(__file__).parents[2]

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


# The figures.


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


@pytest.mark.parametrize("source", ["<f8", ">f4", "<f2", "bf16"])
def test_dtypes_of_npy(tmp_path: Path, source: str):
    x = spread(6, (4, 64), 1)
    stored = x.astype(ml_dtypes.bfloat16 if source == "bf16" else source)
    np.save(tmp_path / "x.npy", stored)
    case = Case("f8E4M3FN", "floor")
    (found,) = summarize(str(tmp_path / "x.npy"), [case]).reports
    agree(found.errors[case], expected(stored.astype(np.float32), case, 32, -1))
    notes = {"<f8": ["converted to f32 first"], "bf16": ["2-byte values without a type, taken as bf16"]}
    assert list(found.notes()) == notes.get(source, [])


def test_f64_beyond_f32_is_infinite(tmp_path: Path):
    np.save(tmp_path / "x.npy", np.array([1e300] + [1.0] * 63))
    (found,) = summarize(str(tmp_path / "x.npy"), [Case("i8", "floor")]).reports
    assert (found.non_finite, found.left_out) == (1, 32)


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


# The command.


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


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(capsys)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "weights.npz"
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


def test_table(run: Run, archive: Path):
    code, out, err = run(archive, "--formats", "f8E4M3FN,f4E2M1FN", "--rounding", "floor,rceil")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == f"{archive}: blocks of 32 along axis -1"
    at = lines.index("weight  16x40 f32")
    assert lines[at + 1] == "  (axis 1 zero-padded from 40 to 64)"
    rows = [line for line in lines if line.split()[-1:] == ["%"] or line.endswith("  -")]
    assert {len(row) for row in rows} == {len(lines[2])}
    error = expected(spread(8, (16, 40)), Case("f4E2M1FN", "rceil"), 32, 1)
    figures = [f"{error.sqnr:.2f}", "0", "%", f"{100 * error.underflow:.3f}", "%"]
    assert lines[at + 5].split() == ["rceil", *figures]
    assert lines[lines.index("bias  64 f16") + 1].split() == ["f8E4M3FN", "floor", "exact", "0", "%", "0", "%"]
    assert lines[lines.index(r"'na\x1b[31mme'  32 f32") + 1].split() == ["f8E4M3FN", "floor", "-", "0", "%", "-"]
    assert "all 3 tensors" in lines
    assert "skipped ids  4 int64: its type is none of f32, f16, bf16, f64" in lines
    assert "skipped mask  2x2 bool: its type is none of f32, f16, bf16, f64" in lines
    assert "skipped objects  2 object: its type is none of f32, f16, bf16, f64" in lines
    assert "skipped scalar  0-d f32: a 0-d tensor has no axis to divide into blocks" in lines
    assert "skipped empty  0x32 f32: it is empty" in lines
    assert "\x1b" not in out


def test_tiny_shares_are_not_printed_as_zero(run: Run, tmp_path: Path):
    x = np.ones((1 << 18,), np.float32)
    x[1] = 2.0**-20
    np.save(tmp_path / "x.npy", x)
    _, out, _ = run(tmp_path / "x.npy", "--formats", "f8E4M3FN")
    assert out.splitlines()[-1].endswith("  0 %    < 0.001 %")


def test_all_tensors_are_one(run: Run, archive: Path):
    code, out, _ = run(archive, "--json", "--formats", "f8E4M3FN")
    assert code == 0
    results = [tensor["results"][0] for tensor in json.loads(out)["tensors"]]
    signal, noise = (sum(r[key] for r in results) for key in ("signal", "noise"))
    _, out, _ = run(archive, "--formats", "f8E4M3FN")
    lines = out.splitlines()
    total = lines[lines.index("all 3 tensors") + 1].split()
    assert total[2] == f"{10 * math.log10(signal / noise):.2f}"


def test_json(run: Run, archive: Path):
    code, out, err = run(archive, "--json", "--formats", "i8", "--block-size", "16", "--axis", "0")
    assert (code, err) == (0, "")
    found = json.loads(out, parse_constant=lambda text: pytest.fail(f"{text} is no JSON"))
    assert (found["file"], found["block_size"], found["axis"]) == (str(archive), 16, 0)
    tensors = {tensor["name"]: tensor for tensor in found["tensors"]}
    weight = tensors["weight"]
    assert (weight["shape"], weight["dtype"], weight["padding"]) == ([16, 40], "f32", 0)
    error = expected(spread(8, (16, 40)), Case("i8", "floor"), 16, 0)
    (result,) = weight["results"]
    assert result["sqnr_db"] == pytest.approx(error.sqnr)
    assert result["saturated"] == pytest.approx(error.saturation)
    assert result["underflow"] == pytest.approx(error.underflow)
    (exact,) = tensors["bias"]["results"]
    assert (exact["sqnr_db"], exact["signal"], exact["noise"]) == (None, 64, 0)
    assert {s["name"] for s in found["skipped"]} == {"ids", "mask", "objects", "scalar", "empty"}


def test_a_tensor_without_the_axis_is_skipped(run: Run, archive: Path):
    _, out, _ = run(archive, "--axis", "1", "--formats", "i8")
    assert "skipped bias  64 f16: it has no axis 1" in out.splitlines()
    _, out, _ = run(archive, "--axis=-3", "--formats", "i8")
    assert "skipped weight  16x40 f32: it has no axis -3" in out.splitlines()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["x.npy", "--formats", "f8E4M3FN,fp9"],
        ["x.npy", "--formats", ""],
        ["x.npy", "--rounding", "stochastic"],
        ["x.npy", "--block-size", "24"],
        ["x.npy", "--block-size", "0"],
        ["x.npy", "--block-size", "-32"],
        ["x.npy", "--block-size", "9" * 5000],
        ["x.npy", "--axis", "last"],
        ["x.npy", "y.npy"],
    ],
)
def test_usage_errors(run: Run, arguments: list[str]):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert "python -m mx_dialect.report: error: " in err


def test_help_defines_the_figures(run: Run):
    code, out, _ = run("--help")
    assert code == 0
    assert "10 log10(sum x^2 / sum (x - dq)^2)" in out
    for element_type in FORMATS:
        assert element_type in out


def npy(header: str, data: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(text)) + text + data


def fields(descr: str, shape: str) -> str:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}"


class Bomb:
    """Unpickling it makes a file."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


BROKEN_NPY = {
    "empty": b"",
    "text": b"hello\nworld" * 20,
    "header_cut": npy(fields("'<f4'", "(2, 32)"))[:30],
    "data_cut": npy(fields("'<f4'", "(2, 32)"), bytes(255)),
    "huge": npy(fields("'<f4'", "(1000000000000, 1000000000000)"), bytes(64)),
    "wraps_to_zero": npy(fields("'<f4'", "(4611686018427387904, 4)"), bytes(64)),
    "negative": npy(fields("'<f4'", "(-1, 32)"), bytes(128)),
    "two_negatives": npy(fields("'<f4'", "(-1, -32)"), bytes(128)),
    "code": npy("__import__('os').mkdir('ran')", bytes(64)),
    "deep": npy("-" * 6000 + "1", bytes(64)),
    "version_9": npy(fields("'<f4'", "(16,)"), bytes(64), b"\x09\x00"),
    "rank_70": npy(fields("'<f4'", str((1,) * 70)), bytes(64)),
    "dtype": npy(fields("'\\n?'", "(16,)"), bytes(64)),
}


@pytest.mark.parametrize("kind", BROKEN_NPY)
def test_broken_npy(run: Run, tmp_path: Path, kind: str):
    path = tmp_path / "x.npy"
    path.write_bytes(BROKEN_NPY[kind])
    message = run.fails(path)
    assert f"{path}: " in message
    assert "cannot be read: " in message
    assert os.listdir(tmp_path) == ["x.npy"]


def test_broken_npz(run: Run, archive: Path, tmp_path: Path):
    whole = archive.read_bytes()
    path = tmp_path / "x.npz"
    for data in (b"", whole[:200], whole[:-30], b"PK\x03\x04" + bytes(100)):
        path.write_bytes(data)
        assert f"{path}: cannot be read: " in run.fails(path)
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("data.pkl", pickle.dumps(1))
    assert "no numpy array" in run.fails(path)
    for data in (npy(fields("'<f4'", "(1000000000000,)")), npy(fields("'<f4'", "(64,)"), bytes(255)), b"no array"):
        with zipfile.ZipFile(path, "w") as made:
            made.writestr("a.npy", data)
        assert f"{path}: a.npy: cannot be read: " in run.fails(path)
    # One flipped bit in the data of an array: the sum of the archive tells.
    np.savez(path, a=np.ones(64, np.float32))
    damaged = bytearray(path.read_bytes())
    damaged[damaged.index(np.ones(64, np.float32).tobytes()) + 9] ^= 1
    path.write_bytes(damaged)
    message = run.fails(path)
    assert f"{path}: a" in message
    assert "cannot be read: Bad CRC" in message


def test_what_a_parser_says_that_does_not_stand_by_itself_has_the_name_of_the_error() -> None:
    with pytest.raises(MxError, match=r"x\.npy: cannot be read: KeyError: 'descr'"), reading("x.npy"):
        raise KeyError("descr")
    with pytest.raises(MxError, match=r"x\.npy: a: cannot be read: EOFError$"), reading("x.npy", "a"):
        raise EOFError
    with pytest.raises(MxError, match=r"x\.npy: cannot be read: the end$"), reading("x.npy"):
        raise EOFError("the end")


@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_nothing_is_unpickled(run: Run, tmp_path: Path, suffix: str):
    path, trap = tmp_path / f"x.{suffix}", tmp_path / "trap"
    array = np.array([Bomb(trap)] * 4, object)
    np.save(path, array) if suffix == "npy" else np.savez(path, x=array)
    code, out, err = run(path)
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == "skipped x  4 object: its type is none of f32, f16, bf16, f64"
    assert not trap.exists()


def test_files_that_are_none(run: Run, tmp_path: Path):
    assert "no such file" in run.fails(tmp_path / "missing.npy")
    (tmp_path / "folder.npy").mkdir()
    assert "not a regular file" in run.fails(tmp_path / "folder.npy")
    os.mkfifo(tmp_path / "pipe.npy")
    assert "not a regular file" in run.fails(tmp_path / "pipe.npy")
    assert "expected a file named .npy, .npz or .safetensors" in run.fails(tmp_path / "model.pt")
    assert r"a\nb.npy': no such file" in run.fails(tmp_path / "a\nb.npy")


def test_structured_and_fortran_arrays(run: Run, tmp_path: Path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy warns of version 3.0.
        np.save(tmp_path / "s.npy", np.zeros(3, [("é中", "f4")]))
    code, out, err = run(tmp_path / "s.npy")
    assert (code, err) == (0, "")
    assert "skipped s  3" in out
    x = spread(9, (40, 64))
    np.save(tmp_path / "c.npy", x)
    np.save(tmp_path / "f.npy", np.asfortranarray(x))
    tables = [run(tmp_path / name, "--rounding", "all")[1].splitlines()[5:] for name in ("c.npy", "f.npy")]
    assert tables[0] == tables[1]
    assert len(tables[0]) == 24


def test_as_a_process(tmp_path: Path):
    np.save(tmp_path / "é.npy", spread(10, (8, 64)))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "mx_dialect.report"]
    done = subprocess.run(
        [*command, "é.npy", "--formats", "i8"], capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(r"\xe9.npy: blocks of 32 along axis -1")
    failed = subprocess.run([*command, "x.npy"], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr == "python -m mx_dialect.report: error: x.npy: no such file\n"


# Packages that need not be there.


def has(module: str) -> bool:
    try:
        __import__(module)
    except ImportError:
        return False
    return True


def test_without_the_extras(run: Run, archive: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    for module in ("tqdm", "matplotlib.figure", "safetensors"):
        monkeypatch.setitem(sys.modules, module, None)
    assert run(archive, "--formats", "i8")[0] == 0
    message = run.fails(archive, "--plot", tmp_path / "x.png")
    assert "--plot needs matplotlib, which is not installed: pip install 'mx-dialect[plot]'" in message
    (tmp_path / "x.safetensors").write_bytes(b"")
    assert "pip install 'mx-dialect[safetensors]'" in run.fails(tmp_path / "x.safetensors")


def test_progress_bar(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tqdm = pytest.importorskip("tqdm")

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    with report._progress(100) as advance:
        advance(100)
    assert screen.getvalue().strip() == ""  # It took less than a second.
    bar = tqdm.tqdm
    monkeypatch.setattr(tqdm, "tqdm", lambda **options: bar(**{**options, "delay": 0}))
    with report._progress(100) as advance:
        advance(50)
    assert "0% |" in screen.getvalue()
    monkeypatch.setattr(sys, "stderr", log := io.StringIO())
    with report._progress(100) as advance:
        advance(50)
    assert log.getvalue() == ""


def safetensors_file(tensors: dict[str, tuple[str, list[int], bytes]]) -> bytes:
    """Return a file in the format that huggingface/safetensors documents: a length, JSON, data."""
    header: dict[str, Any] = {}
    data = b""
    for name, (dtype, shape, values) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def test_safetensors(run: Run, tmp_path: Path):
    pytest.importorskip("safetensors")
    x = spread(11, (6, 64), 1)
    path = tmp_path / "x.safetensors"
    stored = {"layer.10": ("F32", np.float32), "layer.2": ("BF16", ml_dtypes.bfloat16), "layer.1": ("F16", np.float16)}
    path.write_bytes(
        safetensors_file(
            {
                **{name: (dtype, [6, 64], x.astype(kind).tobytes()) for name, (dtype, kind) in stored.items()},
                "wide": ("F64", [6, 64], x.astype(np.float64).tobytes()),
                "small": ("F8_E4M3", [64], bytes(64)),
                "ids": ("I32", [4], bytes(16)),
                "none": ("F32", [0, 3], b""),
                "one": ("F32", [], bytes(4)),
            }
        )
    )
    case = Case("f6E3M2FN", "even")
    summary = summarize(str(path), [case])
    assert [r.tensor.name for r in summary.reports] == ["layer.1", "layer.2", "layer.10", "wide"]
    for found in summary.reports:
        kind = stored.get(found.tensor.name, ("", np.float64))[1]
        agree(found.errors[case], expected(x.astype(kind).astype(np.float32), case, 32, -1))
    assert [(t.name, t.dtype) for t, _ in summary.skipped] == [
        ("ids", "i32"),
        ("none", "f32"),
        ("one", "f32"),
        ("small", "f8_e4m3"),
    ]
    assert run(path, "--formats", "i8")[0] == 0


def test_broken_safetensors(run: Run, tmp_path: Path):
    pytest.importorskip("safetensors")
    path = tmp_path / "x.safetensors"
    whole = safetensors_file({"a": ("F32", [32], bytes(128))})
    huge = safetensors_file({"a": ("F32", [1 << 40, 1 << 40], b"")})
    for data in (b"", whole[:4], whole[:-1], whole[:20], struct.pack("<Q", 1 << 62) + whole[8:], huge, b"\x00" * 64):
        path.write_bytes(data)
        assert f"{path}: cannot be read: " in run.fails(path)


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
