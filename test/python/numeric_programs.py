"""Programs of many mx operations each, so that one compilation serves many cases, and the values they are run on."""

import functools
import itertools
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import oracle

import mx_dialect
from mx_dialect import reference
from mx_dialect.tensor_spec import TensorSpec, spell_shape

F32, F16, BF16 = (np.dtype(dtype) for dtype in (np.float32, np.float16, ml_dtypes.bfloat16))
FLOATS = {"f32": F32, "f16": F16, "bf16": BF16}
E8M0, E4M3 = "f8E8M0FNU", "f8E4M3FN"
NVFP4 = ("f4E2M1FN", 16, E4M3)
FORMATS = (*((element, E8M0) for element in oracle.ELEMENT_TYPES), (NVFP4[0], E4M3))


@dataclass(frozen=True)
class Quantize:
    """One mx.quantize_block, or mx.dequantize_block the other way, with a float tensor of type `floats`."""

    spec: TensorSpec
    floats: str = "f32"
    rounding: str = "floor"

    @property
    def float_type(self):
        return f"tensor<{spell_shape(self.spec.shape, self.floats)}>"


@dataclass(frozen=True)
class Matmul:
    """One mx.block_matmul: each side is the parameters of an mx tensor, or (shape, float type)."""

    lhs: object
    rhs: object
    acc: tuple
    transpose_rhs: bool = False

    @property
    def types(self):
        sides = (
            s.custom() if isinstance(s, TensorSpec) else f"tensor<{spell_shape(*s)}>" for s in (self.lhs, self.rhs)
        )
        return (*sides, f"tensor<{spell_shape(self.acc, 'f32')}>")


def mx(shape, element, block=32, scale=E8M0, axis=-1):
    return TensorSpec(shape, element, block, scale, axis % len(shape))


def matmuls():
    """Return pairs of formats, block sizes and float types, plain and transposed, and ways of broadcasting."""
    m, k, n = 5, 64, 7
    both = [
        (("f8E4M3FN", 32), ("f8E4M3FN", 32)),
        (("f8E4M3FN", 32), ("f4E2M1FN", 32)),
        (("i8", 32), ("f6E3M2FN", 16)),
        (("f6E2M3FN", 64), ("i8", 1)),
        (("f8E5M2", 1), ("f6E2M3FN", 2)),
        (("f4E2M1FN", 2), ("f8E5M2", 64)),
        (NVFP4, NVFP4),
        (("f8E4M3FN", 32), NVFP4),
    ]
    cases = []
    for number, (lhs, rhs) in enumerate(both):
        transpose = number % 2 == 1
        sides = mx((m, k), *lhs), mx((n, k), *rhs) if transpose else mx((k, n), *rhs, axis=0)
        cases.append(Matmul(*sides, (m, n), transpose))
    floats = itertools.cycle(FLOATS)
    for number, (element, scale) in enumerate(FORMATS):
        block, dense = 16 if scale == E4M3 else 32, next(floats)
        transpose = number % 2 == 0
        if number % 3:
            rhs = mx((n, k), element, block, scale) if transpose else mx((k, n), element, block, scale, axis=0)
            cases.append(Matmul(((m, k), dense), rhs, (m, n), transpose))
        else:
            rhs = ((n, k) if transpose else (k, n), dense)
            cases.append(Matmul(mx((m, k), element, block, scale), rhs, (m, n), transpose))
    cases += [
        Matmul(mx((2, 1, m, k), "f8E4M3FN"), mx((3, k, n), "f4E2M1FN", axis=-2), (2, 3, m, n)),
        Matmul(((m, k), "f32"), mx((2, n, k), "f8E4M3FN"), (2, m, n), True),
        Matmul(mx((1, m, k), "i8"), ((1, k, n), "bf16"), (2, m, n)),
    ]
    return cases


def open_extents(case):
    """Return a case with every extent open but those of 1, which broadcast."""

    def opened(shape):
        return tuple(extent if extent == 1 else None for extent in shape)

    def side(given):
        if isinstance(given, TensorSpec):
            return mx(opened(given.shape), given.element, given.block_size, given.scale_type, given.axis)
        return opened(given[0]), given[1]

    return Matmul(side(case.lhs), side(case.rhs), opened(case.acc), case.transpose_rhs)


def resized(case, m, k, n):
    """Return a case with other extents of M, K and N in place of 5, 64 and 7."""
    extents = {5: m, 64: k, 7: n}

    def side(given):
        if isinstance(given, TensorSpec):
            shape = tuple(extents.get(e, e) for e in given.shape)
            return mx(shape, given.element, given.block_size, given.scale_type, given.axis)
        return tuple(extents.get(e, e) for e in given[0]), given[1]

    return Matmul(side(case.lhs), side(case.rhs), tuple(extents.get(e, e) for e in case.acc), case.transpose_rhs)


