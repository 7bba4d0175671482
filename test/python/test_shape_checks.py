"""Open extents that do not go together are found: before compiled code runs where arguments alone decide."""

import re

import ml_dtypes
import numpy as np
import pytest

import mx_dialect
from mx_dialect import MxArray, MxError

F8 = ml_dtypes.float8_e4m3fn
SCALE = ml_dtypes.float8_e8m0fnu
LOOPS = "mx-lower-to-llvm"

A = "!mx.tensor<?x?xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>"
B = "!mx.tensor<?x?xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU, axis = 0>"
T = "tensor<?x?xf32>"


def matmul(arguments, body, a="%a", b="%b", b_type=T, results="%0"):
    """A function of open extents that ends in one matmul."""
    return f"""
    func.func @f({arguments}) -> {T} {{
      {body}
      %0 = mx.block_matmul {a}, {b}, %acc : {A}, {b_type}, {T} -> {T}
      return {results} : {T}
    }}"""


def mx(m, k, axis=1):
    """A block-scaled array of ones."""
    shape = [m, k]
    shape[axis] //= 32
    return MxArray(np.ones((m, k), F8), np.ones(shape, SCALE), axis=axis)


def ones(*shape):
    return np.ones(shape, np.float32)


def native_calls(kernel, monkeypatch):
    """Count the calls of compiled code."""
    calls = []
    function = kernel._function
    monkeypatch.setattr(kernel, "_function", lambda packed: (calls.append(1), function(packed)))
    return calls


@pytest.fixture
def refused(monkeypatch):
    def check(text, arguments, message, *, before=True):
        """The call fails with the message: before compiled code runs, or (`before` False) when it returns."""
        kernel = mx_dialect.compile(text, pipeline=LOOPS)
        calls = native_calls(kernel, monkeypatch)
        with pytest.raises(MxError, match=re.escape(message)) as caught:
            kernel(*arguments)
        assert len(calls) == (0 if before else 1)
        return caught.value

    return check


PLAIN = matmul(f"%a: {A}, %b: {T}, %acc: {T}", "")


