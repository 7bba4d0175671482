"""Pipelines from Python: run_pipeline, options, errors with positions."""

import contextlib
import io
import re
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

import mx_dialect
from mx_dialect import diagnostics, driver, passes, pipelines
from mx_dialect._mlir import ir
from mx_dialect.diagnostics import Diagnostic
from mx_dialect.passes import Pass, option
from mx_dialect.pipeline_text import parse_elements
from mx_dialect.pipelines import Pipeline

TEXT = """
func.func @f(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = mx.quantize_block %x : tensor<4x8xf32> -> <4x8xf8E4M3FN, block_size = 4, scale_type = f8E8M0FNU>
  %1 = mx.dequantize_block %0 : <4x8xf8E4M3FN, block_size = 4, scale_type = f8E8M0FNU> -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
"""


@dataclass(frozen=True)
class Options:
    flag: bool = option(False, "a flag")
    block_size: int = option(4, "a number")
    mode: str = option("a", "a choice", choices=("a", "b"))
    share: float = option(0.5, "a fraction")


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Options]]:
    """Register a pass `test-record` that notes what it ran on and with which options."""
    seen: list[tuple[str, Options]] = []

    def run(root: object, options: Options) -> None:
        seen.append((root.name, options))

    monkeypatch.setitem(passes._registered, "test-record", Pass("test-record", "records", run, Options))
    return seen


@pytest.mark.parametrize(
    "text", ["mx-to-linalg,canonicalize", "builtin.module(mx-to-linalg, canonicalize)", "any(mx-to-linalg)"]
)
def test_both_forms_of_a_pipeline(text: str) -> None:
    module = mx_dialect.parse(TEXT)
    mx_dialect.run_pipeline(module, text)
    assert "linalg.generic" in mx_dialect.to_asm(module)


def test_an_empty_pipeline_changes_nothing() -> None:
    module = mx_dialect.parse(TEXT)
    before = mx_dialect.to_asm(module)
    mx_dialect.run_pipeline(module, "")
    mx_dialect.run_pipeline(module, "builtin.module()")
    assert mx_dialect.to_asm(module) == before


def test_a_pipeline_for_another_operation_is_refused() -> None:
    module = mx_dialect.parse(TEXT)
    function = module.body.operations[0]
    for text in ("func.func(cse)", "any(cse)", "cse", "func.func()"):
        mx_dialect.run_pipeline(function, text)
    with pytest.raises(mx_dialect.MxError, match=r"can't run 'builtin\.module' pass manager on 'func\.func' op"):
        mx_dialect.run_pipeline(function, "builtin.module(cse)")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ""),
        ("cse,", r":1:5: error: expected a pass or an anchor operation\ncse,\n    \^"),
        (",cse", r":1:1: error: expected a pass"),
        ("cse,,cse", r":1:5: error: expected a pass"),
        ("func.func(cse,)", r":1:15: error: expected a pass"),
        ("func.func((cse))", r":1:11: error: expected a pass"),
        ("func.func(cse", r":1:10: error: encountered unbalanced parentheses"),
        ("func.func(cse cse)", r":1:15: error: expected ',' or '\)' after a pass"),
        ("cse)", r":1:4: error: encountered extra closing '\)'"),
        ("cse{a", r":1:4: error: missing closing '}'"),
        ("cse}", r":1:4: error: expected ','"),
        ("cse,\n  nope", r":2:3: error: 'nope' does not refer to a registered pass or pass pipeline\n  nope\n  \^"),
        ("cse{x=1}", r":1:1: error: <Pass-Options-Parser>: no such option x\nfailed to add `cse`"),
        ("cse,func.func(one-shot-bufferize)", r":1:15: error: .* did you intend to nest\?"),
    ],
)
def test_pipelines_that_do_not_parse_say_where(text: str, message: str) -> None:
    module = mx_dialect.parse(TEXT)
    if not message:
        mx_dialect.run_pipeline(module, text)
        return
    with pytest.raises(mx_dialect.MxError, match=message):
        mx_dialect.run_pipeline(module, text)


