"""mx-expand-negate: change sign bits where the dialect negates.

Template of a pass. It goes to mx_dialect/transforms/mx_expand_negate.py, and its name into `_BUILTIN` of passes.py.
No later pass knows `mx.negate`, so

    %0 = mx.negate %x : <32x64xf8E4M3FN, ...> -> <32x64xf8E4M3FN, ...>

becomes

    %m, %s = mx.decompose %x : ...
    %bits = arith.bitcast %m : tensor<32x64xf8E4M3FN> to tensor<32x64xi8>
    %flipped = arith.xori %bits, %signs : tensor<32x64xi8>
    %n = arith.bitcast %flipped : tensor<32x64xi8> to tensor<32x64xf8E4M3FN>
    %0 = mx.compose %n, %s : ...

Extents have to be static, for the constant of sign bits has a shape.
"""

from typing import Any

from mx_dialect import passes
from mx_dialect._mlir import arith, ir
from mx_dialect.diagnostics import error_at
from mx_dialect.negate_ops import NegateOp
from mx_dialect.ops import ComposeOp, decompose
from mx_dialect.walk import operations

_SIGN = -128
"""The sign bit of a code of eight bits, as a signed integer."""


def _is_negate(op: Any) -> bool:
    return isinstance(op.opview, NegateOp)


def _flipped(mantissa: Any) -> Any:
    """Return a tensor of codes with other signs."""
    bits_type = ir.RankedTensorType.get(mantissa.type.shape, ir.IntegerType.get_signless(8))
    sign = ir.IntegerAttr.get(bits_type.element_type, _SIGN)
    signs = arith.constant(bits_type, ir.DenseElementsAttr.get_splat(bits_type, sign))
    return arith.bitcast(mantissa.type, arith.xori(arith.bitcast(bits_type, mantissa), signs))


def run(root: Any, options: passes.NoOptions) -> None:
    """Replace each mx.negate under `root`, in place.

    Raises:
        MxError: a tensor with open extents.
    """
    with root.context:
        found = operations(root, _is_negate)
        for op in found:
            if not op.opview.input.type.mantissa_type.has_static_shape:
                raise error_at(op, "'mx.negate' op has open extents; run --mx-expand-negate where all are static")
        for op in found:
            value = op.opview.input
            with ir.InsertionPoint(op), op.location:
                mantissa, scale = decompose(value)
                whole = ComposeOp(_flipped(mantissa), scale, value.type)
            op.result.replace_all_uses_with(whole.output)
            op.erase()


PASS = passes.register_pass(
    passes.Pass(
        name="mx-expand-negate",
        summary="Change sign bits where the dialect negates",
        run=run,
        requires="static extents of what is negated",
        leaves="no mx.negate",
    )
)
