"""mx-run: what it reads, computes, compares and writes, and that no input ends in a traceback."""

import io
import os
import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from command_line import SEED

from mx_dialect import ops, run, shape_ops, storage_ops
from mx_dialect.runtime.kernel import Kernel

ROOT = Path(__file__).parents[2]
RNG = np.random.default_rng(0)
# 2^-1 .. 2^1 and their elements are exact in f8E4M3FN, so that quantizing changes nothing.
A = RNG.choice([-2.0, -1.0, 0.5, 1.0, 1.5], (32, 64)).astype(np.float32)
B = RNG.standard_normal((64, 64), np.float32)
C = RNG.standard_normal((32, 64), np.float32)
PRODUCT = A.astype(np.float64) @ B + C

LINALG = """
func.func private @twice(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %0 = linalg.add ins(%x, %x : tensor<4x8xf32>, tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
func.func @main(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>, %s: f32, %h: tensor<4x8xbf16>, %i: tensor<4x8xi32>)
    -> (tensor<4x4xf32>, tensor<4xf32>, tensor<4x8xbf16>, tensor<4xi32>, f32) {
  %zero = arith.constant 0.0 : f32
  %zero_i = arith.constant 0 : i32
  %e = tensor.empty() : tensor<4x4xf32>
  %e1 = tensor.empty() : tensor<4xf32>
  %ei = tensor.empty() : tensor<4xi32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<4xf32>) -> tensor<4xf32>
  %fi = linalg.fill ins(%zero_i : i32) outs(%ei : tensor<4xi32>) -> tensor<4xi32>
  %x = call @twice(%a) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %m = linalg.matmul ins(%x, %b : tensor<4x8xf32>, tensor<8x4xf32>) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
  %t = linalg.transpose ins(%m : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) permutation = [1, 0]
  %max = linalg.reduce ins(%a : tensor<4x8xf32>) outs(%f1 : tensor<4xf32>) dimensions = [1] (%in: f32, %init: f32) {
    %0 = arith.maximumf %in, %init : f32
    linalg.yield %0 : f32
  }
  %sum = linalg.reduce ins(%i : tensor<4x8xi32>) outs(%fi : tensor<4xi32>) dimensions = [1] (%in: i32, %init: i32) {
    %0 = arith.addi %in, %init : i32
    linalg.yield %0 : i32
  }
  %k = arith.constant dense<[1.5, -2.0, 0.25, 3.0, 1.0, 2.0, 3.0, 4.0]> : tensor<8xbf16>
  %kb = linalg.broadcast ins(%k : tensor<8xbf16>) outs(%h : tensor<4x8xbf16>) dimensions = [0]
  %hh = arith.mulf %h, %kb : tensor<4x8xbf16>
  %s2 = arith.addf %s, %s : f32
  return %t, %max, %hh, %sum, %s2 : tensor<4x4xf32>, tensor<4xf32>, tensor<4x8xbf16>, tensor<4xi32>, f32
}
"""
QUANTIZE = next(part for part in ops.QuantizeBlockOp.__doc__.split("```") if part.startswith("mlir\n")).removeprefix(
    "mlir\n"
)


class Command:
    """Runs mx-run in process, in a folder of its own."""

    def __init__(self, capfd, folder):
        self._capfd = capfd
        self.folder = folder

    def __call__(self, *arguments):
        self._capfd.readouterr()
        code = run.main(list(arguments))
        sys.stdout.flush()
        out, err = self._capfd.readouterr()
        assert "Traceback" not in err
        assert "internal error" not in err
        return code, out, err

    def fails(self, *arguments):
        """Return the only error of a run that prints nothing else."""
        code, out, err = self(*arguments)
        assert (code, out) == (1, "")
        errors = [line for line in err.splitlines() if "error:" in line]
        assert len(errors) == 1
        return errors[0]


