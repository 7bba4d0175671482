"""Kernel: what it takes of every element type, and what it refuses before compiled code runs."""

import re

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runtime_programs import ACC, MATMUL, MX, NEGATE, ONES, PIPELINES, PRODUCT, SLICE, TWOS, B, fail

import mx_dialect
from mx_dialect import MxArray
from mx_dialect.runtime import memref

DTYPES = {
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "index": np.int64,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "bf16": ml_dtypes.bfloat16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
    "f6E3M2FN": ml_dtypes.float6_e3m2fn,
    "f6E2M3FN": ml_dtypes.float6_e2m3fn,
    "f4E2M1FN": ml_dtypes.float4_e2m1fn,
}
NARROW = {name: np.dtype(dtype) for name, dtype in DTYPES.items() if re.match("f[468]E", name)}


def some(dtype):
    """Four different values of a dtype."""
    if dtype is np.bool_:
        return np.array([True, False, True, True])
    if np.dtype(dtype).itemsize == 1 and dtype is not np.int8:
        return np.array([1, 15, 8, 3], np.uint8).view(dtype)
    return np.array([1, 100, -0.0, 3]).astype(dtype)


class TestElementTypes:
    @pytest.mark.parametrize("element", DTYPES)
    def test_array(self, element):
        kernel = mx_dialect.compile(SLICE.format(element), pipeline=PIPELINES[0])
        x = some(DTYPES[element])
        result = kernel(x)
        assert result.dtype == DTYPES[element]
        assert result.tobytes() == x[1:].tobytes()

    @pytest.mark.parametrize("element", NARROW)
    def test_codes(self, element):
        kernel = mx_dialect.compile(SLICE.format(element), pipeline=PIPELINES[0])
        codes = np.array([9, 1, 7, 15], np.uint8)
        result = kernel(codes)
        assert result.dtype == NARROW[element]
        assert result.view(np.uint8).tolist() == [1, 7, 15]

    @pytest.mark.parametrize(("element", "bits"), [("f4E2M1FN", 4), ("f6E3M2FN", 6), ("f6E2M3FN", 6)])
    def test_no_code(self, element, bits):
        kernel = mx_dialect.compile(SLICE.format(element), pipeline=PIPELINES[0])
        codes = np.array([0, 1 << bits, 0, 0], np.uint8)
        for array in (codes, codes.view(NARROW[element])):
            fail(f"argument 0 holds byte {1 << bits:#04x}, which is no code of {element}", kernel, array)

    @pytest.mark.parametrize("columns", [1, 2, 8])
    @pytest.mark.parametrize("element", ["f4E2M1FN", "f6E3M2FN", "f6E2M3FN"])
    def test_codes_of_an_mx_array_are_checked_once(self, element, columns):
        """When it is made. What is written there later does no harm, whichever schedule reads it."""
        lhs = f"32x128x{element}, block_size = 32, scale_type = f8E8M0FNU"
        rhs, acc = f"tensor<128x{columns}xf32>", f"tensor<32x{columns}xf32>"
        kernel = mx_dialect.compile(f"""func.func @f(%a: !mx.tensor<{lhs}>, %b: {rhs}, %c: {acc}) -> {acc} {{
          %0 = mx.block_matmul %a, %b, %c : <{lhs}>, {rhs}, {acc} -> {acc}
          return %0 : {acc}
        }}""")
        codes = np.ones((32, 128), np.uint8)
        array = MxArray(codes, np.full((32, 4), 127, np.uint8), element_type=element)
        b, c = np.ones((128, columns), np.float32), np.zeros((32, columns), np.float32)
        one = kernel(array, b, c)
        codes[0] |= 0xC0
        assert np.array_equal(kernel(array, b, c)[1:], one[1:])
        fail("argument 0 (mantissa) holds byte 0xc1, which is no code of", kernel, codes, array.scale, b, c)
        with pytest.raises(mx_dialect.MxError, match="no code of"):
            MxArray(codes, array.scale, element_type=element)

    def test_unsigned_for_signless(self):
        kernel = mx_dialect.compile(SLICE.format("i32"))
        assert kernel(np.array([0, 1, 2**32 - 1, 3], np.uint32)).tolist() == [1, -1, 3]

    def test_scalar_results(self):
        """Every type among others: the fields of a struct, at the offsets that the compiled code has."""
        results = [*list(DTYPES)[:10], "tensor<2xf32>", "tensor<f32>", "tensor<1x2x1x1x2xi16>"]
        # What is passed through without a change is not returned by the compiled code: negate, or copy.
        body, names = [], []
        for number, type_ in enumerate(results):
            if type_.startswith("tensor"):
                shape = type_[len("tensor<") : -1]
                body.append(f"%c{number} = arith.constant dense<{number}{'' if 'i16' in shape else '.0'}> : {type_}")
                names.append(f"%c{number}")
                continue
            operation = {"i": "arith.addi", "f": "arith.addf", "b": "arith.addf"}[type_[0]]
            body.append(f"%r{number} = {operation} %a{number}, %a{number} : {type_}")
            names.append(f"%r{number}")
        arguments = ", ".join(f"%a{n}: {t}" for n, t in enumerate(results) if not t.startswith("tensor"))
        types = ", ".join(results)
        text = "func.func @f({}) -> ({}) {{\n{}\nreturn {} : {}\n}}".format(
            arguments, types, "\n".join(body), ", ".join(names), types
        )
        kernel = mx_dialect.compile(text, pipeline=PIPELINES[0])
        out = kernel(True, 3, 300, 70000, 2**40, -5, 1.5, 2.5, -3.5, 0.25)
        # True + True is 0 in one bit.
        assert [float(x) for x in out[:10]] == [0, 6, 600, 140000, 2**41, -10, 3, 5, -7, 0.5]
        assert [x.dtype for x in out[:10]] == [np.dtype(d) for d in list(DTYPES.values())[:10]]
        assert not any(isinstance(x, np.ndarray) for x in out[:10])
        assert [x.shape for x in out[10:]] == [(2,), (), (1, 2, 1, 1, 2)]
        assert [set(x.ravel().tolist()) for x in out[10:]] == [{10}, {11}, {12}]

    @pytest.mark.parametrize("element", list(DTYPES)[:10])
    def test_one_scalar(self, element):
        operation = "arith.muli" if element[0] == "i" else "arith.mulf"
        text = f"func.func @f(%x: {element}, %y: {element}) -> {element} {{\n%0 = {operation} %x, %y : {element}\nreturn %0 : {element}\n}}"
        kernel = mx_dialect.compile(text, pipeline=PIPELINES[0])
        result = kernel(DTYPES[element](1), True if element == "i1" else 3)
        assert result == (True if element == "i1" else 3)
        assert result.dtype == DTYPES[element]

    def test_scalar_passed_through(self):
        kernel = mx_dialect.compile("func.func @f(%x: bf16, %n: i8) -> (i8, bf16) {\nreturn %n, %x : i8, bf16\n}")
        n, x = kernel(1.5, 255)
        assert (n, x) == (-1, 1.5)
        assert (n.dtype, x.dtype) == (np.int8, ml_dtypes.bfloat16)

    @pytest.mark.parametrize(
        ("type_", "value", "message"),
        [
            ("i8", 256, "argument 0 must be in -128..255 for i8, but is 256"),
            ("i8", 1.5, "argument 0 must be an integer for i8, but is float 1.5"),
            ("si8", 128, "argument 0 must be in -128..127 for si8, but is 128"),
            ("ui8", -1, "argument 0 must be in 0..255 for ui8, but is -1"),
            ("i8", "1", "argument 0 must be an integer for i8, but is str '1'"),
            ("i8", True, "argument 0 must be a number for i8, but is bool True"),
            ("i1", 1, "argument 0 must be a bool for i1, but is 1"),
            ("f32", "1", "argument 0 must be a number for f32, but is str '1'"),
            ("f32", 1j, "argument 0 must be a number for f32, but is complex 1j"),
            ("f32", np.complex64(1), "argument 0 must be a number for f32"),
            ("f32", np.ones(1), "argument 0 must be a number for f32, but is an array of shape (1,)"),
            ("f32", None, "argument 0 must be a number for f32, but is NoneType None"),
        ],
    )
    def test_scalar_refused(self, type_, value, message):
        fail(message, mx_dialect.compile(f"func.func @f(%x: {type_}) {{\n  return\n}}"), value)

    def test_no_results(self):
        assert mx_dialect.compile("func.func @f() {\n  return\n}")() is None


