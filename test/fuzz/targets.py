"""What is fuzzed: each target makes cases from random numbers, runs one, and says what was wrong with it."""

import contextlib
import os
import random
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mutations import NUMBERS, mutant, mutated_bytecode, seeds

from mx_dialect import asm, dialect, opt, passes, pipelines
from mx_dialect.diagnostics import MxError
from mx_dialect.upstream_passes import UPSTREAM_PASSES

SWITCHES = (
    *("--mlir-print-op-generic", "--split-input-file", "--verify-diagnostics", "--verify-roundtrip", "--emit-bytecode"),
    *("--run-reproducer", "--no-implicit-module", "--mlir-print-debuginfo", "--mlir-print-local-scope"),
    *("--mlir-print-ir-after-all", "--mlir-pass-statistics", "--verify-each=0"),
)
PASSES = (
    *("mx-to-linalg", "mx-tile-to-linalg", "mx-neuron-to-linalg", "mx-quantize-linear", "mx-lower-to-llvm"),
    *("canonicalize", "cse", "transform-interpreter"),
)


@dataclass(frozen=True)
class Case:
    """One input and the flags for it; `suffix` is that of a file that keeps it."""

    data: bytes
    flags: tuple[str, ...] = ()
    suffix: str = ".mlir"


@dataclass(frozen=True)
class Target:
    """`case` makes the case of a state of the random numbers; `run` returns what was wrong with it, None if nothing.

    `run` is called in an empty folder with the path of a file that holds all that was printed. A process runs `batch`
    cases: few where one may leave memory behind that is not as it should be.
    """

    name: str
    summary: str
    case: Callable[[random.Random], Case]
    run: Callable[[Case, Path], str | None]
    batch: int = 200


def run_asm(case: Case, _: Path) -> str | None:
    """Translate, parse, print in both forms and read again; only `MxError` may be raised, and nothing may change."""
    text = case.data.decode("utf-8", "surrogateescape")
    context = _context()
    try:
        asm.to_custom(text)
        try:
            module = asm.parse(text, context, "input.mlir", len(text) % 2 == 0)
        except MxError as error:
            return None if str(error).strip() else "an error without a message"
        generic = asm.to_asm(module, generic=True)
        again = asm.parse(asm.to_asm(module), context, "again.mlir", len(text) % 2 == 0)
    except Exception as error:
        return f"exception {type(error).__name__}: {error}"
    # A context gives resources new names when it reads them again.
    same = "dense_resource" in generic or asm.to_asm(again, generic=True) == generic
    return None if same else "the custom form reads as something else"


def run_opt(case: Case, printed: Path) -> str | None:
    """Run the command; it ends with exit code 0, or 1 and an error, and writes no file."""
    path = printed.with_name(f"input{case.suffix}")
    path.write_bytes(case.data)
    code: int | str
    try:
        code = opt.main([str(path), "--allow-unregistered-dialect", *case.flags])
    except BaseException as error:
        code = f"by {type(error).__name__}: {error}"
    sys.stdout.flush()
    sys.stderr.flush()
    said = printed.read_bytes()
    if code not in (0, 1):
        return f"ended with {code}"
    if b"internal error" in said or b"Traceback (most" in said:
        at = max(said.find(b"internal error"), 0)
        return said[at : at + 300].decode(errors="replace").splitlines()[0]
    if code == 1 and b"error: " not in said:
        return "exit code 1 without an error"
    return f"wrote {os.listdir()}" if os.listdir() else None


@cache
def _context() -> Any:
    context = dialect.load()
    context.allow_unregistered_dialects = True
    # Threads would not be there any more after a fork.
    context.enable_multithreading(False)
    return context


def _valid(originals: list[bytes]) -> list[tuple[bytes, bytes]]:
    """Return the originals that are valid, and their bytecode."""
    context = _context()
    valid: list[tuple[bytes, bytes]] = []
    for text in originals:
        with contextlib.suppress(MxError, UnicodeDecodeError):
            valid.append((text, asm.to_bytecode(asm.parse(text.decode(), context))))
    return valid


def _some_flags(rng: random.Random) -> tuple[str, ...]:
    return tuple(
        rng.choice((SWITCHES, [f"--{name}" for name in PASSES])[rng.random() < 0.6])
        for _ in range(rng.choice((0, 1, 1, 2)))
    )


def _pass_names() -> tuple[list[str], list[str]]:
    """Return the names of all passes and pipelines defined in Python, and MLIR's passes in the pipelines."""
    stages = ",".join(",".join(pipelines.get(name).stages) for name in pipelines.names())
    return [*passes.names(), *pipelines.names()], [name for name in UPSTREAM_PASSES if name in stages]


def _with_options(rng: random.Random, name: str) -> str:
    found = passes.get(name)
    fields = found.option_fields() if found is not None else ()
    if not fields or rng.random() < 0.7:
        return name
    field = rng.choice(fields)
    choices = field.metadata.get("choices") or {bool: ("true", "false")}.get(type(field.default), NUMBERS)
    return f"{name}{{{field.name.replace('_', '-')}={rng.choice(choices)}}}"


def _pass_order(rng: random.Random, ours: list[str], upstream: list[str]) -> str:
    count = rng.choice((1, 2, 3, 3, 4, 6, 8))
    chosen = [rng.choice(ours if rng.random() < 0.75 else upstream) for _ in range(count)]
    return f"--pass-pipeline=builtin.module({','.join(_with_options(rng, name) for name in chosen)})"


def _warm() -> None:
    """Import what mx-opt imports when it needs it: workers are forked, and need not do it again."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "empty.mlir")
        path.write_text("module {}")
        flags = ("--mx-to-linalg", "--canonicalize", "--verify-roundtrip", "--verify-diagnostics")
        opt.main([str(path), *flags, "-o", os.devnull])


def asm_target() -> Target:
    originals = seeds()
    summary = "mutated text through the asm package, in process"
    return Target("asm", summary, lambda rng: Case(mutant(rng, originals)), run_asm)


def opt_target() -> Target:
    _warm()
    originals = seeds()
    summary = "mutated text through mx-opt with a few flags"
    return Target("opt", summary, lambda rng: Case(mutant(rng, originals), _some_flags(rng)), run_opt)


def passes_target() -> Target:
    _warm()
    originals = [text for text, _ in _valid(seeds())]
    ours, upstream = _pass_names()
    for name in ours:
        passes.get(name)

    def case(rng: random.Random) -> Case:
        return Case(rng.choice(originals), (_pass_order(rng, ours, upstream),))

    return Target("passes", "valid text through passes in a random order", case, run_opt)


def bytecode_target() -> Target:
    _warm()
    originals = [data for _, data in _valid(seeds())]
    summary = "mutated bytecode through mx-opt with a few flags"

    def case(rng: random.Random) -> Case:
        return Case(mutated_bytecode(rng, originals), _some_flags(rng), ".mlirbc")

    return Target("bytecode", summary, case, run_opt, batch=1)


TARGETS = {"asm": asm_target, "opt": opt_target, "passes": passes_target, "bytecode": bytecode_target}
