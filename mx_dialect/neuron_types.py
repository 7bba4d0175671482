"""The element type of x4 containers, four MX elements in one integer, as Neuron-style matrix engines read them."""

# No `from __future__ import annotations` here: the annotations below define the parameters.
from typing import Any

from mx_dialect._mlir import ir
from mx_dialect.diagnostics import MxError
from mx_dialect.dialect import Mx
from mx_dialect.formats import ELEMENT_FORMATS, ElementFormat
from mx_dialect.layouts.neuron import LANES, X4_ELEMENT_TYPES


class X4Type(Mx.Type, name="x4"):
    """`!mx.x4<f4E2M1FN>`: four elements along the axis that a matmul sums over, the element type of a tensor.

    Lane q of a container of FP4, 16 bits, is bits 4q to 4q + 3; of FP8 (`f8E4M3FN`, `f8E5M2`), 32 bits, bits 8q to
    8q + 7. Checkpoints carry containers as integers of the same width, see `mx.view_cast`.
    """

    element: ir.TypeAttr

    @classmethod
    def get(cls, element_type: Any, context: Any = None) -> "X4Type":
        """Return the type of containers of an element type, given as a type or by its name.

        Raises:
            MxError: there are no containers of that type.
        """
        if str(element_type) not in X4_ELEMENT_TYPES:
            raise MxError(_no_containers(str(element_type)))
        with context or ir.Context.current:
            return ir.Type.parse(f"!mx.x4<{element_type}>")

    @property
    def format(self) -> ElementFormat:
        """Return the format of the elements of a valid type."""
        return ELEMENT_FORMATS[self.element_name]

    @property
    def width(self) -> int:
        """Return the bits of a container."""
        return LANES * self.format.bits

    @property
    def element_name(self) -> str:
        """Return the name of the element type, or whatever else the parameter is."""
        return str(self.params[0])

    def error(self) -> str | None:
        """Return what makes this type invalid (the bindings accept any parameter), or None."""
        return None if self.element_name in X4_ELEMENT_TYPES else _no_containers(self.element_name)


def _no_containers(name: str) -> str:
    return f"x4 containers hold {', '.join(X4_ELEMENT_TYPES)}, not {name}"


def is_x4(type_: Any) -> bool:
    """Tell whether a type is that of containers."""
    return isinstance(type_, X4Type)
