"""The registry of passes: what each is called, what it does, its options, what it needs and leaves.

One registry feeds the command line's flags, textual pipelines, `--help`, the docs and the Python API. A pass is one
module that calls `register_pass`; its file is its flag in snake_case. Built-in passes are listed by module path so that
nothing is imported before it is needed.
"""

import dataclasses
import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mx_dialect.diagnostics import MxError
from mx_dialect.near_miss import nearest as nearest
from mx_dialect.upstream_passes import UPSTREAM_PASSES

_BUILTIN = {
    "mx-assert-to-status": "mx_dialect.transforms.mx_assert_to_status",
    "mx-block-scale-views": "mx_dialect.transforms.mx_block_scale_views",
    "mx-canonicalize": "mx_dialect.transforms.mx_canonicalize",
    "mx-check-lowered": "mx_dialect.transforms.mx_check_lowered",
    "mx-conversions-to-linalg": "mx_dialect.transforms.mx_conversions_to_linalg",
    "mx-expand-copies": "mx_dialect.transforms.mx_expand_copies",
    "mx-expand-k": "mx_dialect.transforms.mx_expand_k",
    "mx-expand-narrow-floats": "mx_dialect.transforms.mx_expand_narrow_floats",
    "mx-externalize-constants": "mx_dialect.transforms.mx_externalize_constants",
    "mx-fuse-rows": "mx_dialect.transforms.mx_fuse_rows",
    "mx-infer-memory-space": "mx_dialect.transforms.mx_infer_memory_space",
    "mx-insert-scale-addr": "mx_dialect.transforms.mx_insert_scale_addr",
    "mx-legalize-cast": "mx_dialect.transforms.mx_legalize_cast",
    "mx-materialize-strides": "mx_dialect.transforms.mx_materialize_strides",
    "mx-neuron-expand-load": "mx_dialect.transforms.mx_neuron_expand_load",
    "mx-neuron-matmul": "mx_dialect.lowering.mx_neuron_matmul",
    "mx-neuron-to-linalg": "mx_dialect.lowering.mx_neuron_to_linalg",
    "mx-parallel-calls": "mx_dialect.transforms.mx_parallel_calls",
    "mx-quantize-linear": "mx_dialect.ingress.mx_quantize_linear",
    "mx-schedule-cpu": "mx_dialect.transforms.mx_schedule_cpu",
    "mx-slice-partial-writes": "mx_dialect.transforms.mx_slice_partial_writes",
    "mx-tile-matmul": "mx_dialect.lowering.mx_tile_matmul",
    "mx-tile-to-linalg": "mx_dialect.lowering.mx_tile_to_linalg",
    "mx-to-linalg": "mx_dialect.lowering.mx_to_linalg",
    "mx-vectorize": "mx_dialect.transforms.mx_vectorize",
    "mx-verify-scale-binding": "mx_dialect.transforms.mx_verify_scale_binding",
}


@dataclass(frozen=True)
class NoOptions:
    """The options of a pass that has none."""


def option(default: Any, help: str, choices: tuple[str, ...] = ()) -> Any:
    """Declare one option of a pass: a field of its options dataclass, with its help text."""
    return dataclasses.field(default=default, metadata={"help": help, "choices": choices})


@dataclass(frozen=True)
class Pass:
    """A registered pass.

    `run(root, options)` rewrites the operation `root` (a builtin.module unless nested) in place, raises `MxError` to
    refuse, and leaves the IR valid. `requires` and `leaves` say in words what must hold before and what holds after.
    """

    name: str
    summary: str
    run: Callable[[Any, Any], None]
    options: type = NoOptions
    requires: str = "nothing"
    leaves: str = "everything it does not match"

    def option_fields(self) -> tuple[dataclasses.Field[Any], ...]:
        return dataclasses.fields(self.options)

    def parse_options(self, text: Mapping[str, str]) -> Any:
        """Return the typed options of `{a=1 b=x}`, given as a mapping of names to text.

        Raises:
            MxError: an unknown option, or a value that does not fit its type.
        """
        fields = {f.name: f for f in self.option_fields()}
        values: dict[str, Any] = {}
        for name, value in text.items():
            field = fields.get(name.replace("-", "_"))
            if field is None:
                known = [f.replace("_", "-") for f in fields]
                options = f"its options: {', '.join(known) or 'none'}{nearest(name, known)}"
                raise MxError(f"pass '{self.name}' has no option '{name}'; {options}")
            values[field.name] = _convert(self.name, field, value)
        return self.options(**values)

    def spell_options(self, values: Mapping[str, Any]) -> str:
        """Return options given as Python values, by their names as identifiers, as they stand between the braces.

        Raises:
            MxError: an unknown option, a value of another type than the option's default, or not one of the choices.
        """
        fields = {f.name: f for f in self.option_fields()}
        for name, value in values.items():
            kind: type[Any] = fields[name].default.__class__ if name in fields else value.__class__
            if value.__class__ is not kind and not (kind is float and value.__class__ is int):
                raise _wrong_type(self.name, fields[name], value)
        spelled = {
            name.replace("_", "-"): str(value).lower() if value is True or value is False else str(value)
            for name, value in values.items()
        }
        self.parse_options(spelled)
        return " ".join(f"{name}={_quoted(value)}" for name, value in spelled.items())


