"""Passes and pipelines from elsewhere: those of installed packages, and those in files that `mx-opt --load` names.

An installed package offers them through an entry point of the group `mx_dialect.plugins`, which names a function
without arguments that calls `register_pass` and `register_pipeline`:

    [project.entry-points."mx_dialect.plugins"]
    my-passes = "my_package.mx:register"

The functions are called when a name is first looked up that is neither this package's nor MLIR's own, or all names are
listed; not when mx_dialect is imported. One that fails registers nothing, and a warning names its package.
"""

import importlib
import os
import sys
import threading
import traceback
import types
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from mx_dialect import passes, pipelines
from mx_dialect.diagnostics import Diagnostic, MxError

GROUP = "mx_dialect.plugins"

_access = threading.RLock()
_started = False
_finished = False
# The files that were loaded, by their real paths.
_files: set[str] = set()


def load_installed() -> None:
    """Let all installed packages register what they have. Does nothing the second time."""
    global _started, _finished
    if _finished:
        return
    with _access:
        # A plugin that looks at the registry while it registers sees what there is.
        if _started:
            return
        _started = True
        problems = list(_problems())
        _finished = True
    for problem in problems:
        warnings.warn(problem, RuntimeWarning, stacklevel=2)


def _problems() -> Generator[str]:
    """Call the plugins one by one and say what is wrong with those that fail."""
    try:
        found = _entry_points()
    except Exception as error:
        yield f"no plugin of mx_dialect was loaded: the installed packages cannot be listed: {_in_a_line(error)}"
        return
    yield from filter(None, map(_problem_of, found))


def _problem_of(entry: Any) -> str | None:
    try:
        with _registering():
            _call(entry)
    except (Exception, SystemExit) as error:
        where = _place(error)
        return f"the plugin '{entry.name}' of {_package(entry)} was not loaded: {_in_a_line(error)}{where}"
    return None


def _entry_points() -> list[Any]:
    # Slower to import than all else that finding a pass needs.
    from importlib import metadata

    return sorted(metadata.entry_points(group=GROUP), key=lambda entry: (_package(entry), entry.name))


def _package(entry: Any) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "an unknown package"


def _call(entry: Any) -> None:
    register = entry.load()
    if not callable(register):
        raise TypeError(f"'{entry.value}' is no function without arguments, but of type {type(register).__name__}")
    register()


def _place(error: BaseException) -> str:
    """Return ` (file:line)`, the last in the traceback outside of this package and of Python's imports, or nothing."""
    folders = (os.path.dirname(os.path.abspath(file)) for file in (__file__, importlib.__file__))
    inner = (*(f"{folder}{os.sep}" for folder in folders), "<frozen importlib")
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    theirs = [place for place in frames if not place[0].startswith(inner)]
    return f" ({theirs[-1][0]}:{theirs[-1][1]})" if theirs else ""


def _in_a_line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


@contextmanager
def _registering() -> Generator[set[str]]:
    """Yield a set that has the names of what was registered inside, afterwards; if that fails, nothing was."""
    before = {*passes.extra(), *pipelines.PIPELINES}
    added: set[str] = set()
    failed = True
    try:
        yield added
        failed = False
    finally:
        added |= {*passes.extra(), *pipelines.PIPELINES} - before
        if failed:
            for name in added:
                passes.withdraw(name)
                pipelines.withdraw(name)


def load_file(path: str) -> None:
    """Run a Python file that calls `register_pass` or `register_pipeline`. A file runs once in a process.

    It runs as a module of its own, which is not on the search path, nor is the folder that it lies in.

    Raises:
        MxError: the file cannot be read, is not valid Python, fails, or registers nothing; nothing is registered then.
    """
    with _access:
        # First, so that it is the file that a name which both have is reported for.
        load_installed()
        real = os.path.realpath(path)
        if real in _files:
            return
        code = _compiled(path)
        module = types.ModuleType(f"mx_dialect_file_{len(_files)}")
        module.__file__ = path
        # Where dataclasses and pickle look for the module of a class.
        sys.modules[module.__name__] = module
        try:
            _run(code, module, path)
        except BaseException:
            del sys.modules[module.__name__]
            raise
        _files.add(real)


def _compiled(path: str) -> Any:
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        problem = f"cannot read '{path}': {error.strerror}; expected a Python file that registers passes"
        raise MxError(problem) from None
    try:
        return compile(source, path, "exec", dont_inherit=True)
    except SyntaxError as error:
        line = error.lineno or 1
        before = (error.text or "")[: max((error.offset or 1) - 1, 0)]
        # Columns count bytes, as in all diagnostics.
        raise _error(path, f"not valid Python: {error.msg}", line, len(before.encode()) + 1) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise _error(path, f"not valid Python: {_in_a_line(error)}") from None


def _run(code: Any, module: types.ModuleType, path: str) -> None:
    try:
        with _registering() as added:
            exec(code, module.__dict__)
    except (Exception, SystemExit) as error:
        lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == path]
        problem = f"the file fails when it is loaded, so none of its passes exist: {_in_a_line(error)}"
        raise _error(path, problem, lines[-1] if lines else 1) from error
    if not added:
        raise _error(
            path,
            "the file registers no pass and no pipeline; call mx_dialect.passes.register_pass or"
            " mx_dialect.pipelines.register_pipeline when it is run",
        )


def _error(path: str, problem: str, line: int = 1, column: int = 1) -> MxError:
    return MxError.of(Diagnostic("error", problem, path, line, column))
