"""Passes and pipelines from elsewhere: files that are loaded, and plugins of installed packages."""

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import mx_dialect
from mx_dialect import diagnostics, passes, pipelines, plugins

ROOT = Path(__file__).parents[2]

REGISTERS = """
from dataclasses import dataclass
from mx_dialect.passes import Pass, option, register_pass
from mx_dialect.pipelines import Pipeline, register_pipeline

@dataclass(frozen=True)
class Options:
    times: int = option(1, "How often to rename")

def run(root, options):
    for op in root.regions[0].blocks[0]:
        op.attributes["sym_name"] = type(op.attributes["sym_name"]).get("x" * options.times, root.context)

register_pass(Pass("my-rename", "Rename functions", run, Options))
register_pipeline(Pipeline("my-pipeline", "Rename, and more", ("my-rename{times=2}", "cse")))
"""


@pytest.fixture(autouse=True)
def registry() -> Iterator[None]:
    """Take away what a test registers."""
    before = {*passes.extra(), *pipelines.PIPELINES}
    files = set(plugins._files)
    yield
    for name in {*passes.extra(), *pipelines.PIPELINES} - before:
        passes.withdraw(name)
        pipelines.withdraw(name)
    plugins._files.intersection_update(files)


def write(folder: Path, text: str, name: str = "my_passes.py") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def refused(path: str) -> mx_dialect.MxError:
    with pytest.raises(mx_dialect.MxError) as caught:
        plugins.load_file(path)
    return caught.value


# --- files ---


def test_a_file_registers_passes_and_pipelines(tmp_path: Path) -> None:
    path = write(tmp_path, REGISTERS)
    plugins.load_file(path)
    # Once a process, by whatever name.
    plugins.load_file(os.path.relpath(path))
    module = mx_dialect.parse("func.func @f() { return }")
    mx_dialect.run_pipeline(module, "my-pipeline")
    assert "@xx()" in mx_dialect.to_asm(module)
    assert "my-rename" in passes.names()
    assert "my-pipeline" in pipelines.names()
    with pytest.raises(mx_dialect.MxError, match="has no option 'time'; its options: times"):
        mx_dialect.run_pipeline(module, "my-rename{time=1}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = (", r":1:5: error: not valid Python: '\(' was never closed"),
        ("\nx = 'é' 'ä' y", r":2:\d+: error: not valid Python: "),
        ("x = 1\0", r":1:\d+: error: not valid Python: .*null byte"),
        ("\n\nx = 1 / 0", ":3:1: error: the file fails when it is loaded, .*: ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit('bye')", ":2:1: error: the file fails .*: SystemExit: bye"),
        ("import mx_no_such_module", ":1:1: error: the file fails .*: ModuleNotFoundError: "),
        ("x = 1", ":1:1: error: the file registers no pass and no pipeline; call mx_dialect.passes.register_pass"),
        # What it imports of this package does not count.
        ("import mx_dialect.transforms.mx_expand_k", ":1:1: error: the file registers no pass"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(mx_dialect.MxError, match=message) as caught:
        plugins.load_file(path)
    assert "\n" not in str(caught.value)
    assert caught.value.diagnostics[0].file == path


def test_the_line_is_that_in_the_file_not_in_what_it_calls(tmp_path: Path) -> None:
    path = write(tmp_path, "import json\ndef f():\n    json.loads('{')\n\nf()\n")
    assert refused(path).diagnostics[0].line == 3


@pytest.mark.parametrize(("name", "reason"), [("none.py", "No such file"), (".", "Is a directory")])
def test_files_that_cannot_be_read(tmp_path: Path, name: str, reason: str) -> None:
    assert f"cannot read '{tmp_path / name}': {reason}" in str(refused(str(tmp_path / name)))


def test_a_file_that_fails_registers_nothing_and_can_be_loaded_again(tmp_path: Path) -> None:
    path = write(tmp_path, REGISTERS + "\nraise ValueError('late')")
    assert "ValueError: late" in str(refused(path))
    assert "my-rename" not in passes.names()
    assert "my-pipeline" not in pipelines.names()
    write(tmp_path, REGISTERS)
    plugins.load_file(path)
    assert passes.get("my-rename") is not None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("mx-to-linalg", "would hide a pass of mx_dialect"),
        ("cse", "would hide a pass of MLIR"),
        ("mx-bufferize", "is registered already"),
        ("My_Pass", "is not kebab-case"),
    ],
)
@pytest.mark.parametrize("kind", ["pass", "pipeline"])
def test_names_that_are_taken(tmp_path: Path, kind: str, name: str, reason: str) -> None:
    new = {
        "pass": f"from mx_dialect.passes import *\nregister_pass(Pass('{name}', '', print))",
        "pipeline": f"from mx_dialect.pipelines import *\nregister_pipeline(Pipeline('{name}', '', ('cse',)))",
    }
    error = refused(write(tmp_path, new[kind]))
    assert reason in str(error)
    assert error.diagnostics[0].line == 2


