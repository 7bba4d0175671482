"""The matrix engine's operations on x4 containers: quantization of activations, and the product.

Both are Pure: they compute values and touch no memory. An example in a docstring is a complete module.
"""

# No `from __future__ import annotations` here: the annotations below define the operands and results.
from collections.abc import Sequence
from typing import Any

from mx_dialect import neuron_scalar, scalar
from mx_dialect._mlir import ext, ir
from mx_dialect.dialect import Mx
from mx_dialect.layouts.neuron import LANES
from mx_dialect.layouts.neuron_reference import ACTIVATION_TYPES, MAX_MOVING, MAX_STATIONARY
from mx_dialect.layouts.neuron_scales import PARTITIONS, PARTITIONS_PER_SCALE, QUADRANT
from mx_dialect.neuron_types import X4Type
from mx_dialect.neuron_verification import (
    container_type,
    containers,
    number,
    partition_offset,
    require_partitions,
    require_scale_tile,
    static_shape,
    unit,
    word,
)
from mx_dialect.verification import float_tensor, only_attributes, require, verifier

ROLES = ("stationary", "moving")


class QuantizeMxOp(Mx.Operation, name="quantize_mx", traits=[ext.Pure]):
    """Quantize activations to FP8 containers: one scale for 8 partitions x 4 elements, which become a container each.

    The scale's code is the largest biased exponent of the 32 values less that of the format's largest value (8 for
    f8E4M3FN, 15 for f8E5M2), at least 0; subnormals have exponent 0. Elements are the values divided by the scale,
    clipped and rounded to nearest even. With `headroom` 1 scales are twice as large, as on hardware that lets no
    element saturate.

    Scales of P <= 32 partitions may be dense, P/8 rows. Others lie in quadrants of 32 partitions, row s at partition
    32 * (s // 4) + s % 4 + `scale_offset` (0, 4, 8 or 12, 0 if it is not there), with zeros elsewhere.

    | value    | type                                                                      |
    |----------|---------------------------------------------------------------------------|
    | input    | tensor of f32, f16 or bf16: [P, 4F]                                       |
    | data     | tensor of x4 containers of f8E4M3FN or f8E5M2: [P, F]                     |
    | scale    | tensor of ui8 or i8: [P/8, F] if P <= 32, or [S, F] with P <= S <= 128    |

    Errors: containers of FP4, P that is no multiple of 8 or above 128, another shape, scales that do not fit, headroom
    other than 0 or 1.

    ```mlir
    func.func @quantize(%x: tensor<128x64xbf16>) -> (tensor<128x16x!mx.x4<f8E4M3FN>>, tensor<128x16xui8>) {
      %0:2 = mx.quantize_mx %x {headroom = 1} : tensor<128x64xbf16> -> (tensor<128x16x!mx.x4<f8E4M3FN>>, tensor<128x16xui8>)
      return %0#0, %0#1 : tensor<128x16x!mx.x4<f8E4M3FN>>, tensor<128x16xui8>
    }
    ```
    """

    input: ext.Operand[Any]
    data: ext.Result[Any]
    scale: ext.Result[Any]

    # The meaning for one group, the scale from the largest magnitude; for one element, the element from the scale, and
    # the container that it is put in.
    scale_body = staticmethod(neuron_scalar.group_scale)
    body = staticmethod(neuron_scalar.quantized_lane)
    lane_body = staticmethod(neuron_scalar.with_lane)

    @property
    def headroom(self) -> int:
        """Return by how many powers of two scales are larger."""
        return number(self, "headroom", (0, 1), default=0)

    @property
    def scale_offset(self) -> int:
        """Return where in a quadrant the scales begin."""
        return partition_offset(self, "scale_offset")

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self, "headroom", "scale_offset")
        number(self, "headroom", (0, 1), default=0)
        source, data = float_tensor(self.input, "input"), containers(self.data, "data", 2)
        element = container_type(data, "data").format.mlir
        require(
            element in ACTIVATION_TYPES,
            f"activations are FP8, {' or '.join(sorted(ACTIVATION_TYPES))}, but data '{data}' holds {element}; only"
            " weights may be FP4",
        )
        require(source.rank == 2, f"input must have rank 2, but is '{source}'")
        partitions, extent = static_shape(source, "input")
        require_partitions(partitions, "input")
        require(extent % LANES == 0, f"the columns of input '{source}' must be a multiple of {LANES}")
        expected = [partitions, extent // LANES]
        require(list(data.shape) == expected, f"data '{data}' must have shape {expected}")
        offset = partition_offset(self, "scale_offset")
        require_scale_tile(self.scale, "scale", partitions, extent // LANES, offset)


class NcMatmulMxOp(Mx.Operation, name="nc_matmul_mx", traits=[ext.Pure]):
    """Multiply stationary and moving containers with their scales, summed over partitions and lanes.

    Element (i, j) is the sum over partitions k and lanes q of stationary[k, i, q] * 2^(ss - 127) times
    moving[k, j, q] * 2^(ms - 127), with the scale codes ss and ms of k's group of 8 partitions. Products are exact
    unless they leave f32's range, sums are in f32 in no promised order. With `accumulate` the product is added to dst;
    without, it replaces it.

    `weights` says which operand they are: stationary in a gate and up projection, moving in a down projection. Weights
    may be FP4, the other operand holds activations, which are FP8 always. Scales lie as `mx.quantize_mx` describes,
    each at a partition offset of its own.

    | value                   | type                                                                        |
    |-------------------------|-----------------------------------------------------------------------------|
    | dst                     | tensor of f32: [M, N]                                                       |
    | stationary              | tensor of x4 containers: [P, M], P <= 128 a multiple of 8, M <= 128 even    |
    | moving                  | tensor of x4 containers: [P, N], N <= 512                                   |
    | stationary_scale        | tensor of ui8 or i8: [P/8, M] if P <= 32, or [S, M] with P <= S <= 128      |
    | moving_scale            | tensor of ui8 or i8: [P/8, N] if P <= 32, or [S, N] with P <= S <= 128      |
    | weights                 | string: stationary or moving                                                |
    | result                  | the type of dst                                                             |

    The attributes `stationary_scale_offset` and `moving_scale_offset` are 0, 4, 8 or 12, and 0 if they are not there.

    Errors: activations of FP4, partitions or columns out of range, an odd number of stationary columns, shapes or
    scales that do not fit, another role or offset.

    ```mlir
    func.func @matmul(%w: tensor<128x64x!mx.x4<f4E2M1FN>>, %x: tensor<128x16x!mx.x4<f8E4M3FN>>, %ws: tensor<128x64xui8>, %xs: tensor<128x16xui8>, %acc: tensor<64x16xf32>) -> tensor<64x16xf32> {
      %0 = mx.nc_matmul_mx %acc, %w, %x, %ws, %xs {accumulate, weights = "stationary"} : tensor<64x16xf32>, tensor<128x64x!mx.x4<f4E2M1FN>>, tensor<128x16x!mx.x4<f8E4M3FN>>, tensor<128x64xui8>, tensor<128x16xui8> -> tensor<64x16xf32>
      return %0 : tensor<64x16xf32>
    }
    ```
    """

    dst: ext.Operand[Any]
    stationary: ext.Operand[Any]
    moving: ext.Operand[Any]
    stationary_scale: ext.Operand[Any]
    moving_scale: ext.Operand[Any]
    weights: ir.StringAttr
    output: ext.Result[Any]

    # The meaning for one lane of an operand, and for one pair of lanes.
    lane_body = staticmethod(neuron_scalar.lane_value)
    body = staticmethod(scalar.multiply_add)

    @property
    def accumulate(self) -> bool:
        """Tell whether the product is added to dst."""
        return unit(self, "accumulate")

    def scale_offset(self, role: str) -> int:
        """Return where in a quadrant the scales of the stationary or the moving operand begin."""
        return partition_offset(self, f"{role}_scale_offset")

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self, "accumulate", "weights", *(f"{role}_scale_offset" for role in ROLES))
        unit(self, "accumulate")
        types = [containers(value, role, 2) for role, value in zip(ROLES, (self.stationary, self.moving), strict=True)]
        _require_fp8_activations(types, word(self, "weights", ROLES))
        partitions, rows, columns = _product_extents(*types)
        for role, value, extent in zip(ROLES, (self.stationary_scale, self.moving_scale), (rows, columns), strict=True):
            offset = partition_offset(self, f"{role}_scale_offset")
            require_scale_tile(value, f"{role}_scale", partitions, extent, offset)
        dst = float_tensor(self.dst, "dst", ("f32",))
        require(list(dst.shape) == [rows, columns], f"dst '{dst}' must have shape {[rows, columns]}")
        require(self.output.type == dst, f"result must have the type of dst, '{dst}', but is '{self.output.type}'")


def _require_fp8_activations(types: Sequence[Any], weights: str) -> None:
    """Require FP8 in the operand that is not the weights."""
    for role, type_ in zip(ROLES, types, strict=True):
        require(
            role == weights or container_type(type_, role).format.mlir in ACTIVATION_TYPES,
            f"{role} holds activations, which are FP8 always, but is '{type_}'; only the weights, {weights}, may be FP4",
        )


def _product_extents(stationary: Any, moving: Any) -> tuple[int, int, int]:
    """Return the partitions, the stationary and the moving columns, which the engine must have room for."""
    partitions, rows = static_shape(stationary, "stationary")
    others, columns = static_shape(moving, "moving")
    require_partitions(partitions, "stationary")
    require(partitions == others, f"stationary has {partitions} partitions and moving {others}")
    require(0 < rows <= MAX_STATIONARY, f"stationary has {rows} columns; there are at most {MAX_STATIONARY}")
    require(rows % 2 == 0, f"stationary has {rows} columns; their number must be even")
    require(0 < columns <= MAX_MOVING, f"moving has {columns} columns; there are at most {MAX_MOVING}")
    return partitions, rows, columns


def quantize_mx(
    input: Any,
    element_type: Any,
    headroom: int = 0,
    scale_partitions: int | None = None,
    scale_offset: int = 0,
    *,
    loc: Any = None,
    ip: Any = None,
) -> tuple[Any, Any]:
    """Build `mx.quantize_mx` and return the containers and their scales, ui8.

    Scales are dense if there are at most 32 partitions and `scale_partitions` does not ask for more.

    Raises:
        MxError: there are no containers of the element type.
    """
    partitions, extent = input.type.shape
    dense = partitions // PARTITIONS_PER_SCALE if partitions <= QUADRANT else PARTITIONS
    rows = dense if scale_partitions is None else scale_partitions
    columns = extent // LANES
    data = ir.RankedTensorType.get([partitions, columns], X4Type.get(element_type))
    scale = ir.RankedTensorType.get([rows, columns], ir.IntegerType.get_unsigned(8))
    op = QuantizeMxOp(input, data, scale, loc=loc, ip=ip)
    _set_numbers(op, headroom=headroom, scale_offset=scale_offset)
    return op.data, op.scale


def nc_matmul_mx(
    dst: Any,
    stationary: Any,
    moving: Any,
    stationary_scale: Any,
    moving_scale: Any,
    weights: str,
    accumulate: bool = False,
    stationary_scale_offset: int = 0,
    moving_scale_offset: int = 0,
    *,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """Build `mx.nc_matmul_mx` and return the product, with dst added if `accumulate` is true."""
    role = ir.StringAttr.get(weights)
    op = NcMatmulMxOp(dst, stationary, moving, stationary_scale, moving_scale, role, dst.type, loc=loc, ip=ip)
    if accumulate:
        op.operation.attributes["accumulate"] = ir.UnitAttr.get()
    _set_numbers(op, stationary_scale_offset=stationary_scale_offset, moving_scale_offset=moving_scale_offset)
    return op.output


def _set_numbers(op: Any, **numbers: int) -> None:
    """Set the attributes that are not 0."""
    i64 = ir.IntegerType.get_signless(64)
    for name, value in numbers.items():
        if value:
            op.operation.attributes[name] = ir.IntegerAttr.get(i64, value)
