"""`mx-canonicalize`: the mx dialect's own simplifications. `--canonicalize` runs them around MLIR's.

    fold_scale(fold_scale(t, 4.0), 8.0)  ->  fold_scale(t, 32.0)
    fold_scale(t, 1.0)                   ->  t
    dequantize_block(fold_scale(t, a))   ->  mulf(dequantize_block(t), splat(a))
    compose(decompose(t))                ->  t
    decompose(compose(m, s))             ->  m, s
    dim(t, 0)                            ->  the extent, if it is static
    cast(t)                              ->  t, if that is its type

All are exact: the factors of nested folds are multiplied in f32 by definition. dequantize_block(quantize_block(x)) is
not x and stays.
"""

import functools
from typing import Any

from mx_dialect._mlir import arith, ir, rewrite, tensor
from mx_dialect.fold_chain import chain, constant_factor, product, strip
from mx_dialect.generics import extent
from mx_dialect.ops import ComposeOp, DecomposeOp, DequantizeBlockOp, FoldScaleOp, dequantize_block, fold_scale
from mx_dialect.passes import NoOptions, Pass, register_pass
from mx_dialect.shape_ops import CastOp, DimOp
from mx_dialect.walk import defining

# A pattern returns what the bindings ask for: a false value when it rewrote, a true one when it did not match.
_NO_MATCH = True


def remove_unit_fold(op: FoldScaleOp, rewriter: rewrite.PatternRewriter) -> bool | None:
    if constant_factor(op.factor) != 1.0:
        return _NO_MATCH
    rewriter.replace_op(op, [op.input])
    return None


def merge_nested_folds(op: FoldScaleOp, rewriter: rewrite.PatternRewriter) -> bool | None:
    # The whole chain at once: merging two folds in its middle would multiply in another order than the definition.
    value, factors = chain(op.output)
    if len(factors) < 2:
        return _NO_MATCH
    with rewriter.ip, op.location:
        merged = fold_scale(value, functools.reduce(_product, factors))
    rewriter.replace_op(op, [merged])
    return None


def _product(first: Any, second: Any) -> Any:
    """Return the f32 product of two factors, a constant if both are."""
    known = constant_factor(first), constant_factor(second)
    if known[0] is None or known[1] is None:
        return arith.mulf(first, second)
    return arith.constant(ir.F32Type.get(), product(known[0], known[1]))


def multiply_after_dequantize(op: DequantizeBlockOp, rewriter: rewrite.PatternRewriter) -> bool | None:
    if defining(op.input, FoldScaleOp) is None:
        return _NO_MATCH
    with rewriter.ip, op.location:
        # The whole chain at once: multiplying fold by fold would round in another order than the definition.
        value, factor = strip(op.input)
        dequantized = dequantize_block(value)
        type_ = dequantized.type
        dynamic = [d for d in (extent(dequantized, i) for i in range(type_.rank)) if not isinstance(d, int)]
        scaled = arith.mulf(dequantized, tensor.splat(type_, factor, dynamic))
        if op.output.type != type_:
            # A 16-bit result is rounded once, after the factor.
            scaled = arith.truncf(op.output.type, scaled)
    rewriter.replace_op(op, [scaled])
    return None


def recompose(op: ComposeOp, rewriter: rewrite.PatternRewriter) -> bool | None:
    source = defining(op.mantissa, DecomposeOp)
    if source is None or source.input.type != op.output.type:
        return _NO_MATCH
    if op.mantissa != source.mantissa or op.scale != source.scale:
        return _NO_MATCH
    rewriter.replace_op(op, [source.input])
    return None


def take_apart_composed(op: DecomposeOp, rewriter: rewrite.PatternRewriter) -> bool | None:
    source = defining(op.input, ComposeOp)
    if source is None:
        return _NO_MATCH
    rewriter.replace_op(op, [source.mantissa, source.scale])
    return None


def replace_static_dim(op: DimOp, rewriter: rewrite.PatternRewriter) -> bool | None:
    if not isinstance(op.axis, ir.OpResult) or op.axis.owner.name != "arith.constant":
        return _NO_MATCH
    axis = ir.IntegerAttr(op.axis.owner.attributes["value"]).value
    shape = op.input.type.spec.shape
    extent = shape[axis] if 0 <= axis < len(shape) else None
    if extent is None:
        return _NO_MATCH
    with rewriter.ip, op.location:
        constant = arith.constant(ir.IndexType.get(), extent)
    rewriter.replace_op(op, [constant])
    return None


def remove_identity_cast(op: CastOp, rewriter: rewrite.PatternRewriter) -> bool | None:
    if op.input.type != op.output.type:
        return _NO_MATCH
    rewriter.replace_op(op, [op.input])
    return None


PATTERNS = (
    (FoldScaleOp, remove_unit_fold),
    (FoldScaleOp, merge_nested_folds),
    (DequantizeBlockOp, multiply_after_dequantize),
    (ComposeOp, recompose),
    (DecomposeOp, take_apart_composed),
    (DimOp, replace_static_dim),
    (CastOp, remove_identity_cast),
)


def run(root: ir.Operation, options: NoOptions) -> None:
    """Apply the patterns until none matches."""
    with root.context, ir.Location.unknown():
        patterns = rewrite.RewritePatternSet()
        for op_class, pattern in PATTERNS:
            patterns.add(op_class, pattern)
        config = rewrite.GreedyRewriteConfig()
        # MLIR's own folds are --canonicalize's business, and one of them is wrong for the scale code 255.
        config.enable_folding = False
        rewrite.apply_patterns_and_fold_greedily(root, patterns.freeze(), config)


PASS = register_pass(
    Pass(
        name="mx-canonicalize",
        summary="Simplify mx operations: merge nested fold_scales, cancel compose and decompose, fold dim and cast",
        run=run,
        requires="valid mx operations",
        leaves="equivalent IR",
    )
)
