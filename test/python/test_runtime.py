"""compile() and Kernel: which function, what it takes, what it refuses before compiled code runs, what it returns."""

import copy
import itertools
import pickle
import re
import threading

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mx_dialect
from mx_dialect import MxArray, MxError, asm
from mx_dialect._mlir import ir
from mx_dialect.runtime import memref

PIPELINES = ("mx-lower-to-llvm", "mx-lower-to-llvm-vectorized")

MX = "!mx.tensor<4x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>"
MATMUL = f"""
func.func @matmul(%a: {MX}, %b: tensor<64x8xf32>, %acc: tensor<4x8xf32>) -> tensor<4x8xf32> {{
  %0 = mx.block_matmul %a, %b, %acc : {MX}, tensor<64x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}}
"""
# Returns a new buffer that holds the argument's elements 1 to 3.
SLICE = """
func.func @slice(%x: tensor<4x{0}>) -> tensor<3x{0}> {{
  %0 = tensor.extract_slice %x[1] [3] [1] : tensor<4x{0}> to tensor<3x{0}>
  return %0 : tensor<3x{0}>
}}
"""
NEGATE = """
func.func @negate(%x: tensor<{0}xf32>) -> tensor<{0}xf32> {{
  %0 = arith.negf %x : tensor<{0}xf32>
  return %0 : tensor<{0}xf32>
}}
"""
# A function that compiles, beside others.
SEVERAL = """
func.func @first(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
func.func @second(%x: tensor<3xf32>) -> tensor<3xf32> {
  return %x : tensor<3xf32>
}
func.func private @hidden(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func private @declared(%x: tensor<5xf32>) -> tensor<5xf32>
"""

ONES = np.ones((4, 64), ml_dtypes.float8_e4m3fn)
# Code 128 is 2^(128 - 127) = 2.
TWOS = np.full((4, 2), 128, np.uint8).view(ml_dtypes.float8_e8m0fnu)
B = np.arange(64 * 8, dtype=np.float32).reshape(64, 8)
ACC = np.arange(32, dtype=np.float32).reshape(4, 8)
# Small integers: exact in any order of summation.
PRODUCT = 2 * B.sum(axis=0, keepdims=True) + ACC


def fail(message, function, *arguments, **options):
    with pytest.raises(MxError, match=re.escape(message)):
        function(*arguments, **options)


