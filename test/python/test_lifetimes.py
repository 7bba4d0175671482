"""Who owns what: results outlive kernels, buffers are freed once, contexts go when compilation is done."""

import gc
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import mx_dialect
from mx_dialect.runtime import compiler, memref

# Bytes of a result below, large enough to see in the process's size.
SIZE = 4 << 20
DOUBLE = f"""
func.func @double(%x: tensor<{SIZE // 4}xf32>) -> tensor<{SIZE // 4}xf32> {{
  %0 = arith.addf %x, %x : tensor<{SIZE // 4}xf32>
  return %0 : tensor<{SIZE // 4}xf32>
}}
"""
PAIR = """
func.func @pair(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) {
  %0 = arith.addf %x, %x : tensor<?xf32>
  %1 = arith.mulf %x, %x : tensor<?xf32>
  return %0, %1, %0 : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}
"""
ONE_AT_A_TIME = "mx-lower-to-llvm"


@pytest.fixture
def freed(monkeypatch):
    """Return the list of pointers that are freed from now on."""
    pointers = []
    free = memref._free

    def record(pointer):
        pointers.append(pointer)
        free(pointer)

    monkeypatch.setattr(memref, "_free", record)
    return pointers


def resident():
    """Return the bytes of memory that this process has."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


needs_proc = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads the process's size in /proc")


def test_results_are_freed_once(freed):
    kernel = mx_dialect.compile(PAIR, pipeline=ONE_AT_A_TIME)
    results = kernel(np.arange(5, dtype=np.float32))
    assert not freed
    pointers = [r.__array_interface__["data"][0] for r in results]
    assert [r.tolist() for r in results] == [[0, 2, 4, 6, 8], [0, 1, 4, 9, 16], [0, 2, 4, 6, 8]]
    del results
    gc.collect()
    # Two buffers came out of compiled code; the third result is a copy of the first.
    assert len(freed) == len(set(freed)) == 2
    assert len(set(pointers)) == 3


def test_a_view_keeps_its_buffer(freed):
    kernel = mx_dialect.compile(PAIR, pipeline=ONE_AT_A_TIME)
    _, squares, _ = kernel(np.arange(5, dtype=np.float32))
    del _
    gc.collect()
    assert len(freed) == 1
    view = squares[3:].view(np.uint32).T
    del squares
    gc.collect()
    assert len(freed) == 1
    assert view.view(np.float32).tolist() == [9, 16]
    del view
    gc.collect()
    assert len(freed) == 2


def test_empty_results_are_freed(freed):
    results = mx_dialect.compile(PAIR, pipeline=ONE_AT_A_TIME)(np.zeros(0, np.float32))
    assert [r.shape for r in results] == [(0,)] * 3
    assert len(freed) == len(set(freed)) == 2


def test_results_outlive_the_kernel():
    text = PAIR.replace("@pair", "@short_lived")
    kernel = mx_dialect.compile(text, pipeline=ONE_AT_A_TIME)
    results = kernel(np.arange(4, dtype=np.float32))
    gone = weakref.ref(kernel)
    del kernel
    compiler._cache._kernels.clear()
    gc.collect()
    assert gone() is None
    # New code may lie where the old was.
    mx_dialect.compile(text.replace("mulf", "divf"), pipeline=ONE_AT_A_TIME)
    assert [r.tolist() for r in results] == [[0, 2, 4, 6], [0, 1, 4, 9], [0, 2, 4, 6]]


def test_arguments_are_released():
    kernel = mx_dialect.compile(PAIR, pipeline=ONE_AT_A_TIME)
    x = np.arange(4, dtype=np.float32)
    gone = weakref.ref(x)
    results = kernel(x)
    del x
    gc.collect()
    assert gone() is None
    assert results[0].tolist() == [0, 2, 4, 6]


def test_cache_is_bounded():
    cache = compiler._Cache(limit=2)
    made = []

    def build(key):
        made.append(key)
        return lambda: key

    for key in ("a", "b", "a", "c", "a", "b"):
        assert cache.get(key, lambda key=key: build(key))() == key
    # "a" was used last when "c" came: "b" went.
    assert made == ["a", "b", "c", "b"]


def test_cache_keeps_nothing_that_failed():
    cache = compiler._Cache(limit=2)

    def broken():
        raise ValueError("broken")

    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            cache.get("a", broken)
    assert cache.get("a", lambda: 3) == 3


@needs_proc
def test_repeated_calls_do_not_grow():
    kernel = mx_dialect.compile(DOUBLE)
    x = np.ones(SIZE // 4, np.float32)
    for _ in range(3):
        kernel(x)
    before = resident()
    for _ in range(50):
        kernel(x)
    assert resident() - before < 4 * SIZE


@needs_proc
def test_scratch_buffers_are_freed():
    """The first sum is a buffer of the program's own: too large for the stack, and gone when the call ends."""
    n = SIZE // 4
    text = f"""
    func.func @f(%x: tensor<{n}xf32>, %i: index) -> tensor<f32> {{
      %0 = arith.addf %x, %x : tensor<{n}xf32>
      %1 = tensor.extract %0[%i] : tensor<{n}xf32>
      %2 = tensor.from_elements %1 : tensor<f32>
      return %2 : tensor<f32>
    }}"""
    # Unoptimized: LLVM would find that most of the sum is not needed.
    kernel = mx_dialect.compile(text, pipeline=ONE_AT_A_TIME, opt_level=0)
    x = np.arange(n, dtype=np.float32)
    assert kernel(x, 7) == 14
    before = resident()
    for _ in range(50):
        kernel(x, 7)
    assert resident() - before < 4 * SIZE


