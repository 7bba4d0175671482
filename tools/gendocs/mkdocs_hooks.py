"""What mkdocs runs while it builds the site: colours for all of our IR, pages that lie elsewhere, links to them."""

import importlib
import re
from pathlib import Path
from typing import Any

from pygments.token import Comment, Keyword, Name, Number, Punctuation

from mx_dialect.formats import ELEMENT_FORMATS, SCALE_FORMATS

_ROOT = Path(__file__).resolve().parents[2]

# Pages that do not lie in docs/, by their path in the repository.
_ELSEWHERE = {
    "benchmarks/README.md": "benchmarks.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}
_PAGES = {**_ELSEWHERE, "README.md": "index.md"}

_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:)([^)#\s]+)(#[^)]*)?\)")


def _extend_lexer() -> None:
    """Teach the lexer what it does not know of MLIR: all narrow floats, one of several results, negative integers."""
    floats = "|".join(name for name in {**ELEMENT_FORMATS, **SCALE_FORMATS} if name.startswith("f"))
    lexer: Any = importlib.import_module("mlir_pygments").MLIRLexer
    bygroups: Any = importlib.import_module("pygments.lexer").bygroups
    lexer.tokens["root"][:0] = [
        (r"//[^\n]*", Comment),
        (r"%[\w$.-]+(#\d+)?", Name.Variable),
        (rf"(x)({floats})\b", bygroups(Punctuation, Keyword.Type)),
        (rf"(vector(?=<)|{floats}\b)", Keyword.Type),
        # The site's style has no colour for the token that the lexer gives to types.
        (r"![a-zA-Z_][\w$.]*", Keyword.Type),
        (r"-\d+\b", Number),
        # Diagnostics, and prose in sketches of IR.
        (r"[';/]", Punctuation),
    ]


_extend_lexer()


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that do not lie in docs/."""
    file: Any = importlib.import_module("mkdocs.structure.files").File
    for path, page in _ELSEWHERE.items():
        files.append(file.generated(config, page, content=(_ROOT / path).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Turn links between files of the repository into links between pages, and name files that are no pages."""
    del config, files
    source: str = page.file.src_uri
    home = next((path for path, uri in _ELSEWHERE.items() if uri == source), f"docs/{source}")
    return _LINK.sub(lambda link: _linked(link, home, source), markdown)


def _linked(link: re.Match[str], home: str, source: str) -> str:
    text, target, anchor = link.groups(default="")
    found = ((_ROOT / home).parent / target).resolve()
    if not found.exists() or not found.is_relative_to(_ROOT):
        return link[0]  # mkdocs has an error for it.
    path = found.relative_to(_ROOT).as_posix()
    page = path.removeprefix("docs/") if path.startswith("docs/") else _PAGES.get(path)
    if page is None:
        return f"{text} (`{path}`)"
    return f"[{text}]({'../' * source.count('/')}{page}{anchor})"
