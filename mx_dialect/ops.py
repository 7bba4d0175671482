"""The value-level operations on block-scaled tensors, their verifiers and their builders.

All are Pure: they compute values and touch no memory. An example in a docstring is a complete module.
"""

# No `from __future__ import annotations` here: the annotations below define the operands and results.
from typing import Any

from mx_dialect import scalar
from mx_dialect._mlir import ext, ir
from mx_dialect.dialect import Mx
from mx_dialect.formats import DEFAULT_ROUNDING, ROUNDING_MODES, SCALE_FORMATS
from mx_dialect.near_miss import nearest
from mx_dialect.types import TensorType
from mx_dialect.verification import agree, float_tensor, mx_tensor, only_attributes, require, verifier


class QuantizeBlockOp(Mx.Operation, name="quantize_block", traits=[ext.Pure]):
    """Quantize a float tensor: one shared power-of-two scale for each block along the blocked axis.

    The scale follows from the block's largest magnitude as the `rounding` attribute says (`floor`, the default and the
    OCP rule, `ceil`, `even` or `rceil`); the elements are the values divided by it, rounded to nearest even and
    saturated. A scale type with significands (f8E4M3FN, as in NVFP4) takes the largest magnitude over the largest
    element instead, rounded to nearest even, and no `rounding`. A block that holds a NaN or an infinity gets the NaN scale.

    | value    | type                                                   |
    |----------|--------------------------------------------------------|
    | input    | tensor of f32, f16 or bf16, shape S                    |
    | result   | mx tensor of logical shape S, any element format       |

    Errors: shapes differ, input is not a float tensor, unknown rounding mode.

    ```mlir
    func.func @quantize(%x: tensor<32x64xf32>) -> !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU> {
      %0 = mx.quantize_block %x {rounding = "ceil"} : tensor<32x64xf32> -> <32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
      return %0 : !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
    }
    ```
    """

    input: ext.Operand[Any]
    output: ext.Result[Any]

    # The meaning for one block: the scale from the largest magnitude; for one element: the element from the scale.
    scale_body = staticmethod(scalar.shared_scale)
    body = staticmethod(scalar.quantized_element)

    @property
    def rounding(self) -> str:
        """Return the rounding mode of the shared exponent."""
        attributes = self.operation.attributes
        return str(attributes["rounding"].value) if "rounding" in attributes else DEFAULT_ROUNDING

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self, "rounding")
        source = float_tensor(self.input, "input")
        result = mx_tensor(self.output, "result")
        require(
            list(source.shape) == result.shape,
            f"input '{source}' and result '{result}' must have the same shape",
        )
        attributes = self.operation.attributes
        if "rounding" in attributes:
            mode = attributes["rounding"]
            valid = isinstance(mode, ir.StringAttr) and mode.value in ROUNDING_MODES
            modes = ", ".join(f'"{m}"' for m in ROUNDING_MODES)
            hint = nearest(mode.value, ROUNDING_MODES) if isinstance(mode, ir.StringAttr) else ""
            require(valid, f"rounding must be one of {modes}, but is {mode}{hint}")
            is_power_of_two = SCALE_FORMATS[str(result.scale_type)].is_power_of_two
            require(
                is_power_of_two,
                f"rounding chooses a shared exponent; a {result.scale_type} scale is rounded to nearest",
            )


class DequantizeBlockOp(Mx.Operation, name="dequantize_block", traits=[ext.Pure]):
    """Turn a block-scaled tensor into floats: element times scale, formed in f32.

    A NaN scale makes its whole block NaN. A 16-bit result is the f32 product rounded to nearest even.

    | value    | type                                                   |
    |----------|--------------------------------------------------------|
    | input    | mx tensor of logical shape S                           |
    | result   | tensor of f32, f16 or bf16, shape S                    |

    Errors: shapes differ, result is not a float tensor.

    ```mlir
    func.func @dequantize(%x: !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>) -> tensor<32x64xf32> {
      %0 = mx.dequantize_block %x : <32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU> -> tensor<32x64xf32>
      return %0 : tensor<32x64xf32>
    }
    ```
    """

    input: ext.Operand[Any]
    output: ext.Result[Any]

    # The meaning for one element.
    body = staticmethod(scalar.element_value)

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self)
        source = mx_tensor(self.input, "input")
        result = float_tensor(self.output, "result")
        require(
            source.shape == list(result.shape),
            f"input '{source}' and result '{result}' must have the same shape",
        )


