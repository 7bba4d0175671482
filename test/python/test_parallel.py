"""Kernels on several threads: the same results, whoever else is computing."""

import os
import subprocess
import sys
import threading
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mx_dialect
from mx_dialect import parallel
from mx_dialect._mlir import ir


def _matmul(m: int, n: int, k: int, transposed: bool, attribute: str = "") -> str:
    lhs = f"!mx.tensor<{m}x{k}xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>"
    rhs = f"tensor<{n}x{k}xf32>" if transposed else f"tensor<{k}x{n}xf32>"
    acc = f"tensor<{m}x{n}xf32>"
    flag = "{transpose_rhs}" if transposed else ""
    return f"""
    func.func @f(%a: {lhs}, %b: {rhs}, %c: {acc}) -> {acc} {{
      %0 = mx.block_matmul %a, %b, %c {flag} : {lhs}, {rhs}, {acc} -> {acc}
      return %0 : {acc}
    }}"""


def _operands(m: int, n: int, k: int, transposed: bool) -> list[Any]:
    rng = np.random.default_rng(m * n + k)
    lhs = mx_dialect.quantize(rng.standard_normal((m, k)).astype(np.float32))
    rhs = rng.standard_normal((n, k) if transposed else (k, n)).astype(np.float32)
    return [lhs, rhs, rng.standard_normal((m, n)).astype(np.float32)]


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    ("m", "n", "k"), [(300, 129, 128), (61, 515, 128), (3001, 1, 1024), (2050, 5, 256), (1, 4097, 1024), (5, 2051, 512)]
)
def test_results_do_not_depend_on_the_number_of_threads(m: int, n: int, k: int, transposed: bool) -> None:
    text, operands = _matmul(m, n, k, transposed), _operands(m, n, k, transposed)
    # Halves are among quarters.
    first, *others = [mx_dialect.compile(text, threads=t)(*operands) for t in (1, 3, 4)]
    for other in others:
        assert np.array_equal(first.view(np.uint32), other.view(np.uint32))


@pytest.mark.parametrize(("m", "n", "k"), [(300, 129, 128), (61, 515, 128), (3001, 1, 1024), (1, 4097, 1024)])
def test_threads_share_the_rows_or_columns(m: int, n: int, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ranges: list[list[tuple[int, int]]] = []
    cut = parallel.cut

    def recording(*arguments: int) -> list[tuple[int, int]]:
        ranges.append(cut(*arguments))
        return ranges[-1]

    monkeypatch.setattr(parallel, "cut", recording)
    mx_dialect.compile(_matmul(m, n, k, False), threads=2, cache=False)(*_operands(m, n, k, False))
    ((first, second),) = [r for r in ranges if r[-1][1] in (m, n)]
    assert first[0] == 0
    assert first[1] == second[0]


def test_a_large_product_is_divided_and_a_small_one_is_not() -> None:
    for size, divided in ((256, True), (16, False)):
        module = mx_dialect.parse(_matmul(size, size, 64, False))
        mx_dialect.run_pipeline(module, "mx-to-linalg,mx-expand-narrow-floats,mx-schedule-cpu,mx-bufferize")
        mx_dialect.run_pipeline(module, "mx-schedule-cpu{emit=true threads=2}")
        assert ("mx.parallel" in mx_dialect.to_asm(module)) == divided, size


def test_kernels_on_several_threads_of_the_caller_at_once() -> None:
    cases = [(_matmul(256 + i, 200, 128, False), _operands(256 + i, 200, 128, False)) for i in range(3)]
    kernels = [mx_dialect.compile(text, threads=3) for text, _ in cases]
    expected = [kernel(*operands) for kernel, (_, operands) in zip(kernels, cases, strict=True)]
    wrong: list[int] = []

    def work(i: int) -> None:
        wrong.extend(i for _ in range(20) if not np.array_equal(kernels[i](*cases[i][1]), expected[i]))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_process_has_threads_of_its_own() -> None:
    program = f"""
import os, numpy as np, mx_dialect
kernel = mx_dialect.compile('''{_matmul(256, 256, 128, False)}''', threads=2)
a = mx_dialect.quantize(np.ones((256, 128), np.float32))
b, c = np.ones((128, 256), np.float32), np.zeros((256, 256), np.float32)
assert (kernel(a, b, c) == 128).all()
child = os.fork()
if not child:
    os._exit(0 if (kernel(a, b, c) == 128).all() else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert (kernel(a, b, c) == 128).all()
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=60)


@pytest.mark.parametrize("threads", [0, -1, 1.5, "two", True])
def test_what_is_no_number_of_threads_is_refused(threads: Any) -> None:
    with pytest.raises(mx_dialect.MxError, match="threads is a positive integer or None"):
        mx_dialect.compile(_matmul(4, 4, 32, False), threads=threads)


@given(st.integers(0, 50), st.integers(0, 500), st.integers(1, 40), st.integers(1, 9))
@settings(max_examples=200, deadline=None)
def test_a_range_is_cut_in_whole_granules(start: int, length: int, granule: int, parts: int) -> None:
    start *= granule
    ranges = parallel.cut(start, start + length, granule, parts)
    assert 1 <= len(ranges) <= parts
    assert ranges[0][0] == start
    assert ranges[-1][1] == start + length
    for (_, stop), (begin, _) in pairwise(ranges):
        assert stop == begin
        assert begin % granule == 0
    sizes = [-(-(stop - begin) // granule) for begin, stop in ranges]
    assert max(sizes) - min(sizes) <= 1


def test_calls_are_divided_in_the_llvm_dialect() -> None:
    text = """
    func.func private @part(%lo: index, %hi: index, %a: memref<?xf32>) { return }
    func.func @f(%a: memref<?xf32>, %lo: index, %hi: index) {
      func.call @part(%lo, %hi, %a) {mx.parallel = 8 : i64} : (index, index, memref<?xf32>) -> ()
      return
    }"""
    module = mx_dialect.parse(text)
    mx_dialect.run_pipeline(module, "convert-func-to-llvm,mx-parallel-calls")
    assert module.operation.verify()
    assert isinstance(module, ir.Module)
    printed = mx_dialect.to_asm(module)
    assert "llvm.call @_mlir_ciface_mx_parallel_for" in printed
    assert "mx.parallel" not in printed
