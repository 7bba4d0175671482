"""What a run reports about its passes: how long each took, and how many operations it added and removed."""

import json
import time
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from mx_dialect._mlir import ir

_RULE = "===" + "-" * 73 + "==="


def _headed(title: str) -> list[str]:
    return [_RULE, f"... {title} ...".center(79).rstrip(), _RULE]


@dataclass
class Timer:
    """Wall time of one stage, in seconds, and of the stages in it, in the order they ran."""

    name: str
    seconds: float = 0.0
    inner: list["Timer"] = field(default_factory=lambda: [])

    def all(self, depth: int = 0) -> Iterator[tuple[int, "Timer"]]:
        """Yield (depth, timer) for this timer and those in it."""
        yield depth, self
        for timer in self.inner:
            yield from timer.all(depth + 1)


class Timing:
    """Wall time by pass, nested as the pipeline is."""

    def __init__(self) -> None:
        self.start = time.perf_counter()
        self.root = Timer("root")
        self._open = [self.root]

    @contextmanager
    def measure(self, name: str) -> Generator[None]:
        timer = Timer(name)
        self._open[-1].inner.append(timer)
        self._open.append(timer)
        start = time.perf_counter()
        try:
            yield
        finally:
            timer.seconds = time.perf_counter() - start
            self._open.pop()

    @property
    def seconds(self) -> list[tuple[str, float]]:
        """Return (name, seconds) of each timer, outer ones before those in them."""
        return [(timer.name, timer.seconds) for outer in self.root.inner for _, timer in outer.all()]

    def report(self, display: str = "tree", output: str = "text") -> str:
        """Return the table that `--mlir-timing` prints.

        `display` is tree, or list: timers of one name added up, the longest first. `output` is text or json, which
        holds the same as a list of objects; those of a tree have the passes inside under "passes".
        """
        total = time.perf_counter() - self.start
        rest = Timer("Rest", total - sum(timer.seconds for timer in self.root.inner))
        timers = self.root.inner if display == "tree" else self._merged()
        timers = [*timers, rest, Timer("Total", total)]
        if output == "json":
            return "[\n" + ",\n".join(json.dumps(_object(timer, total)) for timer in timers) + "\n]"
        lines = _headed("Execution time report")
        lines += [f"  Total Execution Time: {total:.4f} seconds", "", "  ----Wall Time----  ----Name----"]
        for depth, timer in (each for outer in timers for each in outer.all()):
            lines.append(f"  {timer.seconds:8.4f} ({_share(timer, total):5.1f}%)  {'  ' * depth}{timer.name}")
        return "\n".join(lines)

    def _merged(self) -> list[Timer]:
        merged: dict[str, Timer] = {}
        for _, timer in (each for outer in self.root.inner for each in outer.all()):
            merged.setdefault(timer.name, Timer(timer.name)).seconds += timer.seconds
        return sorted(merged.values(), key=lambda timer: -timer.seconds)


def _share(timer: Timer, total: float) -> float:
    return 100 * timer.seconds / total if total else 100.0


def _object(timer: Timer, total: float) -> dict[str, Any]:
    wall = {"duration": round(timer.seconds, 4), "percentage": round(_share(timer, total), 1)}
    inner = [_object(each, total) for each in timer.inner]
    return {"wall": wall, "name": timer.name, **({"passes": inner} if inner else {})}


@dataclass
class PassCounts:
    """How many operations one pass added and removed, by counting those of each name before and after it."""

    name: str
    path: tuple[str, ...]
    added: int = 0
    removed: int = 0

    def lines(self, indent: str) -> list[str]:
        return [
            f"{indent}{self.name}",
            f"{indent}  (S) {self.added} num-ops-added - Number of operations more, by name",
            f"{indent}  (S) {self.removed} num-ops-removed - Number of operations fewer, by name",
        ]


class Statistics:
    """What each pass did to the number of operations."""

    def __init__(self) -> None:
        self.passes: list[PassCounts] = []

    @contextmanager
    def count(self, name: str, path: tuple[str, ...], root: Any) -> Generator[None]:
        before = _operations(root)
        yield
        after = _operations(root)
        self.passes.append(PassCounts(name, path, (after - before).total(), (before - after).total()))

    def report(self, display: str = "pipeline") -> str:
        """Return what `--mlir-pass-statistics` prints; `display` is pipeline, or list: by name, added up."""
        lines = _headed("Pass statistics report")
        if display == "list":
            merged: dict[str, PassCounts] = {}
            for one in self.passes:
                counts = merged.setdefault(one.name, PassCounts(one.name, ()))
                counts.added += one.added
                counts.removed += one.removed
            return "\n".join([*lines, *(line for _, one in sorted(merged.items()) for line in one.lines(""))])
        known: tuple[str, ...] = ()
        for one in self.passes:
            anchors = one.path[1:]
            for depth, anchor in enumerate(anchors):
                if known[: depth + 1] != anchors[: depth + 1]:
                    lines.append(f"{'  ' * depth}'{anchor}' Pipeline")
            known = anchors
            lines += one.lines("  " * len(anchors))
        return "\n".join(lines)


def _operations(root: Any) -> Counter[str]:
    names: Counter[str] = Counter()

    def visit(op: Any) -> Any:
        names[op.operation.name] += 1
        return ir.WalkResult.ADVANCE

    root.operation.walk(visit)
    return names
