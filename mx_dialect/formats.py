"""The element and scale formats of OCP Microscaling v1.0, one row each; every constant derives from the row.

A new element format is one row in `ELEMENT_FORMATS`. Nothing here imports the bindings or numpy.
"""

import math
from dataclasses import dataclass

from mx_dialect.near_miss import expected_one_of


@dataclass(frozen=True)
class ElementFormat:
    """One element format of an MX block.

    `mlir` is the MLIR spelling of the element type, `name` the OCP name, `exponent_bits` and `mantissa_bits` the field
    widths of one code (a sign bit comes on top), `bias` the exponent bias, `ml_dtype` the numpy dtype (of ml_dtypes,
    or numpy's own int8). `ieee_specials` says that the top exponent holds Inf and NaN as in IEEE 754; `nan_magnitude`
    is the magnitude code of the NaN that a conversion produces, None where the format has none.

    MXINT8 is a two's complement fraction: `exponent_bits` 0, value = code * 2^-mantissa_bits.
    """

    mlir: str
    name: str
    exponent_bits: int
    mantissa_bits: int
    bias: int
    ml_dtype: str
    ieee_specials: bool = False
    nan_magnitude: int | None = None

    @property
    def is_integer(self) -> bool:
        return self.exponent_bits == 0

    @property
    def bits(self) -> int:
        return 1 + self.exponent_bits + self.mantissa_bits + (1 if self.is_integer else 0)

    @property
    def codes_per_group(self) -> int:
        """Return how many codes fill a whole number of bytes without a gap, the fewest."""
        return 8 // math.gcd(8, self.bits)

    @property
    def bytes_per_group(self) -> int:
        """Return how many bytes `codes_per_group` codes fill."""
        return self.bits // math.gcd(8, self.bits)

    @property
    def max_magnitude(self) -> int:
        """Return the magnitude code (sign cleared) of the largest finite value; MXINT8 never produces -128."""
        if self.is_integer:
            return (1 << (self.bits - 1)) - 1
        if self.ieee_specials:
            return (((1 << self.exponent_bits) - 1) << self.mantissa_bits) - 1
        top = (1 << (self.bits - 1)) - 1
        return top if self.nan_magnitude is None else self.nan_magnitude - 1

    @property
    def emax(self) -> int:
        """Return the exponent of the largest normal value: floor(log2(max_normal))."""
        if self.is_integer:
            return 0
        return (self.max_magnitude >> self.mantissa_bits) - self.bias

    @property
    def max_normal(self) -> float:
        if self.is_integer:
            return self.max_magnitude * 2.0**-self.mantissa_bits
        fraction = self.max_magnitude & ((1 << self.mantissa_bits) - 1)
        return (1 + fraction * 2.0**-self.mantissa_bits) * 2.0**self.emax

    @property
    def min_normal(self) -> float:
        """Return the smallest normal value; for MXINT8, which has no exponent, the smallest step."""
        return self.min_subnormal if self.is_integer else 2.0 ** (1 - self.bias)

    @property
    def min_subnormal(self) -> float:
        if self.is_integer:
            return 2.0**-self.mantissa_bits
        return 2.0 ** (1 - self.bias - self.mantissa_bits)


ELEMENT_FORMATS: dict[str, ElementFormat] = {
    f.mlir: f
    for f in (
        ElementFormat("f8E5M2", "MXFP8 E5M2", 5, 2, 15, "float8_e5m2", True, nan_magnitude=0x7E),
        ElementFormat("f8E4M3FN", "MXFP8 E4M3", 4, 3, 7, "float8_e4m3fn", nan_magnitude=0x7F),
        ElementFormat("f6E3M2FN", "MXFP6 E3M2", 3, 2, 3, "float6_e3m2fn"),
        ElementFormat("f6E2M3FN", "MXFP6 E2M3", 2, 3, 1, "float6_e2m3fn"),
        ElementFormat("f4E2M1FN", "MXFP4 E2M1", 2, 1, 1, "float4_e2m1fn"),
        ElementFormat("i8", "MXINT8", 0, 6, 0, "int8"),
    )
}


@dataclass(frozen=True)
class ScaleFormat:
    """One scale format: `mlir` spelling, exponent `bias`, the `nan_code`, and the numpy dtype `ml_dtype`.

    Of a power-of-two format, code c in 0..max_code means 2^(c - bias). The others are element formats used unsigned,
    with what `element` says of them.
    """

    mlir: str
    bias: int
    nan_code: int
    ml_dtype: str
    is_power_of_two: bool = True

    @property
    def max_code(self) -> int:
        return self.nan_code - 1

    @property
    def min_exponent(self) -> int:
        return -self.bias

    @property
    def max_exponent(self) -> int:
        return self.max_code - self.bias

    @property
    def element(self) -> ElementFormat:
        """Return the element format that a format with significands is."""
        return ELEMENT_FORMATS[self.mlir]


E8M0 = ScaleFormat("f8E8M0FNU", 127, 255, "float8_e8m0fnu")
# The scales of NVFP4: f4E2M1FN elements in blocks of 16, and a factor of the whole tensor (mx.fold_scale) beside them.
E4M3_SCALE = ScaleFormat("f8E4M3FN", 7, 0x7F, "float8_e4m3fn", is_power_of_two=False)

SCALE_FORMATS: dict[str, ScaleFormat] = {f.mlir: f for f in (E8M0, E4M3_SCALE)}

# How the shared exponent of a block follows from its largest magnitude; `floor` is the OCP default.
ROUNDING_MODES = ("floor", "ceil", "even", "rceil")
DEFAULT_ROUNDING = "floor"


def rounding_threshold(fmt: ElementFormat, rounding: str) -> int:
    """Return the 23-bit fraction of the block maximum above which the shared exponent is one higher.

    With amax = 1.fraction * 2^E, the shared exponent before clamping is E - emax + (fraction > threshold). `floor`
    never adds; `ceil` adds unless amax is a power of two (ceil(log2)); `rceil` adds when amax exceeds
    max_normal * 2^(E - emax), so that no element saturates; `even` adds when rounding amax half up at the element's
    mantissa width reaches the next power of two.

    Raises:
        ValueError: `rounding` is not one of `ROUNDING_MODES`.
    """
    if rounding == "floor":
        return 1 << 23
    if rounding == "ceil":
        return 0
    if rounding == "rceil":
        significand = fmt.max_normal / 2.0**fmt.emax
        return int((significand - 1) * (1 << 23))
    if rounding == "even":
        return (1 << 23) - (1 << (22 - fmt.mantissa_bits)) - 1
    raise ValueError(f"unknown rounding mode '{rounding}'; {expected_one_of(rounding, ROUNDING_MODES)}")
