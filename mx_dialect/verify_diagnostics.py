"""`--verify-diagnostics`: compares what was reported with the `expected-*` comments of the source.

The comment forms are upstream's: `// expected-error @+1 {{text}}`, also -warning, -remark and -note; `-re` for text
with regular expressions inside `{{...}}`; designators `@+N`, `@-N`, `@above`, `@below`, `@unknown`, none for the same
line. Clang's counts can stand before the braces, which upstream's comments do not have: `2` for exactly two, `1+`,
`1-3`, `+` for one or more, which is also what no count means, `*` for any number.
"""

import math
import re
import signal
import threading
import warnings
from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from mx_dialect.diagnostics import Diagnostic, MxError, Severity, tree, without_printed_op

SECONDS = 5.0
"""How long a regular expression may search a message: some would do it for years."""

_EXPECTED = re.compile(
    r"expected-(error|note|remark|warning)(-re)? *(@([+-][0-9]{1,9}|above|below|unknown))?"
    r" *(?P<count>\+|\*|[0-9]{1,9}(\+|-[0-9]{1,9})?)? *\{\{(?P<text>.*)\}\}$"
)
# What is meant to expect something, though upstream would read nothing from it. Without the bounds the search would
# take time that grows with the third power of the line.
_MALFORMED = re.compile(
    r"expected-(?:error|note|remark|warning)[^\s@{}]{0,80}(?: {0,80}@[^{}]{0,500}| {0,80}[0-9*+-]{1,80})? {0,80}\{"
)

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

    def fits(self, message: str) -> bool:
        """Tell whether the text is as expected, whatever the severity.

        Raises:
            MxError: the regular expression takes too long.
        """
        try:
            with _time_limit():
                return self.pattern.search(message) is not None
        except TimeoutError:
            problem = f"the regular expression takes more than {SECONDS:g} s on a message of {len(message)} characters"
            raise MxError.of(replace(self.here, message=problem)) from None

    def unmet(self) -> Diagnostic:
        """Return the error about what was produced too rarely."""
        times = f"produced {self.met} times, not {self.least}" if self.met else "not produced"
        return replace(self.here, message=f'expected {self.severity} "{self.text}" was {times}')


@contextmanager
def _time_limit() -> Generator[None]:
    """Raise `TimeoutError` after `SECONDS` of processor time, where a signal can; regular expressions see it."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before or signal.SIG_DFL)


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
    for part, is_regex_part in _parts(text):
        spelled += f"(?:{_NAMED_CLASS.sub(_class, part)})" if is_regex_part else re.escape(part)
    with warnings.catch_warnings():
        # About "[[", which future versions of Python may read in another way.
        warnings.simplefilter("ignore", FutureWarning)
        try:
            return re.compile(spelled, re.DOTALL)
        except (OverflowError, RecursionError) as error:
            raise re.error(str(error)) from None


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a text inside and outside of double braces, and whether a part is inside."""
    position = 0
    while (opened := text.find("{{", position)) >= 0:
        closed = text.find("}}", opened + 2)
        if closed < 0:
            raise re.error("found start of regex with no end '}}'")
        yield text[position:opened], False
        yield text[opened + 2 : closed], True
        position = closed + 2
    yield text[position:], False


def _class(match: re.Match[str]) -> str:
    if match[1] not in _CLASSES:
        raise re.error(f"unknown character class '{match[1]}'")
    return _CLASSES[match[1]]


def _expected_in(line: str) -> re.Match[str] | None:
    # The end is looked at first: the search would come back to it for each "expected-" of the line.
    return _EXPECTED.search(line) if line.endswith("}}") else None


def _malformed_in(line: str) -> re.Match[str] | None:
    comment = line.find("//")
    return _MALFORMED.search(line, comment) if comment >= 0 else None


def _expectations(source: str, file: str) -> tuple[list[_Expectation], list[Diagnostic]]:
    found: list[_Expectation] = []
    errors: list[Diagnostic] = []
    waiting: list[_Expectation] = []  # `@below` comments whose line is the next one without a designator
    last_plain = 0  # the last line without a designator, which `@above` means
    for number, text in enumerate(source.split("\n"), 1):
        match = _expected_in(text.rstrip())
        least, most = _count(match["count"]) if match is not None else (1, math.inf)
        if match is None or least > most:
            malformed = _malformed_in(text)
            if malformed is not None:
                column = _column(text, malformed.start())
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

    Raises:
        MxError: a regular expression takes too long.
    """
    expectations, problems = _expectations(source, file)
    there: dict[tuple[str | None, int], list[_Expectation]] = defaultdict(list)
    for expectation in expectations:
        there[(None, 0) if expectation.line is None else (file, expectation.line)].append(expectation)
    # Upstream does not show operations in notes when it verifies diagnostics.
    for diagnostic in (part for each in actual for part in tree(without_printed_op(each))):
        fitting = [e for e in there.get((diagnostic.file, diagnostic.line), ()) if e.fits(diagnostic.message)]
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