def test_a_pipeline_over_several_lines() -> None:
    (element,) = parse_elements(" builtin.module (\n cse , func.func( canonicalize{ top-down=0 } ),func.func())")
    assert element.text == "builtin.module(cse,func.func(canonicalize{top-down=0}),func.func())"
    assert element.pretty().splitlines() == [
        "builtin.module(",
        "  cse,",
        "  func.func(",
        "    canonicalize{top-down=0}",
        "  ),",
        "  func.func()",
        ")",
    ]
    assert parse_elements(element.pretty())[0].text == element.text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("test-record", Options()),
        ("test-record{flag=1 block-size=8}", Options(True, 8)),
        ("test-record{flag block_size=8}", Options(True, 8)),
        ("test-record{flag=false mode=b share=0.25}", Options(False, 4, "b", 0.25)),
        ("test-record{mode='b'}", Options(mode="b")),
    ],
)
def test_options(recorded: list[tuple[str, Options]], text: str, expected: Options) -> None:
    mx_dialect.run_pipeline(mx_dialect.parse(TEXT), text)
    assert recorded == [("builtin.module", expected)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("test-record{nope=1}", "has no option 'nope'; its options: flag, block-size, mode, share"),
        ("test-record{block-size=x}", "option 'block-size' of pass 'test-record' takes an integer, not 'x'"),
        ("test-record{flag=maybe}", "takes true or false, not 'maybe'"),
        ("test-record{share=much}", "takes a number, not 'much'"),
        ("test-record{mode=c}", "is one of a, b, not 'c'"),
    ],
)
def test_wrong_options(recorded: list[tuple[str, Options]], text: str, message: str) -> None:
    with pytest.raises(mx_dialect.MxError, match=message):
        mx_dialect.run_pipeline(mx_dialect.parse(TEXT), text)
    assert recorded == []


def test_a_python_pass_under_an_anchor(recorded: list[tuple[str, Options]]) -> None:
    module = mx_dialect.parse(TEXT + TEXT.replace("@f", "@g"))
    mx_dialect.run_pipeline(module, "builtin.module(func.func(test-record,cse),test-record)")
    assert [name for name, _ in recorded] == ["func.func", "func.func", "builtin.module"]


def test_list_options_stay_whole() -> None:
    (element,) = parse_elements("p{sizes=1,2,3 name={a b} other='x y',last=4}")
    assert element.option_items() == {"sizes": "1,2,3", "name": "a b", "other": "x y", "last": "4"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("a=1,b=2", {"a": "1", "b": "2"}),
        ("a=1, \t b=2", {"a": "1", "b": "2"}),
        ("a=1,2 b,c=3", {"a": "1,2", "b": "", "c": "3"}),
        ("a=,,b=1", {"a": ",", "b": "1"}),
        ("a=1,b c=2", {"a": "1,b", "c": "2"}),
        ("a={b=1,c=2},d='x,y=z' e=\"=,\"", {"a": "b=1,c=2", "d": "x,y=z", "e": "=,"}),
    ],
)
def test_a_comma_ends_an_option_before_a_name(options: str, expected: dict[str, str]) -> None:
    (element,) = parse_elements(f"p{{{options}}}")
    assert element.option_items() == expected


@pytest.mark.parametrize("repeated", ["1,", "1,\t\t", ",", ", ", "x,\t"])
def test_long_options_take_time_in_proportion(repeated: str) -> None:
    """Looking at all that follows at each comma took minutes."""
    (element,) = parse_elements("p{sizes=" + repeated * 300_000 + "}")
    start = time.process_time()
    assert len(element.option_items()) <= 2
    assert time.process_time() - start < 5


def test_a_named_pipeline_inside_another(monkeypatch: pytest.MonkeyPatch, recorded: list[tuple[str, Options]]) -> None:
    monkeypatch.setitem(
        pipelines.PIPELINES, "test-two", Pipeline("test-two", "", ("test-record", "test-record{flag=1}"))
    )
    mx_dialect.run_pipeline(mx_dialect.parse(TEXT), "cse,test-two,test-record")
    assert [options.flag for _, options in recorded] == [False, True, False]
    with pytest.raises(mx_dialect.MxError, match=r"runs on builtin\.module only"):
        mx_dialect.run_pipeline(mx_dialect.parse(TEXT), "func.func(test-two)")


