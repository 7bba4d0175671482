"""Colour for people at a terminal: diagnostics as clang paints them, IR by way of pygments where that is installed."""

import importlib
import os
from collections.abc import Callable
from typing import Any

Style = Callable[[str, str], str]

# SGR codes by role. What has no role here stays as it is.
_CODES = {
    "place": "1",
    "message": "1",
    "error": "1;31",
    "warning": "1;35",
    "remark": "1;34",
    "note": "1;36",
    "caret": "1;32",
}


def plain(role: str, text: str) -> str:
    """Return a part of a diagnostic as it is."""
    return text


def painted(role: str, text: str) -> str:
    """Return a part of a diagnostic in the colour of its role."""
    return f"\x1b[{_CODES[role]}m{text}\x1b[0m" if text else text


def wanted(stream: Any, setting: str) -> bool:
    """Tell whether a stream gets colour: `setting` is always, never, or auto, which means a terminal.

    A variable NO_COLOR in the environment that is not empty turns auto off, and so does TERM=dumb.
    """
    if setting != "auto":
        return setting == "always"
    if stream is None or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(stream.isatty())


def highlighted(text: str) -> str:
    """Return IR with colours, unchanged when pygments or its lexer for MLIR (`mlir-pygments`) is not installed."""
    try:
        pygments = importlib.import_module("pygments")
        lexers = importlib.import_module("pygments.lexers")
        formatters = importlib.import_module("pygments.formatters")
        lexer = lexers.get_lexer_by_name("mlir", stripnl=False, ensurenl=False)
    except (ImportError, ValueError):  # pygments' ClassNotFound is a ValueError
        return text
    return pygments.highlight(text, lexer, formatters.TerminalFormatter())
