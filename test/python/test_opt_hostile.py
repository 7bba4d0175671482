"""What a file must not be able to do: write where the command line does not say, or end the process."""

import contextlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import SEED, Run

from mx_dialect import asm, dialect, input_passes, reproducer
from mx_dialect._mlir import ir, passmanager
from mx_dialect.diagnostics import MxError
from mx_dialect.upstream_passes import UPSTREAM_PASSES

WRITES = 'transform.apply_registered_pass "snapshot-op-locations" with options = {"filename" = "evil"} to %f'
BY_PARAMETER = (
    '%n = transform.param.constant "evil" -> !transform.any_param\n'
    '    %x = transform.apply_registered_pass "snapshot-op-locations" with options = {"filename" = %n} to %f'
    " : (!transform.any_op, !transform.any_param) -> !transform.any_op"
)
RENAMED = (
    '%s = transform.structured.match ops{["transform.apply_registered_pass"]} in %root'
    " : (!transform.any_op) -> !transform.any_op\n"
    '    %n = transform.param.constant "snapshot-op-locations" -> !transform.any_param\n'
    '    transform.annotate %s "pass_name" = %n : !transform.any_op, !transform.any_param\n'
    '    %x = transform.apply_registered_pass "cse" with options = {"filename" = "evil"} to %f'
    " : (!transform.any_op) -> !transform.any_op"
)
INNER = "builtin.module(func.func(snapshot-op-locations{filename=evil}))"


def applying(what: str) -> str:
    return f"""
module attributes {{transform.with_named_sequence}} {{
  module {{
    func.func @f() {{ return }}
  }}
  transform.named_sequence @__transform_main(%root: !transform.any_op) {{
    %f = transform.structured.match ops{{["func.func"]}} in %root : (!transform.any_op) -> !transform.any_op
    {what}
    transform.yield
  }}
}}
"""


def nested(name: str, options: str) -> str:
    return (
        f'%x = transform.apply_registered_pass "{name}" with options = {options} to %f'
        " : (!transform.any_op) -> !transform.any_op"
    )


