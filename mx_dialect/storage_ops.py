"""Operations on element codes in packed storage: FP4 two a byte, FP6 four in three bytes.

In tensors a code lies in a byte of its own; these convert to and from the dense forms that files and devices hold. Both
are Pure. An example in a docstring is a complete module.
"""

# No `from __future__ import annotations` here: the annotations below define the operands and results.
from typing import Any

from mx_dialect._mlir import ext, ir
from mx_dialect.dialect import Mx
from mx_dialect.formats import ELEMENT_FORMATS, ElementFormat
from mx_dialect.verification import only_attributes, require, verifier

PACKED_FORMATS = tuple(f.mlir for f in ELEMENT_FORMATS.values() if f.bits < 8)


class PackOp(Mx.Operation, name="pack", traits=[ext.Pure]):
    """Pack codes of less than a byte along the last axis; the upper bits of each i8 are ignored.

    4-bit codes: two a byte, the even index in the low nibble. 6-bit codes: four in three bytes, code i at bits 6i to
    6i+5 in little-endian bit order. `element` names the format.

    | value    | type                                                                             |
    |----------|----------------------------------------------------------------------------------|
    | codes    | tensor of i8, shape [..., K]                                                     |
    | packed   | tensor of i8, shape [..., K * bits / 8]                                          |

    Errors: element is not a format of less than a byte, K is not a whole number of groups, shapes do not fit.

    ```mlir
    func.func @pack(%x: tensor<32x64xi8>) -> tensor<32x32xi8> {
      %0 = mx.pack %x {element = f4E2M1FN} : tensor<32x64xi8> -> tensor<32x32xi8>
      return %0 : tensor<32x32xi8>
    }
    ```
    """

    codes: ext.Operand[Any]
    element: ir.TypeAttr
    packed: ext.Result[Any]

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self, "element")
        _verify_packing(self)


class UnpackOp(Mx.Operation, name="unpack", traits=[ext.Pure]):
    """Unpack codes of less than a byte along the last axis, each into an i8 with its upper bits zero.

    The inverse of `mx.pack`.

    | value    | type                                                                             |
    |----------|----------------------------------------------------------------------------------|
    | packed   | tensor of i8, shape [..., K * bits / 8]                                          |
    | codes    | tensor of i8, shape [..., K]                                                     |

    Errors: element is not a format of less than a byte, K is not a whole number of groups, shapes do not fit.

    ```mlir
    func.func @unpack(%x: tensor<32x48xi8>) -> tensor<32x64xi8> {
      %0 = mx.unpack %x {element = f6E3M2FN} : tensor<32x48xi8> -> tensor<32x64xi8>
      return %0 : tensor<32x64xi8>
    }
    ```
    """

    packed: ext.Operand[Any]
    element: ir.TypeAttr
    codes: ext.Result[Any]

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self, "element")
        _verify_packing(self)


def format_of(op: Any) -> ElementFormat:
    """Return the format whose codes an operation packs or unpacks."""
    return ELEMENT_FORMATS[str(ir.TypeAttr(op.operation.attributes["element"]).value)]


def _verify_packing(op: Any) -> None:
    element = str(ir.TypeAttr(op.operation.attributes["element"]).value)
    require(
        element in PACKED_FORMATS,
        f"element must be one of {', '.join(PACKED_FORMATS)}, whose codes are less than a byte, but is '{element}'",
    )
    for value, role in ((op.codes, "codes"), (op.packed, "packed")):
        type_ = value.type
        named = f"{role} must be a ranked tensor of i8 without encoding, but is '{type_}'"
        is_bytes = isinstance(type_, ir.RankedTensorType) and str(type_.element_type) == "i8"
        require(is_bytes and type_.encoding is None and type_.rank >= 1, named)
    fmt = ELEMENT_FORMATS[element]
    codes, packed = list(op.codes.type.shape), list(op.packed.type.shape)
    dynamic = ir.ShapedType.get_dynamic_size()
    if codes[-1] != dynamic:
        require(
            codes[-1] % fmt.codes_per_group == 0,
            f"the last extent of codes '{op.codes.type}' must be a multiple of {fmt.codes_per_group} for {element}",
        )
        codes[-1] = codes[-1] * fmt.bits // 8
    require(
        codes == packed,
        f"'{op.codes.type}' and '{op.packed.type}' do not fit: {fmt.codes_per_group} codes of {element} are "
        f"{fmt.bytes_per_group} byte{'s' if fmt.bytes_per_group > 1 else ''} of the last axis",
    )
