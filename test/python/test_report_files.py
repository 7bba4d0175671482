"""The report on files: what they hold, damaged ones, hostile ones, safetensors."""

import json
import os
import pickle
import struct
import warnings
import zipfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from report_checks import Run, agree, expected, spread, write_archive

from mx_dialect.diagnostics import MxError
from mx_dialect.report.quantization_error import Case, summarize
from mx_dialect.report.tensor_files import reading


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(capsys)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return write_archive(tmp_path)


@pytest.mark.parametrize("source", ["<f8", ">f4", "<f2", "bf16"])
def test_dtypes_of_npy(tmp_path: Path, source: str):
    x = spread(6, (4, 64), 1)
    stored = x.astype(ml_dtypes.bfloat16 if source == "bf16" else source)
    np.save(tmp_path / "x.npy", stored)
    case = Case("f8E4M3FN", "floor")
    (found,) = summarize(str(tmp_path / "x.npy"), [case]).reports
    agree(found.errors[case], expected(stored.astype(np.float32), case, 32, -1))
    notes = {"<f8": ["converted to f32 first"], "bf16": ["2-byte values without a type, taken as bf16"]}
    assert list(found.notes()) == notes.get(source, [])


def test_f64_beyond_f32_is_infinite(tmp_path: Path):
    np.save(tmp_path / "x.npy", np.array([1e300] + [1.0] * 63))
    (found,) = summarize(str(tmp_path / "x.npy"), [Case("i8", "floor")]).reports
    assert (found.non_finite, found.left_out) == (1, 32)


def npy(header: str, data: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(text)) + text + data


def fields(descr: str, shape: str) -> str:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}"


