"""mx-block-scale-views: give logical views of scales the shape in which the engine addresses them.

A view [M, G] in layout MX_A_ZZ, or [G, N] in layout MX_B_NN, lies in memory in boxes of 16 x 2 bytes. Its blocked shape
[1, X / 16, G / 2, 16, 2], X being M or N, is row-major over the same bytes. A load counts offset and window in boxes
then:

    func.func @k(%s: tensor<64x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>, ...) attributes {mx.kernel = "aic"} {
      %m = arith.muli %i, %c16 : index
      %0 = mx.tile_load %s[%m, 2] [16, 2] {target = "mat"}
          : tensor<64x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">> -> !mx.tile<16x2xf8E8M0FNU, mat>

becomes

    func.func @k(%s: tensor<1x4x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>, ...)
        attributes {mx.kernel = "aic", mx_tensor_views_blocked} {
      %m = arith.muli %i, %c16 : index
      %c16_0 = arith.constant 16 : index
      %b = arith.floordivsi %m, %c16_0 : index
      %0 = mx.tile_load %s[0, %b, 1, 0, 0] [1, 1, 1, 16, 2] {target = "mat"}
          : tensor<1x4x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">> -> !mx.tile<16x2xf8E8M0FNU, mat>

The division is right only for an offset that is a whole number of boxes and not negative. Both are proven for each
load, by `analysis.alignment`; what is not proven is refused, never assumed. The module is taken as the whole program:
what a parameter can be is what the calls in the module give it.

Types change wherever they stand: in parameters, results, tuples, branches and loops, calls and submits, in attributes.
Explicit strides of a logical view are dropped. Everything is checked before anything is changed.
"""

from typing import Any

from mx_dialect._mlir import ir
from mx_dialect.analysis.alignment import Prover
from mx_dialect.analysis.call_sites import CALLS, CallSites
from mx_dialect.diagnostics import Diagnostic, MxError, error_at
from mx_dialect.lowering.split_boundaries import TRANSPARENT
from mx_dialect.passes import NoOptions, Pass, register_pass
from mx_dialect.submit_ops import SubmitOp
from mx_dialect.tile_memory_ops import TensorViewOp, TileLoadOp, TileStoreOp
from mx_dialect.transforms.blocked_loads import BlockedLoad, plan
from mx_dialect.transforms.blocked_views import BLOCKED, blocked_view
from mx_dialect.transforms.scale_view_types import Refusal, Retyping, defined_values
from mx_dialect.walk import in_scopes, is_function

_LOAD, _STORE, _VIEW = (op.OPERATION_NAME for op in (TileLoadOp, TileStoreOp, TensorViewOp))
_TAKES_VIEWS = TRANSPARENT | {SubmitOp.OPERATION_NAME, _LOAD, _VIEW}