def test_a_pass_and_a_pipeline_share_names(tmp_path: Path) -> None:
    again = "\nregister_pass(Pass('my-pipeline', '', run))"
    assert "'my-pipeline' is registered already" in str(refused(write(tmp_path, REGISTERS + again)))
    again = "\nregister_pipeline(Pipeline('my-rename', '', ('cse',)))"
    assert "'my-rename' is registered already" in str(refused(write(tmp_path, REGISTERS + again)))


# --- plugins of installed packages ---

PACKAGE = """
from mx_dialect.passes import Pass, register_pass
def good():
    register_pass(Pass("pkg-nothing", "Do nothing at all", lambda root, options: None))
def bad():
    register_pass(Pass("pkg-bad", "Never there", lambda root, options: None))
    raise ValueError("broken")
def clash():
    register_pass(Pass("mx-to-linalg", "Hide ours", lambda root, options: None))
"""


def python(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run Python where a package with plugins is installed."""
    info = folder / "my_pkg-1.0.dist-info"
    info.mkdir()
    write(folder, PACKAGE, "my_pkg.py")
    write(info, "Metadata-Version: 2.1\nName: my-pkg\nVersion: 1.0\n", "METADATA")
    points = "good = my_pkg:good\nbad = my_pkg:bad\nclash = my_pkg:clash\nmissing = my_none:f\n"
    write(info, f"[{plugins.GROUP}]\n{points}", "entry_points.txt")
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(ROOT), str(folder)]))
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=60)


def test_the_command_line_lists_plugins_and_says_which_fail(tmp_path: Path) -> None:
    done = python(tmp_path, "-m", "mx_dialect.opt", "--list-passes")
    assert done.returncode == 0
    assert "Do nothing at all" in done.stdout
    assert "pkg-bad" not in done.stdout
    assert "Hide ours" not in done.stdout
    assert_three_warnings(done.stderr, "", tmp_path)


def assert_three_warnings(printed: str, command: str, folder: Path) -> None:
    """Compare with one line for each plugin that fails, which says where it does."""
    first, second, third = printed.splitlines()
    start, file = f"{command}warning: the plugin", folder / "my_pkg.py"
    assert first == f"{start} 'bad' of my-pkg 1.0 was not loaded: ValueError: broken ({file}:7)"
    assert second.startswith(
        f"{start} 'clash' of my-pkg 1.0 was not loaded: ValueError: pass 'mx-to-linalg' would hide"
    )
    assert second.endswith(f" ({file}:9)")
    assert third == f"{start} 'missing' of my-pkg 1.0 was not loaded: ModuleNotFoundError: No module named 'my_none'"


def test_warnings_of_mx_run(tmp_path: Path) -> None:
    write(tmp_path, "func.func @f() -> i32 { %0 = arith.constant 1 : i32 return %0 : i32 }", "x.mlir")
    done = python(tmp_path, "-m", "mx_dialect.run", str(tmp_path / "x.mlir"), "--pass-pipeline=pkg-nothing")
    assert (done.returncode, done.stdout) == (0, "result0: i32 = 1\n")
    assert_three_warnings(done.stderr, "mx-run: ", tmp_path)


def test_only_errors_are_shown_where_only_those_are_asked_for(tmp_path: Path) -> None:
    done = python(tmp_path, "-m", "mx_dialect.opt", "--list-passes", "--mlir-diagnostic-verbosity-level=errors")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_warning_is_one_line_and_one_that_is_an_error_stays_one() -> None:
    lines: list[str] = []
    shown = warnings.showwarning
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with diagnostics.python_warnings(lambda warning: lines.append(warning.header())):
            warnings.warn("two\n lines", UserWarning, stacklevel=1)
            warnings.simplefilter("error")
            with pytest.raises(UserWarning):
                warnings.warn("no line", UserWarning, stacklevel=1)
    assert lines == ["warning: two lines"]
    assert warnings.showwarning is shown


def test_plugins_are_loaded_when_a_name_is_not_known(tmp_path: Path) -> None:
    code = """
import sys, warnings, mx_dialect
warnings.simplefilter("ignore")
module = mx_dialect.parse("func.func @f() { return }")
mx_dialect.run_pipeline(module, "mx-to-linalg,cse,mx-bufferize")
print("my_pkg" in sys.modules)
mx_dialect.run_pipeline(module, "pkg-nothing")
print("my_pkg" in sys.modules)
"""
    done = python(tmp_path, "-c", code)
    assert done.stdout.split() == ["False", "True"], done.stderr
