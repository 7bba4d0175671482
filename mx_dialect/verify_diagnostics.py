"""`--verify-diagnostics`: compares what was reported with the `expected-*` comments of the source.

The comment forms are upstream's: `// expected-error @+1 {{text}}`, also -warning, -remark and -note; `-re` for text
with regular expressions inside `{{...}}`; designators `@+N`, `@-N`, `@above`, `@below`, `@unknown`, none for the same line.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mx_dialect.diagnostics import Diagnostic, Severity

_EXPECTED = re.compile(
    r"expected-(error|note|remark|warning)(-re)? *(@([+-][0-9]+|above|below|unknown))? *\{\{(.*)\}\}$"
)
_MENTION = re.compile(r"expected-(error|note|remark|warning)")


@dataclass
class _Expectation:
    severity: Severity
    pattern: re.Pattern[str]
    text: str
    comment_line: int
    line: int | None  # None: a diagnostic without a position
    met: bool = False

    def matches(self, diagnostic: Diagnostic, file: str) -> bool:
        if diagnostic.severity != self.severity or not self.pattern.search(diagnostic.message):
            return False
        if self.line is None:
            return diagnostic.file is None
        return diagnostic.file == file and diagnostic.line == self.line


def _pattern(text: str, is_regex: bool) -> re.Pattern[str]:
    if not is_regex:
        return re.compile(re.escape(text))
    # Only the parts between double braces are regular expressions, as in FileCheck.
    parts = re.split(r"\{\{(.*?)\}\}", text)
    return re.compile("".join(f"(?:{p})" if i % 2 else re.escape(p) for i, p in enumerate(parts)))


def _expectations(source: str, file: str) -> tuple[list[_Expectation], list[Diagnostic]]:
    found: list[_Expectation] = []
    errors: list[Diagnostic] = []
    waiting: list[_Expectation] = []  # `@below` comments whose line is the next one without a designator
    last_plain = 0  # the last line without a designator, which `@above` means
    for number, text in enumerate(source.split("\n"), 1):
        match = _EXPECTED.search(text.rstrip())
        if match is None:
            if _MENTION.search(text) and "{{" in text and "//" in text.split("expected-")[0]:
                column = text.index("expected-") + 1
                errors.append(Diagnostic("error", "malformed expected-* comment", file, number, column))
            for expectation in waiting:
                expectation.line = number
            waiting.clear()
            last_plain = number
            continue
        where = match[4]
        try:
            pattern = _pattern(match[5], match[2] is not None)
        except re.error as error:
            errors.append(Diagnostic("error", f"invalid regular expression: {error}", file, number, match.start() + 1))
            continue
        severity: dict[str, Severity] = {"error": "error", "note": "note", "remark": "remark"}
        new = _Expectation(severity.get(match[1], "warning"), pattern, match[5], number, number)
        if where == "unknown":
            new.line = None
        elif where == "below":
            waiting.append(new)
        elif where == "above":
            new.line = last_plain
        elif where is not None:
            new.line = number + int(where)
        found.append(new)
    return found, errors


def _flatten(diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    flat: list[Diagnostic] = []
    for diagnostic in diagnostics:
        flat.append(diagnostic)
        # MLIR attaches the printed op to an error; mlir-opt turns that off when it verifies diagnostics.
        flat.extend(n for n in _flatten(diagnostic.notes) if not n.message.startswith("see current operation"))
    return flat


def check(source: str, file: str, actual: Sequence[Diagnostic], only_expected: bool = False) -> list[Diagnostic]:
    """Return one error for each expectation not met and, unless `only_expected`, each diagnostic not expected."""
    expectations, problems = _expectations(source, file)
    for diagnostic in _flatten(actual):
        for expectation in expectations:
            if not expectation.met and expectation.matches(diagnostic, file):
                expectation.met = True
                break
        else:
            if not only_expected:
                problems.append(
                    Diagnostic(
                        "error",
                        f"unexpected {diagnostic.severity}: {diagnostic.message}",
                        diagnostic.file,
                        diagnostic.line,
                        diagnostic.column,
                    )
                )
    lines = source.split("\n")
    problems.extend(
        Diagnostic(
            "error",
            f'expected {e.severity} "{e.text}" was not produced',
            file,
            e.comment_line,
            lines[e.comment_line - 1].index("expected-") + 1,
        )
        for e in expectations
        if not e.met
    )
    return problems
