"""Compile a function of a module to a `Kernel`, or find the one made before: in this process, or on disk.

`build` makes machine code from a program; it needs the bindings, and a process that finds all of its kernels never
imports it. Kernels are known by the program as it is written and by everything else that machine code depends on.
"""

import functools
import hashlib
import importlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Any

from mx_dialect import cache as disk
from mx_dialect import parallel, passes, pipelines
from mx_dialect.diagnostics import MxError
from mx_dialect.external_constants import over
from mx_dialect.runtime import object_code
from mx_dialect.runtime.cache_key import key_of
from mx_dialect.runtime.description import describe, understand
from mx_dialect.runtime.free_memory import give_back
from mx_dialect.runtime.kernel import Kernel

__all__ = ["DEFAULT_PIPELINE", "Kernel", "compile"]

DEFAULT_PIPELINE = "mx-lower-to-llvm-vectorized"

# How the stages end of every pipeline that can be compiled.
TAIL = (*pipelines.BUFFERIZE, *pipelines.TO_LLVM)

# Where a description on disk has the offsets of the constants beside it.
_CONSTANTS = "constants"

# What MLIR bytecode begins with.
_BYTECODE = b"ML\xefR"


@dataclass(frozen=True)
class Request:
    """What is to be compiled: a program as text or bytecode, and the arguments of `compile`, with a known `threads`."""

    source: str | bytes
    entry: str | None
    pipeline: str
    opt_level: int
    scale_products: str
    threads: int

    @functools.cached_property
    def key(self) -> str:
        """Return what only equal requests have in common."""
        program = self.source.encode() if isinstance(self.source, str) else self.source
        return repr((hashlib.sha256(program).hexdigest(), *astuple(self)[1:]))


def compile(
    module_or_text: Any,
    entry: str | None = None,
    *,
    pipeline: str = DEFAULT_PIPELINE,
    opt_level: int = 2,
    scale_products: str = "elements",
    threads: int | None = None,
    cache: bool = True,
) -> Kernel:
    """Compile a function of tensors, mx tensors and scalars for this machine.

    `module_or_text` is MLIR text (custom or generic mx syntax), bytecode, or a module of any context, which is left as
    it is. `entry` names the function; None takes the only public function with a body. `pipeline` is a named pipeline
    that ends in LLVM IR, `opt_level` LLVM's, 0 to 3. `scale_products` is the option of mx-to-linalg: "elements" or
    "exponent". `threads` is how many threads large matrix products are divided among, all processors if None; no result
    depends on it.

    The same program compiles once in a process. With the extra `cache` installed, machine code is kept on disk as well,
    for other processes of this user (see `mx_dialect.cache`); `cache=False` neither looks there nor leaves anything.

    Raises:
        MxError: the program does not parse, there is no such function or its type cannot cross into Python, or the
            pipeline fails.
    """
    if not _can_compile(pipeline):
        hint = passes.nearest(pipeline, _compiling_pipelines())
        known = ", ".join(_compiling_pipelines())
        raise MxError(f"'{pipeline}' is no pipeline that ends in machine code (one of {known}){hint}")
    if opt_level not in range(4):
        raise MxError(f"opt_level is 0, 1, 2 or 3, not {opt_level!r}")
    count = parallel.checked(threads)
    request = Request(_source(module_or_text), entry, pipeline, opt_level, scale_products, count)
    return _cache.get(request.key, lambda: _obtain(request, cache))


def _compiling_pipelines() -> list[str]:
    """Return the names of the pipelines that `build` knows how to take apart."""
    return [name for name in pipelines.names() if _can_compile(name)]


def _can_compile(pipeline: str) -> bool:
    found = pipelines.get(pipeline)
    return found is not None and found.stages[-len(TAIL) :] == TAIL


def _source(module_or_text: Any) -> str | bytes:
    """Return text or bytecode that a fresh context can parse."""
    if isinstance(module_or_text, str):
        return module_or_text
    if isinstance(module_or_text, bytes):
        return module_or_text if module_or_text.startswith(_BYTECODE) else _decoded(module_or_text)
    return _builder().bytecode_of(module_or_text)


def _decoded(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise MxError(f"bytes are neither MLIR bytecode nor text in UTF-8: {error}") from None


def _builder() -> Any:
    """Return the module that makes machine code, which imports the bindings."""
    return importlib.import_module("mx_dialect.runtime.build")


class _Cache:
    """The most recently used kernels. Threads that ask for the same kernel at once get the same one."""

    def __init__(self, limit: int):
        self._limit = limit
        self._kernels: OrderedDict[Any, Kernel] = OrderedDict()
        self._access = threading.Lock()
        self._building = threading.RLock()

    def get(self, key: Any, build: Callable[[], Kernel]) -> Kernel:
        found = self._find(key)
        if found is not None:
            return found
        with self._building:
            found = self._find(key)
            if found is None:
                found = build()
                with self._access:
                    self._kernels[key] = found
                    while len(self._kernels) > self._limit:
                        self._kernels.popitem(last=False)
            return found

    def _find(self, key: Any) -> Kernel | None:
        with self._access:
            found = self._kernels.get(key)
            if found is not None:
                self._kernels.move_to_end(key)
            return found


_cache = _Cache(limit=128)


def _obtain(request: Request, cached: bool) -> Kernel:
    """Return the kernel that is on disk, or make it, and leave it there if it may be."""
    key = _disk_key(request) if cached else None
    kernel = None if key is None else _stored(key, request.threads)
    if kernel is not None:
        return kernel
    built = _builder().build(request, keep_object=key is not None)
    if key is not None:
        _save(key, built)
    if built.constants.offsets:
        give_back()
    return built.kernel


def _save(key: str, built: Any) -> None:
    machine_code = built.machine_code()
    if object_code.symbols(machine_code) is not None:
        description = {**describe(built.kernel.interface, built.symbol), _CONSTANTS: built.constants.offsets}
        disk.save(key, description, machine_code, built.constants.memory.data)


def _disk_key(request: Request) -> str | None:
    """Return the name that a request's machine code has on disk, None if it is not to be kept there."""
    # Passes of the user's own may do anything, and change from one process to the next.
    if not disk.is_on() or not passes.are_builtin() or not object_code.is_available():
        return None
    return key_of(request.key, pipelines.PIPELINES[request.pipeline].stages)


def _stored(key: str, threads: int) -> Kernel | None:
    """Return the kernel that is on disk under a key, None if there is none that can be used: it is made again."""
    entry = disk.load(key)
    if entry is None:
        return None
    try:
        interface, symbol = understand(entry.description)
        constants = over(entry.constants, entry.description[_CONSTANTS])
        linked = object_code.link(entry.machine_code, symbol, threads, constants)
    except (LookupError, TypeError, ValueError, RuntimeError):
        return None
    return None if linked is None else Kernel(linked.owner, linked.address, interface)
