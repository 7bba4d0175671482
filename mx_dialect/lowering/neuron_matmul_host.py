"""What `mx-neuron-matmul` builds of the operands of a matmul for its kernel: x4 containers, and scale codes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mx_dialect._mlir import arith, ir, tensor
from mx_dialect.formats import E8M0
from mx_dialect.generics import elementwise
from mx_dialect.layouts.neuron import LANES, MX_CONTIGUOUS
from mx_dialect.lowering.matmul_host import batch_indices, padded, permuted, reshaped
from mx_dialect.lowering.slices import slice_of
from mx_dialect.neuron_ops import pack_weights
from mx_dialect.ops import DecomposeOp


@dataclass(frozen=True)
class Side:
    """One operand, ready for the kernel but for its batch axes: containers [K/4, batch..., X], codes of their scales
    [K/32, batch..., X]."""

    containers: Any
    scale: Any

    def of_batch(self, indices: Sequence[Any]) -> list[Any]:
        """Return the containers [K/4, X] and scale codes [K/32, X] at the accumulator's batch indices."""
        return [_of_batch(value, indices) for value in (self.containers, self.scale)]


def side(value: Any, is_k_last: bool, is_stationary: bool) -> Side:
    """Build what the kernel takes for an operand: [batch..., X, K] if `is_k_last`, else [batch..., K, X].

    Containers lie along K, element 4r + q in lane q of container r: a sum over partitions and lanes goes along K in
    order. The engine wants an even number of stationary columns; one that is added holds zeros with scale 1.
    """
    type_ = value.type
    parts = DecomposeOp(value, type_.code_tensor_type, type_.scale_tensor_type)
    codes, scale = (_k_first(part, is_k_last) for part in (parts.mantissa, _scale_codes(parts.scale)))
    if is_stationary:
        codes, scale = _even(codes, _zero(codes)), _even(scale, E8M0.bias)
    return Side(_containers(codes, type_.spec.element), scale)


def _scale_codes(scale: Any) -> Any:
    i8 = ir.IntegerType.get_signless(8)
    return elementwise(scale, i8, lambda value: arith.bitcast(i8, value))


def _k_first(part: Any, is_k_last: bool) -> Any:
    """Return elements or scales with the axis of K, the last or the one before it, in front."""
    rank = part.type.rank
    axis = rank - 1 if is_k_last else rank - 2
    order = [axis, *(i for i in range(rank) if i != axis)]
    return part if axis == 0 else permuted(part, order)


def _even(value: Any, fill: float) -> Any:
    *shape, columns = value.type.shape
    return padded(value, [*shape, columns + columns % 2], fill)


def _zero(codes: Any) -> float:
    """Return zero as an attribute of the element type takes it: an int for codes of less than a byte."""
    return 0 if isinstance(codes.type.element_type, ir.IntegerType) else 0.0


def _containers(codes: Any, element: str) -> Any:
    """Return elements [K, batch..., X] in containers [K/4, batch..., X]."""
    depth, *rest = codes.type.shape
    groups = [[0], list(range(1, codes.type.rank))]
    if len(rest) == 1:
        return pack_weights(codes, MX_CONTIGUOUS, element)
    flat = reshaped(tensor.collapse_shape, codes, [depth, math.prod(rest)], groups)
    packed = pack_weights(flat, MX_CONTIGUOUS, element)
    return reshaped(tensor.expand_shape, packed, [depth // LANES, *rest], groups)


def _of_batch(value: Any, indices: Sequence[Any]) -> Any:
    rows, *batch, columns = value.type.shape
    if not batch:
        return value
    offsets = [0, *batch_indices(batch, indices), 0]
    matrix = ir.RankedTensorType.get([rows, columns], value.type.element_type)
    return slice_of(value, offsets, [rows, *[1] * len(batch), columns], matrix)
