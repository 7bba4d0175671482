"""mx-opt against MLIR's own driver: the tool that the bindings ship, on the same command lines and inputs.

What differs on purpose is taken out of both: the name of the tool, the `error:` before some of its complaints, the
underline after a caret, and the blank line that ends each output of MLIR's tools.
"""

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Run

STOCK = Path(sys.executable).with_name("torch-mlir-opt")

pytestmark = pytest.mark.skipif(not STOCK.exists(), reason="these bindings bring no driver of MLIR's")

TWO = "func.func @f() {\n  return\n}\n// -----\nfunc.func @g() {\n  return\n}\n"
ADD = """\
func.func @f() -> i32 {
  %0 = arith.constant 1 : i32
  %1 = arith.constant 1 : i32
  %2 = arith.addi %0, %1 : i32
  return %2 : i32
}
func.func private @g()
module @inner {
  func.func @h() {
    return
  }
}
"""
CALL = "func.func @f() { call @g() : () -> () return }"
WRONG = "func.func @a() -> i32 { return }"


def stock(arguments: list[str], stdin: str) -> tuple[int, str, str]:
    run = subprocess.run([str(STOCK), *arguments], input=stdin.encode(), capture_output=True, check=False)
    return run.returncode, run.stdout.decode(), run.stderr.decode("utf-8", "replace")


def normal(result: tuple[int, str, str]) -> tuple[int, str, str]:
    code, out, err = result
    err = re.sub(r"(/\S*/)?torch-mlir-opt", "mx-opt", err).replace("<unknown>:0: ", "").replace("mx-opt: error: ", "")
    err = re.sub(r"(?m)^( *\^)~+$", r"\1", err)
    return code, re.sub(r"\n+", "\n", out), re.sub(r"\n+", "\n", err)


@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [
        ([], ""),
        (["-"], ADD),
        (["/no/such/file"], ""),
        (["."], ""),
        (["-cse", "--canonicalize"], ADD),
        (["--canonicalize=top-down=0 region-simplify=normal"], ADD),
        (["-canonicalize=max-iterations=2"], ADD),
        (["---cse"], ADD),
        (["-o"], ADD),
        (["--verify-each=tRUE"], ADD),
        (["--verify-each=TRUE", "--emit-bytecode=0", "--allow-unregistered-dialect=false"], ADD),
        (["--mlir-elide-elementsattrs-if-larger=0x10"], ADD),
        (["--mlir-elide-elementsattrs-if-larger=-1"], ADD),
        (["--mlir-print-op-generic"], ADD),
        (["--mlir-print-debuginfo"], ADD),
        (["--mlir-print-debuginfo", "--mlir-pretty-debuginfo"], ADD),
        (["--mlir-pretty-debuginfo"], ADD),
        (["--pass-pipeline=cse"], ADD),
        (["--pass-pipeline="], ADD),
        (["--pass-pipeline=builtin.module(func.func(cse,canonicalize),any(cse))"], ADD),
        (["--pass-pipeline=  any( cse , func.func( canonicalize{ top-down=0 } ) )"], ADD),
        (["--pass-pipeline=builtin.module(func.func(symbol-dce))"], ADD),
        (["--pass-pipeline=builtin.module(cse,func.func(cse))", "--dump-pass-pipeline"], ADD),
        (["--split-input-file"], TWO),
        (["--split-input-file"], TWO.replace("// -----", "  // -----\t")),
        (["--split-input-file"], TWO.replace("\n", "\r\n")),
        (["--split-input-file"], TWO.replace("-----", "----")),
        (["--split-input-file"], TWO + "// -----\n"),
        (["--split-input-file"], TWO.replace("return\n}\n//", "retrn\n}\n//")),
        (["--split-input-file=// ====="], TWO.replace("-----", "=====")),
        (["--split-input-file", "--output-split-marker=// ====="], TWO),
        ([], CALL),
        (["--mlir-print-op-on-diagnostic=false"], CALL),
        ([], CALL.replace("() return", '() loc("name"("there":5:7)) return')),
        ([], f"{WRONG}\n{WRONG}"),
        ([], "func.func @f(%x: i32) {\n  %y = arith.addf %x, %x : f32\n  return\n}"),
        ([], "func.func @f( {\n\n"),
    ],
)
def test_same_as_stock(mx_opt: Run, arguments: list[str], stdin: str) -> None:
    assert normal(mx_opt(*arguments, stdin=stdin)) == normal(stock(arguments, stdin))


