"""`mx.submit`: the asynchronous call of a kernel function, and the attribute that marks one."""

# No `from __future__ import annotations` here: the annotations below define the operands and results.
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mx_dialect._mlir import ext, ir
from mx_dialect.diagnostics import MxError, error_at
from mx_dialect.dialect import Mx
from mx_dialect.tile_types import TaskType
from mx_dialect.verification import require, verifier
from mx_dialect.walk import is_function, operations

KERNEL = "mx.kernel"
"""The attribute of a func.func that runs on the engine."""
KERNEL_KINDS = ("incore", "aic", "aiv")
"""What runs a kernel: a core of either sort, the matrix cores, the vector cores."""
MAX_ARGUMENTS = 64
MAX_RESULTS = 16
"""How many results a submit can have, its task among them."""
_FLAGS = ("sync_start", "sync_end")


def is_kernel(op: Any) -> bool:
    """Tell whether an operation is a function that runs on the engine.

    Raises:
        MxError: the attribute of a function is not a kind of kernel. Misspelt, it must not pass for none.
    """
    attribute = op.attributes.get(KERNEL) if is_function(op) else None
    if attribute is None:
        return False
    if not isinstance(attribute, ir.StringAttr) or attribute.value not in KERNEL_KINDS:
        kinds = " or ".join(f'"{kind}"' for kind in KERNEL_KINDS)
        raise error_at(op, f"'func.func' op has {KERNEL} = {attribute}, which is no kind of kernel; expected {kinds}")
    return True


def kernels(root: Any) -> list[Any]:
    """Return the functions under an operation that run on the engine, as `is_kernel` tells, outer ones first."""
    # Not `is_kernel` in the walk: what is raised there does not come out as it is.
    return [op for op in operations(root, is_function, outer_first=True) if is_kernel(op)]


class _Slots(Mx.Operation):
    """Arguments and results, each a field of its own: MLIR gives all values of a variadic field one type."""

    __annotations__ = {
        **{f"arguments_{i}": Sequence[ext.Operand[Any]] for i in range(MAX_ARGUMENTS)},
        **{f"results_{i}": Sequence[ext.Result[Any]] for i in range(MAX_RESULTS)},
    }


