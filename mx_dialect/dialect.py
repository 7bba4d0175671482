"""The `mx` dialect object and the one call that loads it into a context."""

import importlib
import sys
from typing import Any

from mx_dialect._mlir import HOST, announce_dialect, ext, ir
from mx_dialect.diagnostics import MxError

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

    Raises:
        MxError: the context is one of other bindings.
    """
    if context is not None:
        _require_host(context)
    define()
    if context is None:
        context = ir.Context()
    context.enable_multithreading(False)
    if not context.is_dialect_loaded(Mx.DIALECT_NAMESPACE):
        announce_dialect(Mx.DIALECT_NAMESPACE, sys.modules[__name__])
        with context, ir.Location.unknown():
            Mx.load()
        # The bindings keep the definitions that they loaded last, and with them all constants of that context.
        Mx._mlir_module = None
    return context


def require_loaded(context: Any) -> None:
    """Refuse a context that the dialect was not loaded into: while a pass manager runs it is too late to do so.

    Raises:
        MxError: the dialect is not there, or the context is one of other bindings.
    """
    _require_host(context)
    if not context.is_dialect_loaded(Mx.DIALECT_NAMESPACE):
        raise MxError("the mx dialect is not loaded into this context; call mx_dialect.load(context) first")


def _require_host(context: Any) -> None:
    """Refuse what is no context of the bindings that the dialect is defined in: no two can share objects."""
    if isinstance(context, ir.Context):
        return
    kind = f"{type(context).__module__}.{type(context).__qualname__}"
    raise MxError(
        f"expected a context of the bindings '{HOST}', not a {kind}; different bindings share no objects: pass text or"
        " bytecode, as to mx_dialect.transform, or name your bindings in MX_MLIR_PACKAGE"
    )
