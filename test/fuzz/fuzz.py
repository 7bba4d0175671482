"""Feed the asm package and mx-opt what they were not made for, in child processes, with a time limit.

    python test/fuzz/fuzz.py asm --seconds=600 --seed=0 --keep=findings
    python test/fuzz/fuzz.py passes --only=317 --seed=0 --keep=findings

A signal, more than `--limit` seconds, an exception, a traceback, an internal error, exit code 1 without an error and a
file that nobody asked for are findings: each is printed with its number, and the exit code is 1. The seed and the number
make the same input again. `targets` says what is fuzzed, `mutations` with what, `workers` how.

Crashes in parsers and passes of MLIR alone, and bytecode that its reader never ends reading, are printed and counted,
and are no findings: mx-opt runs in a child process, and its parent makes an error of them.

An input that was wrong once belongs into `corpus`, made small, where `test/python/test_fuzz_corpus.py` runs it again.
"""

import argparse
import runpy
import shlex
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from targets import TARGETS  # noqa: E402
from workers import LIMIT, Finding, Pool  # noqa: E402


def _keep(folder: Path, name: str, finding: Finding) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}{finding.case.suffix}").write_bytes(finding.case.data)


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Fuzz the asm package and mx-opt.")
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--executions", type=int, help="most cases to run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds that a case may take")
    parser.add_argument("--load", type=Path, help="Python file to run first: plants faults, registers passes")
    parser.add_argument("--keep", type=Path, help="folder for inputs that fail")
    parser.add_argument("--only", type=int, help="write the case of this number to the folder, and run nothing")
    options = parser.parse_args()
    if options.load is not None:
        runpy.run_path(str(options.load))
    target = TARGETS[options.target]()
    pool = Pool(target, options.seed, options.limit, options.jobs)
    if options.only is not None:
        case = pool.case(options.only)
        print(shlex.join(case.flags))
        _keep(options.keep or Path(), f"{target.name}-{options.seed}-{options.only}", Finding(options.only, "", case))
        return 0
    findings = crashes = 0
    begin = time.monotonic()
    for finding in pool.findings(options.seconds, options.executions):
        findings += not finding.is_mlirs
        crashes += finding.is_mlirs
        kind = "MLIR's own " if finding.is_mlirs else ""
        print(f"{finding.number}: {kind}{finding.wrong}: {shlex.join(finding.case.flags)}", flush=True)
        if options.keep is not None:
            _keep(options.keep, f"{target.name}-{options.seed}-{finding.number}", finding)
    seconds = time.monotonic() - begin
    print(f"{target.name}: {pool.done} executions in {seconds:.0f} s, {findings} findings, {crashes} crashes of MLIR")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
