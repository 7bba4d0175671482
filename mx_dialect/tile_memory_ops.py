"""Operations between global memory and tiles: views of scales, loads of windows, stores.

A store gives the changed tensor as its result. Loads and stores are instructions with an order on the engine, so they
are not Pure: nothing merges, hoists or drops them. An example in a docstring is a complete module.
"""

# No `from __future__ import annotations` here: the annotations below define the operands and results.
from collections.abc import Sequence
from typing import Any

from mx_dialect._mlir import ext, ir
from mx_dialect.dialect import Mx
from mx_dialect.layouts.a5 import BLOCKED_RANK, BOX_BLOCKS, BOX_GROUPS, ScaleLayout
from mx_dialect.tile_spec import MEMORY_SPACES, UNDECIDED, TileSpec, spell_extents
from mx_dialect.tile_types import SCALE_ELEMENTS, TileType, layout_of
from mx_dialect.tile_verification import (
    fit,
    numbers,
    require_element,
    require_one_of,
    require_shape,
    require_space,
    tile,
)
from mx_dialect.verification import only_attributes, require, verifier

_DYNAMIC = -(2**63)
_LOAD_TARGETS = ("mat", "vec")


class TensorViewOp(Mx.Operation, name="tensor_view", traits=[ext.Pure]):
    """Give the bytes of a tensor of scales another shape: from plain rows (ND) to an MX layout, or back.

    Both are the same bytes in the same order; an MX layout says where among them the scale of a row and a group lies.

    | value    | type                                                                                       |
    |----------|--------------------------------------------------------------------------------------------|
    | input    | tensor of f8E8M0FNU, i8 or ui8; plain, or with a layout                                    |
    | sizes    | index, one for each dynamic entry of static_sizes                                          |
    | result   | tensor of the same element type and byte count whose shape is the sizes; one with layout   |

    Errors: neither or both sides have a layout, another element type or number of bytes, a result that has not the
    sizes as its shape.

    ```mlir
    func.func @view(%bytes: tensor<1x128xf8E8M0FNU>) -> tensor<1x128xf8E8M0FNU> {
      %0 = mx.tensor_view %bytes [32, 4] : tensor<1x128xf8E8M0FNU> -> tensor<32x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>
      %1 = mx.tensor_view %0 [1, 128] : tensor<32x4xf8E8M0FNU, #mx.layout<"MX_A_ZZ">> -> tensor<1x128xf8E8M0FNU>
      return %1 : tensor<1x128xf8E8M0FNU>
    }
    ```
    """

    input: ext.Operand[Any]
    sizes: Sequence[ext.Operand[Any]]
    static_sizes: Any
    output: ext.Result[Any]

    index_lists = (("sizes", "static_sizes"),)

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self, "static_sizes")
        source, result = _scales(self.input, "input"), _scales(self.output, "result")
        sides = [layout_of(source) is not None, layout_of(result) is not None]
        require(any(sides), f"must view a tensor with a layout, or as one; both '{source}' and '{result}' are plain")
        require(not all(sides), "must not view one layout as another; view it as a plain tensor first")
        require(source.element_type == result.element_type, f"'{source}' and '{result}' must have one element type")
        sizes, shape = numbers(self, "sizes", result.rank), extents(result)
        require(
            fit(sizes, shape),
            f"sizes must be the shape of the result, {spell_extents(shape)}, but are {spell_extents(sizes)}",
        )
        counts = [_count(t) for t in (source, result)]
        require(
            None in counts or counts[0] == counts[1],
            f"must not change the number of bytes, but '{source}' has {counts[0]} and '{result}' has {counts[1]}",
        )


