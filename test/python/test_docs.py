"""The documentation: generated pages are current, IR parses, links lead somewhere, the tour draws its pictures."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mx_dialect
from mx_dialect import passes, pipelines

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
EXAMPLES = "\n".join(file.read_text(encoding="utf-8") for file in sorted((ROOT / "examples").glob("*.mlir")))

GENERATE = "import json; from gendocs import pages; print(json.dumps([pages.COMMAND, pages.generate()]))"
GENERATED = {"tutorial.md", "reference/ops.md", "reference/types.md", "reference/passes.md"}
WRITTEN = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [*DOCS.rglob("*.md"), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
    if path.relative_to(DOCS if path.is_relative_to(DOCS) else ROOT).as_posix() not in GENERATED
)


@pytest.fixture(scope="module")
def regenerated() -> tuple[str, dict[str, str]]:
    """Return the command that writes the generated pages, and what it would write.

    In a process of its own: other tests register passes in this one.
    """
    pytest.importorskip("iced_x86", reason="the tutorial shows decoded machine code")
    path = os.pathsep.join(str(ROOT / folder) for folder in (".", "tools", "test/python"))
    done = subprocess.run(
        [sys.executable, "-c", GENERATE],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    command, texts = json.loads(done.stdout)
    return command, texts


@pytest.fixture(scope="module")
def generated(regenerated: tuple[str, dict[str, str]]) -> dict[str, str]:
    return regenerated[1]


@pytest.mark.parametrize("path", sorted(GENERATED))
def test_generated_pages_are_current(regenerated: tuple[str, dict[str, str]], path: str) -> None:
    command, generated = regenerated
    assert set(generated) == GENERATED
    shown = (DOCS / path).read_text(encoding="utf-8")
    assert shown == generated[path], f"docs/{path} is not what the code says; run `{command}` and commit"


def test_the_reference_has_every_operation_type_pass_and_option(generated: dict[str, str]) -> None:
    from mx_dialect.dialect import Mx, define

    define()
    ops, types, passes_page = (generated[f"reference/{name}.md"] for name in ("ops", "types", "passes"))
    documented = re.findall(r"^### (mx\..*)$", ops, re.MULTILINE)
    assert sorted(documented) == sorted(operation.OPERATION_NAME for operation in Mx.operations)
    for defined in Mx.types:
        assert f"### !{defined.type_name}\n" in types
    found_passes = [passes.get(name) for name in passes.names()]
    # Those that a test registered are not the package's.
    own = [found for found in found_passes if found is not None and found.run.__module__.startswith("mx_dialect.")]
    assert re.findall(r"^### (mx-[\w-]+)$", passes_page.partition("\n## Passes\n")[2], re.MULTILINE) == [
        p.name for p in own
    ]
    for found in own:
        section = passes_page.partition(f"### {found.name}\n")[2].partition("\n### ")[0]
        options = re.findall(r"^\| `([\w-]+)`", section, re.MULTILINE)
        assert options == [field.name.replace("_", "-") for field in found.option_fields()]
        assert found.requires in section
    assert "### mx-lower-to-llvm-vectorized\n" in passes_page


def test_stages_of_pipelines_carry_their_own_reasons(generated: dict[str, str]) -> None:
    page = generated["reference/passes.md"].partition("### mx-bufferize\n")[2].partition("\n### ")[0]
    rows = re.findall(r"^\| \d+ +\| \S*?`(\S+?)[`{].*\| (.*?) *\|$", page, re.MULTILINE)
    reasons = dict(reversed(rows))
    assert [name for name, _ in rows] == [s.partition("{")[0] for s in pipelines.BUFFERIZE]
    assert reasons["cse"] == "Views of the same part become one value, and copies between them vanish."


def is_marked(text: str, at: int) -> bool:
    """Tell whether a comment right above a block says that it is an excerpt, or a file that the page's own test runs."""
    return re.search(r"<!-- (after|part of|file:) [^>]* -->\n\s*$", text[:at]) is not None


def is_from_an_example(block: str) -> bool:
    """Tell whether all lines of a block stand in the examples."""
    return all(line.strip() in EXAMPLES for line in block.splitlines())


@pytest.mark.parametrize("page", WRITTEN)
def test_ir_parses_or_says_that_it_is_an_excerpt(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for match in re.finditer(r"^```mlir\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        block = match[1]
        if not is_marked(text, match.start()) and "..." not in block and not is_from_an_example(block):
            mx_dialect.parse(block, page)


@pytest.mark.parametrize("page", WRITTEN)
def test_files_that_pages_link_to_exist(page: str) -> None:
    path = ROOT / page
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for target, _ in re.findall(r"\]\((?!https?:)([^)#\s]+)(#[^)\s]*)?\)", text):
        assert (path.parent / target).exists(), f"{page} links to {target}, which does not exist"


def test_site_builds_without_a_warning_and_fetches_nothing(tmp_path: Path) -> None:
    pytest.importorskip("material", reason="the site wants the extra docs")
    pytest.importorskip("mlir_pygments", reason="the site wants the extra docs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    site = sorted(tmp_path.rglob("*.html"))
    assert len(site) > 10
    for file in site:
        html = file.read_text(encoding="utf-8")
        fetched = re.findall(r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=\"(https?:[^\"]*)\"", html)
        assert not fetched, f"{file.name} fetches {fetched[0]}"
        # What the lexer does not know is of this class.
        unknown = re.findall(r"class=\"err\">(.*?)<", html)
        assert not unknown, f"{file.name}: no colour for {unknown}"


def test_the_tour_draws_every_picture_that_its_page_shows(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the tour wants the extra plot")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MX_TOUR_OUTPUT": str(tmp_path), "MX_TOUR_SIZE": "1024"}
    command = [sys.executable, "-W", "error", str(ROOT / "examples" / "formats_tour.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    drawn = {file.name for file in tmp_path.iterdir()}
    shown = set(re.findall(r"\(pictures/(formats-\S+)\)", (DOCS / "formats-tour.md").read_text(encoding="utf-8")))
    assert drawn == shown
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in tmp_path.iterdir())
    committed = [DOCS / "pictures" / name for name in shown]
    assert sum(file.stat().st_size for file in committed) < 300_000