@pytest.mark.parametrize(
    "arguments",
    [
        ["--cse", "--mlir-print-ir-before-all"],
        ["--cse", "--cse", "--mlir-print-ir-after-all", "--mlir-print-ir-after-change"],
        ["--pass-pipeline=builtin.module(func.func(cse))", "--mlir-print-ir-after-all"],
        ["--pass-pipeline=builtin.module(any(cse))", "--mlir-print-ir-after=cse", "--mlir-print-ir-after-change"],
        ["--pass-pipeline=builtin.module(cse,func.func(symbol-dce))", "--mlir-print-ir-after-all"],
        ["--pass-pipeline=builtin.module(cse,func.func(symbol-dce))", "--mlir-print-ir-after=symbol-dce"],
        ["--pass-pipeline=builtin.module(cse,func.func(symbol-dce))", "--mlir-print-ir-after-failure"],
    ],
)
def test_dumps_same_as_stock(mx_opt: Run, arguments: list[str]) -> None:
    """But for the passes' names: MLIR's dumps name the class too, which Python cannot know.

    And for the order: MLIR's threads dump functions as they finish.
    """

    def named(result: tuple[int, str, str]) -> tuple[int, str, list[str]]:
        code, out, err = normal(result)
        return code, out, sorted(re.sub(r"(?m)(IR Dump \w+) \w+Pass( Failed)?: ([\w-]+)", r"\1 \3\2", err).splitlines())

    assert named(mx_opt(*arguments, stdin=ADD)) == named(stock(arguments, ADD))


def piece(choice: random.Random, number: int) -> str:
    """Return functions, wrong ones among them, and comments that expect or do not expect what is reported."""
    lines: list[str] = []
    for index in range(choice.randint(1, 6)):
        kind = choice.randrange(3)
        function = f"func.func @f{number}_{index}() {choice.choice(['', '-> i32 '])}{{ return }}"
        severity = choice.choice(["error", "error", "error", "warning", "note"])
        place = choice.choice(["", "", " @above", " @below", " @+1", " @-1", "@+2", " @-2", " @+0"])
        # Of two that one diagnostic meets, upstream and we may differ in which is the unmet one.
        text = choice.choice([f"f{number}_{number_of}" for number_of in range(3)] + ["unmet"])
        regex = choice.choice(["", "", "-re"])
        inner = f"{{{{@f[0-9]+_}}}}{choice.randrange(3)}" if regex else text
        comment = f"// expected-{severity}{regex}{place} {{{{{inner}}}}}"
        lines.append((function, comment, f"{function} {comment}")[kind])
    return "\n".join(lines)


@pytest.mark.parametrize("level", ["", "=only-expected"])
def test_verified_diagnostics_same_as_stock(mx_opt: Run, level: str) -> None:
    """Random files: which diagnostics and which comments are complained about, in each of their pieces."""
    choice = random.Random(2023)
    source = "\n// -----\n".join(piece(choice, number) for number in range(100))
    arguments = ["--verify-diagnostics" + level, "--split-input-file"]

    def complaints(result: tuple[int, str, str]) -> list[str]:
        headers = (line for line in normal(result)[2].splitlines() if line.startswith("<stdin>:"))
        # We say what was reported at a comment that expects another severity.
        return sorted(re.sub(r"(when expecting a '\w+').*", r"\1", line) for line in headers)

    ours, theirs = mx_opt(*arguments, stdin=source), stock(arguments, source)
    assert ours[0] == theirs[0] == 1
    assert complaints(ours) == complaints(theirs)
    assert len(complaints(ours)) > 50
