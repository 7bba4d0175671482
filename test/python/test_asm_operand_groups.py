"""Operands in groups in custom assembly: `mx.submit @kernel(%x) after(%t) cores(%n) if(%p)`."""

import re

import pytest

import mx_dialect
from mx_dialect import asm
from mx_dialect.asm import operation_table, to_custom, to_generic

ARGUMENTS = "%arg0: tensor<4xf32>, %arg1: index, %arg2: !mx.task, %arg3: i1"
TYPES = {"%arg0": "tensor<4xf32>", "%arg1": "index", "%arg2": "!mx.task", "%arg3": "i1"}


def module(line: str) -> str:
    return f"module {{\n  func.func @f({ARGUMENTS}) {{\n    {line}\n    return\n  }}\n}}\n"


def array(numbers: list[int]) -> str:
    return f"array<i32: {', '.join(map(str, numbers))}>"


FORMS = [
    ("@k()", "", "", (0, 0, 0, 0)),
    ("@k(%arg0)", "", "", (1, 0, 0, 0)),
    ("@k(%arg0, %arg1, %arg0)", "", "f32", (3, 0, 0, 0)),
    ("@k() after(%arg2)", "", "!mx.task", (0, 1, 0, 0)),
    ("@k() cores(%arg1)", "", "", (0, 0, 1, 0)),
    ("@k() if(%arg3)", "", "", (0, 0, 0, 1)),
    ("@k(%arg3) after(%arg2, %arg2) cores(%arg1) if(%arg3)", "", "f32, index, !mx.task", (1, 2, 1, 1)),
    ("@k(%arg0) cores(%arg1)", "sync_end, sync_start", "!mx.task", (1, 0, 1, 0)),
    ('@"a (b)"(%arg0) if(%arg3)', 'a.b = "x) after(", a.c = {d = [1]}', "", (1, 0, 0, 1)),
]


@pytest.mark.parametrize(("form", "attributes", "results", "sizes"), FORMS)
def test_both_directions(form: str, attributes: str, results: str, sizes: tuple[int, ...]) -> None:
    values = re.findall(r"%\w+", form)
    types = ", ".join(TYPES[value] for value in values)
    count = len(results.split(", ")) if results else 0
    assigned = {0: "", 1: "%0 = "}.get(count, f"%0:{count} = ")
    arrow = {0: "", 1: f" -> {results}"}.get(count, f" -> ({results})")
    signature = types + arrow if values else f"{arrow.strip() or '()'}"
    dictionary = f" {{{attributes}}}" if attributes else ""
    text = module(f"{assigned}mx.submit {form}{dictionary} : {signature}")
    parsed = mx_dialect.parse(text)
    assert mx_dialect.to_asm(parsed) == text
    generic = mx_dialect.to_asm(parsed, generic=True)
    assert f'"mx.submit"({", ".join(values)})' in generic
    arguments, *others = sizes
    segments = [1] * arguments + [0] * (64 - arguments) + others
    assert f"operandSegmentSizes = {array(segments)}" in generic
    assert f"resultSegmentSizes = {array([1] * count + [0] * (16 - count))}" in generic
    assert f"callee = {form.partition('(%')[0].removesuffix(' if').partition('()')[0]}" in generic
    assert mx_dialect.to_asm(mx_dialect.parse(generic)) == text


def test_blanks_comments_lines_and_empty_groups() -> None:
    text = """mx.submit // @no
    @k ( // )
      %arg0 // %arg9
      , %arg1 ) after ( // nothing
    ) cores
    () if ( %arg3 // if
    ) { } : tensor<4xf32>,
      index, i1"""
    assert "mx.submit @k(%arg0, %arg1) if(%arg3) : tensor<4xf32>, index, i1" in mx_dialect.to_asm(
        mx_dialect.parse(module(text))
    )
    assert to_generic(text, "-").text.count("\n") == text.count("\n")


