"""Suggestions for names that are not quite right."""

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x' or 'y'?` for a misspelt name, or the empty string."""
    close = difflib.get_close_matches(name, list(known), n=3, cutoff=0.6)
    likeness = [difflib.SequenceMatcher(None, c, name).ratio() for c in close]
    # What is much less alike than the best would only distract from it.
    near = [repr(c) for c, ratio in zip(close, likeness, strict=True) if ratio > likeness[0] - 0.15]
    return f"; did you mean {' or '.join(near)}?" if near else ""


def expected_one_of(name: str, known: Iterable[str]) -> str:
    """Return `expected one of ...` for a name that is none of a few, with the likeliest if there is one."""
    known = list(known)
    return f"expected one of {', '.join(known)}{nearest(name, known)}"
