"""What an input holds: bytecode or text, and the pieces that `--split-input-file` cuts text into."""

from mx_dialect.diagnostics import Diagnostic, MxError

_BYTECODE_MAGIC = b"ML\xefR"

# A near miss of a marker has all but so many of its last characters.
_MISSED = 2


def decoded(data: bytes, name: str) -> str | bytes:
    """Return the text that data from a file called `name` encode, or the data themselves when they are bytecode.

    Raises:
        MxError: neither bytecode nor UTF-8.
    """
    if data.startswith(_BYTECODE_MAGIC):
        return data
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        problem = f"the input is not valid UTF-8: byte 0x{data[error.start]:02x}"
        raise MxError.of(Diagnostic("error", problem, name, line, column)) from None


def split(source: str, marker: str, name: str) -> tuple[list[str], list[Diagnostic]]:
    """Return the pieces of `source`, a file called `name`, between markers, and a warning for each near miss.

    A marker is a line that holds nothing else, blanks aside; a near miss one that looks much like it: tests that ran
    together by mistake can pass for the wrong reason. Each piece is preceded by as many line breaks as put it on the
    lines where it stands in the file.
    """
    marker = marker.strip()
    prefix = marker[:-_MISSED]
    pieces: list[str] = []
    warnings: list[Diagnostic] = []
    first, lines = 0, list[str]()
    for number, line in enumerate(source.split("\n")):
        if line.strip() == marker:
            pieces.append("\n" * first + "\n".join([*lines, ""]))
            first, lines = number + 1, []
            continue
        lines.append(line)
        column = line.find(prefix) if prefix else -1
        if column >= 0:
            at = len(line[:column].encode()) + len(prefix.encode()) + 1
            warnings.append(Diagnostic("warning", "near miss with file split marker", name, number + 1, at))
    pieces.append("\n" * first + "\n".join(lines))
    return pieces, warnings
