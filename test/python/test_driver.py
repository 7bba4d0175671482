"""Pipelines from Python: run_pipeline, options, errors with positions."""

from dataclasses import dataclass

import pytest

import mx_dialect
from mx_dialect import driver, passes, pipelines
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
        seen.append((root.name, options))  # pyright: ignore

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
        passes.register_pass(passes.get("mx-to-linalg"))  # pyright: ignore
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


def test_canonicalize_of_a_quantized_round_trip_keeps_it() -> None:
    module = mx_dialect.parse(TEXT)
    mx_dialect.run_pipeline(module, "canonicalize")
    assert "mx.dequantize_block" in mx_dialect.to_asm(module)
