"""--verify-diagnostics: what each form of comment expects, and that nothing passes because nothing was compared."""

import re
import signal
import time

import pytest

from mx_dialect import verify_diagnostics
from mx_dialect.diagnostics import Diagnostic, MxError, Severity
from mx_dialect.input_text import split
from mx_dialect.verify_diagnostics import check

FILE = "file.mlir"


def reported(
    line: int, message: str = "it is wrong", severity: Severity = "error", notes: tuple[Diagnostic, ...] = ()
) -> Diagnostic:
    return Diagnostic(severity, message, FILE if line else None, line, 1 if line else 0, notes)


def problems(source: str, *actual: Diagnostic, only_expected: bool = False) -> list[str]:
    return [d.header() for d in check(source, FILE, actual, only_expected)]


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("op // expected-error {{is wrong}}", 1),
        ("op // expected-error{{is wrong}}", 1),
        ("op // expected-error   {{is wrong}}  \r", 1),
        ("// expected-error @+1 {{is wrong}}\nop", 2),
        ("// expected-error@+2 {{is wrong}}\n\nop", 3),
        ("op\n// expected-error @-1{{is wrong}}", 1),
        ("op\n\n// expected-error @above {{is wrong}}", 2),
        ("op\n// expected-note @above {{also}}\n// expected-error @above {{is wrong}}", 1),
        ("// expected-error @below {{is wrong}}\nop\nop\nop", 2),
        ("// expected-error @below {{is wrong}}\n// expected-note @below {{also}}\nop", 3),
        ("// expected-error @unknown {{is wrong}}\nop", 0),
        ("op // expected-error-re {{it {{[a-z]+}} wrong}}", 1),
        ("op // expected-error-re {{{{^}}it {{is|was}} wrong{{$}}}}", 1),
        ("op // expected-error-re {{it{{[[:space:]]+[[:alpha:]]+}} wrong}}", 1),
    ],
)
def test_forms_of_expectations(source: str, line: int) -> None:
    also = [reported(line, "also", "note")] if "also" in source else []
    assert problems(source, reported(line), *also) == []
    assert problems(source, *also) != []
    for severity in ("warning", "remark", "note"):
        spelled = source.replace("-error", f"-{severity}")
        assert problems(spelled, reported(line, severity=severity), *also) == []
        assert problems(spelled, reported(line), *also) != []
    assert problems(source, reported(line, "it is right"), *also) != []
    assert problems(source, reported(line + 7), *also) != []


def test_text_is_no_regular_expression_unless_it_says_so() -> None:
    assert problems("op // expected-error {{[a](b)}}", reported(1, "x [a](b) y")) == []
    assert problems("op // expected-error {{i.}}", reported(1)) != []
    assert problems("op // expected-error {{}}", reported(1)) == []
    # Outside the inner braces it is not one either.
    assert problems("op // expected-error-re {{i. {{is}}}}", reported(1)) != []


def test_unmet_and_unexpected_are_said_with_their_places() -> None:
    assert problems("op // expected-error {{nothing}}") == [
        f'{FILE}:1:7: error: expected error "nothing" was not produced'
    ]
    assert problems("op", reported(1)) == [f"{FILE}:1:1: error: unexpected error: it is wrong"]
    assert problems("op", reported(0, severity="remark")) == ["error: unexpected remark: it is wrong"]
    # Columns count bytes, as MLIR's do.
    assert problems("\u00e9 // expected-error {{no}}")[0].startswith(f"{FILE}:1:7: ")


def test_only_expected_ignores_the_unexpected_only() -> None:
    assert problems("op", reported(1), only_expected=True) == []
    assert problems("op // expected-error {{no}}", reported(1), only_expected=True) == [
        f'{FILE}:1:7: error: expected error "no" was not produced'
    ]


def test_the_wrong_severity_is_called_that() -> None:
    wrong, unmet = problems("op // expected-warning {{is wrong}}", reported(1))
    assert wrong == f"{FILE}:1:7: error: 'error' diagnostic emitted when expecting a 'warning': it is wrong"
    assert unmet == f'{FILE}:1:7: error: expected warning "is wrong" was not produced'


