"""Weights of a .safetensors, .npz or .npy file: as float32, or quantized in blocks along their last axis.

Reading .safetensors needs the package of that name: `pip install 'mx-dialect[safetensors]'`.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mx_dialect import arrays
from mx_dialect.diagnostics import MxError
from mx_dialect.formats import DEFAULT_ROUNDING
from mx_dialect.mx_array import MxArray
from mx_dialect.near_miss import nearest
from mx_dialect.report.tensor_files import FLOATS, Tensor, open_tensors, reading, spell


def read_weights(path: str, names: Sequence[str] | None = None) -> dict[str, npt.NDArray[np.float32]]:
    """Return tensors of a file by name, as float32: those of `names`, or all that are f32, f16, bf16 or f64.

    f64 is rounded to nearest; the others are exact.

    Raises:
        MxError: no such file or name, a name of a tensor of another type, a damaged file.
    """
    with open_tensors(path) as tensors:
        return {tensor.name: _values(path, tensor) for tensor in _chosen(path, tensors, names)}


def quantize_file(
    path: str,
    element_type: str = "f8E4M3FN",
    names: Sequence[str] | None = None,
    block_size: int = 32,
    rounding: str = DEFAULT_ROUNDING,
) -> dict[str, MxArray]:
    """Return tensors of a file by name, quantized along their last axis as `mx_dialect.quantize` does.

    Without `names` these are all float tensors of two axes or more whose last axis is whole blocks. One is read at a
    time.

    Raises:
        MxError: as `read_weights` and `mx_dialect.quantize`.
    """
    with open_tensors(path) as tensors:
        chosen = _chosen(path, tensors, names)
        if names is None:
            chosen = [t for t in chosen if len(t.shape) >= 2 and block_size > 0 and t.shape[-1] % block_size == 0]
        return {
            t.name: arrays.quantize(_values(path, t), element_type, block_size, -1, rounding) for t in chosen if t.size
        }


def _chosen(path: str, tensors: Sequence[Tensor], names: Sequence[str] | None) -> list[Tensor]:
    if names is None:
        return [tensor for tensor in tensors if tensor.dtype in FLOATS]
    by_name = {tensor.name: tensor for tensor in tensors}
    for name in names:
        if name not in by_name:
            raise MxError(f"{spell(path)}: no tensor '{spell(name)}'{nearest(name, by_name)}")
        dtype = by_name[name].dtype
        if dtype not in FLOATS:
            raise MxError(f"{spell(path)}: '{spell(name)}' is {spell(dtype)}, not one of {', '.join(FLOATS)}")
    return [by_name[name] for name in names]


def _values(path: str, tensor: Tensor) -> npt.NDArray[np.float32]:
    with reading(path, tensor.name), np.errstate(over="ignore"):
        return np.ascontiguousarray(tensor.load(), np.float32).reshape(tensor.shape)
