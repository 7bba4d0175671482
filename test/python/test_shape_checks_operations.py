"""Open extents and indices in operations: what they must be, on the machine and while compiled code runs."""

import numpy as np
import pytest
from open_extents import LOOPS, A, T, mx, ones, refusal_check

import mx_dialect
from mx_dialect import MxError


@pytest.fixture
def refused(monkeypatch):
    return refusal_check(monkeypatch)


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
