"""Where the scales of x4 containers lie: dense rows, quadrants with holes, and the gather that fills them by expert.

One f8E8M0FNU byte covers 8 partitions x 4 lanes, so that containers [P, F] have dense scales [P/8, F]. A matmul reads
them from a tile of 128 partitions in four quadrants of 32: dense row s lies at partition 32 * (s // 4) + s % 4, and the
other partitions are holes. Up to four scale tensors share a tile, at partition offsets 0, 4, 8 and 12 inside every
quadrant. With P <= 32 there is one quadrant, and the dense scales are a tile as they are.

The index formulas take integers, numpy arrays of them and MLIR's affine expressions alike.
"""

import operator

import numpy as np
import numpy.typing as npt

from mx_dialect.codes import scale_format_of
from mx_dialect.diagnostics import MxError
from mx_dialect.formats import E8M0
from mx_dialect.layouts.neuron import Array, Codes, Index, quotient

PARTITIONS = 128
QUADRANT = 32
QUADRANT_ROWS = 4
PARTITIONS_PER_SCALE = 8
SCALE_ROWS = PARTITIONS // PARTITIONS_PER_SCALE
"""Dense scale rows of a full tile."""
BLOCK_SIZE = 32
"""Elements that share a scale: 8 partitions x 4 lanes."""
OFFSETS = (0, 4, 8, 12)
HOLE = -1
"""The entry of an index vector that leaves its partition as it is."""


def scale_partition(row: Index, offset: int = 0) -> Index:
    """Return the partition of a dense scale row."""
    return quotient(row, QUADRANT_ROWS) * QUADRANT + row % QUADRANT_ROWS + offset


def scale_row(partition: Index) -> Index:
    """Return the dense row at a partition that is no hole, in a tile with offset 0."""
    return quotient(partition, QUADRANT) * QUADRANT_ROWS + partition % QUADRANT


def data_scale_partition(partition: Index, offset: int = 0) -> Index:
    """Return the partition of the scale that covers a partition of containers."""
    return scale_partition(quotient(partition, PARTITIONS_PER_SCALE), offset)


def expert_row(expert: Index, row: Index, scale_rows: int) -> Index:
    """Return the place of an expert's dense scale row where experts of `scale_rows` rows follow each other."""
    return row + expert * scale_rows


def holds_scale(partition: npt.NDArray[np.int64], rows: int) -> npt.NDArray[np.bool_]:
    """Return whether partitions hold one of `rows` dense scale rows, in a tile with offset 0."""
    return (partition % QUADRANT < QUADRANT_ROWS) & (scale_row(partition) < rows)


def scale_codes(scales: Array) -> Codes:
    """Return f8E8M0FNU scales, of that dtype or uint8, as codes.

    Raises:
        MxError: another dtype.
    """
    scale_format_of(scales, E8M0.mlir)
    return scales.view(np.uint8)


def spread_scales(dense: Array, partitions: int | None = None, offset: int = 0, fill: int = 0) -> Codes:
    """Return a tile [partitions, F...] with dense scales [P/8, F...] in its quadrants and `fill` in the holes.

    Without `partitions` the tile has P.

    Raises:
        MxError: another dtype or rank 0, no code of a scale as `fill`, an offset other than 0, 4, 8 or 12, or rows that
            do not fit in the tile.
    """
    codes = _dense(dense)
    _require_byte(fill)
    extent = len(codes) * PARTITIONS_PER_SCALE if partitions is None else partitions
    if not 0 <= extent <= PARTITIONS:
        raise MxError(f"a scale tile has up to {PARTITIONS} partitions, not {extent}")
    tile = np.full((extent, *codes.shape[1:]), fill, np.uint8)
    write_scales(tile, codes, offset)
    return tile


def write_scales(tile: Array, dense: Array, offset: int = 0) -> None:
    """Write dense scales [P/8, F...] to the quadrants of a tile [partitions, F...], and leave the rest as it is.

    Raises:
        MxError: as `spread_scales`, or a tile that is read-only or has other extents behind the partitions.
    """
    codes, target = _dense(dense), _dense(tile)
    if codes.shape[1:] != target.shape[1:]:
        raise MxError(f"scales of shape {codes.shape} do not go in a tile of shape {target.shape}")
    places = _places(len(codes), len(target), offset)
    if not target.flags.writeable:
        raise MxError("a scale tile to write to is read-only")
    target[places] = codes


def dense_scales(tile: Array, rows: int, offset: int = 0) -> Codes:
    """Return the dense scales [rows, F...] in a tile [partitions, F...]; a view if they are in one quadrant.

    Dense scales of up to four rows are a tile as they are.

    Raises:
        MxError: another dtype or rank 0, an offset other than 0, 4, 8 or 12, or a tile without that many rows.
    """
    codes = _dense(tile)
    places = _places(rows, len(codes), offset)
    return codes[offset : offset + rows] if rows <= QUADRANT_ROWS else codes[places]


def qkv_scale_tiles(dense: Array, fill: int = 0) -> Codes:
    """Return the scales [H/32, I] of a QKV weight as tiles [H/512, 128, I]: row 16t + 4q + j at partition 32q + j of t.

    Raises:
        MxError: another dtype, a rank other than 2, rows that are no multiple of 16, or no byte as `fill`.
    """
    codes = scale_codes(dense)
    _require_byte(fill)
    if codes.ndim != 2 or codes.shape[0] % SCALE_ROWS:
        raise MxError(f"QKV scales have shape [H / {BLOCK_SIZE}, I] with H a multiple of 512, not {codes.shape}")
    count, columns = codes.shape[0] // SCALE_ROWS, codes.shape[1]
    tiles = np.full((count, PARTITIONS, columns), fill, np.uint8)
    tiles[:, _places(SCALE_ROWS, PARTITIONS, 0)] = codes.reshape(count, SCALE_ROWS, columns)
    return tiles


