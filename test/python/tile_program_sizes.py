"""The sorts of tiles in the random programs of `tile_programs`, and their types."""

from dataclasses import dataclass

# The sorts of tiles, and the axes of each: rows, depth, groups along depth, columns, or one.
AXES = {"a": "mk", "as": "mg", "b": "kn", "bs": "gn", "bias": "1n", "acc": "mn"}
SPACES = {"a": "left", "as": "left_scale", "b": "right", "bs": "right_scale", "bias": "bias", "acc": "acc"}
ELEMENTS = {"a": "f8E4M3FN", "as": "f8E8M0FNU", "b": "f8E4M3FN", "bs": "f8E8M0FNU", "bias": "f32", "acc": "f32"}
LAYOUTS = {"as": "MX_A_ZZ", "bs": "MX_B_NN"}
# What a global tensor or a tile may hold in place of its sort: f32 to be quantized, FP4 to be cast, bytes to be viewed.
CONTENTS = {"f32": "f32", "f4": "f4E2M1FN", "nd": "f8E8M0FNU"}


@dataclass(frozen=True)
class Sizes:
    """The extents of a program's tiles and of their valid parts; valid rows of None are an argument, %valid."""

    rows: int
    columns: int
    depth: int
    valid_rows: int | None
    valid_columns: int
    valid_depth: int

    def extent(self, axis):
        """Return the extent of a tile along an axis."""
        return {"m": self.rows, "n": self.columns, "k": self.depth, "g": self.depth // 32, "1": 1}[axis]

    def tile(self, sort):
        """Return the shape and the valid shape of a sort of tile."""
        valid = {"m": self.valid_rows, "n": self.valid_columns, "k": self.valid_depth}
        axes = AXES[sort]
        return tuple(map(self.extent, axes)), tuple(valid.get(axis, self.extent(axis)) for axis in axes)

    def tensor(self, name):
        """Return the shape of a global tensor: two tiles along each axis."""
        sort, _, content = name.partition("_")
        extents = zip(AXES[sort], self.tile(sort)[0], strict=True)
        shape = tuple(extent if axis == "1" else 2 * extent for axis, extent in extents)
        return (1, shape[0] * shape[1]) if content == "nd" else shape

    def tensor_type(self, name):
        """Return the type of a global tensor."""
        sort, _, content = name.partition("_")
        shape = "x".join(map(str, self.tensor(name)))
        layout = f', #mx.layout<"{LAYOUTS[sort]}">' if sort in LAYOUTS and not content else ""
        return f"tensor<{shape}x{CONTENTS.get(content, ELEMENTS[sort])}{layout}>"