class TestMatmul:
    def test_accepted(self):
        kernel = mx_dialect.compile(PLAIN, pipeline=LOOPS)
        for m, k, n in ((2, 32, 3), (1, 96, 5), (0, 32, 1), (2, 0, 3)):
            np.testing.assert_array_equal(kernel(mx(m, k), ones(k, n), ones(m, n)), np.full((m, n), k + 1))

    @pytest.mark.parametrize(
        ("b", "acc", "message"),
        [
            ((32, 3), (2, 3), "argument 0 (mantissa) (extent 64 along axis 1) and argument 1 (extent 32 along axis 0)"),
            ((64, 3), (1, 3), "argument 0 (mantissa) (extent 2 along axis 0) and argument 2 (extent 1 along axis 0)"),
            ((64, 3), (2, 4), "argument 1 (extent 3 along axis 1) and argument 2 (extent 4 along axis 1) must agree"),
        ],
    )
    def test_refused(self, b, acc, message, refused):
        error = refused(PLAIN, (mx(2, 64), ones(*b), ones(*acc)), message)
        # The position of the matmul.
        assert error.diagnostics[0].line == 4
        assert "'mx.block_matmul'" in str(error)

    def test_rhs(self, refused):
        text = f"""
        func.func @f(%a: {T}, %b: {B}, %acc: {T}) -> {T} {{
          %0 = mx.block_matmul %a, %b, %acc : {T}, {B}, {T} -> {T}
          return %0 : {T}
        }}"""
        assert mx_dialect.compile(text, pipeline=LOOPS)(ones(2, 64), mx(64, 3, axis=0), ones(2, 3))[0, 0] == 65
        refused(text, (ones(2, 32), mx(64, 3, axis=0), ones(2, 3)), "K of lhs and rhs")

    def test_batch(self, refused):
        a = "!mx.tensor<?x2x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>"
        text = f"""
        func.func @f(%a: {a}, %b: tensor<?x32x2xf32>, %acc: tensor<?x2x2xf32>) -> tensor<?x2x2xf32> {{
          %0 = mx.block_matmul %a, %b, %acc : {a}, tensor<?x32x2xf32>, tensor<?x2x2xf32> -> tensor<?x2x2xf32>
          return %0 : tensor<?x2x2xf32>
        }}"""
        x = MxArray(np.ones((3, 2, 32), F8), np.ones((3, 2, 1), SCALE))
        assert (mx_dialect.compile(text, pipeline=LOOPS)(x, ones(3, 32, 2), ones(3, 2, 2)) == 33).all()
        refused(text, (x, ones(2, 32, 2), ones(3, 2, 2)), "batch extents of rhs and acc")
        refused(text, (x, ones(3, 32, 2), ones(2, 2, 2)), "batch extents of lhs and acc")

    def test_transposed(self, refused):
        text = PLAIN.replace("%acc :", "%acc {transpose_rhs} :")
        kernel = mx_dialect.compile(text, pipeline=LOOPS)
        np.testing.assert_array_equal(kernel(mx(2, 64), ones(3, 64), ones(2, 3)), np.full((2, 3), 65))
        refused(text, (mx(2, 64), ones(64, 64), ones(2, 3)), "N of rhs and acc")
        refused(text, (mx(2, 64), ones(3, 32), ones(2, 3)), "K of lhs and rhs")
        refused(text, (mx(2, 64), ones(3, 64), ones(1, 3)), "M of lhs and acc")

    def test_broadcast(self, refused):
        """Only an extent of 1 in the type broadcasts, and axes that are not there."""
        a, b, acc = A.replace("<?x?x", "<?x1x?x?x"), "tensor<?x?x?xf32>", "tensor<?x?x?x?xf32>"
        text = f"""
        func.func @f(%a: {a}, %b: {b}, %acc: {acc}) -> {acc} {{
          %0 = mx.block_matmul %a, %b, %acc : {a}, {b}, {acc} -> {acc}
          return %0 : {acc}
        }}"""
        x = MxArray(np.ones((3, 1, 2, 64), F8), np.ones((3, 1, 2, 2), SCALE))
        kernel = mx_dialect.compile(text, pipeline=LOOPS)
        np.testing.assert_array_equal(kernel(x, ones(4, 64, 5), ones(3, 4, 2, 5)), np.full((3, 4, 2, 5), 65))
        refused(text, (x, ones(1, 64, 5), ones(3, 4, 2, 5)), "batch extents of rhs and acc")
        refused(text, (x, ones(4, 64, 5), ones(1, 4, 2, 5)), "batch extents of lhs and acc")

    def test_an_open_extent_that_is_1_does_not_broadcast(self, refused):
        """Though the program says where it comes from."""
        a, acc = A.replace("<?x?x", "<?x?x?x"), "tensor<?x?x?xf32>"
        text = f"""
        func.func @f(%x: tensor<1x2x64xf32>, %b: {T}, %acc: {acc}) -> {acc} {{
          %y = tensor.cast %x : tensor<1x2x64xf32> to {acc}
          %a = mx.quantize_block %y : {acc} -> {a}
          %0 = mx.block_matmul %a, %b, %acc : {a}, {T}, {acc} -> {acc}
          return %0 : {acc}
        }}"""
        kernel = mx_dialect.compile(text, pipeline=LOOPS)
        assert (kernel(ones(1, 2, 64), ones(64, 5), ones(1, 2, 5)) == 65).all()
        refused(text, (ones(1, 2, 64), ones(64, 5), ones(3, 2, 5)), "batch extents of lhs and acc")

    def test_through_quantize_and_fold(self, refused):
        """x and y reach the matmul through quantize, fold_scale, compose and decompose."""
        text = matmul(
            f"%x: {T}, %m: tensor<?x?xf8E4M3FN>, %s: tensor<?x?xf8E8M0FNU>, %factor: f32, %acc: {T}",
            f"""
            %q = mx.quantize_block %x : {T} -> {A}
            %a = mx.fold_scale %q, %factor : {A}, f32 -> {A}
            %y = mx.compose %m, %s : tensor<?x?xf8E4M3FN>, tensor<?x?xf8E8M0FNU> -> {B}
            """,
            b="%y",
            b_type=B,
        )
        good = (ones(2, 64), np.ones((64, 3), F8), np.ones((2, 3), SCALE), 2.0, ones(2, 3))
        np.testing.assert_array_equal(mx_dialect.compile(text, pipeline=LOOPS)(*good), np.full((2, 3), 129))

        def but(**changed):
            return tuple(
                changed.get(name, value) for name, value in zip(("x", "m", "s", "f", "acc"), good, strict=True)
            )

        refused(text, but(x=ones(2, 32)), "argument 0 (extent 32 along axis 1) and argument 1 (extent 64 along axis 0)")
        refused(text, but(x=ones(2, 40)), "argument 0 (extent 40 along axis 1) must be a multiple of 32")
        refused(text, but(s=np.ones((3, 3), SCALE)), "and argument 2 (extent 3 along axis 0, times 32) must agree")
        refused(text, but(s=np.ones((2, 4), SCALE)), "mantissa and scale go together")
        refused(text, but(m=np.ones((33, 3), F8), x=ones(2, 32)), "argument 1 (extent 33 along axis 0)")
        refused(text, but(acc=ones(2, 4)), "N of rhs and acc")

    def test_decomposed(self, refused):
        """The scales of one argument with the mantissas of another."""
        text = matmul(
            f"%p: {A}, %q: {A}, %b: {T}, %acc: {T}",
            f"""
            %pm, %ps = mx.decompose %p : {A} -> (tensor<?x?xf8E4M3FN>, tensor<?x?xf8E8M0FNU>)
            %qm, %qs = mx.decompose %q : {A} -> (tensor<?x?xf8E4M3FN>, tensor<?x?xf8E8M0FNU>)
            %a = mx.compose %pm, %qs : tensor<?x?xf8E4M3FN>, tensor<?x?xf8E8M0FNU> -> {A}
            """,
        )
        kernel = mx_dialect.compile(text, pipeline=LOOPS)
        assert (kernel(mx(2, 64), mx(2, 64), ones(64, 3), ones(2, 3)) == 65).all()
        refused(text, (mx(2, 64), mx(2, 32), ones(64, 3), ones(2, 3)), "mantissa and scale go together")


