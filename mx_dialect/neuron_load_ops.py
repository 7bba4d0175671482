"""The steps of loading an expert: choosing it by access pattern, and its scales gathered into quadrants.

All are Pure: they compute values and touch no memory. An example in a docstring is a complete module.
"""

# No `from __future__ import annotations` here: the annotations below define the operands and results.
from collections.abc import Sequence
from typing import Any

from mx_dialect._mlir import ext, ir
from mx_dialect.dialect import Mx
from mx_dialect.layouts.neuron_scales import PARTITIONS, QUADRANT_ROWS, SCALE_ROWS
from mx_dialect.layouts.neuron_scales import expert_index as index_vector
from mx_dialect.neuron_verification import (
    DGE_MODES,
    OOB_MODES,
    follow,
    index_value,
    number,
    optional_word,
    partition_offset,
    plain_tensor,
    require_type,
    scale_bytes,
    static_shape,
)
from mx_dialect.tile_verification import numbers
from mx_dialect.verification import only_attributes, require, verifier

_LARGEST_INDEX = 2**31 - 1


class SelectExpertOp(Mx.Operation, name="select_expert", traits=[ext.Pure]):
    """Give one expert of a tensor, and of its other axes the range that begins at the offsets.

    An access pattern: nothing is copied. The custom form lists an offset, a number or an index value, for each axis but
    the first: `mx.select_expert %w, %e[0, 0, 0, %o]`. An expert that does not exist, or a range that leaves the tensor,
    is an error when the program runs. `dge_mode` (hwdge, swdge) and `oob_mode` (error, skip) are kept for the device;
    they change no value.

    | value          | type                                                            |
    |----------------|-----------------------------------------------------------------|
    | input          | tensor of rank 2 or more: [E, ...]; E may be dynamic            |
    | expert         | index                                                           |
    | offsets        | index, one for each dynamic entry of static_offsets             |
    | static_offsets | array of i64, one entry for each axis but the first             |
    | result         | tensor of the same element type, without the first axis         |

    Errors: a list of another length, a static part that is not inside the tensor, another rank or element type.

    ```mlir
    func.func @select(%w: tensor<8x128x2x4x512x!mx.x4<f4E2M1FN>>, %e: index, %o: index) -> tensor<128x2x4x256x!mx.x4<f4E2M1FN>> {
      %0 = mx.select_expert %w, %e[0, 0, 0, %o] {dge_mode = "hwdge"} : tensor<8x128x2x4x512x!mx.x4<f4E2M1FN>>, index -> tensor<128x2x4x256x!mx.x4<f4E2M1FN>>
      return %0 : tensor<128x2x4x256x!mx.x4<f4E2M1FN>>
    }
    ```
    """

    input: ext.Operand[Any]
    expert: ext.Operand[Any]
    offsets: Sequence[ext.Operand[Any]]
    static_offsets: Any
    output: ext.Result[Any]

    index_lists = (("offsets", "static_offsets"),)

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self, "static_offsets", "dge_mode", "oob_mode")
        optional_word(self, "dge_mode", DGE_MODES)
        optional_word(self, "oob_mode", OOB_MODES)
        source, result = plain_tensor(self.input, "input"), plain_tensor(self.output, "result")
        index_value(self.expert, "expert")
        require(source.rank >= 2, f"input must have rank 2 or more, but is '{source}'")
        fits = result.rank == source.rank - 1 and result.element_type == source.element_type
        require(fits, f"result must be '{source}' without its first axis but for extents, but is '{result}'")
        extents, sizes = static_shape(source, "input", first=1)[1:], static_shape(result, "result")
        for axis, offset in enumerate(numbers(self, "offsets", result.rank)):
            inside = (offset or 0) + sizes[axis] <= extents[axis]
            require(inside, f"the range leaves the input '{source}' along axis {axis + 1}")


