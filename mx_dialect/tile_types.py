"""Types and attributes of the tile level: tiles in a matrix engine's memories, scale views in its layouts, tasks."""

# No `from __future__ import annotations` here: the annotations below define the parameters.
from collections.abc import Mapping, Sequence
from typing import Any

from mx_dialect._mlir import ir
from mx_dialect.diagnostics import MxError
from mx_dialect.dialect import Mx
from mx_dialect.layouts.a5 import SCALE_LAYOUTS, ScaleLayout
from mx_dialect.tile_spec import UNDECIDED, TileSpec, from_storage

SCALE_ELEMENTS = ("f8E8M0FNU", "i8", "ui8")


def _dynamic(extents: Sequence[int | None]) -> list[int]:
    return [ir.ShapedType.get_dynamic_size() if e is None else e for e in extents]


class TileType(Mx.Type, name="tile"):
    """`!mx.tile<16x2xf8E8M0FNU, left_scale, valid = 8x2>`: a matrix in one of the engine's memories.

    The memory space is one of vec, mat, left, right, acc, bias, left_scale, right_scale; without one it is not decided
    yet. The valid shape, the tile's shape unless given, is the part that holds data: what lies beyond is padding, which
    no result depends on. Extents of both may be dynamic (`?`).
    """

    tensor: ir.TypeAttr
    memory_space: ir.StringAttr
    valid_shape: Any

    @classmethod
    def get(
        cls,
        shape: Sequence[int | None],
        element_type: Any,
        space: str | None = None,
        valid: Sequence[int | None] | None = None,
        context: Any = None,
    ) -> "TileType":
        """Return the type; None is a dynamic extent, a space not decided yet, or a valid shape that is the whole.

        Raises:
            MxError: the parameters break a rule of the type.
        """
        with context or ir.Context.current:
            whole = tuple(shape)
            given = whole if valid is None else tuple(valid)
            return cls.of(TileSpec(whole, str(element_type), UNDECIDED if space is None else space, given))

    @classmethod
    def of(cls, spec: TileSpec) -> "TileType":
        """Return the type with these parameters, in the current context.

        Raises:
            MxError: the parameters break a rule of the type.
        """
        error = spec.error()
        if error is not None:
            raise MxError(error)
        return ir.Type.parse(spec.storage())

    @property
    def spec(self) -> TileSpec:
        """Return the parameters as plain values."""
        spec = from_storage(str(self))
        if spec is None:
            raise MxError(f"invalid type '{self}': {self.error()}")
        return spec

    @property
    def shape(self) -> list[int]:
        """Return the shape; a dynamic extent is MLIR's dynamic size."""
        return _dynamic(self.spec.shape)

    @property
    def valid(self) -> list[int]:
        """Return the valid shape; a dynamic extent is MLIR's dynamic size."""
        return _dynamic(self.spec.valid)

    @property
    def element_type(self) -> ir.Type:
        return ir.TypeAttr(self.params[0]).value.element_type

    @property
    def space(self) -> str | None:
        """Return the memory space, None when it is not decided yet."""
        space = self.spec.space
        return None if space == UNDECIDED else space

    def error(self) -> str | None:
        """Return what makes this type invalid (the bindings accept any parameters), or None."""
        spec = from_storage(str(self))
        if spec is None:
            return "malformed parameters; write it as !mx.tile<ROWSxCOLUMNSxELEMENT, SPACE, valid = ROWSxCOLUMNS>"
        return spec.error()


class TaskType(Mx.Type, name="task"):
    """`!mx.task`: what `mx.submit` returns to let later submits wait for it."""

    def error(self) -> str | None:
        """Return None: the type has no parameters."""
        return None


