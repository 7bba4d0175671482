"""Kernels on disk: found again, the same as compiled ones, and nothing that is not to be trusted."""

import json
import os
import stat
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mx_dialect
from mx_dialect import MxArray, MxError, cache, passes, reference
from mx_dialect.runtime import compiler, description, object_code
from mx_dialect.runtime.call_checks import Check

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kernels are cached on Linux only")

needs_llvmlite = pytest.mark.skipif(not object_code.is_available(), reason="needs llvmlite")

KEY = "0123abcd"
MX = "!mx.tensor<{0}x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>"
MATMUL = """
func.func @matmul(%a: {1}, %b: tensor<64x8xf32>, %acc: tensor<{0}x8xf32>) -> tensor<{0}x8xf32> {{
  %0 = mx.block_matmul %a, %b, %acc : {1}, tensor<64x8xf32>, tensor<{0}x8xf32> -> tensor<{0}x8xf32>
  return %0 : tensor<{0}x8xf32>
}}
"""
STATIC, OPEN = (MATMUL.format(rows, MX.format(rows)) for rows in (4, "?"))
# A scalar, a fresh array, an mx tensor, and an assert.
SEVERAL = f"""
func.func @several(%x: tensor<4x64xf32>, %n: i16) -> (i16, tensor<4x64xf32>, {MX.format(4)}) {{
  %c0 = arith.constant 0 : i16
  %positive = arith.cmpi sgt, %n, %c0 : i16
  cf.assert %positive, "n must be positive"
  %0 = arith.divsi %n, %n : i16
  %1 = arith.addf %x, %x : tensor<4x64xf32>
  %2 = mx.quantize_block %1 : tensor<4x64xf32> -> {MX.format(4)}
  return %0, %1, %2 : i16, tensor<4x64xf32>, {MX.format(4)}
}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Turn the cache on, in a folder that does not exist yet, for kernels that this process does not have yet."""
    monkeypatch.setenv("MX_CACHE", "1")
    monkeypatch.setenv("MX_CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.setattr(compiler, "_cache", compiler._Cache(limit=8))
    monkeypatch.setattr(cache, "_reported", set())
    return tmp_path / "kernels"


def files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def again(monkeypatch: pytest.MonkeyPatch, text: str, **options: Any) -> Any:
    """Compile as another process would, which must not need to."""
    with monkeypatch.context() as patch:
        patch.setattr(compiler, "_cache", compiler._Cache(limit=8))
        patch.setattr(compiler, "_builder", lambda: pytest.fail("compiled again"))
        return mx_dialect.compile(text, **options)


def operands(rows: int = 4) -> list[Any]:
    rng = np.random.default_rng(rows)
    # By the reference: the compiled quantization would leave a kernel in the folder, of whichever test comes first.
    quantized = reference.quantize(rng.standard_normal((rows, 64)).astype(np.float32), "f8E4M3FN", 32, 1)
    lhs = MxArray(quantized.mantissa, quantized.scale, 32, 1, "f8E4M3FN")
    return [lhs, *(rng.standard_normal(shape).astype(np.float32) for shape in ((64, 8), (rows, 8)))]


def refusal(function: Any, *arguments: Any, **options: Any) -> str:
    with pytest.raises(MxError) as caught:
        function(*arguments, **options)
    return str(caught.value)


class TestEntries:
    def test_what_is_saved_is_loaded(self, folder: Path) -> None:
        assert cache.load(KEY) is None
        cache.save(KEY, {"a": [1, None]}, b"code")
        assert cache.load(KEY) == cache.Entry({"a": [1, None]}, b"code")
        assert cache.load(KEY[:-1]) is None
        assert [stat.S_IMODE(p.stat().st_mode) for p in (folder, *files(folder))] == [0o700, 0o600]

    def test_a_later_one_replaces_it(self, folder: Path) -> None:
        cache.save(KEY, 1, b"old")
        cache.save(KEY, 2, b"new")
        assert cache.load(KEY) == cache.Entry(2, b"new")
        assert len(files(folder)) == 1

    def test_every_flipped_byte_and_every_cut_is_noticed(self, folder: Path) -> None:
        cache.save(KEY, {"a": 1}, b"machine code", b"constants")
        (file,) = files(folder)
        whole = file.read_bytes()
        for i in range(len(whole)):
            file.write_bytes(whole[:i] + bytes([whole[i] ^ 0x10]) + whole[i + 1 :])
            assert cache.load(KEY) is None, i
            file.write_bytes(whole[:i])
            assert cache.load(KEY) is None, i
        file.write_bytes(whole + b"\0")
        assert cache.load(KEY) is None
        file.write_bytes(whole)
        assert cache.load(KEY) == cache.Entry({"a": 1}, b"machine code", b"constants")

    def test_another_version_of_the_format_is_not_read(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(cache, "_MAGIC", cache._MAGIC.replace(b"\x02", b"\x03"))
            cache.save(KEY, 1, b"code")
            assert cache.load(KEY) is not None
        assert cache.load(KEY) is None

    def test_an_entry_under_another_name_is_not_read(self, folder: Path) -> None:
        cache.save(KEY, 1, b"code")
        (file,) = files(folder)
        file.rename(folder / "another1.kernel")
        assert cache.load("another1") is None

    def test_what_is_no_plain_file_is_not_read(self, folder: Path, tmp_path: Path) -> None:
        cache.save(KEY, 1, b"code")
        (file,) = files(folder)
        file.rename(tmp_path / "elsewhere")
        file.symlink_to(tmp_path / "elsewhere")
        assert cache.load(KEY) is None
        file.unlink()
        os.mkfifo(file, 0o600)
        assert cache.load(KEY) is None

    def test_a_file_that_others_may_write_to_is_not_read(self, folder: Path) -> None:
        cache.save(KEY, 1, b"code")
        (file,) = files(folder)
        file.chmod(0o620)
        assert cache.load(KEY) is None
        file.chmod(0o600)
        assert cache.load(KEY) is not None

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
    def test_a_file_of_another_user_is_not_read(self, folder: Path) -> None:
        cache.save(KEY, 1, b"code")
        (file,) = files(folder)
        os.chown(file, os.geteuid() + 1, -1)
        assert cache.load(KEY) is None
        os.chown(file, os.geteuid(), -1)
        assert cache.load(KEY) is not None

    def test_a_file_beyond_the_limit_is_not_read(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        cache.save(KEY, 1, b"x" * 1000)
        assert cache.load(KEY) is not None
        monkeypatch.setattr(cache, "LIMIT_BYTES", 1000)
        assert cache.load(KEY) is None

    def test_entries_that_changed_places_are_not_read(self, folder: Path) -> None:
        cache.save("a", 1, b"one")
        cache.save("b", 2, b"two")
        first, second = files(folder)
        contents = first.read_bytes(), second.read_bytes()
        first.write_bytes(contents[1])
        second.write_bytes(contents[0])
        assert cache.load("a") is None
        assert cache.load("b") is None

    def test_the_least_recently_used_go_first(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for number, key in enumerate("abc"):
            cache.save(key, None, b"x" * 1000)
            os.utime(folder / f"{key}.kernel", (number, number))
        assert cache.load("a") is not None
        monkeypatch.setattr(cache, "LIMIT_BYTES", 3500)
        cache.save("d", None, b"x" * 1000)
        assert [p.stem for p in files(folder)] == ["a", "c", "d"]

    def test_one_beyond_the_limit_is_not_kept(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        cache.save("a", None, b"")
        monkeypatch.setattr(cache, "LIMIT_BYTES", 1000)
        cache.save("b", None, b"x" * 1001)
        assert [p.stem for p in files(folder)] == ["a"]

    def test_what_a_dead_process_left_is_deleted(self, folder: Path) -> None:
        cache.save("a", None, b"")
        (folder / "old.tmp").touch()
        os.utime(folder / "old.tmp", (0, 0))
        (folder / "new.tmp").touch()
        cache.save("b", None, b"")
        assert [p.name for p in files(folder)] == ["a.kernel", "b.kernel", "new.tmp"]


class TestFolder:
    def test_default(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("MX_CACHE_DIR", raising=False)
        monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
        assert cache.folder() == "/somewhere/mx_dialect"
        monkeypatch.setenv("HOME", "/home/me")
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")
        assert cache.folder() == "/home/me/.cache/mx_dialect"

    @pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
    def test_one_that_others_may_write_to_is_refused_with_one_warning(self, folder: Path, mode: int) -> None:
        cache.save(KEY, 1, b"code")
        folder.chmod(mode)
        with pytest.warns(RuntimeWarning, match="may be written to by other users, and could make this process run"):
            assert cache.load(KEY) is None
        # The second time it would raise: warnings are errors.
        cache.save("b", 1, b"code")
        assert len(files(folder)) == 1

    def test_one_of_another_user_is_refused(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        cache.save(KEY, 1, b"code")
        monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
        with pytest.warns(RuntimeWarning, match="kernels are not cached: .* belongs to another user"):
            assert cache.load(KEY) is None

    def test_one_that_cannot_be_made_is_reported_once(self, folder: Path) -> None:
        folder.touch()
        with pytest.warns(RuntimeWarning, match="cannot be opened: Not a directory"):
            cache.save(KEY, 1, b"code")
        assert cache.load(KEY) is None

    def test_one_that_is_read_only_is_read(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        cache.save(KEY, 1, b"code")

        def refuse(*_arguments: Any, **_options: Any) -> None:
            raise PermissionError

        # Not by its mode, which does not stop root.
        real = os.open
        monkeypatch.setattr(os, "open", lambda p, f, *a, **o: refuse() if f & os.O_CREAT else real(p, f, *a, **o))
        monkeypatch.setattr(os, "utime", refuse)
        cache.save("b", 1, b"code")
        assert cache.load(KEY) == cache.Entry(1, b"code")
        assert len(files(folder)) == 1


class TestObjectFiles:
    def test_unknown_kinds(self) -> None:
        for content in (
            b"",
            b"MZ",
            b"\x7fELF\x02\x01",
            b"\x7fELF\x02\x01" + b"\xff" * 60,
            b"\x7fELF\x01\x01" + bytes(90),
        ):
            assert object_code.symbols(content) is None
            assert object_code.link(content, "f", 1) is None

    @needs_llvmlite
    def test_symbols(self, folder: Path) -> None:
        mx_dialect.compile(SEVERAL)
        (file,) = files(folder)
        entry = cache.load(file.stem)
        assert entry is not None
        _, symbol = description.understand(entry.description)
        found = object_code.symbols(entry.machine_code)
        assert found is not None
        assert symbol in found.defined
        assert "malloc" in found.wanted
        assert object_code.link(entry.machine_code, symbol, 1) is not None
        assert object_code.link(entry.machine_code, "another", 1) is None
        # Of the same length, and in no library.
        assert object_code.link(entry.machine_code.replace(b"\0malloc\0", b"\0mxlloc\0"), symbol, 1) is None


def test_descriptions_are_understood() -> None:
    for text in (STATIC, OPEN, SEVERAL):
        interface = mx_dialect.compile(text).interface
        described = json.loads(json.dumps(description.describe(interface, "f")))
        assert description.understand(described) == (interface, "f")
    assert any(isinstance(check, Check) for check in mx_dialect.compile(OPEN).interface.checks)


@needs_llvmlite
class TestKernels:
    def test_results_are_those_of_a_compiled_kernel(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for text, rows in ((STATIC, 4), (OPEN, 7)):
            compiled, found = mx_dialect.compile(text), again(monkeypatch, text)
            given = operands(rows)
            expected = compiled(*given)
            np.testing.assert_array_equal(found(*given), expected)
            assert found(*given, in_place=True) is given[2]
            np.testing.assert_array_equal(given[2], expected)
            assert repr(found) == repr(compiled)

    def test_results_of_several_kinds(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        mx_dialect.compile(SEVERAL)
        x = np.arange(256, dtype=np.float32).reshape(4, 64)
        one, doubled, quantized = again(monkeypatch, SEVERAL)(x, 5)
        assert type(one) is np.int16
        assert one == 1
        np.testing.assert_array_equal(doubled, 2 * x)
        np.testing.assert_array_equal(
            mx_dialect.dequantize(quantized), mx_dialect.dequantize(mx_dialect.quantize(2 * x))
        )

    def test_errors_are_those_of_a_compiled_kernel(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        a, b, acc = operands()
        x = np.zeros((4, 64), np.float32)
        for text, wrong in (
            (STATIC, (a, b, acc[:3])),
            (STATIC, (a, b.astype(np.float64), acc)),
            (OPEN, (a, b, acc[:3])),
            (OPEN, (a.mantissa, a.scale[:2], b, acc)),
            (SEVERAL, (x, -1)),
            (SEVERAL, (x, 1 << 16)),
        ):
            assert refusal(again_or_first(monkeypatch, text), *wrong) == refusal(mx_dialect.compile(text), *wrong)
        assert "n must be positive" in refusal(again(monkeypatch, SEVERAL), x, -1)

    def test_threads(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Kernels of several thread counts live beside each other; large products call back to divide their work."""
        text = MATMUL.format(256, MX.format(256)).replace("x8xf32", "x256xf32")
        rng = np.random.default_rng(0)
        lhs = mx_dialect.quantize(rng.standard_normal((256, 64)).astype(np.float32))
        given = [lhs, *(rng.standard_normal((n, 256)).astype(np.float32) for n in (64, 256))]
        expected = [mx_dialect.compile(text, threads=t)(*given) for t in (1, 2, 3)]
        kernels = [again(monkeypatch, text, threads=t) for t in (1, 2, 3)]
        for kernel, result in zip(kernels, expected, strict=True):
            np.testing.assert_array_equal(kernel(*given), result)

    def test_a_corrupt_entry_is_replaced(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        expected = mx_dialect.compile(STATIC)(*operands())
        (file,) = files(folder)
        whole = file.read_bytes()
        entry = cache.load(file.stem)
        assert entry is not None
        for ruin in (
            lambda: file.write_bytes(whole[:-1]),
            lambda: file.write_bytes(b""),
            # Whole, but not what this version writes.
            lambda: cache.save(file.stem, {}, entry.machine_code),
            lambda: cache.save(file.stem, entry.description, b"no object file"),
            lambda: cache.save(file.stem, {**entry.description, "symbol": "another"}, entry.machine_code),
        ):
            ruin()
            monkeypatch.setattr(compiler, "_cache", compiler._Cache(limit=8))
            np.testing.assert_array_equal(mx_dialect.compile(STATIC)(*operands()), expected)
            assert cache.load(file.stem) == entry

    def test_what_machine_code_depends_on_is_in_its_name(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        requests: list[tuple[str, dict[str, Any]]] = [
            (STATIC, {}),
            (STATIC + " ", {}),
            (STATIC, {"entry": "matmul"}),
            (STATIC, {"opt_level": 1}),
            (STATIC, {"scale_products": "exponent"}),
            (STATIC, {"pipeline": "mx-lower-to-llvm"}),
            (STATIC, {"threads": 3}),
        ]
        for number, (text, options) in enumerate(requests, 1):
            mx_dialect.compile(text, **{"threads": 2, **options})
            assert len(files(folder)) == number, options
        from mx_dialect.runtime import cache_key

        for name in ("_installed", "_machine"):
            with monkeypatch.context() as patch:
                patch.setattr(cache_key, name, lambda *_: "another")
                assert cache_key.key_of("r", []) != "another"
                changed = cache_key.key_of("r", [])
            assert cache_key.key_of("r", []) != changed

    def test_it_can_be_turned_off(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        mx_dialect.compile(STATIC, cache=False)
        monkeypatch.setenv("MX_CACHE", "0")
        mx_dialect.compile(OPEN)
        assert not folder.exists()

    def test_passes_of_the_user_turn_it_off(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(passes, "_registered", {**passes._registered, "my-pass": None})
        mx_dialect.compile(STATIC)
        assert not folder.exists()

    def test_programs_as_modules_are_cached_too(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        kernel = mx_dialect.compile(mx_dialect.parse(STATIC))
        np.testing.assert_array_equal(mx_dialect.compile(STATIC)(*operands()), kernel(*operands()))
        assert len(files(folder)) == 2


def again_or_first(monkeypatch: pytest.MonkeyPatch, text: str) -> Any:
    mx_dialect.compile(text)
    return again(monkeypatch, text)


def run(program: str, *arguments: str) -> "subprocess.Popen[str]":
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-c", textwrap.dedent(program), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def output(process: "subprocess.Popen[str]") -> str:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out


@needs_llvmlite
def test_another_process_finds_it_without_the_bindings(folder: Path) -> None:
    program = """
        import sys, numpy as np, mx_dialect
        kernel = mx_dialect.compile(sys.argv[1])
        print("torch_mlir" in sys.modules or "mlir" in sys.modules, kernel.signature)
        try:
            kernel(1)
        except mx_dialect.MxError:
            print(kernel(np.ones((4, 64), np.uint8), np.full((4, 2), 127, np.uint8), np.ones((64, 8), np.float32),
                         np.zeros((4, 8), np.float32))[3, 7] * 2**9)
    """
    first, second = output(run(program, STATIC)).split(), output(run(program, STATIC)).split()
    assert (first[0], second[0]) == ("True", "False")
    # Code 1 of f8E4M3FN is 2^-9.
    assert first[1:] == second[1:]
    assert float(first[-1]) == 64


@needs_llvmlite
def test_concurrent_writers(folder: Path) -> None:
    program = """
        import sys, numpy as np, mx_dialect
        from mx_dialect import cache
        mx_dialect.compile(sys.argv[1])
        for i in range(300):
            cache.save("shared", i % 7, bytes([i % 256]) * 50_000)
            entry = cache.load("shared")
            assert entry is not None and len(set(entry.machine_code)) == 1 and len(entry.machine_code) == 50_000
    """
    processes = [run(program, STATIC) for _ in range(2)]
    for process in processes:
        output(process)
    assert len(files(folder)) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert mx_dialect.compile(STATIC)(*operands()).shape == (4, 8)
