"""MLIR's OCP microscaling (MX) dialect in Python: the public API.

Names are loaded on first use, so that importing the package costs nothing that is not needed.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from mx_dialect import patterns, reference
    from mx_dialect.api import parse, pass_, run_pipeline, to_asm, to_bytecode, transform
    from mx_dialect.arrays import MxArray, dequantize, matmul, quantize
    from mx_dialect.diagnostics import Diagnostic, MxError
    from mx_dialect.dialect import load
    from mx_dialect.runtime import Kernel, compile

__all__ = [
    "Diagnostic",
    "Kernel",
    "MxArray",
    "MxError",
    "compile",
    "dequantize",
    "load",
    "matmul",
    "parse",
    "pass_",
    "patterns",
    "quantize",
    "reference",
    "run_pipeline",
    "to_asm",
    "to_bytecode",
    "transform",
]

_HOME = {
    "Diagnostic": "diagnostics",
    "Kernel": "runtime",
    "MxArray": "arrays",
    "MxError": "diagnostics",
    "compile": "runtime",
    "dequantize": "arrays",
    "load": "dialect",
    "matmul": "arrays",
    "parse": "api",
    "pass_": "api",
    "quantize": "arrays",
    "run_pipeline": "api",
    "to_asm": "api",
    "to_bytecode": "api",
    "transform": "api",
}

_MODULES = ("patterns", "reference")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"mx_dialect.{name}")
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"mx_dialect.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
