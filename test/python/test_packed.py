"""Packed codes against the sentences that define them, bit by bit."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mx_dialect import MxError
from mx_dialect.layouts import packed

every_width = pytest.mark.parametrize("bits", [4, 6, 8])


def bits_of(values, bits):
    """Return the bits of integers, the lowest of each first."""
    return [value >> i & 1 for value in values for i in range(bits)]


def test_fp4_has_the_even_index_in_the_low_nibble():
    assert packed.pack(np.array([0x1, 0x2, 0xF, 0x0], np.uint8), 4).tolist() == [0x21, 0x0F]


def test_fp6_has_code_i_at_bits_6i_to_6i_plus_5_of_three_bytes():
    codes = np.array([0b000001, 0b000011, 0b000111, 0b101111], np.uint8)
    assert packed.pack(codes, 6).tolist() == [0b11_000001, 0b0111_0000, 0b101111_00]


def test_bytes_are_as_they_are():
    codes = np.arange(256, dtype=np.uint8)
    np.testing.assert_array_equal(packed.pack(codes, 8), codes)
    np.testing.assert_array_equal(packed.unpack(codes, 8), codes)


@given(st.data(), st.sampled_from([4, 6, 8]), st.lists(st.integers(0, 3), max_size=2), st.integers(0, 4))
def test_rows_are_strings_of_bits(data, bits, rows, groups):
    size = packed.group(bits)
    shape = (*rows, groups * size.codes)
    count = int(np.prod(shape))
    codes = np.array(data.draw(st.lists(st.integers(0, (1 << bits) - 1), min_size=count, max_size=count)), np.uint8)
    codes = codes.reshape(shape)
    result = packed.pack(codes, bits)
    assert (result.shape, result.dtype) == ((*rows, groups * size.bytes), np.uint8)
    for row in np.ndindex(*rows):
        assert bits_of(result[row].tolist(), 8) == bits_of(codes[row].tolist(), bits)
    again = packed.unpack(result, bits)
    assert again.dtype == np.uint8
    np.testing.assert_array_equal(again, codes)


@every_width
def test_views(bits):
    codes = np.random.default_rng(0).integers(0, 1 << bits, (24, 48), dtype=np.uint8)
    for view in (codes.T, codes[::-1, ::-1], codes[:, ::2]):
        np.testing.assert_array_equal(packed.pack(view, bits), packed.pack(view.copy(), bits))
        np.testing.assert_array_equal(packed.unpack(packed.pack(view, bits)[::-1], bits), view[::-1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: packed.pack(np.zeros((4, 3), np.uint8), 4), "multiple of 2, but the shape is (4, 3)"),
        (lambda: packed.pack(np.zeros(6, np.uint8), 6), "multiple of 4, but the shape is (6,)"),
        (lambda: packed.unpack(np.zeros(4, np.uint8), 6), "packed 6-bit codes must be a multiple of 3"),
        (lambda: packed.pack(np.full(2, 16, np.uint8), 4), "byte 0x10 is no code of 4 bits"),
        (lambda: packed.pack(np.zeros(4, np.int8), 4), "must have dtype uint8, not int8"),
        (lambda: packed.unpack(np.zeros((), np.uint8), 4), "must have rank 1 or more"),
    ],
)
def test_refused(call, message):
    with pytest.raises(MxError, match=re.escape(message)):
        call()
