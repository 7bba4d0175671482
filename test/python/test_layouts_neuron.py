"""x4 containers and the rows of packed weights, against loops over their definitions."""

import re

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from neuron_arrays import X4_TYPES, lane, random_codes

from mx_dialect import MxError, reference
from mx_dialect._mlir import ir
from mx_dialect.layouts import neuron, neuron_scales, neuron_weights
from mx_dialect.layouts.neuron import MX_CONTIGUOUS, MX_INTERLEAVED

x4_types = st.sampled_from(list(X4_TYPES))
every_type = pytest.mark.parametrize("element_type", list(X4_TYPES))


def test_lane_0_is_lowest():
    assert neuron.pack_x4(np.array([1, 2, 3, 4], np.uint8), "f4E2M1FN").tolist() == [0x4321]
    assert neuron.pack_x4(np.array([1, 2, 3, 0xF4], np.uint8), "f8E5M2").tolist() == [0xF4030201]


@given(x4_types, st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.integers(-3, 2), st.integers(0, 99))
def test_pack_x4(element_type, x, y, z, axis, seed):
    shape = [x, y, z]
    shape[axis] *= 4
    bits, dtype = X4_TYPES[element_type]
    codes = random_codes(shape, element_type, seed)
    containers = neuron.pack_x4(codes, element_type, axis)
    assert (containers.shape, containers.dtype) == ((x, y, z), dtype)
    for place in np.ndindex(x, y, z):
        for q in range(4):
            source = list(place)
            source[axis] = 4 * place[axis] + q
            assert lane(containers[place], q, bits) == codes[tuple(source)]
    again = neuron.unpack_x4(containers, axis)
    assert again.dtype == np.uint8
    np.testing.assert_array_equal(again, codes)
    np.testing.assert_array_equal(neuron.unpack_x4(containers.view(f"i{dtype().itemsize}"), axis), codes)


@every_type
def test_pack_x4_of_an_element_dtype(element_type):
    codes = random_codes((4, 8), element_type)
    elements = codes.view(reference.numpy_dtype(element_type))
    np.testing.assert_array_equal(neuron.pack_x4(elements), neuron.pack_x4(codes, element_type))


def test_fp8_containers_are_views_where_memory_allows():
    codes = random_codes((8, 16), "f8E4M3FN")
    for array, axis, is_view in ((codes, 1, True), (codes.T, 0, True), (codes[::2], 1, True), (codes, 0, False)):
        containers = neuron.pack_x4(array, "f8E4M3FN", axis)
        assert np.shares_memory(containers, codes) == is_view
        assert np.shares_memory(neuron.unpack_x4(containers, axis), containers) == is_view
        np.testing.assert_array_equal(neuron.unpack_x4(containers, axis), array)


@pytest.mark.parametrize("offset", [1, 2, 4])
def test_unaligned_fp8_is_copied(offset):
    codes = np.zeros(offset + 16, np.uint8)[offset:]
    containers = neuron.pack_x4(codes, "f8E5M2")
    assert containers.flags.aligned
    assert np.shares_memory(containers, codes) == (offset == 4)


@pytest.mark.parametrize("view", [lambda x: x.T, lambda x: x[::-1, ::-1], lambda x: x[:, ::2], np.asfortranarray])
@every_type
def test_pack_x4_of_views(view, element_type):
    codes = view(random_codes((16, 32), element_type))
    for axis in (0, 1):
        containers = neuron.pack_x4(codes, element_type, axis)
        np.testing.assert_array_equal(containers, neuron.pack_x4(codes.copy(), element_type, axis))
        np.testing.assert_array_equal(
            neuron.unpack_x4(containers[::-1], axis), neuron.unpack_x4(containers[::-1].copy(), axis)
        )


def test_packed_bytes_are_containers():
    codes = random_codes((3, 16), "f4E2M1FN")
    data = codes[:, ::2] | codes[:, 1::2] << 4
    containers = neuron.containers_of_packed(data)
    np.testing.assert_array_equal(containers, neuron.pack_x4(codes, "f4E2M1FN"))
    again = neuron.packed_of_containers(containers)
    np.testing.assert_array_equal(again, data)
    assert np.shares_memory(containers, data)
    assert np.shares_memory(again, data)


