"""Blocks of float32 where quantization goes wrong: a million values at once, or drawn by hypothesis.

Both come from the same families, functions of random bits: `raw`, uint32 [blocks, 32], one for each value, and `top`,
int64 [blocks, 1], the exponent field that the largest value of a block has or nearly has. They return the bits of
float32 values.
"""

import functools

import numpy as np
from hypothesis import strategies as st
from oracle import ROUNDINGS

import mx_dialect
from mx_dialect import MxArray, reference

BLOCKS, SIZE = 32768, 32

_SIGN = np.uint32(1 << 31)
_LARGEST = 0x7F7FFFFF
# 2^-6 below 2, the significands of the largest elements, where `even` carries, and the last before 2.
_SIGNIFICANDS = np.array([1.5, 1.75, 1.875, 127 / 64, 1.9375, 1.96875, 2 - 2.0**-7, 2 - 2.0**-23])
_SPECIALS = np.array([0x7F800000, 0x7FC00000, 0x7F800001, 0x7FFFFFFF])


def _uniform(raw, top):
    """Any bit pattern."""
    return raw


def _signed(raw, magnitude):
    return (raw & _SIGN) | np.clip(magnitude, 0, _LARGEST).astype(np.uint32)


def _near_exponents(raw, top, spread):
    """Exponent fields from `top` down, distributed by the bits that a pattern has them at."""
    return np.maximum(top - (raw >> 23 & 0xFF).astype(np.int64) % spread, 0) << 23


def _one_scale(raw, top):
    """Any fraction, magnitudes that one scale serves and smaller ones."""
    return _signed(raw, _near_exponents(raw, top, 24) + (raw & 0x7FFFFF))


def _beside_powers_of_two(raw, top):
    return _signed(raw, _near_exponents(raw, top, 12) + (raw & 7).astype(np.int64) - 3)


def _beside_ties(raw, top):
    """Six bits of fraction and then zeros, where the ties of every format lie, or an ulp beside."""
    return _signed(raw, _near_exponents(raw, top, 20) + (raw & 0x7E0000) + (raw & 3).astype(np.int64) - 1)


def _beside_largest(raw, top):
    """Significands at and beside those where elements begin to saturate."""
    fraction = ((_SIGNIFICANDS[raw & 7] - 1) * (1 << 23)).astype(np.int64)
    return _signed(raw, _near_exponents(raw, top, 4) + fraction + (raw >> 3 & 3).astype(np.int64) - 1)


def _subnormal(raw, top):
    """Subnormal float32 values of any magnitude, and normal ones up to 8 times the smallest."""
    return _signed(raw, (raw & 0x3FFFFFF).astype(np.int64) >> (top % 26))


def _zeros(raw, top):
    """Zeros of both signs; in half of the blocks beside powers of two."""
    return _signed(raw, np.where((raw & 7 == 0) & (top & 1 == 1), _near_exponents(raw, top, 24), 0))


def _specials(raw, top):
    """Infinities and NaNs of both signs here and there."""
    special = (raw & _SIGN) | _SPECIALS[raw & 3].astype(np.uint32)
    return np.where(raw >> 26 & 31 == 31, special, _one_scale(raw, np.maximum(top, 64)))


_FAMILIES = (
    _uniform,
    _one_scale,
    _beside_powers_of_two,
    _beside_ties,
    _beside_largest,
    _subnormal,
    _zeros,
    _specials,
)
_EXTREMES = (0, 1, 2, 253, 254)


@functools.cache
def hard_blocks():
    """Return [BLOCKS, SIZE] float32, a 1,048,576 values, as many of each family."""
    rng = np.random.default_rng(2024)
    count = BLOCKS // len(_FAMILIES)
    parts = []
    for family in _FAMILIES:
        top = rng.integers(0, 255, (count, 1))
        top[::8] = rng.choice(_EXTREMES, top[::8].shape)
        parts.append(family(rng.integers(0, 1 << 32, (count, SIZE), np.uint32), top))
    x = np.concatenate(parts).view(np.float32)
    x.setflags(write=False)
    return x


@st.composite
def drawn_blocks(draw, count=4):
    """Draw [count, SIZE] float32, each block of any family."""
    blocks = []
    for _ in range(count):
        family = draw(st.sampled_from(_FAMILIES))
        top = draw(st.one_of(st.integers(0, 254), st.sampled_from(_EXTREMES)))
        raw = np.frombuffer(draw(st.binary(min_size=4 * SIZE, max_size=4 * SIZE)), np.uint32)
        blocks.append(family(raw[None], np.array([[top]])))
    return np.concatenate(blocks).view(np.float32)