@pytest.fixture
def mx_run(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("seed.mlir").write_text(SEED)
    for name, array in (("a", A), ("b", B), ("c", C)):
        np.save(f"{name}.npy", array)
    return Command(capfd, tmp_path)


def is_near(actual):
    # Far within the bound of float32 sums over 64 terms, far from any wrong answer.
    return actual.dtype == np.float32 and np.allclose(actual, PRODUCT, rtol=1e-4, atol=1e-4)


def test_files_to_file(mx_run):
    code, out, err = mx_run("seed.mlir", "a.npy", "b.npy", "c.npy", "-o", "out.npy")
    assert (code, out) == (0, "")
    assert "a.npy: a: f32 quantized to !mx.tensor<32x64xf8E4M3FN" in err
    assert is_near(np.load("out.npy"))
    assert sorted(os.listdir()) == ["a.npy", "b.npy", "c.npy", "out.npy", "seed.mlir"]


def mantissa(dtype):
    return A.astype(ml_dtypes.float8_e4m3fn).view(dtype)


@pytest.mark.parametrize("dtype", [np.uint8, ml_dtypes.float8_e4m3fn])
def test_codes_as_two_files_or_two_entries(mx_run, dtype):
    np.save("m.npy", mantissa(dtype))
    np.save("s.npy", np.full((32, 2), 127, np.uint8))
    assert mx_run("seed.mlir", "m.npy", "s.npy", "b.npy", "c.npy", "-o", "one.npy") == (0, "", "")
    codes = {"arg0.mantissa": mantissa(dtype), "arg0.scale": np.full((32, 2), 127, np.uint8)}
    np.savez("in.npz", **codes, arg1=B)
    assert mx_run("seed.mlir", "in.npz", "c.npy", "-o", "two.npz") == (0, "", "")
    assert is_near(np.load("one.npy"))
    assert is_near(np.load("two.npz")["result0"])


def test_names_of_the_text_and_other_memory_layouts(mx_run):
    Path("seed.mlir").write_text(SEED.replace("%arg1", "%weights"))
    np.savez("in.npz", weights=np.asfortranarray(B).astype(">f4"), arg0=A)
    code, _, err = mx_run("seed.mlir", "in.npz", "--arg=arg2=c.npy", "-o", "out.npy")
    assert (code, "error" in err) == (0, False)
    assert is_near(np.load("out.npy"))
    assert "argument 1 (weights) is given twice" in mx_run.fails("seed.mlir", "in.npz", "--arg=arg1=b.npy")


def test_summary(mx_run):
    code, out, _ = mx_run("seed.mlir", "a.npy", "b.npy", "c.npy")
    low, high = PRODUCT.min(), PRODUCT.max()
    assert (code, out.startswith(f"result0: 32x64 f32, min {low:.4g}"[:-1])) == (0, True)
    assert f"max {high:.4g}"[:-1] in out


def test_quantized_results_are_codes(mx_run):
    Path("q.mlir").write_text(QUANTIZE)
    assert mx_run("q.mlir", "a.npy", "-o", "q.npz")[0] == 0
    with np.load("q.npz") as arrays:
        elements, scales = arrays["result0.mantissa"], arrays["result0.scale"]
    assert (elements.dtype, scales.dtype, scales.shape) == (np.uint8, np.uint8, (32, 2))
    values = elements.view(ml_dtypes.float8_e4m3fn).astype(np.float64)
    np.testing.assert_array_equal(values * np.ldexp(1.0, np.repeat(scales, 32, 1).astype(int) - 127), A)
    assert "name a .npz file" in mx_run.fails("q.mlir", "a.npy", "-o", "q.npy")
    assert mx_run("q.mlir", "a.npy", "--check=q.npz")[0] == 0


def examples():
    """Return each function of the examples of the operations' documentation, with a way to run it."""
    for module in (ops, shape_ops, storage_ops):
        for item in vars(module).values():
            if isinstance(item, type) and item.__module__ == module.__name__:
                for part in (item.__doc__ or "").split("```mlir\n")[1:]:
                    text = part.partition("```")[0]
                    yield from ((text, line.split("(")[0]) for line in text.split("func.func @")[1:])


@pytest.mark.parametrize(
    ("text", "function"), list(examples()), ids=lambda value: value if value.isidentifier() else ""
)
def test_check_of_every_example(mx_run, text, function):
    Path("x.mlir").write_text(text)
    extra = [f"--shape=x:{8 if 'dim' not in function else 32}x64"] if "%x: !mx.tensor<?x" in text else []
    extra += [f"--arg={name}=1" for name in ("i", "axis") if f"%{name}: index" in text]
    code, out, err = mx_run("x.mlir", f"--entry={function}", "--random", "--check", *extra)
    assert (code, err) == (0, "")
    assert "ok" in out


def test_check_of_linalg(mx_run):
    Path("x.mlir").write_text(LINALG)
    code, out, err = mx_run("x.mlir", "--random=5", "--check")
    assert (code, err) == (0, "")
    assert out.count(": ok, ") == 5
    assert "ok, all 4 values equal" in out


def test_check_after_passes_compares_with_the_function_as_written(mx_run):
    code, out, _ = mx_run("seed.mlir", "--random", "--check", "--pass-pipeline=mx-to-linalg")
    assert (code, out.splitlines()[0]) == (0, "check against the reference of @block_matmul:")


def test_check_after_passes_that_change_the_type(mx_run):
    Path("x.mlir").write_text("""
        func.func @f(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
          %0 = math.absf %x : tensor<2x3xf32>
          return %0 : tensor<2x3xf32>
        }
        func.func private @unused(%x: tensor<2xf32>)""")
    code, out, _ = mx_run("x.mlir", "--random", "--check", "--pass-pipeline=builtin.module(symbol-dce)")
    assert (code, "bound there 0" in out) == (0, True)


def test_check_fails_for_a_wrong_kernel(mx_run, monkeypatch):
    call = Kernel.__call__

    def wrong(self, *arguments, **keywords):
        result = call(self, *arguments, **keywords)
        result[3, 5] += 0.01
        return result

    monkeypatch.setattr(Kernel, "__call__", wrong)
    code, out, _ = mx_run("seed.mlir", "a.npy", "b.npy", "c.npy", "--check", "-o", "out.npy")
    assert code == 1
    assert "FAILED, 1 of 2048 values outside their bounds; error 0.01 at [3, 5], bound there" in out
    assert not Path("out.npy").exists()
    assert mx_run("seed.mlir", "a.npy", "b.npy", "c.npy", "--check", "--atol=0.1")[0] == 0


def test_check_against_a_file(mx_run):
    np.save("expected.npy", PRODUCT)
    arguments = ("seed.mlir", "a.npy", "b.npy", "c.npy")
    assert mx_run(*arguments, "--check=expected.npy", "--atol=1e-4")[0] == 0
    np.savez("wrong.npz", result0=PRODUCT + (np.arange(64) == 7))
    code, out, _ = mx_run(*arguments, "--check=wrong.npz", "--atol=1e-4")
    assert (code, "FAILED, 32 of 2048" in out) == (1, True)
    np.savez("wrong.npz", result0=PRODUCT[:5])
    assert "but the array (5, 64)" in mx_run.fails(*arguments, "--check=wrong.npz")
    np.savez("wrong.npz", other=PRODUCT)
    assert "no array result0" in mx_run.fails(*arguments, "--check=wrong.npz")


def test_nothing_is_claimed_of_rounded_codes_and_unknown_functions(mx_run):
    mx = "32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU"
    Path("x.mlir").write_text(f"""
        func.func @f(%x: tensor<32x64xf32>) -> (!mx.tensor<{mx}>, tensor<32x64xf32>) {{
          %0 = arith.addf %x, %x : tensor<32x64xf32>
          %1 = mx.quantize_block %0 : tensor<32x64xf32> -> <{mx}>
          %2 = mx.dequantize_block %1 : <{mx}> -> tensor<32x64xf32>
          return %1, %2 : !mx.tensor<{mx}>, tensor<32x64xf32>
        }}""")
    code, out, _ = mx_run("x.mlir", "a.npy", "--check")
    assert (code, out.count("FAILED, nothing is known"), out.count("no bound can be derived")) == (1, 2, 1)


def test_check_follows_loops_and_functions(mx_run):
    Path("x.mlir").write_text("""func.func @f(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %w = arith.constant dense_resource<w> : tensor<4xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (tensor<4xf32>) {
    %t = math.tanh %a : tensor<4xf32>
    %q = arith.truncf %w : tensor<4xf32> to tensor<4xf8E4M3FN>
    %e = arith.extf %q : tensor<4xf8E4M3FN> to tensor<4xf32>
    %s = arith.addf %t, %e : tensor<4xf32>
    scf.yield %s : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
{-# dialect_resources: { builtin: { w: "0x040000000000803F0000803E0000C03F000000C0" } } #-}""")
    code, out, _ = mx_run("x.mlir", "--random", "--arg=n=3", "--check")
    assert (code, "result0: ok, max error" in out) == (0, True)


def test_unsupported_operation_is_named(mx_run):
    Path("x.mlir").write_text("""func.func @f(%x: f32) -> tensor<2xf32> {
  %r = tensor.from_elements %x, %x : tensor<2xf32>
  return %r : tensor<2xf32>
}""")
    error = mx_run.fails("x.mlir", "--random", "--check")
    assert error.startswith(
        "x.mlir:2:8: error: 'tensor.from_elements' op is not evaluated by --check; compare with given"
    )


def test_check_of_padding(mx_run):
    program = """func.func @f(%x: tensor<?x2xf32>, %n: tensor<2xi32>, %v: f32) -> (tensor<?x5xf32>, tensor<5xi32>) {
      %c = arith.constant -2.5 : f32
      %i = arith.constant 7 : i32
      %0 = tensor.pad %x low[0, 1] high[0, 2] {
      ^bb0(%a: index, %b: index):
        tensor.yield %c : f32
      } : tensor<?x2xf32> to tensor<?x5xf32>
      %1 = tensor.pad %n low[3] high[0] {
      ^bb0(%a: index):
        tensor.yield %i : i32
      } : tensor<2xi32> to tensor<5xi32>
      return %0, %1 : tensor<?x5xf32>, tensor<5xi32>
    }"""
    arguments = ("x.mlir", "x.npy", "n.npy", "--arg=v=1.0")
    np.save("x.npy", np.arange(6, dtype=np.float32).reshape(3, 2))
    np.save("n.npy", np.array([1, 2], np.int32))
    Path("x.mlir").write_text(program)
    code, out, _ = mx_run(*arguments, "--check", "-o", "out.npz")
    assert code == 0
    assert out.count("ok") == 2
    assert np.load("out.npz")["result0"].tolist() == [[-2.5, 2 * i, 2 * i + 1, -2.5, -2.5] for i in range(3)]
    Path("x.mlir").write_text(program.replace("yield %c", "yield %v"))
    assert "'tensor.pad' op pads with something else than a constant" in mx_run.fails(*arguments, "--check")


def test_repeat(mx_run):
    code, out, _ = mx_run("seed.mlir", "--random", "--check", "--repeat=3", "--threads=2", "--entry=block_matmul")
    assert code == 0
    assert "3 calls: median " in out
    assert "GFLOP/s" in out


def test_open_extents(mx_run):
    Path("x.mlir").write_text("""func.func @f(%x: tensor<?x4xf32>, %i: index) -> f32 {
  %c0 = arith.constant 0 : index
  %0 = tensor.extract %x[%i, %c0] : tensor<?x4xf32>
  return %0 : f32
}""")
    np.save("x.npy", np.arange(12, dtype=np.float32).reshape(3, 4))
    assert mx_run("x.mlir", "x.npy", "--arg=i=2")[1] == "result0: f32 = 8\n"
    np.save("i.npy", np.int64(1))
    assert mx_run("x.mlir", "x.npy", "i.npy", "--check")[0] == 0
    assert mx_run.fails("x.mlir", "x.npy", "--arg=i=3").startswith("x.mlir:3:8: error: an index is out of bounds")
    assert "give its extents with --shape=x:" in mx_run.fails("x.mlir", "--random", "--arg=i=0")
    assert "no number is made up" in mx_run.fails("x.mlir", "--random", "--shape=x:5x4")
    assert "cannot have shape (5, 5)" in mx_run.fails("x.mlir", "--random", "--shape=x:5x5", "--arg=i=0")
    assert "more than this machine has" in mx_run.fails("x.mlir", "--random", "--shape=x:999999999999x4", "--arg=i=0")
    assert "'1.5' does not spell" in mx_run.fails("x.mlir", "x.npy", "--arg=i=1.5")


def header(shape, descr="<f4"):
    data = io.BytesIO()
    np.lib.format.write_array_header_1_0(data, {"descr": descr, "fortran_order": False, "shape": shape})
    return data.getvalue()


BAD_ARRAYS = {
    "empty": (b"", "cannot be read"),
    "garbage": (b"\x93NUMPY\x01\x00" + b"\xff" * 50, "cannot be read"),
    "huge": (header((1 << 60, 1 << 60)), "only 0 follow"),
    "negative": (header((-1, 64)), "negative extent"),
    "object": (header((64, 64), "|O") + b"cos\nsystem\n(S'touch pwned'\ntR.", "cannot be read"),
    "shape": (header((2, 2)) + bytes(16), "has shape (2, 2)"),
    "dtype": (header((64, 64), "<f8") + bytes(8 * 64 * 64), "has dtype float64"),
    "fields": (header((64, 64), [("x", "<f4")]) + bytes(4 * 64 * 64), "has dtype"),
    "e5m2": (header((64, 64), "<f1") + bytes(64 * 64), "save its codes"),
}


@pytest.mark.parametrize("kind", BAD_ARRAYS)
@pytest.mark.parametrize("archive", [False, True], ids=["npy", "npz"])
def test_bad_array(mx_run, kind, archive):
    data, expected = BAD_ARRAYS[kind]
    if archive:
        with zipfile.ZipFile("bad.npz", "w") as file:
            file.writestr("arg1.npy", data)
        error = mx_run.fails("seed.mlir", "bad.npz", "--random")
    else:
        Path("bad.npy").write_bytes(data)
        error = mx_run.fails("seed.mlir", "--arg=arg1=bad.npy", "--random")
    assert error.startswith(f"mx-run: error: bad.np{'z' if archive else 'y'}")
    assert expected in error
    assert not Path("pwned").exists()


def test_archive_that_would_unfold_is_refused_by_its_header(mx_run):
    with zipfile.ZipFile("bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive, archive.open("arg1.npy", "w") as file:
        file.write(header((1 << 12, 1 << 12)))
        file.write(bytes(1 << 26))
    assert "has shape (4096, 4096)" in mx_run.fails("seed.mlir", "bomb.npz", "--random")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "no input file"),
        (["seed.mlir"], "argument 0 (arg0) is not given"),
        (["nosuch.mlir"], "cannot open input file 'nosuch.mlir'"),
        (["seed.mlir", "nosuch.npy"], "nosuch.npy: no such file"),
        (["seed.mlir", "seed.mlir"], "expected an array file"),
        (["seed.mlir", "a.npy", "b.npy", "c.npy", "c.npy"], "c.npy: there is no argument left for it"),
        (["seed.mlir", "--random", "--arg=x=b.npy"], "there is no argument 'x'"),
        (["seed.mlir", "--random", "--arg=arg1=3"], "--arg takes a .npy file"),
        (["seed.mlir", "--random", "--arg=arg0=m.npy"], "m.npy: no such file"),
        (["seed.mlir", "--random", "--entry=x"], "no function @x"),
        (["seed.mlir", "--random", "-o", "x.txt"], "-o: 'x.txt' is not a file named .npy or .npz"),
        (["seed.mlir", "--random", "-o", "nosuch/x.npy"], "cannot write output file"),
        (["seed.mlir", "--random=-1"], "is not a number"),
        (["seed.mlir", "--random", "--rtol=1"], "add --check"),
        (["seed.mlir", "--random", "--check", "--rtol=nan"], "is not a number from 0 on"),
        (["seed.mlir", "--repeat"], "--repeat needs a value"),
        (["seed.mlir", "--shape=4x4"], "is not NAME:EXTENTxEXTENT..."),
        (["seed.mlir", "--flag"], "unknown flag '--flag'"),
        (["seed.mlir", "--random", "--pass-pipeline=nosuch"], "'nosuch' does not refer to a registered pass"),
    ],
)
def test_usage_errors(mx_run, arguments, expected):
    assert expected in mx_run.fails(*arguments)