class ExpertIndexOp(Mx.Operation, name="expert_index", traits=[ext.Pure]):
    """Give the vector that gathers an expert's scale rows into quadrants: for each partition a row, or -1 for a hole.

    Experts have `scale_rows` rows each; of expert e the first 4 * `full_quadrants` + `remaining_rows` are wanted. Row s
    of them, row e * scale_rows + s of all experts, belongs at partition 32 * (s // 4) + s % 4 + `offset` (0, 4, 8 or
    12, 0 if it is not there). An expert whose rows i32 cannot number is an error when the program runs.

    | value          | type                                                            |
    |----------------|-----------------------------------------------------------------|
    | expert         | index                                                           |
    | scale_rows     | i64, 1 or more                                                  |
    | full_quadrants | i64, 0 to 4                                                     |
    | remaining_rows | i64, 0 to 3                                                     |
    | result         | tensor<128xi32>                                                 |

    Errors: numbers out of range, more rows than an expert has, more than four quadrants.

    ```mlir
    func.func @indices(%e: index) -> tensor<128xi32> {
      %0 = mx.expert_index %e {scale_rows = 6, full_quadrants = 1, remaining_rows = 2} : index -> tensor<128xi32>
      return %0 : tensor<128xi32>
    }
    ```
    """

    expert: ext.Operand[Any]
    scale_rows: ir.IntegerAttr
    full_quadrants: ir.IntegerAttr
    remaining_rows: ir.IntegerAttr
    output: ext.Result[Any]

    @property
    def counts(self) -> tuple[int, int, int]:
        """Return scale_rows, full_quadrants and remaining_rows."""
        return _counts(self)

    @property
    def offset(self) -> int:
        """Return where in a quadrant the rows begin."""
        return partition_offset(self, "offset")

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self, "scale_rows", "full_quadrants", "remaining_rows", "offset")
        index_value(self.expert, "expert")
        partition_offset(self, "offset")
        follow(index_vector, 0, *_counts(self))
        _require_index_vector(self.output, "result")


class ScaleGatherOp(Mx.Operation, name="scale_gather", traits=[ext.Pure]):
    """Gather scale rows of experts: partition p of the result is row indices[p] of all experts' rows, or zero for -1.

    A row that does not exist, below -1 or beyond the last expert's, is an error when the program runs. `oob_mode`
    (error, skip) is kept for the device; it changes no value.

    | value    | type                                                                                     |
    |----------|------------------------------------------------------------------------------------------|
    | scales   | tensor of ui8 or i8: [E, R, ...], R rows of E experts; E may be dynamic                  |
    | indices  | tensor<128xi32>, as `mx.expert_index` gives it                                           |
    | result   | tensor of the same element type: [128, ...]                                              |

    Errors: another element type or shape.

    ```mlir
    func.func @gather(%scales: tensor<8x16x2x4x512xui8>, %indices: tensor<128xi32>) -> tensor<128x2x4x512xui8> {
      %0 = mx.scale_gather %scales, %indices {oob_mode = "skip"} : tensor<8x16x2x4x512xui8>, tensor<128xi32> -> tensor<128x2x4x512xui8>
      return %0 : tensor<128x2x4x512xui8>
    }
    ```
    """

    scales: ext.Operand[Any]
    indices: ext.Operand[Any]
    output: ext.Result[Any]

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self, "oob_mode")
        optional_word(self, "oob_mode", OOB_MODES)
        source = scale_bytes(self.scales, "scales")
        require(source.rank >= 2, f"scales must have rank 2 or more, but are '{source}'")
        _, rows, *rest = static_shape(source, "scales", first=1)
        require(rows > 0, f"scales must have rows, but are '{source}'")
        _require_index_vector(self.indices, "indices")
        require_type(self.output, "result", [PARTITIONS, *rest], source.element_type)


