"""Codes and containers that the tests of x4 layouts share."""

import numpy as np

# Bits of a lane and dtype of a container.
X4_TYPES = {"f4E2M1FN": (4, np.uint16), "f8E4M3FN": (8, np.uint32), "f8E5M2": (8, np.uint32)}


def random_codes(shape, element_type, seed=0):
    return np.random.default_rng(seed).integers(0, 1 << X4_TYPES[element_type][0], shape, dtype=np.uint8)


def random_bytes(shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def zeros(*shape, dtype=np.uint8):
    return np.zeros(shape, dtype)


def lane(container, q, bits):
    """Return lane q of one container: bits q * bits to q * bits + bits - 1."""
    return int(container) >> q * bits & (1 << bits) - 1