class BlockMatmulOp(Mx.Operation, name="block_matmul", traits=[ext.Pure]):
    """Multiply matrices of which one or both are block-scaled, and add to an accumulator: acc + A * B.

    A block-scaled operand is blocked along the contraction axis K, where scale and elements belong together: A along
    its last axis, B along its second-to-last. With the unit attribute `transpose_rhs`, B is given as [N, K], blocked
    along its last axis, the way checkpoints store weights. The two sides may differ in element format and block size.

    Leading axes are batch dimensions and broadcast to the accumulator's: a side may lack leading ones, and one of
    static extent 1 serves all. The products are element * scale (exact) times the other side, summed in f32 in no
    promised order.

    | value    | type                                                                                        |
    |----------|---------------------------------------------------------------------------------------------|
    | lhs      | mx tensor, or tensor of f32, f16 or bf16: [batch..., M, K]                                  |
    | rhs      | mx tensor, or tensor of f32, f16 or bf16: [batch..., K, N], [batch..., N, K] if transposed  |
    | acc      | tensor of f32: [batch..., M, N]                                                             |
    | result   | the type of acc                                                                             |

    Errors: neither operand block-scaled, a block-scaled operand not blocked along K, ranks or extents that do not
    match, result type other than the accumulator's.

    ```mlir
    func.func @block_matmul(%a: !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>, %b: tensor<64x16xf32>, %acc: tensor<32x16xf32>) -> tensor<32x16xf32> {
      %0 = mx.block_matmul %a, %b, %acc : <32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>, tensor<64x16xf32>, tensor<32x16xf32> -> tensor<32x16xf32>
      return %0 : tensor<32x16xf32>
    }
    func.func @weights(%x: tensor<8x64xf32>, %w: !mx.tensor<16x64xf4E2M1FN, block_size = 32, scale_type = f8E8M0FNU>, %acc: tensor<8x16xf32>) -> tensor<8x16xf32> {
      %0 = mx.block_matmul %x, %w, %acc {transpose_rhs} : tensor<8x64xf32>, <16x64xf4E2M1FN, block_size = 32, scale_type = f8E8M0FNU>, tensor<8x16xf32> -> tensor<8x16xf32>
      return %0 : tensor<8x16xf32>
    }
    ```
    """

    lhs: ext.Operand[Any]
    rhs: ext.Operand[Any]
    acc: ext.Operand[Any]
    output: ext.Result[Any]

    # The meaning for one pair of elements, each as `scalar.element_value` gives it.
    body = staticmethod(scalar.multiply_add)

    @property
    def transpose_rhs(self) -> bool:
        """Tell whether rhs is given as [batch..., N, K]."""
        return "transpose_rhs" in self.operation.attributes

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self, "transpose_rhs")
        attributes = self.operation.attributes
        require(
            not self.transpose_rhs or isinstance(attributes["transpose_rhs"], ir.UnitAttr),
            "transpose_rhs is a unit attribute: it is there or it is not",
        )
        quantized = [isinstance(v.type, TensorType) for v in (self.lhs, self.rhs)]
        require(any(quantized), "needs an mx tensor as lhs or rhs; for two float tensors use linalg.matmul")
        lhs, rhs = (
            mx_tensor(value, role) if is_quantized else float_tensor(value, role)
            for value, role, is_quantized in zip((self.lhs, self.rhs), ("lhs", "rhs"), quantized, strict=True)
        )
        acc = float_tensor(self.acc, "acc", ("f32",))
        require(
            all(2 <= t.rank <= acc.rank for t in (lhs, rhs, acc)),
            "lhs and rhs must have a rank between 2 and that of acc, "
            f"but the ranks are {lhs.rank}, {rhs.rank} and {acc.rank}",
        )
        rhs_k = rhs.rank - (1 if self.transpose_rhs else 2)
        rhs_n = 2 * rhs.rank - 3 - rhs_k
        for type_, role, is_quantized, k_axis in (
            (lhs, "lhs", quantized[0], lhs.rank - 1),
            (rhs, "rhs", quantized[1], rhs_k),
        ):
            require(
                not is_quantized or type_.axis == k_axis,
                f"{role} must be blocked along K, its axis {k_axis}, but '{type_}' is blocked along another axis",
            )
        a, b, c = list(lhs.shape), list(rhs.shape), list(acc.shape)
        require(agree(a[-1], b[rhs_k]), f"extents of K differ: '{lhs}' against '{rhs}'")
        require(agree(a[-2], c[-2]), f"extents of M differ: lhs '{lhs}' against acc '{acc}'")
        require(agree(b[rhs_n], c[-1]), f"extents of N differ: rhs '{rhs}' against acc '{acc}'")
        for type_, role, shape in ((lhs, "lhs", a), (rhs, "rhs", b)):
            require(
                all(e == 1 or agree(e, c[len(c) - len(shape) + i]) for i, e in enumerate(shape[:-2])),
                f"batch extents of {role} '{type_}' do not broadcast to those of acc '{acc}'",
            )
        require(
            self.output.type == acc,
            f"result must have the type of acc, '{acc}', but is '{self.output.type}'",
        )


