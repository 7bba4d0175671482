"""Extents that a program leaves open and its operations relate: checked before a kernel runs, or while it does.

MLIR takes it on trust that dynamic extents agree: `mx.block_matmul` of a `tensor<?x64xf32>` reads past its end when the
`?` are not what they should be. Each extent is followed back to where it comes from. Where a relation holds between
extents of the function's arguments, it becomes a `Check` for the caller of the compiled function; where one of them is
known only when the program runs, a `cf.assert` before the operation. Relations that hold by themselves cost nothing.

Covered are the mx operations, linalg's structured ones, elementwise arith and math, casts, and the indices of
tensor.extract, insert, extract_slice and insert_slice outside the bodies of linalg operations. An index computed in
such a body, or by any other operation, is the program's own affair, as in MLIR.
"""

from collections.abc import Callable
from typing import Any

from mx_dialect._mlir import affine, arith, cf, ir, linalg
from mx_dialect.analysis.extents import Extent, Extents, constant, is_elementwise, sizes
from mx_dialect.diagnostics import at, error_at
from mx_dialect.runtime.call_checks import Check, Term
from mx_dialect.runtime.signature import Signature
from mx_dialect.tensor_spec import TensorSpec


def insert_checks(function: Any, signature: Signature) -> tuple[Check, ...]:
    """Return the checks that a caller of this function makes, and insert asserts for all others in its module.

    Raises:
        MxError: a relation between open extents that cannot be expressed.
    """
    with function.context, ir.Location.unknown():
        checks: list[Check] = []
        for op in list(function.parent.regions[0].blocks[0]):
            if op.operation.name == "func.func":
                slots = _slots(function, signature) if op.operation == function else {}
                checks += _Relations(slots).visit(op.operation)
        return tuple(checks)


def _slots(function: Any, signature: Signature) -> dict[Any, int]:
    """Return the slot of each argument, or none if the program calls the function itself, with other arguments."""
    called: list[Any] = []

    def visit(op: Any) -> Any:
        if op.name == "func.call" and ir.FlatSymbolRefAttr(op.attributes["callee"]).value == signature.name:
            called.append(op)
        return ir.WalkResult.ADVANCE

    function.parent.walk(visit)
    if called:
        return {}
    slots: dict[Any, int] = {}
    position = 0
    for argument, value in zip(function.arguments, signature.arguments, strict=True):
        slots[argument] = position
        position += len(value.slots)
    return slots


