"""The threads that compiled kernels divide their loops among.

A kernel calls `PARALLEL_FOR` with the address of a function that works on a range. The range is cut in parts of whole
granules, one a thread, always in the same way; the calling thread works on the first. There is one pool for the
process. While one kernel has it, another one does all of its work itself, so that no more threads run than there are
processors, and computes the same: no result depends on how a range is cut.
"""

import ctypes
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from mx_dialect.diagnostics import MxError
from mx_dialect.runtime.float_environment import default_float_environment

_Task = Callable[[], None]
_Body = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_Signature = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


def available() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def checked(threads: Any) -> int:
    """Return a number of threads: one for each processor if None.

    Raises:
        MxError: it is no positive integer.
    """
    if threads is None:
        return available()
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise MxError(f"threads is a positive integer or None for all processors, not {threads!r}")
    return threads


class _Worker:
    """A thread that runs one task after the other; `start` hands it one and `wait` waits for it."""

    def __init__(self) -> None:
        self._tasks: SimpleQueue[_Task] = SimpleQueue()
        self._done = threading.Semaphore(0)
        threading.Thread(target=self._run, name="mx-worker", daemon=True).start()

    def _run(self) -> None:
        with default_float_environment():
            while True:
                task = self._tasks.get()
                try:
                    task()
                finally:
                    self._done.release()

    def start(self, task: _Task) -> None:
        self._tasks.put(task)

    def wait(self) -> None:
        self._done.acquire()


class _Pool:
    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start anew: a child process has none of its parent's threads, but their locks as they were."""
        self._busy = threading.Lock()
        self._workers: list[_Worker] = []

    def run(self, tasks: list[_Task]) -> None:
        """Run tasks at the same time if the pool is free, one after the other if not."""
        first, *others = tasks
        if not others or not self._busy.acquire(blocking=False):
            for task in tasks:
                task()
            return
        try:
            while len(self._workers) < len(others):
                self._workers.append(_Worker())
            for worker, task in zip(self._workers, others, strict=False):
                worker.start(task)
            first()
            for worker, _ in zip(self._workers, others, strict=False):
                worker.wait()
        finally:
            self._busy.release()


_pool = _Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.forget)


def cut(start: int, stop: int, granule: int, parts: int) -> list[tuple[int, int]]:
    """Return at most `parts` ranges that make up start to stop, as even as whole granules allow."""
    granules = -(-(stop - start) // granule)
    parts = max(min(parts, granules), 1)
    marks = [start + granules * i // parts * granule for i in range(parts)]
    return list(zip(marks, [*marks[1:], stop], strict=True))


def callback(threads: int) -> Any:
    """Return what a kernel calls to divide a range among so many threads; it must be kept as long as the kernel."""

    def parallel_for(body: int, operands: int, start: int, stop: int, granule: int) -> None:
        run = _Body(body)
        if threads == 1 or stop - start <= granule:
            run(operands, start, stop)
            return

        def task(part: tuple[int, int]) -> _Task:
            return lambda: run(operands, *part)

        _pool.run([task(part) for part in cut(start, stop, granule, threads)])

    return _Signature(parallel_for)