class FoldScaleOp(Mx.Operation, name="fold_scale", traits=[ext.Pure]):
    """Multiply a block-scaled tensor by a scalar, without touching its elements.

    Wherever it is consumed, an element is worth element * scale, formed in f32, times the factor, rounded once more; the
    factors of nested folds are first multiplied with each other in f32, innermost first. Lowering passes the factor to the consumer.
    Where the tensor itself is needed (returned, decomposed), the factor must be a constant power of two, which goes
    into the scales; a scale that would leave its range is an error when the program runs.

    | value    | type                                                   |
    |----------|--------------------------------------------------------|
    | input    | mx tensor                                              |
    | factor   | f32                                                    |
    | result   | the type of input                                      |

    Errors: factor is not f32, result type differs from the input's.

    ```mlir
    func.func @fold(%x: !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>, %factor: f32) -> tensor<32x64xf32> {
      %0 = mx.fold_scale %x, %factor : <32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>, f32 -> <32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
      %1 = mx.dequantize_block %0 : <32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU> -> tensor<32x64xf32>
      return %1 : tensor<32x64xf32>
    }
    ```
    """

    input: ext.Operand[Any]
    factor: ext.Operand[Any]
    output: ext.Result[Any]

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self)
        source = mx_tensor(self.input, "input")
        require(isinstance(self.factor.type, ir.F32Type), f"factor must be f32, but is '{self.factor.type}'")
        require(
            self.output.type == source,
            f"result must have the type of input, '{source}', but is '{self.output.type}'",
        )


class ComposeOp(Mx.Operation, name="compose", traits=[ext.Pure]):
    """Make a block-scaled tensor of its two parts. The inverse of `mx.decompose`.

    | value    | type                                                                             |
    |----------|----------------------------------------------------------------------------------|
    | mantissa | tensor of the element type, or of i8 codes if that has less than 8 bits: shape S |
    | scale    | tensor of the scale type, S with the blocked extent divided by the block size    |
    | result   | mx tensor of logical shape S                                                     |

    Codes of less than a byte have their upper bits ignored. Constant weights are two arith.constants composed.

    Errors: a part's type is not the one that the result type says.

    ```mlir
    func.func @compose(%m: tensor<32x64xf8E4M3FN>, %s: tensor<32x2xf8E8M0FNU>) -> !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU> {
      %0 = mx.compose %m, %s : tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU> -> <32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
      return %0 : !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
    }
    ```
    """

    mantissa: ext.Operand[Any]
    scale: ext.Operand[Any]
    output: ext.Result[Any]

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self)
        result = mx_tensor(self.output, "result")
        _require_parts(result, self.mantissa, self.scale)


