"""mx-expand-copies: turn copies between buffers with strides into linalg operations, which lower to loops.

MLIR lowers memref.copy to memcpy where both buffers are contiguous and to a call of `memrefCopy` elsewhere. That
function lives in a C runtime library that Python packages of MLIR do not ship, so

    memref.copy %a, %b : memref<2x4xf32> to memref<2x4xf32, strided<[8, 1]>>

becomes

    linalg.copy ins(%a : memref<2x4xf32>) outs(%b : memref<2x4xf32, strided<[8, 1]>>)

Copies between contiguous buffers stay. The two buffers of a copy must not overlap, unless they are the same.
"""

from typing import Any

from mx_dialect import passes
from mx_dialect._mlir import ir, linalg
from mx_dialect.walk import operations


def _is_contiguous(type_: Any) -> bool:
    return type_.layout == ir.AffineMapAttr.get(ir.AffineMap.get_identity(type_.rank))


def _is_strided_copy(op: Any) -> bool:
    if op.name != "memref.copy" or not all(isinstance(value.type, ir.MemRefType) for value in op.operands):
        return False
    return not all(_is_contiguous(value.type) for value in op.operands)


def run(root: Any, options: passes.NoOptions) -> None:
    """Replace each memref.copy under `root` that involves strides, in place."""
    with root.context:
        for op in operations(root, _is_strided_copy):
            source, target = op.operands
            with ir.InsertionPoint(op), op.location:
                linalg.copy(source, outs=[target])
            op.erase()


PASS = passes.register_pass(
    passes.Pass(
        name="mx-expand-copies",
        summary="Turn copies between buffers with strides into linalg operations",
        run=run,
        requires="buffers (after one-shot-bufferize)",
        leaves="no memref.copy but between contiguous buffers",
    )
)
