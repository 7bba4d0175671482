"""The templates of CONTRIBUTING.md work: in a copy of the project, put where it says, they pass their own tests."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "docs" / "templates"
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the project with every template in its place, and the lines added that CONTRIBUTING.md adds."""
    root = tmp_path_factory.mktemp("project")
    for folder in ("mx_dialect", "tools"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("test/lit/lit.cfg.py", "test/python/conftest.py", "test/python/test_ops.py"):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, root / file)
    for source, target in re.findall(r"^cp (docs/templates/\S+) (\S+)$", CONTRIBUTING, re.MULTILINE):
        (root / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / source, root / target)
    insert(root / "mx_dialect/dialect.py", "_DEFINITIONS = (", '    "negate_ops",')
    insert(
        root / "mx_dialect/passes.py",
        "_BUILTIN = {",
        '    "mx-expand-negate": "mx_dialect.transforms.mx_expand_negate",',
    )
    insert(root / "mx_dialect/formats.py", "    for f in (", (TEMPLATES / "formats-row.txt").read_text().rstrip("\n"))
    return root


def insert(file: Path, after: str, line: str) -> None:
    """Add a line behind one that stands in a file, which CONTRIBUTING.md shows to the reader as well."""
    assert line.strip() in CONTRIBUTING
    text = file.read_text()
    assert f"{after}\n" in text
    file.write_text(text.replace(f"{after}\n", f"{after}\n{line}\n", 1))


def run(project: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(project), "MX_TEST_OUTPUT": str(project / "build"), "MX_CACHE": "0"}
    environment["MX_TEST_PYTHON"] = sys.executable
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_template_has_a_place() -> None:
    placed = {Path(source).name for source in re.findall(r"^cp docs/templates/(\S+) ", CONTRIBUTING, re.MULTILINE)}
    assert placed == {file.name for file in TEMPLATES.iterdir() if file.is_file()} - {"formats-row.txt"}


def test_lit_tests_of_the_templates(project: Path) -> None:
    out = run(project, "-c", "from lit.main import main; main()", "-v", "test/lit")
    assert "Passed: 3" in out


def test_python_tests_of_the_templates(project: Path) -> None:
    files = ("test/python/test_negate.py", "test/python/test_format_f8e3m4.py")
    out = run(project, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files)
    assert "4 passed" in out


def test_docstring_of_the_operation(project: Path) -> None:
    run(
        project, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test/python/test_ops.py", "-k", "docstring and negate"
    )
