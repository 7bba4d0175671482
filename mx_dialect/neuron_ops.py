"""Operations on x4 containers: their view as integers, the layouts of weights and activations in them, partitions.

All are Pure: they compute values and touch no memory. An example in a docstring is a complete module.
"""

# No `from __future__ import annotations` here: the annotations below define the operands and results.
from typing import Any

import numpy as np

from mx_dialect._mlir import ext, ir
from mx_dialect.diagnostics import MxError
from mx_dialect.dialect import Mx
from mx_dialect.layouts.neuron import LANES, WEIGHT_LAYOUTS, container_element
from mx_dialect.layouts.neuron_scales import PARTITIONS
from mx_dialect.neuron_types import X4Type, is_x4
from mx_dialect.neuron_verification import (
    CARRIERS,
    DGE_MODES,
    carried_width,
    container_type,
    containers,
    optional_word,
    plain_tensor,
    require_type,
    static_shape,
    word,
)
from mx_dialect.verification import FLOAT_TYPES, only_attributes, require, verifier

FP8_TYPES = ("f8E4M3FN", "f8E5M2")


class ViewCastOp(Mx.Operation, name="view_cast", traits=[ext.Pure]):
    """See the integers in which a checkpoint carries x4 containers as what they are, or containers as integers.

    Nothing but the type changes: every byte stays, as do shape and strides. 16-bit integers are containers of
    f4E2M1FN, 32-bit integers containers of f8E4M3FN or f8E5M2.

    | value    | type                                                                  |
    |----------|-----------------------------------------------------------------------|
    | input    | tensor of ui16, i16, ui32 or i32, or of x4 containers                 |
    | result   | the same shape, of x4 containers or integers of the same width        |

    Errors: not integers on one side and containers on the other, another integer or float type, another width, shapes
    that differ.

    ```mlir
    func.func @view(%w: tensor<128x64xui16>) -> tensor<128x64x!mx.x4<f4E2M1FN>> {
      %0 = mx.view_cast %w : tensor<128x64xui16> -> tensor<128x64x!mx.x4<f4E2M1FN>>
      return %0 : tensor<128x64x!mx.x4<f4E2M1FN>>
    }
    ```
    """

    input: ext.Operand[Any]
    output: ext.Result[Any]

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self)
        source, result = plain_tensor(self.input, "input"), plain_tensor(self.output, "result")
        widths = carried_width(source, "input"), carried_width(result, "result")
        require(
            is_x4(source.element_type) != is_x4(result.element_type),
            f"views integers as x4 containers or the other way around, but '{source}' and '{result}' are of one kind",
        )
        require(
            widths[0] == widths[1],
            f"a view keeps the width of entries, but those of '{source}' have {widths[0]} bits and those of '{result}'"
            f" {widths[1]}; 16-bit integers carry FP4, 32-bit integers FP8",
        )
        require(list(source.shape) == list(result.shape), f"'{source}' and '{result}' must have one shape")


