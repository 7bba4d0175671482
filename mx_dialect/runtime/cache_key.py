"""What machine code depends on besides the program: this package, the bindings and the machine."""

import functools
import hashlib
import importlib.util
import os
from collections.abc import Iterator, Sequence
from typing import Any

from mx_dialect.runtime import object_code
from mx_dialect.schedule import host

# How `_mlir.py` finds the bindings.
_VARIABLE = "MX_MLIR_PACKAGE"
_CANDIDATES = ("mlir", "torch_mlir")


def key_of(request: str, stages: Sequence[str]) -> str | None:
    """Return the name of the machine code that is made on request by these stages, None if it may not be kept."""
    installed = _installed(os.environ.get(_VARIABLE))
    if installed is None:
        return None
    return _digest((request, tuple(stages), installed, _machine()))


def _digest(value: Any) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()


@functools.cache
def _installed(chosen: str | None) -> str | None:
    """Return what tells this package and the bindings from other versions of them, None if they are no plain files."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    try:
        sources = [_stamp(package, item) for item in _sources(package)]
        libraries = [_libraries(name) for name in ((chosen,) if chosen else _CANDIDATES)]
    except OSError:
        return None
    return _digest((sources, chosen, libraries))


def _sources(folder: str) -> Iterator[os.DirEntry[str]]:
    """Yield the Python files under a folder in a fixed order."""
    with os.scandir(folder) as listing:
        items = sorted(listing, key=lambda item: item.name)
    for item in items:
        if item.name.endswith(".py"):
            yield item
        elif item.name != "__pycache__" and item.is_dir():
            yield from _sources(item.path)


def _stamp(root: str, item: os.DirEntry[str]) -> tuple[str, int, int]:
    """Return a file's path below `root`, its size and when it was written: by these Python knows its own caches."""
    status = item.stat()
    return item.path.removeprefix(root), status.st_size, status.st_mtime_ns


def _libraries(package: str) -> Any:
    """Return what tells the shared libraries of bindings from others, None if the package is not installed."""
    # Only what is before the first dot: looking for the rest would import the bindings.
    top, *rest = package.split(".")
    found = importlib.util.find_spec(top)
    if found is None:
        return None
    folders = [os.path.join(path, *rest, "_mlir_libs") for path in found.submodule_search_locations or ()]
    stamps: list[Any] = []
    for folder in filter(os.path.isdir, folders):
        with os.scandir(folder) as listing:
            stamps += sorted(_stamp(folder, item) for item in listing if item.is_file())
    return folders, stamps


@functools.cache
def _machine() -> str:
    """Return what code and schedules are made for."""
    here = host.detect()
    caches = (here.vector_bits, here.l1_bytes, here.l2_bytes, sorted(here.features))
    return _digest((object_code.target(), caches))
