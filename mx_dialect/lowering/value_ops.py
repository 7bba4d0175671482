"""Patterns that lower each value-level operation to linalg on (mantissa, scale) tensors.

Between the patterns and the boundary rewrite (`split_boundaries`), an mx value and its two parts are joined by
builtin.unrealized_conversion_cast, 1:2 or 2:1.
"""

from typing import Any

from mx_dialect import scalar
from mx_dialect._mlir import arith, ir, linalg, rewrite
from mx_dialect.fold_chain import strip
from mx_dialect.formats import ELEMENT_FORMATS
from mx_dialect.generics import (
    PARALLEL,
    REDUCTION,
    affine_map,
    blocked,
    collapse,
    dims,
    divided,
    empty,
    expand,
    extent,
    generic,
)
from mx_dialect.lowering.parts import join, parts
from mx_dialect.ops import (
    BlockMatmulOp,
    ComposeOp,
    DecomposeOp,
    DequantizeBlockOp,
    QuantizeBlockOp,
)
from mx_dialect.types import TensorType


def lower_block_matmul(op: BlockMatmulOp, rewriter: rewrite.PatternRewriter) -> None:
    """acc + A * B becomes one generic that reads each scale through `k floordiv block_size`."""
    with rewriter.ip, op.location:
        rank = op.acc.type.rank
        m, n, k = (ir.AffineExpr.get_dim(rank - 2 + i) for i in range(3))
        batch = dims(rank - 2)
        lhs = _Operand(op.lhs, [*batch, m, k])
        rhs = _Operand(op.rhs, [*batch, k, n])
        inputs = [*lhs.tensors, *rhs.tensors, *lhs.factors, *rhs.factors]
        accesses = [*lhs.accesses, *rhs.accesses, *([()] * (len(lhs.factors) + len(rhs.factors))), [*batch, m, n]]

        def body(*scalars: Any) -> Any:
            *values, accumulator = scalars
            split = len(lhs.tensors)
            factors_at = split + len(rhs.tensors)
            rhs_factors_at = factors_at + len(lhs.factors)
            a = lhs.value(values[:split], values[factors_at:rhs_factors_at])
            b = rhs.value(values[split:factors_at], values[rhs_factors_at:])
            return op.body(accumulator, a, b)

        iterators = [*[PARALLEL] * rank, REDUCTION]
        result = generic(inputs, op.acc, [affine_map(rank + 1, a) for a in accesses], iterators, body)
    rewriter.replace_op(op, [result])


class _Operand:
    """One side of a block_matmul: its tensors, how each is reached, and the factors folded into it."""

    def __init__(self, value: Any, access: list[Any]):
        self.factors: list[Any] = []
        if not isinstance(value.type, TensorType):
            self.tensors = [value]
            self.accesses = [access]
            return
        value, factor = strip(value)
        self.factors = [] if factor is None else [factor]
        self.tensors = list(parts(value))
        self.accesses = [access, blocked(access, value.type.axis, value.type.block_size)]

    def value(self, scalars: list[Any], factors: list[Any]) -> Any:
        """Return the operand's element in f32 from the scalars read from its tensors."""
        if len(scalars) == 1:
            return scalar.to_f32(scalars[0])
        return scalar.element_value(scalars[0], scalars[1], factors)


def lower_dequantize_block(op: DequantizeBlockOp, rewriter: rewrite.PatternRewriter) -> None:
    """Every element times its scale: a parallel generic with `floordiv` in the scale's map."""
    with rewriter.ip, op.location:
        value, factor = strip(op.input)
        mantissa, scale = parts(value)
        type_ = op.output.type
        access = dims(type_.rank)
        init = empty([extent(mantissa, i) for i in range(type_.rank)], type_.element_type)
        inputs = [mantissa, scale] if factor is None else [mantissa, scale, factor]
        accesses = [access, blocked(access, value.type.axis, value.type.block_size)]
        if factor is not None:
            accesses.append([])

        def body(element: Any, scale: Any, *rest: Any) -> Any:
            return scalar.from_f32(op.body(element, scale, rest[:-1]), type_.element_type)

        maps = [affine_map(type_.rank, a) for a in [*accesses, access]]
        result = generic(inputs, init, maps, [PARALLEL] * type_.rank, body)
    rewriter.replace_op(op, [result])


def lower_quantize_block(op: QuantizeBlockOp, rewriter: rewrite.PatternRewriter) -> None:
    """The input, its blocked axis split in two, is reduced to block maxima, those to scales; then the elements."""
    with rewriter.ip, op.location:
        type_ = op.output.type
        fmt = ELEMENT_FORMATS[str(type_.element_type)]
        axis, rank = type_.axis, type_.rank + 1
        split = expand(op.input, axis, type_.block_size)
        elements = dims(rank)
        blocks = [d for i, d in enumerate(elements) if i != axis + 1]
        sizes = [extent(op.input, i) for i in range(type_.rank)]
        block_sizes = [divided(s, type_.block_size) if i == axis else s for i, s in enumerate(sizes)]

        def larger(value: Any, largest: Any) -> Any:
            return arith.maxui(largest, scalar.magnitude_bits(value))

        def to_scale(largest: Any, _: Any) -> Any:
            return op.scale_body(largest, fmt, op.rounding, type_.scale_type)

        def to_element(value: Any, scale: Any, _: Any) -> Any:
            return op.body(value, scale, fmt, type_.element_type)

        amax = generic(
            [split],
            _filled(block_sizes, ir.IntegerType.get_signless(32)),
            [affine_map(rank, elements), affine_map(rank, blocks)],
            [REDUCTION if i == axis + 1 else PARALLEL for i in range(rank)],
            larger,
        )
        identity = affine_map(rank - 1, dims(rank - 1))
        scale = generic(
            [amax],
            empty(block_sizes, type_.scale_type),
            [identity, identity],
            [PARALLEL] * (rank - 1),
            to_scale,
        )
        split_sizes = [*sizes[:axis], block_sizes[axis], type_.block_size, *sizes[axis + 1 :]]
        mantissa = generic(
            [split, scale],
            empty(split_sizes, type_.element_type),
            [affine_map(rank, elements), affine_map(rank, blocks), affine_map(rank, elements)],
            [PARALLEL] * rank,
            to_element,
        )
        whole = join(type_, collapse(mantissa, axis, type_.mantissa_type), scale)
    rewriter.replace_op(op, [whole])


def _filled(sizes: list[Any], element_type: Any) -> Any:
    """Return a tensor of zeros, through linalg.fill so that it bufferizes in place."""
    return linalg.fill(arith.constant(element_type, 0), outs=[empty(sizes, element_type)])


def lower_compose(op: ComposeOp, rewriter: rewrite.PatternRewriter) -> None:
    with rewriter.ip, op.location:
        whole = join(op.output.type, op.mantissa, op.scale)
    rewriter.replace_op(op, [whole])


def lower_decompose(op: DecomposeOp, rewriter: rewrite.PatternRewriter) -> None:
    with rewriter.ip, op.location:
        pair = parts(op.input)
    rewriter.replace_op(op, list(pair))


PATTERNS = (
    (BlockMatmulOp, lower_block_matmul),
    (DequantizeBlockOp, lower_dequantize_block),
    (QuantizeBlockOp, lower_quantize_block),
    (ComposeOp, lower_compose),
    (DecomposeOp, lower_decompose),
)