class SubmitOp(_Slots, name="submit"):
    """Call a function asynchronously, on one block or many.

    `mx.submit @callee(arguments) after(dependencies) cores(core_count) if(predicate)`: groups that are empty are left
    out, but for the arguments. The callee runs once for each block 0 to core_count - 1, which `mx.block_idx` and
    `mx.block_num` tell it; without a core count it is one. It starts after the tasks in `dependencies`, and only if the
    predicate, where there is one, is true. Of the results the last may be a task, for later submits to depend on; the
    others are the callee's. `sync_start` (all blocks start together) and `sync_end` (all end together) are unit
    attributes; any other attribute is kept for the runtime.

    On the CPU blocks run one after the other. A result that the callee makes by stores into one of its arguments is
    the argument with what every block stored.

    | value        | type                                                         |
    |--------------|--------------------------------------------------------------|
    | arguments    | the callee's argument types; 64 at most                      |
    | dependencies | tasks                                                        |
    | core_count   | none or one index                                            |
    | predicate    | none or one i1                                               |
    | results      | the callee's result types, then none or one task; 16 at most |

    Effects: those of the callee.

    Errors: no callee, operands of other types, more than one core count or predicate, a task that is not the last
    result.

    ```mlir
    func.func private @kernel(%x: tensor<16x32xf32>, %i: index) -> tensor<16x32xf32> attributes {mx.kernel = "aiv"} {
      return %x : tensor<16x32xf32>
    }
    func.func @run(%x: tensor<16x32xf32>, %i: index, %p: i1) -> tensor<16x32xf32> {
      %0, %task = mx.submit @kernel(%x, %i) : tensor<16x32xf32>, index -> (tensor<16x32xf32>, !mx.task)
      %1 = mx.submit @kernel(%0, %i) after(%task) cores(%i) if(%p) {sync_start} : tensor<16x32xf32>, index, !mx.task, index, i1 -> tensor<16x32xf32>
      return %1 : tensor<16x32xf32>
    }
    ```
    """

    dependencies: Sequence[ext.Operand[Any]]
    core_count: Sequence[ext.Operand[Any]]
    predicate: Sequence[ext.Operand[Any]]
    callee: Any

    # In custom assembly: the attribute that names the callee, and the operands in groups, each but the first behind a
    # word.
    symbol = "callee"
    operand_groups = (("arguments", ""), ("dependencies", "after"), ("core_count", "cores"), ("predicate", "if"))

    @property
    def callee_name(self) -> str:
        """Return the name of the function that is called."""
        return ir.FlatSymbolRefAttr(self.operation.attributes["callee"]).value

    @property
    def arguments(self) -> list[Any]:
        """Return the operands that the callee is called with."""
        sizes = self.operation.attributes["operandSegmentSizes"]
        return list(self.operation.operands)[: sum(list(sizes)[:MAX_ARGUMENTS])]

    @property
    def values(self) -> list[Any]:
        """Return the results that are the callee's."""
        return [r for r in self.operation.results if not isinstance(r.type, TaskType)]

    @verifier
    def verify_invariants(self: Any) -> None:
        callee = self.operation.attributes["callee"]
        require(
            isinstance(callee, ir.FlatSymbolRefAttr), f"callee must name a function, such as @kernel, but is {callee}"
        )
        _require_types(self.dependencies, "dependencies", "tasks", lambda t: isinstance(t, TaskType))
        _require_types(self.core_count, "core_count", "an index", lambda t: isinstance(t, ir.IndexType))
        _require_types(self.predicate, "predicate", "an i1", lambda t: str(t) == "i1")
        for values, role in ((self.core_count, "core_count"), (self.predicate, "predicate")):
            require(len(values) <= 1, f"{role} must be one value or none, but there are {len(values)}")
        early = any(isinstance(r.type, TaskType) for r in list(self.operation.results)[:-1])
        require(not early, "must have no task among its results but one, the last")
        for flag in _FLAGS:
            given = self.operation.attributes.get(flag)
            require(given is None or isinstance(given, ir.UnitAttr), f"{flag} must have no value, but is {given}")


def _require_types(values: Sequence[Any], role: str, what: str, fits: Callable[[Any], bool]) -> None:
    wrong = next((v.type for v in values if not fits(v.type)), None)
    require(wrong is None, f"{role} must be {what}, but there is '{wrong}'")


def submit(
    callee: str,
    arguments: Sequence[Any],
    result_types: Sequence[Any],
    dependencies: Sequence[Any] = (),
    core_count: Any = None,
    predicate: Any = None,
    task: bool = False,
    attributes: Mapping[str, Any] | None = None,
    *,
    loc: Any = None,
    ip: Any = None,
) -> list[Any]:
    """Build `mx.submit` and return its results, a task the last of them if `task`.

    Raises:
        MxError: more than 64 arguments or 16 results.
    """
    types = [*result_types, *([TaskType.get()] if task else [])]
    operands = _in_slots(arguments, MAX_ARGUMENTS, "arguments")
    results = _in_slots(types, MAX_RESULTS, "results")
    cores = [] if core_count is None else [core_count]
    condition = [] if predicate is None else [predicate]
    symbol = ir.FlatSymbolRefAttr.get(callee)
    op = SubmitOp(*operands, *results, list(dependencies), cores, condition, symbol, loc=loc, ip=ip)
    for name, value in (attributes or {}).items():
        op.operation.attributes[name] = value
    return list(op.operation.results)


def _in_slots(items: Sequence[Any], count: int, what: str) -> list[list[Any]]:
    if len(items) > count:
        raise MxError(f"mx.submit has at most {count} {what}, but is given {len(items)}")
    return [*([item] for item in items), *([] for _ in range(count - len(items)))]
