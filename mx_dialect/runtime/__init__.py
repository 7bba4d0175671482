"""From a module to a function of numpy arrays: `compile` and the `Kernel` it returns."""

from mx_dialect.runtime.compiler import DEFAULT_PIPELINE, compile
from mx_dialect.runtime.kernel import Kernel

__all__ = ["DEFAULT_PIPELINE", "Kernel", "compile"]
