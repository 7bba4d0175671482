"""Operations on tiles: moves between memories, creation, casts; and the number of the block that runs.

A tile is a value: an operation that fills a buffer gives the tile in it as its result. They are instructions with an
order on the engine, so only block numbers are Pure: nothing merges, hoists or drops the others. An example in a
docstring is a complete module.
"""

# No `from __future__ import annotations` here: the annotations below define the operands and results.
from typing import Any

from mx_dialect._mlir import ext, ir
from mx_dialect.dialect import Mx
from mx_dialect.tile_spec import SCALE_SPACES, UNDECIDED, TileSpec
from mx_dialect.tile_types import SCALE_ELEMENTS, TileType
from mx_dialect.tile_verification import require_element, same_extents, tile
from mx_dialect.verification import only_attributes, require, verifier


class TileMoveOp(Mx.Operation, name="tile_move"):
    """Move a tile to another memory.

    The matrix unit's inputs are filled from mat: left, right, bias, left_scale and right_scale. On the way to a scale
    space bytes (i8, ui8) become f8E8M0FNU. vec and mat exchange tiles, and acc is read out to either.

    | value    | type                                                                              |
    |----------|-----------------------------------------------------------------------------------|
    | input    | tile                                                                              |
    | result   | tile in another memory space, of the same shape, valid shape and element type     |

    Effects: reads the buffer of the input, writes that of the result.

    Errors: no space to move to, a way that the engine does not have, another shape or element type, data in a scale
    space.

    ```mlir
    func.func @move(%s: !mx.tile<16x2xui8, mat>) -> !mx.tile<16x2xf8E8M0FNU, left_scale> {
      %0 = mx.tile_move %s : !mx.tile<16x2xui8, mat> -> !mx.tile<16x2xf8E8M0FNU, left_scale>
      return %0 : !mx.tile<16x2xf8E8M0FNU, left_scale>
    }
    ```
    """

    input: ext.Operand[Any]
    output: ext.Result[Any]

    # Where a tile can be moved from, for each memory it can be moved to.
    sources = {
        "left": ("mat",),
        "right": ("mat",),
        "left_scale": ("mat",),
        "right_scale": ("mat",),
        "bias": ("mat",),
        "mat": ("vec", "acc"),
        "vec": ("mat", "acc"),
    }

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self)
        source, result = tile(self.input, "input"), tile(self.output, "result")
        require(result.space in self.sources, f"cannot move a tile to '{result.custom()}'; {_ways(self.sources)}")
        known = (*self.sources[result.space], UNDECIDED)
        require(
            source.space in known,
            f"cannot move a tile from {source.space} to {result.space}; {_ways(self.sources)}",
        )
        same_extents(source, result, "result")
        if result.space in SCALE_SPACES:
            require_element(source, "a tile moved to a scale space", *SCALE_ELEMENTS)
            require_element(result, "a tile in a scale space", "f8E8M0FNU")
        else:
            require_element(result, "result", source.element)


class TileCreateOp(Mx.Operation, name="tile_create"):
    """Make a tile whose content is not defined (zeros on the CPU). Scale spaces are filled by moves only.

    | value    | type                                                   |
    |----------|--------------------------------------------------------|
    | result   | tile of static shape and valid shape                   |

    Effects: allocates a buffer, a new one each time.

    Errors: dynamic extents, a tile in a scale space.

    ```mlir
    func.func @create() -> !mx.tile<16x32xf32, vec> {
      %0 = mx.tile_create : () -> !mx.tile<16x32xf32, vec>
      return %0 : !mx.tile<16x32xf32, vec>
    }
    ```
    """

    output: ext.Result[Any]

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self)
        spec = tile(self.output, "result")
        require(None not in (*spec.shape, *spec.valid), f"result must be static, but is '{spec.custom()}'")
        require(
            spec.space not in SCALE_SPACES,
            f"cannot create a tile in {spec.space}; load scales to mat and move them there",
        )