def _function(arguments, operations, results):
    """Return a function of arguments %a0_0, %a0_1, ..., whose i-th operation defines its i-th result."""
    listed = ", ".join(f"%a{i}_{j}: {t}" for i, types in enumerate(arguments) for j, t in enumerate(types))
    values = ", ".join(f"%r{i}" for i in range(len(results)))
    types = ", ".join(results)
    body = "\n".join(f"%r{i} = {operation}" for i, operation in enumerate(operations))
    return f"func.func @f({listed}) -> ({types}) {{\n{body}\nreturn {values} : {types}\n}}"


def quantize_program(cases):
    return _function(
        [(c.float_type,) for c in cases],
        [
            f'mx.quantize_block %a{i}_0 {{rounding = "{c.rounding}"}} : {c.float_type} -> {c.spec.custom()}'
            if c.spec.scale_type == "f8E8M0FNU"
            else f"mx.quantize_block %a{i}_0 : {c.float_type} -> {c.spec.custom()}"
            for i, c in enumerate(cases)
        ],
        [c.spec.custom() for c in cases],
    )


def dequantize_program(cases):
    return _function(
        [(c.spec.custom(),) for c in cases],
        [f"mx.dequantize_block %a{i}_0 : {c.spec.custom()} -> {c.float_type}" for i, c in enumerate(cases)],
        [c.float_type for c in cases],
    )


def matmul_program(cases):
    return _function(
        [c.types for c in cases],
        [
            f"mx.block_matmul %a{i}_0, %a{i}_1, %a{i}_2{' {transpose_rhs}' if c.transpose_rhs else ''} : "
            f"{', '.join(c.types)} -> {c.types[2]}"
            for i, c in enumerate(cases)
        ],
        [c.types[2] for c in cases],
    )


@functools.cache
def compiled(text, scale_products="elements", pipeline="mx-lower-to-llvm-vectorized", opt_level=3):
    """Return the kernel of a program, its matmuls lowered as `scale_products` says."""
    module = mx_dialect.parse(text)
    if scale_products != "elements":
        mx_dialect.run_pipeline(module, f"mx-to-linalg{{scale-products={scale_products}}}")
    return mx_dialect.compile(module, pipeline=pipeline, opt_level=opt_level)


def call(kernel, operands):
    """Return a tuple of results; a block-scaled operand goes in as its two arrays of codes."""
    flat = [
        part
        for operand in operands
        for part in ((operand,) if isinstance(operand, np.ndarray) else (codes(operand.mantissa), codes(operand.scale)))
    ]
    results = kernel(*flat)
    return results if isinstance(results, tuple) else (results,)


def codes(array):
    return array.view(np.uint8)


def assert_same_floats(actual, expected):
    """Compare bits; any NaN equals any other."""
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
    nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(actual), nan)
    bits = np.dtype(f"u{expected.dtype.itemsize}")
    np.testing.assert_array_equal(actual.view(bits)[~nan], expected.view(bits)[~nan])


def dequantized(q, dtype):
    """Return what a block-scaled array is worth, the float32 values rounded to `dtype`."""
    with np.errstate(over="ignore"):
        return reference.dequantize(q).astype(dtype)


_FIELDS = {F32: (8, 23), F16: (5, 10), BF16: (8, 7)}


def hard(dtype, shape, axis, seed):
    """Return floats that are hard to quantize; those along `axis` are of one kind, and there are as many of each."""
    exponent_bits, fraction_bits = _FIELDS[dtype]
    infinity = ((1 << exponent_bits) - 1) << fraction_bits
    rng = np.random.default_rng(seed)
    others = [extent for i, extent in enumerate(shape) if i != axis]
    size = (int(np.prod(others)), shape[axis])

    def random(*limits):
        return rng.integers(*limits, size=size)

    def near(top, fraction):
        return (np.maximum(top - random(20), 0) << fraction_bits) + fraction

    top = rng.integers(0, (1 << exponent_bits) - 1, (size[0], 1))
    fraction = random(1 << fraction_bits)
    # Few bits and then zeros, as the ties and thresholds of all formats have, or one step beside.
    few = (fraction & (-1 << max(fraction_bits - 6, 1))) + random(-1, 2)
    kinds = [
        random(1 << (exponent_bits + fraction_bits)),  # Anything.
        near(top, fraction),
        near(top, few),
        near((1 << exponent_bits) - 2, few),  # Up to the largest.
        near(rng.integers(0, 4, (size[0], 1)), few),  # Subnormal, or nearly so.
        np.where(random(16) == 0, infinity + random(2) * fraction, near(top, fraction)),  # Inf and NaN among others.
        np.where(random(4) == 0, near(top * (top % 2), few), 0),  # Zeros of both signs, alone or not.
    ]
    magnitude = np.choose(np.arange(size[0])[:, None] % len(kinds), kinds)
    bits = np.maximum(magnitude, 0) | (random(2) << (exponent_bits + fraction_bits))
    values = bits.astype(f"u{dtype.itemsize}").view(dtype)
    return np.ascontiguousarray(np.moveaxis(values.reshape(*others, shape[axis]), -1, axis))
