"""The constants of formats.py against the table of the OCP specification and against ml_dtypes."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import oracle
import pytest

from mx_dialect.formats import (
    DEFAULT_ROUNDING,
    E8M0,
    ELEMENT_FORMATS,
    ROUNDING_MODES,
    SCALE_FORMATS,
    rounding_threshold,
)

FLOATS = tuple(name for name in oracle.ELEMENT_TYPES if name != "i8")

# name, bits, bias, emax, max normal, min normal, min subnormal, bits of a block of 32 with its scale
SPECIFICATION = {
    "f8E5M2": ("MXFP8 E5M2", 8, 15, 15, 57344.0, 2.0**-14, 2.0**-16, 264),
    "f8E4M3FN": ("MXFP8 E4M3", 8, 7, 8, 448.0, 2.0**-6, 2.0**-9, 264),
    "f6E3M2FN": ("MXFP6 E3M2", 6, 3, 4, 28.0, 0.25, 0.0625, 200),
    "f6E2M3FN": ("MXFP6 E2M3", 6, 1, 2, 7.5, 1.0, 0.125, 200),
    "f4E2M1FN": ("MXFP4 E2M1", 4, 1, 2, 6.0, 1.0, 0.5, 136),
}


def test_the_table_has_the_six_formats_of_the_specification():
    assert tuple(ELEMENT_FORMATS) == oracle.ELEMENT_TYPES
    assert all(name == fmt.mlir for name, fmt in ELEMENT_FORMATS.items())


@pytest.mark.parametrize("element_type", FLOATS)
def test_float_constants_are_those_of_the_specification(element_type):
    fmt = ELEMENT_FORMATS[element_type]
    assert SPECIFICATION[element_type] == (
        fmt.name,
        fmt.bits,
        fmt.bias,
        fmt.emax,
        fmt.max_normal,
        fmt.min_normal,
        fmt.min_subnormal,
        32 * fmt.bits + 8,
    )
    assert not fmt.is_integer


def test_mxint8_constants_are_those_of_the_specification():
    fmt = ELEMENT_FORMATS["i8"]
    assert fmt.is_integer
    assert (fmt.name, fmt.bits, fmt.emax, fmt.ml_dtype) == ("MXINT8", 8, 0, "int8")
    assert (fmt.max_normal, fmt.min_subnormal, fmt.max_magnitude) == (127 / 64, 1 / 64, 127)
    assert fmt.nan_magnitude is None


@pytest.mark.parametrize("element_type", FLOATS)
def test_float_constants_are_those_of_ml_dtypes(element_type):
    fmt = ELEMENT_FORMATS[element_type]
    dtype = getattr(ml_dtypes, fmt.ml_dtype)
    info = ml_dtypes.finfo(dtype)
    assert (fmt.bits, fmt.exponent_bits, fmt.mantissa_bits) == (info.bits, info.nexp, info.nmant)
    assert (fmt.max_normal, fmt.min_normal) == (float(info.max), float(info.smallest_normal))
    assert fmt.min_subnormal == float(info.smallest_subnormal)
    assert float(np.uint8(fmt.max_magnitude).view(dtype)) == fmt.max_normal


@pytest.mark.parametrize("element_type", FLOATS)
def test_specials_are_those_of_ml_dtypes(element_type):
    fmt = ELEMENT_FORMATS[element_type]
    magnitudes = np.arange(1 << (fmt.bits - 1), dtype=np.uint8)
    values = magnitudes.view(getattr(ml_dtypes, fmt.ml_dtype)).astype(np.float32)
    assert fmt.ieee_specials == np.isinf(values).any()
    assert np.isnan(values).any() == (fmt.nan_magnitude is not None)
    if fmt.nan_magnitude is not None:
        assert np.isnan(values[fmt.nan_magnitude])


def test_the_scale_format_is_that_of_the_specification():
    assert SCALE_FORMATS["f8E8M0FNU"] is E8M0
    assert (E8M0.bias, E8M0.nan_code, E8M0.max_code) == (127, 255, 254)
    assert (E8M0.min_exponent, E8M0.max_exponent) == (-127, 127)
    values = np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, E8M0.ml_dtype)).astype(np.float64)
    assert values[0] == 2.0**E8M0.min_exponent
    assert values[E8M0.max_code] == 2.0**E8M0.max_exponent
    assert np.isnan(values[E8M0.nan_code])


def test_floor_is_the_default_rounding():
    assert DEFAULT_ROUNDING == "floor"
    assert set(ROUNDING_MODES) == set(oracle.ROUNDINGS)


@pytest.mark.parametrize("rounding", oracle.ROUNDINGS)
@pytest.mark.parametrize("element_type", oracle.ELEMENT_TYPES)
def test_the_threshold_separates_the_shared_exponents(element_type, rounding):
    fmt = ELEMENT_FORMATS[element_type]
    threshold = rounding_threshold(fmt, rounding)
    top = (1 << 23) - 1
    for fraction in {0, 1, top - 1, top, *range(max(threshold - 2, 0), min(threshold + 2, top) + 1)}:
        amax = 1 + Fraction(fraction, 1 << 23)
        expected = oracle.shared_exponent(amax, element_type, rounding)
        assert (fraction > threshold) - fmt.emax == expected, hex(fraction)


def test_an_unknown_rounding_is_refused():
    with pytest.raises(ValueError, match="unknown rounding mode 'nearest'; expected one of floor, ceil, even, rceil"):
        rounding_threshold(ELEMENT_FORMATS["i8"], "nearest")
