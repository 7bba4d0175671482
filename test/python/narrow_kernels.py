"""Compiled conversions of narrow floats, for tests: one function each, over arrays of bits.

`run` runs one; `patterns` and `special_cases` are floats for it to convert. All of an operation are compiled at once, for
each number of lanes and optimisation level that a test asks for.
"""

import ctypes
import functools
import importlib
import math
import re
from itertools import pairwise

import ml_dtypes
import numpy as np
import oracle

from mx_dialect import _mlir, passes
from mx_dialect._mlir import execution_engine, ir, passmanager

ELEMENTS = ("f8E4M3FN", "f8E5M2", "f6E3M2FN", "f6E2M3FN", "f4E2M1FN")
SCALE = "f8E8M0FNU"
NARROW = (*ELEMENTS, SCALE)
NARROW_DTYPE = {name: oracle.TABLE[name].dtype for name in ELEMENTS} | {SCALE: ml_dtypes.float8_e8m0fnu}
WIDE_DTYPE = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
LEVELS = (0, 3)
LANES = (1, 16)

TO_LLVM = (
    "builtin.module(convert-linalg-to-loops,convert-scf-to-cf,convert-vector-to-llvm,convert-arith-to-llvm,"
    "finalize-memref-to-llvm,convert-func-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts)"
)


def width(name):
    return int(re.match(r"b?f(\d+)", name)[1])


def held_in(name):
    """Return the integer that holds a float in memory: at least a byte."""
    return f"i{max(width(name), 8)}"


def kernel(name, operation, sources, result, lanes):
    """Return a function that applies an operation to arrays of bits: a vector of `lanes` a step, scalars for 1."""

    def shaped(element):
        return element if lanes == 1 else f"vector<{lanes}x{element}>"

    def access(verb, value, buffer, element):
        memref = f"memref<?x{element}>"
        if lanes == 1:
            return f"memref.{verb} {value}{buffer}[%i] : {memref}"
        return f"vector.{verb} {value}{buffer}[%i] : {memref}, {shaped(element)}"

    lines = []
    for i, source in enumerate(sources):
        lines.append(f"%held{i} = " + access("load", "", f"%in{i}", held_in(source)))
        bits, code = f"i{width(source)}", f"%held{i}"
        if bits != held_in(source):
            lines.append(f"%code{i} = arith.trunci {code} : {shaped(held_in(source))} to {shaped(bits)}")
            code = f"%code{i}"
        lines.append(f"%x{i} = arith.bitcast {code} : {shaped(bits)} to {shaped(source)}")
    operands = ", ".join(f"%x{i}" for i in range(len(sources)))
    types = ", ".join(shaped(source) for source in sources)
    bits, code = f"i{width(result)}", "%bits"
    lines.append(f"%y = arith.{operation} {operands} : {types} to {shaped(result)}")
    lines.append(f"%bits = arith.bitcast %y : {shaped(result)} to {shaped(bits)}")
    if bits != held_in(result):
        lines.append(f"%byte = arith.extui %bits : {shaped(bits)} to {shaped(held_in(result))}")
        code = "%byte"
    lines.append(access("store", f"{code}, ", "%out", held_in(result)))
    arguments = "".join(f"%in{i}: memref<?x{held_in(source)}>, " for i, source in enumerate(sources))
    body = "\n    ".join(lines)
    return f"""
func.func @{name}({arguments}%out: memref<?x{held_in(result)}>) attributes {{llvm.emit_c_interface}} {{
  %first = arith.constant 0 : index
  %step = arith.constant {lanes} : index
  %last = memref.dim %out, %first : memref<?x{held_in(result)}>
  scf.for %i = %first to %last step %step {{
    {body}
  }}
  return
}}"""


def conversions():
    """Yield (name, operation, source types, result type) of every conversion that the tests run."""
    for narrow in NARROW:
        for wide in WIDE_DTYPE:
            yield f"extf_{narrow}_{wide}", "extf", (narrow,), wide
            yield f"truncf_{wide}_{narrow}", "truncf", (wide,), narrow
        for other in NARROW:
            if width(narrow) < width(other):
                yield f"extf_{narrow}_{other}", "extf", (narrow,), other
                yield f"truncf_{other}_{narrow}", "truncf", (other,), narrow
            elif narrow != other and width(narrow) == width(other):
                yield f"convertf_{narrow}_{other}", "convertf", (narrow,), other
    for narrow in ELEMENTS:
        for wide in WIDE_DTYPE:
            yield f"scaling_extf_{narrow}_{wide}", "scaling_extf", (narrow, SCALE), wide
            yield f"scaling_truncf_{wide}_{narrow}", "scaling_truncf", (wide, SCALE), narrow
    yield "scaling_extf_by_f32", "scaling_extf", ("f4E2M1FN", "f32"), "f32"
    yield "scaling_truncf_by_f16", "scaling_truncf", ("f32", "f16"), "f8E4M3FN"
    yield "scaling_extf_of_f16", "scaling_extf", ("f16", SCALE), "f32"


