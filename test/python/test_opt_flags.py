"""Flags: those that cannot be honoured say why, near misses are pointed out, and what each of the newer ones does."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import SEED, Run

from mx_dialect import codes, opt_flags, pass_reports, passes, reference, roundtrip
from mx_dialect.diagnostics import MxError
from mx_dialect.opt_refused import REFUSED
from mx_dialect.passes import Pass

ONE = "func.func @f() {\n  return\n}\n"
X = "!mx.tensor<4x8xf8E4M3FN, block_size = 4, scale_type = f8E8M0FNU>"


@pytest.mark.parametrize("name", REFUSED)
def test_a_flag_that_cannot_be_honoured_says_why(mx_opt: Run, name: str) -> None:
    for spelled in (f"--{name}", f"-{name}=x"):
        code, out, err = mx_opt(spelled, stdin=SEED)
        assert (code, out) == (1, "")
        assert err == f"mx-opt: error: {spelled.partition('=')[0]} is not supported: {REFUSED[name]}\n"
    assert name not in opt_flags.FLAGS


def test_plugins_have_substitutes() -> None:
    assert "--irdl-file=FILE" in REFUSED["load-dialect-plugin"]
    assert "irdl-file" in opt_flags.FLAGS


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["--mlir-tming"], "Did you mean '--mlir-timing'"),
        (["--pas-pipeline=x"], "Did you mean '--pass-pipeline'"),
        (["--mx-to-lingalg"], "Did you mean '--mx-to-linalg'"),
        (["--mx-lower-to-lvm"], "Did you mean '--mx-lower-to-llvm'"),
        (["--canonicalise"], "Did you mean '--canonicalize'"),
        (["--pass-pipeline=any(mx-to-lingalg)"], "did you mean 'mx-to-linalg'"),
        (["--pass-pipeline=any(mx-lower-to-lvm)"], "did you mean 'mx-lower-to-llvm'"),
        (["--pass-pipeline=any(canonicalise)"], "did you mean 'canonicalize'"),
        (["--mlir-print-ir-after=canonicalise"], "did you mean 'canonicalize'"),
        (
            ["--mx-to-linalg=scale-product=exponent"],
            "no option 'scale-product'; its options: scale-products; did you mean 'scale-products'?",
        ),
        (["--mx-to-linalg=scale-products=exponents"], "not 'exponents'; did you mean 'exponent'?"),
        (["--canonicalize=top-dwn=1"], "did you mean 'top-down'?"),
        (["--one-shot-bufferize=bufferize-function-boundary=1"], "did you mean 'bufferize-function-boundaries'?"),
        (["--verify-diagnostics=only-expect"], "did you mean 'only-expected'?"),
        (["--mlir-timing-display=tre"], "did you mean 'tree'?"),
        (["--mlir-output-format=jsn"], "did you mean 'json'?"),
        (["--mlir-pass-statistics-display=pipelin"], "did you mean 'pipeline'?"),
        (["--mlir-diagnostic-verbosity-level=error"], "did you mean 'errors'?"),
        (["--color=alway"], "did you mean 'always'?"),
    ],
)
def test_near_misses_on_the_command_line(mx_opt: Run, arguments: list[str], hint: str) -> None:
    code, out, err = mx_opt(*arguments, stdin=ONE)
    assert (code, out) == (1, "")
    assert hint in err


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("%r = mx.blok_matmul %x", "did you mean 'mx.block_matmul'"),
        ('%r = "mx.blok_matmul"(%y) : (tensor<4x8xf32>) -> i32', "did you mean 'mx.block_matmul'"),
        (f"%r = mx.cast %x : {X.replace('tensor', 'tenser')} -> {X}", "did you mean '!mx.tensor'?"),
        (f"%r = mx.cast %x : {X.replace('block_size', 'blok_size')} -> {X}", "did you mean 'block_size'?"),
        (f"%r = mx.cast %x : {X.replace('f8E4M3FN', 'f8E4M3')} -> {X}", "did you mean 'f8E4M3FN'?"),
        (f"%r = mx.cast %x : {X.replace('f8E8M0FNU', 'f8E5M2')} -> {X}", "expected one of f8E8M0FNU, f8E4M3FN"),
        (f'%r = mx.quantize_block %y {{rounding = "flor"}} : tensor<4x8xf32> -> {X}', "did you mean 'floor'?"),
        (f'%r = mx.quantize_block %y {{roundin = "floor"}} : tensor<4x8xf32> -> {X}', "did you mean 'rounding'?"),
    ],
)
def test_near_misses_in_a_file(mx_opt: Run, text: str, hint: str) -> None:
    code, _, err = mx_opt(stdin=f"func.func @f(%x: {X}, %y: tensor<4x8xf32>) {{\n  {text}\n  return\n}}\n")
    assert code == 1
    assert hint in err.splitlines()[0]
    assert err.startswith("<stdin>:2:")


def test_near_misses_in_python() -> None:
    with pytest.raises(MxError, match="did you mean 'f4E2M1FN'"):
        codes.format_named("f4E2M1")
    with pytest.raises(MxError, match="did you mean 'f8E8M0FNU'"):
        codes.scale_format_named("f8E8M0FN")
    with pytest.raises(ValueError, match="did you mean 'rceil'"):
        reference.rounding_threshold(codes.format_named("f8E5M2"), "rciel")


def test_notes_and_severities_can_be_left_out(mx_opt: Run) -> None:
    call = "func.func @f() { call @g() : () -> () return }"
    assert "note: " in mx_opt(stdin=call)[2]
    code, _, err = mx_opt("--mlir-disable-diagnostic-notes", stdin=call)
    assert (code, "note: " in err, "error: " in err) == (1, False, True)
    near = f"{ONE}// ----\n"
    for level, shown in (("errors", False), ("warnings", True), ("remarks", True)):
        err = mx_opt("--split-input-file", f"--mlir-diagnostic-verbosity-level={level}", stdin=near)[2]
        assert ("warning: near miss" in err) == shown
    assert "error: " in mx_opt("--mlir-diagnostic-verbosity-level=errors", stdin=call)[2]


def test_statistics_count_operations(mx_opt: Run) -> None:
    text = (
        "func.func @f() -> i32 {\n  %0 = arith.constant 1 : i32\n  %1 = arith.addi %0, %0 : i32\n  return %1 : i32\n}\n"
    )
    flags = ["--pass-pipeline=builtin.module(cse,func.func(canonicalize),func.func(canonicalize))"]
    _, _, err = mx_opt(*flags, "--mlir-pass-statistics", stdin=text)
    assert re.findall(r"^ *(?:[a-z]+$|'.*|\(S\) \d+ \S+)", err, re.MULTILINE) == [
        "cse",
        "  (S) 0 num-ops-added",
        "  (S) 0 num-ops-removed",
        "'func.func' Pipeline",
        "  canonicalize",
        "    (S) 0 num-ops-added",
        "    (S) 1 num-ops-removed",
        "  canonicalize",
        "    (S) 0 num-ops-added",
        "    (S) 0 num-ops-removed",
    ]
    _, _, err = mx_opt(*flags, "--mlir-pass-statistics", "--mlir-pass-statistics-display=list", stdin=text)
    assert re.findall(r"^ *(?:[a-z]+$|\(S\) \d+ \S+)", err, re.MULTILINE) == [
        "canonicalize",
        "  (S) 0 num-ops-added",
        "  (S) 1 num-ops-removed",
        "cse",
        "  (S) 0 num-ops-added",
        "  (S) 0 num-ops-removed",
    ]


def test_timing_adds_up() -> None:
    timing = pass_reports.Timing()
    with timing.measure("outer"):
        for _ in range(2):
            with timing.measure("inner"):
                pass
    tree = json.loads(timing.report("tree", "json"))
    assert [each["name"] for each in tree] == ["outer", "Rest", "Total"]
    assert [each["name"] for each in tree[0]["passes"]] == ["inner", "inner"]
    assert tree[-1]["wall"]["percentage"] == 100.0
    merged = json.loads(timing.report("list", "json"))
    assert [each["name"] for each in merged] == ["outer", "inner", "Rest", "Total"]
    assert all("passes" not in each for each in merged)
    assert re.search(r"\)  outer\n.*\)    inner\n", timing.report())


def test_round_trips_of_mx_programs(mx_opt: Run) -> None:
    assert mx_opt("--verify-roundtrip", stdin=SEED) == (0, SEED, "")
    assert mx_opt("--verify-roundtrip", "--no-implicit-module", stdin=ONE) == (0, ONE, "")
    data = mx_opt("--verify-roundtrip", "--allow-unregistered-dialect", stdin='"a.b"() {x = @y} : () -> ()')
    assert data[0] == 0


@pytest.mark.parametrize("form", ["custom text", "generic text", "bytecode"])
def test_a_round_trip_that_fails_names_the_form(mx_opt: Run, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    to_asm, to_bytecode = roundtrip.asm.to_asm, roundtrip.asm.to_bytecode

    def printed(op: object, generic: bool = False, **flags: bool) -> object:
        text = to_asm(op, generic, **flags)
        wanted = "assume_verified" not in flags and form == ("generic text" if generic else "custom text")
        return text.replace("@block_matmul", "@other").replace('"block_matmul"', '"other"') if wanted else text

    monkeypatch.setattr(roundtrip.asm, "to_asm", printed)
    if form == "bytecode":
        monkeypatch.setattr(roundtrip.asm, "to_bytecode", lambda op: to_bytecode(op).replace(b"block", b"bloke"))
    code, out, err = mx_opt("--verify-roundtrip", stdin=SEED)
    assert (code, out) == (1, "")
    assert err.startswith("<stdin>:1:1: error: ")
    assert form in err.splitlines()[0]
    assert re.search(r"note: .*(block_matmul.* became .*other|blokeh?_)", err)


def test_a_pass_of_ours_runs_on_a_function_as_the_root(mx_opt: Run) -> None:
    text = SEED.removeprefix("module {\n").removesuffix("}\n")
    code, out, err = mx_opt("--no-implicit-module", "--mx-to-linalg", stdin=text)
    assert (code, err) == (0, "")
    assert out.lstrip().startswith(("func.func @block_matmul", "#map"))
    assert "linalg.generic" in out
    code, _, err = mx_opt("--no-implicit-module", "--mx-lower-to-llvm", stdin=text)
    assert code == 1
    assert "pipeline 'mx-lower-to-llvm' runs on builtin.module only" in err
    assert mx_opt("--no-implicit-module", stdin=b"ML\xefR")[0] == 1


def test_a_reproducer_of_an_mx_program_runs(mx_opt: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(root: object, options: object) -> None:
        raise MxError("refused")

    monkeypatch.setitem(passes._registered, "mx-refuse", Pass("mx-refuse", "refuses", refuse))
    file = tmp_path / "repro.mlir"
    flags = ["--mx-to-linalg=scale-products=exponent", "--mx-refuse", f"--mlir-pass-pipeline-crash-reproducer={file}"]
    code, out, err = mx_opt(*flags, stdin=SEED)
    assert (code, out) == (1, "")
    assert err == f"mx-opt: note: reproducer generated at '{file}'\nerror: refused\n"
    assert file.read_text().startswith(SEED)
    assert 'pipeline: "builtin.module(mx-to-linalg{scale-products=exponent},mx-refuse)"' in file.read_text()
    assert mx_opt(str(file), "--run-reproducer")[::2] == (1, "error: refused\n")
    monkeypatch.setitem(passes._registered, "mx-refuse", Pass("mx-refuse", "accepts", lambda root, options: None))
    code, out, err = mx_opt(str(file), "--run-reproducer")
    assert (code, err) == (0, "")
    assert "linalg.generic" in out


def test_irdl_files_may_be_several(mx_opt: Run, tmp_path: Path) -> None:
    for name in "ab":
        text = f"irdl.dialect @dialect_{name} {{\n  irdl.operation @op {{\n  }}\n}}\n"
        (tmp_path / name).write_text(text)
    flags = [f"--irdl-file={tmp_path}/a", f"--irdl-file={tmp_path}/b", "--verify-roundtrip"]
    text = 'module {\n  "dialect_a.op"() : () -> ()\n  "dialect_b.op"() : () -> ()\n}\n'
    assert mx_opt(*flags, stdin=text) == (0, text, "")
    assert mx_opt(*flags[:1], stdin=text)[0] == 1
    (tmp_path / "c").write_text((tmp_path / "a").read_text())
    code, _, err = mx_opt(f"--irdl-file={tmp_path}/a", f"--irdl-file={tmp_path}/c", stdin=text)
    assert code == 1
    assert f"{tmp_path}/c:1:1: error: 'irdl.dialect' op redefines dialect 'dialect_a'" in err
    (tmp_path / "a").write_bytes(b"ML\xefR")
    assert "is bytecode; --irdl-file reads text" in mx_opt(*flags, stdin=text)[2]


def test_the_definition_of_the_dialect_is_valid_irdl(mx_opt: Run, tmp_path: Path) -> None:
    text = mx_opt("--emit-irdl")[1]
    assert mx_opt("--emit-irdl", "-o", str(tmp_path / "mx.irdl")) == (0, "", "")
    assert (tmp_path / "mx.irdl").read_text() == text
    assert mx_opt(str(tmp_path / "mx.irdl"))[0] == 0


def test_passes_of_a_file_are_flags(tmp_path: Path, mx_opt: Run) -> None:
    """In processes of their own, for what is registered stays; wherever on the command line the file is named."""
    (tmp_path / "mine.py").write_text(
        "from mx_dialect.passes import Pass, register_pass\n"
        "def run(root, options):\n    root.operation.regions[0].blocks[0].operations[0].erase()\n"
        'register_pass(Pass("my-erase", "Erases the first operation", run))\n'
    )
    tool = [sys.executable, str(Path(__file__).parents[2] / "tools" / "mx-opt.py")]

    def run(*arguments: str) -> tuple[int, str, str]:
        done = subprocess.run([*tool, *arguments], input=ONE, capture_output=True, text=True, check=False, cwd=tmp_path)
        return done.returncode, done.stdout, done.stderr

    assert run("--my-erase", "--load=mine.py") == (0, "module {\n}\n", "")
    assert run("--load", "mine.py", "--pass-pipeline=builtin.module(my-erase)") == (0, "module {\n}\n", "")
    assert "--my-erase " in run("--load=mine.py", "--list-passes")[1]
    assert "Did you mean '--my-erase'" in run("--load=mine.py", "--my-ease")[2]
    assert mx_opt("--my-erase")[0] == 1
    assert mx_opt("--load=none.py")[2].startswith("mx-opt: error: cannot read 'none.py'")
    assert "requires a value" in mx_opt("--load")[2]
