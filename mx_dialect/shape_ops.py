"""Operations on the shape of block-scaled tensors: extents, static and dynamic views of one shape, slices.

All are Pure. An example in a docstring is a complete module.
"""

# No `from __future__ import annotations` here: the annotations below define the operands and results.
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mx_dialect._mlir import ext, ir
from mx_dialect.dialect import Mx
from mx_dialect.types import TensorType
from mx_dialect.verification import agree, mx_tensor, only_attributes, require, verifier


class DimOp(Mx.Operation, name="dim", traits=[ext.Pure]):
    """Give one extent of a block-scaled tensor's logical shape. An axis that it has not is an error at run time.

    | value    | type                                                   |
    |----------|--------------------------------------------------------|
    | input    | mx tensor                                              |
    | axis     | index                                                  |
    | result   | index                                                  |

    Errors: axis or result is not an index.

    ```mlir
    func.func @dim(%x: !mx.tensor<?x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>) -> index {
      %c0 = arith.constant 0 : index
      %0 = mx.dim %x, %c0 : <?x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>, index -> index
      return %0 : index
    }
    ```
    """

    input: ext.Operand[Any]
    axis: ext.Operand[Any]
    output: ext.Result[Any]

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self)
        mx_tensor(self.input, "input")
        require(isinstance(self.axis.type, ir.IndexType), f"axis must be an index, but is '{self.axis.type}'")
        require(isinstance(self.output.type, ir.IndexType), f"result must be an index, but is '{self.output.type}'")


class CastOp(Mx.Operation, name="cast", traits=[ext.Pure]):
    """Forget or claim static extents: the same tensor with `?` for a number, or a number for `?`.

    A claim that does not hold is an error when the program runs.

    | value    | type                                                   |
    |----------|--------------------------------------------------------|
    | input    | mx tensor                                              |
    | result   | mx tensor that differs in what extents are dynamic     |

    Errors: rank, static extents, element type, block size, scale type or axis differ.

    ```mlir
    func.func @cast(%x: !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>) -> !mx.tensor<?x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU> {
      %0 = mx.cast %x : <32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU> -> <?x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
      return %0 : !mx.tensor<?x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
    }
    ```
    """

    input: ext.Operand[Any]
    output: ext.Result[Any]

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self)
        source, result = mx_tensor(self.input, "input"), mx_tensor(self.output, "result")
        _require_same_but_shape(source, result)
        require(
            all(agree(*extents) for extents in zip(source.shape, result.shape, strict=True)),
            f"input '{source}' and result '{result}' must agree in their static extents",
        )


class ExtractSliceOp(Mx.Operation, name="extract_slice", traits=[ext.Pure]):
    """Give a part of a block-scaled tensor: on each axis `size` entries from `offset` on.

    Along the blocked axis offset and size are multiples of the block size, so that whole blocks move with their scales;
    a dynamic offset that is not is an error when the program runs, as is a slice that leaves the tensor. The custom form lists offsets, then sizes, each a
    number or an index value: `mx.extract_slice %x[0, %i] [32, 64]`. In the generic form `static_offsets` and
    `static_sizes` hold MLIR's dynamic size where an operand gives the number.

    | value    | type                                                   |
    |----------|--------------------------------------------------------|
    | input    | mx tensor of rank R                                    |
    | offsets  | index, one for each dynamic entry of static_offsets    |
    | sizes    | index, one for each dynamic entry of static_sizes      |
    | result   | mx tensor of rank R whose shape is the sizes           |

    Errors: lists not of length R, negative numbers, a static part that is not inside the tensor or not of whole blocks,
    a result type other than the sizes say.

    ```mlir
    func.func @rows(%x: !mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>, %i: index) -> !mx.tensor<8x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU> {
      %0 = mx.extract_slice %x[%i, 32] [8, 32] : <32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU> -> <8x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
      return %0 : !mx.tensor<8x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>
    }
    ```
    """

    input: ext.Operand[Any]
    offsets: Sequence[ext.Operand[Any]]
    sizes: Sequence[ext.Operand[Any]]
    static_offsets: Any
    static_sizes: Any
    output: ext.Result[Any]

    # In custom assembly, lists of numbers and index values behind the first operand: the operands they hold and the
    # attributes with the numbers.
    index_lists = (("offsets", "static_offsets"), ("sizes", "static_sizes"))

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self, "static_offsets", "static_sizes")
        source, result = mx_tensor(self.input, "input"), mx_tensor(self.output, "result")
        _require_same_but_shape(source, result)
        offsets = _numbers(self, "offsets", source.rank)
        sizes = _numbers(self, "sizes", source.rank)
        require(sizes == result.shape, f"result '{result}' must have the sizes as its shape")
        dynamic = ir.ShapedType.get_dynamic_size()
        for axis, (offset, size, extent) in enumerate(zip(offsets, sizes, source.shape, strict=True)):
            known = [n for n in (offset, size) if n != dynamic]
            require(
                extent == dynamic or sum(known) <= extent,
                f"slice leaves the input '{source}' along axis {axis}",
            )
        require(
            offsets[source.axis] == dynamic or offsets[source.axis] % source.block_size == 0,
            f"offset {offsets[source.axis]} along blocked axis {source.axis} is not a multiple of block size "
            f"{source.block_size}",
        )


