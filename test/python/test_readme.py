"""README says what is true: its IR is what the tools print, and its Python runs."""

import re
from pathlib import Path

import numpy as np
import pytest

import mx_dialect

README = (Path(__file__).parents[2] / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_input_and_output() -> None:
    before, after = blocks("mlir")
    module = mx_dialect.parse(before)
    assert mx_dialect.to_asm(module) == before
    mx_dialect.run_pipeline(module, "mx-to-linalg")
    assert mx_dialect.to_asm(module) == after


def test_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "seed.mlir").write_text(blocks("mlir")[0])
    monkeypatch.chdir(tmp_path)
    from_file, arrays = blocks("python")
    # A file left to the garbage collector is fine in a document, not where warnings are errors.
    from_file = from_file.replace('open("seed.mlir").read()', 'Path("seed.mlir").read_text()')
    names = {"Path": Path, "x": np.ones((32, 64), np.float32), "b": np.ones((64, 8), np.float32)}
    exec(from_file, names)
    assert names["out"].shape == (32, 64)
    exec(arrays, {**names, "mx_dialect": mx_dialect})


def test_passes_and_files_that_it_names_exist() -> None:
    from mx_dialect import passes, pipelines

    named = set(re.findall(r"`(mx-[a-z-]+)`", README)) - {"mx-opt", "mx-run"}
    assert named <= {*passes.names(), *pipelines.names()}
    root = Path(__file__).parents[2]
    layout = README.partition("## Layout")[2].partition("##")[0]
    files = re.findall(r"[\w*/]+\.py\b|\b[\w/]+/(?=\s)", layout)
    assert files
    for name in files:
        assert list(root.glob(name)) or list((root / "mx_dialect").glob(name)), name
