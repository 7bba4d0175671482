"""Where the command line reads and writes: files of all kinds, text and bytecode."""

from pathlib import Path

import pytest
from command_line import LOWERED, SEED, Run


def test_empty_input_is_an_empty_module(mx_opt: Run) -> None:
    assert mx_opt(stdin="") == (0, "module {\n}\n", "")


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


def test_an_output_file_keeps_its_identity(mx_opt: Run, tmp_path: Path) -> None:
    """What `>` of a shell keeps: links, permissions, hard links."""
    real, link, twin = tmp_path / "real", tmp_path / "link", tmp_path / "twin"
    real.write_text("before")
    real.chmod(0o640)
    link.symlink_to(real)
    twin.hardlink_to(real)
    assert mx_opt("-o", str(link), stdin=SEED) == (0, "", "")
    assert link.is_symlink()
    assert real.read_text() == twin.read_text() == SEED
    assert real.stat().st_mode & 0o777 == 0o640


def test_the_output_may_be_the_input(mx_opt: Run, tmp_path: Path) -> None:
    file = tmp_path / "same.mlir"
    file.write_text(SEED)
    assert mx_opt(str(file), "--mx-to-linalg", "-o", str(file)) == (0, "", "")
    assert file.read_text() == LOWERED
    file.write_text("func.func @f( {")
    assert mx_opt(str(file), "-o", str(file))[0] == 1
    assert file.read_text() == "func.func @f( {"


@pytest.mark.parametrize("name", [".", "missing/out.mlir"])
def test_output_files_that_cannot_be_written(mx_opt: Run, tmp_path: Path, name: str) -> None:
    code, out, err = mx_opt("-o", str(tmp_path / name), stdin=SEED)
    assert (code, out) == (1, "")
    assert err.startswith(f"mx-opt: error: cannot write output file '{tmp_path / name}': ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
def test_a_full_device_is_an_error(mx_opt: Run) -> None:
    code, _, err = mx_opt("-o", "/dev/full", stdin=SEED)
    assert code == 1
    assert err == "mx-opt: error: cannot write output file '/dev/full': No space left on device\n"
    assert Path("/dev/full").exists()


def test_a_directory_as_input(mx_opt: Run, tmp_path: Path) -> None:
    code, _, err = mx_opt(str(tmp_path))
    assert (code, err) == (1, f"mx-opt: error: cannot open input file '{tmp_path}': Is a directory\n")


def test_input_that_is_no_text(mx_opt: Run) -> None:
    code, _, err = mx_opt(stdin=b"module {\n}\n // \xff\n")
    assert code == 1
    assert err == "<stdin>:3:5: error: the input is not valid UTF-8: byte 0xff\n"
    assert mx_opt("--verify-diagnostics", stdin=b"// expected-error {{UTF-8}}\n // \xff\n")[0] == 1


def test_text_that_mlir_takes_whatever_is_in_its_comments(mx_opt: Run) -> None:
    for text in (SEED.replace("\n", "\r\n"), SEED + "\0\0", SEED + "// \x1b[31m\u00e9"):
        assert mx_opt(stdin=text) == (0, SEED, "")
    code, _, err = mx_opt(stdin="\ufeff" + SEED)
    assert code == 1
    assert err.startswith("<stdin>:1:1: error: unexpected character")


def test_truncated_bytecode(mx_opt: Run) -> None:
    code, _, err = mx_opt(stdin=b"ML\xefR\x01\x02")
    assert code == 1
    assert err.startswith("<stdin>:0:0: error: ")


def test_bytecode_cannot_pass_verification_of_diagnostics_for_lack_of_comments(mx_opt: Run) -> None:
    code, _, err = mx_opt("--verify-diagnostics", stdin=b"ML\xefR\x01\x02")
    assert code == 1
    assert "unexpected error: " in err


def test_bytecode_out_and_in(mx_opt: Run, tmp_path: Path) -> None:
    file = tmp_path / "module.mlirbc"
    assert mx_opt("--emit-bytecode", "-o", str(file), stdin=SEED)[0] == 0
    assert file.read_bytes().startswith(b"ML\xefR")
    assert mx_opt(str(file)) == (0, SEED, "")