class ScaleLoadStaticOp(Mx.Operation, name="scale_load_static", traits=[ext.Pure]):
    """Copy dense scale rows into quadrants, four rows each: row s to partition 32 * (s // 4) + s % 4, zeros elsewhere.

    `offset` (4, 8 or 12) moves the rows up inside their quadrants. A result of one axis more takes 16 rows for each of
    T tiles: row 16t + s goes to partition s of tile t. `dge_mode` (hwdge, swdge) is kept for the device.

    | value    | type                                                                                     |
    |----------|------------------------------------------------------------------------------------------|
    | scales   | tensor of ui8 or i8: [R, ...] with 0 < R <= 16, or [16 * T, ...]                         |
    | result   | tensor of the same element type: [128, ...], or [128, T, ...]                            |

    Errors: another element type, number of rows, shape or offset.

    ```mlir
    func.func @load(%scales: tensor<16x64xui8>, %qkv: tensor<32x64xui8>) -> (tensor<128x64xui8>, tensor<128x2x64xui8>) {
      %0 = mx.scale_load_static %scales : tensor<16x64xui8> -> tensor<128x64xui8>
      %1 = mx.scale_load_static %qkv {dge_mode = "swdge"} : tensor<32x64xui8> -> tensor<128x2x64xui8>
      return %0, %1 : tensor<128x64xui8>, tensor<128x2x64xui8>
    }
    ```
    """

    scales: ext.Operand[Any]
    output: ext.Result[Any]

    @property
    def offset(self) -> int:
        """Return where in a quadrant the rows begin."""
        return partition_offset(self, "offset")

    @property
    def has_tiles(self) -> bool:
        """Tell whether the rows are those of several tiles."""
        return self.output.type.rank > self.scales.type.rank

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self, "offset", "dge_mode")
        partition_offset(self, "offset")
        optional_word(self, "dge_mode", DGE_MODES)
        source, result = scale_bytes(self.scales, "scales"), plain_tensor(self.output, "result")
        require(source.rank >= 1, f"scales must have rank 1 or more, but are '{source}'")
        rows, *rest = static_shape(source, "scales")
        if result.rank == source.rank:
            require(0 < rows <= SCALE_ROWS, f"scales must have from 1 to {SCALE_ROWS} rows, but are '{source}'")
            require_type(self.output, "result", [PARTITIONS, *rest], source.element_type)
            return
        whole = rows > 0 and rows % SCALE_ROWS == 0
        require(whole, f"scales of tiles must have a multiple of {SCALE_ROWS} rows, but are '{source}'")
        require_type(self.output, "result", [PARTITIONS, rows // SCALE_ROWS, *rest], source.element_type)


def _counts(op: Any) -> tuple[int, int, int]:
    return (
        number(op, "scale_rows", range(1, _LARGEST_INDEX + 1)),
        number(op, "full_quadrants", range(5)),
        number(op, "remaining_rows", range(4)),
    )


def _require_index_vector(value: Any, role: str) -> None:
    require_type(value, role, [PARTITIONS], ir.IntegerType.get_signless(32, context=value.type.context))


def select_expert(
    input: Any,
    expert: Any,
    offsets: Sequence[Any] | None = None,
    sizes: Sequence[int] | None = None,
    dge_mode: str | None = None,
    oob_mode: str | None = None,
    *,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """Build `mx.select_expert` of all of an expert, or of `sizes` entries from `offsets`, ints or index values, on."""
    type_ = input.type
    shape = list(type_.shape)[1:] if sizes is None else list(sizes)
    starts = [0] * len(shape) if offsets is None else list(offsets)
    dynamic = ir.ShapedType.get_dynamic_size()
    static = ir.DenseI64ArrayAttr.get([o if isinstance(o, int) else dynamic for o in starts])
    values = [o for o in starts if not isinstance(o, int)]
    result = ir.RankedTensorType.get(shape, type_.element_type)
    op = SelectExpertOp(input, expert, values, static, result, loc=loc, ip=ip)
    set_words(op, dge_mode=dge_mode, oob_mode=oob_mode)
    return op.output


def expert_index(expert: Any, scale_rows: int, rows: int | None = None, *, loc: Any = None, ip: Any = None) -> Any:
    """Build `mx.expert_index` of the first `rows` scale rows of an expert, all by default, and return the vector."""
    i64 = ir.IntegerType.get_signless(64)
    counts = (scale_rows, *divmod(scale_rows if rows is None else rows, QUADRANT_ROWS))
    result = ir.RankedTensorType.get([PARTITIONS], ir.IntegerType.get_signless(32))
    attributes = [ir.IntegerAttr.get(i64, count) for count in counts]
    return ExpertIndexOp(expert, *attributes, result, loc=loc, ip=ip).output


def scale_gather(scales: Any, indices: Any, oob_mode: str | None = None, *, loc: Any = None, ip: Any = None) -> Any:
    """Build `mx.scale_gather` and return the tile of scales."""
    result = ir.RankedTensorType.get([PARTITIONS, *scales.type.shape[2:]], scales.type.element_type)
    op = ScaleGatherOp(scales, indices, result, loc=loc, ip=ip)
    set_words(op, oob_mode=oob_mode)
    return op.output


def scale_load_static(
    scales: Any, tiles: bool = False, dge_mode: str | None = None, *, loc: Any = None, ip: Any = None
) -> Any:
    """Build `mx.scale_load_static` of the rows of one tile, or of `tiles` of 16 rows, and return the tile or tiles."""
    rows, *rest = scales.type.shape
    shape = [PARTITIONS, rows // SCALE_ROWS, *rest] if tiles else [PARTITIONS, *rest]
    op = ScaleLoadStaticOp(scales, ir.RankedTensorType.get(shape, scales.type.element_type), loc=loc, ip=ip)
    set_words(op, dge_mode=dge_mode)
    return op.output


def set_words(op: Any, **words: str | None) -> None:
    """Set the string attributes that are not None."""
    for name, value in words.items():
        if value is not None:
            op.operation.attributes[name] = ir.StringAttr.get(value)
