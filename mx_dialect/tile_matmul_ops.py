"""Operations of the matrix unit on MX tiles, the binding of scale addresses, and the quantization that feeds them.

All are instructions with an order on the engine, so none is Pure: nothing merges, hoists or drops them. An example in a
docstring is a complete module.
"""

# No `from __future__ import annotations` here: the annotations below define the operands and results.
from typing import Any

from mx_dialect import scalar
from mx_dialect._mlir import ext, ir
from mx_dialect.dialect import Mx
from mx_dialect.formats import DEFAULT_ROUNDING, ROUNDING_MODES
from mx_dialect.layouts.a5 import GROUP_SIZE, SCALE_LAYOUTS, ScaleLayout
from mx_dialect.tile_spec import UNDECIDED, TileSpec
from mx_dialect.tile_types import TileType
from mx_dialect.tile_verification import (
    groups,
    require_element,
    require_one_of,
    require_shape,
    require_space,
    same_extents,
    tile,
)
from mx_dialect.verification import only_attributes, require, verifier

ELEMENT = "f8E4M3FN"
"""The element type that the matrix unit multiplies."""
SCALE = "f8E8M0FNU"
MULTIPLE_M, MULTIPLE_N, MULTIPLE_K = 16, 32, 64


class MatmulMxOp(Mx.Operation, name="matmul_mx"):
    """Multiply two tiles with their scales: result[m, n] = sum over k of lhs * 2^(ls - 127) * rhs * 2^(rs - 127), in f32.

    ls and rs are the codes of lhs_scale[m, k // 32] and rhs_scale[k // 32, n]. What lies beyond the valid shapes does
    not contribute. Once memory spaces are decided the operands lie in left, left_scale, right and right_scale, and the
    scales are bound to their data by `mx.tget_scale_addr`.

    | value      | type                                                               |
    |------------|--------------------------------------------------------------------|
    | lhs        | tile of f8E4M3FN, [M, K]                                           |
    | lhs_scale  | tile of f8E8M0FNU, [M, ceil(K / 32)]                               |
    | rhs        | tile of f8E4M3FN, [K, N]                                           |
    | rhs_scale  | tile of f8E8M0FNU, [ceil(K / 32), N]                               |
    | result     | tile of f32, [M, N], with the valid M of lhs and the valid N of rhs |

    Effects: reads the buffers of its operands, writes that of the result.

    Errors: M, N or K not a positive multiple of 16, 32 or 64, shapes or valid shapes that do not fit, a valid K of 0 or
    one that needs fewer scales than K, other element types. A dynamic extent is not checked.

    ```mlir
    func.func @matmul(%a: !mx.tile<16x64xf8E4M3FN>, %as: !mx.tile<16x2xf8E8M0FNU>, %b: !mx.tile<64x32xf8E4M3FN>, %bs: !mx.tile<2x32xf8E8M0FNU>) -> !mx.tile<16x32xf32> {
      %0 = mx.matmul_mx %a, %as, %b, %bs : !mx.tile<16x64xf8E4M3FN>, !mx.tile<16x2xf8E8M0FNU>, !mx.tile<64x32xf8E4M3FN>, !mx.tile<2x32xf8E8M0FNU> -> !mx.tile<16x32xf32>
      return %0 : !mx.tile<16x32xf32>
    }
    ```
    """

    lhs: ext.Operand[Any]
    lhs_scale: ext.Operand[Any]
    rhs: ext.Operand[Any]
    rhs_scale: ext.Operand[Any]
    output: ext.Result[Any]

    body = staticmethod(scalar.multiply_add)

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self)
        _verify_product(self)


