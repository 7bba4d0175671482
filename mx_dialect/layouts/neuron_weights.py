"""Weights, scales and biases of experts, as an MX kernel loads them: the summed axis lies on the partitions.

Names: E experts, H hidden and I intermediate features. A weight [E, K, N] is summed over K, H in gate and up, I in
down. K is cut into tiles of 512, four elements a container and 128 containers a tile:

    container (p, t) lane q  =  element 512t + 4p + q of K

    gate and up   [E, 128, 2, H/512, I] containers   [E, 16, 2, H/512, I] scales   [E, p_I, 2, nI512, 4] biases
    down          [E, p_I, nI512, H] containers      [E, p_I/8, nI512, H] scales   [E, H] biases, as they are

with gate first and up second, p_I = 128 and nI512 = I/512, but for I < 512 one tile of p_I = I/4. Bias (p, t, q) is
that of intermediate feature 512t + 4p + q, the one that the down weight meets in lane q of container (p, t). The last
axis of weights and scales keeps its order.

H is a multiple of 512; I is one of 512, or less than 512 and a multiple of 32; so both are multiples of 16.
"""

from typing import Any

import numpy as np

from mx_dialect.diagnostics import MxError
from mx_dialect.layouts.neuron import (
    LANES,
    Array,
    Codes,
    Index,
    container_element,
    is_container,
    pack_x4,
    quotient,
    unpack_x4,
)
from mx_dialect.layouts.neuron_scales import BLOCK_SIZE, PARTITIONS, PARTITIONS_PER_SCALE, SCALE_ROWS, scale_codes

TILE = PARTITIONS * LANES
"""Elements of the summed axis in a tile of containers."""


def k_index(partition: Index, tile: Index, lane: Index) -> Index:
    """Return the element of the summed axis in a lane of container (partition, tile)."""
    return tile * TILE + partition * LANES + lane