def qkv_dense_scales(tiles: Array) -> Codes:
    """Return the scales [H/32, I] that lie in tiles [H/512, 128, I]; the inverse of `qkv_scale_tiles`.

    Raises:
        MxError: another dtype or shape.
    """
    codes = scale_codes(tiles)
    if codes.ndim != 3 or codes.shape[1] != PARTITIONS:
        raise MxError(f"tiles of QKV scales have shape [H / 512, {PARTITIONS}, I], not {codes.shape}")
    rows = codes[:, _places(SCALE_ROWS, PARTITIONS, 0)]
    return rows.reshape(codes.shape[0] * SCALE_ROWS, codes.shape[2])


def expert_index(expert: int, scale_rows: int, quadrants: int, remaining: int = 0) -> npt.NDArray[np.int32]:
    """Return the index vector, 128 entries, that gathers the scales of an expert into quadrants.

    Experts have `scale_rows` dense rows each; the first `quadrants` * 4 + `remaining` are wanted. Entry p is the row
    at partition p, counted through all experts, or -1 if p is a hole.

    Raises:
        MxError: a negative number or one that is no integer, more than 3 remaining rows, more than 4 quadrants with
            theirs, more rows than an expert has, or rows that int32 cannot number.
    """
    try:
        # Python's integers, which do not overflow as numpy's do.
        expert, scale_rows, quadrants, remaining = map(operator.index, (expert, scale_rows, quadrants, remaining))
    except TypeError as error:
        raise MxError(f"an index vector is made of integers: {error}") from None
    rows = _wanted_rows(scale_rows, quadrants, remaining)
    if expert < 0 or expert_row(expert, scale_rows, scale_rows) > np.iinfo(np.int32).max:
        raise MxError(f"expert {expert} with {scale_rows} scale rows is not in the range of int32 row numbers")
    partition = np.arange(PARTITIONS)
    row = expert_row(expert, scale_row(partition), scale_rows)
    return np.where(holds_scale(partition, rows), row, HOLE).astype(np.int32)


def gather_scales(scales: Array, index: Array) -> Codes:
    """Return a tile [128, F...] whose partition p is row index[p] of scales [E, rows, F...], E and rows as one axis.

    Where the index is -1 the tile is zero.

    Raises:
        MxError: other dtypes, scales of rank below 2, an index that is not 128 of int32, or an entry out of range.
    """
    codes = scale_codes(scales)
    if codes.ndim < 2:
        raise MxError(f"scales to gather have shape [E, rows, ...], not {codes.shape}")
    if index.dtype != np.int32 or index.shape != (PARTITIONS,):
        raise MxError(f"an index vector is {PARTITIONS} of int32, not {index.dtype} of shape {index.shape}")
    rows = codes.shape[0] * codes.shape[1]
    wrong = index[(index < HOLE) | (index >= rows)]
    if wrong.size:
        raise MxError(f"index {int(wrong[0])} is out of range for {rows} scale rows; only {HOLE} marks a hole")
    tile = np.zeros((PARTITIONS, *codes.shape[2:]), np.uint8)
    valid = index != HOLE
    # Divided, the index reaches any memory layout; folding the two axes could need a copy of all experts.
    expert, row = np.divmod(index[valid], codes.shape[1]) if rows else (index[:0], index[:0])
    tile[valid] = codes[expert, row]
    return tile


def _wanted_rows(scale_rows: int, quadrants: int, remaining: int) -> int:
    """Return how many rows an index vector is to gather."""
    if quadrants < 0 or not 0 <= remaining < QUADRANT_ROWS:
        raise MxError(
            f"an index vector has 0 or more full quadrants and 0 to 3 remaining rows, not {quadrants} and {remaining}"
        )
    if quadrants + (remaining > 0) > PARTITIONS // QUADRANT:
        raise MxError(f"{quadrants} quadrants and {remaining} remaining rows need more than 4 quadrants")
    rows = quadrants * QUADRANT_ROWS + remaining
    if rows > scale_rows:
        raise MxError(f"{rows} scale rows are wanted of an expert that has {scale_rows}")
    return rows


def _dense(scales: Array) -> Codes:
    codes = scale_codes(scales)
    if not codes.ndim:
        raise MxError("scales must have rank 1 or more")
    return codes


def _require_byte(fill: int) -> None:
    if not 0 <= fill <= 255:
        raise MxError(f"holes are filled with a byte, not {fill}")


def _places(rows: int, partitions: int, offset: int) -> npt.NDArray[np.int64]:
    """Return the partition of each dense row in a tile."""
    if offset not in OFFSETS:
        raise MxError(f"scales lie at partition offset {', '.join(map(str, OFFSETS))} of a quadrant, not {offset}")
    if rows < 0 or (rows and scale_partition(rows - 1, offset) >= partitions):
        raise MxError(f"{rows} scale rows at partition offset {offset} do not fit in a tile of {partitions} partitions")
    places: npt.NDArray[np.int64] = scale_partition(np.arange(rows), offset)
    return places