class MatmulMxAccOp(Mx.Operation, name="matmul_mx_acc"):
    """Multiply two tiles with their scales and add the product to an accumulator: acc + lhs * rhs, as `mx.matmul_mx`.

    | value      | type                                            |
    |------------|-------------------------------------------------|
    | acc        | tile of f32, [M, N], the result's type          |
    | lhs        | tile of f8E4M3FN, [M, K]                        |
    | lhs_scale  | tile of f8E8M0FNU, [M, ceil(K / 32)]            |
    | rhs        | tile of f8E4M3FN, [K, N]                        |
    | rhs_scale  | tile of f8E8M0FNU, [ceil(K / 32), N]            |
    | result     | tile of f32, [M, N]                             |

    Effects: reads the buffers of its operands, updates that of acc, which the result takes over.

    Errors: those of `mx.matmul_mx`, and an accumulator of another shape or valid shape than the result.

    ```mlir
    func.func @matmul(%c: !mx.tile<16x32xf32>, %a: !mx.tile<16x64xf8E4M3FN>, %as: !mx.tile<16x2xf8E8M0FNU>, %b: !mx.tile<64x32xf8E4M3FN>, %bs: !mx.tile<2x32xf8E8M0FNU>) -> !mx.tile<16x32xf32> {
      %0 = mx.matmul_mx_acc %c, %a, %as, %b, %bs : !mx.tile<16x32xf32>, !mx.tile<16x64xf8E4M3FN>, !mx.tile<16x2xf8E8M0FNU>, !mx.tile<64x32xf8E4M3FN>, !mx.tile<2x32xf8E8M0FNU> -> !mx.tile<16x32xf32>
      return %0 : !mx.tile<16x32xf32>
    }
    ```
    """

    acc: ext.Operand[Any]
    lhs: ext.Operand[Any]
    lhs_scale: ext.Operand[Any]
    rhs: ext.Operand[Any]
    rhs_scale: ext.Operand[Any]
    output: ext.Result[Any]

    body = staticmethod(scalar.multiply_add)

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self)
        result = _verify_product(self)
        acc = tile(self.acc, "acc")
        require_element(acc, "acc", "f32")
        same_extents(result, acc, "acc")


class MatmulMxBiasOp(Mx.Operation, name="matmul_mx_bias"):
    """Multiply two tiles with their scales and add a row to every row of the product: bias + lhs * rhs.

    | value      | type                                                         |
    |------------|--------------------------------------------------------------|
    | lhs        | tile of f8E4M3FN, [M, K]                                     |
    | lhs_scale  | tile of f8E8M0FNU, [M, ceil(K / 32)]                         |
    | rhs        | tile of f8E4M3FN, [K, N]                                     |
    | rhs_scale  | tile of f8E8M0FNU, [ceil(K / 32), N]                         |
    | bias       | tile of f32, [1, N], with the valid N of rhs                 |
    | result     | tile of f32, [M, N]                                          |

    Effects: reads the buffers of its operands, writes that of the result.

    Errors: those of `mx.matmul_mx`, and a bias of another shape or valid shape.

    ```mlir
    func.func @matmul(%a: !mx.tile<16x64xf8E4M3FN>, %as: !mx.tile<16x2xf8E8M0FNU>, %b: !mx.tile<64x32xf8E4M3FN>, %bs: !mx.tile<2x32xf8E8M0FNU>, %c: !mx.tile<1x32xf32>) -> !mx.tile<16x32xf32> {
      %0 = mx.matmul_mx_bias %a, %as, %b, %bs, %c : !mx.tile<16x64xf8E4M3FN>, !mx.tile<16x2xf8E8M0FNU>, !mx.tile<64x32xf8E4M3FN>, !mx.tile<2x32xf8E8M0FNU>, !mx.tile<1x32xf32> -> !mx.tile<16x32xf32>
      return %0 : !mx.tile<16x32xf32>
    }
    ```
    """

    lhs: ext.Operand[Any]
    lhs_scale: ext.Operand[Any]
    rhs: ext.Operand[Any]
    rhs_scale: ext.Operand[Any]
    bias: ext.Operand[Any]
    output: ext.Result[Any]

    body = staticmethod(scalar.multiply_add)

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self)
        result = _verify_product(self)
        bias = tile(self.bias, "bias")
        require_element(bias, "bias", "f32")
        require_shape(bias.shape, (1, result.shape[1]), "bias")
        require_shape(bias.valid, (1, result.valid[1]), "bias", "valid shape")


