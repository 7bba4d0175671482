"""mx-expand-k: split each loop that a linalg.generic divides, so that its maps are projected permutations.

Scales are read through `d2 floordiv 32`. `linalg.generic` allows that map, but the structured vectorizer, and
every other transformation that wants projected permutations, refuses it. Splitting the loop at the block size
removes the division: with K reshaped to (K / 32, 32) the loop k becomes (kb, ki), a scale is read at kb, and

    %0 = linalg.generic {
      indexing_maps = [(m, n, k) -> (m, k), (m, n, k) -> (m, k floordiv 32),
                       (m, n, k) -> (k, n), (m, n, k) -> (m, n)],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %scale, %b : tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU>, tensor<64x64xf32>)
      outs(%c : tensor<32x64xf32>) {...}

becomes

    %ea = tensor.expand_shape %a [[0], [1, 2]] : tensor<32x64xf8E4M3FN> into tensor<32x2x32xf8E4M3FN>
    %eb = tensor.expand_shape %b [[0, 1], [2]] : tensor<64x64xf32> into tensor<2x32x64xf32>
    %0 = linalg.generic {
      indexing_maps = [(m, n, kb, ki) -> (m, kb, ki), (m, n, kb, ki) -> (m, kb),
                       (m, n, kb, ki) -> (kb, ki, n), (m, n, kb, ki) -> (m, n)],
      iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
      ins(%ea, %scale, %eb : tensor<32x2x32xf8E4M3FN>, tensor<32x2xf8E8M0FNU>, tensor<2x32x64xf32>)
      outs(%c : tensor<32x64xf32>) {...}

The reshapes are views: they bufferize to memref.expand_shape and move nothing. Iterations keep their order,
so results are the same to the bit. An outs operand that a split loop indexes is expanded too, and its result
is collapsed again.

A loop divided by several constants, each a multiple of the next, is split at all of them. A dimension indexed
by `d floordiv c` then gets the pieces above c, one indexed by `d mod c` those below, one indexed by `d` all.

The rewrite is all or nothing: an operation of which some map would not become a projected permutation stays
as it is, and a remark says what is in the way.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import prod
from typing import Any, Literal

from mx_dialect import diagnostics, passes
from mx_dialect._mlir import affine, arith, ir, linalg, memref, tensor
from mx_dialect.schedule.attribute import ATTRIBUTE
from mx_dialect.walk import operations


class _LeaveAlone(Exception):
    """Why an operation is not rewritten, as the end of a sentence."""


@dataclass(frozen=True)
class _Access:
    """One result of an indexing map: the loop `dim` itself, its quotient by `divisor` or the remainder."""

    dim: int
    part: Literal["all", "floordiv", "mod"] = "all"
    divisor: int = 1


# One indexing map: an access for each result, None for the constant 0.
_Map = tuple[_Access | None, ...]


@dataclass(frozen=True)
class _Split:
    """The loops that replace one loop, outermost first.

    `extents` are their numbers of iterations, `strides` how many steps of the old loop each step makes.
    """

    extents: tuple[int, ...]
    strides: tuple[int, ...]

    def pieces(self, access: _Access) -> range:
        """Return which of the loops index the operand dimension of this access."""
        count = len(self.strides)
        if access.part == "all":
            return range(count)
        above = self.strides.index(access.divisor) + 1
        return range(above) if access.part == "floordiv" else range(above, count)


@dataclass(frozen=True)
class _Plan:
    """All that the rewrite of one linalg.generic needs. `splits` holds the divided loops only."""

    maps: tuple[_Map, ...]
    splits: dict[int, _Split]
    loop_count: int

    def first_loop(self) -> list[int]:
        """Return the number of the first new loop of each old one."""
        widths = [len(self.splits[d].extents) if d in self.splits else 1 for d in range(self.loop_count)]
        return [0, *accumulate(widths)]

    def loops(self, access: _Access | None) -> list[int]:
        """Return the new loops that index the operand dimension of an access, outermost first."""
        if access is None:
            return []
        first = self.first_loop()[access.dim]
        split = self.splits.get(access.dim)
        return [first + piece for piece in split.pieces(access)] if split else [first]

    def extents(self, access: _Access | None) -> list[int]:
        """Return the sizes an operand dimension is expanded to; none when no split loop indexes it."""
        split = self.splits.get(access.dim) if access else None
        return [split.extents[piece] for piece in split.pieces(access)] if access and split else []


def _divides(expr: Any) -> bool:
    """Return whether a floordiv occurs anywhere in the expression."""
    if isinstance(expr, ir.AffineFloorDivExpr):
        return True
    return isinstance(expr, ir.AffineBinaryExpr) and (_divides(expr.lhs) or _divides(expr.rhs))


def _access(number: int, expr: Any) -> _Access | None:
    """Return the access that a map result of operand `number` makes, None for the constant 0."""
    if isinstance(expr, ir.AffineConstantExpr) and expr.value == 0:
        return None
    if isinstance(expr, ir.AffineDimExpr):
        return _Access(expr.position)
    if isinstance(expr, ir.AffineFloorDivExpr | ir.AffineModExpr):
        loop, divisor = expr.lhs, expr.rhs
        if isinstance(loop, ir.AffineDimExpr) and isinstance(divisor, ir.AffineConstantExpr) and divisor.value > 0:
            part = "floordiv" if isinstance(expr, ir.AffineFloorDivExpr) else "mod"
            return _Access(loop.position, part, divisor.value)
    raise _LeaveAlone(f"operand #{number} is indexed by '{expr}', not by d, d floordiv c, d mod c or 0")


def _operand_dims(op: Any, maps: Sequence[_Map]) -> Iterator[tuple[int, int, _Access, int]]:
    """Yield (operand number, dimension, access, size) of each operand dimension that a loop indexes."""
    for number, (value, accesses) in enumerate(zip(op.operands, maps, strict=True)):
        for dim, access in enumerate(accesses):
            if access is not None:
                yield number, dim, access, value.type.shape[dim]


def _split(dim: int, divisors: set[int], extent: int) -> _Split:
    """Return the loops that replace loop `dim`, which the maps divide by `divisors`."""
    strides = [*sorted(divisors, reverse=True), 1]
    for outer, inner in pairwise(strides):
        if outer % inner:
            raise _LeaveAlone(f"d{dim} is divided by {outer} and by {inner}, and neither divides the other")
    if extent % strides[0]:
        raise _LeaveAlone(
            f"the extent {extent} of d{dim} is not a multiple of {strides[0]}; pad it to whole blocks first"
        )
    extents = [outer // inner for outer, inner in pairwise([extent, *strides])]
    return _Split(tuple(extents), tuple(strides))


def _plan(op: Any) -> _Plan:
    """Return how to rewrite a linalg.generic, or raise `_LeaveAlone`. Changes nothing."""
    affine_maps = [attribute.value for attribute in op.attributes["indexing_maps"]]
    maps = tuple(
        tuple(_access(number, expr) for expr in affine_map.results) for number, affine_map in enumerate(affine_maps)
    )

    divisors: dict[int, set[int]] = {}
    for access in (access for accesses in maps for access in accesses if access):
        if access.part != "all":
            divisors.setdefault(access.dim, set()).add(access.divisor)

    extents: dict[int, int] = {}
    for number, dim, access, size in _operand_dims(op, maps):
        if access.dim not in divisors:
            continue
        if size == ir.ShapedType.get_dynamic_size():
            raise _LeaveAlone(
                f"dimension {dim} of operand #{number} is dynamic, and d{access.dim} is split only if static"
            )
        if access.part == "all":
            extents[access.dim] = size

    # Invertible maps, which linalg demands, index some operand by each loop as a whole.
    splits = {dim: _split(dim, constants, extents[dim]) for dim, constants in divisors.items()}
    plan = _Plan(maps, splits, affine_maps[0].n_dims)
    _check_sizes(op, plan)
    for number, (value, accesses) in enumerate(zip(op.operands, maps, strict=True)):
        _check_operand(number, value.type, accesses, plan)
    return plan


def _check_sizes(op: Any, plan: _Plan) -> None:
    """Require that split loops reach all of each dimension.

    What `floordiv` and `mod` index may be longer than they reach, what a loop indexes may not.
    """
    for number, dim, access, size in _operand_dims(op, plan.maps):
        reached = prod(plan.extents(access))
        if access.dim in plan.splits and size != reached:
            raise _LeaveAlone(
                f"dimension {dim} of operand #{number} is {size} long, and only {reached} of it are used;"
                " take a slice first"
            )


def _check_operand(number: int, kind: Any, accesses: _Map, plan: _Plan) -> None:
    """Require a map that repeats no loop and, where the operand is reshaped, a type that can be."""
    loops = [loop for access in accesses for loop in plan.loops(access)]
    if len(set(loops)) < len(loops):
        raise _LeaveAlone(f"the map of operand #{number} uses a loop twice")
    if not _is_reshaped(accesses, plan):
        return
    if isinstance(kind, ir.MemRefType):
        if kind.layout != ir.AffineMapAttr.get(ir.AffineMap.get_identity(kind.rank)):
            raise _LeaveAlone(f"operand #{number} has the layout {kind.layout}, and only a contiguous one is reshaped")
    elif kind.encoding is not None:
        raise _LeaveAlone(f"operand #{number} has the encoding {kind.encoding}, which a reshape would not keep true")


def _is_reshaped(accesses: _Map, plan: _Plan) -> bool:
    return any(len(plan.loops(access)) > 1 for access in accesses)


def _reassociation(accesses: _Map, plan: _Plan) -> list[list[int]]:
    """Return the groups of expanded dimensions, one a dimension of the operand."""
    widths = [max(len(plan.loops(access)), 1) for access in accesses]
    ends = list(accumulate(widths))
    return [list(range(end - width, end)) for end, width in zip(ends, widths, strict=True)]


def _expand(value: Any, accesses: _Map, plan: _Plan) -> Any:
    """Return the operand with every dimension that split loops index expanded, itself when there is none."""
    if not _is_reshaped(accesses, plan):
        return value
    old = value.type
    sizes = [plan.extents(access) or [size] for access, size in zip(accesses, old.shape, strict=True)]
    shape = [size for group in sizes for size in group]
    if isinstance(old, ir.MemRefType):
        reshapes = memref
        expanded = ir.MemRefType.get(shape, old.element_type, memory_space=old.memory_space)
    else:
        reshapes = tensor
        expanded = ir.RankedTensorType.get(shape, old.element_type)
    dynamic = [
        reshapes.DimOp(value, arith.ConstantOp(ir.IndexType.get(), dim)).result
        for dim in range(old.rank)
        if old.is_dynamic_dim(dim)
    ]
    return reshapes.ExpandShapeOp(expanded, value, _reassociation(accesses, plan), dynamic, shape).result


def _new_map(accesses: _Map, plan: _Plan) -> Any:
    results = [
        expr
        for access in accesses
        for expr in (
            [ir.AffineExpr.get_dim(loop) for loop in plan.loops(access)] if access else [ir.AffineExpr.get_constant(0)]
        )
    ]
    return ir.AffineMapAttr.get(ir.AffineMap.get(plan.first_loop()[-1], 0, results))


def _iterator_types(op: Any, output_maps: Sequence[_Map], plan: _Plan) -> Any:
    """Return the iterator types: those of the old loops, but parallel for the pieces that index all outs.

    With outs `(m, k floordiv 32)` the loop k is a reduction, but only inside a block: no two steps of kb meet
    in one element.
    """
    parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
    outs = [{loop for access in accesses for loop in plan.loops(access)} for accesses in output_maps]
    in_all_outs = set[int].intersection(*outs) if outs else set[int]()
    kinds: list[Any] = []
    for dim, kind in enumerate(op.attributes["iterator_types"]):
        free = in_all_outs if dim in plan.splits else ()
        kinds += [parallel if loop in free else kind for loop in plan.loops(_Access(dim))]
    return ir.ArrayAttr.get(kinds)


def _renumber_indices(block: Any, plan: _Plan) -> None:
    """Make each linalg.index of the body give the same number as before in terms of the new loops."""
    for op in [op.operation for op in block.operations if op.operation.name == "linalg.index"]:
        dim = ir.IntegerAttr(op.attributes["dim"]).value
        loops = plan.loops(_Access(dim))
        if dim not in plan.splits:
            op.attributes["dim"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), loops[0])
            continue
        with ir.InsertionPoint(op), op.location:
            terms = [ir.AffineExpr.get_dim(i) * stride for i, stride in enumerate(plan.splits[dim].strides)]
            total = ir.AffineMap.get(len(loops), 0, [sum(terms[1:], start=terms[0])])
            whole = affine.AffineApplyOp(total, [linalg.IndexOp(loop).result for loop in loops])
        op.results[0].replace_all_uses_with(whole.result)
        op.erase()


def _rewrite(op: Any, plan: _Plan) -> None:
    """Replace a linalg.generic by one over the split loops."""
    output_count = op.attributes["operandSegmentSizes"][1]
    with ir.InsertionPoint(op), op.location:
        operands = [_expand(value, accesses, plan) for value, accesses in zip(op.operands, plan.maps, strict=True)]
        # On tensors there is a result for each outs operand, on memrefs there is none.
        tied = slice(len(operands) - len(op.results), None)
        attributes = dict(op.attributes.items())
        attributes["indexing_maps"] = ir.ArrayAttr.get([_new_map(accesses, plan) for accesses in plan.maps])
        attributes["iterator_types"] = _iterator_types(op, plan.maps[len(operands) - output_count :], plan)
        new = ir.Operation.create(
            "linalg.generic",
            results=[value.type for value in operands[tied]],
            operands=operands,
            attributes=attributes,
            regions=1,
        )
        body = op.regions[0].blocks[0]
        body.append_to(new.regions[0])
        _renumber_indices(body, plan)
        for old_result, result, accesses in zip(op.results, new.results, plan.maps[tied], strict=True):
            if _is_reshaped(accesses, plan):
                groups = _reassociation(accesses, plan)
                result = tensor.CollapseShapeOp(old_result.type, result, groups).result
            old_result.replace_all_uses_with(result)
    op.erase()


def _is_dividing_generic(op: Any) -> bool:
    """Tell whether an operation is a linalg.generic without a schedule and with a floordiv in a map."""
    return (
        op.name == "linalg.generic"
        and ATTRIBUTE not in op.attributes
        and any(_divides(result) for attribute in op.attributes["indexing_maps"] for result in attribute.value.results)
    )


def _split_loops(op: Any) -> None:
    """Rewrite one linalg.generic, or remark why it cannot be."""
    try:
        plan = _plan(op)
    except _LeaveAlone as reason:
        diagnostics.remark_at(op, f"mx-expand-k leaves this linalg.generic as it is: {reason}")
    else:
        _rewrite(op, plan)


def run(root: Any, options: passes.NoOptions) -> None:
    """Split the divided loops of every linalg.generic under `root`, in place."""
    with root.context, ir.Location.unknown():
        for op in operations(root, _is_dividing_generic):
            _split_loops(op)


PASS = passes.register_pass(
    passes.Pass(
        name="mx-expand-k",
        summary="Split the loops that indexing maps divide, so that linalg.generic can be vectorized",
        run=run,
        requires="each divided loop of a linalg.generic has a static extent of whole blocks",
        leaves="no floordiv in indexing maps, except in operations that a remark names",
    )
)