class TestEntry:
    def test_only_public_function(self):
        text = "func.func private @g() { return }\n" + NEGATE.format(3)
        assert "@negate" in repr(mx_dialect.compile(text))

    def test_by_name(self):
        kernel = mx_dialect.compile(SEVERAL, entry="second")
        np.testing.assert_array_equal(kernel(np.float32([1, 2, 3])), np.float32([1, 2, 3]))

    def test_private_by_name(self):
        assert mx_dialect.compile(SEVERAL, "hidden")(np.zeros(4, np.float32)).shape == (4,)

    @pytest.mark.parametrize(
        ("text", "entry", "message"),
        [
            (SEVERAL, None, "several public functions, @first, @second; name the one to compile with entry="),
            (
                SEVERAL,
                "secnd",
                "no function @secnd with a body; it has @first, @second, @hidden; did you mean 'second'",
            ),
            (SEVERAL, "declared", "no function @declared with a body"),
            ("module {}", None, "no public function"),
            (
                "module { func.func @f() { call @g() : () -> () return }\nfunc.func private @g() }",
                None,
                "@g is only declared, and a kernel cannot link to it",
            ),
        ],
    )
    def test_refused(self, text, entry, message):
        fail(message, mx_dialect.compile, text, entry)

    def test_error_has_position(self):
        with pytest.raises(MxError) as caught:
            mx_dialect.compile("func.func @f() {\n  %0 = nonsense\n}")
        first = caught.value.diagnostics[0]
        assert (first.line, first.severity) == (2, "error")

    def test_unknown_pipeline(self):
        fail("did you mean 'mx-lower-to-llvm'", mx_dialect.compile, MATMUL, pipeline="mx-lower-to-lvm")
        fail("is no pipeline that ends in machine code", mx_dialect.compile, MATMUL, pipeline="mx-bufferize")

    @pytest.mark.parametrize(
        ("types", "body", "message"),
        [
            (
                "tensor<4xui16>) -> tensor<4x!mx.x4<f4E2M1FN>>",
                "%0 = mx.view_cast %x : tensor<4xui16> -> tensor<4x!mx.x4<f4E2M1FN>>",
                "2:8: error: 'mx.view_cast' op is not lowered; run mx-neuron-to-linalg before compiling",
            ),
            (
                "index) -> tensor<128xi32>",
                "%0 = mx.expert_index %x {scale_rows = 1, full_quadrants = 0, remaining_rows = 1} : index -> tensor<128xi32>",
                "'mx.expert_index' op is not lowered; run mx-neuron-to-linalg before compiling",
            ),
            (
                "tensor<128x8xi8>) -> tensor<128x1x8xi8>",
                "%1 = mx.partition_rows %x : tensor<128x8xi8> -> tensor<128x1x8xi8>\n"
                "%w = arith.constant dense<0.0> : tensor<128x8xf32>\n"
                '%2 = mx.load_qkv_dense %w {layout = "CONTIGUOUS"} : tensor<128x8xf32> -> tensor<128x1x8xf32>\n'
                "%0 = mx.partition_rows %x : tensor<128x8xi8> -> tensor<128x1x8xi8>",
                "'mx.partition_rows' op is not lowered; run mx-neuron-expand-load,mx-neuron-to-linalg before compiling",
            ),
            (
                "tensor<4x!mx.x4<f8E5M2>>) -> i1",
                "%0 = arith.constant true",
                "type 'tensor<4x!mx.x4<f8E5M2>>' is not lowered; run mx-neuron-to-linalg before compiling",
            ),
            (
                "!mx.tile<16x64xf32>) -> i1",
                "%0 = arith.constant true",
                "type '!mx.tile<16x64xf32>' is not lowered; run mx-tile-to-linalg before compiling",
            ),
            (
                'tensor<64x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>) -> i1',
                "%0 = arith.constant true",
                "is not lowered; run mx-tile-to-linalg before compiling",
            ),
            (
                "tensor<64x64xf32>) -> i1",
                "%1 = mx.tile_load %x[0, 0] [16, 64] : tensor<64x64xf32> -> !mx.tile<16x64xf32>\n%0 = arith.constant true",
                "'mx.tile_load' op is not lowered; run mx-tile-to-linalg before compiling",
            ),
        ],
    )
    def test_levels_of_engines(self, types, body, message):
        """Whoever forgot a pass is told which."""
        result = types.rpartition("-> ")[2]
        text = f"func.func @f(%x: {types} {{\n  {body}\n  return %0 : {result}\n}}"
        fail(message, mx_dialect.compile, text)

    def test_levels_that_the_entry_does_not_reach(self):
        text = "func.func private @g(%x: tensor<4x!mx.x4<f8E5M2>>) {\n  return\n}\n" + NEGATE.format(3)
        assert mx_dialect.compile(text)(np.ones(3, np.float32)).tolist() == [-1, -1, -1]

    def test_function_that_is_not_there(self):
        """vector.print calls MLIR's runtime library, which the wheel does not have."""
        text = "func.func @f(%x: f32) {\n  vector.print %x : f32\n  return\n}"
        fail("@f cannot be linked: one of printF32, printNewline is not in this process", mx_dialect.compile, text)

    def test_opt_level(self):
        assert mx_dialect.compile(NEGATE.format(2), opt_level=0)(np.ones(2, np.float32))[0] == -1
        fail("opt_level is 0, 1, 2 or 3, not 4", mx_dialect.compile, MATMUL, opt_level=4)

    def test_name_of_the_c_library(self):
        text = NEGATE.format("?").replace("@negate", "@malloc")
        assert mx_dialect.compile(text)(np.ones(3, np.float32)).tolist() == [-1, -1, -1]


