"""Colour: diagnostics as clang paints them and highlighted IR, at a terminal or when asked for, never otherwise."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import SEED, Run

from mx_dialect import terminal
from mx_dialect.diagnostics import Diagnostic, Sources, render

ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
WRONG = "func.func @f() -> i32 { return }"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


class Stream:
    def __init__(self, terminal: bool):
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


def test_when_colour_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, file = Stream(True), Stream(False)
    assert terminal.wanted(screen, "auto")
    assert not terminal.wanted(file, "auto")
    assert not terminal.wanted(None, "auto")
    assert terminal.wanted(file, "always")
    assert not terminal.wanted(screen, "never")
    monkeypatch.setenv("NO_COLOR", "")
    assert terminal.wanted(screen, "auto")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not terminal.wanted(screen, "auto")
    assert terminal.wanted(file, "always")
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not terminal.wanted(screen, "auto")


@pytest.mark.parametrize(
    ("severity", "code"), [("error", "1;31"), ("warning", "1;35"), ("remark", "1;34"), ("note", "1;36")]
)
def test_the_colours_of_clang(severity: str, code: str) -> None:
    sources = Sources()
    sources.add("f.mlir", "a line")
    diagnostic = Diagnostic(severity, "it is so", "f.mlir", 1, 3)
    text = render(diagnostic, sources, terminal.painted)
    header, line, caret = text.split("\n")
    assert header == f"\x1b[1mf.mlir:1:3: \x1b[0m\x1b[{code}m{severity}: \x1b[0m\x1b[1mit is so\x1b[0m"
    assert line == "a line"
    assert caret == "  \x1b[1;32m^\x1b[0m"
    assert ESCAPES.sub("", text) == render(diagnostic, sources)


@pytest.mark.parametrize(
    ("flag", "colored"),
    [("--color", True), ("--color=1", True), ("--color=always", True), ("--color=auto", False), ("--color=never", False), ("--color=0", False), (None, False)],
)  # fmt: skip
def test_the_flag(mx_opt: Run, flag: str | None, colored: bool) -> None:
    flags = [flag] if flag else []
    plain = mx_opt(stdin=WRONG)[2]
    err = mx_opt(*flags, stdin=WRONG)[2]
    assert ("\x1b[1;31merror: " in err) == colored
    assert ESCAPES.sub("", err) == plain


def test_files_and_bytecode_have_no_colour(mx_opt: Run, tmp_path: Path) -> None:
    assert mx_opt("--color=always", "-o", str(tmp_path / "out"), stdin=SEED)[0] == 0
    assert (tmp_path / "out").read_text() == SEED
    data = mx_opt("--emit-bytecode", "-o", str(tmp_path / "out"), stdin=SEED)
    assert mx_opt("--emit-bytecode", "--color=always", "-o", str(tmp_path / "again"), stdin=SEED) == data
    assert (tmp_path / "out").read_bytes() == (tmp_path / "again").read_bytes()


needs_lexer = pytest.mark.skipif(importlib.util.find_spec("mlir_pygments") is None, reason="needs the extra 'color'")


@needs_lexer
def test_ir_is_highlighted_and_else_the_same(mx_opt: Run) -> None:
    code, out, err = mx_opt("--color=always", stdin=SEED)
    assert (code, err) == (0, "")
    assert out.count("\x1b[") > 20
    assert ESCAPES.sub("", out) == SEED
    assert mx_opt(stdin=SEED)[1] == SEED


def test_without_the_lexer_ir_is_plain(mx_opt: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pygments", None)
    assert mx_opt("--color=always", stdin=SEED) == (0, SEED, "")


@pytest.mark.skipif(os.name != "posix", reason="terminals of POSIX")
def test_at_a_terminal() -> None:
    import pty

    tool = Path(__file__).parents[2] / "tools" / "mx-opt.py"
    for variables, colored in ({}, True), ({"NO_COLOR": "1"}, False):
        ours, theirs = pty.openpty()
        environment = {**os.environ, **variables}
        process = subprocess.Popen(
            [sys.executable, str(tool)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=theirs, env=environment
        )
        out, _ = process.communicate(WRONG.encode(), timeout=60)
        os.close(theirs)
        err = os.read(ours, 10_000).decode()
        os.close(ours)
        assert (process.returncode, out) == (1, b"")
        assert ("\x1b[1;31merror: \x1b[0m" in err) == colored
