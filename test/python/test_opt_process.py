"""mx-opt as a process: signals, closed and full streams, readers that go away."""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import SEED

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and file descriptors of POSIX")

COMMAND = [sys.executable, str(Path(__file__).parents[2] / "tools" / "mx-opt.py")]


def shell(script: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run a shell script in which `"$@"` is mx-opt, its output buffered as outside of tests."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = ["sh", "-c", script, "sh", *COMMAND]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, env=environment, check=False)


def test_a_reader_that_goes_away_is_no_error_of_ours() -> None:
    run = shell('"$@" --help | head -1')
    assert run.stdout == "OVERVIEW: mx-opt, MLIR's optimizer driver with the mx dialect\n"
    assert run.stderr == ""
    # Enough for the pipe to fill up.
    functions = "".join(f"func.func private @f{i}()\n" for i in range(20000))
    run = shell('"$@" | head -1', functions)
    assert (run.stdout, run.stderr) == ("module {\n", "")
    assert shell('"$@" /no/such/file 2>&1 >/dev/null | true').stderr == ""


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ('"$@" >&-', "mx-opt: error: cannot write standard output: it is closed\n"),
        ('"$@" --version >&-', "mx-opt: error: cannot write standard output: it is closed\n"),
        ('"$@" <&-', "mx-opt: error: cannot open input file '-': Bad file descriptor\n"),
        ('"$@" >/dev/full', "mx-opt: error: cannot write standard output: No space left on device\n"),
        ('"$@" --version >/dev/full', "mx-opt: error: cannot write standard output: No space left on device\n"),
    ],
)
def test_streams_that_do_not_work(script: str, message: str) -> None:
    if "/dev/full" in script and not Path("/dev/full").exists():
        pytest.skip("needs Linux's /dev/full")
    run = shell(script, SEED)
    assert (run.returncode, run.stdout, run.stderr) == (1, "", message)


def test_a_closed_error_stream_sends_nothing_elsewhere() -> None:
    run = shell('"$@" /no/such/file 2>&-')
    assert (run.returncode, run.stdout) == (1, "")


def test_an_unneeded_closed_stream_does_not_matter(tmp_path: Path) -> None:
    run = shell(f'"$@" -o "{tmp_path}/out" >&-', SEED)
    assert (run.returncode, run.stderr) == (0, "")
    assert (tmp_path / "out").read_text() == SEED


def test_output_to_a_pipe_with_a_name(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    run = shell(f'cat "{tmp_path}/pipe" & "$@" -o "{tmp_path}/pipe" && wait', SEED)
    assert (run.returncode, run.stdout, run.stderr) == (0, SEED, "")


def test_an_interrupt_that_is_ignored_stays_so(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = f"trap '' INT; exec {shlex.join([*COMMAND, str(pipe)])}"
    process = subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with pipe.open("w") as file:
        process.send_signal(signal.SIGINT)
        time.sleep(0.1)
        file.write(SEED)
    output, errors = process.communicate(timeout=30)
    assert (process.returncode, output, errors) == (0, SEED, "")


def test_an_interrupt_ends_it_at_once(tmp_path: Path) -> None:
    """Also while native code runs, in which Python would not look at signals; nothing is printed or written."""
    pipe, out = tmp_path / "pipe", tmp_path / "out"
    os.mkfifo(pipe)
    process = subprocess.Popen([*COMMAND, str(pipe), "-o", str(out)], stderr=subprocess.PIPE)
    with pipe.open("w"):  # returns when mx-opt has opened its end
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (-signal.SIGINT, b"")
    assert not out.exists()