class TestSource:
    def test_module_stays_as_it_is(self):
        module = mx_dialect.parse(MATMUL)
        before = mx_dialect.to_asm(module)
        kernel = mx_dialect.compile(module)
        assert mx_dialect.to_asm(module) == before
        np.testing.assert_array_equal(kernel(ONES, TWOS, B, ACC), PRODUCT)

    def test_module_of_a_context_without_the_dialect(self):
        with ir.Context(), ir.Location.unknown():
            module = ir.Module.parse(NEGATE.format(2))
        assert mx_dialect.compile(module)(np.ones(2, np.float32)).tolist() == [-1, -1]

    def test_text_and_bytes(self):
        module = mx_dialect.parse(MATMUL)
        generic = mx_dialect.to_asm(module, generic=True)
        for text in (generic, generic.encode(), MATMUL.encode(), asm.to_bytecode(module)):
            np.testing.assert_array_equal(mx_dialect.compile(text)(ONES, TWOS, B, ACC), PRODUCT)

    def test_something_else(self):
        fail("compile takes MLIR text or a module, not int", mx_dialect.compile, 3)
        fail("neither MLIR bytecode nor text in UTF-8", mx_dialect.compile, b"\xff\xfe")

    def test_large_constants(self):
        """Constants in a module's resources, as PyTorch exports them."""
        text = """
        func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
          %0 = arith.constant dense_resource<weights> : tensor<4xf32>
          %1 = arith.addf %x, %0 : tensor<4xf32>
          return %1 : tensor<4xf32>
        }
        {-# dialect_resources: { builtin: { weights: "0x040000000000803F000000400000404000008040" } } #-}"""
        for source in (text, mx_dialect.parse(text)):
            assert mx_dialect.compile(source)(np.zeros(4, np.float32)).tolist() == [1, 2, 3, 4]

    def test_buffer_layout_refused(self):
        text = NEGATE.format(4).replace(
            "%x: tensor<4xf32>", "%x: tensor<4xf32> {bufferization.buffer_layout = affine_map<(d0) -> (d0 * 2)>}"
        )
        fail("is no numpy array; expected 'memref<4xf32>'", mx_dialect.compile, text)

    def test_invalid_module(self):
        module = mx_dialect.parse(NEGATE.format(2))
        with module.context, ir.Location.unknown():
            function = module.body.operations[0]
            function.attributes["function_type"] = ir.TypeAttr.parse("(i32) -> i32")
            fail("entry block", mx_dialect.compile, module)

    def test_cached(self):
        kernel = mx_dialect.compile(MATMUL)
        assert mx_dialect.compile(MATMUL) is kernel
        assert mx_dialect.compile(MATMUL, opt_level=1) is not kernel
        assert mx_dialect.compile(MATMUL, pipeline=PIPELINES[0]) is not kernel

    def test_cached_once_for_all_threads(self):
        text = NEGATE.format(7)
        kernels = []
        start = threading.Barrier(4)

        def run():
            start.wait()
            kernels.append(mx_dialect.compile(text))

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(kernels) == 4
        assert len(set(map(id, kernels))) == 1


class TestSignature:
    def test_spelling(self):
        kernel = mx_dialect.compile(MATMUL)
        assert kernel.signature == f"({MX}, tensor<64x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>"
        assert repr(kernel) == f"<mx_dialect.Kernel @matmul{kernel.signature}>"

    @pytest.mark.parametrize(
        ("type_", "message"),
        [
            ("memref<4xf32>", "use tensors instead"),
            ("vector<4xf32>", "use tensors instead"),
            ("tensor<*xf32>", "use tensors instead"),
            ('tensor<4xf32, "rows">', "a tensor with an encoding has no numpy counterpart"),
            ("tensor<4xcomplex<f32>>", "numpy has no dtype for 'complex<f32>'"),
            ("tensor<4xi7>", "numpy has no dtype for 'i7'"),
            ("!llvm.ptr", "no numpy scalar stands for '!llvm.ptr'"),
        ],
    )
    def test_refused(self, type_, message):
        text = f"func.func @f(%p: i1, %x: {type_}) {{\n  return\n}}"
        fail(f"argument 1 of @f is '{type_}': ", mx_dialect.compile, text)
        fail(message, mx_dialect.compile, text)

    def test_result_refused(self):
        text = "func.func @f() -> vector<2xf32> {\n%0 = arith.constant dense<1.0> : vector<2xf32>\nreturn %0 : vector<2xf32>\n}"
        fail("result 0 of @f is 'vector<2xf32>'", mx_dialect.compile, text)

    def test_not_pickled(self):
        kernel = mx_dialect.compile(MATMUL)
        fail("cannot be pickled", pickle.dumps, kernel)
        fail("cannot be pickled", copy.deepcopy, kernel)


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


