"""Patterns that lower `mx.block_matmul` to linalg, in one of two ways of applying the scales."""

from collections.abc import Callable
from typing import Any

from mx_dialect import scalar
from mx_dialect._mlir import arith, ir, linalg, rewrite, scf
from mx_dialect.fold_chain import strip
from mx_dialect.formats import ELEMENT_FORMATS
from mx_dialect.generics import (
    PARALLEL,
    REDUCTION,
    affine_map,
    blocked,
    dims,
    divided,
    empty,
    extent,
    generic,
    slice_axis,
    without_unit_axes,
)
from mx_dialect.lowering.parts import parts
from mx_dialect.ops import BlockMatmulOp
from mx_dialect.schedule.attribute import ATTRIBUTE as SCHEDULE
from mx_dialect.types import TensorType

Pattern = Callable[[BlockMatmulOp, rewrite.PatternRewriter], None]

# The values of the `scale-products` option.
SCALE_PRODUCTS = ("elements", "exponent")


def pattern(scale_products: str) -> Pattern:
    """Return the pattern for one of the values of the `scale-products` option."""
    return {"elements": scale_elements, "exponent": scale_block_dots}[scale_products]


def scale_elements(op: BlockMatmulOp, rewriter: rewrite.PatternRewriter) -> None:
    """acc + A * B becomes one generic that reads each scale through `k floordiv block_size`.

    A schedule that the operation asks for is the generic's.
    """
    with rewriter.ip, op.location:
        loops = _Loops(op)
        lhs, rhs = loops.operands()
        inputs = [*lhs.tensors, *rhs.tensors, *lhs.factors, *rhs.factors]
        accesses = [*lhs.accesses, *rhs.accesses, *[[]] * (len(lhs.factors) + len(rhs.factors)), loops.output]

        def body(*scalars: Any) -> Any:
            *values, accumulator = scalars
            split = len(lhs.tensors)
            factors_at = split + len(rhs.tensors)
            rhs_factors_at = factors_at + len(lhs.factors)
            a = lhs.value(values[:split], values[factors_at:rhs_factors_at])
            b = rhs.value(values[split:factors_at], values[rhs_factors_at:])
            return op.body(accumulator, a, b)

        maps = [affine_map(loops.rank + 1, access) for access in accesses]
        result = generic(inputs, op.acc, maps, [*[PARALLEL] * loops.rank, REDUCTION], body)
        if SCHEDULE in op.attributes:
            result.owner.attributes[SCHEDULE] = op.attributes[SCHEDULE]
    rewriter.replace_op(op, [result])


class _Loops:
    """The loops of a matmul: batch dimensions, m, n and k, and which of them each operand is reached by."""

    def __init__(self, op: BlockMatmulOp):
        self.op = op
        self.rank = op.acc.type.rank
        self.m, self.n, self.k = (ir.AffineExpr.get_dim(self.rank - 2 + i) for i in range(3))
        self.batch = dims(self.rank - 2)
        self.output = [*self.batch, self.m, self.n]

    def operands(self) -> tuple["_Operand", "_Operand"]:
        columns = [self.n, self.k] if self.op.transpose_rhs else [self.k, self.n]
        return self._operand(self.op.lhs, [self.m, self.k]), self._operand(self.op.rhs, columns)

    def _operand(self, value: Any, matrix: list[Any]) -> "_Operand":
        """Return one side; batch axes that it lacks, or has once for all of the accumulator's, are not loops of it."""
        rank = value.type.rank
        batch = self.batch[len(self.batch) - (rank - 2) :]
        shared = [_is_broadcast(value.type, i, self.op.acc.type) for i in range(rank - 2)]
        access = [d for d, drop in zip(batch, shared, strict=True) if not drop]
        return _Operand(value, [*access, *matrix], [i for i, drop in enumerate(shared) if drop])


def _is_broadcast(type_: Any, axis: int, acc: Any) -> bool:
    """Tell whether a batch axis of extent 1 serves several of the accumulator's."""
    return type_.shape[axis] == 1 and acc.shape[acc.rank - type_.rank + axis] != 1