class TileCastOp(Mx.Operation, name="tile_cast"):
    """Convert FP4 elements to FP8, which holds all of their values.

    The vector unit does it; `--mx-legalize-cast` takes the tile there.

    | value    | type                                                              |
    |----------|-------------------------------------------------------------------|
    | input    | tile of f4E2M1FN                                                  |
    | result   | tile of f8E4M3FN or f8E5M2, of the same shape and valid shape     |

    Effects: reads the buffer of the input, writes that of the result.

    Errors: other element types, another shape or valid shape.

    ```mlir
    func.func @cast(%x: !mx.tile<16x64xf4E2M1FN, vec>) -> !mx.tile<16x64xf8E4M3FN, vec> {
      %0 = mx.tile_cast %x : !mx.tile<16x64xf4E2M1FN, vec> -> !mx.tile<16x64xf8E4M3FN, vec>
      return %0 : !mx.tile<16x64xf8E4M3FN, vec>
    }
    ```
    """

    input: ext.Operand[Any]
    output: ext.Result[Any]

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self)
        source, result = tile(self.input, "input"), tile(self.output, "result")
        require_element(source, "input", "f4E2M1FN")
        require_element(result, "result", "f8E4M3FN", "f8E5M2")
        same_extents(source, result, "result")


class BlockIdxOp(Mx.Operation, name="block_idx", traits=[ext.Pure]):
    """Give the number of the block that runs the function: 0 to `mx.block_num` - 1. Not submitted, a function is one.

    | value    | type                    |
    |----------|-------------------------|
    | result   | index                   |

    Errors: the result is not an index.

    ```mlir
    func.func @block() -> index {
      %0 = mx.block_idx : () -> index
      return %0 : index
    }
    ```
    """

    output: ext.Result[Any]

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self)
        require(isinstance(self.output.type, ir.IndexType), f"result must be an index, but is '{self.output.type}'")


class BlockNumOp(Mx.Operation, name="block_num", traits=[ext.Pure]):
    """Give how many blocks run the function: the core count of its `mx.submit`, 1 without one.

    | value    | type                    |
    |----------|-------------------------|
    | result   | index                   |

    Errors: the result is not an index.

    ```mlir
    func.func @blocks() -> index {
      %0 = mx.block_num : () -> index
      return %0 : index
    }
    ```
    """

    output: ext.Result[Any]

    @verifier
    def verify_invariants(self: Any) -> None:
        only_attributes(self)
        require(isinstance(self.output.type, ir.IndexType), f"result must be an index, but is '{self.output.type}'")


def _ways(sources: dict[str, tuple[str, ...]]) -> str:
    ways = [f"{source} to {target}" for target, froms in sources.items() for source in froms]
    return f"tiles move from {', '.join(ways)}"


def tile_move(input: Any, space: str, *, loc: Any = None, ip: Any = None) -> Any:
    """Build `mx.tile_move` to a memory space and return the moved tile.

    Raises:
        MxError: the space is not one.
    """
    spec = input.type.spec
    element = "f8E8M0FNU" if space in SCALE_SPACES else spec.element
    type_ = TileType.of(TileSpec(spec.shape, element, space, spec.valid))
    return TileMoveOp(input, type_, loc=loc, ip=ip).output


def tile_create(type_: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """Build `mx.tile_create` and return the tile."""
    return TileCreateOp(type_, loc=loc, ip=ip).output


def tile_cast(input: Any, element_type: Any, space: str | None = None, *, loc: Any = None, ip: Any = None) -> Any:
    """Build `mx.tile_cast` to an FP8 type and return the converted tile."""
    spec = input.type.spec
    type_ = TileType.get(spec.shape, element_type, space, spec.valid)
    return TileCastOp(input, type_, loc=loc, ip=ip).output


def block_idx(*, loc: Any = None, ip: Any = None) -> Any:
    """Build `mx.block_idx` and return the index."""
    return BlockIdxOp(ir.IndexType.get(), loc=loc, ip=ip).output


def block_num(*, loc: Any = None, ip: Any = None) -> Any:
    """Build `mx.block_num` and return the index."""
    return BlockNumOp(ir.IndexType.get(), loc=loc, ip=ip).output