def _convert(pass_name: str, field: dataclasses.Field[Any], text: str) -> Any:
    spelled = field.name.replace("_", "-")
    default: Any = field.default
    kind: type[Any] = default.__class__
    try:
        if kind is bool:
            return {"true": True, "1": True, "": True, "false": False, "0": False}[text.lower()]
        value = kind(text)
    except (KeyError, ValueError):
        raise _wrong_type(pass_name, field, text) from None
    choices = field.metadata.get("choices")
    if choices and value not in choices:
        hint = nearest(text, choices)
        raise MxError(f"option '{spelled}' of pass '{pass_name}' is one of {', '.join(choices)}, not '{text}'{hint}")
    return value


def _wrong_type(pass_name: str, field: dataclasses.Field[Any], value: Any) -> MxError:
    kind: type[Any] = field.default.__class__
    names = {bool: "true or false", int: "an integer", float: "a number", str: "a string"}
    spelled = field.name.replace("_", "-")
    return MxError(f"option '{spelled}' of pass '{pass_name}' takes {names.get(kind, kind.__name__)}, not '{value}'")


def _quoted(value: str) -> str:
    """Return a value as it stands in a pipeline's text: in quotes where it would end early or be taken apart."""
    if not re.search(r"[\s,(){}'\"]", value) and value:
        return value
    quote = '"' if "'" in value else "'"
    return f"{quote}{value}{quote}"


_registered: dict[str, Pass] = {}

pipeline_names: set[str] = set()
"""The names of pipelines, which passes cannot have; `pipelines` keeps it."""


def register_pass(new: Pass) -> Pass:
    """Add a pass under its name. A name can be registered once.

    Raises:
        ValueError: the name is not kebab-case, or is that of another pass or pipeline, of MLIR's included.
    """
    # Built-in passes register themselves when they are imported, which may be later than anything else.
    if _BUILTIN.get(new.name) != new.run.__module__:
        require_free("pass", new.name)
    elif new.name in _registered:
        raise ValueError(f"pass '{new.name}' is registered already")
    _registered[new.name] = new
    return new


def require_free(kind: str, name: str) -> None:
    """Refuse a name for a new pass or pipeline, which `kind` says.

    Raises:
        ValueError: as `register_pass`.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ValueError(f"{kind} name '{name}' is not kebab-case")
    if is_reserved(name):
        raise ValueError(f"{kind} '{name}' would hide a pass of {'mx_dialect' if name in _BUILTIN else 'MLIR'}")
    if name in _registered or name in pipeline_names:
        raise ValueError(f"{kind} '{name}' is registered already")


def withdraw(name: str) -> None:
    """Take a pass that is not this package's own out of the registry, if it is there."""
    if name not in _BUILTIN:
        _registered.pop(name, None)


def is_reserved(name: str) -> bool:
    """Tell whether a name is that of a pass of this package or of MLIR, so that nobody else can register it."""
    return name in _BUILTIN or name in UPSTREAM_PASSES


def names() -> list[str]:
    """Return the names of all passes defined in Python, sorted."""
    load_plugins()
    return sorted({*_BUILTIN, *_registered})


def extra() -> set[str]:
    """Return the names of the passes known so far that are not this package's own."""
    return _registered.keys() - _BUILTIN.keys()


def are_builtin() -> bool:
    """Tell whether there are no passes so far but this package's own."""
    return not extra()


def exists(name: str) -> bool:
    """Tell whether a pass defined in Python has that name."""
    if name not in _registered:
        load_plugins_for(name)
    return name in _registered or name in _BUILTIN


def get(name: str) -> Pass | None:
    """Return the pass of that name, or None when no Python pass is called so (MLIR may have one)."""
    if not exists(name):
        return None
    if name not in _registered:
        importlib.import_module(_BUILTIN[name])
    return _registered.get(name)


def load_plugins_for(name: str) -> None:
    """Let installed packages register their passes and pipelines, if one could be called that."""
    if not is_reserved(name):
        load_plugins()


def load_plugins() -> None:
    """Let installed packages register their passes and pipelines, the first time."""
    importlib.import_module("mx_dialect.plugins").load_installed()