class TestArguments:
    @pytest.mark.parametrize(
        ("mantissa", "scale", "message"),
        [
            ((2, 33), (2, 1), "argument 0 has shape (2, 33) for !mx.tensor<?x?xf8E4M3FN"),
            ((2, 64), (2, 1), "argument 0 (scale) must have shape (2, 2) beside a mantissa of shape (2, 64)"),
            ((2, 64), (3, 2), "argument 0 (scale) must have shape (2, 2)"),
        ],
    )
    def test_mx_parts(self, mantissa, scale, message, refused):
        refused(PLAIN, (np.ones(mantissa, F8), np.ones(scale, SCALE), ones(64, 3), ones(2, 3)), message)

    def test_extent_given_as_an_index(self, refused):
        text = f"""
        func.func @f(%x: {T}, %n: index) -> {T} {{
          %c1 = arith.constant 1 : index
          %columns = tensor.dim %x, %c1 : {T}
          %0 = tensor.empty(%n, %columns) : {T}
          %1 = linalg.exp ins(%x : {T}) outs(%0 : {T}) -> {T}
          return %1 : {T}
        }}"""
        assert (mx_dialect.compile(text, pipeline=LOOPS)(0 * ones(2, 3), 2) == 1).all()
        refused(text, (ones(2, 3), 3), "argument 0 (extent 2 along axis 0) and argument 1 (value 3) must agree")

    def test_extent_out_of_range(self, refused):
        text = """
        func.func @f(%n: index, %x: f32) -> tensor<?xf32> {
          %0 = tensor.empty(%n) : tensor<?xf32>
          %1 = linalg.fill ins(%x : f32) outs(%0 : tensor<?xf32>) -> tensor<?xf32>
          return %1 : tensor<?xf32>
        }"""
        assert mx_dialect.compile(text, pipeline=LOOPS)(3, 1.0).tolist() == [1, 1, 1]
        # More than a processor can address.
        refused(text, (1 << 50, 1.0), "out of memory for a buffer of type memref<?xf32>", before=False)
        refused(text, (-1, 1.0), "an extent must not be negative ('tensor.empty')", before=False)


