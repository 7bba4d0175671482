"""The load paths of a QKV projection, and the rule which layout of the weights they demand.

Both are sequences of smaller steps, into which --mx-neuron-expand-load expands them, and Pure: they compute values and
touch no memory. An example in a docstring is a complete module.
"""

# No `from __future__ import annotations` here: the annotations below define the operands and results.
from typing import Any

from mx_dialect._mlir import ext, ir
from mx_dialect.dialect import Mx
from mx_dialect.layouts.neuron import LANES, MX_CONTIGUOUS, MX_INTERLEAVED
from mx_dialect.layouts.neuron_scales import BLOCK_SIZE, PARTITIONS
from mx_dialect.layouts.neuron_weights import require_hidden
from mx_dialect.neuron_ops import FP8_TYPES, loaded_element
from mx_dialect.neuron_verification import (
    containers,
    follow,
    plain_tensor,
    require_carried,
    require_shape,
    require_type,
    scale_bytes,
    static_shape,
    unit,
    word,
)
from mx_dialect.verification import FLOAT_TYPES, InvalidOperation, float_tensor, only_attributes, require, verifier

CONTIGUOUS = "CONTIGUOUS"
QKV_LAYOUTS = (CONTIGUOUS, MX_CONTIGUOUS, MX_INTERLEAVED)


