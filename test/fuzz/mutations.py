"""Inputs for fuzzing: the IR of the tests, and what makes it wrong, odd, deep or long."""

import random
import re
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

TOKEN = re.compile(rb'"[^"\n]*"|[\w$.%@#!^]+|\s+|.', re.DOTALL)
ODD = ("\0", "\u202e", "\u00e9", "\U0001f600", "\ufeff", "\u2028", "\x85", "\ud800", "\x1b[31m")
NUMBERS = (0, -1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64, 10**30)
LONGEST = 400_000
"""How many bytes repetition may make of an input."""

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
    new = rng.choice((*(str(v).encode() for v in NUMBERS), *(b"9" * n for n in (3000, 6000, 20_000)), b"?"))
    return text[: number.start()] + new + text[number.end() :]


def _insert(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    at = rng.randrange(len(text))
    new = rng.choice((*(odd.encode("utf-8", "surrogatepass") for odd in ODD), b'"', b'\\"', b"//", b"\xff", b"\r"))
    return text[:at] + new + text[at:]


def _repeat(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    """Write a few tokens or a line thousands of times: what takes quadratic time shows."""
    tokens = rng.choice((TOKEN.findall(text), text.splitlines(keepends=True)))
    start = rng.randrange(len(tokens))
    end = start + rng.choice((1, 1, 2, 3, 5))
    piece = b"".join(tokens[start:end])
    times = min(rng.choice((100, 10_000, 200_000)), LONGEST // (len(piece) + 1))
    return b"".join(tokens[:start]) + piece * times + b"".join(tokens[end:])


def _noise(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    at = rng.randrange(len(text))
    return text[:at] + rng.randbytes(rng.choice((1, 30, 3000))) + text[at + rng.randrange(len(text)) :]


MUTATIONS: tuple[_Mutation, ...] = (
    *(_flip, _tokens, _tokens, _tokens, _splice, _splice, _truncate),
    *(_nest, _number, _number, _insert, _insert, _repeat, _noise),
)


def mutant(rng: random.Random, originals: list[bytes]) -> bytes:
    """Return an original after one to three mutations."""
    text = rng.choice(originals)
    for _ in range(rng.randint(1, 3)):
        text = rng.choice(MUTATIONS)(rng, text, originals) or b" "
    return text[: 4 * LONGEST]


def mutated_bytecode(rng: random.Random, originals: list[bytes]) -> bytes:
    """Return bytecode with a few of its bytes changed, lost, inserted or taken from elsewhere, its magic number kept."""
    data = bytearray(rng.choice(originals))
    for _ in range(rng.choice((1, 1, 1, 2, 4, 8))):
        at = rng.randrange(4, len(data) + 1)
        other = rng.choice(originals)
        start = rng.randrange(len(other))
        action = rng.randrange(6)
        if action < 2:
            data[at : at + 1] = rng.randbytes(1)
        elif action == 2 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif action == 3:
            del data[at : at + rng.randint(1, 4)]
        elif action == 4:
            data[at:at] = rng.randbytes(rng.randint(1, 4))
        else:
            piece = other[start : start + rng.randint(1, 64)]
            data[at : at + len(piece)] = piece
    return bytes(data)