@needs_proc
def test_buffers_are_freed_when_an_assert_fails():
    n = SIZE // 4
    text = f"""
    func.func private @check(%v: f32) {{
      %zero = arith.constant 0.0 : f32
      %holds = arith.cmpf ogt, %v, %zero : f32
      cf.assert %holds, "not positive"
      return
    }}
    func.func @f(%x: tensor<{n}xf32>, %i: index) -> tensor<{n}xf32> {{
      %0 = arith.addf %x, %x : tensor<{n}xf32>
      %1 = tensor.extract %0[%i] : tensor<{n}xf32>
      call @check(%1) : (f32) -> ()
      return %0 : tensor<{n}xf32>
    }}"""
    kernel = mx_dialect.compile(text, pipeline=ONE_AT_A_TIME, opt_level=0)
    x = np.arange(n, dtype=np.float32)

    def call(i):
        with pytest.raises(mx_dialect.MxError, match="not positive"):
            kernel(x, i)

    assert kernel(x, 3)[3] == 6
    call(0)
    before = resident()
    for _ in range(50):
        call(0)
    assert resident() - before < 4 * SIZE


@needs_proc
def test_constants_of_a_context_are_freed():
    """A context never frees constants; the one that a kernel is compiled in is gone afterwards."""
    values = np.random.default_rng(0).integers(0, 256, SIZE, np.uint8)

    def compiled(number):
        values[:4] = np.frombuffer(np.int32(number).tobytes(), np.uint8)
        hexadecimal = "0x" + values.tobytes().hex().upper()
        text = f"""
        func.func @f(%i: index) -> i8 {{
          %0 = arith.constant dense<"{hexadecimal}"> : tensor<{SIZE}xi8>
          %1 = tensor.extract %0[%i] : tensor<{SIZE}xi8>
          return %1 : i8
        }}"""
        kernel = mx_dialect.compile(text, pipeline=ONE_AT_A_TIME)
        assert kernel(0) == np.int8(number)
        compiler._cache._kernels.clear()

    compiled(0)
    gc.collect()
    before = resident()
    for number in range(1, 7):
        compiled(number)
        gc.collect()
    # Six programs hold at least two copies each while they are compiled.
    assert resident() - before < 6 * SIZE


