"""mx-expand-narrow-floats: compute conversions of MX floats with integer and ordinary float operations.

No lowering to LLVM converts the MX floats correctly: most conversions are left behind, some get wrong values, and
the constant folder turns the scale NaN into infinity. This pass replaces every arith.extf, arith.truncf,
arith.convertf, arith.scaling_extf and arith.scaling_truncf that touches one, in functions, loops and the bodies of
linalg operations alike; `narrow_float_conversions` defines the values, to the bit. On elements of f8E4M3FN

    %1 = arith.extf %0 : f8E4M3FN to f32

becomes

    %1 = arith.bitcast %0 : f8E4M3FN to i8
    %2 = arith.extsi %1 : i8 to i16
    %3 = arith.shli %2, %c7 : i16
    %4 = arith.andi %3, %cBF80 : i16             // sign and magnitude where f16 has them
    %5 = arith.andi %3, %c3F80 : i16
    %6 = arith.cmpi eq, %5, %c3F80 : i16
    %7 = arith.select %6, %c7E00, %4 : i16       // NaN
    %8 = arith.bitcast %7 : i16 to f16
    %9 = arith.extf %8 : f16 to f32
    %10 = arith.mulf %9, %c256 : f32

Values of MX types remain, to be loaded, stored and moved; nothing computes with them. Run it before any pass that
folds constants (canonicalize among them).
"""

from typing import Any

from mx_dialect import diagnostics, passes
from mx_dialect._mlir import arith, ir
from mx_dialect.diagnostics import Diagnostic, MxError
from mx_dialect.formats import E8M0, ELEMENT_FORMATS
from mx_dialect.transforms import narrow_float_conversions as conversions
from mx_dialect.walk import operations

_SCALING = ("arith.scaling_extf", "arith.scaling_truncf")
_CONVERSIONS = ("arith.extf", "arith.truncf", "arith.convertf", *_SCALING)


def _element_type(type_: Any) -> Any:
    return type_.element_type if isinstance(type_, ir.ShapedType) else type_


def _is_narrow(type_: Any) -> bool:
    return str(_element_type(type_)) in conversions.NARROW_FLOATS


def _conversions_under(root: Any) -> list[Any]:
    """Return the operations to expand: conversions with an MX float, and all that take a scale."""

    def concerns(op: Any) -> bool:
        return op.name in _CONVERSIONS and (
            op.name in _SCALING or any(_is_narrow(value.type) for value in (*op.operands, *op.results))
        )

    return operations(root, concerns, outer_first=True)


def _refusal(op: Any) -> str | None:
    """Return why a conversion cannot be expanded, or None."""
    for value in (*op.operands, *op.results):
        reason = conversions.unsupported(value.type)
        if reason is not None:
            return reason
    if "roundingmode" in op.attributes and op.attributes["roundingmode"].value != 0:
        return "only rounding mode to_nearest_even is supported; remove the mode"
    if op.name in _SCALING:
        scale = str(_element_type(op.operands[1].type))
        if scale in conversions.NARROW_FLOATS and scale != E8M0.mlir:
            return f"a scale of type {scale} is not supported; use {E8M0.mlir} or f32"
    if op.name == "arith.scaling_truncf" and not _is_narrow(op.results[0].type):
        return "the result is not an MX float; use arith.divf and arith.truncf"
    return None


def _constant(value: Any) -> float | None:
    """Return the value of a float constant, the one of all elements for a splat, or None."""
    if not isinstance(value, ir.OpResult) or value.owner.name != "arith.constant":
        return None
    attribute = value.owner.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat:
        attribute = attribute.get_splat_value()
    return ir.FloatAttr(attribute).value if isinstance(attribute, ir.FloatAttr) else None


def _without_clamp(value: Any, to: Any) -> Any:
    """Return what a value was before clamps and NaN tests that truncation to an element format makes anyway.

    IR that other tools should read as well saturates before arith.truncf; here truncation itself saturates, keeps NaN
    where the format has one, and gives zero where it has not.
    """
    fmt = ELEMENT_FORMATS.get(str(to))
    while fmt is not None and isinstance(value, ir.OpResult):
        operands = list(value.owner.operands)
        name = value.owner.name
        limit = _constant(operands[1]) if name in ("arith.minimumf", "arith.maximumf") else None
        if limit is not None and (limit if name == "arith.minimumf" else -limit) >= fmt.max_normal:
            value = operands[0]
        elif name == "arith.select" and fmt.nan_magnitude is None and _is_zero_for_nan(operands):
            value = operands[2]
        else:
            break
    return value


def _is_zero_for_nan(operands: list[Any]) -> bool:
    """Tell whether a select takes zero for the value that it otherwise takes, if that is NaN."""
    condition, zero, value = operands
    if _constant(zero) != 0.0 or not isinstance(condition, ir.OpResult) or condition.owner.name != "arith.cmpf":
        return False
    is_unordered = ir.IntegerAttr(condition.owner.attributes["predicate"]).value == arith.CmpFPredicate.UNO
    return is_unordered and all(operand == value for operand in condition.owner.operands)


def _expand(op: Any) -> Any:
    """Emit the expansion of a conversion before it and return the value that replaces its result."""
    to = _element_type(op.results[0].type)
    if op.name == "arith.scaling_extf":
        return conversions.extend_scaled(op.operands[0], op.operands[1], to)
    if op.name == "arith.scaling_truncf":
        return conversions.truncate_scaled(op.operands[0], op.operands[1], to)
    if _is_narrow(op.operands[0].type):
        return conversions.extend(op.operands[0], to)
    return conversions.truncate(_without_clamp(op.operands[0], to), to)


def run(root: Any, options: passes.NoOptions) -> None:
    """Expand every conversion under `root`, in place, or change nothing.

    Raises:
        MxError: conversions that cannot be expanded, one error each.
    """
    with root.context:
        ops = _conversions_under(root)
        refusals = [(op, _refusal(op)) for op in ops]
        errors: list[Diagnostic] = [
            diagnostics.at(op, "error", f"'{op.name}' cannot be expanded: {reason}")
            for op, reason in refusals
            if reason is not None
        ]
        if errors:
            raise MxError.of(*errors)
        # Operations are built directly: a greedy pattern driver would fold the scales that this pass must see first.
        for op in ops:
            with ir.InsertionPoint(op), op.location:
                expanded = _expand(op)
            op.results[0].replace_all_uses_with(expanded)
            op.erase()


PASS = passes.register_pass(
    passes.Pass(
        name="mx-expand-narrow-floats",
        summary="Expand conversions from and to MX floats into integer and ordinary float operations",
        run=run,
        requires="no pass that folds constants has run since scales became constants",
        leaves="no conversion from or to an MX float",
    )
)
