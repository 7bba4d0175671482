"""Feed mx-opt what it was not made for: mutated IR, in child processes, with a time limit.

    python test/fuzz/fuzz_opt.py --seconds=60 --seed=0 --keep=findings

Starts from the lit tests and changes bytes, tokens and nesting. A signal, more than `LIMIT` seconds, a traceback or an
internal error is a finding: its input is kept, and the exit code is 1. Text alone: the bindings' reader of bytecode is
MLIR's own, with nothing of ours before it.
"""

import argparse
import contextlib
import os
import random
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
LIMIT = 10
"""Seconds an input may take."""

FLAGS = ([], [], ["--mx-to-linalg"], ["--mx-tile-to-linalg"], ["--canonicalize", "--cse"], ["--mlir-print-op-generic"])
TOKEN = re.compile(rb'"[^"\n]*"|[\w$.%@#!^]+|\s+|.', re.DOTALL)
ODD = ("\0", "\u202e", "\u00e9", "\U0001f600", "\ufeff", "\u2028", "\x85", "\ud800", "\x1b[31m")

_Mutation = Callable[[random.Random, bytes, list[bytes]], bytes]


def seeds() -> list[bytes]:
    """Return the parts of the lit tests and of the examples in docstrings."""
    texts = [path.read_bytes() for path in sorted((ROOT / "test" / "lit").rglob("*.mlir"))]
    for path in sorted((ROOT / "mx_dialect").rglob("*.py")):
        texts += re.findall(rb"\n\n((?:    [^\n]*(?:mx\.|!mx)[^\n]*\n)+)", path.read_bytes())
    return [part for text in texts for part in re.split(rb"(?m)^// -----.*\n", text) if 0 < len(part) < 20_000]


def _flip(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    changed = bytearray(text)
    for _ in range(rng.randint(1, 8)):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def _tokens(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    tokens = TOKEN.findall(text)
    for _ in range(rng.randint(1, 4)):
        here, there = rng.randrange(len(tokens)), rng.randrange(len(tokens))
        action = rng.randrange(4)
        if action == 0:
            tokens[here] = b""
        elif action == 1:
            tokens[here] *= rng.choice((2, 2, 50, 5000))
        elif action == 2:
            tokens[here], tokens[there] = tokens[there], tokens[here]
        else:
            tokens[here] = tokens[there]
    return b"".join(tokens)


def _splice(rng: random.Random, text: bytes, others: list[bytes]) -> bytes:
    other = rng.choice(others)
    return text[: rng.randrange(len(text))] + other[rng.randrange(len(other)) :]


def _truncate(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    return text[: rng.randrange(len(text))]


def _nest(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    opener, closer = rng.choice((b"()", b"[]", b"{}", b"<>")).decode()
    times = rng.choice((3, 100, 300, 20_000))
    start = rng.randrange(len(text))
    end = rng.randrange(start, len(text))
    return text[:start] + opener.encode() * times + text[start:end] + closer.encode() * times + text[end:]


def _number(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    found = list(re.finditer(rb"\d+", text))
    if not found:
        return text
    number = rng.choice(found)
    values = (0, -1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64, 10**30)
    new = rng.choice((*(str(v).encode() for v in values), b"9" * 3000, b"9" * 20_000, b"?"))
    return text[: number.start()] + new + text[number.end() :]


def _insert(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    at = rng.randrange(len(text))
    new = rng.choice((*(odd.encode("utf-8", "surrogatepass") for odd in ODD), b'"', b'\\"', b"//", b"\xff", b"\r"))
    return text[:at] + new + text[at:]


MUTATIONS: tuple[_Mutation, ...] = (_flip, _tokens, _tokens, _splice, _truncate, _nest, _number, _number, _insert)


def mutant(rng: random.Random, originals: list[bytes]) -> bytes:
    """Return an original after one to three mutations."""
    text = rng.choice(originals)
    for _ in range(rng.randint(1, 3)):
        text = rng.choice(MUTATIONS)(rng, text, originals) or b" "
    return text


def _child(path: str, flags: list[str], result: str) -> int:
    """Run the command in this process, all that it prints in a file; return its exit code."""
    from mx_dialect import opt

    descriptor = os.open(result, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", errors="replace", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="replace", closefd=False)
    code = opt.main([path, "--allow-unregistered-dialect", *flags])
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def run_one(text: bytes, flags: list[str], folder: Path) -> str | None:
    """Run mx-opt on a text in a forked process; return what went wrong, None if nothing did."""
    path, result = folder / "input.mlir", folder / "output.txt"
    path.write_bytes(text)
    child = os.fork()
    if child == 0:
        signal.alarm(LIMIT)
        code = 3
        with contextlib.suppress(BaseException):
            code = _child(str(path), flags, str(result))
        os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == -signal.SIGALRM:
        return f"hang of more than {LIMIT} s"
    if status < 0:
        return f"crash ({signal.Signals(-status).name})"
    if status not in (0, 1):
        return f"exit code {status}"
    said = result.read_bytes()
    return "internal error" if b"internal error" in said or b"Traceback (most" in said else None


def fuzz(seed: int, seconds: float, most: int | None = None) -> Iterator[tuple[bytes, list[str], str | None]]:
    """Yield inputs, their flags and what went wrong, until the time or the number of inputs is used up."""
    from mx_dialect import dialect

    dialect.load()  # once, before the forks
    rng = random.Random(seed)
    originals = seeds()
    end = time.monotonic() + seconds
    done = 0
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end and (most is None or done < most):
            text, flags = mutant(rng, originals), rng.choice(FLAGS)
            yield text, flags, run_one(text, flags, Path(folder))
            done += 1


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Fuzz mx-opt with mutated IR.")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for inputs that fail")
    options = parser.parse_args()
    count = findings = 0
    for text, flags, wrong in fuzz(options.seed, options.seconds):
        count += 1
        if wrong is None:
            continue
        findings += 1
        print(f"{wrong}: mx-opt {' '.join(flags)}", flush=True)
        if options.keep is not None:
            options.keep.mkdir(parents=True, exist_ok=True)
            (options.keep / f"seed{options.seed}-{count}.mlir").write_bytes(text)
    print(f"{count} executions, {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