class _Program:
    """What there is to rewrite in a program and what forbids it, found in one walk that changes nothing."""

    def __init__(self, root: Any):
        self.errors: list[Diagnostic] = []
        self._types = Retyping(blocked_view)
        self._call_sites = CallSites(root)
        self._prover = Prover(self._call_sites)
        self._functions: list[Any] = []
        self._retyped: list[Any] = []
        self._loads: list[BlockedLoad] = []
        self._views: list[Any] = []
        for function, op in in_scopes(root, is_function):
            self.errors += self._errors(op, function)

    def rewrite(self) -> None:
        """Rewrite the program, which has no errors, in place."""
        for op in self._retyped:
            self._types.apply(op)
        for load in self._loads:
            load.emit()
        for op in self._views:
            _emit_view(op)
        for function in self._functions:
            function.attributes[BLOCKED] = ir.UnitAttr.get()

    def _errors(self, op: Any, function: Any) -> tuple[Diagnostic, ...]:
        try:
            self._visit(op, function)
        except MxError as error:
            return error.diagnostics
        return ()

    def _visit(self, op: Any, function: Any) -> None:
        """Note what is to be done about an operation of a function (None outside of all), or raise what forbids it."""
        used, defined = self._types.of_values(op.operands), self._types.of_values(defined_values(op))
        has_views = any(new is not None for new in (*used, *defined))
        if has_views and op.name in CALLS:
            self._require_same_form(op, function)
        if function is not None and BLOCKED in function.attributes:
            return
        if is_function(op):
            self._functions.append(op)
        new_types = [*defined, *self._types.of_attributes(op)]
        _require_types(op, new_types, function)
        if any(new is not None for new in new_types):
            self._retyped.append(op)
        if has_views:
            self._visit_user(op, used)

    def _visit_user(self, op: Any, used: list[Any]) -> None:
        """Look at an operation on views; the types of its operands in blocked shape, or refusals, are `used`."""
        if op.name not in _TAKES_VIEWS:
            raise error_at(op, f"'{op.name}' op {_not_taken(op)}")
        # A view that was refused has its error already, where it is defined.
        if op.name == _LOAD and not isinstance(used[0], Refusal):
            self._loads.append(plan(op.opview, self._prover))
        if op.name == _VIEW and used[0] is None:
            self._views.append(op)

    def _require_same_form(self, call: Any, caller: Any) -> None:
        """Refuse a view that is passed between a function with blocked views and one with logical views."""
        callee = self._call_sites.callee(call)
        if callee is None or (BLOCKED in callee.attributes) == (caller is not None and BLOCKED in caller.attributes):
            return
        raise error_at(
            call,
            f"'{call.name}' op passes a view of scales between a function with {BLOCKED} and one without; give it to"
            " both, with their views in blocked shape, or to neither",
        )


def _emit_view(old: Any) -> None:
    """Replace an mx.tensor_view whose result has its blocked type already by one of that shape, which is static."""
    view = old.results[0].type
    attributes = {name: old.attributes[name] for name in old.attributes}
    attributes["static_sizes"] = ir.DenseI64ArrayAttr.get(view.shape)
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1, 0])
    new = ir.Operation.create(
        old.name, [view], [old.operands[0]], attributes, ip=ir.InsertionPoint(old), loc=old.location
    )
    old.results[0].replace_all_uses_with(new.results[0])
    old.erase()


def _require_types(op: Any, new_types: list[Any], function: Any) -> None:
    """Refuse types without blocked shape, and views that no function holds, for none could be marked as blocked."""
    refusal = next((new for new in new_types if isinstance(new, Refusal)), None)
    if refusal is not None:
        raise error_at(op, f"'{op.name}' op {refusal}")
    if function is None and any(new is not None for new in new_types):
        raise error_at(op, f"'{op.name}' op has a view of scales outside of a function; move it into one")


def _not_taken(op: Any) -> str:
    """Return why an operation cannot have views of scales among its operands and results."""
    if op.name == _STORE:
        return "stores to a view of scales, which can only be loaded from; store to a plain tensor and view that"
    return (
        "has a view of scales, which only loads, mx.tensor_view, calls and control flow take; view the scales as a"
        " plain tensor with mx.tensor_view first"
    )


def run(root: Any, options: NoOptions) -> None:
    """Block every view of scales of the program `root`, in place.

    Raises:
        MxError: a view, a load or another use of a view has no blocked form; one error an operation. Nothing changes.
    """
    if root.name != "builtin.module":
        raise error_at(root, f"'{root.name}' op is not a whole program; run mx-block-scale-views on the builtin.module")
    with root.context, ir.Location.unknown():
        program = _Program(root)
        if program.errors:
            raise MxError.of(*program.errors)
        program.rewrite()


PASS = register_pass(
    Pass(
        name="mx-block-scale-views",
        summary="Give views of scales the blocked shape [1, X / 16, G / 2, 16, 2], and load them by boxes",
        run=run,
        requires="a builtin.module that is the whole program; views of scales in whole boxes, used by loads to mat,"
        " mx.tensor_view, calls, submits and control flow only; window offsets that are provably whole boxes",
        leaves=f"views of scales in blocked shape without strides; {BLOCKED} on every function",
    )
)
