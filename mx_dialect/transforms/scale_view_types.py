"""Other types for views of scales, wherever they stand: in values, and in types and attributes of any depth."""

from collections.abc import Callable, Iterable
from typing import Any

from mx_dialect._mlir import ir
from mx_dialect.dialect import Mx
from mx_dialect.tile_types import layout_of
from mx_dialect.walk import defined_values


class Refusal(str):
    """Why a view cannot have another type: a message to follow the name of the operation that holds it."""

    __slots__ = ()


class Retyping:
    """A mapping from views of scales (tensor types with a layout) to other types; it remembers what it mapped.

    `view` returns the type for a view, None if the view keeps its own, or a refusal.
    """

    def __init__(self, view: Callable[[Any], Any]):
        self._view = view
        self._known: dict[Any, Any] = {}

    def of(self, item: Any) -> Any:
        """Return a type or an attribute with every view in it mapped, None if nothing changes, or a refusal."""
        # A stack instead of recursion: aliases can nest types deeper than Python recurses.
        pending = [item]
        while pending:
            top = pending.pop()
            if top in self._known:
                continue
            parts = _parts(top)
            missing = [part for part in parts if part not in self._known]
            if missing:
                pending += [top, *reversed(missing)]
            else:
                self._known[top] = self._mapped(top, parts)
        return self._known[item]

    def of_values(self, values: Iterable[Any]) -> list[Any]:
        """Return what `of` returns for the type of each value."""
        return [self.of(value.type) for value in values]

    def of_attributes(self, op: Any) -> list[Any]:
        """Return what `of` returns for each attribute of an operation."""
        return [self.of(op.attributes[name]) for name in op.attributes]

    def apply(self, op: Any) -> None:
        """Give an operation's results, block arguments and attributes their new types, in place; none is refused."""
        for value in defined_values(op):
            new = self.of(value.type)
            if new is not None:
                value.set_type(new)
        for name in list(op.attributes):
            new = self.of(op.attributes[name])
            if new is not None:
                op.attributes[name] = new

    def _mapped(self, item: Any, parts: list[Any]) -> Any:
        """Return what an item becomes whose parts are known."""
        if layout_of(item) is not None:
            return self._view(item)
        if not parts:
            return Refusal(f"hides a view of scales in '{item}'; name its type itself") if _hides_view(item) else None
        mapped = [self._known[part] for part in parts]
        refused = next((m for m in mapped if isinstance(m, Refusal)), None)
        if refused is not None or all(m is None for m in mapped):
            return refused
        return _rebuilt(item, [part if m is None else m for part, m in zip(parts, mapped, strict=True)])


def _parts(item: Any) -> list[Any]:
    """Return the types and attributes that a type or attribute is made of, as far as such a one can be rebuilt."""
    if isinstance(item, ir.FunctionType):
        return [*item.inputs, *item.results]
    if isinstance(item, ir.TupleType):
        return [item.get_type(i) for i in range(item.num_types)]
    if isinstance(item, ir.TypeAttr):
        return [item.value]
    if isinstance(item, ir.ArrayAttr):
        return list(item)
    return [named.attr for named in item] if isinstance(item, ir.DictAttr) else []


def _rebuilt(item: Any, parts: list[Any]) -> Any:
    """Return a type or attribute like `item`, made of other parts."""
    if isinstance(item, ir.FunctionType):
        count = len(item.inputs)
        return ir.FunctionType.get(parts[:count], parts[count:])
    if isinstance(item, ir.TupleType):
        return ir.TupleType.get_tuple(parts)
    if isinstance(item, ir.TypeAttr):
        return ir.TypeAttr.get(parts[0])
    if isinstance(item, ir.ArrayAttr):
        return ir.ArrayAttr.get(parts)
    return ir.DictAttr.get({named.name: part for named, part in zip(item, parts, strict=True)})


def _hides_view(item: Any) -> bool:
    """Tell whether a type or attribute that cannot be rebuilt mentions the type of a view."""
    # Constants can be large, text can say anything, and a layout on its own is no view.
    if isinstance(item, ir.DenseElementsAttr | ir.DenseResourceElementsAttr):
        return layout_of(item.type) is not None
    if isinstance(item, ir.StringAttr | Mx.Attribute):
        return False
    return "#mx.layout<" in str(item)