class LayoutAttr(Mx.Attribute, name="layout"):
    """`#mx.layout<"MX_A_ZZ">` or `#mx.layout<"MX_B_NN">`: the encoding of a tensor that is a view of scales in memory.

    The tensor has rank 2, [M, G] or [G, N], or the rank-5 blocked shape that `--mx-block-scale-views` gives it. Other
    properties make it a dictionary: `#mx.layout<{layout = "MX_A_ZZ", strides = [4, 1]}>`.

    | entry       | meaning                                                        |
    |-------------|----------------------------------------------------------------|
    | layout      | MX_A_ZZ, scales of the left operand, or MX_B_NN, of the right  |
    | strides     | explicit strides in bytes, one for each axis                   |
    | valid_shape | the part of the tensor that holds data                         |
    | distributed | unit: the tensor is spread over several devices                |
    """

    value: Any

    @classmethod
    def of(cls, entries: Mapping[str, Any]) -> "LayoutAttr":
        """Return the attribute with these entries, in the current context."""
        if set(entries) == {"layout"}:
            return ir.Attribute.parse(f"#mx.layout<{entries['layout']}>")
        return ir.Attribute.parse(f"#mx.layout<{ir.DictAttr.get(dict(entries))}>")

    @property
    def entries(self) -> dict[str, Any]:
        """Return the properties as attributes by name."""
        value = self.params[0].maybe_downcast()
        if isinstance(value, ir.StringAttr):
            return {"layout": value}
        return {named.name: named.attr for named in value} if isinstance(value, ir.DictAttr) else {}

    @property
    def layout(self) -> ScaleLayout:
        """Return the layout of a valid attribute."""
        return SCALE_LAYOUTS[ir.StringAttr(self.entries["layout"]).value]

    @property
    def strides(self) -> list[int] | None:
        """Return the explicit strides in bytes, if there are any."""
        return self._numbers("strides")

    @property
    def valid_shape(self) -> list[int] | None:
        """Return the shape of the part that holds data, if one is given."""
        return self._numbers("valid_shape")

    @property
    def distributed(self) -> bool:
        return "distributed" in self.entries

    def _numbers(self, name: str) -> list[int] | None:
        array = self.entries.get(name)
        return None if array is None else [ir.IntegerAttr(n).value for n in array]

    def error_on(self, tensor: Any) -> str | None:
        """Return what makes this the wrong encoding for a ranked tensor type, or None."""
        entries = self.entries
        unknown = set(entries) - {"layout", "strides", "valid_shape", "distributed"}
        if unknown:
            return f"a layout has no entry '{min(unknown)}'; it has layout, strides, valid_shape and distributed"
        name = entries.get("layout")
        if not isinstance(name, ir.StringAttr) or name.value not in SCALE_LAYOUTS:
            given = "nothing" if name is None else str(name)
            return f"a layout names {' or '.join(SCALE_LAYOUTS)}, but has {given}"
        if str(tensor.element_type) not in SCALE_ELEMENTS:
            return f"a tensor in layout {name.value} holds {' or '.join(SCALE_ELEMENTS)}, not {tensor.element_type}"
        for key in ("strides", "valid_shape"):
            if key in entries and not _is_list_of(entries[key], tensor.rank):
                return f"{key} of a layout must be a list of {tensor.rank} integers >= 0, but is {entries[key]}"
        if not isinstance(entries.get("distributed", ir.UnitAttr.get(self.context)), ir.UnitAttr):
            return f"'distributed' of a layout has no value, but is {entries['distributed']}"
        return None


def _is_list_of(attribute: Any, count: int) -> bool:
    is_list = isinstance(attribute, ir.ArrayAttr) and len(attribute) == count
    return is_list and all(isinstance(n, ir.IntegerAttr) and n.value >= 0 for n in attribute)


def layout_of(type_: Any) -> LayoutAttr | None:
    """Return the layout of a tensor type that is a view of scales in memory, None for any other type."""
    encoding = type_.encoding if isinstance(type_, ir.RankedTensorType) else None
    return encoding if isinstance(encoding, LayoutAttr) else None
