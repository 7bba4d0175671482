"""`--verify-diagnostics`: compares what was reported with the `expected-*` comments of the source.

The comment forms are upstream's: `// expected-error @+1 {{text}}`, also -warning, -remark and -note; `-re` for text
with regular expressions inside `{{...}}`; designators `@+N`, `@-N`, `@above`, `@below`, `@unknown`, none for the same
line. Clang's counts can stand before the braces, which upstream's comments do not have: `2` for exactly two, `1+`,
`1-3`, `+` for one or more, which is also what no count means, `*` for any number.
"""

import math
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mx_dialect.diagnostics import Diagnostic, Severity, tree, without_printed_op

_EXPECTED = re.compile(
    r"expected-(error|note|remark|warning)(-re)? *(@([+-][0-9]+|above|below|unknown))?"
    r" *(?P<count>\+|\*|[0-9]{1,9}(\+|-[0-9]{1,9})?)? *\{\{(?P<text>.*)\}\}$"
)
# A comment that is meant to expect something, though upstream would read nothing from it.
_MALFORMED = re.compile(r"//.*(?P<start>expected-(error|note|remark|warning)\S*( *@[^{}]*)?( *[0-9*+-]+)? *\{)")

# Upstream's regular expressions are POSIX's; these are what its named classes are inside Python's brackets.
_NAMED_CLASS = re.compile(r"\[:(\w+):\]")
_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": r" \t",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\s",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}


@dataclass
class _Expectation:
    severity: Severity
    pattern: re.Pattern[str]
    text: str
    here: Diagnostic  # an error at the comment, its text to be filled in
    line: int | None  # None: a diagnostic without a position
    least: int = 1
    most: float = math.inf
    met: int = 0

    def fits(self, diagnostic: Diagnostic, file: str) -> bool:
        """Tell whether place and text are as expected, whatever the severity."""
        place = (None, 0) if self.line is None else (file, self.line)
        return (diagnostic.file, diagnostic.line) == place and self.pattern.search(diagnostic.message) is not None

    def unmet(self) -> Diagnostic:
        """Return the error about what was produced too rarely."""
        times = f"produced {self.met} times, not {self.least}" if self.met else "not produced"
        return replace(self.here, message=f'expected {self.severity} "{self.text}" was {times}')


def _count(text: str | None) -> tuple[int, float]:
    """Return how often at least and at most a diagnostic is expected."""
    least, dash, most = (text or "+").partition("-")
    if dash:
        return int(least), int(most)
    if least in ("*", "+"):
        return int(least == "+"), math.inf
    return int(least.removesuffix("+")), math.inf if least.endswith("+") else int(least)


def _pattern(text: str, is_regex: bool) -> re.Pattern[str]:
    """Return the pattern that a message must contain.

    Raises:
        re.error: the text is no regular expression.
    """
    if not is_regex:
        return re.compile(re.escape(text))
    # Only the parts between double braces are regular expressions, as in FileCheck.
    spelled = ""
    for index, part in enumerate(re.split(r"\{\{(.*?)\}\}", text)):
        if index % 2:
            spelled += f"(?:{_NAMED_CLASS.sub(_class, part)})"
        elif "{{" in part:
            raise re.error("found start of regex with no end '}}'")
        else:
            spelled += re.escape(part)
    with warnings.catch_warnings():
        # About "[[", which future versions of Python may read in another way.
        warnings.simplefilter("ignore", FutureWarning)
        return re.compile(spelled, re.DOTALL)


def _class(match: re.Match[str]) -> str:
    if match[1] not in _CLASSES:
        raise re.error(f"unknown character class '{match[1]}'")
    return _CLASSES[match[1]]


def _expectations(source: str, file: str) -> tuple[list[_Expectation], list[Diagnostic]]:
    found: list[_Expectation] = []
    errors: list[Diagnostic] = []
    waiting: list[_Expectation] = []  # `@below` comments whose line is the next one without a designator
    last_plain = 0  # the last line without a designator, which `@above` means
    for number, text in enumerate(source.split("\n"), 1):
        match = _EXPECTED.search(text.rstrip())
        least, most = _count(match["count"]) if match is not None else (1, math.inf)
        if match is None or least > most:
            malformed = _MALFORMED.search(text)
            if malformed is not None:
                column = _column(text, malformed.start("start"))
                errors.append(Diagnostic("error", "malformed expected-* comment", file, number, column))
            for expectation in waiting:
                expectation.line = number
            waiting.clear()
            last_plain = number
            continue
        where = match[4]
        try:
            pattern = _pattern(match["text"], match[2] is not None)
        except re.error as error:
            column = _column(text, match.start())
            errors.append(Diagnostic("error", f"invalid regular expression: {error}", file, number, column))
            continue
        severity: dict[str, Severity] = {"error": "error", "note": "note", "remark": "remark"}
        here = Diagnostic("error", "", file, number, _column(text, match.start()))
        new = _Expectation(severity.get(match[1], "warning"), pattern, match["text"], here, number, least, most)
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


def _column(line: str, start: int) -> int:
    return len(line[:start].encode()) + 1


def check(source: str, file: str, actual: Sequence[Diagnostic], only_expected: bool = False) -> list[Diagnostic]:
    """Return one error for each expectation not met and, unless `only_expected`, each diagnostic not expected.

    An expectation without a count may be met more than once, but not while one like it waits to be met.
    """
    expectations, problems = _expectations(source, file)
    # Upstream does not show operations in notes when it verifies diagnostics.
    for diagnostic in (part for each in actual for part in tree(without_printed_op(each))):
        fitting = [e for e in expectations if e.fits(diagnostic, file)]
        matching = [e for e in fitting if e.severity == diagnostic.severity and e.met < e.most]
        if matching:
            next((e for e in matching if e.met < e.least), matching[0]).met += 1
        elif not only_expected:
            problems.append(_unexpected(diagnostic, fitting))
    problems.extend(e.unmet() for e in expectations if e.met < e.least)
    return problems


def _unexpected(diagnostic: Diagnostic, fitting: Sequence[_Expectation]) -> Diagnostic:
    """Return an error about a diagnostic that nothing expects; those that `fitting` expect differ in severity only."""
    near = next((e for e in fitting if e.severity != diagnostic.severity), None)
    if near is not None:
        problem = f"'{diagnostic.severity}' diagnostic emitted when expecting a '{near.severity}'"
        return replace(near.here, message=f"{problem}: {diagnostic.message}")
    return replace(
        diagnostic, severity="error", message=f"unexpected {diagnostic.severity}: {diagnostic.message}", notes=()
    )