class _Relations:
    """What the operations of one function demand of extents.

    `slots` has the arguments that the caller can look at.
    """

    def __init__(self, slots: dict[Any, int]):
        self.extents = Extents()
        self._slots = slots
        self._checks: list[Check] = []

    def visit(self, op: Any) -> list[Check]:
        """Visit every operation inside `op`; return the caller's checks and insert the asserts."""
        for region in op.regions:
            for block in region:
                # Listed first: the asserts go into the same block.
                for inner in list(block):
                    self._relate(inner.operation)
                    if not inner.operation.name.startswith("linalg."):
                        self.visit(inner.operation)
        return self._checks

    def _relate(self, op: Any) -> None:
        indexed = _INDEXED.get(op.name)
        if indexed is not None:
            indexed(self, op)
        elif not any(None in (sizes(value) or ()) for value in (*op.operands, *op.results)):
            return
        elif (rule := _RULES.get(op.name)) is not None:
            rule(self, op)
        elif op.name.startswith("linalg."):
            _relate_linalg(self, op)
        elif is_elementwise(op):
            tensors = [value for value in op.operands if sizes(value) is not None]
            for other in tensors[1:]:
                self.same_shape(op, tensors[0], other, "operands of an elementwise operation have one shape")

    def same_shape(self, op: Any, left: Any, right: Any, what: str) -> None:
        for a, b in zip(self.extents.of(left), self.extents.of(right), strict=True):
            self.equal(op, a, b, what)

    def equal(self, op: Any, left: Extent, right: Extent, what: str) -> None:
        """Demand that two extents are equal."""
        if left.is_same(right):
            return
        reason = at(op, "error", f"{what} ('{op.name}')")
        a, b = self._term(left), self._term(right)
        if a is not None and b is not None:
            self._checks.append(Check(reason, a, b))
            return
        with ir.InsertionPoint(op), op.location:
            equal = arith.cmpi(arith.CmpIPredicate.eq, left.emit(), right.emit())
            cf.AssertOp(equal, f"extents must agree: {reason.message}")

    def multiple(self, op: Any, extent: Extent, divisor: int, what: str) -> None:
        """Demand that an extent is a multiple of `divisor`."""
        if divisor == 1 or (extent.is_constant and extent.factor % divisor == 0):
            return
        reason = at(op, "error", f"{what} ('{op.name}')")
        term = self._term(extent)
        if term is not None:
            self._checks.append(Check(reason, term, divisor=divisor))
            return
        with ir.InsertionPoint(op), op.location:
            index = ir.IndexType.get()
            remainder = arith.remui(extent.emit(), arith.constant(index, divisor))
            whole = arith.cmpi(arith.CmpIPredicate.eq, remainder, arith.constant(index, 0))
            cf.AssertOp(whole, f"extent must be a multiple of {divisor}: {reason.message}")

    def covers(self, op: Any, extent: Extent, expr: Any, loops: dict[int, Extent]) -> None:
        """Demand that an index expression stays below an extent in all iterations of the loops.

        Raises:
            MxError: the expression may be largest elsewhere than in the last iteration.
        """
        if not _grows(expr):
            raise error_at(
                op,
                f"'{op.name}' indexes an operand of open extents by {expr}, whose range cannot be checked; make the"
                " extents static",
            )
        with ir.InsertionPoint(op), op.location:
            index = ir.IndexType.get()
            one = arith.constant(index, 1)
            count = max(loops) + 1
            last = [arith.subi(loops[i].emit(), one) if i in loops else arith.constant(index, 0) for i in range(count)]
            largest = affine.AffineApplyOp(ir.AffineMap.get(count, 0, [expr]), last).result
            below = arith.cmpi(arith.CmpIPredicate.slt, largest, extent.emit())
            cf.AssertOp(below, f"index {expr} of '{op.name}' runs past the end of an operand")

    def inside(self, op: Any, index: Extent, extent: Extent, what: str) -> None:
        """Demand that an index is 0 or more and below an extent."""
        if index.is_constant and extent.is_constant and 0 <= index.factor < extent.factor:
            return
        with ir.InsertionPoint(op), op.location:
            # Unsigned, so that a negative index is far above any extent.
            below = arith.cmpi(arith.CmpIPredicate.ult, index.emit(), extent.emit())
            cf.AssertOp(below, f"{what} ('{op.name}')")

    def at_most(self, op: Any, index: Extent, extent: Extent, what: str) -> None:
        """Demand that an index is 0 or more and not above an extent."""
        if index.is_constant and index.factor == 0:
            return
        with ir.InsertionPoint(op), op.location:
            below = arith.cmpi(arith.CmpIPredicate.ule, index.emit(), extent.emit())
            cf.AssertOp(below, f"{what} ('{op.name}')")

    def not_negative(self, op: Any, extent: Extent, what: str) -> None:
        """Demand that an index is 0 or more; extents of tensors are."""
        if extent.axis is not None or (extent.is_constant and extent.factor >= 0):
            return
        with ir.InsertionPoint(op), op.location:
            zero = arith.constant(ir.IndexType.get(), 0)
            valid = arith.cmpi(arith.CmpIPredicate.sge, extent.emit(), zero)
            cf.AssertOp(valid, f"{what} must not be negative ('{op.name}')")

    def _term(self, extent: Extent) -> Term | None:
        """Return an extent as the caller of the function knows it, if it does."""
        if extent.is_constant:
            return Term(None, None, extent.factor)
        slot = self._slots.get(extent.origin)
        return None if slot is None else Term(slot, extent.axis, extent.factor)


def _grows(expr: Any) -> bool:
    """Tell whether an index expression is never negative and never falls as the loops go on."""
    if isinstance(expr, ir.AffineDimExpr):
        return True
    if isinstance(expr, ir.AffineConstantExpr):
        return expr.value >= 0
    growing = ir.AffineAddExpr | ir.AffineMulExpr | ir.AffineFloorDivExpr | ir.AffineCeilDivExpr
    return isinstance(expr, growing) and _grows(expr.lhs) and _grows(expr.rhs)


def _relate_quantize(relations: _Relations, op: Any) -> None:
    spec: TensorSpec = op.results[0].type.spec
    blocked = relations.extents.of(op.operands[0])[spec.axis]
    relations.multiple(op, blocked, spec.block_size, "the blocked axis holds whole blocks")


def _relate_compose(relations: _Relations, op: Any) -> None:
    spec: TensorSpec = op.results[0].type.spec
    mantissa, scale = (relations.extents.of(operand) for operand in op.operands)
    for axis, (m, s) in enumerate(zip(mantissa, scale, strict=True)):
        block = spec.block_size if axis == spec.axis else 1
        relations.equal(op, m, s.times(block), "mantissa and scale go together")


def _relate_matmul(relations: _Relations, op: Any) -> None:
    a, b, c = (relations.extents.of(operand) for operand in op.operands)
    k, n = (b[-1], b[-2]) if op.opview.transpose_rhs else (b[-2], b[-1])
    relations.equal(op, a[-1], k, "K of lhs and rhs")
    relations.equal(op, a[-2], c[-2], "M of lhs and acc")
    relations.equal(op, n, c[-1], "N of rhs and acc")
    for value, batch, role in ((op.operands[0], a[:-2], "lhs"), (op.operands[1], b[:-2], "rhs")):
        types = (sizes(value) or [])[: len(batch)]
        # Leading axes may be missing; an axis serves all of acc's only if its type says 1.
        for size, given, acc in zip(reversed(types), reversed(batch), reversed(c[:-2]), strict=False):
            if size != 1:
                relations.equal(op, given, acc, f"batch extents of {role} and acc")


