"""x4 containers in running programs: views, layouts of weights and activations, partitions; and the API."""

import numpy as np
import pytest
from neuron_kernels import BITS, CARRIER, DTYPE, compiled, packed_lanes, tensor, unsigned, x4

import mx_dialect
from mx_dialect import MxError, dialect, neuron_ops
from mx_dialect._mlir import func, ir
from mx_dialect.neuron_types import X4Type

H, COLUMNS = 16, 6
every_type = pytest.mark.parametrize("element", list(BITS))


def interleaved_row(r, q):
    """Return the row in lane q = 2a + b of container r: a * H/2 + 2r + b."""
    a, b = divmod(q, 2)
    return a * (H // 2) + 2 * r + b


ROWS = {"MX_CONTIGUOUS": lambda r, q: 4 * r + q, "MX_INTERLEAVED": interleaved_row}


def test_the_interleaved_rows_of_the_definition():
    rows = np.arange(H).reshape(2, H // 4, 2).swapaxes(0, 1).reshape(-1)
    assert rows.tolist() == [0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15]
    assert [interleaved_row(*divmod(i, 4)) for i in range(H)] == rows.tolist()


@every_type
def test_pack_weights(element):
    """Codes fill a byte; the bits above those of FP4 are garbage that must not reach the neighbours."""
    codes = np.random.default_rng(0).integers(0, 256, (H, COLUMNS), np.uint8)
    source, result = tensor(H, COLUMNS, element="i8"), x4(H // 4, COLUMNS, element=element)
    body = "\n".join(
        f'%{layout} = mx.pack_weights %w {{layout = "{layout}"}} : {source} -> {result}' for layout in ROWS
    )
    kernel = compiled(
        f"""func.func @f(%w: {source}) -> ({result}, {result}) {{
              {body}
              return {", ".join(f"%{layout}" for layout in ROWS)} : {result}, {result}
            }}"""
    )
    kept = codes & (1 << BITS[element]) - 1
    for packed, row in zip(kernel(codes), ROWS.values(), strict=True):
        for r, i in np.ndindex(H // 4, COLUMNS):
            assert unsigned(packed)[r, i] == packed_lanes([kept[row(r, q), i] for q in range(4)], element)


@pytest.mark.parametrize("element", ["f8E4M3FN", "f8E5M2"])
def test_dma_transpose_and_pack_weights_of_fp8_meet(element):
    """The transpose of a weight's columns, as activations, is what packing the weight gives."""
    tokens = 5
    codes = np.random.default_rng(1).integers(0, 256, (tokens, H), np.uint8)
    types = tensor(tokens, H, element=element), tensor(H, tokens, element=element), x4(H // 4, tokens, element=element)
    kernel = compiled(
        f"""func.func @f(%x: {types[0]}, %w: {types[1]}) -> ({types[2]}, {types[2]}) {{
              %0 = mx.dma_transpose %x : {types[0]} -> {types[2]}
              %1 = mx.pack_weights %w {{layout = "MX_INTERLEAVED"}} : {types[1]} -> {types[2]}
              return %0, %1 : {types[2]}, {types[2]}
            }}"""
    )
    transposed, packed = kernel(codes.view(DTYPE[element]), np.ascontiguousarray(codes.T))
    np.testing.assert_array_equal(transposed, packed)
    for r, t in np.ndindex(H // 4, tokens):
        assert unsigned(transposed)[r, t] == packed_lanes([codes[t, interleaved_row(r, q)] for q in range(4)], element)


def test_dma_transpose_of_floats_puts_them_where_their_lanes_will_be():
    tokens = 3
    x = np.random.default_rng(2).standard_normal((tokens, H)).astype(np.float32)
    source, result = tensor(tokens, H, element="f32"), tensor(H // 4, 4 * tokens, element="f32")
    kernel = compiled(
        f"""func.func @f(%x: {source}) -> {result} {{
              %0 = mx.dma_transpose %x : {source} -> {result}
              return %0 : {result}
            }}"""
    )
    out = kernel(x)
    for r, t, q in np.ndindex(H // 4, tokens, 4):
        assert out[r, 4 * t + q] == x[t, interleaved_row(r, q)]


def test_partition_rows():
    rows = np.random.default_rng(3).integers(0, 1 << 16, (256, 3, 2), np.uint16)
    source, result = x4(256, 3, 2, element="f4E2M1FN"), x4(128, 2, 3, 2, element="f4E2M1FN")
    kernel = compiled(
        f"""func.func @f(%w: {source}) -> {result} {{
              %0 = mx.partition_rows %w : {source} -> {result}
              return %0 : {result}
            }}"""
    )
    out = unsigned(kernel(rows))
    for p, t in np.ndindex(128, 2):
        np.testing.assert_array_equal(out[p, t], rows[128 * t + p])


@pytest.mark.parametrize("carrier", ["ui16", "i16", "ui32", "i32"])
def test_a_view_gives_back_the_array_itself(carrier):
    """No byte is moved: the result is the argument's buffer, which a call in place shows."""
    element = "f4E2M1FN" if carrier.endswith("16") else "f8E5M2"
    integers = tensor(4, 8, element=carrier)
    text = f"""func.func @f(%w: {integers}) -> {x4(4, 8, element=element)} {{
                 %0 = mx.view_cast %w : {integers} -> {x4(4, 8, element=element)}
                 return %0 : {x4(4, 8, element=element)}
               }}"""
    array = np.arange(32, dtype=CARRIER[element]).reshape(4, 8)
    assert compiled(text)(array, in_place=True) is array


# The API


def test_the_type():
    with dialect.load():
        type_ = X4Type.get("f4E2M1FN")
        assert str(type_) == "!mx.x4<f4E2M1FN>"
        assert (type_.width, type_.format.mlir) == (16, "f4E2M1FN")
        assert X4Type.get(ir.Type.parse("f8E5M2")).width == 32
        assert type_ == ir.Type.parse("!mx.x4<f4E2M1FN>")
        with pytest.raises(MxError, match="x4 containers hold f4E2M1FN, f8E4M3FN, f8E5M2, not f32"):
            X4Type.get(ir.F32Type.get())


def test_an_invalid_type_is_found_wherever_it_stands():
    from mx_dialect.types import verify_types

    for text in (
        "func.func private @f(tensor<4x!mx.x4<f32>>)",
        "func.func private @f() attributes {a = [{b = !mx.x4<f32>}]}",
    ):
        with dialect.load():
            module = ir.Module.parse(text)
            errors = verify_types(module.operation)
        assert ["x4 containers hold" in error.message for error in errors] == [True], text


def test_builders():
    with dialect.load(), ir.Location.unknown():
        module = ir.Module.create()
        u16, u32 = (ir.IntegerType.get_unsigned(bits) for bits in (16, 32))
        types = [ir.RankedTensorType.get([256, 8], element) for element in (u16, u32)]
        types.append(ir.RankedTensorType.get([16, 512], ir.Type.parse("f8E5M2")))
        types.append(ir.RankedTensorType.get([512, 8], ir.IntegerType.get_signless(8)))
        types.append(ir.RankedTensorType.get([16, 512], ir.BF16Type.get()))
        with ir.InsertionPoint(module.body):

            @func.FuncOp.from_py_func(*types)
            def build(w16, w32, x, codes, floats):
                assert str(neuron_ops.view_cast(w16).type.element_type) == "!mx.x4<f4E2M1FN>"
                containers = neuron_ops.view_cast(w32)
                assert str(containers.type.element_type) == "!mx.x4<f8E4M3FN>"
                assert str(neuron_ops.view_cast(w32, "f8E5M2").type.element_type) == "!mx.x4<f8E5M2>"
                assert str(neuron_ops.view_cast(containers).type) == "tensor<256x8xi32>"
                assert neuron_ops.view_cast(containers, u32).type == w32.type
                with pytest.raises(MxError, match="x4 containers are carried by ui16, i16, ui32, i32, not bf16"):
                    neuron_ops.view_cast(floats)
                assert str(neuron_ops.partition_rows(containers, "hwdge").type) == "tensor<128x2x8x!mx.x4<f8E4M3FN>>"
                assert str(neuron_ops.dma_transpose(x).type) == "tensor<128x16x!mx.x4<f8E5M2>>"
                assert str(neuron_ops.dma_transpose(floats).type) == "tensor<128x64xbf16>"
                packed = neuron_ops.pack_weights(codes, "MX_INTERLEAVED", "f4E2M1FN")
                assert str(packed.type) == "tensor<128x8x!mx.x4<f4E2M1FN>>"

        assert module.operation.verify()


def test_equal_operations_are_merged_and_unused_ones_dropped():
    text = """
    func.func @f(%w: tensor<8xui16>) -> (tensor<8x!mx.x4<f4E2M1FN>>, tensor<8x!mx.x4<f4E2M1FN>>) {
      %0 = mx.view_cast %w : tensor<8xui16> -> tensor<8x!mx.x4<f4E2M1FN>>
      %1 = mx.view_cast %w : tensor<8xui16> -> tensor<8x!mx.x4<f4E2M1FN>>
      %2 = mx.view_cast %1 : tensor<8x!mx.x4<f4E2M1FN>> -> tensor<8xi16>
      return %0, %1 : tensor<8x!mx.x4<f4E2M1FN>>, tensor<8x!mx.x4<f4E2M1FN>>
    }"""
    module = mx_dialect.parse(text)
    mx_dialect.run_pipeline(module, "cse,canonicalize")
    assert mx_dialect.to_asm(module).count("mx.view_cast") == 1


def test_weights_may_be_constants():
    """As a model from elsewhere has them: integers, or the blob of a resource."""
    kernel = compiled(
        """
        func.func @f() -> (tensor<2x!mx.x4<f4E2M1FN>>, tensor<2x!mx.x4<f8E4M3FN>>) {
          %0 = arith.constant dense<[1, 4660]> : tensor<2xi16>
          %1 = mx.view_cast %0 : tensor<2xi16> -> tensor<2x!mx.x4<f4E2M1FN>>
          %2 = arith.constant dense_resource<blob> : tensor<2xi32>
          %3 = mx.view_cast %2 : tensor<2xi32> -> tensor<2x!mx.x4<f8E4M3FN>>
          return %1, %3 : tensor<2x!mx.x4<f4E2M1FN>>, tensor<2x!mx.x4<f8E4M3FN>>
        }
        {-# dialect_resources: { builtin: { blob: "0x04000000010203040A000000" } } #-}
        """
    )
    fp4, fp8 = kernel()
    assert fp4.tolist() == [1, 0x1234]
    assert fp8.tolist() == [0x04030201, 10]
