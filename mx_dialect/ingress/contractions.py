"""Matrix products in linalg, by their maps: linalg.matmul, linalg.batch_matmul and the generics that say the same."""

from dataclasses import dataclass
from typing import Any

from mx_dialect._mlir import ir

_NAMED = ("linalg.matmul", "linalg.batch_matmul")


@dataclass(frozen=True)
class Contraction:
    """A product of two operands, in loops. `dims` has, for lhs, rhs and output, the loop of each axis; `k` is summed.

    `lhs` is the operand with the rows of the output, its second-to-last axis; `lhs_at` is its number. Operands are what
    they are now: they change when a product before this one is rewritten.
    """

    op: Any
    lhs_at: int
    dims: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
    k: int

    @property
    def lhs(self) -> Any:
        return self.op.operands[self.lhs_at]

    @property
    def rhs(self) -> Any:
        return self.op.operands[1 - self.lhs_at]

    @property
    def acc(self) -> Any:
        return self.op.operands[2]

    @property
    def batch(self) -> tuple[int, ...]:
        return self.dims[2][:-2]


def contraction(op: Any) -> Contraction | None:
    """Return the matrix product that an operation is, or None."""
    if len(op.operands) != 3 or len(op.results) != 1 or not (op.name in _NAMED or _is_multiply_add(op)):
        return None
    maps = [_dims(m.value) for m in op.attributes["indexing_maps"]]
    if len(maps) != 3 or any(m is None for m in maps):
        return None
    first, second, out = (m for m in maps if m is not None)
    summed = (set(first) | set(second)) - set(out)
    if len(out) < 2 or len(summed) != 1 or not summed <= set(first) & set(second):
        return None
    rows, columns = out[-2:]
    lhs_at = 0 if rows in first else 1
    a, b = (second, first) if lhs_at else (first, second)
    if not (rows in a and rows not in b and columns in b and columns not in a) or not set(out) <= set(a) | set(b):
        return None
    return Contraction(op, lhs_at, (a, b, out), summed.pop())


def _dims(map_: Any) -> tuple[int, ...] | None:
    """Return the dimensions that a map selects, or None if it does anything else."""
    if not all(isinstance(e, ir.AffineDimExpr) for e in map_.results):
        return None
    positions = tuple(e.position for e in map_.results)
    return positions if len(set(positions)) == len(positions) else None


def _is_multiply_add(op: Any) -> bool:
    """Tell whether an operation is a linalg.generic that adds products to its output."""
    if op.name != "linalg.generic":
        return False
    block = op.regions[0].blocks[0]
    a, b, out = block.arguments
    added = _made_by(block.operations[len(block.operations) - 1].operation.operands[0], "arith.addf")
    if added is None or out not in list(added.operands):
        return False
    product = next((v for v in added.operands if v != out), None)
    multiplied = None if product is None else _made_by(product, "arith.mulf")
    if multiplied is None:
        return False
    factors = [_unextended(v) for v in multiplied.operands]
    return factors in ([a, b], [b, a])


def _made_by(value: Any, name: str) -> Any | None:
    return value.owner.operation if isinstance(value, ir.OpResult) and value.owner.operation.name == name else None


def _unextended(value: Any) -> Any:
    extension = _made_by(value, "arith.extf")
    return value if extension is None else extension.operands[0]
