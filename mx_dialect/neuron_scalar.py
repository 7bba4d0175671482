"""What the operations on x4 containers mean for one lane, as scalar IR; `scalar` has what formats mean.

The current insertion point and location are the caller's.
"""

from typing import Any

from mx_dialect import scalar
from mx_dialect._mlir import arith, ir
from mx_dialect.formats import E8M0, ElementFormat

_F32_FRACTION_BITS = 23


def _signless(bits: int) -> Any:
    return ir.IntegerType.get_signless(bits)


def scale_of(code: Any) -> Any:
    """Return the f8E8M0FNU scale of an i8 code."""
    return arith.bitcast(ir.Type.parse(E8M0.mlir), code)


def lane_value(container: Any, shift: Any, scale: Any, fmt: ElementFormat) -> Any:
    """Return what a lane of a container is worth, in f32; `shift` is its lowest bit, `scale` the i8 code."""
    element = scalar.element_from_code(arith.shrui(container, shift), fmt)
    return scalar.element_value(element, scale_of(scale), fmt)


def with_lane(container: Any, element: Any, shift: Any) -> Any:
    """Return a container with an element, or its i8 code without upper bits, put in a lane that was zero."""
    bits = element if isinstance(element.type, ir.IntegerType) else arith.bitcast(_signless(8), element)
    return arith.ori(container, arith.shli(arith.extui(container.type, bits), shift))


def group_scale(amax_bits: Any, fmt: ElementFormat, headroom: int) -> Any:
    """Return the i8 code of the scale of a group whose largest magnitude has these f32 bits.

    The biased exponent, 0 for zero and subnormals, less that of the format's largest value, plus headroom; at least 0.
    """
    exponent = arith.shrui(amax_bits, scalar.i32(_F32_FRACTION_BITS))
    code = arith.maxsi(arith.subi(exponent, scalar.i32(fmt.emax - headroom)), scalar.i32(0))
    return arith.trunci(_signless(8), code)


def quantized_lane(value: Any, scale: Any, fmt: ElementFormat) -> Any:
    """Return value / 2^(scale - 127) clipped to the FP8 format and rounded to nearest even; `scale` is the i8 code."""
    return scalar.quantized_element(value, scale_of(scale), fmt, ir.Type.parse(fmt.mlir))