class LoadQkvOp(Mx.Operation, name="load_qkv", traits=[ext.Pure]):
    """Load the MX weights and scales of a QKV projection, as tiles of 128 partitions.

    `layout` says how the weights are packed, and must be the one that the way of the activations demands. `input` is
    their type; a transposing DMA carries FP8, or with the unit attribute `input_scale` and in MX_INTERLEAVED floats
    that are quantized afterwards, if the unit attribute `dma_transpose` asks for it. Then the weights must be in
    MX_INTERLEAVED, otherwise in MX_CONTIGUOUS. Nothing is permuted when the program runs.

    | value         | type                                                                                     |
    |---------------|------------------------------------------------------------------------------------------|
    | weights       | tensor of ui16, i16, ui32, i32 or x4 containers: [H/4, I]                                |
    | scales        | tensor of ui8 or i8: [H/32, I]                                                           |
    | layout        | string: MX_CONTIGUOUS or MX_INTERLEAVED                                                  |
    | input         | type: f8E4M3FN, f8E5M2, f32, f16 or bf16                                                 |
    | loaded        | tensor of x4 containers: [128, H/512, I], row 128t + p at partition p of tile t          |
    | loaded_scales | tensor of the type of scales: [128, H/512, I], in quadrants                              |

    Errors: another layout than the path demands, another input type, H that is no multiple of 512, shapes or element
    types that do not fit.

    ```mlir
    func.func @load(%w: tensor<256x96xui32>, %s: tensor<32x96xui8>) -> tensor<128x2x96x!mx.x4<f8E4M3FN>> {
      %0:2 = mx.load_qkv %w, %s {layout = "MX_INTERLEAVED", input = bf16, input_scale, dma_transpose} : tensor<256x96xui32>, tensor<32x96xui8> -> (tensor<128x2x96x!mx.x4<f8E4M3FN>>, tensor<128x2x96xui8>)
      return %0#0 : tensor<128x2x96x!mx.x4<f8E4M3FN>>
    }
    ```
    """

    weights: ext.Operand[Any]
    scales: ext.Operand[Any]
    layout: ir.StringAttr
    input: ir.TypeAttr
    loaded: ext.Result[Any]
    loaded_scales: ext.Result[Any]

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self, "layout", "input", "input_scale", "dma_transpose")
        layout = word(self, "layout", QKV_LAYOUTS)
        input_type = _input_type(self)
        _require_layout(
            layout,
            demanded_layout(
                input_type, layout, input_scale=unit(self, "input_scale"), dma_transpose=unit(self, "dma_transpose")
            ),
        )
        weights, scales = plain_tensor(self.weights, "weights", 2), scale_bytes(self.scales, "scales", 2)
        rows, columns = static_shape(weights, "weights")
        follow(require_hidden, rows * LANES)
        require_shape(scales, "scales", [rows * LANES // BLOCK_SIZE, columns])
        loaded = containers(self.loaded, "loaded", 3)
        require_carried(weights, loaded)
        shape = [PARTITIONS, rows // PARTITIONS, columns]
        require_type(self.loaded, "loaded", shape, loaded.element_type)
        require_type(self.loaded_scales, "loaded_scales", shape, scales.element_type)


class LoadQkvDenseOp(Mx.Operation, name="load_qkv_dense", traits=[ext.Pure]):
    """Load the weights of a QKV projection that is not quantized, as tiles of 128 partitions.

    | value         | type                                                                                     |
    |---------------|------------------------------------------------------------------------------------------|
    | weights       | tensor of f32, f16 or bf16: [H, I]                                                       |
    | layout        | string: CONTIGUOUS, rows in their order                                                  |
    | loaded        | tensor of the type of weights: [128, H/128, I], row 128t + p at partition p of tile t    |

    Errors: another layout, H that is no multiple of 128, another shape or element type.

    ```mlir
    func.func @load(%w: tensor<256x96xbf16>) -> tensor<128x2x96xbf16> {
      %0 = mx.load_qkv_dense %w {layout = "CONTIGUOUS"} : tensor<256x96xbf16> -> tensor<128x2x96xbf16>
      return %0 : tensor<128x2x96xbf16>
    }
    ```
    """

    weights: ext.Operand[Any]
    layout: ir.StringAttr
    loaded: ext.Result[Any]

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self, "layout")
        _require_layout(word(self, "layout", QKV_LAYOUTS), CONTIGUOUS)
        weights = float_tensor(self.weights, "weights")
        require(weights.rank == 2, f"weights must have rank 2, but are '{weights}'")
        rows, columns = static_shape(weights, "weights")
        whole = rows > 0 and rows % PARTITIONS == 0
        require(whole, f"H must be a multiple of {PARTITIONS}, but weights are '{weights}'")
        require_type(self.loaded, "loaded", [PARTITIONS, rows // PARTITIONS, columns], weights.element_type)


def demanded_layout(input_type: str, layout: str, *, input_scale: bool, dma_transpose: bool) -> str:
    """Return the weight layout that a QKV path of MX weights demands.

    The layout that is given matters where both ways are open: floats with a scale are transposed by DMA if the weights
    are made for it.
    """
    is_carried = input_type in FP8_TYPES or (input_scale and layout == MX_INTERLEAVED)
    return MX_INTERLEAVED if is_carried and dma_transpose else MX_CONTIGUOUS


def _require_layout(layout: str, demanded: str) -> None:
    require(
        layout == demanded,
        f"weights are packed in layout {layout}, but this path demands {demanded}; pack them so, nothing is permuted when"
        " the program runs",
    )


def _input_type(op: Any) -> str:
    attribute = op.operation.attributes["input"]
    known = (*FP8_TYPES, *FLOAT_TYPES)
    if isinstance(attribute, ir.TypeAttr) and str(attribute.value) in known:
        return str(attribute.value)
    raise InvalidOperation(f"input must be one of {', '.join(known)}, but is {attribute}")


def load_qkv(
    weights: Any,
    scales: Any,
    layout: str,
    input_type: Any,
    target: Any = None,
    input_scale: bool = False,
    dma_transpose: bool = False,
    *,
    loc: Any = None,
    ip: Any = None,
) -> tuple[Any, Any]:
    """Build `mx.load_qkv` and return the tiles of containers and of scales.

    Raises:
        MxError: the weights carry no containers, or there are none of the target type.
    """
    rows, columns = weights.type.shape
    shape = [PARTITIONS, rows // PARTITIONS, columns]
    results = (
        ir.RankedTensorType.get(shape, loaded_element(weights.type.element_type, target)),
        ir.RankedTensorType.get(shape, scales.type.element_type),
    )
    attributes = ir.StringAttr.get(layout), ir.TypeAttr.get(input_type)
    op = LoadQkvOp(weights, scales, *attributes, *results, loc=loc, ip=ip)
    for name, is_set in (("input_scale", input_scale), ("dma_transpose", dma_transpose)):
        if is_set:
            op.operation.attributes[name] = ir.UnitAttr.get()
    return op.loaded, op.loaded_scales


def load_qkv_dense(weights: Any, layout: str, *, loc: Any = None, ip: Any = None) -> Any:
    """Build `mx.load_qkv_dense` and return the tiles."""
    rows, columns = weights.type.shape
    result = ir.RankedTensorType.get([PARTITIONS, rows // PARTITIONS, columns], weights.type.element_type)
    return LoadQkvDenseOp(weights, ir.StringAttr.get(layout), result, loc=loc, ip=ip).loaded