def test_container_element():
    for dtype in (np.uint16, np.int16):
        assert neuron.container_element(np.dtype(dtype)) == "f4E2M1FN"
    for dtype in (np.uint32, np.int32):
        assert neuron.container_element(np.dtype(dtype)) == "f8E4M3FN"
        assert neuron.container_element(np.dtype(dtype), "f8E5M2") == "f8E5M2"
    for dtype in (np.float16, np.float32, np.uint8, np.int64, ml_dtypes.bfloat16):
        assert neuron.container_element(np.dtype(dtype)) is None
        assert neuron.container_element(np.dtype(dtype), "f8E5M2") is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: neuron.pack_x4(np.zeros(6, np.uint8), "f8E5M2"),
            "length of axis 0 of elements to put in x4 containers must be a multiple of 4, but is 6",
        ),
        (lambda: neuron.pack_x4(np.zeros(4, np.uint8)), "uint8 codes need element_type"),
        (lambda: neuron.pack_x4(np.zeros(4, np.float32)), "dtype float32 holds no MX elements"),
        (lambda: neuron.pack_x4(np.zeros(4, np.int16), "f8E5M2"), "or uint8, not int16"),
        (lambda: neuron.pack_x4(np.zeros(4, np.int8)), "x4 containers hold f4E2M1FN, f8E4M3FN, f8E5M2, not i8"),
        (lambda: neuron.pack_x4(np.zeros(4, np.uint8), "f6E2M3FN"), "not f6E2M3FN"),
        (lambda: neuron.pack_x4(np.full(4, 16, np.uint8), "f4E2M1FN"), "byte 0x10 is no code"),
        (lambda: neuron.pack_x4(np.zeros(4, np.uint8), "f8E5M2", 1), "axis 1 is out of range for shape (4,)"),
        (lambda: neuron.pack_x4(np.zeros((), np.uint8), "f8E5M2"), "axis -1 is out of range for shape ()"),
        (
            lambda: neuron.unpack_x4(np.zeros(4, np.uint8)),
            "x4 containers are uint16 or int16 for FP4, uint32 or int32 for FP8, not uint8",
        ),
        (lambda: neuron.unpack_x4(np.zeros(4, ">u4")), "not >u4"),
        (lambda: neuron.unpack_x4(np.zeros(4, np.uint16), -2), "axis -2 is out of range"),
        (lambda: neuron.containers_of_packed(np.zeros((2, 3), np.uint8)), "last axis of shape (2, 3) is odd"),
        (
            lambda: neuron.containers_of_packed(np.zeros(2, np.int8)),
            "a uint8 array of rank 1 or more, not int8 of rank 1",
        ),
        (lambda: neuron.packed_of_containers(np.zeros(2, np.uint32)), "dtype uint16 or int16, not uint32"),
        (lambda: neuron.packed_of_containers(np.zeros((), np.uint16)), "out of range"),
        (lambda: neuron.container_element(np.dtype(np.uint16), "f8E5M2"), "only casts of the same width exist"),
        (
            lambda: neuron.container_element(np.dtype(np.int32), "f4E2M1FN"),
            "int32 containers have lanes of 8 bits, but f4E2M1FN has 4",
        ),
        (lambda: neuron.container_element(np.dtype(np.int32), "i8"), "x4 containers hold"),
    ],
)
def test_containers_refused(call, message):
    with pytest.raises(MxError, match=re.escape(message)):
        call()


def test_interleaved_order_of_8_and_16_rows():
    assert neuron.interleaved_order(8).tolist() == [0, 1, 4, 5, 2, 3, 6, 7]
    assert neuron.interleaved_order(16).tolist() == [0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15]