MATMULS = (MatmulMxOp, MatmulMxAccOp, MatmulMxBiasOp)


class TgetScaleAddrOp(Mx.Operation, name="tget_scale_addr"):
    """Bind the address of a scale tile to that of the data it belongs to; gives the same scale tile, bound.

    The engine finds scales by the address of the data, shifted right by 4. The binding changes the scale tile itself: a
    later one of the same tile to other data takes the place of this one. Only `--mx-insert-scale-addr` makes it.

    | value    | type                                                                              |
    |----------|-----------------------------------------------------------------------------------|
    | scale    | tile of f8E8M0FNU in left_scale, [M, ceil(K / 32)], or right_scale, [ceil(K / 32), N] |
    | data     | tile of f8E4M3FN in left, [M, K], or right, [K, N]                                |
    | result   | the type of scale, an alias of it                                                 |

    Effects: changes the address of the scale tile's buffer.

    Errors: spaces other than (left_scale, left) and (right_scale, right), other element types, shapes or valid shapes
    that do not fit.

    ```mlir
    func.func @bind(%s: !mx.tile<16x2xf8E8M0FNU, left_scale>, %x: !mx.tile<16x64xf8E4M3FN, left>) -> !mx.tile<16x2xf8E8M0FNU, left_scale> {
      %0 = mx.tget_scale_addr %s, %x : !mx.tile<16x2xf8E8M0FNU, left_scale>, !mx.tile<16x64xf8E4M3FN, left> -> !mx.tile<16x2xf8E8M0FNU, left_scale>
      return %0 : !mx.tile<16x2xf8E8M0FNU, left_scale>
    }
    ```
    """

    scale: ext.Operand[Any]
    data: ext.Operand[Any]
    output: ext.Result[Any]

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self)
        scale, data = tile(self.scale, "scale"), tile(self.data, "data")
        pairs = {"left_scale": "left", "right_scale": "right"}
        require(
            pairs.get(scale.space) == data.space,
            f"binds a scale in left_scale to data in left, or right_scale to right, but has '{scale.custom()}' and"
            f" '{data.custom()}'",
        )
        require_element(data, "data", ELEMENT)
        require_element(scale, "scale", SCALE)
        axis = 1 if data.space == "left" else 0
        _verify_scale(scale, data, axis, "scale")
        same = self.output.type == self.scale.type
        require(same, f"result must have the type of scale, '{scale.custom()}', but is '{self.output.type}'")