def test_names_are_taken_once() -> None:
    with pytest.raises(ValueError, match="registered already"):
        passes.register_pass(passes.get("mx-to-linalg"))
    with pytest.raises(ValueError, match="not kebab-case"):
        passes.register_pass(Pass("MxThing", "", lambda root, options: None))
    with pytest.raises(ValueError, match="registered already"):
        pipelines.register_pipeline(Pipeline("mx-lower-to-llvm", "", ()))


def test_errors_carry_their_positions() -> None:
    module = mx_dialect.parse(
        "func.func @f(%x: !mx.tensor<8xf8E4M3FN, block_size = 4, scale_type = f8E8M0FNU>) {\n"
        "  %0 = builtin.unrealized_conversion_cast %x : !mx.tensor<8xf8E4M3FN, block_size = 4, scale_type = f8E8M0FNU> to i32\n"
        "  return\n}",
        "here.mlir",
    )
    with pytest.raises(mx_dialect.MxError) as caught:
        mx_dialect.run_pipeline(module, "mx-to-linalg")
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.file, diagnostic.line, diagnostic.column) == ("here.mlir", 2, 8)
    assert str(caught.value).startswith("here.mlir:2:8: error: 'builtin.unrealized_conversion_cast' op")


def test_a_failing_upstream_pass_is_an_mx_error() -> None:
    module = mx_dialect.parse("func.func @f() { return }")
    with pytest.raises(mx_dialect.MxError, match="transform"):
        mx_dialect.run_pipeline(module, "transform-interpreter")


def test_diagnostic_settings_of_the_users_context_are_restored() -> None:
    module = mx_dialect.parse(TEXT)
    context = module.context
    assert context.emit_error_diagnostics is False
    mx_dialect.run_pipeline(module, "cse")
    assert context.emit_error_diagnostics is False


def test_timing_counts_every_pass() -> None:
    module = mx_dialect.parse(TEXT)
    timing = driver.Timing()
    driver.run_pipeline(module, "mx-to-linalg,cse", driver.Settings(timing=timing))
    assert [name for name, _ in timing.seconds] == ["mx-to-linalg", "cse"]
    assert "mx-to-linalg" in timing.report()


def dumps(pipeline: str, **printing: object) -> list[str]:
    """Return the titles of the IR dumps around the passes of a pipeline, and the function's name for nested ones."""
    stream = io.StringIO()
    module = mx_dialect.parse(TEXT + TEXT.replace("@f", "@g"))
    settings = driver.Settings(printing=driver.IrPrinting(**printing), stream=stream)
    with contextlib.suppress(mx_dialect.MxError):
        driver.run_pipeline(module, pipeline, settings)
    words = re.findall(r"^// -----// IR Dump (.*) //----- //\n(func.func @\w)?", stream.getvalue(), re.M)
    return [f"{title} {function[-1:]}".rstrip() for title, function in words]


FAILING = "mx-to-linalg,cse,cse,func.func(symbol-dce)"


@pytest.mark.parametrize(
    ("printing", "expected"),
    [
        ({}, []),
        (
            {"before_all": True},
            ["Before mx-to-linalg", "Before cse", "Before cse", "Before symbol-dce f", "Before symbol-dce g"],
        ),
        ({"before": frozenset({"cse"})}, ["Before cse", "Before cse"]),
        ({"after": frozenset({"mx-to-linalg"})}, ["After mx-to-linalg"]),
        ({"after": frozenset({"symbol-dce"})}, ["After symbol-dce Failed f", "After symbol-dce Failed g"]),
        ({"after_failure": True}, ["After symbol-dce Failed f", "After symbol-dce Failed g"]),
        ({"after_all": True, "after_failure": True, "module_scope": True}, ["After symbol-dce Failed"]),
        ({"after": frozenset({"cse"}), "after_failure": True}, []),
        ({"after": frozenset({"cse", "mx-to-linalg"}), "after_change": True}, ["After mx-to-linalg", "After cse"]),
        ({"after_change": True, "module_scope": True}, ["After mx-to-linalg", "After cse", "After symbol-dce Failed"]),
    ],
)
def test_which_dumps_are_printed(printing: dict[str, object], expected: list[str]) -> None:
    assert dumps(FAILING, **printing) == expected


