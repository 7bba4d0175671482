"""docs/mx-opt.md: every command in it runs, on the files in it, and the flags it names exist."""

import re
import shlex
from pathlib import Path

import pytest
from command_line import Run

from mx_dialect import opt_flags, passes, pipelines
from mx_dialect.upstream_passes import UPSTREAM_PASSES

DOCUMENT = (Path(__file__).parents[2] / "docs" / "mx-opt.md").read_text()


def test_commands(mx_opt: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in re.findall(r"<!-- file: (\S+) -->\n```mlir\n(.*?)```", DOCUMENT, re.DOTALL):
        (tmp_path / name).write_text(text)
    commands = [line for block in re.findall(r"```sh\n(.*?)```", DOCUMENT, re.DOTALL) for line in block.splitlines()]
    assert len(commands) > 20
    for command in commands:
        tool, *arguments = shlex.split(command)
        assert tool == "mx-opt"
        stdin = ""
        if "<" in arguments:
            *arguments, _, file = arguments
            stdin = (tmp_path / file).read_text()
        code, _, err = mx_opt(*arguments, stdin=stdin)
        assert code == 0, f"{command}\n{err}"
    assert (tmp_path / "dumps" / "builtin_module_no-symbol-name").is_dir()
    assert not (tmp_path / "crash.mlir").exists()


def test_flags_that_it_names_exist() -> None:
    known = {*opt_flags.FLAGS, *passes.names(), *pipelines.names(), *UPSTREAM_PASSES}
    named = set(re.findall(r"--([a-z][\w-]+)", re.sub(r"--mlir-elide-\*", "", DOCUMENT)))
    assert named - known == set()
    for group in ("Input and output", "Checks", "Passes"):
        assert group in opt_flags.GROUPS
        assert f"## {group}" in DOCUMENT
