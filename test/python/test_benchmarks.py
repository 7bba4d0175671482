"""`python -m benchmarks.matmul`: what it prints and writes, not how long anything took."""

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mx_dialect

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "benchmarks.matmul")
QUICK = ("--quick", "--threads", "1")


def run(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([*COMMAND, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Return the table of a quick run, and its JSON."""
    path = tmp_path_factory.mktemp("benchmarks") / "matmul.json"
    return run(*QUICK, "--json", str(path)).stdout, path


def test_json_has_the_figures_of_every_case(quick: tuple[str, Path]):
    results: dict[str, Any] = json.loads(quick[1].read_text())
    assert set(results) == {"machine", "settings", "seconds_in_all", "peaks", "latency", "cases", "failures"}
    assert set(results["peaks"]["1"]) == {"fma_gflops", "memory_gbytes", "l2_gbytes"}
    assert all(value > 0 for value in (*results["peaks"]["1"].values(), *results["latency"].values()))
    assert results["failures"] == []
    cases = {(case["formats"], case["shape"]): case for case in results["cases"]}
    assert set(cases) == {(f, s) for f in ("f8E4M3FN", "i8:i8") for s in ("32x64x64", "33x64x1@memory")}
    for (formats, shape), case in cases.items():
        assert case["threads"] == 1
        assert (case["copies"] > 1) == shape.endswith("@memory")
        assert case["seconds"].keys() == {"ours"} | case["ratios"].keys()
        assert ("ours, quantizing B" in case["ratios"]) == (formats == "i8:i8")
        assert all(value > 0 for value in (case["compile_seconds"], case["first_call_seconds"]))
        assert all(value > 0 for value in (*case["seconds"].values(), *case["ratios"].values()))
    assert cases["i8:i8", "32x64x64"]["operations"] == 2 * 32 * 64 * 64
    assert cases["i8:i8", "32x64x64"]["weight_bytes"] == 32 * 64 + 32 * 64 // 32


def test_tables(quick: tuple[str, Path]):
    table, path = quick
    assert "A f8E4M3FN, B f32, 1 thread" in table
    assert "A i8, B i8, 1 thread" in table
    rows = [line.split()[0] for line in table.splitlines() if line.startswith(("32x", "33x"))]
    assert rows == ["32x64x64", "33x64x1@memory"] * 2
    # The figures of an earlier run can be shown again, measuring nothing.
    assert run("--read", str(path)).stdout == table
    markdown = run("--read", str(path), "--markdown").stdout
    assert "### A i8, B i8, 1 thread" in markdown
    assert markdown.count("| 32x64x64 |") == 2
    tables = [line for line in markdown.splitlines() if line.startswith("|")]
    assert all(line.count("|") == tables[0].count("|") for line in tables[:4])


def test_a_failure_is_reported_and_ends_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.syspath_prepend(ROOT)
    monkeypatch.setenv("MX_CACHE", "0")
    matmul = importlib.import_module("benchmarks.matmul")

    def fail(case: Any, *_: Any) -> dict[str, Any]:
        raise mx_dialect.MxError(f"no {case.shape}")

    monkeypatch.setattr(matmul, "measure", fail)
    assert matmul.main([*QUICK, "--formats", "f8E4M3FN"]) == 1
    errors = capsys.readouterr().err
    assert "f8E4M3FN 32x64x64, threads 1: no 32x64x64" in errors
    assert "f8E4M3FN 33x64x1@memory, threads 1: no 33x64x1@memory" in errors


def test_a_wrong_result_is_a_failure(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(ROOT)
    matmul, cases = (importlib.import_module(f"benchmarks.{name}") for name in ("matmul", "cases"))
    shape, formats = cases.Shape(33, 64, 2), cases.Formats("f8E4M3FN")
    case, given = matmul.Case(shape, formats, 1, 0), cases.operands(shape, formats)
    right = given.a_values @ given.b_values
    matmul._require_right(case, given, right)
    for wrong in (right + 1e-3, right * np.nan):
        with pytest.raises(mx_dialect.MxError, match="the result is wrong"):
            matmul._require_right(case, given, wrong)


def test_roofline(quick: tuple[str, Path], tmp_path: Path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "roofline.png"
    run("--read", str(quick[1]), "--plot", str(picture))
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--shapes", "32x64"], "'32x64' is no shape"),
        (["--shapes", "32x65x1"], "a multiple of 32"),
        (["--formats", "f7"], "'f7' is no element format"),
        (["--formats", "packed-i8"], "can be packed"),
        (["--threads", "0"], "must be positive"),
        (["--json", "no such folder/x.json"], "no such folder"),
        (["--read", "no such file"], "No such file"),
    ],
)
def test_refusals(arguments: list[str], message: str):
    assert message in run(*arguments, code=2).stderr