@functools.cache
def _kernel(element_type):
    """Return a kernel of BLOCKS blocks that quantizes them with each rounding: one compilation, which is what costs."""
    source = f"tensor<{BLOCKS}x{SIZE}xf32>"
    result = f"!mx.tensor<{BLOCKS}x{SIZE}x{element_type}, block_size = {SIZE}, scale_type = f8E8M0FNU>"
    names, types = ", ".join(f"%{r}" for r in ROUNDINGS), ", ".join([result] * len(ROUNDINGS))
    operations = "\n".join(
        f'%{r} = mx.quantize_block %x {{rounding = "{r}"}} : {source} -> {result}' for r in ROUNDINGS
    )
    return mx_dialect.compile(
        f"func.func @quantize(%x: {source}) -> ({types}) {{\n{operations}\nreturn {names} : {types}\n}}"
    )


def quantize(x, element_type, rounding="floor"):
    """Return (codes [blocks, SIZE], scale codes [blocks]) as uint8: a compiled kernel's, and the same of reference.py.

    There are up to BLOCKS blocks. The reference, much slower, sees every fourth of a great many, unless the rounding is
    floor.
    """
    padded = x
    if len(x) < BLOCKS:
        padded = np.zeros((BLOCKS, SIZE), np.float32)
        padded[: len(x)] = x
    q = _kernel(element_type)(padded)[ROUNDINGS.index(rounding)]
    codes, scale = q.mantissa.view(np.uint8)[: len(x)], q.scale.view(np.uint8)[: len(x), 0]
    seen = slice(None, None, 1 if rounding == "floor" or len(x) < 1000 else 4)
    expected = reference.quantize(x[seen], element_type, SIZE, rounding=rounding)
    np.testing.assert_array_equal(scale[seen], expected.scale.view(np.uint8)[:, 0])
    np.testing.assert_array_equal(codes[seen], expected.mantissa.view(np.uint8))
    return codes, scale


@functools.cache
def quantized(element_type, rounding="floor"):
    """Return `quantize(hard_blocks(), ...)`."""
    return quantize(hard_blocks(), element_type, rounding)


def dequantize(codes, scale, element_type):
    """Return the float32 values of codes [blocks, SIZE] with scale codes [blocks], of up to BLOCKS blocks."""
    padded = np.zeros((BLOCKS, SIZE), np.uint8), np.zeros((BLOCKS, 1), np.uint8)
    padded[0][: len(codes)], padded[1][: len(codes), 0] = codes, scale
    return mx_dialect.dequantize(MxArray(*padded, SIZE, element_type=element_type))[: len(codes)]


def doubles(x):
    """Return float32 values as float64, which numpy warns of for signalling NaNs."""
    with np.errstate(invalid="ignore"):
        return x.astype(np.float64)


def largest(x):
    """Return the largest magnitude of each block as float64; NaN if it holds one."""
    return doubles(np.abs(x).max(axis=1))


# NVFP4: f4E2M1FN elements in blocks of 16 with f8E4M3FN scales.

NV_BLOCKS, NV_SIZE = 2 * BLOCKS, 16


@functools.cache
def nvfp4_blocks():
    """Return [NV_BLOCKS, NV_SIZE] float32: the hard blocks, and blocks at and beside the ties of scale and elements."""
    rng = np.random.default_rng(4)
    hard = hard_blocks()[::2].reshape(-1, NV_SIZE)
    count = NV_BLOCKS - len(hard)
    # Scales from their smallest normal value to their largest, and what lies half way to the next.
    scale = rng.integers(16, 32, (count, 1)) / 16 * np.exp2(rng.integers(-7, 9, (count, 1)))
    ties = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 6.0])
    near = (rng.choice(ties, (count, NV_SIZE)) * scale).astype(np.float32)
    near[:, 0] = (6 * scale).astype(np.float32)[:, 0]
    near = (near.view(np.int32) + rng.integers(-1, 2, near.shape)).astype(np.int32).view(np.float32)
    x = np.concatenate([hard, near * rng.choice(np.float32([-1, 1]), near.shape)])
    x.setflags(write=False)
    return x


@functools.cache
def nvfp4_quantized():
    """Return (codes [NV_BLOCKS, NV_SIZE], scale codes [NV_BLOCKS]) of `nvfp4_blocks` as uint8, both ways as `quantize`."""
    arguments = nvfp4_blocks(), "f4E2M1FN", NV_SIZE
    q = mx_dialect.quantize(*arguments, scale_type="f8E4M3FN")
    expected = reference.quantize(*arguments, scale_type="f8E4M3FN")
    codes, scale = q.mantissa.view(np.uint8), q.scale.view(np.uint8)[:, 0]
    np.testing.assert_array_equal(scale, expected.scale.view(np.uint8)[:, 0])
    np.testing.assert_array_equal(codes, expected.mantissa.view(np.uint8))
    return codes, scale
