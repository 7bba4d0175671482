"""Choosing experts, gathering scales and the load paths in running programs, and what they refuse at run time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neuron_kernels import CARRIER, LOOPS, compiled, spread, tensor, unsigned, x4

import mx_dialect
from mx_dialect import MxError, dialect, neuron_expert_ops, neuron_load_ops, neuron_qkv_ops
from mx_dialect._mlir import func, ir

BAD_EXPERTS = (-1, 3, 2**31, -(2**40))
out_of_range = pytest.raises(MxError, match=r"the expert index is out of range|an index is out of range")


def random_bytes(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def index_kernel(scale_rows, quadrants, remaining, offset=0):
    counts = f"scale_rows = {scale_rows}, full_quadrants = {quadrants}, remaining_rows = {remaining}, offset = {offset}"
    return compiled(
        f"""func.func @f(%e: index) -> tensor<128xi32> {{
              %0 = mx.expert_index %e {{{counts}}} : index -> tensor<128xi32>
              return %0 : tensor<128xi32>
            }}""",
        LOOPS,
    )


def indices(places):
    """Return an index vector with rows at some partitions and holes elsewhere."""
    vector = np.full(128, -1, np.int32)
    for partition, row in places.items():
        vector[partition] = row
    return vector


# Steps


def test_expert_index_of_the_definition():
    full = {32 * q + j: 4 * q + j for q in range(4) for j in range(4)}
    np.testing.assert_array_equal(index_kernel(16, 4, 0)(0), indices(full))
    np.testing.assert_array_equal(index_kernel(16, 4, 0)(3), indices({p: 48 + row for p, row in full.items()}))
    np.testing.assert_array_equal(index_kernel(6, 1, 2)(2), indices({0: 12, 1: 13, 2: 14, 3: 15, 32: 16, 33: 17}))
    np.testing.assert_array_equal(index_kernel(1, 0, 1)(1), indices({0: 1}))
    np.testing.assert_array_equal(index_kernel(16, 0, 0)(1), indices({}))
    moved = index_kernel(6, 1, 2, offset=12)(2)
    np.testing.assert_array_equal(moved, indices({12: 12, 13: 13, 14: 14, 15: 15, 44: 16, 45: 17}))


def test_expert_index_refuses_what_i32_cannot_number():
    kernel = index_kernel(16, 4, 0)
    last = (2**31 - 1) // 16 - 1
    assert kernel(last)[99] == 16 * last + 15
    for expert in (-1, last + 1, 2**40):
        with pytest.raises(MxError, match=r"mx\.expert_index: the expert index is out of range"):
            kernel(expert)


GATHER = """func.func @f(%s: tensor<?x3x5xui8>, %i: tensor<128xi32>) -> tensor<128x5xui8> {
              %0 = mx.scale_gather %s, %i : tensor<?x3x5xui8>, tensor<128xi32> -> tensor<128x5xui8>
              return %0 : tensor<128x5xui8>
            }"""


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_scale_gather(experts, seed):
    rng = np.random.default_rng(seed)
    scales = random_bytes(experts, 3, 5, seed=seed)
    vector = np.where(rng.random(128) < 0.3, rng.integers(0, 3 * experts, 128), -1).astype(np.int32)
    out = compiled(GATHER)(scales, vector).view(np.uint8)
    for p in range(128):
        row = scales.reshape(-1, 5)[vector[p]] if vector[p] >= 0 else 0
        np.testing.assert_array_equal(out[p], np.broadcast_to(row, 5))


def test_scale_gather_refuses_rows_that_do_not_exist():
    kernel, scales = compiled(GATHER), random_bytes(2, 3, 5)
    for index in (6, -2, 2**31 - 1, -(2**31)):
        with pytest.raises(MxError, match=r"mx\.scale_gather: an index is out of range"):
            kernel(scales, indices({127: index}))
    assert kernel(scales, indices({127: 5}))[127].view(np.uint8).tolist() == scales[1, 2].tolist()
    # There is no row at all.
    assert not kernel(scales[:0], indices({})).any()
    with out_of_range:
        kernel(scales[:0], indices({0: 0}))


@pytest.mark.parametrize(("rows", "offset"), [(1, 0), (4, 12), (6, 4), (13, 8), (16, 0)])
def test_scale_load_static(rows, offset):
    dense = random_bytes(rows, 2, 3)
    kernel = compiled(
        f"""func.func @f(%s: tensor<{rows}x2x3xui8>) -> tensor<128x2x3xui8> {{
              %0 = mx.scale_load_static %s {{offset = {offset}}} : tensor<{rows}x2x3xui8> -> tensor<128x2x3xui8>
              return %0 : tensor<128x2x3xui8>
            }}""",
        LOOPS,
    )
    np.testing.assert_array_equal(kernel(dense).view(np.uint8), spread(dense, 128, offset, 0))


SELECT = """func.func @f(%w: tensor<?x4x6xui16>, %e: index, %o: index) -> tensor<2x3x!mx.x4<f4E2M1FN>> {
              %0 = mx.view_cast %w : tensor<?x4x6xui16> -> tensor<?x4x6x!mx.x4<f4E2M1FN>>
              %1 = mx.select_expert %0, %e[1, %o] : tensor<?x4x6x!mx.x4<f4E2M1FN>>, index -> tensor<2x3x!mx.x4<f4E2M1FN>>
              return %1 : tensor<2x3x!mx.x4<f4E2M1FN>>
            }"""


def test_select_expert():
    kernel = compiled(SELECT)
    weights = np.arange(72, dtype=np.uint16).reshape(3, 4, 6)
    for expert, offset in ((0, 0), (2, 3), (1, 1)):
        np.testing.assert_array_equal(kernel(weights, expert, offset), weights[expert, 1:3, offset : offset + 3])
    for expert in BAD_EXPERTS:
        with pytest.raises(MxError, match=r"mx\.select_expert: the expert index is out of range"):
            kernel(weights, expert, 0)
    for offset in (-1, 4, 2**40):
        with pytest.raises(MxError, match=r"mx\.select_expert: the range leaves the tensor along axis 2"):
            kernel(weights, 0, offset)
    with out_of_range:
        kernel(weights[:0], 0, 0)


# Paths


def gate_up(experts, hidden, features, taken, element, carrier):
    """Return the operand and result types of a load of gate and up weights."""
    tiles = hidden // 512
    bias = [(n // 4 if n < 512 else 128, 2, max(n // 512, 1), 4) for n in (features, taken)]
    operands = [
        tensor(experts, 128, 2, tiles, features, element=carrier),
        tensor(experts, 16, 2, tiles, features, element="ui8"),
        tensor(experts, *bias[0], element="f32"),
        "index",
    ]
    results = [
        x4(128, 2, tiles, taken, element=element),
        tensor(128, 2, tiles, taken, element="ui8"),
        tensor(*bias[1], element="f32"),
    ]
    return operands, results


def gate_up_kernel(types, scale_path):
    operands, results = types
    return compiled(
        f"""func.func @f(%w: {operands[0]}, %s: {operands[1]}, %b: {operands[2]}, %e: index, %o: index) -> ({", ".join(results)}) {{
              %0:3 = mx.load_gate_up %w, %s, %b, %e[%o] : {", ".join(operands)} -> ({", ".join(results)})
              return %0#0, %0#1, %0#2 : {", ".join(results)}
            }}""",
        LOOPS,
        scale_path,
    )


@pytest.mark.parametrize(
    ("features", "taken", "element", "carrier", "scale_path"),
    [
        (64, 64, "f4E2M1FN", "ui16", "index"),
        (1024, 512, "f8E5M2", "i32", "index"),
        (1024, 512, "f8E5M2", "i32", "static"),
        (32, 32, "f8E4M3FN", "!mx.x4<f8E4M3FN>", "static"),
    ],
)
def test_load_gate_up(features, taken, element, carrier, scale_path):
    rng = np.random.default_rng(features)
    weights = rng.integers(0, 1 << 16, (3, 128, 2, 1, features)).astype(CARRIER[element])
    scales = random_bytes(3, 16, 2, 1, features)
    partitions, tiles = min(features // 4, 128), max(features // 512, 1)
    bias = rng.standard_normal((3, partitions, 2, tiles, 4)).astype(np.float32)
    kernel = gate_up_kernel(gate_up(3, 512, features, taken, element, carrier), scale_path)
    for expert in range(3):
        for offset in range(0, features - taken + 1, 512):
            loaded, tile, loaded_bias = kernel(weights, scales, bias, expert, offset)
            part = slice(offset, offset + taken)
            np.testing.assert_array_equal(unsigned(loaded), weights[expert, ..., part])
            np.testing.assert_array_equal(tile.view(np.uint8), spread(scales[expert, ..., part], 128, 0, 0))
            first = offset // 512
            np.testing.assert_array_equal(loaded_bias, bias[expert, :, :, first : first + max(taken // 512, 1)])
    for expert in BAD_EXPERTS:
        with out_of_range:
            kernel(weights, scales, bias, expert, 0)
    for offset in (-512, 1024, 2**40):
        with pytest.raises(MxError, match="the range leaves the tensor"):
            kernel(weights, scales, bias, 0, offset)
    with pytest.raises(MxError, match=r"mx\.load_gate_up: a range begins at a multiple of 512"):
        kernel(weights, scales, bias, 0, 8)


@pytest.mark.parametrize(
    ("features", "taken", "scale_path"),
    [(192, 192, "index"), (192, 192, "static"), (32, 32, "index"), (1024, 512, "index"), (1024, 512, "static")],
)
def test_load_down(features, taken, scale_path):
    """I of 192 lies on 48 partitions, whose 6 scale rows fill a quadrant and half of another."""
    partitions, tiles = min(features // 4, 128), max(features // 512, 1)
    rng = np.random.default_rng(features)
    weights = rng.integers(0, 1 << 16, (3, partitions, tiles, 512), np.uint16)
    scales, bias = random_bytes(3, partitions // 8, tiles, 512), rng.standard_normal((3, 512)).astype(np.float32)
    element, gate = "f4E2M1FN", x4(128, 2, 1, taken, element="f4E2M1FN")
    operands = [
        tensor(3, partitions, tiles, 512, element="ui16"),
        tensor(3, partitions // 8, tiles, 512, element="ui8"),
        tensor(3, 512, element="f32"),
        "index",
        gate,
    ]
    taken_tiles = max(taken // 512, 1)
    results = [
        x4(partitions, taken_tiles, 512, element=element),
        tensor(128, taken_tiles, 512, element="ui8"),
        tensor(512, element="f32"),
    ]
    kernel = compiled(
        f"""func.func @f(%w: {operands[0]}, %s: {operands[1]}, %b: {operands[2]}, %e: index, %g: {gate}, %o: index) -> ({", ".join(results)}) {{
              %0:3 = mx.load_down %w, %s, %b, %e, %g[%o] : {", ".join(operands)} -> ({", ".join(results)})
              return %0#0, %0#1, %0#2 : {", ".join(results)}
            }}""",
        LOOPS,
        scale_path,
    )
    gate_weights = np.zeros((128, 2, 1, taken), np.uint16)
    for expert in range(3):
        for offset in range(0, features - taken + 1, 512):
            loaded, tile, loaded_bias = kernel(weights, scales, bias, expert, gate_weights, offset)
            part = slice(offset // 512, offset // 512 + taken_tiles)
            np.testing.assert_array_equal(unsigned(loaded), weights[expert, :, part])
            np.testing.assert_array_equal(tile.view(np.uint8), spread(scales[expert, :, part], 128, 0, 0))
            np.testing.assert_array_equal(loaded_bias, bias[expert])
    for expert in BAD_EXPERTS:
        with out_of_range:
            kernel(weights, scales, bias, expert, gate_weights, 0)


def test_load_qkv():
    weights = np.random.default_rng(8).integers(0, 1 << 32, (256, 5), np.uint32)
    scales = random_bytes(32, 5)
    types = ["tensor<256x5xui32>", "tensor<32x5xui8>", x4(128, 2, 5, element="f8E4M3FN"), "tensor<128x2x5xui8>"]
    kernel = compiled(
        f"""func.func @f(%w: {types[0]}, %s: {types[1]}) -> ({types[2]}, {types[3]}) {{
              %0:2 = mx.load_qkv %w, %s {{layout = "MX_CONTIGUOUS", input = bf16}} : {types[0]}, {types[1]} -> ({types[2]}, {types[3]})
              return %0#0, %0#1 : {types[2]}, {types[3]}
            }}""",
        LOOPS,
    )
    loaded, tiles = kernel(weights, scales)
    for t in range(2):
        np.testing.assert_array_equal(unsigned(loaded)[:, t], weights[128 * t : 128 * t + 128])
        expected = np.zeros((128, 5), np.uint8)
        for quadrant, j in np.ndindex(4, 4):
            expected[32 * quadrant + j] = scales[16 * t + 4 * quadrant + j]
        np.testing.assert_array_equal(tiles.view(np.uint8)[:, t], expected)


def test_a_program_that_was_refused_runs_again():
    """A failed assertion is a status: nothing aborts, and nothing is kept of it."""
    kernel = compiled(SELECT)
    weights = np.arange(72, dtype=np.uint16).reshape(3, 4, 6)
    for _ in range(3):
        with out_of_range:
            kernel(weights, 3, 0)
        np.testing.assert_array_equal(kernel(weights, 2, 0), weights[2, 1:3, :3])


# The API


def test_builders_infer_their_result_types():
    with dialect.load(), ir.Location.unknown():
        module = ir.Module.create()
        u8, u16, u32, f32 = (*(ir.IntegerType.get_unsigned(bits) for bits in (8, 16, 32)), ir.F32Type.get())
        arguments = [
            ir.RankedTensorType.get(shape, element)
            for shape, element in (
                ([8, 128, 2, 1, 1024], u16),
                ([8, 16, 2, 1, 1024], u8),
                ([8, 128, 2, 2, 4], f32),
                ([8, 128, 2, 512], u16),
                ([8, 16, 2, 512], u8),
                ([8, 512], f32),
                ([256, 96], u32),
                ([32, 96], u8),
                ([256, 96], f32),
            )
        ]
        with ir.InsertionPoint(module.body):

            @func.FuncOp.from_py_func(ir.IndexType.get(), *arguments)
            def build(e, w, s, b, dw, ds, db, qw, qs, dense):
                loaded, tile, bias = neuron_expert_ops.load_gate_up(w, s, b, e, offset=512, size=512, oob_mode="skip")
                assert str(loaded.type) == "tensor<128x2x1x512x!mx.x4<f4E2M1FN>>"
                assert str(tile.type) == "tensor<128x2x1x512xui8>"
                assert str(bias.type) == "tensor<128x2x1x4xf32>"
                down = neuron_expert_ops.load_down(dw, ds, db, e, loaded, offset=e)
                assert [str(v.type) for v in down] == [
                    "tensor<128x1x512x!mx.x4<f4E2M1FN>>",
                    "tensor<128x1x512xui8>",
                    "tensor<512xf32>",
                ]
                qkv = neuron_qkv_ops.load_qkv(
                    qw, qs, "MX_INTERLEAVED", ir.BF16Type.get(), "f8E5M2", input_scale=True, dma_transpose=True
                )
                assert [str(v.type) for v in qkv] == ["tensor<128x2x96x!mx.x4<f8E5M2>>", "tensor<128x2x96xui8>"]
                assert str(neuron_qkv_ops.load_qkv_dense(dense, "CONTIGUOUS").type) == "tensor<128x2x96xf32>"
                assert str(neuron_load_ops.select_expert(w, e).type) == "tensor<128x2x1x1024xui16>"
                index = neuron_load_ops.expert_index(e, 16, 6)
                assert index.owner.opview.counts == (16, 1, 2)
                assert str(neuron_load_ops.scale_gather(s, index, "skip").type) == "tensor<128x2x1x1024xui8>"
                assert str(neuron_load_ops.scale_load_static(qs, tiles=True).type) == "tensor<128x2x96xui8>"

        assert module.operation.verify()
        mx_dialect.run_pipeline(module, "mx-neuron-expand-load,mx-neuron-to-linalg")


def test_options_of_the_expansion():
    module = mx_dialect.parse("module {}")
    with pytest.raises(
        MxError, match="'scale-path' of pass 'mx-neuron-expand-load' is one of index, static, not 'dma'"
    ):
        mx_dialect.run_pipeline(module, "mx-neuron-expand-load{scale-path=dma}")
