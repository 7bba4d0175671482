"""The command line: exit codes, streams, files, messages. Run in process but for what needs a process."""

import io
import subprocess
import sys
from pathlib import Path

import pytest

from mx_dialect import driver, opt, opt_flags, passes, pipelines
from mx_dialect.passes import Pass

ROOT = Path(__file__).parents[2]

SEED = """\
module {
  func.func @block_matmul(%arg0: !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>, %arg1: tensor<64x64xf32>, %arg2: tensor<32x64xf32>) -> tensor<32x64xf32> {
    %0 = mx.block_matmul %arg0, %arg1, %arg2 : <32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>, tensor<64x64xf32>, tensor<32x64xf32> -> tensor<32x64xf32>
    return %0 : tensor<32x64xf32>
  }
}
"""

LOWERED = """\
#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d2 floordiv 32)>
#map2 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map3 = affine_map<(d0, d1, d2) -> (d0, d1)>
module {
  func.func @block_matmul(%arg0: tensor<32x64xf8E4M3FN>, %arg1: tensor<32x2xf8E8M0FNU>, %arg2: tensor<64x64xf32>, %arg3: tensor<32x64xf32>) -> tensor<32x64xf32> {
    %0 = linalg.generic {indexing_maps = [#map, #map1, #map2, #map3], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1, %arg2 : tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU>, tensor<64x64xf32>) outs(%arg3 : tensor<32x64xf32>) {
    ^bb0(%in: f8E4M3FN, %in_0: f8E8M0FNU, %in_1: f32, %out: f32):
      %1 = arith.extf %in : f8E4M3FN to f32
      %2 = arith.extf %in_0 : f8E8M0FNU to f32
      %3 = arith.mulf %1, %2 : f32
      %4 = arith.mulf %3, %in_1 : f32
      %5 = arith.addf %out, %4 : f32
      linalg.yield %5 : f32
    } -> tensor<32x64xf32>
    return %0 : tensor<32x64xf32>
  }
}
"""


class Run:
    """Runs mx-opt in process and keeps what it printed."""

    def __init__(self, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
        self._capfd = capfd
        self._monkeypatch = monkeypatch

    def __call__(self, *arguments: str, stdin: str | bytes = "") -> tuple[int, str, str]:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        self._capfd.readouterr()
        code = opt.main(list(arguments))
        sys.stdout.flush()
        out, err = self._capfd.readouterr()
        assert "Traceback" not in err
        return code, out, err


@pytest.fixture
def mx_opt(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(capfd, monkeypatch)


def test_seed_case_to_the_character() -> None:
    """The runner, as a process: the issue's input gives exactly the issue's output."""
    command = [sys.executable, str(ROOT / "tools" / "mx-opt.py"), "--mx-to-linalg"]
    run = subprocess.run(command, input=SEED, capture_output=True, text=True, check=True)
    assert run.stdout == LOWERED
    assert run.stderr == ""


def test_roundtrip_of_the_seed(mx_opt: Run) -> None:
    assert mx_opt("-", stdin=SEED) == (0, SEED, "")


def test_empty_input_is_an_empty_module(mx_opt: Run) -> None:
    assert mx_opt(stdin="") == (0, "module {\n}\n", "")


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
        (["--pass-pipeline=builtin.module(cse"], "encountered unbalanced parentheses"),
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
        (["--mlir-elide-elementsattrs-if-larger=x"], "'x' value invalid for integer argument"),
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


def test_output_file_is_written_on_success_only(mx_opt: Run, tmp_path: Path) -> None:
    out = tmp_path / "out.mlir"
    assert mx_opt("-o", str(out), stdin="func.func @f( {")[0] == 1
    assert not out.exists()
    out.write_text("before")
    assert mx_opt("-o", str(out), "--split-input-file", stdin="func.func @f( {\n// -----\n")[0] == 1
    assert out.read_text() == "before"
    assert mx_opt(f"-o={out}", stdin=SEED) == (0, "", "")
    assert out.read_text() == SEED
    assert list(tmp_path.iterdir()) == [out]


def test_input_that_is_no_text(mx_opt: Run) -> None:
    code, _, err = mx_opt(stdin=b"module {\n}\n // \xff\n")
    assert code == 1
    assert err.startswith("<stdin>:3:5: error: the input is not valid UTF-8")


def test_truncated_bytecode(mx_opt: Run) -> None:
    code, _, err = mx_opt(stdin=b"ML\xefR\x01\x02")
    assert code == 1
    assert "error: " in err


def test_bytecode_out_and_in(mx_opt: Run, tmp_path: Path) -> None:
    file = tmp_path / "module.mlirbc"
    assert mx_opt("--emit-bytecode", "-o", str(file), stdin=SEED)[0] == 0
    assert file.read_bytes().startswith(b"ML\xefR")
    assert mx_opt(str(file)) == (0, SEED, "")


def test_an_error_in_our_own_pass_is_one_line(mx_opt: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(root: object, options: object) -> None:
        raise KeyError("oops")

    monkeypatch.setitem(passes._registered, "mx-broken", Pass("mx-broken", "raises", broken))
    code, out, err = mx_opt("--mx-broken", stdin=SEED)
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert "internal error in pass 'mx-broken': KeyError: 'oops'" in err


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

        with root.context:  # pyright: ignore
            block = root.regions[0].blocks[0].operations[0].regions[0].blocks[0]  # pyright: ignore
            block.operations[0].attributes["unknwon"] = ir.UnitAttr.get()

    monkeypatch.setitem(passes._registered, "mx-spoil", Pass("mx-spoil", "makes invalid IR", spoil))
    code, _, err = mx_opt("--mx-spoil", stdin=SEED)
    assert code == 1
    assert err.startswith("<stdin>:3:10: error: 'mx.block_matmul' op has unknown attribute 'unknwon'")
    assert mx_opt("--mx-spoil", "--verify-each=0", stdin=SEED)[0] == 0


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
    assert "func.func(buffer-hoisting" in err


def test_debug_info_has_the_users_positions(mx_opt: Run) -> None:
    out = mx_opt("--mlir-print-debuginfo", "--mlir-print-local-scope", stdin=SEED)[1]
    line = next(line for line in out.splitlines() if "mx.block_matmul" in line)
    assert line.endswith('loc("<stdin>":3:10)')


def test_print_flags(mx_opt: Run) -> None:
    text = "func.func @f() -> tensor<4xi32> {\n  %0 = arith.constant dense<[1, 2, 3, 4]> : tensor<4xi32>\n  return %0 : tensor<4xi32>\n}\n"
    assert "dense_resource<__elided__>" in mx_opt("--mlir-elide-elementsattrs-if-larger=2", stdin=text)[1]
    assert "arith.constant" not in mx_opt("--mlir-print-skip-regions", stdin=text)[1]
    assert '"arith.constant"()' in mx_opt("--mlir-print-op-generic", stdin=text)[1]


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
    assert all(flag.help for flag in opt_flags._FLAGS.values())


def test_starting_up_is_light() -> None:
    """--version loads no dialect module: start-up stays near a bare import of the bindings."""
    code = (
        "import sys, mx_dialect.opt as o; o.main(['--version']);"
        "print([m for m in sys.modules if m.startswith('mx_dialect.') and m.endswith(('ops', 'types', 'runtime'))])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert run.stdout.splitlines()[-1] == "[]"
