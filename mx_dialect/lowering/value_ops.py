"""Patterns that lower value-level operations to linalg on (mantissa, scale) tensors; `block_matmul` has its own file.

Between the patterns and the boundary rewrite (`split_boundaries`), an mx value and its two parts are joined by
builtin.unrealized_conversion_cast, 1:2 or 2:1.
"""

from collections.abc import Callable, Sequence
from typing import Any

from mx_dialect import scalar
from mx_dialect._mlir import arith, ir, linalg, rewrite
from mx_dialect.fold_chain import strip
from mx_dialect.formats import ELEMENT_FORMATS, ElementFormat
from mx_dialect.generics import (
    PARALLEL,
    REDUCTION,
    affine_map,
    blocked,
    collapse,
    dims,
    divided,
    elementwise,
    empty,
    expand,
    extent,
    generic,
)
from mx_dialect.lowering.parts import join, part_types, parts
from mx_dialect.ops import (
    ComposeOp,
    DecomposeOp,
    DequantizeBlockOp,
    QuantizeBlockOp,
)


def lower_dequantize_block(op: DequantizeBlockOp, rewriter: rewrite.PatternRewriter) -> None:
    """Every element times its scale: a parallel generic with `floordiv` in the scale's map."""
    with rewriter.ip, op.location:
        value, factor = strip(op.input)
        mantissa, scale = parts(value)
        fmt = ELEMENT_FORMATS[value.type.spec.element]
        type_ = op.output.type
        access = dims(type_.rank)
        init = empty([extent(mantissa, i) for i in range(type_.rank)], type_.element_type)
        inputs = [mantissa, scale] if factor is None else [mantissa, scale, factor]
        accesses = [access, blocked(access, value.type.axis, value.type.block_size)]
        if factor is not None:
            accesses.append([])

        def body(element: Any, scale: Any, *rest: Any) -> Any:
            return scalar.from_f32(op.body(element, scale, fmt, rest[:-1]), type_.element_type)

        maps = [affine_map(type_.rank, a) for a in [*accesses, access]]
        result = generic(inputs, init, maps, [PARALLEL] * type_.rank, body)
    rewriter.replace_op(op, [result])


def lower_quantize_block(op: QuantizeBlockOp, rewriter: rewrite.PatternRewriter) -> None:
    with rewriter.ip, op.location:
        type_ = op.output.type
        fmt = ELEMENT_FORMATS[type_.spec.element]
        pair = quantized(op, op.input, type_.axis, type_.block_size, fmt, part_types(type_))
        whole = join(type_, *pair)
    rewriter.replace_op(op, [whole])


def quantized(
    op: Any, values: Any, axis: int, block_size: int, fmt: ElementFormat, types: Sequence[Any]
) -> tuple[Any, Any]:
    """Return the elements and scales, of two tensor types, that `op` quantizes whole blocks of a float tensor to.

    The input, its blocked axis split in two, is reduced to block maxima, those to scales; then the elements.
    """
    code_type, scale_type = types
    rank = code_type.rank + 1
    split = expand(values, axis, block_size)
    elements = dims(rank)
    blocks = [d for i, d in enumerate(elements) if i != axis + 1]
    sizes = [extent(values, i) for i in range(code_type.rank)]
    block_sizes = [divided(s, block_size) if i == axis else s for i, s in enumerate(sizes)]

    def larger(value: Any, largest: Any) -> Any:
        return arith.maxui(largest, scalar.magnitude_bits(value))

    def to_scale(largest: Any, _: Any) -> Any:
        return op.scale_body(largest, fmt, op.rounding, scale_type.element_type)

    def to_element(value: Any, scale: Any, _: Any) -> Any:
        return op.body(value, scale, fmt, code_type.element_type)

    amax = generic(
        [split],
        filled(block_sizes, ir.IntegerType.get_signless(32)),
        [affine_map(rank, elements), affine_map(rank, blocks)],
        [REDUCTION if i == axis + 1 else PARALLEL for i in range(rank)],
        larger,
    )
    identity = affine_map(rank - 1, dims(rank - 1))
    scale = generic(
        [amax],
        empty(block_sizes, scale_type.element_type),
        [identity, identity],
        [PARALLEL] * (rank - 1),
        to_scale,
    )
    split_sizes = [*sizes[:axis], block_sizes[axis], block_size, *sizes[axis + 1 :]]
    mantissa = generic(
        [split, scale],
        empty(split_sizes, code_type.element_type),
        [affine_map(rank, elements), affine_map(rank, blocks), affine_map(rank, elements)],
        [PARALLEL] * rank,
        to_element,
    )
    return collapse(mantissa, axis, code_type), scale


def filled(sizes: Sequence[Any], element_type: Any) -> Any:
    """Return a tensor of zeros, through linalg.fill so that it bufferizes in place."""
    return linalg.fill(arith.constant(element_type, 0), outs=[empty(sizes, element_type)])


def lower_compose(op: ComposeOp, rewriter: rewrite.PatternRewriter) -> None:
    with rewriter.ip, op.location:
        type_ = op.output.type
        codes = op.mantissa
        if codes.type != type_.code_tensor_type:
            codes = _converted(codes, type_, type_.code_tensor_type, scalar.element_code)
        whole = join(type_, codes, op.scale)
    rewriter.replace_op(op, [whole])


def lower_decompose(op: DecomposeOp, rewriter: rewrite.PatternRewriter) -> None:
    with rewriter.ip, op.location:
        type_ = op.input.type
        codes, scale = parts(op.input)
        if codes.type != op.mantissa.type:
            codes = _converted(codes, type_, op.mantissa.type, scalar.element_from_code)
    rewriter.replace_op(op, [codes, scale])


def _converted(tensor: Any, whole: Any, type_: Any, convert: Callable[[Any, ElementFormat], Any]) -> Any:
    """Return a tensor of elements as codes, or of codes as elements."""
    fmt = ELEMENT_FORMATS[whole.spec.element]
    return elementwise(tensor, type_.element_type, lambda value: convert(value, fmt))


PATTERNS = (
    (DequantizeBlockOp, lower_dequantize_block),
    (QuantizeBlockOp, lower_quantize_block),
    (ComposeOp, lower_compose),
    (DecomposeOp, lower_decompose),
)