@pytest.mark.parametrize(
    ("line", "marked", "message"),
    [
        ("mx.submit @k(%arg0) after(%argX) : tensor<4xf32>, !mx.task", "%argX", "use of undeclared SSA value name"),
        ("mx.submit @k(%arg0) if(%arg3) : tensor<4xf32>, i32", "%arg3", "expects different type than prior uses"),
        ("mx.submit @k(%arg0)\n  after(%arg1) : tensor<4xf32>, index", "mx.submit", "dependencies must be tasks"),
        (
            "mx.submit @k(%arg0) {callee = @l} : tensor<4xf32>",
            "callee",
            "duplicate key 'callee' in dictionary attribute",
        ),
        ("mx.submit @k(%arg0) {a = b c} : tensor<4xf32>", " b c", "expected attribute value"),
        ("mx.submit @k(%arg0) cores(%arg1) : tensor<4xf32>, index -> !mx.tile<4xi8>", "!mx.tile", "must have rank 2"),
        ("%0 = mx.submit @k() : ()", "%0 = ", "cannot name an operation with no results"),
    ],
)
def test_errors_are_at_the_users_place(line: str, marked: str, message: str) -> None:
    text = module(line)
    with pytest.raises(mx_dialect.MxError) as caught:
        mx_dialect.parse(text, "x.mlir")
    found = caught.value.diagnostics[0]
    assert message in found.message
    lines = text.split("\n")
    assert lines[found.line - 1][found.column - 1 :].startswith(marked)


GENERIC = '%0 = "mx.submit"(%a, %b) {{callee = {callee}, operandSegmentSizes = array<i32: {sizes}>, resultSegmentSizes = array<i32: {results}>}} : (i32, i32) -> i32'
ZEROS = ", 0" * 62
ONE = "1" + ", 0" * 15


def test_what_fits_is_printed_in_custom_form() -> None:
    line = GENERIC.format(callee="@k", sizes=f"1, 1{ZEROS}, 0, 0, 0", results=ONE)
    assert to_custom(line) == "%0 = mx.submit @k(%a, %b) : i32, i32 -> i32"


@pytest.mark.parametrize(
    "parameters",
    [
        {"callee": "@a::@b"},
        {"callee": '"k"'},
        {"sizes": f"2, 0{ZEROS}, 0, 0, 0"},
        {"sizes": f"0, 1{ZEROS}, 1, 0, 0"},
        {"sizes": f"1, 1{ZEROS}, 1, 0, 0"},
        {"sizes": f"1, 0{ZEROS}, 0, 0, 0"},
        {"sizes": f"1, 1{ZEROS}, 0, 0"},
        {"sizes": f"1, 1{ZEROS}, 0, 0, 0, 0"},
        {"sizes": "many"},
        {"results": "0" + ", 0" * 15},
        {"results": "1, 1" + ", 0" * 14},
        {"results": "1"},
    ],
    ids=str,
)
def test_what_does_not_fit_stays_generic(parameters: dict[str, str]) -> None:
    fitting = {"callee": "@k", "sizes": f"1, 1{ZEROS}, 0, 0, 0", "results": ONE}
    line = GENERIC.format_map(fitting | parameters)
    assert to_custom(line) == line


def test_the_table_has_the_groups_of_the_class() -> None:
    arity = operation_table()["mx.submit"]
    assert [(group.keyword, group.slots) for group in arity.groups] == [("", 64), ("after", 0), ("cores", 0), ("if", 0)]
    assert (arity.symbol, arity.result_slots, arity.operands, arity.results) == ("callee", 16, None, None)
    others = [a for name, a in operation_table().items() if name != "mx.submit"]
    assert not any(a.groups or a.symbol or a.result_slots for a in others)


def test_generic_operations_in_an_invalid_module_are_printed_as_they_are() -> None:
    """A printout need not be of a valid module: nothing is lost in it."""
    line = '    %0:2 = "mx.submit"(%arg0) {callee = @k} : (i32) -> (i32, i32)'
    assert asm.to_custom(line) == line