def hidden_position(feature: Index, hidden: int) -> Index:
    """Return where hidden feature 512t + 4p + q is stored in activations: at q * H/4 + 128t + p."""
    return feature % LANES * (hidden // LANES) + quotient(feature, LANES)


def hidden_feature(position: Index, hidden: int) -> Index:
    """Return the hidden feature stored at a position of activations; the inverse of `hidden_position`."""
    return position % (hidden // LANES) * LANES + quotient(position, hidden // LANES)


def intermediate_partitions(intermediate: int) -> int:
    """Return p_I, the partitions that I features fill."""
    return min(intermediate // LANES, PARTITIONS)


def intermediate_tiles(intermediate: int) -> int:
    """Return nI512, the number of tiles of I features."""
    return max(intermediate // TILE, 1)


def require_hidden(hidden: int) -> None:
    """Refuse a number of hidden features that is no positive multiple of 512; `MxError`."""
    if hidden < 1 or hidden % TILE:
        raise MxError(f"H must be a positive multiple of {TILE}, but is {hidden}; pad the weight with zeros")


def require_intermediate(intermediate: int) -> None:
    """Refuse a number of intermediate features that fills no whole tiles or, below 512, no whole scales; `MxError`."""
    if intermediate < 1 or intermediate % (TILE if intermediate >= TILE else BLOCK_SIZE):
        raise MxError(
            f"I must be a multiple of {TILE}, or less than {TILE} and a multiple of {BLOCK_SIZE}, but is"
            f" {intermediate}; pad the weight with zeros"
        )


def permute_hidden(activations: Array) -> Array:
    """Return activations [..., H] in the order in which they meet gate and up weights, see `hidden_position`.

    Raises:
        MxError: H is no positive multiple of 512.
    """
    hidden = _last(activations)
    return (
        activations.reshape(*activations.shape[:-1], hidden // LANES, LANES).swapaxes(-1, -2).reshape(activations.shape)
    )


def restore_hidden(permuted: Array) -> Array:
    """Return activations [..., H] in their own order; the inverse of `permute_hidden`.

    Raises:
        MxError: H is no positive multiple of 512.
    """
    hidden = _last(permuted)
    return permuted.reshape(*permuted.shape[:-1], LANES, hidden // LANES).swapaxes(-1, -2).reshape(permuted.shape)


def pack_gate_up(gate: Array, up: Array, element_type: str | None = None) -> Array:
    """Return the containers [E, 128, 2, H/512, I] of gate and up weights [E, H, I], whose blocks lie along H.

    A weight has a dtype of ml_dtypes, or is uint8, codes of `element_type`; or it is containers [E, H/4, I] already.

    Raises:
        MxError: other dtypes, element types that differ or have another width than the containers, shapes that differ,
            and the rules of H and I.
    """
    if gate.dtype != up.dtype:
        raise MxError(f"gate and up weights must have one element type, not {gate.dtype} and {up.dtype}")
    _require_gate_up(gate, up, _elements(gate), "weights")
    return _stack(_containers(gate, element_type), _containers(up, element_type), PARTITIONS)


def unpack_gate_up(weight: Array) -> tuple[Codes, Codes]:
    """Return the codes [E, H, I] of gate and of up weights in containers [E, 128, 2, H/512, I].

    Raises:
        MxError: another dtype or shape.
    """
    gate, up = _unstack(weight, PARTITIONS, "gate and up weights")
    return unpack_x4(gate, axis=1), unpack_x4(up, axis=1)


def pack_gate_up_scales(gate: Array, up: Array) -> Codes:
    """Return the scales [E, 16, 2, H/512, I] of gate and up weights, from those of each, [E, H/32, I].

    Raises:
        MxError: another dtype, shapes that differ, and the rules of H and I.
    """
    codes = scale_codes(gate), scale_codes(up)
    _require_gate_up(*codes, BLOCK_SIZE, "scales")
    return _stack(*codes, SCALE_ROWS)


def unpack_gate_up_scales(scales: Array) -> tuple[Codes, Codes]:
    """Return the scales [E, H/32, I] of gate and of up; the inverse of `pack_gate_up_scales`.

    Raises:
        MxError: another dtype or shape.
    """
    return _unstack(scale_codes(scales), SCALE_ROWS, "scales of gate and up weights")


def pack_down(weight: Array, element_type: str | None = None) -> Array:
    """Return the containers [E, p_I, nI512, H] of a down weight [E, I, H], whose blocks lie along I.

    The weight is as for `pack_gate_up`; containers [E, I/4, H] are not copied.

    Raises:
        MxError: another dtype, and the rules of H and I.
    """
    _require_down(weight, _elements(weight), "a down weight")
    containers = _containers(weight, element_type)
    return _to_partitions(containers, intermediate_partitions(containers.shape[1] * LANES))


def unpack_down(weight: Array) -> Codes:
    """Return the codes [E, I, H] of a down weight in containers [E, p_I, nI512, H].

    Raises:
        MxError: another dtype or shape.
    """
    _require_down_tiles(weight, LANES, "a down weight")
    return unpack_x4(_from_partitions(weight), axis=1)


def pack_down_scales(scales: Array) -> Codes:
    """Return the scales [E, p_I/8, nI512, H] of a down weight, a view of those given, [E, I/32, H].

    Raises:
        MxError: another dtype, and the rules of H and I.
    """
    codes = scale_codes(scales)
    _require_down(codes, BLOCK_SIZE, "scales of a down weight")
    return _to_partitions(codes, intermediate_partitions(codes.shape[1] * BLOCK_SIZE) // PARTITIONS_PER_SCALE)


def unpack_down_scales(scales: Array) -> Codes:
    """Return the scales [E, I/32, H] of a down weight; the inverse of `pack_down_scales`.

    Raises:
        MxError: another dtype or shape.
    """
    codes = scale_codes(scales)
    _require_down_tiles(codes, BLOCK_SIZE, "scales of a down weight")
    return _from_partitions(codes)


def pack_gate_up_bias(gate: Array, up: Array) -> Array:
    """Return the biases [E, p_I, 2, nI512, 4] of gate and up, from those of each, [E, I], of any dtype.

    Raises:
        MxError: shapes or dtypes that differ, and the rules of I.
    """
    _require_rank(gate, 2, "gate biases", "[E, I]")
    if gate.shape != up.shape or gate.dtype != up.dtype:
        raise MxError(
            f"gate and up biases must have one shape and dtype, not {gate.shape} of {gate.dtype} and {up.shape} of"
            f" {up.dtype}"
        )
    experts, features = gate.shape
    require_intermediate(features)
    tiled = (experts, intermediate_tiles(features), intermediate_partitions(features), LANES)
    return np.stack([bias.reshape(tiled).swapaxes(1, 2) for bias in (gate, up)], axis=2)


def unpack_gate_up_bias(bias: Array) -> tuple[Array, Array]:
    """Return the biases [E, I] of gate and of up; the inverse of `pack_gate_up_bias`.

    Raises:
        MxError: another shape.
    """
    shape = "[E, p_I, 2, nI512, 4]"
    _require_rank(bias, 5, "biases of gate and up", shape)
    experts, partitions, pair, tiles, lanes = bias.shape
    features = partitions * tiles * lanes
    if pair != 2 or lanes != LANES:
        raise MxError(f"biases of gate and up have shape {shape}, not {bias.shape}")
    _require_tiling(partitions, tiles, features, bias.shape)
    gate, up = (bias[:, :, which].swapaxes(1, 2).reshape(experts, features) for which in range(2))
    return gate, up


def _last(activations: Array) -> int:
    """Return the last extent, H, checked."""
    if not activations.ndim:
        raise MxError("activations must have rank 1 or more")
    require_hidden(activations.shape[-1])
    return activations.shape[-1]


def _elements(weight: Array) -> int:
    """Return how many elements along K an entry of a weight holds."""
    return LANES if is_container(weight.dtype) else 1


def _containers(weight: Array, element_type: str | None) -> Array:
    """Return a weight [E, K, N] as containers [E, K/4, N]. Of containers an element type has to have their width."""
    if container_element(weight.dtype, element_type) is not None:
        return weight
    return pack_x4(weight, element_type, axis=1)


def _to_partitions(rows: Array, partitions: int) -> Array:
    """Return [E, tiles * partitions, N] as [E, partitions, tiles, N], a view where memory allows."""
    experts, extent, columns = rows.shape
    return rows.reshape(experts, extent // partitions, partitions, columns).swapaxes(1, 2)


def _from_partitions(tiled: Array) -> Array:
    """Return [E, partitions, tiles, N] as [E, tiles * partitions, N]."""
    experts, partitions, tiles, columns = tiled.shape
    return tiled.swapaxes(1, 2).reshape(experts, tiles * partitions, columns)


def _stack(gate: Array, up: Array, partitions: int) -> Array:
    return np.stack([_to_partitions(gate, partitions), _to_partitions(up, partitions)], axis=2)


def _unstack(tiled: Array, partitions: int, what: str) -> tuple[Array, Array]:
    """Return gate and up, each [E, tiles * partitions, I], of [E, partitions, 2, tiles, I]."""
    _require_rank(tiled, 5, what, f"[E, {partitions}, 2, H/{TILE}, I]")
    if tiled.shape[1:3] != (partitions, 2) or not tiled.shape[3]:
        raise MxError(f"{what} have shape [E, {partitions}, 2, H/{TILE}, I], not {tiled.shape}")
    require_intermediate(tiled.shape[4])
    return _from_partitions(tiled[:, :, 0]), _from_partitions(tiled[:, :, 1])


def _shape(pattern: str, divisor: int) -> str:
    """Return a shape with a divisor, if it is not 1, behind one extent."""
    return pattern.format(f"/{divisor}" if divisor > 1 else "")


def _require_rank(array: Array, rank: int, what: str, shape: str) -> None:
    if array.ndim != rank:
        raise MxError(f"{what} must have shape {shape}, but the shape is {array.shape}")


def _require_gate_up(gate: Array, up: Array, elements: int, what: str) -> None:
    """Refuse gate and up of shape [E, H / elements, I] that differ or break the rules of H and I."""
    _require_rank(gate, 3, f"gate {what}", _shape("[E, H{}, I]", elements))
    if gate.shape != up.shape:
        raise MxError(f"gate and up {what} must have one shape, not {gate.shape} and {up.shape}")
    require_hidden(gate.shape[1] * elements)
    require_intermediate(gate.shape[2])


def _require_down(rows: Array, elements: int, what: str) -> None:
    """Refuse [E, I / elements, H] that breaks the rules of H and I."""
    _require_rank(rows, 3, what, _shape("[E, I{}, H]", elements))
    require_intermediate(rows.shape[1] * elements)
    require_hidden(rows.shape[2])


def _require_down_tiles(tiled: Array, elements: int, what: str) -> None:
    """Refuse what is no [E, p_I, nI512, H], of rows of this many elements."""
    rows = PARTITIONS_PER_SCALE if elements == BLOCK_SIZE else 1
    _require_rank(tiled, 4, what, _shape("[E, p_I{}, nI512, H]", rows))
    _, partitions, tiles, hidden = tiled.shape
    _require_tiling(partitions * rows, tiles, partitions * tiles * elements, tiled.shape)
    require_hidden(hidden)


def _require_tiling(partitions: int, tiles: int, features: int, shape: tuple[Any, ...]) -> None:
    """Refuse a cut of I features into tiles that is not the one this module makes."""
    require_intermediate(features)
    if (partitions, tiles) != (intermediate_partitions(features), intermediate_tiles(features)):
        raise MxError(
            f"I = {features} lies on {intermediate_partitions(features)} partitions in {intermediate_tiles(features)}"
            f" tiles, not {partitions} in {tiles} as in shape {shape}"
        )
