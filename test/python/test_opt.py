"""The command line: exit codes, messages, flags, files. What needs a process of its own is in test_opt_process.py."""

import io
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import LOWERED, SEED, Run

from mx_dialect import diagnostics, driver, opt, opt_flags, passes, pipelines
from mx_dialect.passes import Pass

ROOT = Path(__file__).parents[2]


def test_seed_case_to_the_character() -> None:
    """The runner, as a process: the issue's input gives exactly the issue's output."""
    command = [sys.executable, str(ROOT / "tools" / "mx-opt.py"), "--mx-to-linalg"]
    run = subprocess.run(command, input=SEED, capture_output=True, text=True, check=True)
    assert run.stdout == LOWERED
    assert run.stderr == ""


def test_roundtrip_of_the_seed(mx_opt: Run) -> None:
    assert mx_opt("-", stdin=SEED) == (0, SEED, "")


def test_type_error_has_position_source_line_and_caret(mx_opt: Run, tmp_path: Path) -> None:
    file = tmp_path / "bad.mlir"
    line = "func.func private @f(!mx.tensor<4x70xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>)"
    file.write_text(f"\n{line}\n")
    code, out, err = mx_opt(str(file))
    assert (code, out) == (1, "")
    first, source, caret = err.splitlines()
    assert first.startswith(f"{file}:2:22: error: ")
    assert "extent 70 of blocked axis 1 is not a multiple of block size 32" in first
    assert source == line
    assert caret == " " * 21 + "^"


def test_stdin_is_named_as_mlir_opt_names_it(mx_opt: Run) -> None:
    code, _, err = mx_opt(stdin="func.func @f( {")
    assert code == 1
    assert err.startswith("<stdin>:1:14: error: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["/no/such/file"], "cannot open input file '/no/such/file': No such file or directory"),
        (["--no-such-flag"], "Unknown command line argument '--no-such-flag'"),
        (["--mx-to-linal"], "Did you mean '--mx-to-linalg'"),
        (["--cse", "--pass-pipeline=builtin.module(cse)"], "can't be used with individual pass options"),
        (["--pass-pipeline=cse"], "expected pass pipeline to be wrapped with the anchor operation type"),
        (["--pass-pipeline=builtin.module(nope)"], "'nope' does not refer to a registered pass or pass pipeline"),
        (["--pass-pipeline=builtin.module(mx-to-linlag)"], "did you mean 'mx-to-linalg'"),
        (["--pass-pipeline="], "expected pass pipeline to be wrapped with the anchor operation type"),
        (["--pass-pipeline=builtin.module(cse"], "encountered unbalanced parentheses"),
        (["--pass-pipeline=builtin.module(cse))"], ":1:20: error: encountered extra closing ')'"),
        (["--pass-pipeline=builtin.module(cse,)"], ":1:20: error: expected a pass or an anchor operation"),
        (["--pass-pipeline=builtin.module(cse cse)"], ":1:20: error: expected ',' or ')' after a pass"),
        (["--pass-pipeline=builtin.module(cse{a}b)"], ":1:22: error: expected ',' or ')' after a pass"),
        (["--pass-pipeline=builtin.module(canonicalize{a=1)"], "missing closing '}'"),
        (["--pass-pipeline=func.func(cse)"], "can't run 'func.func' pass manager on 'builtin.module' op"),
        (["--pass-pipeline=builtin.module(,)"], "expected a pass or an anchor operation"),
        (["--pass-pipeline=builtin.module(cse) cse"], "expected ','"),
        (["--pass-pipeline=" + "a(" * 100 + ")" * 100], "pipelines nest at most"),
        (["--canonicalize=no-such=1"], "no such option no-such"),
        (["--mx-canonicalize=a=1"], "pass 'mx-canonicalize' has no option 'a'; its options: none"),
        (["--mx-to-linalg=a=1"], "pass 'mx-to-linalg' has no option 'a'; its options: scale-products"),
        (["--mx-lower-to-llvm=a=1"], "pipeline 'mx-lower-to-llvm' takes no options"),
        (["--verify-each=perhaps"], "'perhaps' is invalid value for boolean argument"),
        (["--verify-diagnostics=perhaps"], "'perhaps' is not one of all, only-expected"),
        (["--mlir-elide-elementsattrs-if-larger=x"], "'x' value invalid for uint argument"),
        (["--mlir-elide-elementsattrs-if-larger=-1"], "'-1' value invalid for uint argument"),
        (["--mlir-elide-elementsattrs-if-larger=5000000000"], "'5000000000' value invalid for uint argument"),
        (["--emit-bytecode=maybe"], "for the --emit-bytecode option: 'maybe' is invalid value for boolean argument"),
        (["---cse"], "Unknown command line argument '---cse'"),
        (["-ofile"], "Unknown command line argument '-ofile'"),
        (["--mlir-print-ir-after=csr"], "cannot find a pass named 'csr'; did you mean 'cse'"),
        (["--mlir-print-ir-before=mx-lower-to-llvm"], "cannot find a pass named 'mx-lower-to-llvm'"),
        (["--cse", "-o"], "-o option: requires a value"),
        (["--version=1"], "does not allow a value"),
        (["a.mlir", "b.mlir"], "Too many positional arguments"),
        (["-", "-o", "/no/such/folder/out"], "cannot write output file '/no/such/folder/out'"),
    ],
)
def test_wrong_command_lines(mx_opt: Run, arguments: list[str], message: str) -> None:
    code, out, err = mx_opt(*arguments)
    assert code == 1
    assert out == ""
    assert message in err


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (KeyError("oops"), "KeyError: 'oops'"),
        (RuntimeError("several\n\nlines"), "RuntimeError: several lines"),
        (RecursionError("too deep"), "RecursionError: too deep"),
        (MemoryError(), "MemoryError:"),
    ],
)
def test_an_error_in_our_own_pass_is_one_line(
    mx_opt: Run, monkeypatch: pytest.MonkeyPatch, error: Exception, text: str
) -> None:
    def broken(root: object, options: object) -> None:
        raise error

    monkeypatch.setitem(passes._registered, "mx-broken", Pass("mx-broken", "raises", broken))
    code, out, err = mx_opt("--mx-broken", stdin=SEED)
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert f"internal error in pass 'mx-broken': {text} (this is a bug" in err
    assert mx_opt("--mx-broken", "--verify-diagnostics", stdin=SEED)[0] == 1


