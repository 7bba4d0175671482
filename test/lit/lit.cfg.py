"""lit's configuration: works from the source tree with nothing configured, and under CMake's check-mx."""

import os
import shutil
import sys
from pathlib import Path

import lit.formats

# lit runs this file with `config` and `lit_config` defined.
config = globals()["config"]

ROOT = Path(__file__).resolve().parents[2]
PYTHON = os.environ.get("MX_TEST_PYTHON", sys.executable)

config.name = "mx_dialect"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.excludes = ["Inputs"]
config.test_source_root = str(Path(__file__).parent)
config.test_exec_root = os.environ.get("MX_TEST_OUTPUT", str(ROOT / "build" / "test" / "lit"))
os.makedirs(config.test_exec_root, exist_ok=True)


def filecheck() -> str:
    """LLVM's FileCheck if FILECHECK names one, else the Python port installed beside this interpreter."""
    named = os.environ.get("FILECHECK")
    if named:
        return named
    beside = Path(PYTHON).parent / "filecheck"
    return str(beside) if beside.exists() else shutil.which("filecheck") or "filecheck"


config.environment["PYTHONPATH"] = str(ROOT)
for variable in ("MX_MLIR_PACKAGE",):
    if variable in os.environ:
        config.environment[variable] = os.environ[variable]


def command(name: str) -> str:
    """Return how a command is run: a process of its own, or a fork of the server whose socket MX_TEST_SERVER names."""
    server = os.environ.get("MX_TEST_SERVER")
    if server:
        return f"'{PYTHON}' -S -E -s '{ROOT / 'test' / 'command_server.py'}' '{server}' {name}"
    return f"'{PYTHON}' '{ROOT / 'tools' / f'{name}.py'}'"


config.substitutions += [
    *((rf"(?<![\w/-]){name}(?![\w.-])", command(name)) for name in ("mx-opt", "mx-run")),
    (r"(?<![\w/-])(filecheck|FileCheck)(?![\w.-])", f"'{filecheck()}'"),
    (r"%PYTHON", f"'{PYTHON}'"),
]
