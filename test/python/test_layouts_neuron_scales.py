"""Quadrant scales and the expert gather, against loops over their definitions."""

import re

import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from neuron_arrays import random_bytes

from mx_dialect import MxError
from mx_dialect.layouts import neuron_scales


def test_scale_partitions():
    assert [neuron_scales.scale_partition(s) for s in range(16)] == [32 * (s // 4) + s % 4 for s in range(16)]
    assert neuron_scales.scale_partition(5, 12) == 32 + 1 + 12
    for p in range(128):
        assert neuron_scales.data_scale_partition(p) == 32 * (p // 32) + (p % 32) // 8
        if p % 32 < 4:
            assert neuron_scales.scale_row(p) == 4 * (p // 32) + p % 32
            assert neuron_scales.scale_partition(neuron_scales.scale_row(p)) == p


@given(st.integers(0, 16), st.lists(st.integers(0, 3), max_size=2), st.sampled_from([0, 4, 8, 12]), st.integers(0, 255))
def test_spread_scales(rows, free, offset, fill):
    dense = random_bytes((rows, *free))
    tile = neuron_scales.spread_scales(dense, 128, offset, fill)
    expected = np.full((128, *free), fill, np.uint8)
    for s in range(rows):
        expected[32 * (s // 4) + s % 4 + offset] = dense[s]
    np.testing.assert_array_equal(tile, expected)
    assert tile.dtype == np.uint8
    np.testing.assert_array_equal(neuron_scales.dense_scales(tile, rows, offset), dense)


@given(st.integers(1, 16).map(lambda rows: 8 * rows))
def test_every_partition_of_containers_finds_its_scale(partitions):
    tile = neuron_scales.spread_scales(np.arange(partitions // 8, dtype=np.uint8), fill=255)
    assert len(tile) == partitions
    for p in range(partitions):
        assert tile[neuron_scales.data_scale_partition(p)] == p // 8


def test_four_scale_tensors_share_a_tile():
    tensors = [random_bytes((16, 3), seed) for seed in range(4)]
    tile = np.zeros((128, 3), ml_dtypes.float8_e8m0fnu)
    for tensor, offset in zip(tensors, (0, 4, 8, 12), strict=True):
        neuron_scales.write_scales(tile, tensor, offset)
    for tensor, offset in zip(tensors, (0, 4, 8, 12), strict=True):
        np.testing.assert_array_equal(neuron_scales.dense_scales(tile, 16, offset), tensor)
    assert not tile.view(np.uint8).reshape(4, 32, 3)[:, 16:].any()


def test_dense_scales_of_one_quadrant_are_a_tile():
    dense = random_bytes((4, 5)).view(ml_dtypes.float8_e8m0fnu)
    again = neuron_scales.dense_scales(dense, 4)
    np.testing.assert_array_equal(again, dense.view(np.uint8))
    assert np.shares_memory(again, dense)


def test_qkv_scale_tiles():
    dense = random_bytes((48, 5))
    tiles = neuron_scales.qkv_scale_tiles(dense, fill=255)
    assert tiles.shape == (3, 128, 5)
    expected = np.full_like(tiles, 255)
    for t in range(3):
        for quad in range(4):
            for j in range(4):
                expected[t, 32 * quad + j] = dense[16 * t + 4 * quad + j]
    np.testing.assert_array_equal(tiles, expected)
    np.testing.assert_array_equal(neuron_scales.qkv_dense_scales(tiles), dense)


def test_expert_index_examples():
    for arguments, entries in (
        ((0, 16, 4), {32 * q + j: 4 * q + j for q in range(4) for j in range(4)}),
        ((2, 6, 1, 2), {0: 12, 1: 13, 2: 14, 3: 15, 32: 16, 33: 17}),
        ((1, 1, 0, 1), {0: 1}),
    ):
        index = neuron_scales.expert_index(*arguments)
        assert (index.dtype, index.shape) == (np.int32, (128,))
        assert {p: int(row) for p, row in enumerate(index) if row != -1} == entries


@given(st.integers(0, 1000), st.integers(0, 4), st.integers(0, 3), st.integers(0, 2))
def test_expert_index(expert, full, remaining, unused):
    quadrants = full + (remaining > 0)
    assume(quadrants <= 4)
    scale_rows = 4 * full + remaining + unused
    expected = np.full(128, -1)
    for q in range(quadrants):
        for j in range(4):
            if q < full or j < remaining:
                expected[32 * q + j] = expert * scale_rows + 4 * q + j
    np.testing.assert_array_equal(neuron_scales.expert_index(expert, scale_rows, full, remaining), expected)


@pytest.mark.parametrize("partitions", [8, 32, 48, 128])
def test_gathered_scales_are_those_of_a_static_load(partitions):
    rows = partitions // 8
    scales = random_bytes((3, rows, 2, 5))
    for expert in range(3):
        index = neuron_scales.expert_index(expert, rows, partitions // 32, partitions % 32 // 8)
        tile = neuron_scales.gather_scales(scales, index)
        np.testing.assert_array_equal(tile, neuron_scales.spread_scales(scales[expert], 128))


def test_gather_scales():
    scales = random_bytes((4, 6, 5)).swapaxes(0, 1)
    index = np.full(128, -1, np.int32)
    index[[0, 7, 127]] = [23, 0, 10]
    tile = neuron_scales.gather_scales(scales, index)
    folded = scales.reshape(24, 5)
    for p in range(128):
        np.testing.assert_array_equal(tile[p], folded[index[p]] if index[p] >= 0 else 0)
    assert not neuron_scales.gather_scales(np.zeros((0, 6, 5), np.uint8), np.full(128, -1, np.int32)).any()


def an_index(value):
    index = np.full(128, -1, np.int32)
    index[3] = value
    return index


SCALES = np.zeros((2, 16, 3), np.uint8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: neuron_scales.gather_scales(SCALES, an_index(32)),
            "index 32 is out of range for 32 scale rows; only -1 marks a hole",
        ),
        (lambda: neuron_scales.gather_scales(SCALES, an_index(-2)), "index -2 is out of range"),
        (lambda: neuron_scales.gather_scales(SCALES[:0], an_index(0)), "index 0 is out of range for 0 scale rows"),
        (
            lambda: neuron_scales.gather_scales(SCALES, an_index(0).astype(np.int64)),
            "128 of int32, not int64 of shape (128,)",
        ),
        (lambda: neuron_scales.gather_scales(SCALES, an_index(0)[:, None]), "not int32 of shape (128, 1)"),
        (lambda: neuron_scales.gather_scales(SCALES[0, 0], an_index(0)), "have shape [E, rows, ...], not (3,)"),
        (
            lambda: neuron_scales.gather_scales(SCALES.astype(np.int32), an_index(0)),
            "dtype float8_e8m0fnu or uint8, not int32",
        ),
        (lambda: neuron_scales.expert_index(-1, 16, 4), "expert -1 with 16 scale rows is not in the range of int32"),
        (lambda: neuron_scales.expert_index(1 << 27, 16, 4), "not in the range of int32"),
        (lambda: neuron_scales.expert_index(np.int32(1 << 28), 16, 4), "not in the range of int32"),
        (lambda: neuron_scales.expert_index(1.5, 16, 4), "an index vector is made of integers: 'float' object"),
        (lambda: neuron_scales.expert_index(0, 16, -1), "not -1 and 0"),
        (lambda: neuron_scales.expert_index(0, 16, 1, 4), "0 to 3 remaining rows, not 1 and 4"),
        (
            lambda: neuron_scales.expert_index(0, 99, 4, 1),
            "4 quadrants and 1 remaining rows need more than 4 quadrants",
        ),
        (lambda: neuron_scales.expert_index(0, 6, 1, 3), "7 scale rows are wanted of an expert that has 6"),
        (
            lambda: neuron_scales.spread_scales(SCALES[0], 64),
            "16 scale rows at partition offset 0 do not fit in a tile of 64 partitions",
        ),
        (
            lambda: neuron_scales.spread_scales(SCALES[0, :5], offset=12),
            "5 scale rows at partition offset 12 do not fit in a tile of 40 partitions",
        ),
        (lambda: neuron_scales.spread_scales(np.zeros(17, np.uint8)), "up to 128 partitions, not 136"),
        (
            lambda: neuron_scales.spread_scales(SCALES[0], 128, 2),
            "at partition offset 0, 4, 8, 12 of a quadrant, not 2",
        ),
        (lambda: neuron_scales.spread_scales(SCALES[0], fill=256), "filled with a byte, not 256"),
        (lambda: neuron_scales.spread_scales(np.zeros((), np.uint8)), "rank 1 or more"),
        (
            lambda: neuron_scales.spread_scales(np.zeros(4, ml_dtypes.float8_e4m3fn)),
            "dtype float8_e8m0fnu or uint8, not float8_e4m3fn",
        ),
        (
            lambda: neuron_scales.write_scales(np.zeros((128, 2), np.uint8), SCALES[0]),
            "scales of shape (16, 3) do not go in a tile of shape (128, 2)",
        ),
        (lambda: neuron_scales.write_scales(np.broadcast_to(np.uint8(0), (128, 3)), SCALES[0]), "read-only"),
        (
            lambda: neuron_scales.dense_scales(SCALES[0], 5),
            "5 scale rows at partition offset 0 do not fit in a tile of 16",
        ),
        (lambda: neuron_scales.dense_scales(SCALES[0], -1), "-1 scale rows"),
        (lambda: neuron_scales.dense_scales(SCALES[0], 1 << 60), "do not fit"),
        (lambda: neuron_scales.qkv_scale_tiles(SCALES[0, :15]), "[H / 32, I] with H a multiple of 512, not (15, 3)"),
        (lambda: neuron_scales.qkv_scale_tiles(SCALES), "not (2, 16, 3)"),
        (lambda: neuron_scales.qkv_scale_tiles(SCALES[0], -1), "filled with a byte, not -1"),
        (lambda: neuron_scales.qkv_dense_scales(SCALES), "[H / 512, 128, I], not (2, 16, 3)"),
    ],
)
def test_scales_refused(call, message):
    with pytest.raises(MxError, match=re.escape(message)):
        call()
