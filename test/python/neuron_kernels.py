"""Compiled programs of Neuron operations, and what their operations mean, in loops over the definitions."""

import functools
import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import oracle

import mx_dialect

BITS = {"f4E2M1FN": 4, "f8E4M3FN": 8, "f8E5M2": 8}
CARRIER = {"f4E2M1FN": np.uint16, "f8E4M3FN": np.uint32, "f8E5M2": np.uint32}
DTYPE = {"f4E2M1FN": ml_dtypes.float4_e2m1fn, "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2}
LOOPS = "mx-lower-to-llvm"
VECTORS = "mx-lower-to-llvm-vectorized"
LOWERING = "mx-neuron-expand-load{{scale-path={}}},mx-neuron-to-linalg"


@functools.cache
def compiled(text, pipeline=VECTORS, scale_path="index", opt_level=3):
    """Return the kernel of a program of Neuron operations."""
    module = mx_dialect.parse(text)
    mx_dialect.run_pipeline(module, LOWERING.format(scale_path))
    return mx_dialect.compile(module, pipeline=pipeline, opt_level=opt_level)


def x4(*shape, element):
    """Return the spelling of a tensor of containers."""
    return f"tensor<{''.join(f'{n}x' for n in shape)}!mx.x4<{element}>>"


def tensor(*shape, element):
    return f"tensor<{''.join(f'{n}x' for n in shape)}{element}>"


def unsigned(array):
    """Return an array of signless integers as they were meant."""
    return array.view(f"u{array.dtype.itemsize}")


def lane(container, q, element):
    """Return the code in lane q: bits q * b to q * b + b - 1 of the container."""
    bits = BITS[element]
    return int(container) >> q * bits & (1 << bits) - 1


def packed_lanes(codes, element):
    """Return the container of four codes, lane 0 first."""
    return sum(int(code) << q * BITS[element] for q, code in enumerate(codes))


@functools.cache
def values(element):
    """Return the value of each code of an element type."""
    return np.arange(1 << BITS[element], dtype=np.uint8).view(DTYPE[element]).astype(np.float64)


def random_containers(rng, shape, element, magnitudes=None):
    """Return containers of finite elements, with magnitude codes in a range."""
    bits = BITS[element]
    low, high = magnitudes or (0, {"f4E2M1FN": 7, "f8E4M3FN": 0x7E, "f8E5M2": 0x7B}[element])
    codes = rng.integers(low, high + 1, (*shape, 4)) | rng.integers(0, 2, (*shape, 4)) << bits - 1
    return np.array([packed_lanes(row, element) for row in codes.reshape(-1, 4)], CARRIER[element]).reshape(shape)


def spread(dense, partitions, offset, holes):
    """Return a tile whose holes are given: row s at partition 32 * (s // 4) + s % 4 + offset."""
    tile = np.array(np.broadcast_to(holes, (partitions, *dense.shape[1:])), np.uint8)
    for s in range(len(dense)):
        tile[32 * (s // 4) + s % 4 + offset] = dense[s]
    return tile


def product(stationary, stationary_type, moving, moving_type, stationary_scale, moving_scale):
    """Return the product of containers with dense scales [P/8, F], summed over partitions and lanes, in float64."""
    partitions, rows = stationary.shape
    out = np.zeros((rows, moving.shape[1]))
    for k in range(partitions):
        for q in range(4):
            left = np.array([values(stationary_type)[lane(c, q, stationary_type)] for c in stationary[k]])
            right = np.array([values(moving_type)[lane(c, q, moving_type)] for c in moving[k]])
            left_scale = 2.0 ** (stationary_scale[k // 8].astype(np.float64) - 127)
            right_scale = 2.0 ** (moving_scale[k // 8].astype(np.float64) - 127)
            out += np.outer(left * left_scale, right * right_scale)
    return out


def quantized(x, element, headroom=0):
    """Return containers [P, F] and dense scales [P/8, F] of finite float32 values [P, 4F]."""
    emax = {"f8E4M3FN": 8, "f8E5M2": 15}[element]
    partitions, columns = x.shape[0], x.shape[1] // 4
    data = np.zeros((partitions, columns), np.uint32)
    scale = np.zeros((partitions // 8, columns), np.uint8)
    for g in range(partitions // 8):
        for f in range(columns):
            group = x[8 * g : 8 * g + 8, 4 * f : 4 * f + 4]
            code = max(max(biased_exponent(v) for v in group.flat) - emax + headroom, 0)
            scale[g, f] = code
            for p in range(8):
                codes = oracle.divided_codes([float(v) for v in group[p]], Fraction(2) ** (code - 127), element)
                data[8 * g + p, f] = packed_lanes(codes, element)
    return data, scale


def biased_exponent(value):
    """Return the exponent field of a float32: floor(log2) + 127, and 0 for zero and subnormals."""
    exponent = math.frexp(float(value))[1] + 126
    return exponent if value and exponent > 0 else 0


def dequantized(data, scale, element):
    """Return the values [P, 4F] of containers [P, F] with dense scales."""
    out = np.zeros((data.shape[0], 4 * data.shape[1]))
    for p, f in np.ndindex(*data.shape):
        for q in range(4):
            factor = 2.0 ** (int(scale[p // 8, f]) - 127)
            out[p, 4 * f + q] = values(element)[lane(data[p, f], q, element)] * factor
    return out