class TestResults:
    """A result belongs to the caller, whatever the function made it of."""

    TEXT = """
    func.func @f(%x: tensor<4xf32>, %p: i1) -> (tensor<4xf32>, tensor<4xf32>, tensor<2xf32>, tensor<4xf32>,
                                               tensor<4xf32>, tensor<4xf32>, tensor<2x2xf32>) {
      %constant = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
      %slice = tensor.extract_slice %x[2] [2] [1] : tensor<4xf32> to tensor<2xf32>
      %either = scf.if %p -> tensor<4xf32> {
        scf.yield %x : tensor<4xf32>
      } else {
        scf.yield %constant : tensor<4xf32>
      }
      %sum = arith.addf %x, %constant : tensor<4xf32>
      %square = tensor.expand_shape %sum [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>
      return %x, %constant, %slice, %either, %sum, %sum, %square : tensor<4xf32>, tensor<4xf32>, tensor<2xf32>,
        tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2x2xf32>
    }
    """

    @pytest.mark.parametrize("pipeline", PIPELINES)
    @pytest.mark.parametrize("p", [True, False])
    def test_each_its_own(self, p, pipeline):
        kernel = mx_dialect.compile(self.TEXT, pipeline=pipeline)
        x = np.float32([5, 6, 7, 8])
        constant = [1, 2, 3, 4]
        expected = [
            [5, 6, 7, 8],
            constant,
            [7, 8],
            [5, 6, 7, 8] if p else constant,
            [6, 8, 10, 12],
            [6, 8, 10, 12],
            [[6, 8], [10, 12]],
        ]
        for _ in range(2):
            results = kernel(x, p)
            assert [r.tolist() for r in results] == expected
            for a, b in itertools.combinations([x, *results], 2):
                assert not np.shares_memory(a, b)
            for result in results:
                assert result.flags.writeable
                result[...] = -1
            assert x.tolist() == [5, 6, 7, 8]

    def test_mx_result(self):
        text = f"""
        func.func @f(%x: tensor<4x64xf32>, %y: {MX}) -> ({MX}, {MX}, f32) {{
          %0 = mx.quantize_block %x : tensor<4x64xf32> -> {MX}
          %1 = arith.constant 1.0 : f32
          return %y, %0, %1 : {MX}, {MX}, f32
        }}"""
        same, quantized, one = mx_dialect.compile(text)(np.full((4, 64), 6, np.float32), ONES, TWOS)
        assert isinstance(same, MxArray)
        assert same.mantissa.tobytes() == ONES.tobytes()
        assert not np.shares_memory(same.mantissa, ONES)
        # 6 = 1.5 * 2^2, scaled to the top binade of E4M3, 2^8: 384 * 2^-6.
        assert (quantized.mantissa.astype(np.float32) == 384).all()
        assert (quantized.scale.view(np.uint8) == 127 - 6).all()
        assert (quantized.shape, quantized.axis, quantized.block_size, one) == ((4, 64), 1, 32, 1.0)


