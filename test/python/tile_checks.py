"""What tests of the passes on tiles ask about a module: where tiles lie, which moves there are, what it does without them."""

import re
from collections import Counter

from mx_dialect._mlir import ir

# Where each operation takes its tiles, from the specification of the engine.
NEEDED = {
    "mx.matmul_mx": ["left", "left_scale", "right", "right_scale"],
    "mx.matmul_mx_acc": ["acc", "left", "left_scale", "right", "right_scale"],
    "mx.matmul_mx_bias": ["left", "left_scale", "right", "right_scale", "bias"],
    "mx.tile_cast": ["vec"],
    "mx.quant_mx": ["vec"],
}


def walk(module):
    """Return all operations of a module, outer ones first."""
    found = []

    def visit(op):
        found.append(op.operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def space(value):
    """Return the memory space in a tile's type as the bindings print it, None for another type."""
    text = str(value.type)
    return text.split('"')[1] if text.startswith("!mx.tile<") else None


def block_arguments(op):
    return [a for region in op.regions for block in region for a in block.arguments]


def check_places(module):
    """Check that all spaces are decided, and that tiles lie where operations take them and loads say."""
    for op in walk(module):
        assert "undecided" not in map(space, (*op.operands, *op.results, *block_arguments(op))), op.name
        if op.name == "func.func":
            assert "undecided" not in str(op.attributes["function_type"])
        if op.name in NEEDED:
            assert list(map(space, op.operands)) == NEEDED[op.name]
        if op.name == "mx.tile_load":
            target = ir.StringAttr(op.attributes["target"]).value
            assert target == space(op.results[0])
            assert target == "mat" or (target == "vec" and "#mx.layout" not in str(op.operands[0].type))


def check_moves(module):
    """Check that no block has a move twice and that none is used in another block."""
    moves = [op for op in walk(module) if op.name == "mx.tile_move"]
    made = Counter((op.block, op.operands[0], space(op.results[0])) for op in moves)
    assert set(made.values()) <= {1}
    for op in moves:
        users = [use.owner.operation for use in op.results[0].uses]
        assert users
        assert all(user.block == op.block for user in users)


def without_moves(module):
    """Return what a module does, as a list of operations with numbered values, as if there were no memories to move to.

    Equal lists are equal computations: a moved tile has the number of the tile it was.
    """
    numbers = {}

    def define(value):
        numbers[value] = len(set(numbers.values()))
        return re.sub(r'(!mx\.tile<tensor<[^>]*>, )"\w*"', r"\1", str(value.type))

    listed = []
    for op in walk(module):
        if op.name == "mx.tile_move":
            numbers[op.results[0]] = numbers[op.operands[0]]
            continue
        operands = [numbers[value] for value in op.operands]
        defined = [define(value) for value in (*op.results, *block_arguments(op))]
        ignored = ("target", "function_type")
        attributes = sorted((name, str(op.attributes[name])) for name in op.attributes if name not in ignored)
        listed.append((op.name, operands, attributes, defined))
    return listed