class TileLoadOp(Mx.Operation, name="tile_load"):
    """Load a window of a tensor into a tile.

    `mx.tile_load %tensor[offsets] [window] [valid] {target = "mat"}`: the window has the tile's shape, and of it the
    valid part is read, all of it without the third list. `target` names the memory the engine loads into, mat or vec;
    without it, that is the tile's, or not decided yet. A view of scales in blocked shape is loaded by boxes: the window
    is [1, X / 16, G / 2, 16, 2] for a tile of [X, G] or [G, X].

    | value          | type                                                                    |
    |----------------|-------------------------------------------------------------------------|
    | source         | tensor of rank 2, or a view of scales in blocked shape                  |
    | offsets        | index, one for each dynamic entry of static_offsets                     |
    | window         | index, one for each dynamic entry of static_window                      |
    | valid          | index, one for each dynamic entry of static_valid                       |
    | result         | tile of the window's shape, the source's element type and valid shape   |

    Effects: reads global memory, writes the tile's buffer.

    Errors: lists of another length than the source's rank, a static part that is not inside the tensor, a tile that
    does not fit window and valid shape, a target other than mat and vec or than the tile's memory space, a tile in
    another memory. (Scales may name any memory here; `--mx-block-scale-views` refuses all but mat.)

    ```mlir
    func.func @load(%x: tensor<64x128xf8E4M3FN>, %m: index, %rows: index) -> !mx.tile<16x64xf8E4M3FN, mat, valid = ?x64> {
      %0 = mx.tile_load %x[%m, 64] [16, 64] [%rows, 64] {target = "mat"} : tensor<64x128xf8E4M3FN> -> !mx.tile<16x64xf8E4M3FN, mat, valid = ?x64>
      return %0 : !mx.tile<16x64xf8E4M3FN, mat, valid = ?x64>
    }
    ```
    """

    source: ext.Operand[Any]
    offsets: Sequence[ext.Operand[Any]]
    window: Sequence[ext.Operand[Any]]
    valid: Sequence[ext.Operand[Any]]
    static_offsets: Any
    static_window: Any
    static_valid: Any
    output: ext.Result[Any]

    # In custom assembly an optional list is not written when it is empty.
    index_lists = (("offsets", "static_offsets"), ("window", "static_window"), ("valid", "static_valid", "optional"))

    @property
    def target(self) -> str | None:
        """Return the memory that is loaded into, None when it is not decided yet."""
        attribute = self.operation.attributes.get("target")
        return None if attribute is None else ir.StringAttr(attribute).value

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self, "static_offsets", "static_window", "static_valid", "target")
        spec = tile(self.output, "result")
        source = _global(self.source, "source")
        require_element(spec, "result", str(source.element_type))
        _verify_target(self, spec)
        rank = source.rank
        offsets, window = numbers(self, "offsets", rank), numbers(self, "window", rank)
        whole = isinstance(self.static_valid, ir.DenseI64ArrayAttr) and not len(self.static_valid)
        valid = window if whole else numbers(self, "valid", rank)
        layout = layout_of(source)
        if layout is not None and rank == BLOCKED_RANK:
            _verify_blocked_load(layout.layout, spec, window, valid)
            return
        require_shape(spec.shape, window, "result")
        require_shape(spec.valid, valid, "result", "valid shape")
        _verify_inside(extents(source), offsets, valid, "load")


class TileStoreOp(Mx.Operation, name="tile_store"):
    """Store the valid part of a tile into a tensor; gives the tensor with that part replaced.

    | value          | type                                                    |
    |----------------|---------------------------------------------------------|
    | tile           | tile in vec, mat or acc                                 |
    | dest           | tensor of rank 2 and the tile's element type            |
    | offsets        | index, one for each dynamic entry of static_offsets     |
    | result         | the type of dest                                        |

    Effects: reads the tile's buffer, writes global memory.

    Errors: another element type, a tile in a memory that cannot be stored from, a static part that is not inside the
    tensor, a result type other than the tensor's.

    ```mlir
    func.func @store(%t: !mx.tile<16x32xf32, acc, valid = 8x32>, %out: tensor<64x64xf32>, %m: index) -> tensor<64x64xf32> {
      %0 = mx.tile_store %t, %out[%m, 32] : !mx.tile<16x32xf32, acc, valid = 8x32>, tensor<64x64xf32> -> tensor<64x64xf32>
      return %0 : tensor<64x64xf32>
    }
    ```
    """

    tile: ext.Operand[Any]
    dest: ext.Operand[Any]
    offsets: Sequence[ext.Operand[Any]]
    static_offsets: Any
    output: ext.Result[Any]

    index_lists = (("offsets", "static_offsets"),)

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self, "static_offsets")
        spec = tile(self.tile, "tile")
        require_space(spec, "tile", "vec", "mat", "acc", UNDECIDED)
        dest = _global(self.dest, "dest")
        require(dest.rank == 2, f"dest must have rank 2, but is '{dest}'")
        require_element(spec, "tile", str(dest.element_type))
        require(self.output.type == dest, f"result must have the type of dest, '{dest}', but is '{self.output.type}'")
        _verify_inside(extents(dest), numbers(self, "offsets", 2), spec.valid, "store")


def extents(type_: Any) -> list[int | None]:
    """Return the shape of a ranked tensor type with None for dynamic extents."""
    return [None if e < 0 else e for e in type_.shape]


def _count(type_: Any) -> int | None:
    product = 1
    for extent in extents(type_):
        if extent is None:
            return None
        product *= extent
    return product


def _scales(value: Any, role: str) -> Any:
    type_ = value.type
    fits = isinstance(type_, ir.RankedTensorType) and str(type_.element_type) in SCALE_ELEMENTS
    require(fits, f"{role} must be a ranked tensor of {' or '.join(SCALE_ELEMENTS)}, but is '{type_}'")
    _require_layout(type_, role)
    return type_


def _global(value: Any, role: str) -> Any:
    """Return the type of a value that must be a tensor in global memory: of rank 2, or scales in blocked shape."""
    type_ = value.type
    require(isinstance(type_, ir.RankedTensorType), f"{role} must be a ranked tensor, but is '{type_}'")
    ranks = (2,) if layout_of(type_) is None else (2, BLOCKED_RANK)
    require(type_.rank in ranks, f"{role} must have rank {' or '.join(map(str, ranks))}, but is '{type_}'")
    _require_layout(type_, role)
    return type_


