"""The reference of passes and pipelines, from the registry, the docstrings of modules and the source's comments."""

import ast
import importlib
import inspect
import re
from dataclasses import Field
from typing import Any

from gendocs.markdown import code, doc, table
from mx_dialect import passes, pipelines


def page() -> str:
    """Return the page with every pass and every pipeline."""
    found = [passes.get(name) for name in passes.names()]
    registered = [p for p in found if p is not None]
    links = [(f"[`--{p.name}`](#{p.name})", p.summary) for p in registered]
    parts = [
        "# Passes and pipelines",
        'Each is a flag of `mx-opt` and a name in `--pass-pipeline`; options are written `--mx-to-linalg="a=1 b=x"` '
        "and `mx-to-linalg{a=1 b=x}`. All of MLIR's passes mix with them.",
        "## Pipelines",
        "The stages of each, in order, and why they stand there.",
        *(_pipeline(name) for name in pipelines.names()),
        "## Passes",
        table(("pass", "what it does"), links),
        *(_pass(p) for p in registered),
    ]
    return "\n\n".join(parts) + "\n"


def _pass(found: passes.Pass) -> str:
    module = importlib.import_module(found.run.__module__)
    text = re.sub(rf"^`?{found.name}`?: ", "", module.__doc__ or "")
    parts = [
        f"### {found.name}",
        doc(text[:1].upper() + text[1:]),
        f"*Requires* {found.requires}.<br>\n*Leaves* {found.leaves}.",
    ]
    fields = found.option_fields()
    if fields:
        parts.append(table(("option", "type", "default", "meaning"), [_option(f) for f in fields]))
    return "\n\n".join(parts)


def _option(field: Field[Any]) -> tuple[str, str, str, str]:
    choices = field.metadata["choices"]
    one_of = f"; one of {', '.join(code(c) for c in choices)}" if choices else ""
    default = str(field.default).lower() if isinstance(field.default, bool) else str(field.default)
    return (
        code(field.name.replace("_", "-")),
        type(field.default).__name__,
        code(default) if default else "",
        field.metadata["help"] + one_of,
    )


def _pipeline(name: str) -> str:
    found = pipelines.PIPELINES[name]
    stages = _stages()[name]
    if [stage for stage, _ in stages] != list(found.stages):
        raise ValueError(f"the stages of {name} do not stand in the source of mx_dialect/pipelines.py as they are")
    rows = [(str(number), _stage(stage), reason) for number, (stage, reason) in enumerate(stages, 1)]
    return f"### {name}\n\n{found.summary}.\n\n" + table(("", "stage", "why"), rows)


def _stage(stage: str) -> str:
    name = stage.partition("{")[0]
    return f"[{code(stage)}](#{name})" if name in passes.names() else code(stage)


def _stages() -> dict[str, list[tuple[str, str]]]:
    """Return the stages of each pipeline with the comment above each, from the source that defines them."""
    source = inspect.getsource(pipelines)
    tree, lines = ast.parse(source), source.splitlines()
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return {
        name.value: _expanded(stages, constants, lines)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Pipeline"
        for name, _, stages in [node.args]
        if isinstance(name, ast.Constant) and isinstance(name.value, str)
    }


def _expanded(node: ast.expr, constants: dict[str, ast.expr], lines: list[str]) -> list[tuple[str, str]]:
    """Return the stages, each with its comment, that a tuple or the name of one stands for."""
    if isinstance(node, ast.Starred):
        return _expanded(node.value, constants, lines)
    if isinstance(node, ast.Name) and isinstance(constants[node.id], ast.Tuple):
        return _expanded(constants[node.id], constants, lines)
    if isinstance(node, ast.Tuple):
        return [stage for element in node.elts for stage in _expanded(element, constants, lines)]
    value = constants[node.id] if isinstance(node, ast.Name) else node
    return [(str(ast.literal_eval(value)), _comment_above(lines, node.lineno))]


def _comment_above(lines: list[str], number: int) -> str:
    """Return the comment that ends right above a line, counted from 1."""
    above: list[str] = []
    for line in reversed(lines[: number - 1]):
        if not line.strip().startswith("#"):
            break
        above.append(line.strip().removeprefix("#").strip())
    return " ".join(reversed(above))
