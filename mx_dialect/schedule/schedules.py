"""The schedules by name: what each is made of, when it applies, and its spelling as an attribute.

linalg.generic {..., mx.schedule = {kind = "panel", lanes = 16, rows = 8, ...}}
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from mx_dialect._mlir import ir
from mx_dialect.diagnostics import MxError
from mx_dialect.passes import nearest
from mx_dialect.schedule import amx, columns, dots, dots_rows, dots_tiles, panel, rows
from mx_dialect.schedule.amx import AmxPlan
from mx_dialect.schedule.attribute import ATTRIBUTE, NONE
from mx_dialect.schedule.columns import ColumnsPlan
from mx_dialect.schedule.contraction import Contraction
from mx_dialect.schedule.dots import DotsPlan
from mx_dialect.schedule.dots_rows import DotRowsPlan
from mx_dialect.schedule.dots_tiles import DotTilesPlan
from mx_dialect.schedule.panel import PanelPlan
from mx_dialect.schedule.rows import RowsPlan
from mx_dialect.schedule.span import Division

Plan: TypeAlias = PanelPlan | RowsPlan | ColumnsPlan | DotsPlan | DotRowsPlan | DotTilesPlan | AmxPlan


@dataclass(frozen=True)
class Schedule:
    """One way to run a contraction.

    `refusal` says why a plan does not apply to one, None if it does; `division` how to divide the work in parts, None
    where it is not divided.
    """

    plan: type[Any]
    emit: Callable[..., None]
    refusal: Callable[[Contraction, Any], str | None]
    division: Callable[[Contraction, Any, int], Division] | None = None


SCHEDULES: Mapping[str, Schedule] = {
    "panel": Schedule(PanelPlan, panel.emit, panel.refusal, panel.division),
    "rows": Schedule(RowsPlan, rows.emit, rows.refusal, rows.division),
    "columns": Schedule(ColumnsPlan, columns.emit, columns.refusal, columns.division),
    "dot_rows": Schedule(DotRowsPlan, dots_rows.emit, dots_rows.refusal, dots_rows.division),
    "dot_tiles": Schedule(DotTilesPlan, dots_tiles.emit, dots_tiles.refusal, dots_tiles.division),
    "amx": Schedule(AmxPlan, amx.emit, amx.refusal, amx.division),
    "dots": Schedule(DotsPlan, dots.emit, dots.refusal, dots.division),
}


def kind_of(plan: Plan) -> str:
    return next(name for name, schedule in SCHEDULES.items() if isinstance(plan, schedule.plan))


def to_attribute(plan: Plan) -> Any:
    """Return a plan as a dictionary attribute of the current context."""
    i64 = ir.IntegerType.get_signless(64)

    def spelled(value: Any) -> Any:
        return ir.IntegerAttr.get(i64, value) if isinstance(value, int) else ir.StringAttr.get(value)

    entries = {field.name: spelled(getattr(plan, field.name)) for field in dataclasses.fields(plan)}
    return ir.DictAttr.get({"kind": ir.StringAttr.get(kind_of(plan)), **entries})


def read_attribute(attribute: Any) -> tuple[str, dict[str, Any]]:
    """Return the kind and the given sizes of a schedule attribute: a dictionary, or the kind alone as a string.

    Raises:
        MxError: it is neither, or names a kind or a size that there is not.
    """
    if isinstance(attribute, ir.StringAttr):
        return _known_kind(attribute.value), {}
    if not isinstance(attribute, ir.DictAttr):
        raise MxError(f'{ATTRIBUTE} must be a kind, such as "panel", or a dictionary with one, but is {attribute}')
    entries = {named.name: named.attr for named in attribute}
    kind = entries.pop("kind", None)
    if not isinstance(kind, ir.StringAttr):
        raise MxError(f"{ATTRIBUTE} has no kind; it is one of {', '.join(SCHEDULES)} or {NONE}")
    name = _known_kind(kind.value)
    fields = {f.name: f.type for f in dataclasses.fields(SCHEDULES[name].plan)} if name != NONE else {}
    return name, {key: _entry(name, key, value, fields) for key, value in entries.items()}


def _known_kind(kind: str) -> str:
    known = [*SCHEDULES, NONE]
    if kind not in known:
        raise MxError(f"'{kind}' is no schedule{nearest(kind, known)}; they are {', '.join(known)}")
    return kind


def _entry(kind: str, key: str, value: Any, fields: Mapping[str, Any]) -> Any:
    if key not in fields:
        known = ", ".join(fields) or "nothing else"
        raise MxError(f"schedule {kind} has no '{key}'{nearest(key, list(fields))}; it has {known}")
    if fields[key] is int:
        if not isinstance(value, ir.IntegerAttr) or value.value < 1:
            raise MxError(f"'{key}' of schedule {kind} must be a positive integer, but is {value}")
        return value.value
    if not isinstance(value, ir.StringAttr):
        raise MxError(f"'{key}' of schedule {kind} must be a string, but is {value}")
    return value.value
