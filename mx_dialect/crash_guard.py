"""Turns the crash of a command in native code into an error: the command runs in a child process.

MLIR's parsers and passes end the process on some inputs, bytecode with a wrong byte among them, and nothing in that
process can prevent it. `guarded` forks before the bindings are loaded, which costs some 30 ms; the child notes what
it is doing, and the parent says it if a signal ends the child.

    mx-opt: error: native code crashed (SIGSEGV) while reading 'damaged.mlirbc'

Bytecode can also send MLIR's reader round in circles, which `limited` bounds.
"""

import contextlib
import mmap
import os
import signal
import sys
from collections.abc import Callable, Generator
from types import FrameType
from typing import NoReturn

_LONGEST = 1000
_CRASHES = {
    getattr(signal, name)
    for name in ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL", "SIGFPE", "SIGTRAP", "SIGSYS")
    if hasattr(signal, name)
}
# What is passed on to the child when it reaches the parent alone.
_FORWARDED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")
_PR_SET_PDEATHSIG = 1

_noted: mmap.mmap | None = None


def note(activity: str) -> None:
    """Note what is about to be done, such as `reading 'a.mlir'`, for the message about a crash."""
    if _noted is not None:
        data = activity.encode("utf-8", "replace")[:_LONGEST]
        _noted[: len(data) + 1] = data + b"\0"


@contextlib.contextmanager
def limited(seconds: float) -> Generator[None]:
    """End a child process, and with it the command after an error, if the block takes more processor time."""
    if _noted is None:
        yield
        return
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def guarded(command: str, run: Callable[[], int]) -> int:
    """Return the exit code of `run`, called in a child process, or 1 after an error if it crashed.

    Other signals than those of a crash end this process as they ended the child. Where there is no fork, and in a
    process with threads, `run` is simply called.
    """
    global _noted
    if not hasattr(os, "fork") or _has_threads():
        return run()
    _noted = mmap.mmap(-1, _LONGEST + 1)
    # Where a parent ignored this, there would be nothing to wait for.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        _end_with(parent)
        return run()
    status = _status(child)
    if status >= 0:
        return status
    activity = _noted[:].partition(b"\0")[0].decode(errors="replace") or "starting"
    if -status in _CRASHES:
        problem = f"native code crashed ({signal.Signals(-status).name}) while {activity}"
    elif -status == signal.SIGPROF:
        problem = f"{activity} takes too long"
    else:
        _end_by(-status)
    print(f"{command}: error: {problem}", file=sys.stderr)
    return 1


def _has_threads() -> bool:
    threading = sys.modules.get("threading")
    return threading is not None and threading.active_count() > 1


def _end_with(parent: int) -> None:
    """Let the kernel end this process when its parent ends, where it can: the parent may be killed."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _status(child: int) -> int:
    """Wait for the child, signals passed on to it; return its exit code, or less than 0 for a signal."""

    def forward(number: int, _: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)

    for name in _FORWARDED:
        if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) is not signal.SIG_IGN:
            signal.signal(getattr(signal, name), forward)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _end_by(number: int) -> NoReturn:
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)
