"""Interleaved rounds of functions whose calls take microseconds or seconds, and their ratios within each round.

`timing.medians` calls each function once a round. Here a round measures as many calls in a row as take a millisecond,
and functions that would take longer than their share of time sit out the later rounds.
"""

import statistics
import time
from collections.abc import Callable, Mapping

# Shorter samples measure the clock, and neighbours' interrupts.
_SAMPLE_SECONDS = 1e-3
_FEWEST_ROUNDS = 3


def samples(
    functions: Mapping[str, Callable[[], object]], rounds: int, seconds: float, pause: float = 0.0
) -> dict[str, list[float]]:
    """Return the seconds a call of each function took in each round; all of them together take about `seconds`.

    A function has a sample for each round up to the last one it took part in, at least three (or `rounds`, if fewer;
    one, if a call takes longer than `seconds`).
    `pause` seconds before each sample let threads of the function before it, which may spin for new work, go to sleep;
    one call that is not measured wakes the function's own.
    """
    calls: dict[str, int] = {}
    limits: dict[str, int] = {}
    for name, function in functions.items():
        once = _seconds_of(function)
        if once < seconds:
            # The first call may have allocated and looked things up.
            once = _seconds_of(function)
        calls[name] = max(1, int(_SAMPLE_SECONDS / once))
        share = seconds / len(functions) / (once * (calls[name] + (pause > 0)) + pause)
        limits[name] = min(rounds, max(_FEWEST_ROUNDS if once < seconds else 1, int(share)))
    taken: dict[str, list[float]] = {name: [] for name in functions}
    for number in range(rounds):
        for name, function in functions.items():
            if number >= limits[name]:
                continue
            if pause:
                time.sleep(pause)
                # The function's own threads sleep as well by now, and the processor is slow to wake.
                function()
            count = calls[name]
            start = time.perf_counter()
            for _ in range(count):
                function()
            taken[name].append((time.perf_counter() - start) / count)
    return taken


def _seconds_of(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return max(time.perf_counter() - start, 1e-7)


def ratio(taken: Mapping[str, list[float]], name: str, unit: str) -> float:
    """Return the median over rounds of how many times the seconds of `unit` those of `name` were in the same round."""
    return statistics.median(a / b for a, b in zip(taken[name], taken[unit], strict=False))
