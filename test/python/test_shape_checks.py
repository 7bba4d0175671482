"""Open extents that do not go together are found before compiled code runs, where arguments alone decide."""

import numpy as np
import pytest
from open_extents import F8, LOOPS, SCALE, A, B, T, matmul, mx, ones, refusal_check

import mx_dialect
from mx_dialect import MxArray, MxError


@pytest.fixture
def refused(monkeypatch):
    return refusal_check(monkeypatch)


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
