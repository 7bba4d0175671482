"""Contractions on packed codes of four bits: two a byte, the even index in the low nibble.

    %codes = mx.unpack %packed {element = f4E2M1FN} : tensor<48x32xi8> -> tensor<48x64xi8>
    linalg.generic ... ins(%codes, ...) {                       // (d0, d1, d2) -> (d1, d2)
    ^bb0(%code: i8, ...):

`absorb` makes the contraction read the bytes itself, so that no tensor of codes is ever made:

    linalg.generic ... ins(%packed, ...) {                      // (d0, d1, d2) -> (d1, d2 floordiv 2)
    ^bb0(%byte: i8, ...):
      %k = linalg.index 2 : index
      %odd = arith.andi %k, %c1 : index
      %bit = arith.index_cast %odd : index to i8
      %shift = arith.shli %bit, %c2 : i8
      %rest = arith.shrui %byte, %shift : i8
      %code = arith.andi %rest, %c15 : i8

which means the same with or without a schedule. `nibble_of` recognizes that body, and schedules read nibbles in
registers.
"""

import math
import sys
from typing import Any

from mx_dialect._mlir import arith, ir, linalg

UNPACKS = "mx.unpacks"
"""The attribute of the linalg.generic that a lowered `mx.unpack` is: the element type whose codes it unpacks."""
CODES_PER_BYTE = 2
_WIDTH = 4
_MASK = 15


def nibble_of(argument: Any) -> tuple[Any, int] | None:
    """Return the value of a body that is a nibble of a byte, and the loop whose parity says which; None if none is."""
    uses = list(argument.uses)
    if str(argument.type) != "i8" or len(uses) != 1:
        return None
    rest = _defined(uses[0].owner, "arith.shrui")
    if rest is None or rest.operands[0] != argument:
        return None
    masks = [use.owner for use in rest.result.uses]
    code = _defined(masks[0], "arith.andi") if len(masks) == 1 else None
    if code is None or not _is_constant(code.operands[1], _MASK):
        return None
    loop = _parity(rest.operands[1])
    return None if loop is None else (code.result, loop)


def _parity(shift: Any) -> int | None:
    """Return the loop whose parity, times four, a shift is."""
    shifted = _owner(shift, "arith.shli")
    if shifted is None or not _is_constant(shifted.operands[1], _WIDTH // CODES_PER_BYTE):
        return None
    cast = _owner(shifted.operands[0], "arith.index_cast")
    odd = None if cast is None else _owner(cast.operands[0], "arith.andi")
    if odd is None or not _is_constant(odd.operands[1], 1):
        return None
    index = _owner(odd.operands[0], "linalg.index")
    return None if index is None else ir.IntegerAttr(index.attributes["dim"]).value


def _owner(value: Any, name: str) -> Any:
    return _defined(value.owner, name) if isinstance(value, ir.OpResult) else None


def _defined(op: Any, name: str) -> Any:
    return op.operation if op.operation.name == name else None


def _is_constant(value: Any, wanted: int) -> bool:
    constant = _owner(value, "arith.constant")
    return constant is not None and ir.IntegerAttr(constant.attributes["value"]).value == wanted


def absorb(op: Any) -> bool:
    """Make a linalg.generic on tensors read the bytes of the inputs that are unpacked for it, the largest first.

    An input stays as it is if otherwise no operand told the extent of a loop any more. Return whether there was one.
    """
    maps = [ir.AffineMapAttr(a).value for a in ir.ArrayAttr(op.attributes["indexing_maps"])]
    found = {number: packed for number in range(len(maps) - 1) if (packed := _packed(op, number, maps[number]))}
    with op.location:
        for number in sorted(found, key=lambda i: -_elements(found[i])):
            loop = maps[number].results[-1].position
            last = maps[number].results[-1]
            changed = _with_last(maps[number], ir.AffineExpr.get_floor_div(last, CODES_PER_BYTE))
            if not any(_reaches(map_, loop) for i, map_ in enumerate(maps) if i != number):
                continue
            maps[number] = changed
            op.operands[number] = found[number]
            _take_nibble(op, number, loop)
        op.attributes["indexing_maps"] = ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in maps])
    return bool(found)


def _elements(value: Any) -> int:
    return math.prod(value.type.shape) if value.type.has_static_shape else sys.maxsize


def _reaches(map_: Any, loop: int) -> bool:
    return any(isinstance(e, ir.AffineDimExpr) and e.position == loop for e in map_.results)


def _packed(op: Any, number: int, map_: Any) -> Any:
    """Return the bytes from which the codes of an input are unpacked along the last axis, or None."""
    collapsed = _owner(op.operands[number], "tensor.collapse_shape")
    unpacked = None if collapsed is None else _owner(collapsed.operands[0], "linalg.generic")
    if unpacked is None or UNPACKS not in unpacked.attributes or not isinstance(map_.results[-1], ir.AffineDimExpr):
        return None
    return unpacked.operands[0]


def unpacked_map(map_: Any) -> Any:
    """Return the map that reaches codes where `map_` reaches their bytes."""
    return _with_last(map_, map_.results[-1].lhs)


def _with_last(map_: Any, last: Any) -> Any:
    return ir.AffineMap.get(map_.n_dims, map_.n_symbols, [*list(map_.results)[:-1], last])


def _take_nibble(op: Any, number: int, loop: int) -> None:
    """Put a nibble of an argument wherever the body uses the argument."""
    body = op.regions[0].blocks[0]
    argument = body.arguments[number]
    i8 = ir.IntegerType.get_signless(8)
    with ir.InsertionPoint(op):
        one = arith.constant(ir.IndexType.get(), 1)
        two, mask = arith.constant(i8, _WIDTH // CODES_PER_BYTE), arith.constant(i8, _MASK)
    with ir.InsertionPoint.at_block_begin(body):
        odd = arith.index_cast(i8, arith.andi(linalg.IndexOp(loop).result, one))
        rest = arith.shrui(argument, arith.shli(odd, two))
        code = arith.andi(rest, mask)
    argument.replace_all_uses_except(code, rest.owner.operation)
