"""Random tile programs: hypothesis strategies for kernels of the A5-like matrix engine, and numbers to run them on.

`tile_programs()` draws a `TileProgram`: the text of a module whose only public function, @main, takes global tensors and
gives back the output tensor that its kernels store to. `mx-tile-to-linalg` makes it executable before and after every
pass of the tile level, with one signature, so `program.arguments(seed)` feeds all of them.

The knobs of `tile_programs`:

    decided  True: every tile has its memory space and moves are explicit, as --mx-insert-scale-addr needs them.
             False: spaces are left to --mx-infer-memory-space, scale views are logical and their offsets provable, so
             that the whole --mx-tile-pipeline applies.
    steps    which steps a kernel may be made of: names from `STRAIGHT` and `CONTROL`; of these `COMPILED` can be run.
    length   how many steps a kernel has at most; a region has fewer, the deeper the fewer, and the program 50 in all.
    depth    how deep control flow nests at most.

All operands of a sort have one type in a program, so that any of them goes with any other: the same scale with other
data, the same data with other scales, copies through loops, branches, selects and calls. Accumulators and the output
are threaded: an operation that updates one takes it over, and regions get theirs as carried values.

Nothing reads outside of a tensor: an offset is a unit, an index value of 0 or 1, times the extent of a tile, and a
tensor has the extents of two tiles.
"""

from dataclasses import dataclass

import ml_dtypes
import numpy as np
from hypothesis import strategies as st
from tile_program_control import COMPILED, CONTROL, MAX_SELECTOR, ProgramWriter
from tile_program_sizes import CONTENTS, ELEMENTS, Sizes
from tile_program_writer import STRAIGHT

__all__ = ["COMPILED", "CONTROL", "MAX_SELECTOR", "STRAIGHT", "Sizes", "TileProgram", "sizes", "tile_programs"]


@dataclass(frozen=True)
class TileProgram:
    """A module in text, its sizes, and the names of the global tensors that @main takes before %out and %sel."""

    text: str
    sizes: Sizes
    tensors: tuple[str, ...]

    def __repr__(self):
        return f"TileProgram of {self.sizes}:\n{self.text}"

    def arguments(self, seed=0, selector=0):
        """Return random arguments of @main as numpy arrays: codes as bytes, scales in blocked shape."""
        rng = np.random.default_rng(seed)
        arrays = [self._array(rng, name) for name in self.tensors]
        out = rng.standard_normal(self.sizes.tensor("acc")).astype(np.float32)
        valid = [int(rng.integers(1, self.sizes.rows + 1))] if self.sizes.valid_rows is None else []
        return [*arrays, out, selector, *valid]

    def _array(self, rng, name):
        sort, _, content = name.partition("_")
        shape = self.sizes.tensor(name)
        element = CONTENTS.get(content, ELEMENTS[sort])
        if element == "f32":
            return rng.standard_normal(shape).astype(np.float32)
        if element == "f4E2M1FN":
            return rng.integers(0, 16, shape, np.uint8)
        if element == "f8E8M0FNU":
            if not content:
                block, group = shape if sort == "as" else shape[::-1]
                shape = (1, block // 16, group // 2, 16, 2)
            return rng.integers(120, 135, shape, np.uint8).view(ml_dtypes.float8_e8m0fnu)
        # Every code but the NaNs, 0x7f and 0xff.
        codes = rng.integers(0, 127, shape, np.uint8) | (rng.integers(0, 2, shape, np.uint8) << 7)
        return codes.view(ml_dtypes.float8_e4m3fn)


@st.composite
def sizes(draw):
    """Draw the sizes of a program, small and whole ones first."""
    rows, columns, depth = (draw(st.sampled_from(extents)) for extents in ([16, 32], [32, 64], [64, 128]))
    valid_rows, valid_columns = draw(st.sampled_from([rows, 8, None])), draw(st.sampled_from([columns, 16]))
    return Sizes(
        rows, columns, depth, valid_rows, valid_columns, draw(st.sampled_from([depth, depth - 16, depth - 31]))
    )


@st.composite
def tile_programs(draw, decided=True, steps=(*STRAIGHT, *CONTROL), length=12, depth=2):
    """Draw a program; the module's docstring has the knobs."""
    writer = ProgramWriter(draw, draw(sizes()), decided, steps, length, depth)
    return TileProgram(writer.module(), writer.sizes, tuple(writer.tensors))
