"""A crash of native code ends mx-opt and mx-run with an error; all other ends are what they are without a child."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import SEED

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no child process without fork")

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, str(ROOT / "tools" / "mx-opt.py")]
PASS = """\
import os, signal, sys, time
from mx_dialect.passes import Pass, register_pass
def end(root, options):
    {body}
register_pass(Pass("ends-badly", "ends", end))
"""
# MLIR's parser of this operation reads on where there is no attribute.
CRASHES = "%b = linalg.broadcast ins(%w : tensor<2xf32>) outs(%e : tensor<32x2xf32>) dimensions = [0[[[]\n"


@pytest.fixture
def run(tmp_path: Path):
    def run(body: str, *flags: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "load.py").write_text(PASS.format(body=body))
        command = [*COMMAND, f"--load={tmp_path}/load.py", "--ends-badly", *flags]
        return subprocess.run(command, input=SEED, capture_output=True, text=True, check=False, timeout=60)

    return run


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL"])
def test_a_crash_is_an_error(run, tmp_path: Path, name: str) -> None:
    done = run(f"os.kill(os.getpid(), signal.{name})", "-o", str(tmp_path / "out"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"mx-opt: error: native code crashed ({name}) while running pass 'ends-badly'\n"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["mx-opt", "mx-run"])
def test_a_crash_of_mlirs_parser_is_an_error(command: str, tmp_path: Path) -> None:
    (tmp_path / "bad.mlir").write_text(CRASHES)
    script = str(ROOT / "tools" / f"{command}.py")
    done = subprocess.run(
        [sys.executable, script, "bad.mlir"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"{command}: error: native code crashed (SIGSEGV) while reading 'bad.mlir'\n"


def test_the_reproducer_of_a_crash_stays(run, tmp_path: Path) -> None:
    done = run("os.abort()", f"--mlir-pass-pipeline-crash-reproducer={tmp_path}/crash.mlir")
    assert done.returncode == 1
    assert "builtin.module(ends-badly)" in (tmp_path / "crash.mlir").read_text()


def test_exit_codes_stay(run) -> None:
    assert run("os._exit(66)").returncode == 66
    assert run("pass").returncode == 0
    assert run("raise ValueError").returncode == 1


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGKILL", "SIGPIPE"])
def test_other_signals_end_both(run, name: str) -> None:
    done = run(f"os.kill(os.getpid(), signal.{name})")
    assert (done.returncode, done.stdout, done.stderr) == (-getattr(signal, name), "", "")


def test_a_debugger_gets_one_process(run) -> None:
    done = run("os.abort()", "--mlir-print-stacktrace-on-diagnostic")
    assert done.returncode == -signal.SIGABRT


def gone(process: int) -> bool:
    """Tell whether a process ends within a few seconds."""
    for _ in range(100):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        # A process whose parent is gone may wait for somebody to ask how it ended.
        status = Path(f"/proc/{process}/stat")
        if status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGKILL"])
def test_the_child_ends_with_its_parent(tmp_path: Path, name: str) -> None:
    if name == "SIGKILL" and not sys.platform.startswith("linux"):
        pytest.skip("only Linux tells a child that its parent was killed")
    body = f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    (tmp_path / "load.py").write_text(PASS.format(body=body))
    process = subprocess.Popen([*COMMAND, f"--load={tmp_path}/load.py", "--ends-badly"], stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(SEED.encode())
    process.stdin.close()
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        time.sleep(0.05)
    child = int((tmp_path / "pid").read_text())
    assert child != process.pid
    process.send_signal(getattr(signal, name))
    assert process.wait(timeout=30) == -getattr(signal, name)
    assert gone(child)


def test_an_ignored_end_of_children_does_not_matter() -> None:
    """Some parents leave that to what they start; there would be nothing to wait for."""
    code = (
        f"import os, signal, sys\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\nos.execv(sys.executable, {COMMAND!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], input=SEED, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, SEED, "")