def _require_same_but_shape(source: TensorType, result: TensorType) -> None:
    shape = result.spec.shape
    same = len(shape) == source.rank and replace(source.spec, shape=shape) == result.spec
    require(same, f"input '{source}' and result '{result}' must be the same but for their extents")


def _numbers(op: Any, name: str, rank: int) -> list[int]:
    """Return a static list of an operation, checked against its operands."""
    attribute = op.operation.attributes[f"static_{name}"]
    is_list = isinstance(attribute, ir.DenseI64ArrayAttr) and len(attribute) == rank
    require(is_list, f"static_{name} must be an array of {rank} i64, but is {attribute}")
    numbers = list(attribute)
    dynamic = ir.ShapedType.get_dynamic_size()
    require(all(n >= 0 or n == dynamic for n in numbers), f"{name} must not be negative, but are {numbers}")
    values = list(getattr(op, name))
    require(
        len(values) == numbers.count(dynamic),
        f"has {len(values)} operands for {numbers.count(dynamic)} dynamic {name}",
    )
    require(all(isinstance(v.type, ir.IndexType) for v in values), f"{name} must be index values")
    return numbers


def dim(input: Any, axis: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """Build `mx.dim` and return the extent."""
    return DimOp(input, axis, ir.IndexType.get(), loc=loc, ip=ip).output


def cast(input: Any, shape: Sequence[int | None], *, loc: Any = None, ip: Any = None) -> Any:
    """Build `mx.cast` to another static or dynamic shape and return the tensor.

    Raises:
        MxError: the result type would break a rule of mx tensors.
    """
    result = TensorType.of(replace(input.type.spec, shape=tuple(shape)))
    return CastOp(input, result, loc=loc, ip=ip).output


def extract_slice(input: Any, offsets: Sequence[Any], sizes: Sequence[Any], *, loc: Any = None, ip: Any = None) -> Any:
    """Build `mx.extract_slice` from lists of ints and index values and return the part.

    Raises:
        MxError: the result type would break a rule of mx tensors.
    """
    shape = tuple(s if isinstance(s, int) else None for s in sizes)
    result = TensorType.of(replace(input.type.spec, shape=shape))
    dynamic = ir.ShapedType.get_dynamic_size()

    def split(numbers: Sequence[Any]) -> tuple[list[Any], Any]:
        values = [n for n in numbers if not isinstance(n, int)]
        return values, ir.DenseI64ArrayAttr.get([n if isinstance(n, int) else dynamic for n in numbers])

    offset_values, static_offsets = split(offsets)
    size_values, static_sizes = split(sizes)
    return ExtractSliceOp(
        input, offset_values, size_values, static_offsets, static_sizes, result, loc=loc, ip=ip
    ).output