def test_an_expectation_may_be_met_more_than_once() -> None:
    """As upstream; and where it is written twice, both are met by two, which upstream does not grant."""
    once = "op // expected-error {{wrong}}"
    assert problems(once, reported(1), reported(1)) == []
    twice = "// expected-error @+1 {{wrong}}\n" + once
    assert problems(twice, reported(2), reported(2)) == []
    assert len(problems(twice, reported(2))) == 1


@pytest.mark.parametrize(
    ("count", "accepted"),
    [
        ("1", {1}),
        ("2", {2}),
        ("2+", {2, 3, 4}),
        ("1-3", {1, 2, 3}),
        ("0", {0}),
        ("+", {1, 2, 3, 4}),
        ("*", set(range(5))),
    ],
)
def test_counts(count: str, accepted: set[int]) -> None:
    for source in (
        f"op // expected-error {count} {{{{wrong}}}}",
        f"op // expected-error {count}{{{{wrong}}}}",
        f"op\n// expected-error-re @above {count} {{{{wr{{{{o}}}}ng}}}}",
    ):
        assert {n for n in range(5) if problems(source, *[reported(1)] * n) == []} == accepted


def test_wrong_counts_are_said() -> None:
    assert problems("op // expected-error 3 {{wrong}}", reported(1)) == [
        f'{FILE}:1:7: error: expected error "wrong" was produced 1 times, not 3'
    ]
    assert problems("op // expected-error 1 {{wrong}}", reported(1), reported(1)) == [
        f"{FILE}:1:1: error: unexpected error: it is wrong"
    ]
    # Expectations with counts are met in the order in which they are written.
    both = "// expected-error @+1 1 {{wrong}}\nop // expected-error 2 {{is}}"
    assert problems(both, *[reported(2)] * 3) == []
    assert len(problems(both, *[reported(2)] * 4)) == 1


def test_two_comments_in_one_line_are_one() -> None:
    """Upstream reads one comment a line, to its last braces."""
    assert len(problems("op // expected-error {{a}} expected-error {{b}}", reported(1, "a"), reported(1, "b"))) == 3
    assert problems("op // expected-error {{a}} expected-error {{b}}", reported(1, "a}} expected-error {{b")) == []


def test_notes_are_diagnostics_but_for_the_printed_operation() -> None:
    note, shown = reported(2, "because", "note"), reported(1, "see current operation: op", "note")
    error = reported(1, notes=(shown, note))
    assert problems("op // expected-error {{wrong}}\nop", error) == [f"{FILE}:2:1: error: unexpected note: because"]
    assert problems("op // expected-error {{wrong}}\nop // expected-note {{because}}", error) == []


def test_a_diagnostic_elsewhere_meets_nothing() -> None:
    elsewhere = Diagnostic("error", "it is wrong", "other.mlir", 1, 1)
    assert len(problems("op // expected-error {{is wrong}}", elsewhere)) == 2
    assert len(problems("op // expected-error @unknown {{is wrong}}", elsewhere)) == 2


@pytest.mark.parametrize(
    "comment",
    [
        "// expected-error {one brace}",
        "// expected-error {{no end}",
        "// expected-error {{more}} after",
        "// expected-errors {{plural}}",
        "// expected-error @next {{designator}}",
        "// expected-error @+one {{number}}",
        "// expected-error 3-1 {{range}}",
        "// expected-error ++ {{count}}",
        "// expected-error 99999999999 {{count}}",
        "// expected-error @ + 1 {{blanks}}",
    ],
)
def test_malformed_comments_are_errors(comment: str) -> None:
    """Upstream reads nothing from them, so that a test passes that means to expect something."""
    assert problems(f"op {comment}") == [f"{FILE}:1:7: error: malformed expected-* comment"]
    assert problems(f"op {comment}", only_expected=True) != []


