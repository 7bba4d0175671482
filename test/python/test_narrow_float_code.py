"""The machine code of expanded conversions: vector instructions, and no help from the floating-point control word."""

import ctypes
import platform
import re
import shutil
import subprocess

import numpy as np
import pytest
from narrow_kernels import (
    LANES,
    NARROW,
    WIDE_DTYPE,
    all_codes,
    bits_of,
    call,
    compile_text,
    kernel,
    machine_code,
    patterns,
)

SET_CONTROL_WORD = """
func.func @set(%word: i32) attributes {llvm.emit_c_interface} {
  %one = llvm.mlir.constant(1 : i32) : i32
  %slot = llvm.alloca %one x i32 : (i32) -> !llvm.ptr
  llvm.store %word, %slot : i32, !llvm.ptr
  llvm.call_intrinsic "llvm.x86.sse.ldmxcsr"(%slot) : (!llvm.ptr) -> ()
  return
}
"""
DEFAULT = 0x1F80
FLUSHING = DEFAULT | 0x8040


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="sets x86's control word")
@pytest.mark.parametrize("narrow", NARROW)
def test_flush_to_zero_modes_change_nothing(narrow):
    codes = np.resize(bits_of(all_codes(narrow)), 256)
    wide = patterns(np.float32, 8)
    wide = bits_of(wide[: wide.size // 16 * 16])
    jobs = [
        ("extf", f"extf_{narrow}_{name}_16", codes, np.zeros(codes.size, f"u{np.dtype(dtype).itemsize}"))
        for name, dtype in WIDE_DTYPE.items()
    ]
    jobs.append(("truncf", f"truncf_f32_{narrow}_16", wide, np.zeros(wide.size, np.uint8)))
    setter = compile_text(SET_CONTROL_WORD, 3)
    expected = []
    for operation, name, source, out in jobs:
        call(machine_code(3, operation, 16), name, source, out)
        expected.append(out.copy())
        out[:] = 0
    setter.invoke("set", ctypes.pointer(ctypes.c_uint32(FLUSHING)))
    try:
        for operation, name, source, out in jobs:
            call(machine_code(3, operation, 16), name, source, out)
    finally:
        setter.invoke("set", ctypes.pointer(ctypes.c_uint32(DEFAULT)))
    for (_, _, _, out), reference in zip(jobs, expected, strict=True):
        np.testing.assert_array_equal(out, reference)


def cpu_has(*features):
    try:
        with open("/proc/cpuinfo") as file:
            flags = re.search(r"^flags\s*:(.*)", file.read(), re.MULTILINE)
    except OSError:
        return False
    return flags is not None and set(features) <= set(flags[1].split())


def loops(tmp_path, text):
    """Compile a function @k and return the instructions of each of its loops without branches inside."""
    path = tmp_path / "kernel.o"
    compile_text(text, 3).dump_to_object_file(str(path))
    command = ["objdump", "-d", "--no-show-raw-insn", "-M", "intel", "--disassemble=k", str(path)]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = [(int(a, 16), i) for a, i in re.findall(r"^ *([0-9a-f]+):\s+(.*\S)", listing, re.MULTILINE)]
    found = []
    for end, branch in lines:
        start = re.match(r"j\w+ +([0-9a-f]+)", branch)
        body = [i for a, i in lines if start and int(start[1], 16) <= a < end]
        if body and not any(i.startswith("j") for i in body):
            found.append(body)
    return found


@pytest.mark.skipif(not cpu_has("avx2", "f16c"), reason="knows the instructions of AVX2 and AVX-512")
@pytest.mark.skipif(shutil.which("objdump") is None, reason="needs objdump")
@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize(
    ("operation", "source", "result"),
    [("extf", name, "f32") for name in NARROW] + [("truncf", "f32", name) for name in NARROW],
)
def test_becomes_vector_code(operation, source, result, lanes, tmp_path):
    """Vectors stay whole, and LLVM vectorizes a loop over scalars."""
    bodies = loops(tmp_path, kernel("k", operation, (source,), result, lanes))
    of_one_element = re.compile(r"v?(pinsr|pextr|\w+ss |\w+sh2ss|mov[dw] )|call")
    assert any(
        any(re.search(r"\b[yz]mm", i) for i in body) and not any(of_one_element.match(i) for i in body)
        for body in bodies
    )
    assert not any("call" in i for body in bodies for i in body)