class TestOtherOperations:
    def test_linalg(self, refused):
        text = f"""
        func.func @f(%a: {T}, %b: {T}, %c: {T}) -> {T} {{
          %0 = linalg.matmul ins(%a, %b : {T}, {T}) outs(%c : {T}) -> {T}
          return %0 : {T}
        }}"""
        refused(text, (ones(2, 3), ones(4, 5), ones(2, 5)), "argument 0 (extent 3 along axis 1) and argument 1")

    def test_elementwise(self, refused):
        text = f"""
        func.func @f(%a: {T}, %b: {T}) -> {T} {{
          %0 = arith.addf %a, %b : {T}
          return %0 : {T}
        }}"""
        refused(text, (ones(2, 3), ones(2, 4)), "operands of an elementwise operation have one shape ('arith.addf')")

    def test_cast(self, refused):
        text = """
        func.func @f(%a: tensor<?xf32>) -> tensor<4xf32> {
          %0 = tensor.cast %a : tensor<?xf32> to tensor<4xf32>
          %1 = arith.negf %0 : tensor<4xf32>
          return %1 : tensor<4xf32>
        }"""
        refused(
            text, (ones(3),), "argument 0 (extent 3 along axis 0) and 4 must agree: the extent that a tensor is cast to"
        )

    FLOORDIV = """
    func.func @f(%a: tensor<?xf32>, %s: tensor<?xf32>) -> tensor<?xf32> {
      %0 = linalg.generic {indexing_maps = [affine_map<(k) -> (k floordiv 32)>, affine_map<(k) -> (k)>],
                           iterator_types = ["parallel"]} ins(%s : tensor<?xf32>) outs(%a : tensor<?xf32>) {
      ^bb0(%x: f32, %y: f32):
        %1 = arith.mulf %x, %y : f32
        linalg.yield %1 : f32
      } -> tensor<?xf32>
      return %0 : tensor<?xf32>
    }"""

    def test_divided_loop(self, refused):
        kernel = mx_dialect.compile(self.FLOORDIV, pipeline=LOOPS)
        # Enough scales: the last block may be a part, and more do no harm.
        for extent, scales in ((64, 2), (33, 2), (32, 1), (0, 0), (32, 3)):
            assert (kernel(ones(extent), 2 * ones(scales)) == 2).all()
        refused(self.FLOORDIV, (ones(65), ones(2)), "runs past the end of an operand", before=False)
        refused(self.FLOORDIV, (ones(1), ones(0)), "runs past the end of an operand", before=False)

    def test_index_of_unknown_range(self):
        text = self.FLOORDIV.replace("k floordiv 32", "k mod 32")
        with pytest.raises(MxError, match=r"by d0 mod 32, whose range cannot be checked"):
            mx_dialect.compile(text)
        # MLIR checks static extents itself.
        mx_dialect.compile(text.replace("?", "32"), pipeline=LOOPS)

    def test_unknown_linalg(self):
        text = """
        func.func @f(%a: tensor<?x?xf32>, %b: tensor<?x?x8x8xf32>) -> tensor<?x?x8x8xf32> {
          %0 = linalg.pack %a inner_dims_pos = [0, 1] inner_tiles = [8, 8] into %b : tensor<?x?xf32> -> tensor<?x?x8x8xf32>
          return %0 : tensor<?x?x8x8xf32>
        }"""
        with pytest.raises(MxError, match=r"'linalg.pack' on open extents is not checked, and so not compiled"):
            mx_dialect.compile(text)


