"""compile() and Kernel: which function of which module, how it is described, and several threads."""

import copy
import pickle
import threading

import numpy as np
import pytest
from runtime_programs import ACC, MATMUL, MX, NEGATE, ONES, PIPELINES, PRODUCT, SEVERAL, TWOS, B, fail

import mx_dialect
from mx_dialect import MxError, asm
from mx_dialect._mlir import ir


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
