"""The `mx` dialect object and the one call that loads it into a context."""

import importlib
import sys
from typing import Any

from mx_dialect._mlir import announce_dialect, ext, ir

# The modules whose operations and types attach themselves to the dialect.
_DEFINITIONS = (
    "neuron_expert_ops",
    "neuron_load_ops",
    "neuron_matmul_ops",
    "neuron_ops",
    "neuron_qkv_ops",
    "neuron_types",
    "ops",
    "shape_ops",
    "storage_ops",
    "submit_ops",
    "tile_matmul_ops",
    "tile_memory_ops",
    "tile_ops",
    "tile_types",
    "types",
)


class Mx(ext.Dialect, name="mx"):
    """OCP microscaling: block-scaled tensors and the operations on them."""


def define() -> None:
    """Import the modules that define the dialect's operations and types."""
    for name in _DEFINITIONS:
        importlib.import_module(f"mx_dialect.{name}")


def load(context: Any | None = None) -> ir.Context:
    """Load the mx dialect into a context of the host bindings (a new one if None) and return the context.

    Loading twice does nothing. Turns the context's multithreading off: two functions verified at once by verifiers
    written in Python deadlock (LLVM issue 215781).
    """
    define()
    if context is None:
        context = ir.Context()
    context.enable_multithreading(False)
    if not context.is_dialect_loaded(Mx.DIALECT_NAMESPACE):
        announce_dialect(Mx.DIALECT_NAMESPACE, sys.modules[__name__])
        with context, ir.Location.unknown():
            Mx.load()
    return context