class TestIndices:
    """Indices that a program computes: outside a tensor they are an error, not a wild access."""

    EXTRACT = """
    func.func @f(%x: tensor<4x?xf32>, %i: index, %j: index) -> f32 {
      %0 = tensor.extract %x[%i, %j] : tensor<4x?xf32>
      return %0 : f32
    }"""
    INSERT = """
    func.func @f(%x: tensor<4xf32>, %i: index, %v: f32) -> tensor<4xf32> {
      %0 = tensor.insert %v into %x[%i] : tensor<4xf32>
      return %0 : tensor<4xf32>
    }"""
    EXTRACT_SLICE = """
    func.func @f(%x: tensor<?xf32>, %offset: index, %size: index, %stride: index) -> tensor<?xf32> {
      %0 = tensor.extract_slice %x[%offset] [%size] [%stride] : tensor<?xf32> to tensor<?xf32>
      return %0 : tensor<?xf32>
    }"""
    INSERT_SLICE = """
    func.func @f(%v: tensor<?xf32>, %x: tensor<1x8xf32>, %offset: index, %size: index) -> tensor<1x8xf32> {
      %0 = tensor.insert_slice %v into %x[0, %offset] [1, %size] [1, 1] : tensor<?xf32> into tensor<1x8xf32>
      return %0 : tensor<1x8xf32>
    }"""

    @pytest.mark.parametrize(("i", "j"), [(4, 0), (0, 3), (-1, 0), (0, -1), (1 << 62, 0)])
    def test_extract(self, i, j, refused):
        x = np.arange(12, dtype=np.float32).reshape(4, 3)
        assert mx_dialect.compile(self.EXTRACT, pipeline=LOOPS)(x, 3, 2) == 11
        refused(self.EXTRACT, (x, i, j), "an index is out of bounds ('tensor.extract')", before=False)

    @pytest.mark.parametrize("i", [4, -1])
    def test_insert(self, i, refused):
        assert mx_dialect.compile(self.INSERT, pipeline=LOOPS)(ones(4), 3, 2.0).tolist() == [1, 1, 1, 2]
        refused(self.INSERT, (ones(4), i, 2.0), "an index is out of bounds ('tensor.insert')", before=False)

    def test_extract_slice(self, refused):
        x = np.arange(8, dtype=np.float32)
        kernel = mx_dialect.compile(self.EXTRACT_SLICE, pipeline=LOOPS)
        for offset, size, stride in ((0, 8, 1), (7, 1, 5), (1, 3, 3), (8, 0, 1), (2, 2, 0)):
            expected = [offset + i * stride for i in range(size)]
            assert kernel(x, offset, size, stride).tolist() == expected
        for offset, size, stride, message in (
            (1, 8, 1, "a slice runs past the end"),
            (0, 4, 3, "a slice runs past the end"),
            (9, 0, 1, "an offset is out of bounds"),
            (-1, 2, 1, "an offset is out of bounds"),
            (0, -1, 1, "a size is out of bounds"),
            (4, 2, -1, "a stride must not be negative"),
        ):
            refused(self.EXTRACT_SLICE, (x, offset, size, stride), message, before=False)

    def test_insert_slice(self, refused):
        kernel = mx_dialect.compile(self.INSERT_SLICE, pipeline=LOOPS)
        assert kernel(2 * ones(3), ones(1, 8), 5, 3).tolist() == [[1, 1, 1, 1, 1, 2, 2, 2]]
        refused(self.INSERT_SLICE, (ones(3), ones(1, 8), 6, 3), "a slice runs past the end", before=False)
        refused(
            self.INSERT_SLICE,
            (ones(2), ones(1, 8), 0, 3),
            "argument 0 (extent 2 along axis 0) and argument 3 (value 3) must agree",
        )

    def test_known_to_be_inside(self):
        text = """
        func.func @f(%x: tensor<4xf32>) -> f32 {
          %c3 = arith.constant 3 : index
          %0 = tensor.extract %x[%c3] : tensor<4xf32>
          return %0 : f32
        }"""
        assert not mx_dialect.compile(text, pipeline=LOOPS)._interface.takes_status


class TestRecursion:
    def test_arguments_of_inner_calls(self, refused):
        """A function that calls itself with other extents: those are checked as well, while it runs."""
        text = """
        func.func @f(%x: tensor<?xf32>, %y: tensor<?xf32>, %again: i1) -> tensor<?xf32> {
          %0 = arith.addf %x, %y : tensor<?xf32>
          %1 = scf.if %again -> tensor<?xf32> {
            %false = arith.constant false
            %three = arith.constant dense<1.0> : tensor<3xf32>
            %open = tensor.cast %three : tensor<3xf32> to tensor<?xf32>
            %2 = func.call @f(%0, %open, %false) : (tensor<?xf32>, tensor<?xf32>, i1) -> tensor<?xf32>
            scf.yield %2 : tensor<?xf32>
          } else {
            scf.yield %0 : tensor<?xf32>
          }
          return %1 : tensor<?xf32>
        }"""
        kernel = mx_dialect.compile(text, pipeline=LOOPS)
        assert kernel(ones(3), ones(3), True).tolist() == [3, 3, 3]
        assert kernel(ones(2), ones(2), False).tolist() == [2, 2]
        refused(text, (ones(2), ones(2), True), "extents must agree: operands of an elementwise", before=False)


