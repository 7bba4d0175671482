"""mx-conversions-to-linalg: turn conversions of whole tensors of MX floats into linalg operations, folding nothing.

    %1 = arith.extf %0 : tensor<?x4xf8E8M0FNU> to tensor<?x4xf32>

becomes

    %empty = tensor.empty(%dim) : tensor<?x4xf32>
    %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%0 : tensor<?x4xf8E8M0FNU>) outs(%empty : tensor<?x4xf32>) {
    ^bb0(%in: f8E8M0FNU, %out: f32):
      %2 = arith.extf %in : f8E8M0FNU to f32
      linalg.yield %2 : f32
    } -> tensor<?x4xf32>

so that mx-expand-narrow-floats, which works on scalars and vectors, comes by it. MLIR's convert-elementwise-to-linalg
does the same to every operation of the arith and math dialects, but folds those on constants first, and so makes
infinities of scales that are NaN.
"""

from typing import Any

from mx_dialect import passes
from mx_dialect._mlir import ir
from mx_dialect.generics import PARALLEL, affine_map, dims, empty, extent, generic
from mx_dialect.transforms.narrow_float_conversions import NARROW_FLOATS
from mx_dialect.walk import operations

_CONVERSIONS = ("arith.extf", "arith.truncf", "arith.convertf", "arith.scaling_extf", "arith.scaling_truncf")


def _is_tensor_conversion(op: Any) -> bool:
    if op.name not in _CONVERSIONS or not isinstance(op.results[0].type, ir.RankedTensorType):
        return False
    elements = {str(value.type.element_type) for value in (*op.operands, *op.results)}
    return not elements.isdisjoint(NARROW_FLOATS)


def _to_linalg(op: Any) -> Any:
    """Make the linalg operation that applies a conversion to each element and return its result."""
    inputs, type_ = list(op.operands), op.results[0].type
    attributes = {name: op.attributes[name] for name in op.attributes}

    def convert(*scalars: Any) -> Any:
        return ir.Operation.create(
            op.name, results=[type_.element_type], operands=scalars[:-1], attributes=attributes
        ).result

    return generic(
        inputs,
        empty([extent(inputs[0], axis) for axis in range(type_.rank)], type_.element_type),
        [affine_map(type_.rank, dims(type_.rank))] * (len(inputs) + 1),
        [PARALLEL] * type_.rank,
        convert,
    )


def run(root: Any, options: passes.NoOptions) -> None:
    """Rewrite each conversion under `root` of a tensor of MX floats, in place."""
    with root.context:
        for op in operations(root, _is_tensor_conversion):
            with ir.InsertionPoint(op), op.location:
                converted = _to_linalg(op)
            op.results[0].replace_all_uses_with(converted)
            op.erase()


PASS = passes.register_pass(
    passes.Pass(
        name="mx-conversions-to-linalg",
        summary="Turn conversions of whole tensors of MX floats into linalg operations, without folding any",
        run=run,
        requires="no pass that folds constants has run since scales became constants",
        leaves="no conversion of a tensor from or to an MX float",
    )
)