class Bomb:
    """Unpickling it makes a file."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


BROKEN_NPY = {
    "empty": b"",
    "text": b"hello\nworld" * 20,
    "header_cut": npy(fields("'<f4'", "(2, 32)"))[:30],
    "data_cut": npy(fields("'<f4'", "(2, 32)"), bytes(255)),
    "huge": npy(fields("'<f4'", "(1000000000000, 1000000000000)"), bytes(64)),
    "wraps_to_zero": npy(fields("'<f4'", "(4611686018427387904, 4)"), bytes(64)),
    "negative": npy(fields("'<f4'", "(-1, 32)"), bytes(128)),
    "two_negatives": npy(fields("'<f4'", "(-1, -32)"), bytes(128)),
    "code": npy("__import__('os').mkdir('ran')", bytes(64)),
    "deep": npy("-" * 6000 + "1", bytes(64)),
    "version_9": npy(fields("'<f4'", "(16,)"), bytes(64), b"\x09\x00"),
    "rank_70": npy(fields("'<f4'", str((1,) * 70)), bytes(64)),
    "dtype": npy(fields("'\\n?'", "(16,)"), bytes(64)),
}


@pytest.mark.parametrize("kind", BROKEN_NPY)
def test_broken_npy(run: Run, tmp_path: Path, kind: str):
    path = tmp_path / "x.npy"
    path.write_bytes(BROKEN_NPY[kind])
    message = run.fails(path)
    assert f"{path}: " in message
    assert "cannot be read: " in message
    assert os.listdir(tmp_path) == ["x.npy"]


def test_broken_npz(run: Run, archive: Path, tmp_path: Path):
    whole = archive.read_bytes()
    path = tmp_path / "x.npz"
    for data in (b"", whole[:200], whole[:-30], b"PK\x03\x04" + bytes(100)):
        path.write_bytes(data)
        assert f"{path}: cannot be read: " in run.fails(path)
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("data.pkl", pickle.dumps(1))
    assert "no numpy array" in run.fails(path)
    for data in (npy(fields("'<f4'", "(1000000000000,)")), npy(fields("'<f4'", "(64,)"), bytes(255)), b"no array"):
        with zipfile.ZipFile(path, "w") as made:
            made.writestr("a.npy", data)
        assert f"{path}: a.npy: cannot be read: " in run.fails(path)
    # One flipped bit in the data of an array: the sum of the archive tells.
    np.savez(path, a=np.ones(64, np.float32))
    damaged = bytearray(path.read_bytes())
    damaged[damaged.index(np.ones(64, np.float32).tobytes()) + 9] ^= 1
    path.write_bytes(damaged)
    message = run.fails(path)
    assert f"{path}: a" in message
    assert "cannot be read: Bad CRC" in message


def test_what_a_parser_says_that_does_not_stand_by_itself_has_the_name_of_the_error() -> None:
    with pytest.raises(MxError, match=r"x\.npy: cannot be read: KeyError: 'descr'"), reading("x.npy"):
        raise KeyError("descr")
    with pytest.raises(MxError, match=r"x\.npy: a: cannot be read: EOFError$"), reading("x.npy", "a"):
        raise EOFError
    with pytest.raises(MxError, match=r"x\.npy: cannot be read: the end$"), reading("x.npy"):
        raise EOFError("the end")


@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_nothing_is_unpickled(run: Run, tmp_path: Path, suffix: str):
    path, trap = tmp_path / f"x.{suffix}", tmp_path / "trap"
    array = np.array([Bomb(trap)] * 4, object)
    np.save(path, array) if suffix == "npy" else np.savez(path, x=array)
    code, out, err = run(path)
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == "skipped x  4 object: its type is none of f32, f16, bf16, f64"
    assert not trap.exists()


def test_files_that_are_none(run: Run, tmp_path: Path):
    assert "no such file" in run.fails(tmp_path / "missing.npy")
    (tmp_path / "folder.npy").mkdir()
    assert "not a regular file" in run.fails(tmp_path / "folder.npy")
    os.mkfifo(tmp_path / "pipe.npy")
    assert "not a regular file" in run.fails(tmp_path / "pipe.npy")
    assert "expected a file named .npy, .npz or .safetensors" in run.fails(tmp_path / "model.pt")
    assert r"a\nb.npy': no such file" in run.fails(tmp_path / "a\nb.npy")


def test_structured_and_fortran_arrays(run: Run, tmp_path: Path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy warns of version 3.0.
        np.save(tmp_path / "s.npy", np.zeros(3, [("é中", "f4")]))
    code, out, err = run(tmp_path / "s.npy")
    assert (code, err) == (0, "")
    assert "skipped s  3" in out
    x = spread(9, (40, 64))
    np.save(tmp_path / "c.npy", x)
    np.save(tmp_path / "f.npy", np.asfortranarray(x))
    tables = [run(tmp_path / name, "--rounding", "all")[1].splitlines()[5:] for name in ("c.npy", "f.npy")]
    assert tables[0] == tables[1]
    assert len(tables[0]) == 24


def safetensors_file(tensors: dict[str, tuple[str, list[int], bytes]]) -> bytes:
    """Return a file in the format that huggingface/safetensors documents: a length, JSON, data."""
    header: dict[str, Any] = {}
    data = b""
    for name, (dtype, shape, values) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def test_safetensors(run: Run, tmp_path: Path):
    pytest.importorskip("safetensors")
    x = spread(11, (6, 64), 1)
    path = tmp_path / "x.safetensors"
    stored = {"layer.10": ("F32", np.float32), "layer.2": ("BF16", ml_dtypes.bfloat16), "layer.1": ("F16", np.float16)}
    path.write_bytes(
        safetensors_file(
            {
                **{name: (dtype, [6, 64], x.astype(kind).tobytes()) for name, (dtype, kind) in stored.items()},
                "wide": ("F64", [6, 64], x.astype(np.float64).tobytes()),
                "small": ("F8_E4M3", [64], bytes(64)),
                "ids": ("I32", [4], bytes(16)),
                "none": ("F32", [0, 3], b""),
                "one": ("F32", [], bytes(4)),
            }
        )
    )
    case = Case("f6E3M2FN", "even")
    summary = summarize(str(path), [case])
    assert [r.tensor.name for r in summary.reports] == ["layer.1", "layer.2", "layer.10", "wide"]
    for found in summary.reports:
        kind = stored.get(found.tensor.name, ("", np.float64))[1]
        agree(found.errors[case], expected(x.astype(kind).astype(np.float32), case, 32, -1))
    assert [(t.name, t.dtype) for t, _ in summary.skipped] == [
        ("ids", "i32"),
        ("none", "f32"),
        ("one", "f32"),
        ("small", "f8_e4m3"),
    ]
    assert run(path, "--formats", "i8")[0] == 0


def test_broken_safetensors(run: Run, tmp_path: Path):
    pytest.importorskip("safetensors")
    path = tmp_path / "x.safetensors"
    whole = safetensors_file({"a": ("F32", [32], bytes(128))})
    huge = safetensors_file({"a": ("F32", [1 << 40, 1 << 40], b"")})
    for data in (b"", whole[:4], whole[:-1], whole[:20], struct.pack("<Q", 1 << 62) + whole[8:], huge, b"\x00" * 64):
        path.write_bytes(data)
        assert f"{path}: cannot be read: " in run.fails(path)
