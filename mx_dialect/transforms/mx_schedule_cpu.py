"""mx-schedule-cpu: choose how each contraction runs on the CPU.

A contraction is a linalg.generic that adds products to an f32 result, `mx.block_matmul` lowered, or one written by
hand; `schedule/contraction.py` says exactly which. On tensors this pass writes down what `schedule/cost_model.py`
chooses from shapes, layouts and the host,

    linalg.generic {indexing_maps = [...], iterator_types = [...]} ins(%m, %s, %b) outs(%c)

becomes

    linalg.generic {..., mx.schedule = {kind = "panel", lanes = 16, rows = 8, vectors = 2, ...}} ins(...) outs(...)

and once tensors are buffers, the same pass run with `emit` replaces the operation by loops over vectors. In between,
passes that would vectorize the operation their way leave it alone. A schedule that an operation has already wins, whole
or in part: `mx.schedule = "panel"` fixes the kind, a dictionary the sizes that it names, `"none"` forbids all.

With `threads`, a large contraction moves into a function that works on a range of one of its loops,

    func.call @f.part(%c0, %n, %m, %s, %b, %c) {mx.parallel = 32 : i64} : (...) -> ()

which --mx-parallel-calls divides among threads; as it stands, the call does all of it.

What fits no schedule is left as it is, for mx-vectorize or loops, and a remark says why.
"""

from dataclasses import dataclass, fields, replace
from typing import Any

from mx_dialect import diagnostics
from mx_dialect._mlir import ir
from mx_dialect.diagnostics import Diagnostic, MxError, at, error_at
from mx_dialect.passes import Pass, option, register_pass
from mx_dialect.schedule import contraction, cost_model, few_rows, packed, parts, schedules
from mx_dialect.schedule.attribute import ATTRIBUTE, NONE
from mx_dialect.schedule.contraction import DYNAMIC, Contraction
from mx_dialect.schedule.host import Host, detect
from mx_dialect.schedule.schedules import SCHEDULES, Plan
from mx_dialect.walk import operations

_AUTO = "auto"


@dataclass(frozen=True)
class Options:
    """Options of mx-schedule-cpu."""

    schedule: str = option(_AUTO, "the schedule of every contraction that names none", (_AUTO, *SCHEDULES, NONE))
    vector_bits: int = option(0, "width of a vector register: 128, 256 or 512; 0 is this machine's")
    threads: int = option(1, "with emit: how many threads a large contraction is divided for")
    emit: bool = option(False, "replace contractions on buffers by loops, instead of choosing schedules on tensors")


def _host(options: Options) -> Host:
    host = detect()
    if options.vector_bits not in (0, 128, 256, 512):
        raise MxError(
            f"option 'vector-bits' of pass 'mx-schedule-cpu' is 0, 128, 256 or 512, not {options.vector_bits}"
        )
    if not options.vector_bits:
        return host
    features = host.features if options.vector_bits == host.vector_bits else frozenset(["avx"])
    return replace(host, vector_bits=options.vector_bits, features=features)


def _is_generic(op: Any) -> bool:
    return op.name == "linalg.generic"


def _choose(found: Contraction, options: Options, host: Host) -> Any:
    """Return the attribute for a contraction, or why there is none.

    Raises:
        MxError: its own attribute cannot be followed.
    """
    given: dict[str, Any] = {}
    kind = None if options.schedule == _AUTO else options.schedule
    demanded = ATTRIBUTE in found.op.attributes
    if demanded:
        kind, given = schedules.read_attribute(found.op.attributes[ATTRIBUTE])
    if kind == NONE:
        return "schedule none is asked for"
    choice = cost_model.choose(found, host, kind)
    if isinstance(choice, str):
        if demanded:
            raise MxError(f"schedule {kind} does not apply: {choice}")
        return choice
    plan = cost_model.override(choice.plan, given)
    refusal = SCHEDULES[schedules.kind_of(plan)].refusal(found, plan)
    if refusal is not None:
        raise MxError(f"schedule {kind} does not apply: {refusal}")
    return schedules.to_attribute(plan)


