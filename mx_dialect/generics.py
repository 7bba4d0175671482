"""Building linalg.generic operations: maps, extents, bodies."""

from collections.abc import Callable, Sequence
from typing import Any

from mx_dialect._mlir import arith, ir, linalg, tensor

PARALLEL = "parallel"
REDUCTION = "reduction"


def generic(
    inputs: Sequence[Any],
    output: Any,
    maps: Sequence[Any],
    iterators: Sequence[str],
    body: Callable[..., Any],
) -> Any:
    """Build a linalg.generic with one output at the current insertion point and return its result.

    `maps` has one affine map for each input and one for the output. `body` gets the scalars, inputs first, and returns
    the scalar to yield.
    """
    operands = [*inputs, output]
    location = ir.Location.current
    op = ir.Operation.create(
        "linalg.generic",
        results=[output.type],
        operands=operands,
        attributes={
            "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in maps]),
            "iterator_types": ir.ArrayAttr.get(
                [ir.Attribute.parse(f"#linalg.iterator_type<{kind}>") for kind in iterators]
            ),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(inputs), 1]),
        },
        regions=1,
    )
    scalars = [_scalar_type(v.type) for v in operands]
    block = ir.Block.create_at_start(op.regions[0], scalars, [location] * len(scalars))
    with ir.InsertionPoint(block):
        linalg.yield_([body(*block.arguments)])
    return op.result


def elementwise(value: Any, element_type: Any, body: Callable[[Any], Any]) -> Any:
    """Return a tensor that holds, of an element type, what `body` makes of each scalar of `value`."""
    rank = value.type.rank
    identity = affine_map(rank, dims(rank))
    init = empty([extent(value, i) for i in range(rank)], element_type)

    def ignoring_output(scalar: Any, _: Any) -> Any:
        return body(scalar)

    return generic([value], init, [identity, identity], [PARALLEL] * rank, ignoring_output)


def _scalar_type(type_: Any) -> Any:
    return type_.element_type if isinstance(type_, ir.ShapedType) else type_


def dims(count: int) -> list[Any]:
    """Return the affine dimensions d0, d1, ..."""
    return [ir.AffineExpr.get_dim(i) for i in range(count)]


def affine_map(count: int, results: Sequence[Any]) -> ir.AffineMap:
    """Return the map from `count` dimensions to `results`."""
    return ir.AffineMap.get(count, 0, list(results))


def blocked(results: Sequence[Any], axis: int, block_size: int) -> list[Any]:
    """Return `results` with the one at `axis` divided by the block size: how a scale is reached."""
    return [ir.AffineExpr.get_floor_div(e, block_size) if i == axis else e for i, e in enumerate(results)]


def extent(value: Any, axis: int) -> Any:
    """Return one extent of a tensor value: an int where it is static, an index value where it is not."""
    size = value.type.shape[axis]
    if size != ir.ShapedType.get_dynamic_size():
        return size
    return tensor.dim(value, arith.constant(ir.IndexType.get(), axis))


def divided(size: Any, divisor: int) -> Any:
    """Return an extent divided by a constant."""
    if isinstance(size, int):
        return size // divisor
    return arith.divui(size, arith.constant(ir.IndexType.get(), divisor))


def empty(sizes: Sequence[Any], element_type: Any) -> Any:
    """Return a tensor.empty with these extents, ints or index values."""
    return tensor.empty(list(sizes), element_type)


def expand(value: Any, axis: int, block_size: int) -> Any:
    """Return a tensor with one axis split into (axis / block_size, block_size)."""
    rank = value.type.rank
    sizes = [extent(value, i) for i in range(rank)]
    sizes[axis : axis + 1] = [divided(sizes[axis], block_size), block_size]
    dynamic = ir.ShapedType.get_dynamic_size()
    static = [s if isinstance(s, int) else dynamic for s in sizes]
    return tensor.expand_shape(
        ir.RankedTensorType.get(static, value.type.element_type),
        value,
        _grouped(rank, axis),
        [s for s in sizes if not isinstance(s, int)],
        static,
    )


def collapse(value: Any, axis: int, type_: Any) -> Any:
    """Return a tensor of type `type_` with the axes `axis` and `axis` + 1 merged."""
    return tensor.collapse_shape(type_, value, _grouped(type_.rank, axis))


def _grouped(rank: int, axis: int) -> Any:
    """Return the reassociation that pairs axis `axis` of the smaller shape with two axes of the larger."""
    return reassociation([[i + (i > axis)] if i != axis else [i, i + 1] for i in range(rank)])


def reassociation(groups: Sequence[Sequence[int]]) -> Any:
    index = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get([ir.ArrayAttr.get([ir.IntegerAttr.get(index, i) for i in g]) for g in groups])


def without_unit_axes(value: Any, axes: Sequence[int]) -> Any:
    """Return a view of a tensor without these axes of extent 1, none of them the last."""
    if not axes:
        return value
    groups: list[list[int]] = []
    pending: list[int] = []
    for axis in range(value.type.rank):
        pending.append(axis)
        if axis not in axes:
            groups.append(pending)
            pending = []
    shape = [size for axis, size in enumerate(value.type.shape) if axis not in axes]
    type_ = ir.RankedTensorType.get(shape, value.type.element_type)
    return tensor.collapse_shape(type_, value, reassociation(groups))


def slice_axis(value: Any, axis: int, offset: Any, size: int, drop: bool = False) -> Any:
    """Return `size` entries of one axis of a tensor from an index value on; with `drop`, without the axis."""
    dynamic = ir.ShapedType.get_dynamic_size()
    rank = value.type.rank
    sizes = [size if i == axis else extent(value, i) for i in range(rank)]
    static_sizes = [s if isinstance(s, int) else dynamic for s in sizes]
    kept = [s for i, s in enumerate(static_sizes) if not (drop and i == axis)]
    return tensor.extract_slice(
        ir.RankedTensorType.get(kept, value.type.element_type),
        value,
        [offset],
        [s for s in sizes if not isinstance(s, int)],
        [],
        [dynamic if i == axis else 0 for i in range(rank)],
        static_sizes,
        [1] * rank,
    )
