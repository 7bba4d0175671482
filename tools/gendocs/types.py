"""The reference of types, attributes and formats."""

import inspect
from typing import Any

from gendocs.markdown import code, doc, table
from mx_dialect.dialect import Mx, define
from mx_dialect.formats import DEFAULT_ROUNDING, ELEMENT_FORMATS, ROUNDING_MODES, SCALE_FORMATS, ElementFormat


def page() -> str:
    """Return the page with every type, attribute and format."""
    define()
    parts = ["# Types and formats", "## Types"]
    # In the order of the levels: the value level's type first.
    types = sorted(Mx.types, key=lambda t: (t.type_name != "mx.tensor", t.type_name))
    parts += [_section(f"!{t.type_name}", t) for t in types]
    parts += ["## Attributes", *(_section(f"#{a.attr_name}", a) for a in Mx.attributes)]
    parts += ["## Element formats", _ELEMENTS, _element_table()]
    parts += ["## Scale formats", _SCALES, _scale_table()]
    modes = ", ".join(code(mode) for mode in ROUNDING_MODES)
    parts.append(f"Rounding modes of the shared exponent: {modes}; the default is {code(DEFAULT_ROUNDING)}.")
    return "\n\n".join(parts) + "\n"


_ELEMENTS = (
    "One element, as `mx_dialect/formats.py` defines it. A new format is one row there. `max` is the largest finite "
    "value, `min` the smallest normal one, `step` the smallest subnormal."
)
_SCALES = (
    "One scale for a block. Of a power-of-two format code c means 2^(c - bias); another one is an element format used "
    "without its sign. [Numerics](../numerics.md) has the rules."
)


def _section(title: str, defined: Any) -> str:
    parameters = [code(name) for name in inspect.get_annotations(defined)]
    stored = f"\n\nStored parameters: {', '.join(parameters)}." if parameters else ""
    return f"### {title}\n\n{doc(defined.__doc__)}{stored}"


def _number(value: float) -> str:
    return f"{value:.10g}"


def _specials(fmt: ElementFormat) -> str:
    if fmt.ieee_specials:
        return "Inf, NaN"
    return "none" if fmt.nan_magnitude is None else "NaN"


def _element_table() -> str:
    head = ("type", "OCP name", "bits", "exponent", "mantissa", "bias", "max", "min", "step", "specials", "numpy dtype")
    rows = [
        (
            code(f.mlir),
            f.name,
            str(f.bits),
            str(f.exponent_bits),
            str(f.mantissa_bits),
            str(f.bias),
            _number(f.max_normal),
            _number(f.min_normal),
            _number(f.min_subnormal),
            _specials(f),
            code(f.ml_dtype),
        )
        for f in ELEMENT_FORMATS.values()
    ]
    return table(head, rows)


def _scale_table() -> str:
    head = ("type", "meaning", "bias", "NaN code", "numpy dtype")
    rows = [
        (
            code(f.mlir),
            f"2^{f.min_exponent} to 2^{f.max_exponent}"
            if f.is_power_of_two
            else f"up to {_number(f.element.max_normal)}",
            str(f.bias),
            str(f.nan_code),
            code(f.ml_dtype),
        )
        for f in SCALE_FORMATS.values()
    ]
    return table(head, rows)
