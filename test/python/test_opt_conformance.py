"""What users of mlir-opt rely on, as a table: command lines with their exit codes, output, messages and files.

Each row is run with mx-opt, in process, and with MLIR's own driver where there is one (an mlir-opt of a distribution,
else the one that the bindings bring), so that what the table claims of MLIR is true of it.
"""

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from command_line import SEED, Run

import mx_dialect
from mx_dialect import asm, dialect

# Older ones lack some of the flags.
OLDEST = 22


def stock_tool() -> str | None:
    """Return MLIR's driver: on the path, where Debian puts it, or beside this interpreter."""
    installed = [shutil.which("mlir-opt"), *map(str, Path("/usr/lib").glob("llvm-*/bin/mlir-opt"))]
    found = {tool: version_of(tool) for tool in installed if tool is not None}
    newest = max(found, key=lambda tool: found[tool], default="")
    beside = Path(sys.executable).with_name("torch-mlir-opt")
    return newest if found.get(newest, 0) >= OLDEST else str(beside) if beside.exists() else None


def version_of(tool: str) -> int:
    text = subprocess.run([tool, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"LLVM version (\d+)", text)
    return int(version[1]) if version else 0


STOCK = stock_tool()
needs_stock = pytest.mark.skipif(STOCK is None, reason="no mlir-opt here")

ADD = """\
func.func @f() -> i32 {
  %0 = arith.constant 1 : i32
  %1 = arith.constant 1 : i32
  %2 = arith.addi %0, %1 : i32
  return %2 : i32
}
func.func private @g()
"""
SPLIT = """\
func.func @f() {
  return
}
// -----
func.func @f() -> i32 {
  return
}
// -----
func.func @f() -> f32 {
  %0 = arith.constant dense<[1, 2, 3]> : vector<3xi32>
  %1 = arith.constant 0.0 : f32
  return %1 : f32
}
"""
ONE = "func.func @f() {\n  return\n}\n"
WRONG = "func.func @f() -> i32 {\n  return\n}\n"
DIALECT = """\
irdl.dialect @cmath {
  irdl.type @complex {
    %0 = irdl.is f32
    irdl.parameters(elem: %0)
  }
  irdl.operation @norm {
    %0 = irdl.any
    %1 = irdl.parametric @cmath::@complex<%0>
    irdl.operands(in: %1)
    irdl.results(out: %0)
  }
}
"""
NORM = 'func.func @n(%x: !cmath.complex<f32>) -> f32 {\n  %0 = "cmath.norm"(%x) : (!cmath.complex<f32>) -> f32\n  return %0 : f32\n}\n'
REPRODUCER = (
    ADD
    + '{-#\n  external_resources: {\n    mlir_reproducer: {\n      pipeline: "builtin.module(func.func(canonicalize))",\n      disable_threading: true,\n      verify_each: true\n    }\n  }\n#-}\n'
)
LIBRARY = """\
module attributes {transform.with_named_sequence} {
  transform.named_sequence @fails(%root: !transform.any_op {transform.readonly}) {
    %f = transform.structured.match ops{["func.func"]} in %root : (!transform.any_op) -> !transform.any_op
    %no = transform.get_producer_of_operand %f[0] : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
"""
TRANSFORM = """\
module attributes {transform.with_named_sequence} {
  func.func @f() {
    return
  }
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %f = transform.structured.match ops{["func.func"]} in %root : (!transform.any_op) -> !transform.any_op
    transform.debug.emit_remark_at %f, "here" : !transform.any_op
    transform.yield
  }
}
"""
USES_LIBRARY = """\
module attributes {transform.with_named_sequence} {
  func.func @f() {
    return
  }
  transform.named_sequence private @fails(%root: !transform.any_op {transform.readonly})
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    transform.include @fails failures(propagate) (%root) : (!transform.any_op) -> ()
    transform.yield
  }
}
"""
CRASH = "--mlir-pass-pipeline-crash-reproducer=repro.mlir"
FAILS = "--pass-pipeline=builtin.module(cse,func.func(symbol-dce))"
LIBRARY_FLAG = "--transform-preload-library=transform-library-paths=lib/fails.mlir"
DUMPED = "--pass-pipeline=builtin.module(cse,func.func(canonicalize,cse))"


@dataclass
class Row:
    """A command line, what is in the folder where it runs, and patterns for what comes of it.

    `out` and `err` are patterns that the streams match, in that order; "!" in front means that they must not. `left`
    are the files that a run leaves or changes, each with a pattern for its content. MLIR differs where `only_ours`.
    """

    arguments: str
    code: int
    out: tuple[str, ...] = ()
    err: tuple[str, ...] = ()
    stdin: str = ""
    files: dict[str, str] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)
    only_ours: bool = False


