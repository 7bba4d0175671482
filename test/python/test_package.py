"""The package as users get it: what wheel and sdist hold, and that the installed wheel works away from the source tree."""

import email
import importlib.util
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from email.message import Message
from pathlib import Path

import pytest
from command_line import LOWERED, SEED

import mx_dialect

pytest.importorskip("hatchling", reason="building the package wants the extra test")
pytest.importorskip("pip", reason="installing the package wants pip")

ROOT = Path(__file__).parents[2]
DEPENDENCIES = ("torch_mlir", "numpy", "ml_dtypes")
MODULES = {p.relative_to(ROOT).as_posix() for p in (ROOT / "mx_dialect").rglob("*.py")}


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command with nothing of this source tree in its environment, and return what it prints."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "MX_", "PIP_"))}
    done = subprocess.run(
        [str(c) for c in command],
        cwd=cwd,
        env={**environment, "MX_CACHE": "0"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the wheel and the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the scripts of an environment with the wheel, and this one's packages for what it depends on."""
    root = tmp_path_factory.mktemp("environment")
    venv.create(root, with_pip=False, symlinks=os.name != "nt")
    scripts = root / ("Scripts" if os.name == "nt" else "bin")
    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        scripts / "python",
        "install",
        "--no-deps",
        "--no-index",
        wheel,
        cwd=root,
    )
    home = run(scripts / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=root).strip()
    specs = [importlib.util.find_spec(name) for name in DEPENDENCIES]
    # Lines of a .pth file are paths; the .pth files there, such as this source tree's own, are not read.
    paths = {str(Path(spec.origin).parents[1]) for spec in specs if spec is not None and spec.origin is not None}
    (Path(home) / "dependencies.pth").write_text("\n".join(sorted(paths)))
    return scripts


def test_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    assert wheel.name == f"mx_dialect-{mx_dialect.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (points,) = (archive.read(n).decode() for n in names if n.endswith("entry_points.txt"))
    assert "mx-opt = mx_dialect.opt:main" in points
    package = {n for n in names if not n.startswith(f"mx_dialect-{mx_dialect.__version__}.dist-info/")}
    assert package == MODULES | {"mx_dialect/py.typed", "mx_dialect/_mlir.pyi"}
    assert any(n.endswith(".dist-info/licenses/LICENSE") for n in names)


def test_metadata(metadata: Message) -> None:
    assert metadata["License-Expression"] == "Apache-2.0 WITH LLVM-exception"
    assert {"test", "plot", "torch", "docs"} <= set(metadata.get_all("Provides-Extra") or [])
    needed = [r for r in metadata.get_all("Requires-Dist") or [] if "extra ==" not in r]
    assert {r.replace("-", "_").partition(">")[0] for r in needed} == set(DEPENDENCIES)


def test_sdist_holds_tests_docs_and_license(built: Path) -> None:
    (found,) = built.glob("*.tar.gz")
    with tarfile.open(found) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    expected = {"LICENSE", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "mkdocs.yml", "docs/numerics.md"}
    expected |= {"test/lit/lit.cfg.py", "test/python/test_package.py", "tools/mx-opt.py", "examples/block_matmul.py"}
    assert expected | MODULES <= names
    assert not any("__pycache__" in name or name.startswith((".ci", ".venv", "build/")) for name in names)


def test_license_is_complete() -> None:
    text = (ROOT / "LICENSE").read_text()
    for number in range(1, 10):
        assert f"\n    {number}. " in text
    assert "---- LLVM Exceptions to the Apache 2.0 License ----" in text


def test_installed_command_runs_elsewhere(installed: Path, tmp_path: Path) -> None:
    version = run(installed / "mx-opt", "--version", cwd=tmp_path)
    assert version.startswith(f"mx-opt (mx_dialect) {mx_dialect.__version__}\n")
    (tmp_path / "seed.mlir").write_text(SEED)
    assert run(installed / "mx-opt", "seed.mlir", "--mx-to-linalg", cwd=tmp_path) == LOWERED


def test_installed_package_computes_elsewhere(installed: Path, tmp_path: Path) -> None:
    program = """
import numpy as np
import mx_dialect
x = np.random.default_rng(0).standard_normal((32, 64), dtype=np.float32)
q, b = mx_dialect.quantize(x), np.ones((64, 8), np.float32)
exact, bound = mx_dialect.reference.matmul(q, b), mx_dialect.reference.matmul_bound(q, b)
assert (np.abs(mx_dialect.matmul(q, b) - exact) <= bound).all()
print(mx_dialect.__file__)
"""
    home = Path(run(installed / "python", "-c", program, cwd=tmp_path).strip())
    assert home.is_relative_to(installed.parent)