class TestInPlace:
    @pytest.mark.parametrize("pipeline", PIPELINES)
    def test_updates_the_accumulator(self, pipeline):
        kernel = mx_dialect.compile(MATMUL, pipeline=pipeline)
        acc, others = ACC.copy(), (ONES.copy(), TWOS.copy(), B.copy())
        assert kernel(*others, acc, in_place=True) is acc
        np.testing.assert_array_equal(acc, PRODUCT)
        for used, before in zip(others, (ONES, TWOS, B), strict=True):
            assert used.tobytes() == before.tobytes()

    @pytest.mark.parametrize("pipeline", PIPELINES)
    def test_changes_nothing_unless_asked(self, pipeline):
        kernel = mx_dialect.compile(MATMUL, pipeline=pipeline)
        acc = ACC.copy()
        result = kernel(ONES, TWOS, B, acc)
        assert acc.tobytes() == ACC.tobytes()
        assert not np.shares_memory(result, acc)

    def test_view_of_the_callers_array(self):
        """The memory that is written is the caller's own, whichever array stands for it."""
        acc = np.zeros((6, 8), np.float32)
        acc[1:5] = ACC
        view = acc[1:5]
        assert mx_dialect.compile(MATMUL)(ONES, TWOS, B, view, in_place=True) is view
        np.testing.assert_array_equal(acc[1:5], PRODUCT)
        assert not acc[[0, 5]].any()

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda acc: np.asfortranarray(acc), "C-contiguous"),
            (lambda acc: np.repeat(acc, 2, axis=1)[:, ::2], "C-contiguous"),
            (lambda acc: acc.astype(acc.dtype.newbyteorder()), "native byte order"),
            (lambda acc: np.broadcast_to(acc, acc.shape), "read-only"),
        ],
    )
    def test_refused(self, make, message):
        fail(message, mx_dialect.compile(MATMUL), ONES, TWOS, B, make(ACC.copy()), in_place=True)

    def test_rank_zero(self):
        text = """
        func.func @dot(%x: tensor<3xf32>, %sum: tensor<f32>) -> tensor<f32> {
          %0 = linalg.dot ins(%x, %x : tensor<3xf32>, tensor<3xf32>) outs(%sum : tensor<f32>) -> tensor<f32>
          return %0 : tensor<f32>
        }"""
        kernel = mx_dialect.compile(text)
        x, total = np.float32([1, 2, 3]), np.array(1, np.float32)
        assert kernel(x, np.float32(1)) == 15
        fail(
            "argument 1 is updated in place, which takes an array, not float32", kernel, x, np.float32(1), in_place=True
        )
        assert kernel(x, total, in_place=True) is total
        assert total == 15

    def test_beside_other_results(self):
        """Results that are passed through, fresh, and updated, in one call."""
        text = """
        func.func @f(%n: i32, %x: tensor<2x2xf32>, %acc: tensor<2x2xf32>) -> (i32, tensor<2x2xf32>, tensor<2x2xf32>, i32,
                                                                              tensor<2x2xf32>) {
          %0 = linalg.matmul ins(%x, %x : tensor<2x2xf32>, tensor<2x2xf32>) outs(%acc : tensor<2x2xf32>) -> tensor<2x2xf32>
          %1 = arith.negf %x : tensor<2x2xf32>
          %2 = arith.addi %n, %n : i32
          return %n, %0, %1, %2, %0 : i32, tensor<2x2xf32>, tensor<2x2xf32>, i32, tensor<2x2xf32>
        }"""
        kernel = mx_dialect.compile(text)
        x, acc = np.ones((2, 2), np.float32), np.ones((2, 2), np.float32)
        n, first, negative, double, second = kernel(5, x, acc)
        assert (n, double) == (5, 10)
        assert not np.shares_memory(first, second)
        assert (acc == 1).all()
        for array, value in ((first, 3), (second, 3), (negative, -1)):
            assert (array == value).all()
        n, first, negative, double, second = kernel(5, x, acc, in_place=True)
        assert (n, double) == (5, 10)
        assert first is acc
        assert second is acc
        assert (acc == 3).all()
        assert (negative == -1).all()

    def test_overlap_refused(self):
        kernel = mx_dialect.compile(MATMUL)
        b = B.copy()
        fail(
            "argument 2 is updated in place, but shares memory with argument 1",
            kernel,
            ONES,
            TWOS,
            b,
            b[8:12],
            in_place=True,
        )
        np.testing.assert_array_equal(b, B)
        # Without in_place the accumulator is copied, and may be anything.
        np.testing.assert_array_equal(kernel(ONES, TWOS, b, b[8:12]), PRODUCT - ACC + B[8:12])

    def test_argument_copied_before_the_update(self):
        """A strided argument is read before the accumulator that it shares memory with is written."""
        b = np.zeros((64, 16), np.float32)
        b[:, ::2] = B
        np.testing.assert_array_equal(mx_dialect.compile(MATMUL)(ONES, TWOS, b[:, ::2], ACC), PRODUCT)

    def test_nothing_to_update(self):
        kernel = mx_dialect.compile(NEGATE.format(5))
        fail("computes no result into an argument", kernel, np.ones(5, np.float32), in_place=True)

    @pytest.mark.parametrize("pipeline", PIPELINES)
    def test_argument_needed_after_its_update(self, pipeline):
        """acc is read again when the sum is there: no buffer can be both."""
        text = f"""
        func.func @f(%a: {MX}, %b: tensor<64x8xf32>, %acc: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {{
          %0 = mx.block_matmul %a, %b, %acc : {MX}, tensor<64x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
          %1 = arith.subf %0, %acc : tensor<4x8xf32>
          return %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
        }}"""
        acc = ACC.copy()
        total, difference = mx_dialect.compile(text, pipeline=pipeline)(ONES, TWOS, B, acc)
        np.testing.assert_array_equal(total, PRODUCT)
        np.testing.assert_array_equal(difference, PRODUCT - ACC)
        np.testing.assert_array_equal(acc, ACC)

    @pytest.mark.parametrize("pipeline", PIPELINES)
    def test_scratch_is_not_the_callers(self, pipeline):
        """A result computed from the updated accumulator gives the compiler no right to the accumulator itself."""
        text = f"""
        func.func @f(%a: {MX}, %b: tensor<64x8xf32>, %acc: tensor<4x8xf32>) -> tensor<8x4xf32> {{
          %0 = mx.block_matmul %a, %b, %acc : {MX}, tensor<64x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
          %1 = tensor.empty() : tensor<8x4xf32>
          %2 = linalg.transpose ins(%0 : tensor<4x8xf32>) outs(%1 : tensor<8x4xf32>) permutation = [1, 0]
          return %2 : tensor<8x4xf32>
        }}"""
        kernel = mx_dialect.compile(text, pipeline=pipeline)
        acc = ACC.copy()
        np.testing.assert_array_equal(kernel(ONES, TWOS, B, acc), PRODUCT.T)
        np.testing.assert_array_equal(acc, ACC)
        fail("computes no result into an argument", kernel, ONES, TWOS, B, acc, in_place=True)

    def test_through_a_loop(self):
        text = f"""
        func.func @f(%a: {MX}, %b: tensor<64x8xf32>, %acc: tensor<4x8xf32>) -> tensor<4x8xf32> {{
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %c3 = arith.constant 3 : index
          %0 = scf.for %i = %c0 to %c3 step %c1 iter_args(%sum = %acc) -> tensor<4x8xf32> {{
            %1 = mx.block_matmul %a, %b, %sum : {MX}, tensor<64x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
            scf.yield %1 : tensor<4x8xf32>
          }}
          return %0 : tensor<4x8xf32>
        }}"""
        kernel = mx_dialect.compile(text)
        acc = ACC.copy()
        np.testing.assert_array_equal(kernel(ONES, TWOS, B, acc), 3 * (PRODUCT - ACC) + ACC)
        np.testing.assert_array_equal(acc, ACC)
        assert kernel(ONES, TWOS, B, acc, in_place=True) is acc
        np.testing.assert_array_equal(acc, 3 * (PRODUCT - ACC) + ACC)


class TestThreads:
    def test_calls_at_once(self):
        kernel = mx_dialect.compile(MATMUL)
        wrong = []

        def run(number):
            b = B + number
            expected = 2 * b.sum(axis=0, keepdims=True) + ACC
            wrong.extend(number for _ in range(300) if not (kernel(ONES, TWOS, b, ACC) == expected).all())

        threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong

    def test_other_threads_run_meanwhile(self):
        """Compiled code runs without the GIL: a thread that counts gets on while another multiplies."""
        n = 768
        type_ = f"tensor<{n}x{n}xf32>"
        text = f"""
        func.func @f(%a: {type_}, %c: {type_}) -> {type_} {{
          %0 = linalg.matmul ins(%a, %a : {type_}, {type_}) outs(%c : {type_}) -> {type_}
          return %0 : {type_}
        }}"""
        kernel = mx_dialect.compile(text, pipeline=PIPELINES[0], opt_level=1)
        x = np.ones((n, n), np.float32)
        counted = 0
        done = threading.Event()

        def multiply():
            kernel(x, x.copy(), in_place=True)
            done.set()

        thread = threading.Thread(target=multiply)
        thread.start()
        while not done.wait(0.002):
            counted += 1
        thread.join()
        assert counted > 10
