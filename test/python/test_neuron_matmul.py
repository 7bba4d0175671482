"""quantize_mx and nc_matmul_mx in running programs, against loops over their definitions and the numpy reference."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neuron_kernels import (
    LOOPS,
    VECTORS,
    compiled,
    dequantized,
    lane,
    packed_lanes,
    product,
    quantized,
    random_containers,
    spread,
    tensor,
    unsigned,
    values,
    x4,
)

from mx_dialect import MxError, dialect, neuron_matmul_ops
from mx_dialect._mlir import func, ir
from mx_dialect.layouts import neuron_reference

FP8 = ("f8E4M3FN", "f8E5M2")
NAN = 255
FLOATS = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


def quantize_kernel(partitions, columns, element, scale_rows, floats="f32", options="", pipeline=VECTORS):
    source = tensor(partitions, 4 * columns, element=floats)
    results = x4(partitions, columns, element=element), tensor(scale_rows, columns, element="ui8")
    attributes = f" {{{options}}}" if options else ""
    return compiled(
        f"""func.func @f(%x: {source}) -> ({", ".join(results)}) {{
              %0:2 = mx.quantize_mx %x{attributes} : {source} -> ({", ".join(results)})
              return %0#0, %0#1 : {", ".join(results)}
            }}""",
        pipeline,
    )


def assert_quantized(kernel, x, element, headroom=0, partitions=None, offset=0):
    """Demand the bits that the definition gives, and zeros between the scales."""
    data, scale = kernel(x)
    expected_data, expected_scale = quantized(x.astype(np.float32), element, headroom)
    tile = expected_scale if partitions is None else spread(expected_scale, partitions, offset, 0)
    np.testing.assert_array_equal(scale.view(np.uint8), tile)
    np.testing.assert_array_equal(unsigned(data), expected_data)


# Quantization

# Around the powers of two, where exponents and roundings change, and subnormals.
hard_floats = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.builds(lambda m, e: float(np.float32(np.ldexp(m, e))), st.integers(-33, 33), st.integers(-149, 122)),
    st.sampled_from([0.0, -0.0, 1.75, 1.8125, 448.0, 449.0, 464.0, 2.0**-126, 2.0**-149, float(np.float32(3.4e38))]),
)


@pytest.mark.parametrize("headroom", [0, 1])
@pytest.mark.parametrize("element", FP8)
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_quantize_mx(element, headroom, data):
    kernel = quantize_kernel(16, 2, element, 2, options=f"headroom = {headroom}")
    drawn = data.draw(st.lists(hard_floats, min_size=16, max_size=16))
    # Few numbers drawn, but each in every place of a group.
    x = np.array([drawn[(7 * i + i // 16) % 16] for i in range(128)], np.float32).reshape(16, 8)
    x[8:] *= np.float32(2.0**-30)
    assert_quantized(kernel, x, element, headroom)


@pytest.mark.parametrize(
    ("partitions", "rows", "offset", "floats", "element"),
    [(32, 4, 0, "f16", "f8E5M2"), (32, 32, 8, "bf16", "f8E4M3FN"), (40, 48, 12, "f32", "f8E5M2"), (128, 128, 4, "f16", "f8E4M3FN")],
)  # fmt: skip
def test_scales_lie_dense_or_in_quadrants(partitions, rows, offset, floats, element):
    kernel = quantize_kernel(partitions, 3, element, rows, floats, f"scale_offset = {offset}")
    rng = np.random.default_rng(partitions)
    x = (rng.standard_normal((partitions, 12)) * 2.0 ** rng.integers(-9, 9, (partitions, 12))).astype(FLOATS[floats])
    assert_quantized(kernel, x, element, partitions=None if rows == partitions // 8 else rows, offset=offset)


@pytest.mark.parametrize("element", FP8)
def test_infinities_are_clipped_and_nans_stay(element):
    """Neither makes the scale NaN; with exponent 255 a scale is as large as it gets."""
    x = np.ones((8, 8), np.float32)
    x[0, :4] = [np.inf, -np.inf, np.nan, 0]
    data, scale = quantize_kernel(8, 2, element, 1)(x)
    emax = {"f8E4M3FN": 8, "f8E5M2": 15}[element]
    assert scale.view(np.uint8).tolist() == [[255 - emax, 127 - emax]]
    found = [values(element)[lane(unsigned(data)[0, 0], q, element)] for q in range(4)]
    largest = {"f8E4M3FN": 448.0, "f8E5M2": 57344.0}[element]
    np.testing.assert_array_equal(found, [largest, -largest, np.nan, 0])
    expected = neuron_reference.quantize_mx(x, element)
    np.testing.assert_array_equal(scale.view(np.uint8), expected[1])
    assert (values(element)[data.view(np.uint8)] == values(element)[expected[0].view(np.uint8)])[1:].all()


# The product


def matmul_kernel(shape, types, scale_rows, options, weights="stationary", pipeline=VECTORS):
    """Return the kernel of a product of [P, M] and [P, N] containers, with scale tiles of so many partitions."""
    partitions, rows, columns = shape
    operands = [
        tensor(rows, columns, element="f32"),
        x4(partitions, rows, element=types[0]),
        x4(partitions, columns, element=types[1]),
        tensor(scale_rows[0], rows, element="ui8"),
        tensor(scale_rows[1], columns, element="ui8"),
    ]
    attributes = ", ".join([f'weights = "{weights}"', *options])
    return compiled(
        f"""func.func @f(%d: {operands[0]}, %a: {operands[1]}, %b: {operands[2]}, %as: {operands[3]}, %bs: {operands[4]}) -> {operands[0]} {{
              %0 = mx.nc_matmul_mx %d, %a, %b, %as, %bs {{{attributes}}} : {", ".join(operands)} -> {operands[0]}
              return %0 : {operands[0]}
            }}""",
        pipeline,
    )


# Elements from 1 to 3, or any FP4, and scales from 1/2 to 2: every sum is exact in f32, in any order.
EXACT = {"f4E2M1FN": (0, 7), "f8E4M3FN": (0x38, 0x44), "f8E5M2": (0x3C, 0x42)}

CASES = [
    # Partitions, stationary and moving columns; element types; partitions of the scale tiles; offsets; weights.
    ((8, 2, 1), ("f4E2M1FN", "f8E4M3FN"), (1, 1), (0, 0), "stationary"),
    ((32, 6, 5), ("f8E5M2", "f4E2M1FN"), (4, 32), (0, 12), "moving"),
    ((48, 4, 7), ("f8E4M3FN", "f8E5M2"), (48, 128), (4, 8), "stationary"),
    ((64, 18, 16), ("f8E4M3FN", "f8E4M3FN"), (64, 128), (0, 4), "moving"),
    ((128, 10, 16), ("f4E2M1FN", "f8E5M2"), (128, 128), (12, 0), "stationary"),
]


def exact_operands(rng, shape, types):
    partitions, rows, columns = shape
    sides = [random_containers(rng, (partitions, n), t, EXACT[t]) for n, t in zip((rows, columns), types, strict=True)]
    scales = [rng.integers(126, 129, (partitions // 8, n), np.uint8) for n in (rows, columns)]
    return sides, scales


def tiles_of(rng, scales, scale_rows, offsets, holes):
    """Return scale tiles with NaN codes, or any bytes, in the holes; dense scales as they are."""
    return [
        dense
        if len(dense) == rows
        else spread(dense, rows, offset, NAN if holes == "nan" else rng.integers(0, 256, (rows, dense.shape[1])))
        for dense, rows, offset in zip(scales, scale_rows, offsets, strict=True)
    ]


@pytest.mark.parametrize("holes", ["nan", "bytes"])
@pytest.mark.parametrize(("shape", "types", "scale_rows", "offsets", "weights"), CASES)
def test_nc_matmul_mx_is_exact_and_reads_no_hole(shape, types, scale_rows, offsets, weights, holes):
    rng = np.random.default_rng(len(holes))
    sides, scales = exact_operands(rng, shape, types)
    tiles = tiles_of(rng, scales, scale_rows, offsets, holes)
    expected = product(sides[0], types[0], sides[1], types[1], *scales)
    options = [f"stationary_scale_offset = {offsets[0]}", f"moving_scale_offset = {offsets[1]}"]
    dst = rng.integers(-100, 100, expected.shape).astype(np.float32)
    accumulate = weights == "stationary"
    kernel = matmul_kernel(shape, types, scale_rows, options + ["accumulate"] * accumulate, weights)
    np.testing.assert_array_equal(kernel(dst, *sides, *tiles), expected + dst * accumulate)
    reference = neuron_reference.nc_matmul_mx(
        dst, *sides, *tiles, stationary_type=types[0], moving_type=types[1], stationary_offset=offsets[0],
        moving_offset=offsets[1], accumulate=True,
    )  # fmt: skip
    np.testing.assert_array_equal(reference, expected + dst)


def test_loops_give_the_same():
    shape, types, scale_rows, offsets, weights = CASES[2]
    sides, scales = exact_operands(np.random.default_rng(3), shape, types)
    tiles = tiles_of(None, scales, scale_rows, offsets, "nan")
    options = [f"stationary_scale_offset = {offsets[0]}", f"moving_scale_offset = {offsets[1]}"]
    dst = np.zeros(shape[1:], np.float32)
    expected = product(sides[0], types[0], sides[1], types[1], *scales)
    kernel = matmul_kernel(shape, types, scale_rows, options, weights, LOOPS)
    np.testing.assert_array_equal(kernel(dst, *sides, *tiles), expected)


def test_what_dst_held_does_not_reach_a_product_that_replaces_it():
    shape, types, *_ = CASES[0]
    sides, scales = exact_operands(np.random.default_rng(4), shape, types)
    kernel = matmul_kernel(shape, types, (1, 1), [])
    out = kernel(np.full(shape[1:], np.nan, np.float32), *sides, *scales)
    np.testing.assert_array_equal(out, product(sides[0], types[0], sides[1], types[1], *scales))


def test_any_elements_and_scales_within_the_error_of_f32_sums():
    shape, types = (128, 32, 64), ("f8E4M3FN", "f8E5M2")
    rng = np.random.default_rng(5)
    sides = [random_containers(rng, (128, n), t) for n, t in zip(shape[1:], types, strict=True)]
    scales = [rng.integers(100, 150, (16, n), np.uint8) for n in shape[1:]]
    tiles = tiles_of(rng, scales, (128, 128), (0, 0), "nan")
    dst = np.zeros(shape[1:], np.float32)
    out = matmul_kernel(shape, types, (128, 128), [])(dst, *sides, *tiles)
    exact = neuron_reference.nc_matmul_mx(dst, *sides, *tiles, stationary_type=types[0], moving_type=types[1])
    magnitudes = [side & 0x7F7F7F7F for side in sides]
    bound = neuron_reference.nc_matmul_mx(dst, *magnitudes, *tiles, stationary_type=types[0], moving_type=types[1])
    assert (np.abs(out - exact) <= 512 * 2.0**-24 * bound).all()


@pytest.mark.parametrize("side", [0, 1])
def test_a_nan_scale_reaches_the_row_or_column_that_it_covers(side):
    """Row 5 of the dense scales is at partition 33."""
    shape, types = (64, 4, 6), ("f8E4M3FN", "f8E4M3FN")
    sides, scales = exact_operands(np.random.default_rng(6), shape, types)
    scales[side][5, 3] = NAN
    tiles = tiles_of(None, scales, (64, 64), (0, 0), "nan")
    assert tiles[side][33, 3] == NAN
    clean = [np.where(tile == NAN, 0, tile).astype(np.uint8) for tile in tiles]
    clean[side][33, 3] = NAN
    out = matmul_kernel(shape, types, (64, 64), [])(np.zeros(shape[1:], np.float32), *sides, *clean)
    expected = np.zeros(shape[1:], bool)
    expected[(3, slice(None)) if side == 0 else (slice(None), 3)] = True
    np.testing.assert_array_equal(np.isnan(out), expected)


def test_two_scale_tensors_share_a_tile():
    """As many as four lie side by side in each quadrant; the offset picks one."""
    shape, types = (40, 4, 4), ("f8E4M3FN", "f8E4M3FN")
    rng = np.random.default_rng(7)
    sides, scales = exact_operands(rng, shape, types)
    tile = spread(scales[0], 128, 4, NAN)
    for s in range(5):
        tile[32 * (s // 4) + s % 4 + 8] = scales[1][s]
    kernel = matmul_kernel(shape, types, (128, 128), ["stationary_scale_offset = 4", "moving_scale_offset = 8"])
    out = kernel(np.zeros(shape[1:], np.float32), *sides, tile, tile)
    np.testing.assert_array_equal(out, product(sides[0], types[0], sides[1], types[1], *scales))


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_quantize_mx_and_nc_matmul_mx_fit_together(seed):
    """Activations quantized and multiplied in one program, with the scale tile handed over as it is."""
    partitions, rows, columns = 64, 4, 3
    rng = np.random.default_rng(seed)
    x, d = tensor(partitions, 4 * columns, element="f32"), tensor(rows, columns, element="f32")
    w, ws = x4(partitions, rows, element="f4E2M1FN"), tensor(partitions, rows, element="ui8")
    q, qs = x4(partitions, columns, element="f8E4M3FN"), tensor(partitions, columns, element="ui8")
    kernel = compiled(
        f"""func.func @f(%x: {x}, %w: {w}, %ws: {ws}, %d: {d}) -> ({d}, {q}, {qs}) {{
              %0:2 = mx.quantize_mx %x : {x} -> ({q}, {qs})
              %1 = mx.nc_matmul_mx %d, %w, %0#0, %ws, %0#1 {{weights = "stationary"}} : {d}, {w}, {q}, {ws}, {qs} -> {d}
              return %1, %0#0, %0#1 : {d}, {q}, {qs}
            }}"""
    )
    activations = rng.standard_normal((partitions, 4 * columns)).astype(np.float32)
    weights = random_containers(rng, (partitions, rows), "f4E2M1FN")
    dense = rng.integers(125, 130, (partitions // 8, rows), np.uint8)
    out, data, scale = kernel(activations, weights, spread(dense, partitions, 0, NAN), np.zeros((rows, columns), "f4"))
    expected_data, expected_scale = quantized(activations, "f8E4M3FN")
    np.testing.assert_array_equal(unsigned(data), expected_data)
    left = dequantized(weights, dense, "f4E2M1FN").reshape(partitions, rows, 4)
    right = dequantized(expected_data, expected_scale, "f8E4M3FN").reshape(partitions, columns, 4)
    expected = np.einsum("kiq,kjq->ij", left, right)
    np.testing.assert_array_equal(scale.view(np.uint8), spread(expected_scale, partitions, 0, 0))
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-4)


# The API


def test_builders():
    with dialect.load(), ir.Location.unknown():
        module = ir.Module.create()
        f32, u8 = ir.F32Type.get(), ir.IntegerType.get_unsigned(8)
        arguments = [
            ir.RankedTensorType.get([32, 16], f32),
            ir.RankedTensorType.get([64, 16], f32),
            ir.RankedTensorType.get([32, 8], ir.Type.parse("!mx.x4<f4E2M1FN>")),
            ir.RankedTensorType.get([4, 8], u8),
            ir.RankedTensorType.get([8, 4], f32),
        ]
        with ir.InsertionPoint(module.body):

            @func.FuncOp.from_py_func(*arguments)
            def build(x, larger, w, ws, acc):
                data, scale = neuron_matmul_ops.quantize_mx(x, "f8E5M2", headroom=1)
                assert (str(data.type), str(scale.type)) == ("tensor<32x4x!mx.x4<f8E5M2>>", "tensor<4x4xui8>")
                _, tile = neuron_matmul_ops.quantize_mx(x, "f8E5M2", scale_partitions=64, scale_offset=8)
                assert str(tile.type) == "tensor<64x4xui8>"
                assert str(neuron_matmul_ops.quantize_mx(larger, "f8E5M2")[1].type) == "tensor<128x4xui8>"
                out = neuron_matmul_ops.nc_matmul_mx(acc, w, data, ws, tile, "stationary", True, moving_scale_offset=8)
                assert out.type == acc.type
                assert out.owner.opview.accumulate
                assert out.owner.opview.scale_offset("moving") == 8
                with pytest.raises(MxError, match="x4 containers hold"):
                    neuron_matmul_ops.quantize_mx(x, "f32")

        assert module.operation.verify()


def test_the_helpers_of_these_tests():
    """Lane 0 is lowest; the exponent of 1 is 127, of subnormals 0."""
    assert packed_lanes([1, 2, 3, 4], "f4E2M1FN") == 0x4321
    assert lane(0x4321, 3, "f4E2M1FN") == 4
    data, scale = quantized(np.full((8, 4), 1.0, np.float32), "f8E4M3FN")
    assert (scale[0, 0], values("f8E4M3FN")[data[0, 0] & 0xFF]) == (127 - 8, 256.0)
    assert quantized(np.full((8, 4), 2.0**-127, np.float32), "f8E4M3FN")[1][0, 0] == 0
