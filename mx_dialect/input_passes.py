"""Passes that an input asks for itself: `transform.apply_registered_pass`, and the pipeline of a reproducer.

What a command line names may write where it says. A file that is only read must not: MLIR has passes that write a file
or start a program whose name is an option, and these operations can give the option. They are refused unless the
command line trusts its input.

    transform.apply_registered_pass "snapshot-op-locations" with options = {filename = "/home/me/.profile"} to %f : ...
"""

from collections.abc import Iterable
from typing import Any

from mx_dialect import walk
from mx_dialect.diagnostics import MxError, error_at
from mx_dialect.pipeline_text import Element

TRUST = "trust-input"

_REACHES_OUT = {
    "snapshot-op-locations": "writes a file",
    "gpu-module-to-binary": "starts programs",
    "gpu-lower-to-nvvm-pipeline": "starts programs",
    "gpu-lower-to-rocdl-pipeline": "starts programs",
    "gpu-lower-to-xevm-pipeline": "starts programs",
}

# Passes whose options are pipelines, in which those above can stand.
_TAKES_PIPELINES = ("composite-fixed-point-pass", "inline")

_APPLIES = "transform.apply_registered_pass"
# Sets an attribute, also the one that says which pass is applied, of an operation that has not run yet.
_ANNOTATES = "transform.annotate"
_DECIDES = ("pass_name", "options")

# Passes that run transform operations of the module.
_INTERPRETERS = ("transform-interpreter", *_TAKES_PIPELINES)


def check_elements(elements: Iterable[Element]) -> None:
    """Refuse a pipeline from an input that could write files or start programs.

    Raises:
        MxError: it could.
    """
    for element in elements:
        if element.children is not None:
            check_elements(element.children)
            continue
        reason = _REACHES_OUT.get(element.name)
        named = [name for name in _REACHES_OUT if name in element.options]
        if reason is None and element.name in _TAKES_PIPELINES and named:
            reason = f"runs '{named[0]}', which {_REACHES_OUT[named[0]]}"
        if reason is not None:
            raise MxError(_refusal("the reproducer's pipeline", f"'{element.name}'", reason))


def interprets(element: Element) -> bool:
    """Tell whether a pass may run transform operations."""
    return element.name in _INTERPRETERS


def check_transforms(root: Any) -> None:
    """Refuse transform operations anywhere under `root` that could write files or start programs.

    Raises:
        MxError: an operation that could.
    """
    found = walk.operations(root, lambda op: op.name in (_APPLIES, _ANNOTATES))
    applied = [op for op in found if op.name == _APPLIES]
    for op in applied:
        name = op.attributes["pass_name"].value
        reason = _REACHES_OUT.get(name)
        if reason is None and name in (*_TAKES_PIPELINES, "transform-preload-library") and _has_options(op):
            reason = "can run any pass"
        if reason is not None:
            raise error_at(op, _refusal(f"'{_APPLIES}' op", f"'{name}'", reason))
    for op in found if applied else ():
        if op.name == _ANNOTATES and op.attributes["name"].value in _DECIDES:
            raise error_at(op, _refusal(f"'{_ANNOTATES}' op", "another pass", "may write files"))


def _has_options(op: Any) -> bool:
    return len(op.attributes["options"]) > 0 if "options" in op.attributes else False


def _refusal(what: str, name: str, reason: str) -> str:
    return f"{what} may not ask for {name}, which {reason}; use --{TRUST} if you trust the input"