def test_a_pass_that_recurses_without_end(mx_opt: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(root: object, options: object) -> None:
        endless(root, options)

    monkeypatch.setitem(passes._registered, "mx-endless", Pass("mx-endless", "recurses", endless))
    code, _, err = mx_opt("--mx-endless", stdin=SEED)
    assert (code, err.count("\n")) == (1, 1)
    assert "RecursionError" in err


def test_notes_of_a_refusal_are_shown_with_their_places(mx_opt: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(root, options) -> None:
        function = root.regions[0].blocks[0].operations[0]
        because = diagnostics.at(function, "note", f"of {function.type.inputs[0]}")
        raise diagnostics.error_at(function, "refused", (because, diagnostics.at(root, "note", "in here")))

    monkeypatch.setitem(passes._registered, "mx-refuse", Pass("mx-refuse", "refuses", refuse))
    code, _, err = mx_opt("--mx-refuse", stdin=SEED)
    assert code == 1
    assert err.splitlines() == [
        "<stdin>:2:3: error: refused",
        SEED.splitlines()[1],
        "  ^",
        # The line above is not shown again.
        "<stdin>:2:3: note: of !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>",
        "<stdin>:1:1: note: in here",
        "module {",
        "^",
    ]


def test_debug_flag_shows_the_traceback(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(root: object, options: object) -> None:
        raise KeyError("oops")

    monkeypatch.setitem(passes._registered, "mx-broken", Pass("mx-broken", "raises", broken))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SEED.encode())))
    assert opt.main(["--mx-broken", "--mlir-print-stacktrace-on-diagnostic"]) == 1
    assert 'raise KeyError("oops")' in capfd.readouterr().err


