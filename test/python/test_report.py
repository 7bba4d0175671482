"""The report as a command: tables, JSON, errors, as a process, with and without extras."""

import io
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from report_checks import FORMATS, Run, expected, spread, write_archive

from mx_dialect import report
from mx_dialect.report.quantization_error import Case

ROOT = Path(__file__).parents[2]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(capsys)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return write_archive(tmp_path)


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
