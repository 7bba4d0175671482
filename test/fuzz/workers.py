"""Runs cases in child processes, so that a crash or a hang is a finding and not the end.

A worker runs one case after another, each made from the seed and the case's number alone; the parent finds out from
shared memory which was the last. An alarm that nothing catches ends a case that takes too long. What Python was doing
then tells a crash of MLIR's own parsers and passes, which the command line turns into an error, from one that we have a
part in.
"""

import faulthandler
import mmap
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from targets import Case, Target

LIMIT = 10.0
"""Seconds of processor time that a case may take; by the clock three times as many, as others may use the machine."""

MEMORY = 6 * 2**30
"""Bytes of address space that a worker may have."""

_WRONG = 77
"""The exit code of a worker that leaves a message about the last case."""

_INNERMOST = re.compile(r'(?m)^  File "([^"]*)", line (\d+) in (.*)$')
# Where nothing of ours is between these functions and native code, it is MLIR that crashed.
_INTO_MLIR = (("asm/__init__.py", "_parse"), ("driver.py", "_upstream"), ("driver.py", "_upstream_problem"))


@dataclass(frozen=True)
class Finding:
    """What was wrong with a case, and its number; `is_mlirs` if it is a crash in code of MLIR alone."""

    number: int
    wrong: str
    case: Case
    is_mlirs: bool = False


class Pool:
    """Runs the cases of a target with these random numbers; `done` counts them."""

    def __init__(self, target: Target, seed: int, limit: float = LIMIT, jobs: int = 1):
        self.done = 0
        self._target = target
        self._seed = seed
        self._limit = limit
        self._jobs = jobs
        self._numbers = mmap.mmap(-1, 8 * jobs)
        self._workers: dict[int, int] = {}

    def case(self, number: int) -> Case:
        return self._target.case(random.Random(f"{self._target.name} {self._seed} {number}"))

    def findings(self, seconds: float, most: int | None = None) -> Iterator[Finding]:
        """Yield what goes wrong until the time or the number of cases is used up."""
        end = time.monotonic() + seconds
        # The case that a worker's job starts with; numbers of a job are `jobs` apart.
        starts = list(range(self._jobs))
        with tempfile.TemporaryDirectory() as folder:
            for job in range(self._jobs):
                self._start(job, starts[job], end, most, Path(folder))
            while self._workers:
                pid, status = os.wait()
                job = self._workers.pop(pid)
                last = int.from_bytes(self._numbers[8 * job : 8 * job + 8], "little")
                self.done += (last - starts[job]) // self._jobs
                found = self._explained(last, os.waitstatus_to_exitcode(status), self._printed(job, Path(folder)))
                if found is not None:
                    yield Finding(last, found[0], self.case(last), found[1])
                    self.done += 1
                    last += self._jobs
                starts[job] = last
                if time.monotonic() < end and (most is None or last < most):
                    self._start(job, last, end, most, Path(folder))

    def _printed(self, job: int, folder: Path) -> Path:
        return folder / str(job) / "printed"

    def _explained(self, number: int, code: int, printed: Path) -> tuple[str, bool] | None:
        """Return what was wrong with a worker's last case, and whether it was MLIR alone; None for the end of a batch."""
        if code == _WRONG:
            return printed.with_name("wrong").read_text(errors="replace"), False
        if code >= 0:
            return (f"exit code {code}", False) if code else None
        innermost = _INNERMOST.search(printed.read_text(errors="replace"))
        where = f" in {innermost[3]}, {innermost[1]}:{innermost[2]}" if innermost else ""
        is_mlirs = innermost is not None and any(
            innermost[1].endswith(f"mx_dialect/{file}") and innermost[3] == name for file, name in _INTO_MLIR
        )
        if code in (-signal.SIGPROF, -signal.SIGALRM):
            # That of text is for us to prevent; the commands limit how long bytecode is read.
            return f"hang of more than {self._limit:g} s{where}", is_mlirs and self.case(number).suffix == ".mlirbc"
        return f"crash ({signal.Signals(-code).name}){where}", is_mlirs

    def _start(self, job: int, first: int, end: float, most: int | None, folder: Path) -> None:
        printed = self._printed(job, folder)
        shutil.rmtree(printed.parent, ignore_errors=True)
        (printed.parent / "cwd").mkdir(parents=True)
        self._note(job, first)
        pid = os.fork()
        if pid:
            self._workers[pid] = job
            return
        code = 1
        try:
            code = self._work(job, first, end, most, printed)
        finally:
            os._exit(code)

    def _note(self, job: int, number: int) -> None:
        self._numbers[8 * job : 8 * job + 8] = number.to_bytes(8, "little")

    def _work(self, job: int, first: int, end: float, most: int | None, printed: Path) -> int:
        """Run cases in this process, all that they print in a file; return the exit code."""
        os.chdir(printed.with_name("cwd"))
        _redirect(printed)
        faulthandler.enable()
        for number in (signal.SIGPROF, signal.SIGALRM):
            faulthandler.register(number, chain=True)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        stop = first + self._target.batch * self._jobs
        for number in range(first, stop if most is None else min(stop, most), self._jobs):
            self._note(job, number)
            if time.monotonic() >= end:
                return 0
            case = self.case(number)
            os.truncate(printed, 0)
            self._alarm(self._limit)
            wrong = self._target.run(case, printed)
            self._alarm(0)
            if wrong is not None:
                printed.with_name("wrong").write_text(wrong, errors="replace")
                return _WRONG
            self._note(job, number + self._jobs)
        return 0

    def _alarm(self, seconds: float) -> None:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_REAL, 3 * seconds)


def _redirect(path: Path) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
