"""mx.dim, mx.cast and mx.extract_slice in running programs, and what they refuse at run time."""

import numpy as np
import pytest

import mx_dialect

BLOCK = 4


def spelled(shape: str, axis: int = 1) -> str:
    where = "" if axis == 1 else f", axis = {axis}"
    return f"!mx.tensor<{shape}xf8E4M3FN, block_size = {BLOCK}, scale_type = f8E8M0FNU{where}>"


def compiled(body: str, arguments: str, result: str) -> mx_dialect.Kernel:
    return mx_dialect.compile(f"func.func @f({arguments}) -> {result} {{\n{body}\n}}", pipeline="mx-lower-to-llvm")


@pytest.fixture
def q() -> mx_dialect.MxArray:
    x = np.random.default_rng(0).standard_normal((6, 16)).astype(np.float32)
    return mx_dialect.quantize(x, block_size=BLOCK)


@pytest.mark.parametrize("axis", [0, 1])
def test_slices_take_elements_and_scales(axis: int) -> None:
    x = np.random.default_rng(1).standard_normal((16, 16)).astype(np.float32)
    q = mx_dialect.quantize(x, block_size=BLOCK, axis=axis)
    whole, part = spelled("16x16", axis), spelled("8x?", axis)
    kernel = compiled(
        f"""  %0 = mx.extract_slice %x[4, %o] [8, %n] : {whole} -> {part}
              %1 = mx.dequantize_block %0 : {part} -> tensor<8x?xf32>
              return %1 : tensor<8x?xf32>""",
        f"%x: {whole}, %o: index, %n: index",
        "tensor<8x?xf32>",
    )
    values = mx_dialect.reference.dequantize(q)
    for offset, size in ((0, 16), (8, 4), (12, 0), (4, 8)):
        np.testing.assert_array_equal(kernel(q, offset, size), values[4:12, offset : offset + size])


def test_slices_that_cut_blocks_or_leave_the_tensor(q: mx_dialect.MxArray) -> None:
    kernel = compiled(
        f"""  %0 = mx.extract_slice %x[0, %o] [6, %n] : {spelled("6x16")} -> {spelled("6x?")}
              %1 = mx.dequantize_block %0 : {spelled("6x?")} -> tensor<6x?xf32>
              return %1 : tensor<6x?xf32>""",
        f"%x: {spelled('6x16')}, %o: index, %n: index",
        "tensor<6x?xf32>",
    )
    assert kernel(q, 4, 8).shape == (6, 8)
    with pytest.raises(mx_dialect.MxError, match="the offset along blocked axis 1 is not a multiple of block size 4"):
        kernel(q, 2, 8)
    with pytest.raises(mx_dialect.MxError, match="the size along blocked axis 1 is not a multiple of block size 4"):
        kernel(q, 4, 6)
    for offset, size in ((12, 8), (-4, 8), (20, 4)):
        with pytest.raises(mx_dialect.MxError, match="the slice leaves the tensor along axis 1"):
            kernel(q, offset, size)


def test_axes_that_are_not_there(q: mx_dialect.MxArray) -> None:
    kernel = compiled(
        f"""  %0 = mx.dim %x, %i : {spelled("6x16")}, index -> index
              return %0 : index""",
        f"%x: {spelled('6x16')}, %i: index",
        "index",
    )
    assert [kernel(q, i) for i in (0, 1)] == [6, 16]
    for axis in (2, -1, 2**40):
        with pytest.raises(mx_dialect.MxError, match="the tensor has no such axis, only 2"):
            kernel(q, axis)


def test_dims_and_casts(q: mx_dialect.MxArray) -> None:
    kernel = compiled(
        f"""  %c0 = arith.constant 0 : index
              %0 = mx.dim %x, %c0 : {spelled("?x?")}, index -> index
              %1 = mx.cast %x : {spelled("?x?")} -> {spelled("6x?")}
              %2 = mx.dequantize_block %1 : {spelled("6x?")} -> tensor<6x?xf32>
              return %0, %2 : index, tensor<6x?xf32>""",
        f"%x: {spelled('?x?')}",
        "(index, tensor<6x?xf32>)",
    )
    rows, values = kernel(q)
    assert rows == 6
    np.testing.assert_array_equal(values, mx_dialect.reference.dequantize(q))
    shorter = mx_dialect.MxArray(q.mantissa[:5], q.scale[:5], BLOCK)
    with pytest.raises(mx_dialect.MxError, match="the extent of axis 0 is not 6"):
        kernel(shorter)


def test_a_folded_factor_passes_through(q: mx_dialect.MxArray) -> None:
    kernel = compiled(
        f"""  %0 = mx.fold_scale %x, %f : {spelled("6x16")}, f32 -> {spelled("6x16")}
              %1 = mx.extract_slice %0[0, 4] [6, 8] : {spelled("6x16")} -> {spelled("6x8")}
              %2 = mx.dequantize_block %1 : {spelled("6x8")} -> tensor<6x8xf32>
              return %2 : tensor<6x8xf32>""",
        f"%x: {spelled('6x16')}, %f: f32",
        "tensor<6x8xf32>",
    )
    expected = mx_dialect.reference.dequantize(q)[:, 4:12] * np.float32(0.3)
    np.testing.assert_array_equal(kernel(q, np.float32(0.3)), expected)
