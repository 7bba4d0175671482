"""Weights of checkpoint files as float32 and as block-scaled arrays, and files that are not what they should be."""

import ml_dtypes
import numpy as np
import pytest

from mx_dialect import MxError, reference
from mx_dialect.ingress.safetensors_weights import quantize_file, read_weights

numpy_files = pytest.importorskip("safetensors.numpy")


@pytest.fixture
def path(tmp_path):
    rng = np.random.default_rng(0)
    tensors = {
        "layers.0.weight": rng.standard_normal((4, 64)).astype(np.float32),
        "layers.1.weight": rng.standard_normal((4, 64)).astype(np.float16),
        "layers.2.weight": rng.standard_normal((4, 33)).astype(ml_dtypes.bfloat16),
        "layers.0.bias": np.ones(64, np.float32),
        "steps": np.ones((2, 32), np.int32),
    }
    target = str(tmp_path / "model.safetensors")
    numpy_files.save_file(tensors, target)
    return target


def test_floats_are_read_exactly(path):
    weights = read_weights(path, ["layers.1.weight", "layers.2.weight"])
    assert [w.dtype for w in weights.values()] == [np.float32] * 2
    stored = numpy_files.load_file(path)
    for name, values in weights.items():
        assert np.array_equal(values, stored[name].astype(np.float32))


def test_without_names_all_floats_are_read(path):
    assert list(read_weights(path)) == ["layers.0.bias", "layers.0.weight", "layers.1.weight", "layers.2.weight"]


def test_matrices_of_whole_blocks_are_quantized(path):
    arrays = quantize_file(path, "f4E2M1FN")
    assert list(arrays) == ["layers.0.weight", "layers.1.weight"]
    wanted = reference.quantize(read_weights(path)["layers.1.weight"], "f4E2M1FN", 32, -1, "floor")
    assert arrays["layers.1.weight"].mantissa.tobytes() == wanted.mantissa.tobytes()
    assert arrays["layers.1.weight"].scale.tobytes() == wanted.scale.tobytes()


def test_what_is_asked_for_and_cannot_be(path, tmp_path):
    with pytest.raises(MxError, match=r"no tensor 'layers.0.wieght'; did you mean 'layers.0.weight'"):
        read_weights(path, ["layers.0.wieght"])
    with pytest.raises(MxError, match="'steps' is i32, not one of f32, f16, bf16, f64"):
        read_weights(path, ["steps"])
    with pytest.raises(MxError, match="multiple"):
        quantize_file(path, names=["layers.2.weight"])
    with pytest.raises(MxError, match="no such file"):
        read_weights(str(tmp_path / "none.safetensors"))


@pytest.mark.parametrize("content", [b"", b"\xff" * 64, b"\x10\0\0\0\0\0\0\0{not json      }"])
def test_damaged_files(tmp_path, content):
    target = tmp_path / "bad.safetensors"
    target.write_bytes(content)
    with pytest.raises(MxError, match="cannot be read"):
        read_weights(str(target))