def test_a_pass_that_leaves_invalid_ir_is_caught(mx_opt: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def spoil(root: object, options: object) -> None:
        from mx_dialect._mlir import ir

        with root.context:
            block = root.regions[0].blocks[0].operations[0].regions[0].blocks[0]
            block.operations[0].attributes["unknwon"] = ir.UnitAttr.get()

    monkeypatch.setitem(passes._registered, "mx-spoil", Pass("mx-spoil", "makes invalid IR", spoil))
    code, _, err = mx_opt("--mx-spoil", stdin=SEED)
    assert code == 1
    assert err.startswith("<stdin>:3:10: error: 'mx.block_matmul' op has unknown attribute 'unknwon'")
    for bare in ("--verify-each", "--verify-each=true"):
        assert mx_opt("--mx-spoil", bare, stdin=SEED)[0] == 1
    # Unverified, it is printed in generic form, as MLIR does, and nothing is reported.
    code, out, err = mx_opt("--mx-spoil", "--cse", "--verify-each=0", stdin=SEED)
    assert (code, err) == (0, "")
    assert out.startswith('"builtin.module"()')
    err = mx_opt("--mx-spoil", "--mlir-print-ir-after-failure", stdin=SEED)[2]
    assert err.startswith('// -----// IR Dump After mx-spoil Failed //----- //\n"builtin.module"()')
    assert err.count("unknwon") == 2


def test_help_names_every_flag_pass_and_option(mx_opt: Run) -> None:
    code, out, _ = mx_opt("--help")
    assert code == 0
    for name in [*passes.names(), *pipelines.names(), "split-input-file", "pass-pipeline", "-o"]:
        assert name in out
    for name in passes.names():
        found = passes.get(name)
        assert found is not None
        assert " ".join(found.summary.split()[:4]) in " ".join(out.split())


def test_list_passes_and_dialects(mx_opt: Run) -> None:
    listed = mx_opt("--list-passes")[1].split()
    assert "--mx-to-linalg" in listed
    assert "--canonicalize" in listed
    dialects = mx_opt("--show-dialects")[1]
    assert dialects.startswith("Available Dialects: ")
    assert {"mx", "linalg", "llvm"} <= set(dialects.replace(",", "").split())


def test_version_names_the_bindings(mx_opt: Run) -> None:
    code, out, _ = mx_opt("--version")
    assert code == 0
    assert "mx-opt" in out
    assert "MLIR bindings: " in out


def test_dump_pass_pipeline_shows_what_will_run(mx_opt: Run) -> None:
    code, _, err = mx_opt("--dump-pass-pipeline", "--mx-to-linalg", "--buffer-hoisting", stdin="")
    assert code == 0
    assert "mx-to-linalg" in err
    assert err.startswith(
        "Pass Manager with 2 passes:\nbuiltin.module(\n  mx-to-linalg,\n  func.func(\n    buffer-hoisting"
    )
    assert err.endswith("\n  )\n)\n")


def test_debug_info_has_the_users_positions(mx_opt: Run) -> None:
    out = mx_opt("--mlir-print-debuginfo", "--mlir-print-local-scope", stdin=SEED)[1]
    line = next(line for line in out.splitlines() if "mx.block_matmul" in line)
    assert line.endswith('loc("<stdin>":3:10)')


def test_print_flags(mx_opt: Run) -> None:
    text = "func.func @f() -> tensor<4xi32> {\n  %0 = arith.constant dense<[1, 2, 3, 4]> : tensor<4xi32>\n  return %0 : tensor<4xi32>\n}\n"
    assert "dense_resource<__elided__>" in mx_opt("--mlir-elide-elementsattrs-if-larger=2", stdin=text)[1]
    assert "arith.constant" not in mx_opt("--mlir-print-skip-regions", stdin=text)[1]
    assert '"arith.constant"()' in mx_opt("--mlir-print-op-generic", stdin=text)[1]


def test_pretty_locations_are_a_kind_of_locations(mx_opt: Run) -> None:
    text = "func.func private @f()"
    assert mx_opt("--mlir-pretty-debuginfo", stdin=text)[1] == "module {\n  func.func private @f()\n}\n"
    both = mx_opt("--mlir-pretty-debuginfo", "--mlir-print-debuginfo", stdin=text)[1]
    assert "func.func private @f() <stdin>:1:1\n" in both


def test_switches_can_be_turned_off(mx_opt: Run) -> None:
    assert mx_opt("--mlir-print-op-generic", "--mlir-print-op-generic=false", stdin=SEED) == (0, SEED, "")
    assert mx_opt("--emit-bytecode=0", "--mlir-timing=False", stdin=SEED) == (0, SEED, "")
    call = "func.func @f() { call @g() : () -> () return }"
    assert "note: see current operation" in mx_opt(stdin=call)[2]
    assert "note: " not in mx_opt("--mlir-print-op-on-diagnostic=0", stdin=call)[2]


def test_warnings_of_the_parser_are_reported(mx_opt: Run) -> None:
    """MLIR warns of a transform sequence that says it consumes what it does not, and parses it."""
    text = (
        "module attributes {transform.with_named_sequence} {\n"
        "  transform.named_sequence @f(%arg0: !transform.any_op {transform.consumed}) {\n    transform.yield \n  }\n}\n"
    )
    code, out, err = mx_opt(stdin=text)
    assert (code, out) == (0, text)
    assert err.startswith("<stdin>:2:3: warning: op argument #0 is not consumed")
    assert mx_opt("--verify-diagnostics", stdin=text)[0] == 1
    expecting = "// expected-warning @+2 {{is not consumed}}\n" + text
    assert mx_opt("--verify-diagnostics", stdin=expecting)[0] == 0


def test_a_diagnostic_in_another_file_shows_its_line(
    mx_opt: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text that was printed with locations names the file that it came from."""
    monkeypatch.chdir(tmp_path)
    Path("there.mlir").write_text("first\nsecond line\n")
    text = 'func.func @f() { call @g() : () -> () loc("%s":2:8) return }'
    err = mx_opt(stdin=text % "there.mlir")[2]
    assert err.startswith("there.mlir:2:8: error: ")
    assert err.splitlines()[1:3] == ["second line", "       ^"]
    assert mx_opt(stdin=text % "missing.mlir")[2].splitlines()[1].startswith("missing.mlir:2:8: note: ")


def test_a_very_long_line_is_shown_in_part(mx_opt: Run) -> None:
    """A constant of megabytes is no help in finding its mistake."""
    values = ", ".join("1" for _ in range(100_000))
    line = f"  %0 = arith.constant dense<[{values}]> : tensor<7xi32>"
    err = mx_opt(stdin=f"func.func @f() {{\n{line}\n}}")[2]
    header, shown, caret = err.splitlines()
    assert header.startswith("<stdin>:2:23: error: ")
    assert len(shown) < 1000
    assert line.startswith(shown.removesuffix("..."))
    assert shown[len(caret) - 1] == "d"


def test_unregistered_operations_need_the_flag(mx_opt: Run) -> None:
    text = 'module {\n  "other.op"() : () -> ()\n}\n'
    assert mx_opt(stdin=text)[0] == 1
    assert mx_opt("--allow-unregistered-dialect", stdin=text) == (0, text, "")


def test_remarks_go_to_stderr_with_position(mx_opt: Run) -> None:
    text = """
func.func @f(%x: !mx.tensor<?x?xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>) -> tensor<?x?xf32> {
  %0 = mx.dequantize_block %x : <?x?xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU> -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
"""
    code, _, err = mx_opt("--mx-to-linalg", "--mx-expand-k", stdin=text)
    assert code == 0
    assert err.startswith("<stdin>:3:8: remark: ")


def test_registry_is_consistent() -> None:
    """Each listed pass is in the module it is listed under, called as its file is."""
    for name, module in passes._BUILTIN.items():
        found = passes.get(name)
        assert found is not None, name
        assert found.name == name
        assert module.rpartition(".")[2] == name.replace("-", "_")
        assert found.summary


def test_upstream_list_is_what_the_bindings_register() -> None:
    from mx_dialect._mlir import ir
    from mx_dialect.upstream_passes import UPSTREAM_PASSES

    context = ir.Context()
    unknown = [
        name
        for name in UPSTREAM_PASSES
        if "does not refer to a registered" in (driver._upstream_problem(f"any({name})", context) or "")
    ]
    assert unknown == []


def test_every_flag_is_documented() -> None:
    assert all(flag.help for flag in opt_flags.FLAGS.values())
    assert all(name == flag.name for name, flag in opt_flags.FLAGS.items())


def test_starting_up_is_light() -> None:
    """--version loads no dialect module: start-up stays near a bare import of the bindings."""
    code = (
        "import sys, mx_dialect.opt as o; o.main(['--version']);"
        "print([m for m in sys.modules if m.startswith('mx_dialect.') and m.endswith(('ops', 'types', 'runtime'))])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert run.stdout.splitlines()[-1] == "[]"
