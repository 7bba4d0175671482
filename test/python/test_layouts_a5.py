"""Layouts of scales for the matrix engine: packing against the byte formulas, written out as loops."""

import operator
import re

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mx_dialect.diagnostics import MxError
from mx_dialect.layouts.a5 import (
    BLOCKED_RANK,
    BOX_BYTES,
    MX_A_ZZ,
    MX_B_NN,
    SCALE_LAYOUTS,
    blocked_index,
    blocked_strides,
    pack,
    unpack,
)

LAYOUTS = pytest.mark.parametrize("layout", SCALE_LAYOUTS.values(), ids=lambda layout: layout.name)
BOXES = st.integers(0, 5)


def byte_of(layout, groups, row, column):
    """Return the byte of a scale, from the definition of the two layouts."""
    if layout is MX_A_ZZ:
        m, g = row, column
        return ((m // 16) * (groups // 2) + g // 2) * 32 + (m % 16) * 2 + g % 2
    g, n = row, column
    return ((n // 16) * (groups // 2) + g // 2) * 32 + (n % 16) * 2 + g % 2


def logical(layout, blocks, groups, seed=0):
    """Return random scales of so many boxes along either dimension."""
    shape = (blocks * 16, groups * 2) if layout is MX_A_ZZ else (groups * 2, blocks * 16)
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def in_memory(layout, scales):
    """Return the bytes of scales in memory, one by one."""
    groups = scales.shape[1 if layout is MX_A_ZZ else 0]
    data = np.zeros(scales.size, np.uint8)
    for row in range(scales.shape[0]):
        for column in range(scales.shape[1]):
            data[byte_of(layout, groups, row, column)] = scales[row, column]
    return data


@LAYOUTS
@settings(max_examples=30)
@given(blocks=BOXES, groups=BOXES, seed=st.integers(0, 99))
def test_packing_puts_every_byte_where_the_formula_says(layout, blocks, groups, seed):
    scales = logical(layout, blocks, groups, seed)
    packed = pack(scales, layout)
    assert packed.shape == (1, blocks, groups, 16, 2)
    assert packed.flags.c_contiguous
    assert packed.tobytes() == in_memory(layout, scales).tobytes()
    back = unpack(packed, layout)
    assert back.flags.c_contiguous
    np.testing.assert_array_equal(back, scales)


@LAYOUTS
@settings(max_examples=30)
@given(blocks=st.integers(1, 5), groups=st.integers(1, 5))
def test_shapes_offsets_and_strides(layout, blocks, groups):
    scales = logical(layout, blocks, groups)
    blocked = layout.blocked_shape(scales.shape)
    assert blocked == (1, blocks, groups, 16, 2)
    assert len(blocked) == BLOCKED_RANK
    assert layout.logical_shape(blocked) == scales.shape
    assert blocked_strides(blocked) == np.zeros(blocked, np.uint8).strides
    assert blocked_strides(blocked) == (blocks * groups * BOX_BYTES, groups * BOX_BYTES, BOX_BYTES, 2, 1)
    rows, columns = np.indices(scales.shape)
    offsets = layout.byte_offset(scales.shape, rows, columns)
    expected = [
        [byte_of(layout, 2 * groups, row, column) for column in range(scales.shape[1])]
        for row in range(scales.shape[0])
    ]
    np.testing.assert_array_equal(offsets, expected)
    assert sorted(offsets.ravel()) == list(range(scales.size))
    index = blocked_index(*layout.split((rows, columns)), operator.floordiv, operator.mod)
    np.testing.assert_array_equal(
        sum(i * stride for i, stride in zip(index, blocked_strides(blocked), strict=True)), offsets
    )
    assert layout.byte_offset(scales.shape, 1, 1) == byte_of(layout, 2 * groups, 1, 1)


def test_a_box_of_either_layout_by_hand():
    rows = np.arange(32, dtype=np.uint8).reshape(16, 2)
    assert pack(rows, MX_A_ZZ).tobytes() == rows.tobytes()
    columns = np.arange(32, dtype=np.uint8).reshape(2, 16)
    assert list(pack(columns, MX_B_NN).ravel()[:6]) == [0, 16, 1, 17, 2, 18]
    # Boxes follow each other along the groups first.
    wide = np.zeros((32, 4), np.uint8)
    wide[0, 2], wide[16, 0] = 1, 2
    assert [int(np.flatnonzero(pack(wide, MX_A_ZZ).ravel() == n)[0]) for n in (1, 2)] == [32, 64]


@LAYOUTS
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, ml_dtypes.float8_e8m0fnu])
def test_any_array_of_bytes_is_packed(layout, dtype):
    scales = logical(layout, 3, 2).view(dtype)
    packed = pack(scales, layout)
    assert packed.dtype == dtype
    assert unpack(packed, layout).tobytes() == scales.tobytes()


@LAYOUTS
def test_strided_and_read_only_arrays_are_packed(layout):
    scales = logical(layout, 2, 3)
    padded = np.zeros((2 * scales.shape[0], 2 * scales.shape[1]), np.uint8)
    strided = padded[::-2, ::2]
    strided[...] = scales
    strided.flags.writeable = False
    packed = pack(strided, layout)
    assert packed.tobytes() == pack(scales, layout).tobytes()
    holes = np.zeros((1, 4, 3, 16, 2), np.uint8)[:, ::2]
    holes[...] = packed
    np.testing.assert_array_equal(unpack(holes, layout), scales)


def test_packing_leaves_its_input_alone():
    scales = logical(MX_A_ZZ, 1, 2)
    packed = pack(scales, MX_A_ZZ)
    before = scales.copy()
    packed[...] = 0
    np.testing.assert_array_equal(scales, before)


@pytest.mark.parametrize(
    ("layout", "shape"), [(MX_A_ZZ, (24, 2)), (MX_A_ZZ, (16, 3)), (MX_B_NN, (3, 16)), (MX_B_NN, (2, 8))]
)
def test_extents_that_are_not_whole_boxes(layout, shape):
    message = f"{layout.name} needs a block dimension that is a multiple of 16 and a group dimension that is a multiple of 2, but the shape is {shape}"
    with pytest.raises(MxError, match=re.escape(message)):
        pack(np.zeros(shape, np.uint8), layout)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((16, 2), np.uint16), "scales to pack must be a rank-2 array of bytes, not rank 2 of uint16"),
        (np.zeros(32, np.uint8), "scales to pack must be a rank-2 array of bytes, not rank 1 of uint8"),
        (np.zeros((1, 16, 2), np.uint8), "scales to pack must be a rank-2 array of bytes, not rank 3 of uint8"),
    ],
)
def test_arrays_that_cannot_be_packed(array, message):
    with pytest.raises(MxError, match=re.escape(message)):
        pack(array, MX_A_ZZ)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((1, 1, 16, 2), np.uint8), "blocked scales must be a rank-5 array of bytes, not rank 4 of uint8"),
        (
            np.zeros((1, 1, 1, 16, 2), np.float32),
            "blocked scales must be a rank-5 array of bytes, not rank 5 of float32",
        ),
        (np.zeros((2, 1, 1, 16, 2), np.uint8), "must have shape [1, X / 16, G / 2, 16, 2], but have (2, 1, 1, 16, 2)"),
        (np.zeros((1, 1, 1, 2, 16), np.uint8), "must have shape [1, X / 16, G / 2, 16, 2], but have (1, 1, 1, 2, 16)"),
    ],
)
def test_arrays_that_cannot_be_unpacked(array, message):
    with pytest.raises(MxError, match=re.escape(message)):
        unpack(array, MX_B_NN)
