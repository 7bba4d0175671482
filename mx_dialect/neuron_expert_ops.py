"""The load paths of an expert's projections: all that a Neuron-style kernel reads of one expert.

Each is a sequence of smaller steps, into which --mx-neuron-expand-load expands it. Both are Pure: they compute values
and touch no memory. An example in a docstring is a complete module. E experts, H hidden and I intermediate features;
the summed axis is cut into tiles of 512 elements, 128 containers each.
"""

# No `from __future__ import annotations` here: the annotations below define the operands and results.
from collections.abc import Sequence
from typing import Any

from mx_dialect._mlir import ext, ir
from mx_dialect.dialect import Mx
from mx_dialect.layouts.neuron import LANES
from mx_dialect.layouts.neuron_scales import PARTITIONS, PARTITIONS_PER_SCALE, SCALE_ROWS
from mx_dialect.layouts.neuron_weights import (
    TILE,
    intermediate_partitions,
    intermediate_tiles,
    require_hidden,
    require_intermediate,
)
from mx_dialect.neuron_load_ops import set_words
from mx_dialect.neuron_ops import loaded_element
from mx_dialect.neuron_verification import (
    OOB_MODES,
    containers,
    follow,
    index_value,
    optional_word,
    plain_tensor,
    require_carried,
    require_shape,
    require_type,
    scale_bytes,
    static_shape,
)
from mx_dialect.tile_verification import numbers
from mx_dialect.verification import float_tensor, only_attributes, require, verifier


class LoadGateUpOp(Mx.Operation, name="load_gate_up", traits=[ext.Pure]):
    """Load the gate and up projection of an expert: weights as containers, scales in quadrants, biases.

    `mx.load_gate_up %w, %s, %b, %e[%i]` begins at intermediate feature %i, a number or an index value; the results say
    how many features are loaded, all or a multiple of 512. The containers' element type is the result's: 16-bit
    integers carry f4E2M1FN, 32-bit integers f8E4M3FN or f8E5M2. An expert or a range that does not exist, or that
    begins inside a tile of 512, is an error when the program runs. `oob_mode` (error, skip) says for the device what a
    missing weight is; it changes no value.

    p_I is I / 4 up to 128, nI512 is the number of tiles of I.

    | value         | type                                                                                     |
    |---------------|------------------------------------------------------------------------------------------|
    | weights       | tensor of ui16, i16, ui32, i32 or x4 containers: [E, 128, 2, H/512, I]                   |
    | scales        | tensor of ui8 or i8: [E, 16, 2, H/512, I]                                                |
    | bias          | tensor of f32, f16 or bf16: [E, p_I, 2, nI512, 4]                                        |
    | expert        | index                                                                                    |
    | shard         | index, one if the entry of static_shard is dynamic                                       |
    | static_shard  | array of i64: one entry, the first intermediate feature                                  |
    | loaded        | tensor of x4 containers: [128, 2, H/512, J], J features of I                             |
    | loaded_scales | tensor of the type of scales: [128, 2, H/512, J]                                         |
    | loaded_bias   | tensor of the type of bias: [p_J, 2, nJ512, 4]                                           |

    Errors: shapes or element types that do not fit, I that is neither a multiple of 512 nor less and one of 32, a range
    that is no whole number of tiles.

    ```mlir
    func.func @load(%w: tensor<8x128x2x1x1024xui16>, %s: tensor<8x16x2x1x1024xui8>, %b: tensor<8x128x2x2x4xf32>, %e: index) -> tensor<128x2x1x512x!mx.x4<f4E2M1FN>> {
      %0:3 = mx.load_gate_up %w, %s, %b, %e[512] {oob_mode = "skip"} : tensor<8x128x2x1x1024xui16>, tensor<8x16x2x1x1024xui8>, tensor<8x128x2x2x4xf32>, index -> (tensor<128x2x1x512x!mx.x4<f4E2M1FN>>, tensor<128x2x1x512xui8>, tensor<128x2x1x4xf32>)
      return %0#0 : tensor<128x2x1x512x!mx.x4<f4E2M1FN>>
    }
    ```
    """

    weights: ext.Operand[Any]
    scales: ext.Operand[Any]
    bias: ext.Operand[Any]
    expert: ext.Operand[Any]
    shard: Sequence[ext.Operand[Any]]
    static_shard: Any
    loaded: ext.Result[Any]
    loaded_scales: ext.Result[Any]
    loaded_bias: ext.Result[Any]

    index_lists = (("shard", "static_shard"),)

    @verifier
    def verify_invariants(self: Any) -> None:
        _verify_common(self)
        weights = plain_tensor(self.weights, "weights", 5)
        scales, bias = scale_bytes(self.scales, "scales", 5), float_tensor(self.bias, "bias")
        experts, _, _, tiles, features = static_shape(weights, "weights", first=1)
        require(tiles > 0, f"weights must have a tile of H or more, but are '{weights}'")
        follow(require_intermediate, features)
        require_shape(weights, "weights", [experts, PARTITIONS, 2, tiles, features], first=1)
        require_shape(scales, "scales", [experts, SCALE_ROWS, 2, tiles, features], first=1)
        require_shape(bias, "bias", [experts, *_bias_shape(features)], first=1)
        loaded = containers(self.loaded, "loaded", 4)
        taken = static_shape(loaded, "loaded")[3]
        _verify_shard(self, taken, features)
        require_carried(weights, loaded)
        require_type(self.loaded, "loaded", [PARTITIONS, 2, tiles, taken], loaded.element_type)
        require_type(self.loaded_scales, "loaded_scales", [PARTITIONS, 2, tiles, taken], scales.element_type)
        require_type(self.loaded_bias, "loaded_bias", _bias_shape(taken), bias.element_type)