class PackWeightsOp(Mx.Operation, name="pack_weights", traits=[ext.Pure]):
    """Put the elements of a weight in x4 containers, four rows a container, in one of two layouts.

    With `layout` MX_CONTIGUOUS lane q of container r is row 4r + q. With MX_INTERLEAVED lane 2a + b of container r is
    row a * H/2 + 2r + b, the order of activations that `mx.dma_transpose` leaves.

    | value    | type                                                                                      |
    |----------|-------------------------------------------------------------------------------------------|
    | input    | tensor of i8 codes, upper bits of FP4 ignored, or of the FP8 element type: [H, I]         |
    | layout   | string: MX_CONTIGUOUS or MX_INTERLEAVED                                                   |
    | result   | tensor of x4 containers: [H/4, I]                                                         |

    Errors: another layout, element types that differ, H that is no multiple of 4, another shape.

    ```mlir
    func.func @pack(%w: tensor<512x64xi8>) -> tensor<128x64x!mx.x4<f4E2M1FN>> {
      %0 = mx.pack_weights %w {layout = "MX_INTERLEAVED"} : tensor<512x64xi8> -> tensor<128x64x!mx.x4<f4E2M1FN>>
      return %0 : tensor<128x64x!mx.x4<f4E2M1FN>>
    }
    ```
    """

    input: ext.Operand[Any]
    layout: ir.StringAttr
    output: ext.Result[Any]

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self, "layout")
        word(self, "layout", WEIGHT_LAYOUTS)
        source, result = plain_tensor(self.input, "input", 2), containers(self.output, "result", 2)
        _require_elements(source, container_type(result, "result"))
        rows, columns = static_shape(source, "input")
        _require_containers(rows, "the rows of input")
        expected = [rows // LANES, columns]
        require(list(result.shape) == expected, f"result '{result}' must have shape {expected}, a container for 4 rows")


class DmaTransposeOp(Mx.Operation, name="dma_transpose", traits=[ext.Pure]):
    """Transpose activations so that features lie on partitions, swizzled the way a transposing DMA does.

    Lane 2a + b of container (r, t) is feature a * H/2 + 2r + b of token t, which meets weights in MX_INTERLEAVED. FP8
    becomes containers; floats, which `mx.quantize_mx` makes containers of, lie where their lanes will be: lane q of
    container (r, t) is element (r, 4t + q).

    | value    | type                                                                       |
    |----------|----------------------------------------------------------------------------|
    | input    | tensor of f8E4M3FN, f8E5M2, f32, f16 or bf16: [T, H]                       |
    | result   | x4 containers of the FP8 type: [H/4, T], or the float type: [H/4, 4T]      |

    Errors: another element type, H that is no multiple of 4, another shape.

    ```mlir
    func.func @transpose(%x: tensor<16x512xbf16>) -> tensor<128x64xbf16> {
      %0 = mx.dma_transpose %x : tensor<16x512xbf16> -> tensor<128x64xbf16>
      return %0 : tensor<128x64xbf16>
    }
    ```
    """

    input: ext.Operand[Any]
    output: ext.Result[Any]

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self)
        source, result = plain_tensor(self.input, "input", 2), plain_tensor(self.output, "result", 2)
        element = str(source.element_type)
        elements = (*FP8_TYPES, *FLOAT_TYPES)
        require(element in elements, f"input must hold {', '.join(elements)}, but is '{source}'")
        tokens, features = static_shape(source, "input")
        _require_containers(features, "the features of input")
        if element in FP8_TYPES:
            found = container_type(result, "result").format.mlir
            require(found == element, f"result must hold x4 containers of {element}, but is '{result}'")
            expected = [features // LANES, tokens]
        else:
            require(result.element_type == source.element_type, f"result must hold {element}, but is '{result}'")
            expected = [features // LANES, LANES * tokens]
        require(list(result.shape) == expected, f"result '{result}' must have shape {expected}")


class PartitionRowsOp(Mx.Operation, name="partition_rows", traits=[ext.Pure]):
    """Lay the rows of a tensor on 128 partitions: row 128t + p becomes partition p of tile t.

    `dge_mode` (hwdge, swdge) is kept for the device; it changes no value.

    | value    | type                                                        |
    |----------|-------------------------------------------------------------|
    | input    | tensor of rank 1 or more: [128 * T, ...]                    |
    | result   | tensor of the same element type: [128, T, ...]              |

    Errors: rows that are no multiple of 128, another shape or element type.

    ```mlir
    func.func @tiles(%w: tensor<512x64x!mx.x4<f8E4M3FN>>) -> tensor<128x4x64x!mx.x4<f8E4M3FN>> {
      %0 = mx.partition_rows %w {dge_mode = "swdge"} : tensor<512x64x!mx.x4<f8E4M3FN>> -> tensor<128x4x64x!mx.x4<f8E4M3FN>>
      return %0 : tensor<128x4x64x!mx.x4<f8E4M3FN>>
    }
    ```
    """

    input: ext.Operand[Any]
    output: ext.Result[Any]

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self, "dge_mode")
        optional_word(self, "dge_mode", DGE_MODES)
        source = plain_tensor(self.input, "input")
        require(source.rank >= 1, f"input must have rank 1 or more, but is '{source}'")
        rows, *rest = static_shape(source, "input")
        require(
            rows > 0 and rows % PARTITIONS == 0,
            f"the rows of input, {rows}, must fill {PARTITIONS} partitions a whole number of times",
        )
        require_type(self.output, "result", [PARTITIONS, rows // PARTITIONS, *rest], source.element_type)


def _require_elements(source: Any, type_: X4Type) -> None:
    """Require elements of the type that containers hold, or i8 codes of it."""
    name = type_.format.mlir
    expected = (name, "i8") if name in FP8_TYPES else ("i8",)
    require(
        str(source.element_type) in expected,
        f"input must hold {' or '.join(expected)} for containers of {name}, but is '{source}'",
    )


def _require_containers(extent: int, what: str) -> None:
    require(
        extent > 0 and extent % LANES == 0,
        f"{what}, {extent}, must be a positive multiple of {LANES}, a container's lanes",
    )


def view_cast(input: Any, target: Any = None, *, loc: Any = None, ip: Any = None) -> Any:
    """Build `mx.view_cast` of integers to containers, or of containers to integers, and return the view.

    `target` is the element type of the containers or the integer type; by default 16-bit integers become f4E2M1FN,
    32-bit integers f8E4M3FN and containers signless integers.

    Raises:
        MxError: the input carries no containers, or there are none of the target type.
    """
    source = input.type.element_type
    if is_x4(source):
        element = ir.IntegerType.get_signless(source.width) if target is None else target
    else:
        element = X4Type.get(default_target(source) if target is None else target)
    return ViewCastOp(input, ir.RankedTensorType.get(input.type.shape, element), loc=loc, ip=ip).output


def default_target(carrier: Any) -> str:
    """Return the element type of the containers that an integer type carries unless told otherwise.

    Raises:
        MxError: it carries none.
    """
    width = CARRIERS.get(str(carrier))
    element = None if width is None else container_element(np.dtype(f"uint{width}"))
    if element is None:
        raise MxError(f"x4 containers are carried by {', '.join(CARRIERS)}, not {carrier}")
    return element


def loaded_element(element: Any, target: Any) -> Any:
    """Return the container type of loaded weights whose entries are of type `element`, containers or integers.

    Raises:
        MxError: the weights carry no containers, or there are none of the target type.
    """
    if is_x4(element):
        return element
    return X4Type.get(default_target(element) if target is None else target)


def pack_weights(input: Any, layout: str, element_type: Any = None, *, loc: Any = None, ip: Any = None) -> Any:
    """Build `mx.pack_weights` and return the containers; codes, an i8 tensor, need an element type.

    Raises:
        MxError: there are no containers of the element type.
    """
    rows, columns = input.type.shape
    element = X4Type.get(input.type.element_type if element_type is None else element_type)
    result = ir.RankedTensorType.get([rows // LANES, columns], element)
    return PackWeightsOp(input, ir.StringAttr.get(layout), result, loc=loc, ip=ip).output


def dma_transpose(input: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """Build `mx.dma_transpose` and return the transposed activations."""
    tokens, features = input.type.shape
    element = input.type.element_type
    is_fp8 = str(element) in FP8_TYPES
    shape = [features // LANES, tokens if is_fp8 else LANES * tokens]
    result = ir.RankedTensorType.get(shape, X4Type.get(element) if is_fp8 else element)
    return DmaTransposeOp(input, result, loc=loc, ip=ip).output


def partition_rows(input: Any, dge_mode: str | None = None, *, loc: Any = None, ip: Any = None) -> Any:
    """Build `mx.partition_rows` and return the tiles."""
    rows, *rest = input.type.shape
    result = ir.RankedTensorType.get([PARTITIONS, rows // PARTITIONS, *rest], input.type.element_type)
    op = PartitionRowsOp(input, result, loc=loc, ip=ip)
    if dge_mode is not None:
        op.operation.attributes["dge_mode"] = ir.StringAttr.get(dge_mode)
    return op.output
