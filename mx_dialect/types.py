"""The block-scaled tensor type, and the walk that verifies every mx type in a piece of IR.

The bindings verify no parameters of a type defined in Python, so parsing, the builders and the driver after each pass
call `verify_types`.
"""

# No `from __future__ import annotations` here: the annotations below define the type's parameters.
import re
from collections.abc import Iterator, Sequence
from typing import Any

from mx_dialect._mlir import ir
from mx_dialect.diagnostics import Diagnostic, MxError, at, unescape
from mx_dialect.dialect import Mx
from mx_dialect.formats import E8M0, ELEMENT_FORMATS
from mx_dialect.tensor_spec import TensorSpec, from_storage


def _static(extent: int) -> int | None:
    return None if extent < 0 else extent


class TensorType(Mx.Type, name="tensor"):
    """`!mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>`: mantissas and scales as one value.

    Element i along the blocked axis is mantissa[i] * scale[i // block_size]. The scale tensor has the logical shape
    with the blocked extent divided by the block size. Extents may be dynamic (`?`); a dynamic blocked extent is checked
    to be a multiple of the block size before a kernel runs. The blocked axis is the last one unless `axis = N` says
    otherwise.
    """

    mantissa: ir.TypeAttr
    block: ir.IntegerAttr
    scale: ir.TypeAttr
    blocked_axis: ir.IntegerAttr

    @classmethod
    def get(
        cls,
        shape: Sequence[int | None],
        element_type: Any,
        block_size: int = 32,
        scale_type: Any = None,
        axis: int = -1,
        context: Any = None,
    ) -> "TensorType":
        """Return the type; None or a negative extent in `shape` is dynamic, a negative `axis` counts from the end.

        Raises:
            MxError: the parameters break a rule of the type.
        """
        with context or ir.Context.current:
            scale = ir.Type.parse(E8M0.mlir) if scale_type is None else scale_type
            extents = tuple(None if e is None else _static(e) for e in shape)
            spec = TensorSpec(
                extents,
                str(element_type),
                block_size,
                str(scale),
                axis + len(extents) if axis < 0 else axis,
            )
            return cls.of(spec)

    @classmethod
    def of(cls, spec: TensorSpec) -> "TensorType":
        """Return the type with these parameters, in the current context.

        Raises:
            MxError: the parameters break a rule of the type.
        """
        error = spec.error()
        if error is not None:
            raise MxError(error)
        return ir.Type.parse(spec.storage())

    @property
    def spec(self) -> TensorSpec:
        """Return the parameters as plain values."""
        spec = from_storage(str(self))
        if spec is None:
            raise MxError(f"invalid type '{self}': {self.error()}")
        return spec

    @property
    def mantissa_type(self) -> ir.RankedTensorType:
        """Return the ranked tensor type of the mantissas."""
        return ir.TypeAttr(self.params[0]).value

    @property
    def code_tensor_type(self) -> ir.RankedTensorType:
        """Return the type of the mantissas as they lie in memory: codes of less than a byte are one i8 each.

        MLIR stores 4- and 6-bit elements a byte each in scalar code and packed in vector code, so neither is used.
        """
        if ELEMENT_FORMATS[self.spec.element].bits == 8:
            return self.mantissa_type
        i8 = ir.IntegerType.get_signless(8, context=self.context)
        return ir.RankedTensorType.get(self.shape, i8, loc=ir.Location.unknown(self.context))

    @property
    def scale_tensor_type(self) -> ir.RankedTensorType:
        """Return the ranked tensor type of the scales."""
        dynamic = ir.ShapedType.get_dynamic_size()
        shape = [dynamic if e is None else e for e in self.spec.scale_shape]
        return ir.RankedTensorType.get(shape, self.scale_type, loc=ir.Location.unknown(self.context))

    @property
    def shape(self) -> list[int]:
        """Return the logical shape; a dynamic extent is MLIR's dynamic size."""
        return list(self.mantissa_type.shape)

    @property
    def rank(self) -> int:
        return self.mantissa_type.rank

    @property
    def element_type(self) -> ir.Type:
        return self.mantissa_type.element_type

    @property
    def scale_type(self) -> ir.Type:
        return ir.TypeAttr(self.params[2]).value

    @property
    def block_size(self) -> int:
        return ir.IntegerAttr(self.params[1]).value

    @property
    def axis(self) -> int:
        return ir.IntegerAttr(self.params[3]).value

    def error(self) -> str | None:
        """Return what makes this type invalid (the bindings accept any parameters), or None."""
        spec = from_storage(str(self))
        if spec is None:
            return "malformed parameters; write it as !mx.tensor<SHAPExELEMENT, block_size = N, scale_type = TYPE>"
        return spec.error()


