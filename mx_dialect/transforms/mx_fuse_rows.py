"""mx-fuse-rows: run chains of operations over large tensors a few rows at a time, while the rows are in cache.

Quantization reads its input twice, for the block maxima and for the elements:

    %amax = linalg.generic over (m, g, i) ins(%x)            // 64 MiB from memory
    %scale = linalg.generic over (m, g) ins(%amax)
    %codes = linalg.generic over (m, g, i) ins(%x, %scale)   // and again

becomes

    scf.for %m = 0 to M step T iter_args(%scale, %codes) {
      %rows = tensor.extract_slice %x[%m, 0, 0] [T, G, 32]
      the same three operations on T rows, their results inserted into %scale and %codes
    }

A chain is a linalg.generic with the producers of its operands, as long as every tensor is read and written row by
row: its first axis, and no other, is the same parallel loop. A matrix multiplication is no part of one, since a row of
it needs all of the other matrix.
"""

from dataclasses import dataclass
from functools import cmp_to_key
from math import prod
from typing import Any

from mx_dialect import passes
from mx_dialect._mlir import arith, ir, scf, tensor
from mx_dialect.generics import slice_axis
from mx_dialect.schedule.attribute import ATTRIBUTE
from mx_dialect.transforms.structured import Structured, Unsuitable
from mx_dialect.walk import operations


@dataclass(frozen=True)
class Options:
    cache_bytes: int = passes.option(256 * 1024, "How much of a chain's tensors may be worked on at a time")