def _annotate(root: Any, options: Options) -> None:
    host = _host(options)
    errors: list[Diagnostic] = []
    for op in operations(root, _is_generic):
        found = contraction.match(op)
        if found is None:
            if ATTRIBUTE in op.attributes:
                errors.append(at(op, "error", f"'linalg.generic' op has {ATTRIBUTE} but is no contraction in f32"))
            continue
        try:
            attribute = _choose(found, options, host)
            if not isinstance(attribute, str) and packed.absorb(op):
                # Packed codes may have a schedule of their own.
                absorbed = contraction.match(op)
                better = "" if absorbed is None else _choose(absorbed, options, host)
                attribute = attribute if isinstance(better, str) else better
        except MxError as refused:
            errors.append(at(op, "error", f"'linalg.generic' op {refused}"))
            continue
        if isinstance(attribute, str):
            diagnostics.remark_at(op, f"mx-schedule-cpu leaves this linalg.generic as it is: {attribute}")
        else:
            op.attributes[ATTRIBUTE] = attribute
    if errors:
        raise MxError.of(*errors)


def _emit_plan(found: Contraction, plan: Plan, threads: int) -> None:
    """Replace a contraction by a schedule, divided among threads where that pays."""
    schedule = SCHEDULES[schedules.kind_of(plan)]
    span = None
    if threads > 1 and schedule.division is not None and parts.is_worthwhile(found):
        found, span = parts.move(found, schedule.division(found, plan, threads))
    schedule.emit(found, plan, span)


def _emit_open(found: Contraction, plan: Plan, threads: int, host: Host) -> None:
    """Replace a contraction whose number of rows is open by a choice of schedules.

    The choice comes first and each is divided then: it is made of all rows, not of what a thread has of them.
    """

    def emit(copy: Contraction) -> None:
        choice = None if copy.extents[copy.m] == DYNAMIC else cost_model.choose(copy, host)
        _emit_plan(copy, plan if choice is None or isinstance(choice, str) else choice.plan, threads)

    few_rows.emit_by_rows(found, cost_model.few_rows(found, plan, host), emit)


def _asked_for(op: Any) -> Any:
    """Return the kind and the sizes that an operation's attribute gives.

    Raises:
        MxError: at the operation, the attribute cannot be read.
    """
    try:
        return schedules.read_attribute(op.attributes[ATTRIBUTE])
    except MxError as refused:
        raise error_at(op, f"'{op.name}' op {refused}") from None


def _check_applies(found: Contraction, kind: str, plan: Plan) -> None:
    """Refuse a schedule written by hand that does not fit."""
    refusal = SCHEDULES[kind].refusal(found, plan)
    if refusal is not None:
        raise error_at(found.op, f"'{found.op.name}' op schedule {kind} does not apply: {refusal}")


def _emit(root: Any, options: Options) -> None:
    host = _host(options)
    for op in operations(root, lambda o: _is_generic(o) and ATTRIBUTE in o.attributes):
        kind, sizes = _asked_for(op)
        found = contraction.match(op)
        if kind == NONE or found is None or not contraction.is_on_buffers(found):
            continue
        schedule = SCHEDULES[kind]
        missing = [f.name for f in fields(schedule.plan) if f.name not in sizes]
        if missing:
            raise error_at(op, f"'{op.name}' op schedule {kind} lacks {', '.join(missing)}; emit needs every size")
        plan = schedule.plan(**sizes)
        _check_applies(found, kind, plan)
        if few_rows.is_open(found):
            _emit_open(found, plan, options.threads, host)
        else:
            _emit_plan(found, plan, options.threads)


def run(root: Any, options: Options) -> None:
    """Choose a schedule for each contraction under `root`, or emit the chosen ones.

    Raises:
        MxError: a schedule that an operation asks for does not apply.
    """
    if options.threads < 1:
        raise MxError(f"option 'threads' of pass 'mx-schedule-cpu' is 1 or more, not {options.threads}")
    with root.context, ir.Location.unknown():
        if options.emit:
            _emit(root, options)
        else:
            _annotate(root, options)


PASS = register_pass(
    Pass(
        name="mx-schedule-cpu",
        summary="Choose how contractions run on the CPU; with emit, turn them into loops over vectors",
        run=run,
        options=Options,
        requires="with emit, buffers, and contractions as they were when their schedules were chosen",
        leaves="mx.schedule on each contraction that fits a schedule; with emit: loops instead of those",
    )
)
