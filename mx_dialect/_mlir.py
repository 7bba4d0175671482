"""The only import of the MLIR Python bindings.

The bindings live under a host package: everything before `.ir` in their import path. `MX_MLIR_PACKAGE` names it;
otherwise the first of `mlir` and `torch_mlir` that has what the dialect needs is taken. Importing this module either
succeeds or raises `BindingsError`, which says what was tried, what each candidate lacked and how to get one that works.

`ir` and `passmanager` are loaded at once; everything else on first use, so that a command that needs no dialect starts
as fast as the bindings do.
"""

import importlib
import importlib.util
import os
import sys
from types import ModuleType
from typing import Any

from mx_dialect.diagnostics import MxError

ENVIRONMENT_VARIABLE = "MX_MLIR_PACKAGE"
CANDIDATES = ("mlir", "torch_mlir")

# What the dialect needs of a host package, and in which release of MLIR each first appeared.
_REQUIRED = {
    "ir": "MLIR itself",
    "passmanager": "MLIR itself",
    "execution_engine": "a build with the execution engine",
    "rewrite": "LLVM 21",
    "dialects.ext": "LLVM 23",
}

_LOADED_LATER = ("execution_engine",)

# Names that other modules may import from here, and the host module behind each.
_LAZY = {
    "ext": "dialects.ext",
    "rewrite": "rewrite",
    "execution_engine": "execution_engine",
    "affine": "dialects.affine",
    "arith": "dialects.arith",
    "bufferization": "dialects.bufferization",
    "cf": "dialects.cf",
    "func": "dialects.func",
    "irdl": "dialects.irdl",
    "linalg": "dialects.linalg",
    "llvm": "dialects.llvm",
    "math": "dialects.math",
    "memref": "dialects.memref",
    "scf": "dialects.scf",
    "tensor": "dialects.tensor",
    "transform": "dialects.transform",
    "transform_interpreter": "dialects.transform.interpreter",
    "vector": "dialects.vector",
}


class BindingsError(MxError):
    """No usable MLIR Python bindings were found; the message says why and what to install."""


def _missing(package: str) -> str | None:
    """Say what `package` lacks, or return None when it has everything."""
    for module, since in _REQUIRED.items():
        name = f"{package}.{module}"
        # find_spec would import the parents anyway and cannot see a broken extension module. But it does where loading
        # takes time that only those who compile should spend.
        try:
            if module not in _LOADED_LATER:
                importlib.import_module(name)
            elif importlib.util.find_spec(name) is None:
                return f"has no module '{name}' (needs {since})"
        except ModuleNotFoundError as error:
            if error.name == package:
                return "is not installed"
            return f"has no module '{error.name or name}' (needs {since})"
        except ImportError as error:
            return f"fails to import '{name}': {error}"
    return None


def _choose() -> str:
    chosen = os.environ.get(ENVIRONMENT_VARIABLE)
    tried: list[str] = []
    for package in (chosen,) if chosen else CANDIDATES:
        lack = _missing(package)
        if lack is None:
            return package
        tried.append(f"  {package}: {lack}")
    source = f" (from {ENVIRONMENT_VARIABLE})" if chosen else ""
    raise BindingsError(
        f"no usable MLIR Python bindings; tried{source}:\n"
        + "\n".join(tried)
        + "\nmx_dialect needs bindings of LLVM 23 or newer that can define dialects in Python (`dialects.ext`)."
        + f"\nInstall them with `pip install 'torch-mlir>=20261001'`, or set {ENVIRONMENT_VARIABLE} to the import"
        + " root of bindings you have (everything before `.ir`)."
    )


HOST = _choose()
ir = importlib.import_module(f"{HOST}.ir")
passmanager = importlib.import_module(f"{HOST}.passmanager")


def announce_dialect(namespace: str, module: ModuleType) -> None:
    """Tell the bindings which module defines a dialect's classes.

    Whenever they meet a type or operation of a dialect, they import `HOST.dialects.NAMESPACE` unless that has succeeded
    before; for a dialect from elsewhere the failing search would cost more than everything else, each time again.
    """
    sys.modules.setdefault(f"{HOST}.dialects.{namespace}", module)


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    loaded = importlib.import_module(f"{HOST}.{module}")
    globals()[name] = loaded
    return loaded