def test_no_context_is_left_behind():
    """Not even the last one that the dialect was loaded into: it would keep the constants of one program."""
    code = """
import gc
import mx_dialect
from mx_dialect._mlir import ir
TEXT = "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }"
kernel = mx_dialect.compile(TEXT)
module = mx_dialect.parse(TEXT)
gc.collect()
one = ir.Context._get_live_count()
del module
gc.collect()
print(one, ir.Context._get_live_count())
"""
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=60)
    assert done.stdout == "1 0\n", done.stderr


def test_results_of_many_threads():
    """Threads make and drop results at once; every result holds its own thread's numbers."""
    kernel = mx_dialect.compile(PAIR, pipeline=ONE_AT_A_TIME)
    wrong = []

    def run(number):
        x = np.full(1000, number, np.float32)
        kept = []
        for _ in range(200):
            kept.append(kernel(x))
            if len(kept) > 5:
                kept.pop(0)
            if not all((r[0] == 2 * number).all() and (r[1] == number**2).all() for r in kept):
                wrong.append(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_array_api_results_own_their_memory():
    x = np.random.default_rng(0).standard_normal((4, 64)).astype(np.float32)
    q = mx_dialect.quantize(x)
    mantissa = q.mantissa
    expected = mantissa.tobytes()
    del q
    gc.collect()
    mx_dialect.quantize(2 * x)
    assert mantissa.dtype == ml_dtypes.float8_e4m3fn
    assert mantissa.tobytes() == expected


# Each in a process of its own: what goes wrong here ends the process.
OUTLIVE = {
    "a module outlives its context": """
context = mx_dialect.load()
module = mx_dialect.parse(TEXT, context=context)
del context
gc.collect()
mx_dialect.run_pipeline(module, "mx-to-linalg,canonicalize")
assert "@f" in mx_dialect.to_asm(module)
""",
    "a kernel outlives module and context": """
module = mx_dialect.parse(TEXT)
kernel = mx_dialect.compile(module)
del module
gc.collect()
assert kernel(np.ones(4, np.float32)).tolist() == [2, 2, 2, 2]
""",
    "results outlive the kernel": """
from mx_dialect.runtime import compiler
kernel = mx_dialect.compile(TEXT)
result = kernel(np.ones(4, np.float32))
del kernel
compiler._cache._kernels.clear()
gc.collect()
assert result.tolist() == [2, 2, 2, 2]
""",
    "a manager outlives module and the pass that it was given": """
from mx_dialect._mlir import passmanager
module = mx_dialect.parse(TEXT)
manager = passmanager.PassManager("builtin.module", module.context)
manager.add(mx_dialect.pass_("mx-to-linalg"))
manager.run(module.operation)
del module
gc.collect()
other = mx_dialect.parse(TEXT, context=mx_dialect.load())
del manager
gc.collect()
assert other.operation.verify()
""",
}


@pytest.mark.parametrize("case", OUTLIVE)
def test_nothing_crashes_when_its_maker_goes(case):
    text = "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> { %0 = arith.addf %x, %x : tensor<4xf32> return %0 : tensor<4xf32> }"
    code = f"import gc\nimport numpy as np\nimport mx_dialect\nTEXT = {text!r}\n{OUTLIVE[case]}"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@needs_proc
def test_kernels_that_are_dropped_are_freed():
    """Kept, a kernel is about 0.8 MiB of machine code, context and tables."""

    def cycle(number):
        text = f"""
        func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {{
          %c = arith.constant dense<{number}.5> : tensor<4xf32>
          %0 = arith.addf %x, %c : tensor<4xf32>
          return %0 : tensor<4xf32>
        }}"""
        kernel = mx_dialect.compile(text, pipeline=ONE_AT_A_TIME, cache=False)
        assert kernel(np.zeros(4, np.float32))[0] == number + 0.5
        compiler._cache._kernels.clear()

    for number in range(10):
        cycle(number)
    gc.collect()
    before = resident()
    for number in range(10, 50):
        cycle(number)
    gc.collect()
    assert resident() - before < 40 * 0.3 * 2**20