def test_comments_about_expectations_expect_nothing() -> None:
    assert problems("// Every expected-error names a rule.\nop {a = 1}") == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{{[a-z}}", "unterminated character set"),
        ("{{(}}", "missing ), unterminated subpattern"),
        ("a{{b", "found start of regex with no end '}}'"),
        ("{{[[:word:]]}}", "unknown character class 'word'"),
    ],
)
def test_invalid_regular_expressions(text: str, problem: str) -> None:
    (found,) = problems(f"op // expected-error-re {{{{{text}}}}}")
    assert found.startswith(f"{FILE}:1:7: error: invalid regular expression: {problem}")


def test_pieces_are_on_their_lines() -> None:
    pieces, warnings = split("a\n// -----\nb\r\n  // -----\t\r\nc\n// -----", "// -----", FILE)
    assert pieces == ["a\n", "\n\nb\r\n", "\n\n\n\nc\n", "\n\n\n\n\n\n"]
    assert warnings == []


def test_other_markers() -> None:
    assert split("a\n#\nb", "#", FILE) == (["a\n", "\n\nb"], [])
    assert split("a\n// -----\nb", "// =====", FILE) == (["a\n// -----\nb"], [])
    assert split("a\n.*\nb\n.*", " .* ", FILE)[0] == ["a\n", "\n\nb\n", "\n\n\n\n"]


@pytest.mark.parametrize(
    ("line", "column"),
    [("// ----", 7), ("// ------", 7), ("// ----- more", 7), ("\u00e9 op // -----", 13), ("//-----", 0), ("// --", 0)],
)
def test_near_misses_of_the_marker(line: str, column: int) -> None:
    pieces, warnings = split(f"a\n{line}\nb", "// -----", FILE)
    assert pieces == [f"a\n{line}\nb"]
    expected = [f"{FILE}:2:{column}: warning: near miss with file split marker"]
    assert [w.header() for w in warnings] == (expected if column else [])


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="nothing ends a search without a timer")
def test_a_regular_expression_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_diagnostics, "SECONDS", 0.2)
    before = signal.getsignal(signal.SIGVTALRM)
    with pytest.raises(MxError, match=r"^file.mlir:1:7: error: the regular expression takes more than 0.2 s") as caught:
        problems("op // expected-error-re {{{{(a|a)*$}}b}}", reported(1, "a" * 200))
    assert "a message of 200 characters" in str(caught.value)
    assert signal.getsignal(signal.SIGVTALRM) == before
    assert problems("op // expected-error-re {{{{(a|a)*}}}}", reported(1, "a" * 200)) == []


@pytest.mark.parametrize(
    ("part", "reason"),
    [("a{99999999999}b", "the repetition number is too large"), ("(" * 5000, "."), ("(", "missing \\)")],
)
def test_regular_expressions_that_are_none(part: str, reason: str) -> None:
    (problem,) = problems(f"op // expected-error-re {{{{{{{{{part}}}}} }}}}")
    assert problem.startswith("file.mlir:1:7: error: invalid regular expression: ")
    assert re.search(reason, problem)


@pytest.mark.parametrize(
    "line",
    [
        "/" * 300_000,
        "// expected-error" + "@" * 300_000,
        "// expected-error" + "1" * 300_000,
        "// " + "expected-error {{" * 20_000,
        "// " + "expected-error @" * 20_000,
        "// " + "expected-error" * 20_000 + " " * 100_000,
        "// expected-error-re {{" + "{{" * 100_000 + "}}",
        "// expected-error @+" + "9" * 6000 + " {{x}}",
    ],
)
def test_long_lines_take_no_time(line: str) -> None:
    begin = time.process_time()
    problems(line)
    assert time.process_time() - begin < 5


def test_a_line_number_that_no_file_has() -> None:
    assert problems(f"// expected-error @+{'9' * 400} {{{{x}}}}") == [
        "file.mlir:1:4: error: malformed expected-* comment"
    ]


def test_many_expectations_and_many_diagnostics() -> None:
    begin = time.process_time()
    lines = ["op // expected-error {{is wrong}}"] * 20_000
    assert problems("\n".join(lines), *(reported(n + 1) for n in range(len(lines)))) == []
    assert time.process_time() - begin < 5