@given(st.integers(0, 300).map(lambda quarter: 4 * quarter))
def test_interleaved_order(rows):
    order, inverse = neuron.interleaved_order(rows), neuron.interleaved_inverse(rows)
    np.testing.assert_array_equal(order, np.arange(rows).reshape(2, rows // 4, 2).swapaxes(0, 1).reshape(-1))
    np.testing.assert_array_equal(order[inverse], np.arange(rows))
    np.testing.assert_array_equal(inverse[order], np.arange(rows))
    for position in range(rows):
        row = neuron.interleaved_row(position // 4, position % 4, rows)
        assert row == order[position]
        assert neuron.interleaved_position(row, rows) == position


def test_interleaved_order_is_no_involution():
    assert not np.array_equal(neuron.interleaved_order(16), neuron.interleaved_inverse(16))


@pytest.mark.parametrize("rows", [32, 64, 512])
def test_interleaved_scale_groups(rows):
    order = neuron.interleaved_order(rows)
    for g in range(rows // 32):
        first = [*range(16 * g, 16 * g + 16)]
        assert sorted(order[32 * g : 32 * g + 32]) == first + [rows // 2 + row for row in first]


@given(x4_types, st.lists(st.integers(0, 2), max_size=1), st.integers(0, 5), st.integers(0, 4))
def test_pack_weight(element_type, batch, quarter, columns):
    bits, dtype = X4_TYPES[element_type]
    rows = 4 * quarter
    weight = random_codes((*batch, rows, columns), element_type)
    for layout in neuron.WEIGHT_LAYOUTS:
        containers = neuron.pack_weight(weight, layout, element_type)
        assert (containers.shape, containers.dtype) == ((*batch, quarter, columns), dtype)
        for *outer, r, i in np.ndindex(containers.shape):
            for a in range(2):
                for b in range(2):
                    row = a * (rows // 2) + 2 * r + b if layout == MX_INTERLEAVED else 4 * r + 2 * a + b
                    assert lane(containers[(*outer, r, i)], 2 * a + b, bits) == weight[(*outer, row, i)]
                    assert neuron.weight_row(layout, r, 2 * a + b, rows) == row
        np.testing.assert_array_equal(neuron.unpack_weight(containers, layout), weight)


def test_a_transposed_fp8_weight_is_not_copied():
    stored = random_codes((3, 16), "f8E4M3FN")
    containers = neuron.pack_weight(stored.T, MX_CONTIGUOUS, "f8E4M3FN")
    assert np.shares_memory(containers, stored)
    assert np.shares_memory(neuron.unpack_weight(containers, MX_CONTIGUOUS), stored)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: neuron.pack_weight(np.zeros((6, 2), np.uint8), MX_INTERLEAVED, "f8E5M2"),
            "number of rows of a weight must be a multiple of 4, but is 6",
        ),
        (
            lambda: neuron.pack_weight(np.zeros((6, 2), np.uint8), MX_CONTIGUOUS, "f8E5M2"),
            "must be a multiple of 4, but is 6",
        ),
        (
            lambda: neuron.pack_weight(np.zeros(8, np.uint8), MX_CONTIGUOUS, "f8E5M2"),
            "a weight has rank 2 or more, [..., H, I], but the shape is (8,)",
        ),
        (lambda: neuron.unpack_weight(np.zeros(8, np.uint16), MX_CONTIGUOUS), "rank 2 or more"),
        (
            lambda: neuron.pack_weight(np.zeros((8, 2), np.uint8), "CONTIGUOUS", "f8E5M2"),
            "unknown weight layout 'CONTIGUOUS'; expected one of MX_CONTIGUOUS, MX_INTERLEAVED",
        ),
        (lambda: neuron.unpack_weight(np.zeros((8, 2), np.uint16), ""), "unknown weight layout ''"),
        (lambda: neuron.weight_row("X", 0, 0, 8), "unknown weight layout 'X'"),
        (lambda: neuron.interleaved_inverse(10), "but is 10"),
        (lambda: neuron.interleaved_order(-4), "but is -4"),
    ],
)
def test_weights_refused(call, message):
    with pytest.raises(MxError, match=re.escape(message)):
        call()


def test_formulas_take_affine_expressions():
    at = {"d0": 5, "d1": 3}
    formulas = [
        (lambda r, q: neuron.interleaved_row(r, q, 64), 1 * 32 + 2 * 5 + 1),
        (lambda r, q: neuron.interleaved_position(r * 8 + q, 64), 4 * (11 // 2) + 2 * 1 + 1),
        (lambda r, q: neuron.contiguous_row(r, q), 4 * 5 + 3),
        (lambda r, q: neuron.lane_shift(q, 8) + r, 24 + 5),
        (lambda r, q: neuron_scales.scale_partition(r * 2 + q, 4), 32 * (13 // 4) + 13 % 4 + 4),
        (lambda r, q: neuron_scales.scale_row(r * 20 + q), 4 * (103 // 32) + 103 % 32),
        (lambda r, q: neuron_scales.data_scale_partition(r * 20 + q, 8), 32 * 3 + (103 % 32) // 8 + 8),
        (lambda r, q: neuron_scales.expert_row(r, q, 16), 5 * 16 + 3),
        (lambda r, q: neuron_weights.k_index(r, 2, q), 512 * 2 + 4 * 5 + 3),
        (lambda r, q: neuron_weights.hidden_position(r * 200 + q, 1024), 3 * 256 + 1003 // 4),
        (lambda r, q: neuron_weights.hidden_feature(r * 200 + q, 1024), 1003 % 256 * 4 + 1003 // 256),
    ]
    with ir.Context():
        dims = [ir.AffineExpr.get_dim(i) for i in range(2)]
        for formula, expected in formulas:
            assert formula(*at.values()) == expected
            constants = [ir.AffineExpr.get_constant(value) for value in at.values()]
            folded = ir.AffineExpr.simplify_affine_expr(formula(*dims).compose(ir.AffineMap.get(0, 0, constants)), 0, 0)
            assert str(folded) == str(expected)
