"""Refuse to compile programs of the engines' levels, which have passes of their own, with the names of those passes.

Without this the error would be about the first thing that a later step cannot do: a type without a numpy dtype, or an
operation that has no buffers.
"""

import re
from typing import Any

from mx_dialect._mlir import ir
from mx_dialect.diagnostics import error_at
from mx_dialect.lowering import tile_compute, tile_memory
from mx_dialect.lowering.mx_neuron_to_linalg import LOAD_PATHS, LOWERED
from mx_dialect.walk import operations

_TILES = "mx-tile-to-linalg"
_NEURON = "mx-neuron-to-linalg"
_NEURON_PATHS = f"mx-neuron-expand-load,{_NEURON}"

_PASSES = {
    **dict.fromkeys((*tile_memory.LOWERINGS, *tile_compute.LOWERINGS), _TILES),
    **dict.fromkeys(("mx.block_idx", "mx.block_num", "mx.submit"), _TILES),
    **dict.fromkeys(LOWERED, _NEURON),
    **dict.fromkeys(LOAD_PATHS, _NEURON_PATHS),
}

_ENGINE_TYPE = re.compile(r"!mx\.(?!tensor\b)\w+|#mx\.layout\b")


def require_value_level(module: Any) -> None:
    """Refuse operations and function types of the tile level and of the Neuron level.

    Raises:
        MxError: there is one; one error, for the first operation, or else for the first function.
    """
    found = operations(module.operation, lambda op: op.name in _PASSES, outer_first=True)
    if found:
        # A load path anywhere needs one pass more than the operation that the error is about.
        with_paths = any(_PASSES[op.name] == _NEURON_PATHS for op in found)
        first = _PASSES[found[0].name]
        needed = _NEURON_PATHS if first == _NEURON and with_paths else first
        raise error_at(found[0], f"'{found[0].name}' op is not lowered; run {needed} before compiling")
    for function in operations(module.operation, lambda op: op.name == "func.func"):
        _require_value_types(function)


def _require_value_types(function: Any) -> None:
    type_ = ir.TypeAttr(function.attributes["function_type"]).value
    for value_type in (*type_.inputs, *type_.results):
        found = _ENGINE_TYPE.search(str(value_type))
        if found:
            needed = _NEURON if found[0] == "!mx.x4" else _TILES
            raise error_at(function, f"type '{value_type}' is not lowered; run {needed} before compiling")