@dataclass
class _Chain:
    """Operations in program order, and the extent of the loop that their first axes share."""

    ops: list[Any]
    rows: int

    def row_bytes(self) -> int:
        """Return how many bytes a row of all tensors has; an init that is overwritten counts as its result."""
        values = {v for op in self.ops for v in (*op.operands, *op.results) if not _is_empty(v)}
        return sum(_bytes(v.type) // self.rows for v in values if isinstance(v.type, ir.RankedTensorType))


def _bytes(type_: Any) -> int:
    element = type_.element_type
    return prod(type_.shape) * (8 if isinstance(element, ir.IndexType) else element.width // 8)


def _is_empty(value: Any) -> bool:
    return isinstance(value, ir.OpResult) and value.owner.name == "tensor.empty"


def _rows(op: Any) -> int | None:
    """Return the extent of an operation's first loop, if by it, and no other way, it goes through the first axes.

    None for an operation that is not like that, that has several results, or a schedule of its own.
    """
    if ATTRIBUTE in op.attributes:
        return None
    try:
        structured = Structured.of(op)
    except Unsuitable:
        return None
    if len(op.results) != 1 or 0 in structured.reductions:
        return None
    tensors = [m for m, v in zip(structured.maps, op.operands, strict=True) if isinstance(v.type, ir.RankedTensorType)]
    goes_by_rows = all(m and m[0] == 0 and 0 not in m[1:] for m in tensors)
    return structured.extents[0] if goes_by_rows else None


def _chain_of(op: Any) -> _Chain | None:
    """Return the chain that ends in an operation, None if there is none."""
    rows = _rows(op)
    if rows is None:
        return None
    members = {op}
    waiting = [op]
    while waiting:
        for value in waiting.pop().operands:
            producer = value.owner.operation if isinstance(value, ir.OpResult) else None
            if producer is None or producer in members or producer.block != op.block or _rows(producer) != rows:
                continue
            members.add(producer)
            waiting.append(producer)
    ordered = sorted(members, key=cmp_to_key(_program_order))
    # A fill is no step of a chain: it is there for the reduction that it starts.
    steps = [o for o in ordered if Structured.of(o).input_count and isinstance(o.operands[0].type, ir.RankedTensorType)]
    return _Chain(ordered, rows) if len(steps) > 1 and _used_after(ordered, op) else None


def _program_order(first: Any, second: Any) -> int:
    return -1 if first.is_before_in_block(second) else int(first != second)


def _used_after(ops: list[Any], last: Any) -> bool:
    """Tell whether everything else that uses results of `ops` comes after the last of them."""
    users = (use.owner.operation for op in ops for use in op.results[0].uses)
    return all(user in ops or _follows(user, last) for user in users)


def _follows(op: Any, last: Any) -> bool:
    """Tell whether an operation that depends on the block of another comes after that other."""
    while op.block.region != last.block.region:
        op = op.parent.operation
    # Another block of the region runs when this one is done.
    return op.block != last.block or last.is_before_in_block(op)


def _fits(chain: _Chain, cache_bytes: int) -> bool:
    """Tell whether the tensors of a chain, and so those of any part of it, stay in cache anyway."""
    return chain.row_bytes() * chain.rows <= 2 * cache_bytes


def _tile(chain: _Chain, cache_bytes: int) -> int | None:
    """Return how many rows to take at a time, None if that is all of them."""
    row_bytes = chain.row_bytes()
    tile = 1
    while chain.rows % (2 * tile) == 0 and 2 * tile * row_bytes <= cache_bytes:
        tile *= 2
    return tile if tile < chain.rows else None


def _rewrite(chain: _Chain, tile: int) -> None:
    """Put a chain into a loop over `tile` rows at a time."""
    last = chain.ops[-1]
    kept = [op for op in chain.ops if any(use.owner.operation not in chain.ops for use in op.results[0].uses)]
    with ir.InsertionPoint(last), last.location:
        index = ir.IndexType.get()
        bounds = [arith.constant(index, n) for n in (0, chain.rows, tile)]
        loop = scf.ForOp(*bounds, [_initial(chain, op) for op in kept])
        with ir.InsertionPoint(loop.body):
            row = loop.induction_variable
            outputs = {op.results[0]: whole for op, whole in zip(kept, loop.inner_iter_args, strict=True)}
            rows: dict[Any, Any] = {}
            for op in chain.ops:
                _clone_for_rows(chain, op, row, tile, rows, outputs)
            scf.yield_([_inserted(rows[value], whole, row, tile) for value, whole in outputs.items()])
    for op, result in zip(kept, loop.results, strict=True):
        op.results[0].replace_all_uses_with(result)
    for op in reversed(chain.ops):
        op.erase()


def _init_of(op: Any) -> Any:
    return list(op.operands)[-1]


def _comes_from(chain: _Chain, value: Any) -> bool:
    return isinstance(value, ir.OpResult) and value.owner.operation in chain.ops


def _initial(chain: _Chain, op: Any) -> Any:
    """Return what the loop starts from for a result: what the operation updates in place, or nothing."""
    init = _init_of(op)
    if not _comes_from(chain, init) and not _is_empty(init):
        return init
    type_ = op.results[0].type
    return tensor.empty(list(type_.shape), type_.element_type)


def _clone_for_rows(chain: _Chain, op: Any, row: Any, tile: int, rows: dict[Any, Any], outputs: dict[Any, Any]) -> None:
    """Repeat an operation on some rows; `rows` has the rows of the tensors seen so far."""
    result = op.results[0]
    operands = [_part(value, row, tile, rows) for value in list(op.operands)[:-1]]
    init = _init_of(op)
    if result in outputs and not _comes_from(chain, init):
        # Computed where it will be.
        operands.append(slice_axis(outputs[result], 0, row, tile))
    else:
        operands.append(_part(init, row, tile, rows))
    with op.location:
        copy = op.clone()
    for number, operand in enumerate(operands):
        copy.operands[number] = operand
    copy.results[0].set_type(operands[-1].type)
    rows[result] = copy.results[0]


def _part(value: Any, row: Any, tile: int, rows: dict[Any, Any]) -> Any:
    """Return some rows of a tensor; anything else as it is."""
    if not isinstance(value.type, ir.RankedTensorType):
        return value
    if _is_empty(value):
        return tensor.empty([tile, *value.type.shape[1:]], value.type.element_type)
    if value not in rows:
        rows[value] = slice_axis(value, 0, row, tile)
    return rows[value]


def _inserted(part: Any, whole: Any, row: Any, tile: int) -> Any:
    dynamic = ir.ShapedType.get_dynamic_size()
    rank = whole.type.rank
    sizes = [tile, *whole.type.shape[1:]]
    return tensor.insert_slice(part, whole, [row], [], [], [dynamic, *[0] * (rank - 1)], sizes, [1] * rank)


def run(root: Any, options: Options) -> None:
    """Put every chain under `root` that is larger than the cache into a loop over rows."""
    with root.context, ir.Location.unknown():
        candidates = operations(root, lambda op: op.name == "linalg.generic")
        # From the last on, so that a chain is as long as it can be; what becomes part of one is done with.
        while candidates:
            chain = _chain_of(candidates.pop())
            if chain is None:
                continue
            fits = _fits(chain, options.cache_bytes)
            tile = None if fits else _tile(chain, options.cache_bytes)
            if fits or tile is not None:
                members = set(chain.ops)
                candidates = [op for op in candidates if op not in members]
            if tile is not None:
                _rewrite(chain, tile)


PASS = passes.register_pass(
    passes.Pass(
        name="mx-fuse-rows",
        summary="Run chains of elementwise operations and row-wise reductions a few rows at a time",
        run=run,
        options=Options,
        requires="linalg on tensors; static extents",
        leaves="the same operations in loops over rows; everything else as it is",
    )
)
