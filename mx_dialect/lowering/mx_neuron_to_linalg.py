"""`mx-neuron-to-linalg`: from Neuron-style operations on x4 containers to linalg on signless integers.

A container becomes an i16 or i32 everywhere, function boundaries and control flow included, and so does an unsigned
integer become a signless one. A view of integers as containers becomes nothing, the choice of an expert a slice, a
product one generic that takes each lane by shift and truncation and reads its scale through the quadrants:

    %0 = mx.nc_matmul_mx %dst, %w, %x, %ws, %xs {accumulate, weights = "stationary"} :
        tensor<64x16xf32>, tensor<128x64x!mx.x4<f4E2M1FN>>, tensor<128x16x!mx.x4<f8E4M3FN>>, ...

becomes

    %dense = linalg.generic {indexing_maps = [(s, m) -> ((s floordiv 4) * 32 + s mod 4, m), (s, m) -> (s, m)], ...}
        ins(%ws : tensor<128x64xi8>) outs(... : tensor<16x64xi8>)
    ...
    %0 = linalg.generic {indexing_maps = [(m, n, p, q) -> (p, m), (m, n, p, q) -> (p floordiv 8, m), ...]}
        ins(%w, %dense, %shifts, ... : tensor<128x64xi16>, tensor<16x64xi8>, tensor<4xi16>, ...) outs(%dst : ...) {
      // (w >> shift) as f4E2M1FN, times its scale, times the same of x, added to dst
    }

so that no byte of a hole is ever read. What depends on data, an expert or an index out of range, is a cf.assert.
"""

from mx_dialect._mlir import ir, rewrite
from mx_dialect.diagnostics import MxError, at
from mx_dialect.lowering import neuron_containers, neuron_matmul, neuron_scales, neuron_signless
from mx_dialect.neuron_expert_ops import LoadDownOp, LoadGateUpOp
from mx_dialect.neuron_qkv_ops import LoadQkvDenseOp, LoadQkvOp
from mx_dialect.passes import NoOptions, Pass, register_pass
from mx_dialect.walk import operations

_PATTERNS = (*neuron_containers.PATTERNS, *neuron_scales.PATTERNS, *neuron_matmul.PATTERNS)

LOAD_PATHS = frozenset(op.OPERATION_NAME for op in (LoadGateUpOp, LoadDownOp, LoadQkvOp, LoadQkvDenseOp))
"""The operations that mx-neuron-expand-load expands before this pass."""
LOWERED = frozenset(op.OPERATION_NAME for op, _ in _PATTERNS)
"""The operations that this pass lowers."""


def run(root: ir.Operation, options: NoOptions) -> None:
    """Lower every Neuron operation and container under `root`.

    Raises:
        MxError: a load path that was not expanded; containers that stand neither in a tensor nor alone.
    """
    with root.context, ir.Location.unknown():
        if not _concerns(root):
            return
        _require_expanded(root)
        types = neuron_signless.SignlessTypes()
        neuron_signless.check(root, types)
        patterns = rewrite.RewritePatternSet()
        for op_class, pattern in _PATTERNS:
            patterns.add(op_class, pattern)
        frozen = patterns.freeze()
        # The walk driver, not the greedy one: nothing is to be folded here, see mx-to-linalg.
        rewrite.walk_and_apply_patterns(root, frozen)
        neuron_signless.retype(root, types)


def _concerns(root: ir.Operation) -> bool:
    """Tell whether there is anything to lower: unsigned integers of other programs stay what they are."""
    names = LOAD_PATHS | LOWERED
    return bool(operations(root, lambda op: op.name in names or neuron_signless.has_containers(op)))


def _require_expanded(root: ir.Operation) -> None:
    left = operations(root, lambda op: op.name in LOAD_PATHS)
    if left:
        message = "op is a load path; run --mx-neuron-expand-load first"
        raise MxError.of(*(at(op, "error", f"'{op.name}' {message}") for op in left))


PASS = register_pass(
    Pass(
        name="mx-neuron-to-linalg",
        summary="Lower Neuron-style operations and x4 containers to linalg on signless integers",
        run=run,
        requires="no load path (mx-neuron-expand-load); x4 containers in tensors only",
        leaves="no Neuron operation, no x4 container, no unsigned integer of up to 32 bits beside them",
    )
)
