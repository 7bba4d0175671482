"""Runs the lit tests under lit's own runner, a folder at a time, and reports each file as a test of its own.

A folder runs once, also where several workers of pytest-xdist share the files: the first that wants one of it runs it,
and the others read what it found.
"""

import contextlib
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

LIT_ROOT = Path(__file__).parent / "lit"
FILES = sorted(p.relative_to(LIT_ROOT).as_posix() for p in LIT_ROOT.rglob("*.mlir") if "Inputs" not in p.parts)
SECONDS = 600


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, Any]]:
    """Return what gives lit's result of each file of a folder: its code and its output."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "lit"

    @functools.cache
    def of_folder(folder: str) -> dict[str, Any]:
        report = shared / folder / "results.json"
        try:
            report.parent.mkdir(parents=True)
        except FileExistsError:
            _wait(report)
        else:
            _run(folder, report)
        tests = json.loads(report.read_text())["tests"]
        return {test["name"].split(" :: ", 1)[1]: test for test in tests}

    return of_folder


def _run(folder: str, report: Path) -> None:
    unfinished = report.with_suffix(".part.json")
    command = [sys.executable, "-c", "from lit.main import main; main()", "-a", "--output", str(unfinished)]
    environment = dict(os.environ, MX_TEST_OUTPUT=str(report.parent / "out"))
    with _command_server() as server:
        run = subprocess.run(
            [*command, str(LIT_ROOT / folder)],
            capture_output=True,
            text=True,
            env={**environment, **server},
            timeout=SECONDS,
            check=False,
        )
    complete = unfinished.exists()
    if not complete:
        # Whoever waits fails too, and now.
        unfinished.write_text('{"tests": []}')
    unfinished.replace(report)
    assert complete, run.stdout + run.stderr


@contextlib.contextmanager
def _command_server() -> Iterator[dict[str, str]]:
    """Yield the variables by which lit's configuration knows of a server of commands, none where there is none."""
    if sys.platform != "linux":
        yield {}
        return
    # A path in the folder of a test may be too long for a socket.
    with tempfile.TemporaryDirectory(prefix="mx-lit-") as folder:
        path = os.path.join(folder, "socket")
        program = [sys.executable, str(Path(__file__).parent / "command_server.py"), path]
        environment = dict(os.environ, PYTHONPATH=str(Path(__file__).parents[1]))
        server = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            assert server.stdout.readline() == "ready\n"
            yield {"MX_TEST_SERVER": path}
        finally:
            server.stdin.close()
            server.stdout.close()
            server.wait(60)


def _wait(report: Path) -> None:
    last = time.monotonic() + SECONDS
    while not report.exists():
        assert time.monotonic() < last, "another worker runs lit, and does not end"
        time.sleep(0.1)


def test_lit_finds_files() -> None:
    assert FILES


@pytest.mark.parametrize("file", FILES)
def test_lit(file: str, results: Callable[[str], dict[str, Any]]) -> None:
    result = results(file.rpartition("/")[0])[file]
    assert result["code"] == "PASS", result["output"]