def _require_layout(type_: Any, role: str) -> None:
    """Require that the encoding of a tensor type, if there is one, is a valid layout."""
    if type_.encoding is None:
        return
    layout = layout_of(type_)
    require(layout is not None, f"{role} must have no encoding but #mx.layout, but is '{type_}'")
    error = None if layout is None else layout.error_on(type_)
    require(error is None, f"{role} has invalid type '{type_}': {error}")


def _verify_target(op: Any, spec: TileSpec) -> None:
    attribute = op.operation.attributes.get("target")
    # Which of all memories scales may be loaded into is for `--mx-block-scale-views` to say.
    targets = _LOAD_TARGETS if layout_of(op.source.type) is None else MEMORY_SPACES
    if attribute is not None:
        require_one_of(attribute, "target", targets)
        targets = (attribute.value,)
    require_space(spec, "result", *targets, UNDECIDED)


def _verify_blocked_load(
    layout: ScaleLayout, spec: TileSpec, window: Sequence[int | None], valid: Sequence[int | None]
) -> None:
    """Check a load of whole boxes from scales in blocked shape."""
    shape = [e for e in spec.shape if e is not None]
    require(len(shape) == 2, f"result must be static, to be loaded from a blocked shape, but is '{spec.custom()}'")
    expected = layout.blocked_shape(shape)
    box = spell_extents(layout.logical(BOX_BLOCKS, BOX_GROUPS))
    whole = list(layout.logical_shape(expected)) == shape
    require(whole, f"result must be made of whole boxes of {box}, but is '{spec.custom()}'")
    for boxes, role in ((window, "window"), (valid, "valid")):
        require(
            fit(boxes, expected),
            f"{role} must be {spell_extents(expected)}, the boxes of the result, but is {spell_extents(boxes)}",
        )


def _verify_inside(
    shape: Sequence[int | None], offsets: Sequence[int | None], sizes: Sequence[int | None], what: str
) -> None:
    for axis, (extent, offset, size) in enumerate(zip(shape, offsets, sizes, strict=True)):
        end = (offset or 0) + (size or 0)
        require(
            extent is None or end <= extent,
            f"{what} leaves the tensor along axis {axis}: it reaches {end} of {spell_extents(shape)}",
        )


def _split(entries: Sequence[Any]) -> tuple[list[Any], Any]:
    """Return the index values among a list of ints and index values, and the attribute with the numbers."""
    values = [e for e in entries if not isinstance(e, int)]
    numbers = ir.DenseI64ArrayAttr.get([e if isinstance(e, int) else _DYNAMIC for e in entries])
    # The bindings take an empty array for a missing one, because it is false; a plain attribute never is.
    return values, ir.Attribute(numbers)


def _known(entries: Sequence[Any]) -> tuple[int | None, ...]:
    return tuple(e if isinstance(e, int) else None for e in entries)


def tensor_view(input: Any, type_: Any, sizes: Sequence[Any] | None = None, *, loc: Any = None, ip: Any = None) -> Any:
    """Build `mx.tensor_view` and return the view; `sizes` (ints and index values) defaults to the type's shape."""
    values, static = _split(list(type_.shape) if sizes is None else sizes)
    return TensorViewOp(input, values, static, type_, loc=loc, ip=ip).output


def tile_load(
    source: Any,
    offsets: Sequence[Any],
    window: Sequence[Any],
    valid: Sequence[Any] | None = None,
    target: str | None = None,
    *,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """Build `mx.tile_load` of a tensor of rank 2, from lists of ints and index values, and return the tile.

    Scales (a source with a layout) are loaded to mat unless `target` says otherwise; other tiles are left undecided.

    Raises:
        MxError: the tile's type would break a rule of tiles.
    """
    if target is None and layout_of(source.type) is not None:
        target = "mat"
    known = _known(window)
    type_ = TileType.get(known, source.type.element_type, target, None if valid is None else _known(valid))
    offset_values, static_offsets = _split(offsets)
    window_values, static_window = _split(window)
    valid_values, static_valid = _split(valid or [])
    operation = TileLoadOp(
        source,
        offset_values,
        window_values,
        valid_values,
        static_offsets,
        static_window,
        static_valid,
        type_,
        loc=loc,
        ip=ip,
    )
    if target is not None:
        operation.operation.attributes["target"] = ir.StringAttr.get(target)
    return operation.output


def tile_store(tile: Any, dest: Any, offsets: Sequence[Any], *, loc: Any = None, ip: Any = None) -> Any:
    """Build `mx.tile_store` and return the changed tensor; `offsets` are ints and index values."""
    values, static = _split(offsets)
    return TileStoreOp(tile, dest, values, static, dest.type, loc=loc, ip=ip).output