IN = {"in.mlir": ADD}
ROWS = [
    # Exit codes and messages.
    Row("in.mlir", 0, ("module {", "func.func @f"), ("!.",), files=IN),
    Row("none.mlir", 1, ("!.",), ("cannot open input file 'none.mlir': No such file or directory",)),
    Row("in.mlir", 1, ("!.",), (r"^in.mlir:1:14: error: ", r"func.func @f\(", r"^             \^"), files={"in.mlir": "func.func @f( {"}),
    Row("in.mlir", 1, ("!.",), (r"^in.mlir:2:3: error: 'func.return' op has 0 operands",), files={"in.mlir": WRONG}),
    Row("in.mlir --no-such-flag", 1, ("!.",), ("Unknown command line argument '--no-such-flag'",), files=IN),
    Row("in.mlir --pass-pipeline=builtin.module(nope)", 1, ("!.",), ("'nope' does not refer to a registered pass or pass pipeline", r"^nope|\(nope", r"\^"), files=IN),
    Row("in.mlir --pass-pipeline=cse", 1, ("!.",), ("expected pass pipeline to be wrapped with the anchor operation type",), files=IN),
    Row("in.mlir --pass-pipeline=builtin.module(cse) --cse", 1, ("!.",), ("can't be used with individual pass options",), files=IN),
    Row("in.mlir --pass-pipeline=func.func(cse)", 1, ("!.",), ("can't run 'func.func' pass manager on 'builtin.module' op",), files=IN),
    Row("in.mlir --pass-pipeline=builtin.module(func.func(symbol-dce))", 1, ("!.",), ("symbol",), files=IN),
    Row("in.mlir other.mlir", 1, ("!.",), ("Too many positional arguments",), files=IN),
    Row("in.mlir --verify-each=perhaps", 1, ("!.",), ("invalid value for boolean argument",), files=IN),
    Row("in.mlir --mlir-timing-display=sideways --mlir-timing", 1, ("!.",), ("mlir-timing-display",), files=IN),
    # Where input comes from and output goes.
    Row("", 0, (r"\Amodule {\n}\n*\Z",), ("!.",)),
    Row("", 0, ("func.func @f",), stdin=ONE),
    Row("-", 0, ("func.func @f",), stdin=ONE),
    Row("-", 1, ("!.",), ("^<stdin>:2:3: error: ",), stdin=WRONG),
    Row("in.mlir -o out.mlir", 0, ("!.",), ("!.",), files=IN, left={"out.mlir": "func.func @f"}),
    Row("in.mlir -o=out.mlir", 0, ("!.",), files=IN, left={"out.mlir": "func.func @f"}),
    Row("in.mlir -o out.mlir", 1, ("!.",), files={"in.mlir": WRONG}),
    # MLIR empties the file and then removes it.
    Row("in.mlir -o out.mlir", 1, ("!.",), files={"in.mlir": WRONG, "out.mlir": "before"}, only_ours=True),
    Row("in.mlir -o none/out.mlir", 1, ("!.",), ("No such file or directory",), files=IN),
    # Files in pieces: each in a context of its own, lines and markers those of the file.
    Row("in.mlir --split-input-file", 1, (r"(?s)\Amodule {\n  func.func @f\(\) {.*\n// -----\n.*\n?// -----\n.*-> f32",), ("^in.mlir:6:3: error: ",), files={"in.mlir": SPLIT}),
    Row("in.mlir --split-input-file -o out.mlir", 1, ("!.",), ("^in.mlir:6:3: error: ",), files={"in.mlir": SPLIT}),
    Row("in.mlir", 1, ("!.",), ("^in.mlir:6:3: error: ",), files={"in.mlir": SPLIT}),
    Row("in.mlir --split-input-file=//====== --output-split-marker=//-", 0, (r"(?s)@f.*^//-$.*@f",), files={"in.mlir": f"{ONE}//======\n{ONE}"}),
    Row("in.mlir --split-input-file", 0, ("@f",), (r"^in.mlir:4:7: warning: near miss with file split marker",), files={"in.mlir": f"{ONE}// ----\n"}),
    # Expected diagnostics.
    Row("in.mlir --verify-diagnostics", 0, ("!@f",), ("!.",), files={"in.mlir": WRONG.replace("{", "{\n// expected-error @below {{has 0 operands}}")}),
    Row("in.mlir --verify-diagnostics", 1, (), ('^in.mlir:1:4: error: expected error "none" was not produced',), files={"in.mlir": f"// expected-error {{{{none}}}}\n{ONE}"}),
    Row("in.mlir --verify-diagnostics", 1, (), ("^in.mlir:2:3: error: unexpected error: 'func.return' op has 0",), files={"in.mlir": WRONG}),
    Row("in.mlir --verify-diagnostics=only-expected", 0, (), ("!.",), files={"in.mlir": WRONG}),
    # How IR is printed.
    Row("in.mlir --mlir-print-op-generic", 0, ('"builtin.module"', '"arith.constant"'), files=IN),
    Row("in.mlir --mlir-print-debuginfo", 0, (r'#loc\d* = loc\("in.mlir":2:8\)',), files=IN),
    Row("in.mlir --mlir-print-debuginfo --mlir-print-local-scope", 0, (r'constant 1 : i32 loc\("in.mlir":2:8\)',), files=IN),
    Row("in.mlir --mlir-print-skip-regions", 0, (r"module \{\.\.\.\}|module",), ("!.",), files=IN),
    Row("in.mlir --mlir-elide-elementsattrs-if-larger=2", 0, ("__elided__",), files={"in.mlir": SPLIT.rpartition("// -----\n")[2]}),
    Row("in.mlir --cse --mlir-print-ir-after-all", 0, ("constant",), (r"// -----// IR Dump After .*cse.* //----- //",), files=IN),
    Row("in.mlir --cse --mlir-print-ir-before=cse", 0, ("constant",), (r"// -----// IR Dump Before .*cse.* //----- //",), files=IN),
    Row("in.mlir --cse --cse --mlir-print-ir-after-all --mlir-print-ir-after-change", 0, (), (r"IR Dump After", r"!(?s)IR Dump After.*IR Dump After"), files=IN),
    Row(
        f"in.mlir {DUMPED} --mlir-print-ir-after-all --mlir-print-ir-tree-dir=tree",
        0,
        err=("!.",),
        files=IN,
        left={
            "tree/builtin_module_no-symbol-name/0_cse.mlir": r"\A// -----// IR Dump After .*cse.* //----- //\nmodule \{",
            "tree/builtin_module_no-symbol-name/func_func_f/0_0_canonicalize.mlir": r"After .*canonicalize.*\nfunc.func @f",
            "tree/builtin_module_no-symbol-name/func_func_f/0_1_cse.mlir": r"After .*cse.*\nfunc.func @f",
            "tree/builtin_module_no-symbol-name/func_func_g/0_0_canonicalize.mlir": "func.func private @g",
            "tree/builtin_module_no-symbol-name/func_func_g/0_1_cse.mlir": "func.func private @g",
        },
    ),
    Row("in.mlir --cse --mlir-print-ir-tree-dir=tree", 0, err=("!.",), files=IN),
    Row("in.mlir --cse --dump-pass-pipeline", 0, (), (r"builtin.module\(\n?\s*cse", r"\)$"), files=IN),
    # Reports.
    Row("in.mlir --cse --mlir-timing", 0, (), ("Execution time report", "Total Execution Time: ", r"%\)  Parser", r"%\)  Output", r"%\)  Rest", r"\(100.0%\)  Total"), files=IN),
    Row(f"in.mlir {DUMPED} --mlir-timing", 0, (), (r"%\)  'func.func' Pipeline\n.*%\)    [cC]anonicalize",), files=IN),
    Row(f"in.mlir {DUMPED} --mlir-timing --mlir-timing-display=list", 0, (), (r"%\)  [cC]anonicalize",), files=IN),
    Row(f"in.mlir {DUMPED} --mlir-timing --mlir-output-format=json", 0, (), (r"\A\[\n", r'"name": "Parser"', r'"name": "\'func.func\' Pipeline", "passes": \[', r'"duration": +\d', r'"name": "Total"\}\n\]'), files=IN),
    Row("in.mlir --cse --mlir-pass-statistics", 0, (), ("Pass statistics report",), files=IN),
    Row("in.mlir --cse --mlir-pass-statistics --mlir-pass-statistics-display=list", 0, (), ("Pass statistics report",), files=IN),
    # Reproducers.
    Row(f"in.mlir {FAILS} {CRASH}", 1, ("!.",), ("reproducer generated at .repro.mlir.",), files=IN, left={"repro.mlir": r'(?s)@f.*external_resources: \{\s*mlir_reproducer: \{\s*pipeline: "builtin.module\(cse, ?func.func\(symbol-dce\)\)",\s*disable_threading: (true|false),\s*verify_each: true\s'}),
    Row(f"in.mlir {FAILS} {CRASH} --mlir-pass-pipeline-local-reproducer --mlir-disable-threading", 1, ("!.",), files=IN, left={"repro.mlir": r'pipeline: "builtin.module\(func.func\(symbol-dce\)\)"'}),
    Row(f"in.mlir --cse {CRASH}", 0, ("@f",), ("!.",), files=IN),
    Row(f"in.mlir --cse {CRASH}", 0, ("@f",), ("!.",), files={**IN, "repro.mlir": "before"}),
    Row("in.mlir --cse --mlir-generate-reproducer=repro.mlir", 0, ("@f",), files=IN, left={"repro.mlir": r'(?s)@f.*mlir_reproducer: \{\s*pipeline: "builtin.module\(cse\)"'}),
    Row("in.mlir --run-reproducer", 0, ("constant 2 : i32", "!mlir_reproducer"), ("!.",), files={"in.mlir": REPRODUCER}),
    Row("in.mlir", 0, ("constant 1 : i32",), files={"in.mlir": REPRODUCER}),
    Row("in.mlir --run-reproducer", 1, ("!.",), ("'nope' does not refer to a registered pass",), files={"in.mlir": REPRODUCER.replace("canonicalize", "nope")}),
    Row("in.mlir --run-reproducer --cse", 0, ("constant 1 : i32", r"!(?s)constant 1.*constant 1"), files=IN),
    # Bytecode.
    Row("in.mlir --emit-bytecode -o out.mlirbc", 0, files=IN, left={"out.mlirbc": r"\AML.*R"}),
    Row("in.mlir --emit-bytecode --emit-bytecode-version=0 -o out.mlirbc", 0, files=IN, left={"out.mlirbc": r"\AML.*R"}),
    Row("in.mlir --emit-bytecode --emit-bytecode-version=4000 -o out.mlirbc", 1, ("!.",), ("unsupported version requested 4000",), files=IN),
    # Dialects.
    Row("in.mlir --irdl-file=cmath.irdl", 0, ("cmath.norm",), ("!.",), files={"in.mlir": NORM, "cmath.irdl": DIALECT}),
    Row("in.mlir --irdl-file=cmath.irdl --split-input-file", 0, ("(?s)cmath.norm.*// -----.*cmath.norm",), ("!.",), files={"in.mlir": f"{NORM}// -----\n{NORM}", "cmath.irdl": DIALECT}),
    Row("in.mlir --irdl-file=cmath.irdl", 1, ("!.",), ("^in.mlir:2:8: error: ",), files={"in.mlir": NORM.replace("-> f32\n", "-> f64\n").replace("return %0 : f32", "return %0 : f64").replace("-> f32", "-> f64"), "cmath.irdl": DIALECT}),
    Row("in.mlir --irdl-file=none", 1, ("!.",), ("cannot open input file 'none': No such file or directory",), files=IN),
    Row("in.mlir --irdl-file=bad.irdl", 1, (), ("^bad.irdl:1:",), files={**IN, "bad.irdl": "irdl.dialect {"}),
    Row("in.mlir", 1, ("!.",), (r"^in.mlir:1:25: error: .*unregistered dialect",), files={"in.mlir": NORM}),
    Row("in.mlir --allow-unregistered-dialect", 0, ("cmath.norm",), ("!.",), files={"in.mlir": NORM}),
    Row("--show-dialects", 0, ("func", "tensor")),
    # Top-level operations and round trips.
    Row("in.mlir --no-implicit-module", 0, (r"\Afunc.func @f\(\) \{",), ("!.",), files={"in.mlir": ONE}),
    Row("in.mlir --no-implicit-module", 1, ("!.",), ("source must contain a single top-level operation, found: 2",), files=IN),
    Row("in.mlir --no-implicit-module", 1, ("!.",), ("source must contain a single top-level operation, found: 0",), files={"in.mlir": ""}),
    Row("in.mlir --no-implicit-module --pass-pipeline=func.func(cse)", 0, (r"\Afunc.func @f",), files={"in.mlir": ONE}),
    Row("in.mlir --no-implicit-module --cse", 0, (r"\Afunc.func @f",), files={"in.mlir": ONE}),
    Row("in.mlir --no-implicit-module --pass-pipeline=builtin.module(cse)", 1, ("!.",), ("can't run 'builtin.module' pass manager on 'func.func' op",), files={"in.mlir": ONE}),
    Row("in.mlir --verify-roundtrip", 0, ("@f",), ("!.",), files=IN),
    Row("in.mlir --verify-roundtrip --cse --split-input-file", 1, ("@f",), ("^in.mlir:6:3: error: ",), files={"in.mlir": SPLIT}),
    # The transform dialect.
    Row("in.mlir --transform-interpreter", 0, ("@f",), ("^in.mlir:2:3: remark: here",), files={"in.mlir": TRANSFORM}),
    # MLIR shows this note all the same.
    Row("in.mlir --transform-interpreter --mlir-disable-diagnostic-notes", 0, ("@f",), ("^in.mlir:2:3: remark: here", "!note:"), files={"in.mlir": TRANSFORM}, only_ours=True),
    Row(f"in.mlir {LIBRARY_FLAG} --transform-interpreter", 1, ("!.",), (r"^lib/fails.mlir:4:11: error: could not find a producer",), files={"in.mlir": USES_LIBRARY, "lib/fails.mlir": LIBRARY}),
    Row(f"in.mlir {LIBRARY_FLAG} --transform-interpreter", 1, ("!.",), (r"lib/fails.mlir:4:45: error: use of undeclared SSA value",), files={"in.mlir": USES_LIBRARY, "lib/fails.mlir": LIBRARY.replace("%f[0]", "%g[0]")}),
]  # fmt: skip