class _Operand:
    """One side of a block_matmul: its tensors, how each is reached, and the factors folded into it."""

    def __init__(self, value: Any, access: list[Any], unit_axes: list[int]):
        self.factors: list[Any] = []
        self.block_size = 0
        if not isinstance(value.type, TensorType):
            self.tensors = [without_unit_axes(value, unit_axes)]
            self.accesses = [access]
            return
        value, factor = strip(value)
        self.factors = [] if factor is None else [factor]
        self.tensors = [without_unit_axes(part, unit_axes) for part in parts(value)]
        axis = value.type.axis - len(unit_axes)
        self.block_size = value.type.block_size
        self.fmt = ELEMENT_FORMATS[value.type.spec.element]
        self.accesses = [access, blocked(access, axis, self.block_size)]
        self.k_axis = axis

    @property
    def is_quantized(self) -> bool:
        return len(self.tensors) == 2

    def value(self, scalars: list[Any], factors: list[Any]) -> Any:
        """Return the operand's element in f32 from the scalars read from its tensors."""
        if not self.is_quantized:
            return scalar.to_f32(scalars[0])
        return scalar.element_value(scalars[0], scalars[1], self.fmt, factors)

    def element(self, element: Any) -> Any:
        """Return the operand's element in f32 without its scale."""
        return scalar.decode_element(element, self.fmt) if self.is_quantized else scalar.to_f32(element)


def scale_block_dots(op: BlockMatmulOp, rewriter: rewrite.PatternRewriter) -> None:
    """acc + A * B becomes a loop over blocks of K: the dot product of the elements alone, then its scale, then the sum.

    The exponents of both scales are added as integers, so that between two block-scaled sides no product leaves f32's
    range on the way to a block's contribution that does not leave it. An extreme float times an element still may.
    """
    with rewriter.ip, op.location:
        loops = _Loops(op)
        lhs, rhs = loops.operands()
        # Block sizes are powers of two: the smallest divides the others.
        step = min(side.block_size for side in (lhs, rhs) if side.is_quantized)
        blocks = divided(_extent_of_k(lhs if lhs.is_quantized else rhs), step)
        zero, one, count = (_index(i) for i in (0, 1, blocks))
        loop = scf.ForOp(zero, count, one, [op.acc])
        with ir.InsertionPoint(loop.body):
            sum_so_far = loop.inner_iter_args[0]
            dot = _block_dot(loops, lhs, rhs, step, loop.induction_variable)
            scf.yield_([_add_scaled(loops, lhs, rhs, step, loop.induction_variable, dot, sum_so_far)])
    rewriter.replace_op(op, list(loop.results))


def _extent_of_k(side: _Operand) -> Any:
    return extent(side.tensors[0], side.k_axis)


def _index(value: Any) -> Any:
    return arith.constant(ir.IndexType.get(), value) if isinstance(value, int) else value


def _block_dot(loops: _Loops, lhs: _Operand, rhs: _Operand, step: int, block: Any) -> Any:
    """Return the dot products of one block of K, elements without scales, in f32."""
    first = arith.muli(block, _index(step))
    sides = [slice_axis(side.tensors[0], side.accesses[0].index(loops.k), first, step) for side in (lhs, rhs)]
    sizes = [extent(loops.op.acc, i) for i in range(loops.rank)]
    f32 = ir.F32Type.get()
    zeros = linalg.fill(arith.constant(f32, 0.0), outs=[empty(sizes, f32)])

    def body(a: Any, b: Any, accumulator: Any) -> Any:
        return loops.op.body(accumulator, lhs.element(a), rhs.element(b))

    maps = [affine_map(loops.rank + 1, a) for a in (lhs.accesses[0], rhs.accesses[0], loops.output)]
    return generic(sides, zeros, maps, [*[PARALLEL] * loops.rank, REDUCTION], body)


def _add_scaled(loops: _Loops, lhs: _Operand, rhs: _Operand, step: int, block: Any, dot: Any, accumulator: Any) -> Any:
    """Return the accumulator plus the dot products times both scales and the folded factors."""
    scales: list[Any] = []
    accesses: list[list[Any]] = []
    for side in (lhs, rhs):
        if not side.is_quantized:
            continue
        at = arith.divui(block, _index(side.block_size // step)) if side.block_size != step else block
        scales.append(slice_axis(side.tensors[1], side.k_axis, at, 1, drop=True))
        accesses.append([d for i, d in enumerate(side.accesses[0]) if i != side.k_axis])
    factors = [*lhs.factors, *rhs.factors]

    def body(product: Any, *rest: Any) -> Any:
        *values, total = rest
        scaled = scalar.times_scales(product, values[: len(scales)])
        for factor in values[len(scales) :]:
            scaled = arith.mulf(scaled, factor)
        return arith.addf(total, scaled)

    maps = [affine_map(loops.rank, a) for a in (loops.output, *accesses, *[[]] * len(factors), loops.output)]
    return generic([dot, *scales, *factors], accumulator, maps, [PARALLEL] * loops.rank, body)
