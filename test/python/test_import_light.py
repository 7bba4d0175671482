"""What each way in imports: a user pays for what is used."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEAVY = {"torch", "matplotlib", "llvmlite", "tqdm", "safetensors", "onnx"}


def imported_by(code: str) -> set[str]:
    """Return the names of the modules that a fresh process has after some code."""
    code += "\nimport sys\nprint('MODULES', *sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    return set(done.stdout.splitlines()[-1].split()[1:])


def test_the_package_alone() -> None:
    names = imported_by("import mx_dialect")
    assert not {name.split(".")[0] for name in names} & {*HEAVY, "numpy", "mlir", "torch_mlir"}
    assert {name for name in names if name.startswith("mx_dialect")} == {"mx_dialect"}


def test_ir_needs_no_runtime() -> None:
    names = imported_by("import mx_dialect\nmx_dialect.parse('func.func @f() { return }')")
    assert not {name.split(".")[0] for name in names} & HEAVY
    assert not [name for name in names if name.startswith(("mx_dialect.runtime", "mx_dialect.schedule"))]
    assert "mx_dialect.ops" in names
    assert not [name for name in names if name.endswith(".execution_engine")]


def test_version_needs_no_dialect() -> None:
    names = imported_by("from mx_dialect import opt\ntry:\n    opt.main(['--version'])\nexcept SystemExit:\n    pass")
    assert not {name.split(".")[0] for name in names} & HEAVY
    assert not names & {
        "mx_dialect.dialect",
        "mx_dialect.ops",
        "mx_dialect.types",
        "mx_dialect.asm",
        "mx_dialect.driver",
    }
    assert not [name for name in names if name.startswith(("mx_dialect.transforms", "mx_dialect.lowering"))]