def arranged(folder: Path, row: Row) -> dict[str, bytes]:
    for name, text in row.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return contents(folder)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def conforms(row: Row, result: tuple[int, str, str], folder: Path, before: dict[str, bytes]) -> None:
    code, out, err = result
    assert code == row.code, err
    for patterns, text in ((row.out, out), (row.err, err)):
        for pattern in patterns:
            found = re.search(pattern.removeprefix("!"), text, re.MULTILINE)
            assert (found is None) == pattern.startswith("!"), f"{pattern!r} in:\n{text}"
    after = contents(folder)
    assert {name for name in after if after[name] != before.get(name)} == set(row.left)
    assert before.keys() <= after.keys()
    for name, pattern in row.left.items():
        assert re.search(pattern, after[name].decode("latin-1")), after[name]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.arguments)
def test_mx_opt(mx_opt: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: Row) -> None:
    monkeypatch.chdir(tmp_path)
    before = arranged(tmp_path, row)
    conforms(row, mx_opt(*row.arguments.split(), stdin=row.stdin), tmp_path, before)


def stock(folder: Path, arguments: list[str], stdin: str = "") -> tuple[int, str, str]:
    assert STOCK is not None
    run = subprocess.run([STOCK, *arguments], input=stdin.encode(), capture_output=True, check=False, cwd=folder)
    return run.returncode, run.stdout.decode("latin-1"), run.stderr.decode("latin-1")


