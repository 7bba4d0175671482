"""mx-materialize-strides: write the strides of blocked views of scales into their types.

A blocked view is packed, so its strides are those of its shape, row-major and in bytes. Where a view meets code that
wants to be told, its layout says so:

    tensor<1x4x2x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>

becomes

    tensor<1x4x2x16x2xf8E8M0FNU, #mx.layout<{layout = "MX_A_ZZ", strides = [256, 64, 32, 2, 1]}>>

in functions, values and attributes alike. Everything is checked before anything is changed.
"""

from typing import Any

from mx_dialect._mlir import ir
from mx_dialect.diagnostics import Diagnostic, MxError, at
from mx_dialect.layouts.a5 import BLOCKED_RANK, BOX_BLOCKS, BOX_GROUPS, blocked_strides
from mx_dialect.passes import NoOptions, Pass, register_pass
from mx_dialect.tile_types import LayoutAttr, layout_of
from mx_dialect.transforms.scale_view_types import Refusal, Retyping, defined_values
from mx_dialect.walk import operations

_LARGEST = 2**63 - 1


def _with_strides(view: Any) -> Any:
    """Return the type of a blocked view with its strides, None if it has them, or a refusal."""
    attribute: Any = layout_of(view)
    if not _is_blocked(view):
        return Refusal(f"has a view '{view}' that is not in blocked shape; run --mx-block-scale-views first")
    strides = list(blocked_strides(view.shape))
    if strides[0] > _LARGEST:
        rule = f"{strides[0]} bytes, more than strides of 64 bits can count"
        return Refusal(f"has a view '{view}' of {rule}; make it smaller")
    if attribute.strides is None:
        array = ir.ArrayAttr.get([ir.IntegerAttr.get(ir.IntegerType.get_signless(64), n) for n in strides])
        layout = LayoutAttr.of({**attribute.entries, "strides": array})
        return ir.RankedTensorType.get(view.shape, view.element_type, layout)
    if attribute.strides == strides:
        return None
    return Refusal(f"has a view '{view}' with strides other than {strides}; leave them out")


def _is_blocked(view: Any) -> bool:
    if view.rank != BLOCKED_RANK or not view.has_static_shape:
        return False
    return view.shape[0] == 1 and view.shape[3:] == [BOX_BLOCKS, BOX_GROUPS]


def run(root: Any, options: NoOptions) -> None:
    """Give the layout of every view of scales under `root` its strides, in place.

    Raises:
        MxError: a view is not in blocked shape or has other strides; one error an operation. Nothing changes.
    """
    with root.context, ir.Location.unknown():
        types = Retyping(_with_strides)
        found: list[Any] = []
        errors: list[Diagnostic] = []
        for op in operations(root, lambda op: True, outer_first=True):
            new_types = [*types.of_values(defined_values(op)), *types.of_attributes(op)]
            refusal = next((new for new in new_types if isinstance(new, Refusal)), None)
            if refusal is not None:
                errors.append(at(op, "error", f"'{op.name}' op {refusal}"))
            elif any(new is not None for new in new_types):
                found.append(op)
        if errors:
            raise MxError.of(*errors)
        for op in found:
            types.apply(op)


PASS = register_pass(
    Pass(
        name="mx-materialize-strides",
        summary="Write the packed row-major strides of blocked views of scales into their types",
        run=run,
        requires="views of scales in blocked shape (after mx-block-scale-views)",
        leaves="strides in the layout of every view of scales",
    )
)