class LoadDownOp(Mx.Operation, name="load_down", traits=[ext.Pure]):
    """Load the down projection of an expert: weights as containers, scales in quadrants, biases.

    The containers' element type is that of `gate_up`, the loaded gate and up weights: one kernel has one target type,
    and a gate of FP4 with a down of FP8 is refused. `mx.load_down %w, %s, %b, %e, %g[%i]` begins at intermediate
    feature %i as `mx.load_gate_up` does, which loaded the same range. An expert or a range that does not exist, or that
    begins inside a tile of 512, is an error when the program runs. `oob_mode` is as there.

    p_I is I / 4 up to 128, nI512 is the number of tiles of I.

    | value         | type                                                                                     |
    |---------------|------------------------------------------------------------------------------------------|
    | weights       | tensor of ui16, i16, ui32, i32 or x4 containers: [E, p_I, nI512, H]                      |
    | scales        | tensor of ui8 or i8: [E, p_I/8, nI512, H]                                                |
    | bias          | tensor of f32, f16 or bf16: [E, H]                                                       |
    | expert        | index                                                                                    |
    | gate_up       | tensor of x4 containers: [128, 2, H/512, J], J features of I                             |
    | shard         | index, one if the entry of static_shard is dynamic                                       |
    | static_shard  | array of i64: one entry, the first intermediate feature                                  |
    | loaded        | tensor of x4 containers of the type of gate_up: [p_J, nJ512, H]                          |
    | loaded_scales | tensor of the type of scales: [128, nJ512, H]                                            |
    | loaded_bias   | tensor of the type of bias: [H]                                                          |

    Errors: containers of another type than those of gate_up, shapes or element types that do not fit, p_I or H that
    break the rules, a range that is no whole number of tiles.

    ```mlir
    func.func @load(%w: tensor<8x48x1x512xui16>, %s: tensor<8x6x1x512xui8>, %b: tensor<8x512xf32>, %e: index, %g: tensor<128x2x1x192x!mx.x4<f4E2M1FN>>) -> tensor<48x1x512x!mx.x4<f4E2M1FN>> {
      %0:3 = mx.load_down %w, %s, %b, %e, %g[0] : tensor<8x48x1x512xui16>, tensor<8x6x1x512xui8>, tensor<8x512xf32>, index, tensor<128x2x1x192x!mx.x4<f4E2M1FN>> -> (tensor<48x1x512x!mx.x4<f4E2M1FN>>, tensor<128x1x512xui8>, tensor<512xf32>)
      return %0#0 : tensor<48x1x512x!mx.x4<f4E2M1FN>>
    }
    ```
    """

    weights: ext.Operand[Any]
    scales: ext.Operand[Any]
    bias: ext.Operand[Any]
    expert: ext.Operand[Any]
    gate_up: ext.Operand[Any]
    shard: Sequence[ext.Operand[Any]]
    static_shard: Any
    loaded: ext.Result[Any]
    loaded_scales: ext.Result[Any]
    loaded_bias: ext.Result[Any]

    index_lists = (("shard", "static_shard"),)

    @verifier
    def verify_invariants(self: Any) -> None:
        _verify_common(self)
        weights = plain_tensor(self.weights, "weights", 4)
        scales, bias = scale_bytes(self.scales, "scales", 4), float_tensor(self.bias, "bias")
        experts, partitions, tiles, hidden = static_shape(weights, "weights", first=1)
        follow(require_hidden, hidden)
        features = LANES * partitions * tiles
        follow(require_intermediate, features)
        expected = intermediate_partitions(features)
        require(
            partitions == expected,
            f"weights must have p_I = {expected} partitions for I = {features}, but are '{weights}'",
        )
        require_shape(scales, "scales", [experts, partitions // PARTITIONS_PER_SCALE, tiles, hidden], first=1)
        require_shape(bias, "bias", [experts, hidden], first=1)
        gate_up = containers(self.gate_up, "gate_up", 4)
        taken = static_shape(gate_up, "gate_up")[3]
        require_type(self.gate_up, "gate_up", [PARTITIONS, 2, hidden // TILE, taken], gate_up.element_type)
        loaded = containers(self.loaded, "loaded", 3)
        _require_inherited(weights, loaded, gate_up)
        _verify_shard(self, taken, features)
        shape = [intermediate_partitions(taken), intermediate_tiles(taken), hidden]
        require_type(self.loaded, "loaded", shape, loaded.element_type)
        require_type(self.loaded_scales, "loaded_scales", [PARTITIONS, *shape[1:]], scales.element_type)
        require_type(self.loaded_bias, "loaded_bias", [hidden], bias.element_type)


def _verify_common(op: Any) -> None:
    only_attributes(op, "static_shard", "oob_mode")
    optional_word(op, "oob_mode", OOB_MODES)
    index_value(op.expert, "expert")


def _bias_shape(features: int) -> list[int]:
    return [intermediate_partitions(features), 2, intermediate_tiles(features), LANES]


def _verify_shard(op: Any, taken: int, features: int) -> None:
    """Require a range of intermediate features that is all of them or whole tiles."""
    (offset,) = numbers(op, "shard", 1)
    is_whole = taken == features or (taken > 0 and taken % TILE == 0)
    require(is_whole, f"loads {taken} of {features} features; a part must be a multiple of {TILE}")
    require((offset or 0) % TILE == 0, f"a range begins at a multiple of {TILE}, not at feature {offset}")
    require((offset or 0) + taken <= features, f"{taken} features from {offset or 0} on leave the {features} there are")


def _require_inherited(weights: Any, loaded: Any, gate_up: Any) -> None:
    """Require the containers of the gate and up weights."""
    inherited, found = gate_up.element_type.format.mlir, loaded.element_type.format.mlir
    require(
        inherited == found,
        f"the target type, {inherited}, is inherited from gate_up, but loaded holds {found}; one kernel cannot mix them",
    )
    require_carried(weights, loaded)


def load_gate_up(
    weights: Any,
    scales: Any,
    bias: Any,
    expert: Any,
    target: Any = None,
    offset: Any = 0,
    size: int | None = None,
    oob_mode: str | None = None,
    *,
    loc: Any = None,
    ip: Any = None,
) -> tuple[Any, Any, Any]:
    """Build `mx.load_gate_up` of `size` features, all by default, from `offset`, an int or an index value, on.

    `target` is the element type of the containers; by default the one that the weights' integers carry.

    Raises:
        MxError: the weights carry no containers, or there are none of the target type.
    """
    *_, tiles, features = weights.type.shape
    taken = features if size is None else size
    element = loaded_element(weights.type.element_type, target)
    shape = [PARTITIONS, 2, tiles, taken]
    results = (
        ir.RankedTensorType.get(shape, element),
        ir.RankedTensorType.get(shape, scales.type.element_type),
        ir.RankedTensorType.get(_bias_shape(taken), bias.type.element_type),
    )
    op = LoadGateUpOp(weights, scales, bias, expert, *_shard(offset), *results, loc=loc, ip=ip)
    set_words(op, oob_mode=oob_mode)
    return op.loaded, op.loaded_scales, op.loaded_bias


def load_down(
    weights: Any,
    scales: Any,
    bias: Any,
    expert: Any,
    gate_up: Any,
    offset: Any = 0,
    oob_mode: str | None = None,
    *,
    loc: Any = None,
    ip: Any = None,
) -> tuple[Any, Any, Any]:
    """Build `mx.load_down` of the features that `gate_up` has, from `offset`, an int or an index value, on."""
    hidden = weights.type.shape[3]
    taken = gate_up.type.shape[3]
    shape = [intermediate_partitions(taken), intermediate_tiles(taken), hidden]
    results = (
        ir.RankedTensorType.get(shape, gate_up.type.element_type),
        ir.RankedTensorType.get([PARTITIONS, *shape[1:]], scales.type.element_type),
        ir.RankedTensorType.get([hidden], bias.type.element_type),
    )
    op = LoadDownOp(weights, scales, bias, expert, gate_up, *_shard(offset), *results, loc=loc, ip=ip)
    set_words(op, oob_mode=oob_mode)
    return op.loaded, op.loaded_scales, op.loaded_bias


def _shard(offset: Any) -> tuple[list[Any], Any]:
    is_static = isinstance(offset, int)
    static = ir.DenseI64ArrayAttr.get([offset if is_static else ir.ShapedType.get_dynamic_size()])
    return [] if is_static else [offset], static