def test_dumps_after_a_change_show_what_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    def rename_f(root, options) -> None:
        if root.attributes["sym_name"].value == "f":
            root.attributes["changed"] = ir.UnitAttr.get(root.context)

    monkeypatch.setitem(passes._registered, "test-rename", Pass("test-rename", "", rename_f))
    assert dumps("func.func(test-rename)", after_change=True) == ["After test-rename f"]
    assert dumps("func.func(test-rename)", after_all=True) == ["After test-rename f", "After test-rename g"]


def test_canonicalize_runs_ours_wherever_it_is_nested() -> None:
    text = TEXT.replace(
        "  %1 =",
        "  %one = arith.constant 1.0 : f32\n"
        "  %x1 = mx.fold_scale %0, %one : <4x8xf8E4M3FN, block_size = 4, scale_type = f8E8M0FNU>, f32"
        " -> <4x8xf8E4M3FN, block_size = 4, scale_type = f8E8M0FNU>\n  %1 =",
    ).replace("mx.dequantize_block %0", "mx.dequantize_block %x1")
    for pipeline in (
        "canonicalize",
        "func.func(canonicalize)",
        "any(canonicalize{top-down=0})",
        "any(any(canonicalize))",
    ):
        module = mx_dialect.parse(text)
        mx_dialect.run_pipeline(module, "cse")
        assert "mx.fold_scale" in mx_dialect.to_asm(module)
        mx_dialect.run_pipeline(module, pipeline)
        assert "mx.fold_scale" not in mx_dialect.to_asm(module), pipeline


def test_bytes_are_text_or_bytecode() -> None:
    assert "mx.dequantize_block" in mx_dialect.to_asm(mx_dialect.parse(TEXT.encode()))
    with pytest.raises(mx_dialect.MxError, match=r"^here:2:3: error: the input is not valid UTF-8: byte 0xc3"):
        mx_dialect.parse(b"// \xc3\xa9\n//\xc3", "here")
    with pytest.raises(mx_dialect.MxError, match=r"^here:"):
        mx_dialect.parse(b"ML\xefR\x01", "here")


def test_a_name_is_a_place_when_nothing_else_is() -> None:
    """Models from elsewhere may have names for locations, and nothing else."""
    module = mx_dialect.parse("func.func @f() { return }")
    with module.context:
        named, unknown = ir.Location.name("layer1"), ir.Location.unknown()
        inside = ir.Location.name("layer2", ir.Location.file("model.py", 3, 4))
    assert diagnostics.at(named, "error", "wrong").header() == 'error: loc("layer1"): wrong'
    assert diagnostics.at(unknown, "error", "wrong").header() == "error: wrong"
    assert diagnostics.at(inside, "error", "wrong").header() == "model.py:3:4: error: wrong"


def test_a_source_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    text_of = diagnostics._text_of

    def counting(path: str) -> str | None:
        read.append(path)
        return text_of(path)

    monkeypatch.setattr(diagnostics, "_text_of", counting)
    file = tmp_path / "file.mlir"
    file.write_text("one\ntwo\r\n\u00e9 three")
    sources = diagnostics.Sources()
    for _ in range(3):
        found = diagnostics.render(Diagnostic("error", "wrong", str(file), 3, 4), sources)
        assert found == f"{file}:3:4: error: wrong\n\u00e9 three\n  ^"
        assert diagnostics.render(Diagnostic("error", "wrong", str(file), 4, 1), sources) == f"{file}:4:1: error: wrong"
        assert diagnostics.render(Diagnostic("error", "x", "/no/file", 1, 1), sources) == "/no/file:1:1: error: x"
    assert read == [str(file), "/no/file"]


@pytest.mark.parametrize("column", [1, 100, 399, 400, 401, 5000, 9999, 10_000])
def test_a_long_line_is_shown_around_the_column(column: int) -> None:
    line = "".join(chr(ord("a") + i * 7 % 26) for i in range(10_000))
    shown, caret = diagnostics._excerpt(line, column).split("\n")
    assert len(shown) <= 406
    assert shown[len(caret) - 1] == line[column - 1]
    assert shown.removeprefix("...").removesuffix("...") in line
    assert diagnostics._excerpt("\tshort", 3) == "\tshort\n\t ^"


def test_canonicalize_of_a_quantized_round_trip_keeps_it() -> None:
    module = mx_dialect.parse(TEXT)
    mx_dialect.run_pipeline(module, "canonicalize")
    assert "mx.dequantize_block" in mx_dialect.to_asm(module)
