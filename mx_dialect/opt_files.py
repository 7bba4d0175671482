"""Where the command line reads from and writes to: files and standard streams, with errors for users."""

import errno
import os
import sys

from mx_dialect.opt_options import UsageError

STANDARD = "-"


def read_input(path: str) -> bytes:
    """Return what a file, or standard input for "-", holds.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        if path != STANDARD:
            with open(path, "rb") as file:
                return file.read()
        if sys.stdin is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return sys.stdin.buffer.read()
    except OSError as error:
        raise UsageError(f"error: cannot open input file '{path}': {error.strerror}") from None


def write_output(path: str, data: bytes) -> None:
    """Write a file as a shell's `>` does, or standard output for "-": through links, into devices, permissions kept.

    Raises:
        UsageError: it cannot be written; a part of a file is not left behind.
    """
    if path == STANDARD:
        _write_standard(data)
        return
    opened = False
    try:
        with open(path, "wb") as file:
            opened = True
            file.write(data)
    except OSError as error:
        if opened and os.path.isfile(path):
            os.unlink(os.path.realpath(path))
        raise UsageError(f"error: cannot write output file '{path}': {error.strerror}") from None


def _write_standard(data: bytes) -> None:
    if sys.stdout is None:
        raise UsageError("error: cannot write standard output: it is closed")
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as error:
        # What stays buffered is written once more at exit, and would fail once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise UsageError(f"error: cannot write standard output: {error.strerror}") from None