class QuantMxOp(Mx.Operation, name="quant_mx"):
    """Quantize a tile in blocks of 32 along K, on the vector unit: FP8 data and a scale for each block.

    `layout` says for which operand: MX_A_ZZ quantizes [M, K] along its columns and gives scales [M, ceil(K / 32)],
    MX_B_NN quantizes [K, N] along its rows and gives scales [ceil(K / 32), N]. `rounding` is that of
    `mx.quantize_block`, floor unless given. Elements beyond the valid shape do not take part.

    | value    | type                                                       |
    |----------|------------------------------------------------------------|
    | input    | tile of f32, f16 or bf16, [M, K] or [K, N]                 |
    | data     | tile of f8E4M3FN or f8E5M2, of input's shape               |
    | scale    | tile of f8E8M0FNU, [M, ceil(K / 32)] or [ceil(K / 32), N]  |

    Effects: reads the buffer of the input, writes those of the results.

    Errors: a tile outside vec, another layout or rounding, other element types, shapes or valid shapes that do not fit,
    K not a multiple of 32.

    ```mlir
    func.func @quantize(%x: !mx.tile<16x64xbf16, vec>) -> (!mx.tile<16x64xf8E4M3FN, vec>, !mx.tile<16x2xf8E8M0FNU, vec>) {
      %0, %1 = mx.quant_mx %x {layout = "MX_A_ZZ"} : !mx.tile<16x64xbf16, vec> -> (!mx.tile<16x64xf8E4M3FN, vec>, !mx.tile<16x2xf8E8M0FNU, vec>)
      return %0, %1 : !mx.tile<16x64xf8E4M3FN, vec>, !mx.tile<16x2xf8E8M0FNU, vec>
    }
    ```
    """

    input: ext.Operand[Any]
    layout: ir.StringAttr
    data: ext.Result[Any]
    scale: ext.Result[Any]

    scale_body = staticmethod(scalar.shared_scale)
    body = staticmethod(scalar.quantized_element)

    @property
    def scale_layout(self) -> ScaleLayout:
        """Return the layout whose scales the operation computes."""
        return SCALE_LAYOUTS[ir.StringAttr(self.operation.attributes["layout"]).value]

    @property
    def rounding(self) -> str:
        """Return how the shared exponent follows from a block's largest magnitude."""
        attribute = self.operation.attributes.get("rounding")
        return DEFAULT_ROUNDING if attribute is None else ir.StringAttr(attribute).value

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self, "layout", "rounding")
        attributes = self.operation.attributes
        require_one_of(attributes["layout"], "layout", SCALE_LAYOUTS)
        if "rounding" in attributes:
            require_one_of(attributes["rounding"], "rounding", ROUNDING_MODES)
        source, data, scale = tile(self.input, "input"), tile(self.data, "data"), tile(self.scale, "scale")
        for spec, role, elements in (
            (source, "input", ("f32", "f16", "bf16")),
            (data, "data", (ELEMENT, "f8E5M2")),
            (scale, "scale", (SCALE,)),
        ):
            require_element(spec, role, *elements)
            require_space(spec, role, "vec", UNDECIDED)
        same_extents(source, data, "data")
        axis: int = self.scale_layout.group_axis
        extent = source.shape[axis]
        require(
            extent is None or extent % GROUP_SIZE == 0,
            f"K must be a multiple of {GROUP_SIZE}, but is {extent}",
        )
        _verify_scale(scale, data, axis, "scale")


def _verify_product(op: Any) -> TileSpec:
    """Check the operands and the result of a matmul; return the result's type."""
    lhs, rhs = tile(op.lhs, "lhs"), tile(op.rhs, "rhs")
    for spec, role in ((lhs, "lhs"), (rhs, "rhs")):
        require(spec.element != "f4E2M1FN", f"{role} must not be FP4; cast it to {ELEMENT} with mx.tile_cast")
        require_element(spec, role, ELEMENT)
    _require_multiple(lhs.shape[0], MULTIPLE_M, "M")
    _require_multiple(rhs.shape[1], MULTIPLE_N, "N")
    depth, other = lhs.shape[1], rhs.shape[0]
    require(
        depth is None or other is None or depth == other,
        f"lhs and rhs must have one K, but have {depth} and {other}",
    )
    known = other if depth is None else depth
    _require_multiple(known, MULTIPLE_K, "K")
    _verify_valid_depth(lhs.valid[1], rhs.valid[0], known)
    for value, data, axis, role in ((op.lhs_scale, lhs, 1, "lhs_scale"), (op.rhs_scale, rhs, 0, "rhs_scale")):
        scale = tile(value, role)
        require_element(scale, role, SCALE)
        _verify_scale(scale, data, axis, role)
    result = tile(op.output, "result")
    require_element(result, "result", "f32")
    require_shape(result.shape, (lhs.shape[0], rhs.shape[1]), "result")
    require_shape(result.valid, (lhs.valid[0], rhs.valid[1]), "result", "valid shape")
    return result


