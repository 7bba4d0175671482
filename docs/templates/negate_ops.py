"""Template of an operation, `mx.negate`.

It goes to mx_dialect/negate_ops.py, and its name into `_DEFINITIONS` of mx_dialect/dialect.py. All are Pure. An example in a docstring is a complete module.
"""

# No `from __future__ import annotations` here: the annotations below define the operands and results.
from typing import Any

from mx_dialect._mlir import ext
from mx_dialect.dialect import Mx
from mx_dialect.formats import ELEMENT_FORMATS
from mx_dialect.verification import mx_tensor, only_attributes, require, verifier


class NegateOp(Mx.Operation, name="negate", traits=[ext.Pure]):
    """Negate every element of a block-scaled tensor of floats: its sign bit, and that of a NaN, changes.

    | value    | type                                                   |
    |----------|--------------------------------------------------------|
    | input    | mx tensor of f8E4M3FN or f8E5M2                        |
    | result   | the type of input                                      |

    Errors: other elements, result type other than input's.

    ```mlir
    func.func @negate(%x: !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>) -> !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU> {
      %0 = mx.negate %x : <32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU> -> <32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
      return %0 : !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
    }
    ```
    """

    input: ext.Operand[Any]
    output: ext.Result[Any]

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self)
        source = mx_tensor(self.input, "input")
        fmt = ELEMENT_FORMATS[str(source.element_type)]
        require(fmt.bits == 8 and not fmt.is_integer, f"input must hold floats of 8 bits, but is '{source}'")
        require(self.output.type == source, f"result must be '{source}' as input is, but is '{self.output.type}'")