def run_pass(module, name):
    found = passes.get(name)
    found.run(module.operation, found.options())
    assert module.operation.verify()


def compile_text(text, level, prepare=None):
    """Expand, lower, check and compile a module; `prepare` is a pipeline to run after the expansion."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run_pass(module, "mx-expand-narrow-floats")
        for pipeline in filter(None, (prepare, TO_LLVM)):
            passmanager.PassManager.parse(pipeline).run(module.operation)
        run_pass(module, "mx-check-lowered")
        return execution_engine.ExecutionEngine(module, opt_level=level)


@functools.cache
def operation_of():
    """Return the operation of each conversion by its name."""
    return {name: operation for name, operation, _, _ in conversions()}


@functools.cache
def machine_code(level, operation, lanes):
    return compile_text(
        "\n".join(
            kernel(f"{name}_{lanes}", operation, sources, result, lanes)
            for name, each, sources, result in conversions()
            if each == operation
        ),
        level,
    )


def call(engine, name, *arrays):
    describe = importlib.import_module(f"{_mlir.HOST}.runtime").get_ranked_memref_descriptor
    engine.invoke(name, *(ctypes.pointer(ctypes.pointer(describe(array))) for array in arrays))


def run(level, name, lanes, result, *arrays):
    """Run one conversion over arrays of its operands' dtypes; return an array of its result's."""
    dtype = np.dtype(WIDE_DTYPE.get(result) or NARROW_DTYPE[result])
    count = -(-arrays[0].size // lanes) * lanes
    inputs = [np.resize(bits_of(array), count) for array in arrays]
    out = np.full(count, 0xA5, f"u{dtype.itemsize}")
    call(machine_code(level, operation_of()[name], lanes), f"{name}_{lanes}", *inputs, out)
    return out[: arrays[0].size].view(dtype)


def bits_of(array):
    return np.ascontiguousarray(array).view(f"u{array.itemsize}")


def all_codes(narrow):
    return np.arange(1 << width(narrow), dtype=np.uint8).view(NARROW_DTYPE[narrow])


def all_16_bit(wide):
    return np.arange(1 << 16, dtype=np.uint16).view(WIDE_DTYPE[wide])


def scales(codes):
    return np.asarray(codes, np.uint8).view(NARROW_DTYPE[SCALE])


def rounded(array, dtype):
    """Return floats rounded to `dtype` by numpy or ml_dtypes; what these warn of is what the tests are about."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return array.astype(dtype)


def values(array):
    """Return the values of floats in f64, which holds them all."""
    return rounded(array, np.float64)


def patterns(dtype, seed):
    """Return floats of every kind: random bits, random values near those of the MX formats, and special cases."""
    random = np.random.default_rng(seed)
    unsigned = np.dtype(f"u{np.dtype(dtype).itemsize}")
    bits = random.integers(0, np.iinfo(unsigned).max, 1 << 13, dtype=unsigned, endpoint=True)
    near = random.standard_normal(1 << 13) * np.exp2(random.integers(-24, 20, 1 << 13))
    return np.concatenate([bits.view(dtype), rounded(near, dtype), special_cases(dtype)])


def special_cases(dtype):
    """Return every MX value, every midpoint between neighbours, the floats beside both, and the IEEE specials."""
    info = ml_dtypes.finfo(dtype)
    points = [0.0, float(info.max), float(info.smallest_subnormal), float(info.smallest_normal), math.inf, math.nan]
    for narrow in ELEMENTS:
        finite = [float(value) for value in oracle.magnitudes(narrow)]
        # One value more than there are: the midpoint below it is where a format without a limit would round up.
        finite.append(2 * finite[-1] - finite[-2])
        points += finite + [(a + b) / 2 for a, b in pairwise(finite)]
    at = bits_of(rounded(np.array(points), dtype))
    beside = np.concatenate([at, at + 1, at[at > 0] - 1])
    sign = beside.dtype.type(1 << (8 * beside.itemsize - 1))
    return np.concatenate([beside, beside ^ sign]).view(dtype)
