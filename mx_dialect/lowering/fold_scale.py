"""`mx.fold_scale` in the lowering: its factor goes to the consumer, or into the scales where the value escapes."""

from typing import Any

from mx_dialect import scalar
from mx_dialect._mlir import arith, cf, ir, tensor
from mx_dialect.diagnostics import Diagnostic, at, error_at
from mx_dialect.fold_chain import chain, constant_factor, power_of_two, product
from mx_dialect.formats import E8M0, SCALE_FORMATS
from mx_dialect.generics import PARALLEL, REDUCTION, affine_map, dims, empty, extent, generic
from mx_dialect.lowering.parts import join, parts
from mx_dialect.ops import FoldScaleOp

_RANGE = f"2^{E8M0.min_exponent}..2^{E8M0.max_exponent}"


def materialize_escaping(folds: list[FoldScaleOp]) -> None:
    """Lower the folds that the patterns left: unused ones vanish, the others multiply their scales.

    Raises:
        MxError: a factor that is not a constant power of two reaches a place that needs the tensor itself.
    """
    # Users first: a fold of a fold disappears before the fold under it is looked at.
    for fold in reversed(folds):
        uses = list(fold.output.uses)
        if uses:
            _materialize(fold, uses)
        fold.operation.erase()


def _materialize(fold: FoldScaleOp, uses: list[Any]) -> None:
    value, factors = chain(fold.output)
    scale_type = str(fold.output.type.scale_type)
    if not SCALE_FORMATS[scale_type].is_power_of_two:
        raise _refuse(fold, f"a factor, with {scale_type} scales,", uses[0].owner)
    total = 1.0
    for factor in factors:
        constant = constant_factor(factor)
        if constant is None:
            raise _refuse(fold, "a factor that is not a constant", uses[0].owner)
        total = product(total, constant)
    exponent = power_of_two(total)
    if exponent is None:
        raise _refuse(fold, f"the factor {total:g}", uses[0].owner)
    with ir.InsertionPoint(fold.operation), fold.location:
        mantissa, scale = parts(value)
        scaled = scale if exponent == 0 else _add_to_codes(scale, exponent)
        whole = join(fold.output.type, mantissa, scaled)
    fold.output.replace_all_uses_with(whole)


def _refuse(fold: FoldScaleOp, what: str, use: Any) -> Exception:
    note: Diagnostic = at(use, "note", f"the tensor itself is needed here, by '{use.name}'")
    return error_at(
        fold,
        f"'mx.fold_scale' op cannot put {what} into the scales: only a constant power of two fits there,"
        " and only in f8E8M0FNU; dequantize the tensor first, or keep the fold next to the matmul or dequantize that"
        " uses it",
        (note,),
    )


def _add_to_codes(scale: Any, exponent: int) -> Any:
    """Return the scales times 2^exponent; NaN stays NaN, and a code that leaves the range fails an assertion."""
    rank = scale.type.rank
    identity = affine_map(rank, dims(rank))
    sizes = [extent(scale, i) for i in range(rank)]
    scale_type = scale.type.element_type
    i1 = ir.IntegerType.get_signless(1)

    def is_nan(code: Any) -> Any:
        return arith.cmpi(arith.CmpIPredicate.eq, code, scalar.i32(E8M0.nan_code))

    def shifted(value: Any, _: Any) -> Any:
        code = scalar.scale_code(value)
        moved = arith.addi(code, scalar.i32(exponent))
        return scalar.scale_from_code(arith.select(is_nan(code), code, moved), scale_type)

    def stays_in_range(value: Any, so_far: Any) -> Any:
        code = scalar.scale_code(value)
        moved = arith.addi(code, scalar.i32(exponent))
        # Unsigned, so that a negative code is far above the largest.
        inside = arith.cmpi(arith.CmpIPredicate.ule, moved, scalar.i32(E8M0.max_code))
        return arith.andi(so_far, arith.ori(is_nan(code), inside))

    true = tensor.from_elements(ir.RankedTensorType.get([], i1), [arith.constant(i1, 1)])
    verdict = generic([scale], true, [identity, affine_map(rank, [])], [REDUCTION] * rank, stays_in_range)
    message = f"mx.fold_scale: a scale times 2^{exponent} leaves the range {_RANGE} of {scale_type}"
    cf.AssertOp(tensor.extract(verdict, []), message)
    return generic([scale], empty(sizes, scale_type), [identity, identity], [PARALLEL] * rank, shifted)
