"""`mx-to-linalg`: from the value level to linalg on (mantissa, scale) tensors.

An mx value becomes two tensors everywhere, function boundaries and control flow included. A matmul becomes one generic
that reads the scale through `k floordiv block_size` and never materialises a dequantized operand:

    func.func @f(%a: !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>, %b: tensor<64x16xf32>, ...)
      %0 = mx.block_matmul %a, %b, %acc : ...

becomes

    func.func @f(%m: tensor<32x64xf8E4M3FN>, %s: tensor<32x2xf8E8M0FNU>, %b: tensor<64x16xf32>, ...)
      %0 = linalg.generic {indexing_maps = [(m, n, k) -> (m, k), (m, n, k) -> (m, k floordiv 32), ...]}
           ins(%m, %s, %b : ...) outs(%acc : ...) {
        // mantissa * scale is exact; times b and the sum are rounded in f32
      }

Three steps: patterns lower the operations, joining and splitting mx values with unrealized_conversion_casts; the
boundaries are rewritten 1:2; the casts cancel.
"""

from dataclasses import dataclass
from typing import Any

from mx_dialect._mlir import ir, rewrite
from mx_dialect.diagnostics import MxError, at
from mx_dialect.lowering import block_matmul, fold_scale, shape_ops, split_boundaries, storage_ops, value_ops
from mx_dialect.lowering.parts import reconcile
from mx_dialect.ops import BlockMatmulOp, FoldScaleOp
from mx_dialect.passes import Pass, option, register_pass
from mx_dialect.types import is_mx
from mx_dialect.walk import operations


@dataclass(frozen=True)
class Options:
    scale_products: str = option(
        "elements",
        "Where a matmul applies the scales: to the elements, in one loop nest, or as exponents to each block's dot "
        "product, which, with both sides block-scaled, no pair of scales makes overflow or flush on the way",
        choices=block_matmul.SCALE_PRODUCTS,
    )


def run(root: ir.Operation, options: Options) -> None:
    """Lower every mx operation and value under `root`.

    Raises:
        MxError: an operation of another dialect holds an mx value in an unknown way; a fold_scale cannot be lowered.
    """
    with root.context, ir.Location.unknown():
        split_boundaries.check(root)
        patterns = rewrite.RewritePatternSet()
        for op_class, pattern in (*value_ops.PATTERNS, *shape_ops.PATTERNS, *storage_ops.PATTERNS):
            patterns.add(op_class, pattern)
        patterns.add(BlockMatmulOp, block_matmul.pattern(options.scale_products))
        # The walk driver, not the greedy one: folding here would turn a constant scale of 255 into +Inf.
        rewrite.walk_and_apply_patterns(root, patterns.freeze())
        fold_scale.materialize_escaping(_folds(root))
        split_boundaries.split(root)
        reconcile(root)
        _require_no_mx_values(root)


def _folds(root: ir.Operation) -> list[FoldScaleOp]:
    def is_fold(op: Any) -> bool:
        return isinstance(op.opview, FoldScaleOp)

    return [op.opview for op in operations(root, is_fold, outer_first=True)]


def _require_no_mx_values(root: ir.Operation) -> None:
    """Refuse what is left: a user's own cast from or to an mx value that nothing cancels."""

    def holds_mx(op: Any) -> bool:
        return any(is_mx(v.type) for v in (*op.operands, *op.results))

    left = operations(root, holds_mx)
    if left:
        raise MxError.of(
            *(at(op, "error", f"'{op.name}' op still holds an mx tensor after --mx-to-linalg") for op in left)
        )


PASS = register_pass(
    Pass(
        name="mx-to-linalg",
        summary="Lower mx operations and values to linalg on mantissa and scale tensors",
        run=run,
        options=Options,
        requires="valid mx operations; mx values carried by func, scf, cf and arith.select only",
        leaves="no mx operation, no mx value, no unrealized_conversion_cast of one",
    )
)
