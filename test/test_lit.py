"""Runs the lit tests under lit's own runner, once, and reports each file as a test of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

LIT_ROOT = Path(__file__).parent / "lit"
FILES = sorted(p.relative_to(LIT_ROOT).as_posix() for p in LIT_ROOT.rglob("*.mlir") if "Inputs" not in p.parts)


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """Return lit's result of each file: its code and its output."""
    folder = tmp_path_factory.mktemp("lit")
    report = folder / "results.json"
    command = [sys.executable, "-c", "from lit.main import main; main()", "-a", "--output", str(report), str(LIT_ROOT)]
    environment = dict(os.environ, MX_TEST_OUTPUT=str(folder / "out"))
    run = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600, check=False)
    assert report.exists(), run.stdout + run.stderr
    tests = json.loads(report.read_text())["tests"]
    return {test["name"].split(" :: ", 1)[1]: test for test in tests}


def test_lit_finds_files() -> None:
    assert FILES


@pytest.mark.parametrize("file", FILES)
def test_lit(file: str, results: dict[str, dict[str, str]]) -> None:
    result = results[file]
    assert result["code"] == "PASS", result["output"]