def is_mx(type_: Any) -> bool:
    """Tell whether a type is an mx tensor."""
    return isinstance(type_, TensorType)


def mx_types_in(attribute_or_type: Any) -> Iterator[Any]:
    """Yield every mx type, and every tensor type with an mx encoding, inside a type or attribute, however deep.

    Constants hold none.
    """
    # A stack instead of recursion: aliases can nest types deeper than Python recurses.
    pending = [attribute_or_type]
    while pending:
        item = pending.pop()
        if isinstance(item, Mx.Type):
            yield item
            continue
        # Spelling out a large constant to find no type in it would cost more than the rest of the walk.
        if isinstance(item, ir.DenseElementsAttr | ir.DenseResourceElementsAttr) or not _may_hold_mx(str(item)):
            continue
        children: list[Any] = []
        if isinstance(item, ir.FunctionType):
            children = [*item.inputs, *item.results]
        elif isinstance(item, ir.TupleType):
            children = [item.get_type(i) for i in range(item.num_types)]
        elif isinstance(item, ir.ShapedType | ir.ComplexType):
            if isinstance(_encoding(item), Mx.Attribute):
                yield item
            children = [item.element_type]
        elif isinstance(item, ir.TypeAttr):
            children = [item.value]
        elif isinstance(item, ir.ArrayAttr):
            children = list(item)
        elif isinstance(item, ir.DictAttr):
            children = [named.attr for named in item]
        pending.extend(reversed(children))


def _may_hold_mx(text: str) -> bool:
    return "!mx." in text or "#mx." in text


# In generic form: what MLIR escapes, and the names of operations and of attributes.
_ESCAPED = re.compile(r"\\[89A-F][0-9A-F]")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"(\(| = )?')


def _name_that_is_no_text(text: str) -> str | None:
    """Return a name in generic form that the bindings cannot read: they raise or end the process where they meet it."""
    if _ESCAPED.search(text) is None:
        return None
    names = {match[1] for match in _STRING.finditer(text) if match[2] and _ESCAPED.search(match[1])}
    return next((f'"{name}"' for name in sorted(names) if "\ufffd" in unescape(name)), None)


def _encoding(type_: Any) -> Any:
    return type_.encoding if isinstance(type_, ir.RankedTensorType) else None


def _error(found: Any) -> str | None:
    """Return what is wrong with a type that `mx_types_in` found."""
    encoding = _encoding(found)
    return found.error() if encoding is None else encoding.error_on(found)


def verify_types(root: ir.Operation) -> list[Diagnostic]:
    """Return one error for each operation or block argument under `root` that names an invalid mx type."""
    # Printing is MLIR's work and fast; below the value level it shows that there is nothing to look for.
    text = root.operation.get_asm(
        print_generic_op_form=True, assume_verified=True, large_elements_limit=16, large_resource_limit=16
    )
    unreadable = _name_that_is_no_text(text)
    if unreadable is not None:
        message = f"the name {unreadable} is not valid UTF-8, which names of operations and attributes have to be"
        return [at(root.operation, "error", message)]
    if not _may_hold_mx(text):
        return []
    errors: list[Diagnostic] = []
    verdicts: dict[Any, str | None] = {}

    def check(item: Any, where: Any) -> bool:
        for found in mx_types_in(item):
            if found not in verdicts:
                verdicts[found] = _error(found)
            verdict = verdicts[found]
            if verdict is not None:
                errors.append(at(where, "error", f"invalid type '{found}': {verdict}"))
                return False
        return True

    seen: dict[Any, bool] = {}

    def mentions_mx(type_: Any) -> bool:
        if type_ not in seen:
            seen[type_] = isinstance(type_, TensorType) or _may_hold_mx(str(type_))
        return seen[type_]

    def visit(op: Any) -> Any:
        for region in op.regions:
            for block in region:
                for argument in block.arguments:
                    if mentions_mx(argument.type):
                        check(argument.type, argument)
        results = all(check(r.type, op) for r in op.results if mentions_mx(r.type))
        # One diagnostic an operation: its attributes often repeat the types of its results.
        if results:
            any(not check(op.attributes[name], op) for name in op.attributes)
        return ir.WalkResult.ADVANCE

    root.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return errors
