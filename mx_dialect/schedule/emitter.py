"""Building loops over vectors on buffers: a thin layer over the bindings in which extents are ints or index values."""

from collections.abc import Callable, Sequence
from typing import Any

from mx_dialect._mlir import affine, arith, ir, memref, scf, vector

Size = Any
"""An int where it is known, an index value where it is not."""


def index(value: Size) -> Any:
    """Return an index value."""
    return arith.constant(ir.IndexType.get(), value) if isinstance(value, int) else value


def _apply(expr: Any, *operands: Size) -> Size:
    map_ = ir.AffineMap.get(len(operands), 0, [expr])
    return affine.apply(map_, [index(v) for v in operands])


def _dim(number: int) -> Any:
    return ir.AffineExpr.get_dim(number)


def add(a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if isinstance(b, int):
        return a if b == 0 else _apply(_dim(0) + b, a)
    return add(b, a) if isinstance(a, int) else _apply(_dim(0) + _dim(1), a, b)


def sub(a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    return _apply(_dim(0) - _dim(1), a, b)


def scaled(a: Size, factor: int) -> Size:
    if isinstance(a, int):
        return a * factor
    return a if factor == 1 else _apply(_dim(0) * factor, a)


def floordiv(a: Size, divisor: int) -> Size:
    if isinstance(a, int):
        return a // divisor
    return a if divisor == 1 else _apply(ir.AffineExpr.get_floor_div(_dim(0), divisor), a)


def ceildiv(a: Size, divisor: int) -> Size:
    if isinstance(a, int):
        return -(-a // divisor)
    return a if divisor == 1 else _apply(ir.AffineExpr.get_ceil_div(_dim(0), divisor), a)


def minimum(a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    return arith.minsi(index(a), index(b))


def loop(
    start: Size, stop: Size, step: int, body: Callable[..., Sequence[Any]], carried: Sequence[Any] = ()
) -> list[Any]:
    """Build a loop; `body` gets the index and the carried values and returns those of the next iteration.

    A loop that runs exactly once is only its body, one that never runs is nothing.
    """
    if isinstance(start, int) and isinstance(stop, int):
        if stop <= start:
            return list(carried)
        if stop - start <= step:
            return list(body(start, *carried))
    op = scf.ForOp(index(start), index(stop), index(step), list(carried))
    with ir.InsertionPoint(op.body):
        scf.yield_(list(body(op.induction_variable, *op.inner_iter_args)))
    return list(op.results)


def tiles(start: Size, stop: Size, size: int, total: Size, body: Callable[[Any, int], Sequence[Any]]) -> None:
    """Build loops over start to stop in tiles of `size`, and what is left; `body` gets the index and the tile's size.

    `start` is a multiple of the size and so is `stop`, unless it is `total`, the end of all. Where that is known there
    is at most one more tile, of the size that is left; where not, there are smaller and smaller ones.
    """

    def tile_of(count: int) -> Callable[[Any], Sequence[Any]]:
        return lambda i: body(i, count)

    whole = add(start, scaled(floordiv(sub(stop, start), size), size))
    loop(start, whole, size, tile_of(size))
    if isinstance(total, int):
        if total % size:
            loop(whole, stop, size, tile_of(total % size))
        return
    while size > 1:
        start, size = whole, size // 2
        whole = add(start, scaled(floordiv(sub(stop, start), size), size))
        loop(start, whole, size, tile_of(size))


def vector_type(lanes: int, element: Any) -> Any:
    return ir.VectorType.get([lanes], element)


def f32() -> Any:
    return ir.F32Type.get()


def zeros(lanes: int) -> Any:
    """Return a vector of f32 zeros."""
    type_ = vector_type(lanes, f32())
    return arith.constant(type_, ir.DenseElementsAttr.get_splat(type_, ir.FloatAttr.get(f32(), 0.0)))


def first_lanes(lanes: int, count: Size) -> Any:
    """Return the mask of the first `count` lanes."""
    return vector.create_mask(ir.VectorType.get([lanes], ir.IntegerType.get_signless(1)), [index(count)])


def load(buffer: Any, indices: Sequence[Size]) -> Any:
    """Load one element."""
    return memref.load(buffer, [index(i) for i in indices])


def load_vector(buffer: Any, indices: Sequence[Size], lanes: int, mask: Any = None) -> Any:
    """Load neighbours along the last axis; with a mask, only the lanes it has, zeros for the others."""
    element = buffer.type.element_type
    type_ = vector_type(lanes, element)
    places = [index(i) for i in indices]
    if mask is None:
        return vector.load(type_, buffer, places)
    zero = ir.IntegerAttr.get(element, 0) if isinstance(element, ir.IntegerType) else ir.FloatAttr.get(element, 0.0)
    return vector.maskedload(
        type_, buffer, places, mask, arith.constant(type_, ir.DenseElementsAttr.get_splat(type_, zero))
    )


def store_vector(value: Any, buffer: Any, indices: Sequence[Size], mask: Any = None) -> None:
    """Store neighbours along the last axis; with a mask, only the lanes it has."""
    places = [index(i) for i in indices]
    if mask is None:
        vector.store(value, buffer, places)
    else:
        vector.maskedstore(buffer, places, mask, value)


def prefetch(buffer: Any, indices: Sequence[Size], level: int = 1) -> None:
    """Ask for the cache line of an element, to be in a level of the caches soon."""
    memref.PrefetchOp(buffer, [index(i) for i in indices], False, 4 - level, True)


def broadcast(value: Any, lanes: int) -> Any:
    return vector.broadcast(vector_type(lanes, value.type), value)


def scratch(shape: Sequence[int], element: Any = None) -> Any:
    """Allocate scratch memory, f32 or of another type, aligned to cache lines; the caller frees it with `release`."""
    type_ = ir.MemRefType.get(shape, f32() if element is None else element)
    return memref.alloc(type_, [], [], alignment=ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 64))


def release(buffer: Any) -> None:
    memref.dealloc(buffer)


def if_true(condition: Any, then: Callable[[], None]) -> None:
    """Build what runs if a condition holds."""
    branch = scf.IfOp(condition)
    with ir.InsertionPoint(branch.then_block):
        then()
        scf.yield_([])


def either(
    condition: Any,
    then: Callable[[], Sequence[Any]],
    otherwise: Callable[[], Sequence[Any]],
    types: Sequence[Any] = (),
) -> list[Any]:
    """Build what runs if a condition holds, and if not; both return values of the given types."""
    branch = scf.IfOp(condition, list(types), has_else=True)
    for block, build in ((branch.then_block, then), (branch.else_block, otherwise)):
        with ir.InsertionPoint(block):
            scf.yield_(list(build()))
    return list(branch.results)