@pytest.mark.parametrize(
    "what",
    [
        f"%x = {WRITES} : (!transform.any_op) -> !transform.any_op",
        BY_PARAMETER,
        RENAMED,
        nested("composite-fixed-point-pass", '{"pipeline" = "snapshot-op-locations{filename=evil}"}'),
        nested("inline", '{"max-iterations" = "1 default-pipeline=snapshot-op-locations{filename=evil}"}'),
        nested("gpu-module-to-binary", '{"toolkit" = "/tmp/evil"}'),
    ],
)
def test_transforms_of_the_input_write_no_files(
    mx_opt: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for flags in (["--transform-interpreter"], ["--pass-pipeline=builtin.module(transform-interpreter)"]):
        code, out, err = mx_opt(*flags, stdin=applying(what))
        assert (code, out) == (1, "")
        assert "op may not ask for " in err
        assert err.rstrip().splitlines()[0].endswith("use --trust-input if you trust the input")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("what", [f"%x = {WRITES} : (!transform.any_op) -> !transform.any_op", BY_PARAMETER, RENAMED])
def test_trusted_input_may(mx_opt: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """And so the test above would see the file if it were written."""
    monkeypatch.chdir(tmp_path)
    assert mx_opt("--transform-interpreter", "--trust-input", stdin=applying(what))[0] == 0
    assert [path.name for path in tmp_path.iterdir()] == ["evil"]


def test_what_the_command_line_names_is_written(mx_opt: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert mx_opt("--snapshot-op-locations=filename=good", stdin=SEED)[0] == 0
    assert [path.name for path in tmp_path.iterdir()] == ["good"]


def test_harmless_transforms_run(mx_opt: Run) -> None:
    text = applying('%x = transform.apply_registered_pass "cse" to %f : (!transform.any_op) -> !transform.any_op')
    code, out, err = mx_opt("--transform-interpreter", stdin=text)
    assert (code, err) == (0, "")
    assert "@f" in out


def test_a_library_writes_no_files(mx_opt: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = applying(f"%x = {WRITES} : (!transform.any_op) -> !transform.any_op").replace("@__transform_main", "@g")
    (tmp_path / "library.mlir").write_text(text)
    code, _, err = mx_opt("--transform-preload-library=transform-library-paths=library.mlir", stdin=SEED)
    assert code == 1
    assert err.startswith("library.mlir:8:10: error: 'transform.apply_registered_pass' op may not ask for 'snapshot")
    assert [path.name for path in tmp_path.iterdir()] == ["library.mlir"]


def reproducing(pipeline: str) -> str:
    return f"{SEED}{{-#\n  external_resources: {{\n    mlir_reproducer: {{\n      pipeline: {pipeline}\n    }}\n  }}\n#-}}\n"


@pytest.mark.parametrize(
    "pipeline",
    [
        "builtin.module(snapshot-op-locations{filename=evil})",
        INNER,
        "any(composite-fixed-point-pass{pipeline=any(snapshot-op-locations{filename=evil})})",
        "builtin.module(inline{op-pipelines=func.func(snapshot-op-locations{filename=evil})})",
        "builtin.module(gpu-module-to-binary{toolkit=/tmp/evil})",
    ],
)
def test_reproducers_write_no_files(
    mx_opt: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pipeline: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = mx_opt("--run-reproducer", stdin=reproducing(f'"{pipeline}"'))
    assert (code, out) == (1, "")
    assert "the reproducer's pipeline may not ask for" in err
    assert mx_opt(stdin=reproducing(f'"{pipeline}"'))[0] == 0
    assert list(tmp_path.iterdir()) == []
    if "snapshot" in pipeline and "inline" not in pipeline:
        assert mx_opt("--run-reproducer", "--trust-input", stdin=reproducing(f'"{pipeline}"'))[0] == 0
        assert [path.name for path in tmp_path.iterdir()] == ["evil"]


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        ("1", "has no pipeline"),
        ('""', "expected pass pipeline to be wrapped"),
        ('"cse"', "expected pass pipeline to be wrapped"),
        ('"func.func(cse)"', "can't run 'func.func' pass manager on 'builtin.module' op"),
        ('"builtin.module(cse"', "unbalanced parentheses"),
        ('"builtin.module(\\22\\0A)"', "does not refer to a registered pass"),
        ('"' + "any(" * 200 + ")" * 200 + '"', "pipelines nest at most"),
        ('"builtin.module(cse)", verify_each: "no"', "'verify_each' of the reproducer is true or false"),
    ],
)
def test_reproducers_that_are_none(mx_opt: Run, pipeline: str, message: str) -> None:
    code, out, err = mx_opt("--run-reproducer", stdin=reproducing(pipeline))
    assert (code, out) == (1, "")
    assert message in err


def test_only_a_reproducer_is_one(mx_opt: Run) -> None:
    """What a string or a comment says is not run."""
    for text in (
        'module attributes {x.a = "{-# mlir_reproducer: { pipeline: "} {\n}\n',
        "// {-# mlir_reproducer: {}\n",
    ):
        code, out, err = mx_opt("--run-reproducer", stdin=text)
        assert (code, err) == (0, "")
        assert out.startswith("module")
    assert reproducer.read(SEED) is None
    assert mx_opt("--run-reproducer", stdin=b"ML\xefR")[0] == 1


def test_folders_of_dumps_stay_under_theirs(mx_opt: Run, tmp_path: Path) -> None:
    names = ["../../../evil", "/etc/evil", "a/b", "..", ".", "x" * 5000, "\\00", "\u00e9", "con", "a\\0Ab", ""]
    text = "".join(f'func.func @"{name}"() {{ return }}\n' for name in names if name)
    flags = ["--pass-pipeline=builtin.module(func.func(cse))", "--mlir-print-ir-after-all"]
    folder = tmp_path / "deep" / "tree"
    code, _, err = mx_opt(*flags, f"--mlir-print-ir-tree-dir={folder}", stdin=text)
    assert (code, err) == (0, "")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == len(names) - 1
    assert {path.parents[1] for path in files} == {folder / "builtin_module_no-symbol-name"}


def test_a_tree_that_cannot_be_written(mx_opt: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, out, err = mx_opt(
        "--cse", "--mlir-print-ir-after-all", f"--mlir-print-ir-tree-dir={tmp_path}/file", stdin=SEED
    )
    assert (code, out) == (1, "")
    assert err.startswith(f"error: cannot write IR dump '{tmp_path}/file/")


def test_a_crash_in_native_code_leaves_its_reproducer(tmp_path: Path) -> None:
    """Nothing can be written any more once a signal has ended the process."""
    code = (
        "import os, sys\n"
        "from mx_dialect import opt, passes\n"
        "passes.register_pass(passes.Pass('crash', 'crashes', lambda root, options: os._exit(66)))\n"
        "sys.exit(opt.main(sys.argv[1:]))\n"
    )
    flags = ["--cse", "--crash", f"--mlir-pass-pipeline-crash-reproducer={tmp_path}/repro.mlir"]
    for more, pipeline in (
        ([], "builtin.module(cse,crash)"),
        (["--mlir-pass-pipeline-local-reproducer"], "builtin.module(crash)"),
    ):
        run = subprocess.run([sys.executable, "-c", code, *flags, *more], input=SEED, text=True, check=False)
        assert run.returncode == 66
        found = reproducer.read((tmp_path / "repro.mlir").read_text())
        assert found == reproducer.Reproducer(pipeline, True)


def test_files_of_reproducers_that_cannot_be_written(mx_opt: Run, tmp_path: Path) -> None:
    for flag in ("--mlir-generate-reproducer", "--mlir-pass-pipeline-crash-reproducer"):
        code, out, err = mx_opt("--cse", f"{flag}={tmp_path}/none/x", stdin=SEED)
        assert (code, out) == (1, "")
        assert err == f"mx-opt: error: cannot write output file '{tmp_path}/none/x': No such file or directory\n"


def test_every_pass_that_reaches_out_is_known() -> None:
    """By the names of its options; those that are empty unless given are not listed by MLIR."""
    context = ir.Context()
    suspects: set[str] = set()
    for name in UPSTREAM_PASSES:
        for anchor in ("any", "builtin.module"):
            with context, contextlib.suppress(ValueError):
                printed = str(passmanager.PassManager.parse(f"{anchor}({name})"))
                if re.search(r"\b(filename|file|path|toolkit|pipeline|pipelines|default-pipeline|command)=", printed):
                    suspects.add(name)
    assert suspects == {*input_passes._REACHES_OUT, *input_passes._TAKES_PIPELINES}


# MLIR's names are bytes; the bindings raise, or end the process, where they have to give one that is not UTF-8.
@pytest.mark.parametrize("text", [r'"\D7func.x"() : () -> ()', r'"x.y"() {"\FFa" = 1} : () -> ()'])
@pytest.mark.parametrize("flag", ["--mx-to-linalg", "--mx-tile-to-linalg", "--cse"])
def test_names_that_are_no_text(mx_opt: Run, text: str, flag: str) -> None:
    code, out, err = mx_opt("--allow-unregistered-dialect", flag, stdin=text)
    assert (code, out) == (1, "")
    assert err.startswith('<stdin>:0:0: error: the name "\\')
    assert "is not valid UTF-8, which names of operations and attributes have to be" in err


def test_names_and_strings_that_may_be_anything(mx_opt: Run) -> None:
    text = r'"x.y"() {a = "\FF(", "\C3\A9" = @"\FF"} : () -> () loc("\FE")'
    code, out, err = mx_opt("--allow-unregistered-dialect", "--mlir-print-debuginfo", stdin=text)
    assert (code, err) == (0, "")
    assert r'"x.y"() {a = "\FF(", "\C3\A9" = @"\FF"}' in out
    assert r'loc("\FE")' in out


def test_a_pass_that_has_to_read_a_name_that_is_no_text(mx_opt: Run) -> None:
    code, out, err = mx_opt("--mx-tile-to-linalg", stdin=SEED.replace("@block_matmul", r'@"\FF"'))
    assert (code, out) == (1, "")
    assert err == ("error: pass 'mx-tile-to-linalg' failed: a name or string that it has to read is not valid UTF-8\n")


def test_bytecode_with_names_that_are_no_text(mx_opt: Run) -> None:
    context = dialect.load()
    context.allow_unregistered_dialects = True
    data = asm.to_bytecode(asm.parse('"x.name"() {first} : () -> !mx.tile<16x16xf32, acc>', context))
    for name in (b"name", b"first", b"mx.tile"[3:]):
        damaged = data.replace(name, b"\xd7" + name[1:])
        assert damaged != data
        code, out, err = mx_opt("--allow-unregistered-dialect", stdin=damaged)
        assert (code, out) == (1, "")
        assert "error: " in err
        assert "internal error" not in err
        with pytest.raises(MxError):
            asm.parse_bytecode(damaged, context)


def test_files_that_locations_name(mx_opt: Run, tmp_path: Path) -> None:
    """The line of a file is shown where it helps; a device, a file without end and one too large are left alone."""
    (tmp_path / "a").write_text("the line\n")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(2**40)
    names = [
        str(tmp_path / "a"),
        str(tmp_path / "large"),
        str(tmp_path),
        "/dev/zero",
        "/proc/kmsg",
        "a\\00b",
        "x" * 5000,
    ]
    for name in names:
        code, out, err = mx_opt(stdin=f'"mx.dequantize_block"() : () -> () loc("{name}":1:1)')
        assert (code, out) == (1, "")
        assert "op expects exactly 1 operands" in err
        assert ("the line" in err) == (name == names[0])
