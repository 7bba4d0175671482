"""Integer values read as expressions: arith, index and affine arithmetic, loop variables, parameters, constants.

A term is an SSA value, or a part of the map of an affine.apply. Reading one looks at a single step; what its operands
are is for the reader to ask.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

from mx_dialect._mlir import ir

INDEX_BITS = 64
"""How wide an index is on every target of this project."""


@dataclass(frozen=True)
class AffineTerm:
    """An affine expression of the map of an affine.apply, whose operands are its dimensions and then its symbols."""

    expression: Any
    apply: Any
    dimensions: int


Term: TypeAlias = Any
"""An SSA value or an `AffineTerm`."""


@dataclass(frozen=True)
class Constant:
    value: int


@dataclass(frozen=True)
class Arithmetic:
    """An operation on two terms of `bits` bits, two's complement.

    `floordiv`, `ceildiv` and `div` are signed divisions that round down, up and to zero, `divu` is unsigned, `rem` has
    the sign of the dividend and `mod` that of the divisor; `minu` and `maxu` compare without sign.
    """

    kind: str
    lhs: Term
    rhs: Term
    bits: int


@dataclass(frozen=True)
class Cast:
    """A signed conversion between widths; one that does not widen drops the upper bits."""

    operand: Term
    widens: bool


@dataclass(frozen=True)
class LoopVariable:
    """What a loop counts: `start`, `start` + `step` and so on; None is not a constant."""

    start: int | None
    step: int | None
    is_signed: bool = True


@dataclass(frozen=True)
class Parameter:
    """Argument `number` of a func.func."""

    function: Any
    number: int


@dataclass(frozen=True)
class BlockNumber:
    """The number of the block that runs, or how many do."""


@dataclass(frozen=True)
class Unknown:
    """Anything else, called `what` in messages."""

    what: str


Expression: TypeAlias = Constant | Arithmetic | Cast | LoopVariable | Parameter | BlockNumber | Unknown

_ARITHMETIC = {
    "arith.addi": "add",
    "arith.subi": "sub",
    "arith.muli": "mul",
    "arith.floordivsi": "floordiv",
    "arith.divsi": "div",
    "arith.divui": "divu",
    "arith.remsi": "rem",
    "arith.minsi": "min",
    "arith.maxsi": "max",
    "arith.minui": "minu",
    "arith.maxui": "maxu",
    "index.add": "add",
    "index.sub": "sub",
    "index.mul": "mul",
    "index.floordivs": "floordiv",
    "index.divs": "div",
    "index.divu": "divu",
    "index.rems": "rem",
    "index.mins": "min",
    "index.maxs": "max",
    "index.minu": "minu",
    "index.maxu": "maxu",
}
_CONSTANTS = ("arith.constant", "index.constant")
_CASTS = ("arith.index_cast", "index.casts")
_BLOCK_NUMBERS = ("mx.block_idx", "mx.block_num")


def constant_of(term: Term) -> int | None:
    """Return the number that a term is by definition, None for any other term."""
    found = read(term) if isinstance(term, AffineTerm) or _is_result_of(term, _CONSTANTS) else None
    return found.value if isinstance(found, Constant) else None


def read(term: Term) -> Expression:
    """Return what a term is."""
    if isinstance(term, AffineTerm):
        return _affine(term)
    if isinstance(term, ir.BlockArgument):
        return _argument(term)
    op = term.owner
    name = op.name
    if name in _CONSTANTS:
        return _constant(op.attributes["value"])
    bits = _bits(term.type)
    if bits is None:
        return Unknown(f"a value of type '{term.type}'")
    if name in _ARITHMETIC:
        return Arithmetic(_ARITHMETIC[name], op.operands[0], op.operands[1], bits)
    if name in _CASTS:
        source = _bits(op.operands[0].type)
        return Unknown(f"'{name}'") if source is None else Cast(op.operands[0], bits >= source)
    if name in _BLOCK_NUMBERS:
        return BlockNumber()
    if name == "affine.apply":
        affine_map = op.attributes["map"].value
        return _affine(AffineTerm(affine_map.results[0], op, affine_map.n_dims))
    return Unknown(f"'{name}'")


def place(term: Term) -> Any:
    """Return a location of a term, for messages."""
    if isinstance(term, AffineTerm):
        return term.apply.location
    return term.location if isinstance(term, ir.BlockArgument) else term.owner.location


def _is_result_of(value: Any, names: tuple[str, ...]) -> bool:
    return isinstance(value, ir.OpResult) and value.owner.name in names


def _bits(type_: Any) -> int | None:
    """Return the width of an integer or index type, None for other types and for integers of over 64 bits."""
    if isinstance(type_, ir.IndexType):
        return INDEX_BITS
    return type_.width if isinstance(type_, ir.IntegerType) and type_.width <= INDEX_BITS else None


def _constant(attribute: Any) -> Expression:
    # An i1 is a BoolAttr, and the number 1 of that type is -1.
    if isinstance(attribute, ir.IntegerAttr) and _bits(attribute.type) is not None:
        return Constant(attribute.value)
    return Unknown(f"the constant '{attribute.type}'")


def _argument(argument: Any) -> Expression:
    block = argument.owner
    op = block.owner.operation
    number: int = argument.arg_number
    if op.name == "func.func" and op.regions[0].blocks[0] == block:
        return Parameter(op, number)
    if op.name == "scf.for" and number == 0:
        start, step = constant_of(op.operands[0]), constant_of(op.operands[2])
        return LoopVariable(start, step, is_signed="unsignedCmp" not in op.attributes)
    if op.name == "scf.forall" and number < len(op.attributes["staticStep"]):
        return LoopVariable(_forall_bounds(op, 0)[number], _forall_bounds(op, 2)[number])
    return Unknown(f"what '{op.name}' passes to its block")


_FORALL_BOUNDS = ("staticLowerBound", "staticUpperBound", "staticStep")


def _forall_bounds(op: Any, part: int) -> list[int | None]:
    """Return the lower bounds (`part` 0) or the steps (2) of an scf.forall; None is not a constant."""
    sizes = list(op.attributes["operandSegmentSizes"])
    first = sum(sizes[:part])
    values = iter(list(op.operands)[first : first + sizes[part]])
    dynamic = ir.ShapedType.get_dynamic_size()
    return [constant_of(next(values)) if n == dynamic else n for n in op.attributes[_FORALL_BOUNDS[part]]]


_AFFINE = {
    "AffineAddExpr": "add",
    "AffineMulExpr": "mul",
    "AffineModExpr": "mod",
    "AffineFloorDivExpr": "floordiv",
    "AffineCeilDivExpr": "ceildiv",
}


def _affine(term: AffineTerm) -> Expression:
    expression = term.expression
    if isinstance(expression, ir.AffineConstantExpr):
        return Constant(expression.value)
    if isinstance(expression, ir.AffineDimExpr):
        return Cast(term.apply.operands[expression.position], widens=True)
    if isinstance(expression, ir.AffineSymbolExpr):
        return Cast(term.apply.operands[term.dimensions + expression.position], widens=True)
    lhs, rhs = (AffineTerm(part, term.apply, term.dimensions) for part in (expression.lhs, expression.rhs))
    return Arithmetic(_AFFINE[type(expression).__name__], lhs, rhs, INDEX_BITS)