@needs_stock
@pytest.mark.parametrize("row", [row for row in ROWS if not row.only_ours], ids=lambda row: row.arguments)
def test_stock(tmp_path: Path, row: Row) -> None:
    before = arranged(tmp_path, row)
    result = stock(tmp_path, row.arguments.split(), row.stdin)
    if "Unknown command line argument '--transform-" in result[2]:
        pytest.skip("this tool has no passes of the transform dialect")
    conforms(row, result, tmp_path, before)


@needs_stock
def test_reproducers_of_either_run_in_the_other(mx_opt: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blobs = '{-#\n  dialect_resources: {\n    builtin: {\n      blob: "0x0400000001000000"\n    }\n  }\n#-}\n'
    constant = "func.func @h() {\n  %0 = arith.constant dense_resource<blob> : tensor<1xi32>\n  return\n}\n"
    (tmp_path / "in.mlir").write_text(ADD + constant + blobs)
    arguments = ["in.mlir", FAILS, CRASH]
    assert mx_opt(*arguments)[0] == 1
    assert "0x0400000001000000" in (tmp_path / "repro.mlir").read_text()
    code, _, err = stock(tmp_path, ["repro.mlir", "--run-reproducer"])
    assert (code, "symbol-dce" in err or "SymbolDCE" in err) == (1, True)
    assert stock(tmp_path, arguments)[0] == 1
    code, _, err = mx_opt("repro.mlir", "--run-reproducer")
    assert (code, "SymbolDCE" in err) == (1, True)


@needs_stock
def test_stock_reads_every_example_with_our_irdl(mx_opt: Run, tmp_path: Path) -> None:
    """In generic form: names, numbers of operands and results and attributes are those that --emit-irdl says."""
    assert mx_opt("--emit-irdl", "-o", str(tmp_path / "mx.irdl.mlir")) == (0, "", "")
    dialect.define()
    examples = [re.search(r"```mlir\n(.*?)```", op.__doc__ or "", re.DOTALL) for op in dialect.Mx.operations]
    texts = [asm.to_asm(mx_dialect.parse(example[1]), generic=True) for example in examples if example is not None]
    assert len(texts) == len(dialect.Mx.operations) > 30
    (tmp_path / "in.mlir").write_text("\n// -----\n".join(texts))
    arguments = ["in.mlir", "--irdl-file=mx.irdl.mlir", "--split-input-file"]
    code, out, err = stock(tmp_path, arguments)
    assert (code, err) == (0, "")
    assert set(re.findall(r'"(mx\.\w+)"\(', out)) == {op.OPERATION_NAME for op in dialect.Mx.operations}
    # It checks: an operand too many is refused.
    generic = asm.to_asm(mx_dialect.parse(SEED), generic=True)
    pattern = r'("mx.block_matmul"\(.*)\) : \((.*)\) ->'
    wrong = re.sub(pattern, r"\1, %arg2) : (\2, tensor<32x64xf32>) ->", generic)
    assert wrong != generic
    (tmp_path / "in.mlir").write_text(wrong)
    code, _, err = stock(tmp_path, arguments)
    assert (code, "expects exactly 3 operands, but got 4" in err) == (1, True)


def test_the_irdl_of_this_dialect_is_not_loaded_into_it(mx_opt: Run, tmp_path: Path) -> None:
    text = mx_opt("--emit-irdl")[1]
    assert "irdl.dialect @mx {" in text
    assert "irdl.operation @block_matmul {" in text
    for file, name in ((text, "mx"), (DIALECT.replace("cmath", "func"), "func")):
        (tmp_path / "again.irdl").write_text(file)
        code, out, err = mx_opt(f"--irdl-file={tmp_path}/again.irdl", stdin=SEED)
        assert (code, out) == (1, "")
        assert f"redefines dialect '{name}', which exists" in err
    (tmp_path / "again.irdl").write_text(ADD)
    assert "defines no dialect" in mx_opt(f"--irdl-file={tmp_path}/again.irdl", stdin=SEED)[2]