class TestArguments:
    @pytest.mark.parametrize("pipeline", PIPELINES)
    def test_mx_argument_in_each_form(self, pipeline):
        kernel = mx_dialect.compile(MATMUL, pipeline=pipeline)
        for arguments in (
            (MxArray(ONES, TWOS), B, ACC),
            (ONES, TWOS, B, ACC),
            (ONES.view(np.uint8), TWOS.view(np.uint8), B, ACC),
        ):
            np.testing.assert_array_equal(kernel(*arguments), PRODUCT)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ((), f"@matmul takes 3 to 4 arguments, ({MX}, tensor<64x8xf32>, tensor<4x8xf32>), but got 0"),
            ((ONES, TWOS, B), "takes 3 to 4 arguments"),
            ((ONES, TWOS, B, ACC, ACC), "but got 5; an !mx.tensor is an MxArray, or its two arrays"),
            ((ONES,), "argument 0 must be an MxArray for !mx.tensor<4x64xf8E4M3FN"),
            (
                (ONES, TWOS, MxArray(ONES, TWOS), ACC),
                "argument 1 must be an array for tensor<64x8xf32>, not an MxArray",
            ),
            ((B, TWOS, B, ACC), "argument 0 (mantissa) must have dtype float8_e4m3fn (or uint8 codes)"),
            ((ONES, ONES, B, ACC), "argument 0 (scale) must have dtype float8_e8m0fnu (or uint8 codes)"),
            ((ONES[:, :32], TWOS, B, ACC), "argument 0 (mantissa) must have extent 64 along axis 1"),
            ((ONES, TWOS[:, :1], B, ACC), "(scale) must have extent 2 along axis 1 for tensor<4x2xf8E8M0FNU>"),
            (
                (ONES, TWOS, B.astype(np.float64), ACC),
                "argument 1 must have dtype float32 for tensor<64x8xf32>, but has float64",
            ),
            (
                (ONES, TWOS, B.view(np.uint32), ACC),
                "argument 1 must have dtype float32 for tensor<64x8xf32>, but has uint32",
            ),
            ((ONES, TWOS, B[0], ACC), "argument 1 must have rank 2 for tensor<64x8xf32>, but has shape (8,)"),
            (
                (ONES, TWOS, B, ACC[:3]),
                "argument 2 must have extent 4 along axis 0 for tensor<4x8xf32>, but has shape (3, 8)",
            ),
            ((ONES, TWOS, B.tolist(), ACC), "argument 1 must be a numpy array, not list"),
            ((ONES, TWOS, None, ACC), "argument 1 must be a numpy array, not NoneType"),
            ((ONES, TWOS, np.ma.masked_array(B), ACC), "argument 1 is a masked array"),
        ],
    )
    def test_refused(self, arguments, message):
        fail(message, mx_dialect.compile(MATMUL), *arguments)

    @pytest.mark.parametrize(
        ("array", "message"),
        [
            (MxArray(ONES.astype(ml_dtypes.float8_e5m2), TWOS), "element type f8E4M3FN"),
            (MxArray(ONES, TWOS[:, :1], block_size=64), "block size 32"),
            (MxArray(ONES[0], TWOS[0]), "rank 2"),
            (MxArray(np.ones((64, 4), ml_dtypes.float8_e4m3fn), TWOS.reshape(2, 4), axis=0), "blocked axis 1"),
        ],
    )
    def test_mx_format_refused(self, array, message):
        fail(f"argument 0 must have {message} for {MX}, but {array!r} has", mx_dialect.compile(MATMUL), array, B, ACC)

    def test_read_only_and_subclass(self):
        frozen = B.copy()
        frozen.flags.writeable = False
        kernel = mx_dialect.compile(MATMUL)
        np.testing.assert_array_equal(kernel(ONES, TWOS, frozen, ACC), PRODUCT)
        np.testing.assert_array_equal(kernel(ONES, TWOS, B.view(np.matrix), ACC), PRODUCT)

    def test_byte_order(self):
        swapped = B.astype(B.dtype.newbyteorder())
        np.testing.assert_array_equal(mx_dialect.compile(MATMUL)(ONES, TWOS, swapped, ACC), PRODUCT)

    def test_misaligned(self):
        moved = np.zeros(B.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(B.shape)
        moved[...] = B
        assert not moved.flags.aligned
        assert not memref.is_native(moved)
        np.testing.assert_array_equal(mx_dialect.compile(MATMUL)(ONES, TWOS, moved, ACC), PRODUCT)

    @given(st.data())
    @settings(max_examples=60)
    def test_any_strides(self, data):
        """Fortran order, transposed, strided, reversed, broadcast, offset views: all mean what numpy says they mean."""
        kernel = mx_dialect.compile(NEGATE.format("?x?x?"), pipeline=PIPELINES[0])
        shape = data.draw(st.tuples(*[st.integers(0, 4)] * 3))
        steps = data.draw(st.tuples(*[st.sampled_from([-3, -2, -1, 1, 2, 3])] * 3))
        order = data.draw(st.permutations(range(3)))
        base = np.arange(np.prod([extent * 3 + 1 for extent in shape]), dtype=np.float32)
        base = base.reshape([extent * 3 + 1 for extent in shape])
        view = base[tuple(slice(None, None, step) for step in steps)].transpose(order)
        view = view[tuple(slice(0, shape[axis]) for axis in order)]
        if data.draw(st.booleans()) and shape[order[0]]:
            view = np.broadcast_to(view[:1], view.shape)
        if data.draw(st.booleans()):
            view = np.asfortranarray(view)
        expected = -view
        result = kernel(view)
        np.testing.assert_array_equal(result, expected)
        assert result.flags.c_contiguous

    def test_rank_zero(self):
        kernel = mx_dialect.compile(NEGATE.replace("{0}xf32", "f32").replace("{{", "{").replace("}}", "}"))
        for given_ in (np.array(2.0, np.float32), np.float32(2), np.ones(3, np.float32)[1:2].reshape(()) * 2):
            result = kernel(given_)
            assert isinstance(result, np.ndarray)
            assert (result.shape, float(result)) == ((), -2.0)

    def test_empty(self):
        kernel = mx_dialect.compile(NEGATE.format("?x4"))
        assert kernel(np.zeros((0, 4), np.float32)).shape == (0, 4)
