"""Files of transform operations that `transform-preload-library` reads, in the custom syntax as well as in MLIR's.

MLIR would parse them with its own parser, which knows no custom mx syntax. They are parsed here, each error at its line
of the library, and handed on as bytecode, which keeps the places that later errors name.
"""

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from mx_dialect import asm
from mx_dialect.diagnostics import MxError
from mx_dialect.input_passes import check_transforms
from mx_dialect.input_text import decoded
from mx_dialect.pipeline_text import Element

_PASS = "transform-preload-library"
_PATHS = "transform-library-paths"


@contextmanager
def readable(element: Element, context: Any, trusted: bool) -> Generator[Element]:
    """Yield a pass as MLIR can run it: of one that loads transform libraries, with files that MLIR can read.

    Raises:
        MxError: a library cannot be read, is not valid, or could write files though the input is not `trusted`.
    """
    options = element.option_items()
    if element.name != _PASS or _PATHS not in options:
        yield element
        return
    with tempfile.TemporaryDirectory(prefix="mx-opt-") as folder:
        copies: list[str] = []
        for path in _expanded(options[_PATHS].split(",")):
            module = _parsed(path, context)
            if not trusted:
                check_transforms(module.operation)
            copies.append(os.path.join(folder, f"{len(copies)}.mlir"))
            with open(copies[-1], "wb") as file:
                file.write(asm.to_bytecode(module))
        others = [f"{name}={value}" for name, value in options.items() if name != _PATHS]
        yield replace(element, options=" ".join([f"{_PATHS}={','.join(copies)}", *others]))


def _expanded(paths: list[str]) -> list[str]:
    """Return the files that paths name: each file itself, and of a folder those that end in .mlir."""
    files: list[str] = []
    for path in paths:
        if os.path.isdir(path):
            files += sorted(os.path.join(path, name) for name in os.listdir(path) if name.endswith(".mlir"))
        else:
            files.append(path)
    return files


def _parsed(path: str, context: Any) -> Any:
    try:
        with open(path, "rb") as file:
            text = decoded(file.read(), path)
    except OSError as error:
        raise MxError(f"cannot open transform library '{path}': {error.strerror}") from None
    if isinstance(text, bytes):
        return asm.parse_bytecode(text, context, path)
    return asm.parse(text, context, path)