def _relate_cast(relations: _Relations, op: Any) -> None:
    for source, size in zip(relations.extents.of(op.operands[0]), sizes(op.results[0]) or (), strict=True):
        if size is not None:
            relations.equal(op, source, constant(size), "the extent that a tensor is cast to")


def _relate_empty(relations: _Relations, op: Any) -> None:
    for size in op.operands:
        relations.not_negative(op, relations.extents.of_index(size), "an extent")


def _relate_linalg(relations: _Relations, op: Any) -> None:
    if op.name == "linalg.softmax":
        relations.same_shape(op, op.operands[0], op.operands[1], "input and output have one shape")
        return
    maps = linalg.get_indexing_maps(op)
    if maps is None:
        raise error_at(op, f"'{op.name}' on open extents is not checked, and so not compiled; make its extents static")
    loops: dict[int, Extent] = {}
    others: list[tuple[Any, Extent]] = []
    for operand, map_ in zip(op.operands, maps, strict=True):
        for expr, extent in zip(map_.value.results, relations.extents.of(operand), strict=True):
            if not isinstance(expr, ir.AffineDimExpr):
                others.append((expr, extent))
            elif expr.position in loops:
                relations.equal(op, loops[expr.position], extent, f"the extents of loop d{expr.position}")
            else:
                loops[expr.position] = extent
    for expr, extent in others:
        # With every extent static MLIR has checked it.
        if loops and not all(e.is_constant for e in (extent, *loops.values())):
            relations.covers(op, extent, expr, loops)


def _relate_element(relations: _Relations, op: Any, first: int) -> None:
    """tensor.extract and tensor.insert: one index an axis, after `first` operands of which the last is the tensor."""
    extents = relations.extents.of(op.operands[first - 1])
    for operand, extent in zip(list(op.operands)[first:], extents, strict=True):
        relations.inside(op, relations.extents.of_index(operand), extent, "an index is out of bounds")


def _relate_slice(relations: _Relations, op: Any, first: int) -> None:
    """tensor.extract_slice and tensor.insert_slice: [offsets] [sizes] [strides] within the operand before `first`."""
    operands = iter(list(op.operands)[first:])
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()

    def values(name: str) -> list[Extent]:
        static = ir.DenseI64ArrayAttr(op.attributes[name])
        return [
            relations.extents.of_index(next(operands)) if number == dynamic else constant(number) for number in static
        ]

    offsets, lengths, strides = values("static_offsets"), values("static_sizes"), values("static_strides")
    whole = relations.extents.of(op.operands[first - 1])
    for offset, length, stride, extent in zip(offsets, lengths, strides, whole, strict=True):
        if all(e.is_constant for e in (offset, length, stride, extent)):
            continue  # MLIR has checked it.
        relations.at_most(op, offset, extent, "an offset is out of bounds")
        relations.at_most(op, length, extent, "a size is out of bounds")
        relations.not_negative(op, stride, "a stride")
        with ir.InsertionPoint(op), op.location:
            index = ir.IndexType.get()
            steps = arith.subi(length.emit(), arith.constant(index, 1))
            last = arith.addi(offset.emit(), arith.muli(steps, stride.emit()))
            below = arith.cmpi(arith.CmpIPredicate.slt, last, extent.emit())
            none = arith.cmpi(arith.CmpIPredicate.eq, length.emit(), arith.constant(index, 0))
            cf.AssertOp(arith.ori(below, none), f"a slice runs past the end of its tensor ('{op.name}')")
    if op.name == "tensor.insert_slice":
        # Axes of extent 1 may be missing in the source.
        source = [e for e in relations.extents.of(op.operands[0]) if not e.is_same(constant(1))]
        target = [e for e in lengths if not e.is_same(constant(1))]
        for given, wanted in zip(source, target, strict=False):
            relations.equal(op, given, wanted, "a slice and what is inserted there")


_RULES: dict[str, Callable[[_Relations, Any], None]] = {
    "mx.quantize_block": _relate_quantize,
    "mx.compose": _relate_compose,
    "mx.block_matmul": _relate_matmul,
    "tensor.cast": _relate_cast,
    "tensor.empty": _relate_empty,
}

# Rules of operations whose indices matter even where all extents are static.
_INDEXED: dict[str, Callable[[_Relations, Any], None]] = {
    "tensor.extract": lambda relations, op: _relate_element(relations, op, 1),
    "tensor.insert": lambda relations, op: _relate_element(relations, op, 2),
    "tensor.extract_slice": lambda relations, op: _relate_slice(relations, op, 1),
    "tensor.insert_slice": lambda relations, op: _relate_slice(relations, op, 2),
}