def _require_multiple(extent: int | None, factor: int, name: str) -> None:
    require(
        extent is None or (extent > 0 and extent % factor == 0),
        f"{name} must be a positive multiple of {factor}, but is {extent}",
    )


def _verify_valid_depth(lhs: int | None, rhs: int | None, depth: int | None) -> None:
    require(
        lhs is None or rhs is None or lhs == rhs,
        f"lhs and rhs must have one valid K, but have {lhs} and {rhs}",
    )
    valid = rhs if lhs is None else lhs
    require(valid != 0, "valid K must be more than 0")
    require(
        valid is None or depth is None or groups(valid) == groups(depth),
        f"valid K must end in the last of the {groups(depth)} groups of {GROUP_SIZE} along K {depth}, but is {valid}",
    )


def _verify_scale(scale: TileSpec, data: TileSpec, axis: int, role: str) -> None:
    """Check that a scale tile has one entry for each 32 elements of the data along an axis."""

    def expected(extents: tuple[int | None, ...]) -> list[int | None]:
        return [groups(e) if i == axis else e for i, e in enumerate(extents)]

    require_shape(scale.shape, expected(data.shape), role)
    require_shape(scale.valid, expected(data.valid), role, "valid shape")


def _product_type(lhs: Any, rhs: Any, space: str | None) -> TileType:
    left, right = lhs.type.spec, rhs.type.spec
    shape, valid = (left.shape[0], right.shape[1]), (left.valid[0], right.valid[1])
    return TileType.get(shape, ir.F32Type.get(), space, valid)


def matmul_mx(
    lhs: Any, lhs_scale: Any, rhs: Any, rhs_scale: Any, space: str | None = None, *, loc: Any = None, ip: Any = None
) -> Any:
    """Build `mx.matmul_mx` and return the product, in `space` if one is given."""
    type_ = _product_type(lhs, rhs, space)
    return MatmulMxOp(lhs, lhs_scale, rhs, rhs_scale, type_, loc=loc, ip=ip).output


def matmul_mx_acc(
    acc: Any, lhs: Any, lhs_scale: Any, rhs: Any, rhs_scale: Any, *, loc: Any = None, ip: Any = None
) -> Any:
    """Build `mx.matmul_mx_acc` and return the updated accumulator."""
    return MatmulMxAccOp(acc, lhs, lhs_scale, rhs, rhs_scale, acc.type, loc=loc, ip=ip).output


def matmul_mx_bias(
    lhs: Any,
    lhs_scale: Any,
    rhs: Any,
    rhs_scale: Any,
    bias: Any,
    space: str | None = None,
    *,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """Build `mx.matmul_mx_bias` and return the product with the bias added, in `space` if one is given."""
    type_ = _product_type(lhs, rhs, space)
    return MatmulMxBiasOp(lhs, lhs_scale, rhs, rhs_scale, bias, type_, loc=loc, ip=ip).output


def quant_mx(
    input: Any,
    element_type: Any,
    layout: ScaleLayout,
    rounding: str = DEFAULT_ROUNDING,
    *,
    loc: Any = None,
    ip: Any = None,
) -> tuple[Any, Any]:
    """Build `mx.quant_mx` and return (data, scale), in the memory space of the input.

    Raises:
        MxError: a type would break a rule of tiles.
    """
    spec = input.type.spec

    def scales(extents: tuple[int | None, ...]) -> list[int | None]:
        return [groups(e) if i == layout.group_axis else e for i, e in enumerate(extents)]

    data = TileType.get(spec.shape, element_type, input.type.space, spec.valid)
    scale = TileType.get(scales(spec.shape), SCALE, input.type.space, scales(spec.valid))
    op = QuantMxOp(input, ir.StringAttr.get(layout.name), data, scale, loc=loc, ip=ip)
    if rounding != DEFAULT_ROUNDING:
        op.operation.attributes["rounding"] = ir.StringAttr.get(rounding)
    return op.data, op.scale