class DecomposeOp(Mx.Operation, name="decompose", traits=[ext.Pure]):
    """Take a block-scaled tensor apart. The inverse of `mx.compose`.

    | value    | type                                                                             |
    |----------|----------------------------------------------------------------------------------|
    | input    | mx tensor of logical shape S                                                     |
    | mantissa | tensor of the element type, or of i8 codes if that has less than 8 bits: shape S |
    | scale    | tensor of the scale type, S with the blocked extent divided by the block size    |

    Errors: a part's type is not the one that the input type says.

    ```mlir
    func.func @decompose(%x: !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>) -> (tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU>) {
      %0:2 = mx.decompose %x : <32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU> -> (tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU>)
      return %0#0, %0#1 : tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU>
    }
    ```
    """

    input: ext.Operand[Any]
    mantissa: ext.Result[Any]
    scale: ext.Result[Any]

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self)
        source = mx_tensor(self.input, "input")
        _require_parts(source, self.mantissa, self.scale)


def _require_parts(whole: TensorType, mantissa: Any, scale: Any) -> None:
    codes = whole.code_tensor_type
    alternative = "" if codes == whole.mantissa_type else f" or '{codes}'"
    for part, role, expected, also in (
        (mantissa, "mantissa", (whole.mantissa_type, codes), alternative),
        (scale, "scale", (whole.scale_tensor_type,), ""),
    ):
        require(part.type in expected, f"{role} of '{whole}' must be '{expected[0]}'{also}, but is '{part.type}'")


def quantize_block(
    input: Any,
    element_type: Any,
    block_size: int = 32,
    scale_type: Any = None,
    axis: int = -1,
    rounding: str | None = None,
    *,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """Build `mx.quantize_block` of a float tensor and return the mx tensor.

    Raises:
        MxError: the result type would break a rule of mx tensors.
    """
    result = TensorType.get(list(input.type.shape), element_type, block_size, scale_type, axis)
    op = QuantizeBlockOp(input, result, loc=loc, ip=ip)
    if rounding is not None:
        op.operation.attributes["rounding"] = ir.StringAttr.get(rounding)
    return op.output


def dequantize_block(input: Any, element_type: Any = None, *, loc: Any = None, ip: Any = None) -> Any:
    """Build `mx.dequantize_block` and return the float tensor (f32 unless `element_type` says otherwise)."""
    element = ir.F32Type.get() if element_type is None else element_type
    result = ir.RankedTensorType.get(input.type.shape, element)
    return DequantizeBlockOp(input, result, loc=loc, ip=ip).output


def block_matmul(lhs: Any, rhs: Any, acc: Any, transpose_rhs: bool = False, *, loc: Any = None, ip: Any = None) -> Any:
    """Build `mx.block_matmul` and return acc + lhs * rhs."""
    op = BlockMatmulOp(lhs, rhs, acc, acc.type, loc=loc, ip=ip)
    if transpose_rhs:
        op.operation.attributes["transpose_rhs"] = ir.UnitAttr.get()
    return op.output


def fold_scale(input: Any, factor: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """Build `mx.fold_scale` and return the scaled mx tensor."""
    return FoldScaleOp(input, factor, input.type, loc=loc, ip=ip).output


def compose(mantissa: Any, scale: Any, block_size: int = 32, axis: int = -1, *, loc: Any = None, ip: Any = None) -> Any:
    """Build `mx.compose` of a mantissa and a scale tensor and return the mx tensor.

    Raises:
        MxError: the result type would break a rule of mx tensors.
    """
    result = TensorType.get(
        list(mantissa.type.shape), mantissa.type.element_type, block_size, scale.type.element_type, axis
    )
    return ComposeOp(mantissa, scale, result, loc=loc, ip=ip).output


def decompose(input: Any, *, loc: Any = None, ip: Any = None) -> tuple[Any, Any]:
    """Build `mx.decompose` and return the mantissa and the scale tensor."""
    op = DecomposeOp(input, input.type.mantissa_type, input.type.scale_tensor_type, loc=loc, ip=ip)
    return op.mantissa, op.scale
