"""What lowerings of matmuls to kernels build around the calls: padding, permutations, batches, the accumulator."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from mx_dialect._mlir import arith, ir, linalg, scf, tensor
from mx_dialect.generics import PARALLEL, affine_map, dims, empty, generic, reassociation
from mx_dialect.lowering.slices import slice_of, split_numbers


def padded(value: Any, shape: Sequence[int], fill: float) -> Any:
    """Return a tensor extended to a shape with a value, an int for codes; scales with 1, code 127, data with 0."""
    source = value.type
    if list(source.shape) == list(shape):
        return value
    high = [new - old for new, old in zip(shape, source.shape, strict=True)]
    result = ir.RankedTensorType.get(list(shape), source.element_type)
    constant = arith.constant(source.element_type, fill)
    pad = tensor.PadOp(result, value, [], [], [0] * len(high), high)
    index = ir.IndexType.get()
    block = ir.Block.create_at_start(pad.regions[0], [index] * len(high), [ir.Location.current] * len(high))
    with ir.InsertionPoint(block):
        tensor.yield_(constant)
    return pad.result


def reshaped(reshape: Any, value: Any, shape: list[int], groups: list[list[int]]) -> Any:
    """Build a tensor.expand_shape or collapse_shape to a static shape."""
    type_ = ir.RankedTensorType.get(shape, value.type.element_type)
    sizes = [[], shape] if reshape is tensor.expand_shape else []
    return reshape(type_, value, reassociation(groups), *sizes)


def permuted(value: Any, permutation: list[int]) -> Any:
    """Return a tensor whose axis i is axis permutation[i] of another."""
    shape = [value.type.shape[i] for i in permutation]
    target = empty(shape, value.type.element_type)
    return linalg.transpose(value, outs=[target], permutation=permutation).results[0]


def _bounds(value: Any, indices: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """Return offsets and sizes of the entry of a tensor at its leading indices."""
    rest = list(value.type.shape[len(indices) :])
    return [*indices, *[0] * len(rest)], [*[1] * len(indices), *rest]


def entry(value: Any, indices: Sequence[Any], shape: Sequence[int]) -> Any:
    """Return the entry of a tensor at its leading indices, in a shape that drops axes of extent 1."""
    if not indices:
        return value
    return slice_of(value, *_bounds(value, indices), ir.RankedTensorType.get(list(shape), value.type.element_type))


def _replaced(value: Any, indices: Sequence[Any], part: Any) -> Any:
    """Return a tensor with its entry at leading indices replaced."""
    offsets, sizes = _bounds(value, indices)
    values, static = split_numbers(offsets)
    return tensor.insert_slice(part, value, values, [], [], static, sizes, [1] * len(sizes))


def batch_indices(batch: Sequence[int], indices: Sequence[Any]) -> list[Any]:
    """Return where an operand with these batch extents has its matrix for the accumulator's batch indices.

    An operand may lack leading axes, and an axis of extent 1 serves all.
    """
    own = indices[len(indices) - len(batch) :]
    return [0 if extent == 1 else index for extent, index in zip(batch, own, strict=True)]


def over_batches(out: Any, product: Callable[[Sequence[Any], Any], Any]) -> Any:
    """Return `out`, [batch..., M, N], with `product(indices, matrix)` in place of each matrix.

    The loops are built one in the other; an axis of extent 1 has none.
    """
    extents = list(out.type.shape[:-2])
    if not extents:
        return product((), out)
    index = ir.IndexType.get()
    bounds = {n: arith.constant(index, n) for n in sorted({0, 1, *extents})}
    indices: list[Any] = []
    loops: list[Any] = []
    point = ir.InsertionPoint.current
    for extent in extents:
        if extent == 1:
            indices.append(0)
            continue
        with point:
            loops.append(scf.ForOp(bounds[0], bounds[extent], bounds[1], [out]))
        out = loops[-1].inner_iter_args[0]
        indices.append(loops[-1].induction_variable)
        point = ir.InsertionPoint(loops[-1].body)
    with point:
        matrix = product(indices, entry(out, indices, out.type.shape[-2:]))
        out = _replaced(out, indices, matrix)
    for loop in reversed(loops):
        with ir.InsertionPoint(loop.body):
            scf.yield_([out])
        out = loop.results[0]
    return out


def added(acc: Any, product: Any, factors: Sequence[Any]) -> Any:
    """Return the accumulator plus the product times factors of f32, each result rounded."""
    rank = acc.type.rank
    identity = affine_map(rank, dims(rank))

    def body(value: Any, *rest: Any) -> Any:
        *scalars, total = rest
        for factor in scalars:
            value = arith.mulf(value, factor)
        return arith.addf(total, value)

    maps = [identity, *(affine_map(rank, []) for _ in factors), identity]
    return generic([product, *factors], acc, maps, [PARALLEL] * rank, body)


def is_zero(value: Any) -> bool:
    """Tell whether a tensor is seen to be +0.0 throughout. A sum from -0.0 may be -0.0, which one from +0.0 is not."""
    if not isinstance(value, ir.OpResult):
        return False
    op = value.owner
    if op.name in ("linalg.fill", "tensor.splat"):
        scalar = op.operands[0]
        is_constant = isinstance(scalar, ir.OpResult) and scalar.owner.name == "arith.constant"
        return is_constant and _is_positive_zero(scalar.owner.attributes["value"])
    if op.name != "arith.constant":
        return False
    attribute = op.attributes["value"]
    is_splat = isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat
    return is_splat and _is_positive_zero(attribute.get_splat_value())


def _is_positive_zero(attribute: Any) -> bool:
    number = ir.FloatAttr(attribute).value
    return number == 0.0 and math.copysign(1.0, number) > 0
