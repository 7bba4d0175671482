"""examples/a5_matmul and docs/tile-level.md: the script agrees with numpy, and the IR in the docs is what the tools print."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest
from doc_excerpts import assert_in_program, excerpts, place_after

import mx_dialect
from mx_dialect import passes, pipelines

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs" / "tile-level.md").read_text()


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("a5_matmul", ROOT / "examples" / "a5_matmul.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def stages(example):
    """Return the lines of the program after each pass, stripped, by the name of the pass."""
    module = mx_dialect.parse(example.FILE.read_text())
    lines = {}
    for stage in example.STAGES:
        mx_dialect.run_pipeline(module, stage)
        lines[example.name_of(stage)] = [line.strip() for line in mx_dialect.to_asm(module).splitlines()]
    return lines


@pytest.mark.parametrize("number", range(len(excerpts(DOCS))))
def test_excerpts_in_the_docs_are_current(stages, number):
    name, groups = excerpts(DOCS)[number]
    assert_in_program(stages[name], groups)


def test_every_pass_of_the_pipeline_is_documented():
    sections = re.findall(r"^### (\S+)$", DOCS, re.MULTILINE)
    assert sections == list(pipelines.PIPELINES["mx-tile-pipeline"].stages)
    shown = {name for name, _ in excerpts(DOCS)}
    assert shown == {"mx-tile-matmul", *sections} - {"mx-verify-scale-binding"}
    refusing = re.findall(r"^\| `(mx-[\w-]+)`", DOCS, re.MULTILINE)
    assert refusing == ["mx-tile-matmul", *sections, "mx-tile-to-linalg"]


def test_names_and_files_in_the_docs_exist():
    named = set(re.findall(r"`-?-?(mx-[a-z-]+)`", DOCS)) - {"mx-opt"}
    assert named <= {*passes.names(), *pipelines.names()}
    operations = set(re.findall(r"`mx\.([a-z_]+)`", DOCS)) - {"kernel"}
    mx_dialect.parse("")  # Defines the dialect.
    from mx_dialect.dialect import Mx

    assert operations <= {op.OPERATION_NAME.removeprefix("mx.") for op in Mx.operations}


def test_source_in_the_docs(example):
    (source,) = re.findall(r"[^>]\n```mlir\n(func\.func @matmul.*?)```", DOCS, re.DOTALL)
    assert example.FILE.read_text().endswith(source)


def test_docs_options_are_those_of_the_example(example):
    assert f'--mx-tile-matmul="{re.search(r"{(.*)}", example.STAGES[0])[1]}" --mx-tile-pipeline' in DOCS


def test_example_runs(example, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["a5_matmul.py"])
    assert example.main() == 0
    output = capsys.readouterr().out
    assert re.findall(r"// -----// after (\S+)", output) == [stage.split(" ")[0] for stage in example.STAGES]
    assert output.count("the same bits as at the value level") == len(example.STAGES)
    assert "a second run changes no view" in output
    assert "all stages agree" in output


def test_example_prints_one_stage(example, stages, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["a5_matmul.py", "--stage", "mx-insert-scale-addr"])
    assert example.main() == 0
    output = capsys.readouterr().out
    assert output.count("// -----//") == 1
    printed = [line.strip() for line in output.splitlines()]
    assert place_after(printed, stages["mx-insert-scale-addr"], 0) is not None
