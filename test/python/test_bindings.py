"""Choosing the host package: the real wheel, an alias of it called mlir, and packages that lack what is needed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# A stand-in for the packages that a child process must not find.
_HIDE = """
import sys
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hide())
"""

_REPORT = """
from mx_dialect.diagnostics import MxError
try:
    from mx_dialect import _mlir
    print("host", _mlir.HOST)
except MxError as error:
    assert not isinstance(error, ImportError)
    print(type(error).__name__, error)
"""


def run(code: str, path: Path | None = None, hidden: tuple[str, ...] = (), host: str | None = None) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "MX_MLIR_PACKAGE"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), *([str(path)] if path else [])])
    if host is not None:
        environment["MX_MLIR_PACKAGE"] = host
    command = [sys.executable, "-c", _HIDE.format(hidden=hidden) + code]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def old_bindings(folder: Path, name: str = "mlir") -> None:
    """Make a package like the bindings of LLVM 22: everything but dialects.ext."""
    for file in ("__init__", "ir", "passmanager", "execution_engine", "rewrite", "dialects/__init__"):
        path = folder / name / f"{file}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")


def alias_package(folder: Path) -> None:
    """Make a package `mlir` whose modules are those of the installed wheel, under both names."""
    (folder / "mlir").mkdir()
    (folder / "mlir" / "__init__.py").write_text(
        "import importlib, pkgutil, sys\n"
        "import torch_mlir, torch_mlir.dialects\n"
        "names = ['ir', 'passmanager', 'rewrite', 'execution_engine', 'dialects']\n"
        "found = pkgutil.walk_packages(torch_mlir.dialects.__path__, 'torch_mlir.dialects.', onerror=lambda n: None)\n"
        "names += [m.name[11:] for m in found if '._' not in m.name]\n"
        "for name in names:\n"
        "    try:\n"
        "        sys.modules['mlir.' + name] = importlib.import_module('torch_mlir.' + name)\n"
        "    except ImportError:\n"
        "        assert name.startswith('dialects.'), name  # some dialects need extras the wheel lacks\n"
    )


def test_the_installed_wheel_is_found() -> None:
    assert run(_REPORT, hidden=("mlir",)) == "host torch_mlir\n"


def test_bindings_without_ext_are_passed_over(tmp_path: Path) -> None:
    old_bindings(tmp_path)
    assert run(_REPORT, tmp_path) == "host torch_mlir\n"


def test_only_old_bindings(tmp_path: Path) -> None:
    old_bindings(tmp_path)
    out = run(_REPORT, tmp_path, hidden=("torch_mlir",))
    assert out.startswith("BindingsError no usable MLIR Python bindings")
    assert "mlir: has no module 'mlir.dialects.ext' (needs LLVM 23)" in out
    assert "torch_mlir: is not installed" in out
    assert "pip install 'torch-mlir>=" in out


def test_no_bindings_at_all() -> None:
    out = run(_REPORT, hidden=("mlir", "torch_mlir"))
    assert "mlir: is not installed" in out
    assert "torch_mlir: is not installed" in out


def test_bindings_that_cannot_be_loaded(tmp_path: Path) -> None:
    old_bindings(tmp_path)
    (tmp_path / "mlir" / "ir.py").write_text("raise ImportError('libMLIR.so: wrong ELF class')")
    out = run(_REPORT, tmp_path, hidden=("torch_mlir",))
    assert "mlir: fails to import 'mlir.ir': libMLIR.so: wrong ELF class" in out


def test_the_variable_decides(tmp_path: Path) -> None:
    old_bindings(tmp_path)
    assert run(_REPORT, tmp_path, host="torch_mlir") == "host torch_mlir\n"
    out = run(_REPORT, tmp_path, host="mlir")
    assert "tried (from MX_MLIR_PACKAGE)" in out
    assert "torch_mlir:" not in out


def test_command_line_says_it_in_words(tmp_path: Path) -> None:
    old_bindings(tmp_path)
    code = "import mx_dialect.opt as o\nprint('exit', o.main(['/dev/null']))"
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(ROOT), str(tmp_path)]), MX_MLIR_PACKAGE="mlir")
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=ROOT, check=True
    )
    assert done.stdout == "exit 1\n"
    assert "no usable MLIR Python bindings" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_prefix_mlir_works_end_to_end(tmp_path: Path) -> None:
    alias_package(tmp_path)
    code = """
import mx_dialect
from mx_dialect import _mlir
import numpy as np
print("host", _mlir.HOST)
module = mx_dialect.parse("func.func @f(%x: tensor<4x8xf32>) -> !mx.tensor<4x8xf8E4M3FN, block_size = 4, scale_type = f8E8M0FNU> {"
    "%0 = mx.quantize_block %x : tensor<4x8xf32> -> <4x8xf8E4M3FN, block_size = 4, scale_type = f8E8M0FNU>\\n"
    "return %0 : !mx.tensor<4x8xf8E4M3FN, block_size = 4, scale_type = f8E8M0FNU> }")
mx_dialect.run_pipeline(module, "mx-to-linalg,canonicalize")
assert "linalg.generic" in mx_dialect.to_asm(module)
print(mx_dialect.dequantize(mx_dialect.quantize(np.ones((4, 8), np.float32), block_size=4)).sum())
"""
    assert run(code, tmp_path) == "host mlir\n32.0\n"


def test_only_one_module_imports_the_bindings() -> None:
    offenders = [
        path.name
        for path in (ROOT / "mx_dialect").rglob("*.py")
        if path.name != "_mlir.py"
        and any(w in path.read_text() for w in ("import torch_mlir", "from torch_mlir", "import mlir\n", "from mlir"))
    ]
    assert offenders == []


@pytest.mark.parametrize("name", ["ops.py", "types.py", "dialect.py"])
def test_no_postponed_annotations_where_ops_are_defined(name: str) -> None:
    lines = (ROOT / "mx_dialect" / name).read_text().splitlines()
    assert "from __future__ import annotations" not in [line.strip() for line in lines]
