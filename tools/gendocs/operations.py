"""The reference of operations, from their classes: docstrings, fields, traits."""

import ast
import inspect
import re
import textwrap
from typing import Any

from gendocs.markdown import code, doc, summary, table
from mx_dialect._mlir import ext
from mx_dialect.dialect import Mx, define

# The levels of the dialect, the pages that explain them, and the modules with their operations.
_LEVELS = (
    ("Value level", "Block-scaled tensors as values.", ("ops", "shape_ops", "storage_ops")),
    (
        "Tile level",
        "Tiles in the memories of a matrix engine; [the tile level](../tile-level.md) explains them.",
        ("tile_ops", "tile_memory_ops", "tile_matmul_ops", "submit_ops"),
    ),
    (
        "Load-path level",
        "What a Neuron-style engine is fed; [the Neuron load path](../neuron-load-path.md) explains them.",
        ("neuron_ops", "neuron_load_ops", "neuron_expert_ops", "neuron_qkv_ops", "neuron_matmul_ops"),
    ),
)

_NUMBER = re.compile(r"_\d+$")


def page() -> str:
    """Return the page with every operation.

    Raises:
        ValueError: an operation belongs to no level, so that the page would lack it.
    """
    define()
    home = {op: op.__module__.rpartition(".")[2] for op in Mx.operations}
    lost = [op.OPERATION_NAME for op, module in home.items() if not any(module in m for *_, m in _LEVELS)]
    if lost:
        raise ValueError(f"tools/gendocs/operations.py lists no level for {', '.join(lost)}")
    parts = [
        "# Operations",
        "Names are written in the custom syntax; `mx-opt --mlir-print-op-generic` prints the generic form. An optional "
        "attribute is left out where it has its default.",
    ]
    for title, text, modules in _LEVELS:
        ops = [op for module in modules for op in Mx.operations if home[op] == module]
        rows = [(f"[`{op.OPERATION_NAME}`](#{_anchor(op)})", summary(op.__doc__)) for op in ops]
        parts += [f"## {title}", text, table(("operation", "meaning"), rows)]
        parts += [_section(op) for op in ops]
    return "\n\n".join(parts) + "\n"


def _anchor(op: Any) -> str:
    return op.OPERATION_NAME.replace(".", "")


def _section(op: Any) -> str:
    operands, attributes, results, _ = ext.partition_fields(op._fields)
    rows = [("operands", _values(operands)), ("results", _values(results))]
    declared = [field.name for field in attributes]
    rows.append(("attributes", _joined([code(f.name) + _kind(f.constraint) for f in attributes])))
    optional = [name for name in _optional_attributes(op) if name not in declared]
    rows.append(("optional attributes", _joined([code(name) for name in optional])))
    rows.append(("traits", _joined([code(t.__name__) for t in op._traits])))
    return f"### {op.OPERATION_NAME}\n\n{doc(op.__doc__)}\n\n" + table(
        ("", "of the definition"), [(head, text) for head, text in rows if text]
    )


def _values(fields: list[Any]) -> str:
    """Return names with how many values each has; fields name_0, name_1 and on are one entry."""
    found: dict[str, str] = {}
    for field in fields:
        numbered = _NUMBER.search(field.name) is not None
        many = numbered or field.variadicity.name != "single"
        found[_NUMBER.sub("", field.name)] = " (any number)" if many else ""
    return _joined([f"{code(name)}{many}" for name, many in found.items()])


def _kind(constraint: Any) -> str:
    """Return what a declared attribute is, in parentheses, where the declaration says it."""
    name = getattr(constraint, "__name__", "")
    return f" ({name})" if name.endswith("Attr") else ""


def _joined(parts: list[str]) -> str:
    return ", ".join(parts)


def _optional_attributes(op: Any) -> list[str]:
    """Return the attributes that an operation's verifier allows: the arguments of its call of `only_attributes`."""
    module = inspect.getmodule(op)
    verifier = _calls(inspect.getsource(op))
    # A verifier that shares its checks with others calls a function of its module that has the call.
    helpers = [getattr(module, name) for name in verifier if name.startswith("_verify") and hasattr(module, name)]
    found = [*verifier.get("only_attributes", [])]
    for helper in helpers:
        found += _calls(inspect.getsource(helper)).get("only_attributes", [])
    names: list[str] = []
    for argument in found:
        value = eval(compile(ast.Expression(_as_tuple(argument)), "<attributes>", "eval"), vars(module))
        names += value
    return names


def _as_tuple(argument: ast.expr) -> ast.expr:
    return ast.fix_missing_locations(ast.Tuple([argument], ast.Load()))


def _calls(source: str) -> dict[str, list[ast.expr]]:
    """Return the functions that a piece of source calls by name, each with its arguments after the first."""
    tree = ast.parse(textwrap.dedent(source))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    return {node.func.id: node.args[1:] for node in calls if isinstance(node.func, ast.Name)}
