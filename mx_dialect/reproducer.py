"""Reproducers: a module together with the pipeline that fails on it, in one file, as MLIR writes them.

module { ... }

{-#
  external_resources: {
    mlir_reproducer: {
      pipeline: "builtin.module(cse)",
      disable_threading: true,
      verify_each: true
    }
  }
#-}
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from mx_dialect import asm, driver
from mx_dialect.asm.lexer import STRING, closing, find
from mx_dialect.diagnostics import MxError, unescape
from mx_dialect.input_passes import check_elements
from mx_dialect.opt_options import anchored_at
from mx_dialect.pipeline_text import Element

KEY = "mlir_reproducer"
IGNORED = f"ignoring unknown external resources for '{KEY}'"
"""What MLIR's parser warns of where it meets a reproducer."""

_KEY = re.compile(rf"{STRING}|\b{KEY}\s*:\s*(?P<brace>\{{)", re.ASCII)
_ENTRY = re.compile(rf"(?P<name>\w+)\s*:\s*(?P<value>{STRING}|\w+)", re.ASCII)
_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True)
class Plan:
    """The passes that a reproducer asks for, and whether to verify after each."""

    elements: tuple[Element, ...] = ()
    verify_each: bool = True


def asked_for(source: str | bytes, root: Any, trusted: bool = False) -> Plan:
    """Return what the reproducer that `root` was parsed from asks for; nothing when it was none.

    Raises:
        MxError: it cannot be read, its pipeline does not fit, or could write files though it is not `trusted`.
    """
    if isinstance(source, bytes):
        raise MxError("--run-reproducer reads text only: the bindings do not show what else bytecode holds")
    found = read(source)
    if found is None:
        return Plan()
    elements = anchored_at(root.name, found.pipeline)
    resolved = driver.resolve(elements, root.context, found.pipeline, (root.name,))
    if not trusted:
        check_elements(resolved)
    return Plan(resolved, found.verify_each)


@dataclass(frozen=True)
class Reproducer:
    """What a reproducer asks to run, and whether to verify after each pass."""

    pipeline: str
    verify_each: bool


def written(op: Any, pipeline: str, verify_each: bool) -> str:
    """Return an operation's text with the pipeline to run on it."""
    entries = [
        f"pipeline: {_quoted(pipeline)}",
        "disable_threading: true",
        f"verify_each: {json.dumps(verify_each)}",
    ]
    inner = ",\n      ".join(entries)
    ours = f"  external_resources: {{\n    {KEY}: {{\n      {inner}\n    }}\n  }}\n#-}}\n"
    text = asm.to_asm(op).rstrip()
    if text.endswith("#-}"):
        # Constants of the module are in the section already.
        return f"{text.removesuffix('#-}').rstrip()},\n{ours}"
    return f"{text}\n\n{{-#\n{ours}"


def _quoted(text: str) -> str:
    return '"' + "".join(c if c.isprintable() and c not in '"\\' else _escaped(c) for c in text) + '"'


def _escaped(char: str) -> str:
    return "".join(f"\\{byte:02X}" for byte in char.encode())


def read(source: str) -> Reproducer | None:
    """Return what the reproducer in a text asks for; None when the text holds none.

    Raises:
        MxError: there is one that has no pipeline, or an entry that is not what it has to be.
    """
    section = _section(source)
    found = None if section is None else next((m for m in _KEY.finditer(source, section) if m["brace"]), None)
    if found is None:
        return None
    opened = found.start("brace")
    entries = {m["name"]: m["value"] for m in _ENTRY.finditer(source, opened, closing(source, opened))}
    pipeline = entries.get("pipeline", "")
    if not pipeline.startswith('"'):
        raise MxError(f"the reproducer's '{KEY}' has no pipeline: a string such as \"builtin.module(cse)\"")
    verify_each = entries.get("verify_each", "true")
    if verify_each not in _BOOLEANS:
        raise MxError(f"'verify_each' of the reproducer is true or false, not {verify_each}")
    return Reproducer(unescape(pipeline[1:-1]), _BOOLEANS[verify_each])


def _section(source: str) -> int | None:
    """Return where the resources of a text begin."""
    position = 0
    while (found := find(source, position, len(source))) is not None:
        if found.kind == "resources":
            return found.end
        position = found.end
    return None