def test_internal_errors_have_a_traceback_if_asked_for(mx_run, monkeypatch, capfd):
    def broken(self, files):
        raise KeyError("oops")

    monkeypatch.setattr(run._Session, "run", broken)
    assert run.main(["seed.mlir"]) == 1
    assert "mx-run: internal error: KeyError: 'oops' (this is a bug; --mlir-print-" in capfd.readouterr().err
    with pytest.raises(KeyError):
        run.main(["seed.mlir", "--mlir-print-stacktrace-on-diagnostic"])


def test_half_a_pair_of_codes(mx_run):
    np.savez("in.npz", **{"arg0.mantissa": mantissa(np.uint8)})
    assert "argument 0 (arg0) needs arg0.scale" in mx_run.fails("seed.mlir", "in.npz", "--random")
    np.save("m.npy", mantissa(np.uint8))
    assert "need the file of their scales" in mx_run.fails("seed.mlir", "m.npy", "--random")


def test_output_is_replaced_whole_or_left_alone(mx_run):
    Path("out.npy").write_bytes(b"before")
    Path("out.npy").chmod(0o640)
    mx_run.fails("seed.mlir", "a.npy", "-o", "out.npy")
    assert Path("out.npy").read_bytes() == b"before"
    assert mx_run("seed.mlir", "a.npy", "b.npy", "c.npy", "-o", "out.npy")[0] == 0
    assert Path("out.npy").stat().st_mode & 0o777 == 0o640
    assert is_near(np.load("out.npy"))


def test_process(mx_run):
    command = [sys.executable, str(ROOT / "tools" / "mx-run.py"), "-", "a.npy", "b.npy", "c.npy", "-o", "out.npy"]
    done = subprocess.run(command, input=SEED, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    assert is_near(np.load("out.npy"))
    listed = subprocess.run([*command[:2], "--help"], capture_output=True, text=True, check=False)
    assert (listed.returncode, listed.stdout.startswith("OVERVIEW: mx-run")) == (0, True)


def test_commands_of_the_document(mx_run):
    text = (ROOT / "docs" / "mx-run.md").read_text()
    Path("seed2.mlir").write_text(text.partition("```mlir\n")[2].partition("```")[0])
    commands = re.findall(r"^\$ mx-run (.*)\n((?:.+\n)*?)```", text, re.MULTILINE)
    assert len(commands) == 4
    for command, printed in commands:
        code, out, err = mx_run(*shlex.split(command))
        assert code == 0
        # Figures depend on the processor; what they are of does not.
        assert re.sub(r"-?\d\S*", "N", err + out).split()[:12] == re.sub(r"-?\d\S*", "N", printed).split()[:12]