class TestMachine:
    """What would end the process otherwise."""

    @pytest.mark.parametrize(
        ("operation", "x", "y", "result"),
        [
            ("arith.divsi", -7, 2, -3),
            ("arith.floordivsi", -7, 2, -4),
            ("arith.remsi", -7, 2, -1),
            ("arith.divui", 7, 2, 3),
            ("arith.remui", 7, 4, 3),
        ],
    )
    @pytest.mark.parametrize("type_", ["i32", "vector<2x8xi32>"])
    def test_division(self, operation, x, y, result, type_):
        if type_ == "i32":
            body = f"%0 = {operation} %x, %y : i32"
        else:
            body = f"""
            %xs = vector.broadcast %x : i32 to {type_}
            %ones = arith.constant dense<1> : {type_}
            %ys = vector.insert %y, %ones [1, 3] : i32 into {type_}
            %all = {operation} %xs, %ys : {type_}
            %0 = vector.extract %all[1, 3] : i32 from {type_}"""
        kernel = mx_dialect.compile(
            f"func.func @f(%x: i32, %y: i32) -> i32 {{\n{body}\nreturn %0 : i32\n}}", pipeline=LOOPS
        )
        assert kernel(x, y) == result
        with pytest.raises(MxError, match="division by zero"):
            kernel(x, 0)
        if operation in ("arith.divsi", "arith.floordivsi", "arith.remsi"):
            assert kernel(5, -1) == (0 if operation == "arith.remsi" else -5)
            with pytest.raises(MxError, match="division overflows"):
                kernel(-(1 << 31), -1)
        else:
            kernel(-(1 << 31), -1)

    @pytest.mark.parametrize(
        "body",
        [
            """
            %c = arith.constant 3 : i32
            %0 = arith.divsi %x, %c : i32""",
            """
            %c = arith.constant dense<3> : vector<4xi32>
            %xs = vector.broadcast %x : i32 to vector<4xi32>
            %all = arith.divsi %xs, %c : vector<4xi32>
            %0 = vector.extract %all[2] : i32 from vector<4xi32>""",
        ],
    )
    def test_constant_divisor_costs_nothing(self, body):
        text = f"func.func @f(%x: i32) -> i32 {{{body}\nreturn %0 : i32\n}}"
        kernel = mx_dialect.compile(text, pipeline=LOOPS)
        assert kernel(-7) == -2
        assert not kernel._interface.takes_status


class TestWhileRunning:
    """Extents that only the program knows."""

    CALL = f"""
    func.func private @product(%a: {A}, %b: {T}, %acc: {T}) -> {T} {{
      %0 = mx.block_matmul %a, %b, %acc : {A}, {T}, {T} -> {T}
      return %0 : {T}
    }}
    func.func @f(%a: {A}, %b: {T}, %acc: {T}) -> {T} {{
      %0 = call @product(%a, %b, %acc) : ({A}, {T}, {T}) -> {T}
      return %0 : {T}
    }}"""

    def test_in_a_called_function(self, refused):
        kernel = mx_dialect.compile(self.CALL, pipeline=LOOPS)
        np.testing.assert_array_equal(kernel(mx(2, 64), ones(64, 3), ones(2, 3)), np.full((2, 3), 65))
        error = refused(
            self.CALL,
            (mx(2, 64), ones(32, 3), ones(2, 3)),
            "extents must agree: K of lhs and rhs ('mx.block_matmul')",
            before=False,
        )
        assert error.diagnostics[0].line == 3

    def test_in_a_branch(self, refused):
        text = f"""
        func.func @f(%p: i1, %x: {T}, %y: {T}, %b: {T}, %acc: {T}) -> {T} {{
          %chosen = scf.if %p -> {T} {{
            scf.yield %x : {T}
          }} else {{
            scf.yield %y : {T}
          }}
          %a = mx.quantize_block %chosen : {T} -> {A}
          %0 = mx.block_matmul %a, %b, %acc : {A}, {T}, {T} -> {T}
          return %0 : {T}
        }}"""
        arguments = (ones(2, 64), ones(2, 33), ones(64, 3), ones(2, 3))
        kernel = mx_dialect.compile(text, pipeline=LOOPS)
        np.testing.assert_array_equal(kernel(True, *arguments), np.full((2, 3), 65))
        refused(text, (False, *arguments), "extent must be a multiple of 32: the blocked axis holds", before=False)

    def test_what_holds_by_itself_costs_nothing(self):
        """The same extent on both sides: no check for the caller, no status for the program."""
        text = f"""
        func.func @f(%x: {T}) -> {T} {{
          %0 = arith.addf %x, %x : {T}
          %1 = arith.mulf %0, %x : {T}
          return %1 : {T}
        }}"""
        interface = mx_dialect.compile(text, pipeline=LOOPS)._interface
        assert interface.checks == ()
        assert not [d for d in interface.asserts if not d.message.startswith("out of memory")]
