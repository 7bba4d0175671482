"""Kernels do not depend on the calling thread's floating-point environment, and leave it as it was."""

import ctypes
import platform
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mx_dialect

linux_x86 = pytest.mark.skipif(
    not sys.platform.startswith("linux") or platform.machine() != "x86_64", reason="sets MXCSR through glibc's fenv_t"
)

# The MXCSR register in glibc's fenv_t for x86-64, and its bits for flushing results and operands, and for rounding up.
MXCSR_OFFSET, FTZ, DAZ, ROUND_UP = 28, 0x8000, 0x0040, 0x4000


class Environment:
    """Sets bits of MXCSR for a block of code."""

    def __init__(self, bits: int):
        self.library = ctypes.CDLL("libm.so.6")
        self.saved = ctypes.create_string_buffer(64)
        self.bits = bits

    def mxcsr(self) -> int:
        now = ctypes.create_string_buffer(64)
        self.library.fegetenv(now)
        return int.from_bytes(now.raw[MXCSR_OFFSET : MXCSR_OFFSET + 4], "little")

    def __enter__(self) -> Any:
        self.library.fegetenv(self.saved)
        changed = bytearray(self.saved.raw)
        value = int.from_bytes(changed[MXCSR_OFFSET : MXCSR_OFFSET + 4], "little") | self.bits
        changed[MXCSR_OFFSET : MXCSR_OFFSET + 4] = value.to_bytes(4, "little")
        self.library.fesetenv(ctypes.create_string_buffer(bytes(changed), 64))
        return self

    def __exit__(self, *error: object) -> None:
        self.library.fesetenv(self.saved)


@linux_x86
@pytest.mark.parametrize("bits", [FTZ | DAZ, ROUND_UP])
def test_results_do_not_depend_on_the_environment(bits: int) -> None:
    rng = np.random.default_rng(0)
    tiny = (rng.standard_normal((32, 64)) * 2.0**-130).astype(np.float32)
    acc = np.full((32, 8), 2.0**-140, np.float32)
    q = mx_dialect.MxArray(
        rng.integers(0, 0x7F, (32, 64), np.uint8), np.zeros((32, 2), np.uint8), element_type="f8E4M3FN"
    )
    b = (rng.standard_normal((64, 8)) * 2.0**-8).astype(np.float32)

    def results() -> list[bytes]:
        quantized = mx_dialect.quantize(tiny, "f8E4M3FN")
        arrays = [quantized.mantissa, quantized.scale, mx_dialect.dequantize(q), mx_dialect.matmul(q, b, acc)]
        return [a.tobytes() for a in arrays]

    expected = results()
    # The inputs are such that flushing would show: subnormal values, products and sums.
    assert np.abs(mx_dialect.dequantize(q)).min() < ml_dtypes.finfo(np.float32).smallest_normal
    with Environment(bits) as environment:
        assert environment.mxcsr() & bits == bits
        assert results() == expected
        assert environment.mxcsr() & bits == bits
