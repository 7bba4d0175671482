"""Parts of a contraction: a range of one parallel loop, which a thread works on."""

from dataclasses import dataclass

from mx_dialect.schedule.emitter import Size


@dataclass(frozen=True)
class Span:
    """The iterations of a loop of the contraction from `start` to `stop`, `start` a multiple of the loop's granule."""

    loop: int
    start: Size
    stop: Size


@dataclass(frozen=True)
class Division:
    """How a schedule lets its work be divided: by ranges of a loop that start at multiples of the granule.

    No result depends on where the ranges begin and end.
    """

    loop: int
    granule: int


def bounds(span: Span | None, loop: int, extent: Size) -> tuple[Size, Size]:
    """Return where a loop starts and stops: at 0 and its extent, unless a span is a range of it."""
    return (span.start, span.stop) if span is not None and span.loop == loop else (0, extent)
