"""The 1:2 rewrite of everything that carries an mx value across operations: functions, calls, control flow.

MLIR's Python TypeConverter is 1:1, so the split is done here: block arguments, results and operands of mx type become
two of tensor type each, with `arg_attrs`, `res_attrs` and segment sizes following.
"""

from collections.abc import Callable, Sequence
from typing import Any

from mx_dialect._mlir import arith, ir
from mx_dialect.diagnostics import Diagnostic, MxError, at
from mx_dialect.lowering.parts import is_join, is_split, join, part_types, parts
from mx_dialect.types import TensorType, is_mx
from mx_dialect.walk import operations

# Operations that pass values through without looking at them: operands, results and regions split by position.
TRANSPARENT = frozenset(
    """
    func.func func.call func.return
    scf.if scf.for scf.while scf.condition scf.yield scf.execute_region scf.index_switch
    cf.br cf.cond_br cf.switch
    arith.select
    """.split()
)


def _values(op: Any) -> list[Any]:
    arguments = [a for region in op.regions for block in region for a in block.arguments]
    return [*op.operands, *op.results, *arguments]


def check(root: ir.Operation) -> None:
    """Refuse operations of other dialects that hold an mx value in a way the split does not know.

    Raises:
        MxError: one error for each such operation.
    """
    errors: list[Diagnostic] = []

    def visit(view: Any) -> Any:
        op = view.operation
        types = [v.type for v in _values(op)]
        if op.name == "func.func":
            function = ir.TypeAttr(op.attributes["function_type"]).value
            types += [*function.inputs, *function.results]
        nested = next((t for t in types if not is_mx(t) and "!mx.tensor" in str(t)), None)
        known = op.name.startswith("mx.") or op.name in TRANSPARENT or is_join(op) or is_split(op)
        if nested is not None and not op.name.startswith("mx."):
            message = f"'{op.name}' op holds mx tensors inside '{nested}'; --mx-to-linalg splits plain mx values only"
            errors.append(at(op, "error", message))
        elif not known and any(is_mx(t) for t in types):
            message = (
                f"'{op.name}' op holds an mx tensor and --mx-to-linalg does not know how to split it in two;"
                " use mx.decompose before the operation and mx.compose after it"
            )
            errors.append(at(op, "error", message))
        return ir.WalkResult.ADVANCE

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    if errors:
        raise MxError.of(*errors)


def split(root: ir.Operation) -> None:
    """Split every mx value that the operations above carry, in place. Casts join and split what lies between."""
    carriers = operations(root, lambda op: op.name in TRANSPARENT, outer_first=True)
    for op in carriers:
        for region in op.regions:
            for block in region:
                _split_arguments(block)
    for op in carriers:
        if op.name == "func.func":
            _split_signature(op)
        elif any(is_mx(v.type) for v in (*op.operands, *op.results)):
            _split_operation(op)


def _split_types(types: Sequence[Any]) -> list[Any]:
    return [t for type_ in types for t in (part_types(type_) if is_mx(type_) else [type_])]


def _split_arguments(block: Any) -> None:
    """Replace a block's arguments by new ones, two for each of mx type, in the same order."""
    old = list(block.arguments)
    if not any(is_mx(a.type) for a in old):
        return
    for argument in old:
        location = argument.location
        new = [block.add_argument(t, location) for t in _split_types([argument.type])]
        if len(new) == 1:
            argument.replace_all_uses_with(new[0])
            continue
        with ir.InsertionPoint.at_block_begin(block), location:
            argument.replace_all_uses_with(join(argument.type, *new))
    for _ in old:
        block.erase_argument(0)


def _repeated(attributes: Any, types: Sequence[Any]) -> Any:
    """Return an array of one dictionary a value, each given to both parts of a split value."""
    return ir.ArrayAttr.get([a for a, t in zip(attributes, types, strict=True) for _ in _split_types([t])])


def _split_signature(function: Any) -> None:
    type_ = ir.TypeAttr(function.attributes["function_type"]).value
    if not any(is_mx(t) for t in (*type_.inputs, *type_.results)):
        return
    for name, types in (("arg_attrs", type_.inputs), ("res_attrs", type_.results)):
        if name in function.attributes:
            function.attributes[name] = _repeated(function.attributes[name], types)
    split_type = ir.FunctionType.get(_split_types(type_.inputs), _split_types(type_.results))
    function.attributes["function_type"] = ir.TypeAttr.get(split_type)


def _split_operation(op: Any) -> None:
    """Replace an operation by one whose mx operands and results are two each."""
    with ir.InsertionPoint(op), op.location:
        if op.name == "arith.select":
            _split_select(op)
            return
        operands = [p for v in op.operands for p in (parts(v) if is_mx(v.type) else (v,))]
        new = ir.Operation.create(
            op.name,
            results=_split_types([r.type for r in op.results]),
            operands=operands,
            attributes=_split_attributes(op),
            successors=list(op.successors),
            regions=len(op.regions),
        )
        for old_region, new_region in zip(op.regions, new.regions, strict=True):
            for block in list(old_region):
                block.append_to(new_region)
        replacements = list(new.results)
        for result in op.results:
            if is_mx(result.type):
                mantissa, scale = replacements.pop(0), replacements.pop(0)
                result.replace_all_uses_with(join(result.type, mantissa, scale))
            else:
                result.replace_all_uses_with(replacements.pop(0))
    op.erase()


def _split_select(op: Any) -> None:
    """Select between mx values: one select for the mantissas, one for the scales."""
    condition, if_true, if_false = op.operands
    chosen = [arith.select(condition, t, f) for t, f in zip(parts(if_true), parts(if_false), strict=True)]
    op.results[0].replace_all_uses_with(join(op.results[0].type, *chosen))
    op.erase()


def _split_attributes(op: Any) -> dict[str, Any]:
    """Return an operation's attributes with segment sizes and per-value dictionaries following the split."""
    attributes = {name: op.attributes[name] for name in op.attributes}
    resize: dict[str, Callable[[Any], Any]] = {
        "operandSegmentSizes": lambda a: _resized(a, [v.type for v in op.operands]),
        "resultSegmentSizes": lambda a: _resized(a, [v.type for v in op.results]),
        "arg_attrs": lambda a: _repeated(a, [v.type for v in op.operands]),
        "res_attrs": lambda a: _repeated(a, [v.type for v in op.results]),
    }
    if "case_operand_segments" in attributes:
        # The cases' operands are the last ones of a cf.switch.
        count = sum(ir.DenseI32ArrayAttr(attributes["case_operand_segments"]))
        cases = [v.type for v in op.operands][len(op.operands) - count :]
        resize["case_operand_segments"] = lambda a: _resized(a, cases)
    return {name: resize[name](a) if name in resize else a for name, a in attributes.items()}


def _resized(segments: Any, types: Sequence[TensorType | Any]) -> Any:
    """Return segment sizes after the split of values with these types."""
    sizes: list[int] = []
    start = 0
    for size in ir.DenseI32ArrayAttr(segments):
        sizes.append(len(_split_types(types[start : start + size])))
        start += size
    return ir.DenseI32ArrayAttr.get(sizes)
