"""The kernel function that `mx-neuron-matmul` makes for a matmul of two MX matrices: loops over tiles of M, N and K."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mx_dialect._mlir import arith, func, ir, tensor
from mx_dialect.generics import empty
from mx_dialect.layouts.neuron import LANES
from mx_dialect.layouts.neuron_scales import BLOCK_SIZE, PARTITIONS_PER_SCALE
from mx_dialect.lowering.kernel_loops import KernelLoops
from mx_dialect.lowering.matmul_host import padded
from mx_dialect.lowering.slices import slice_of, split_numbers
from mx_dialect.neuron_load_ops import scale_load_static
from mx_dialect.neuron_matmul_ops import nc_matmul_mx
from mx_dialect.neuron_types import X4Type


@dataclass(frozen=True)
class Problem:
    """A product of [rows, depth], stationary, and [depth, columns], moving, and the tiles to compute it by.

    `stationary` and `moving` are the element types, `weights` is the one of both that may be FP4; with `accumulate` the
    product is added to the kernel's last argument. `depth` is a multiple of 32; `tile` is the largest (M, N, K) that
    the engine gets at a time: an even number up to 128, up to 512, a multiple of 32 up to 512.
    """

    rows: int
    columns: int
    depth: int
    stationary: str
    moving: str
    weights: str
    accumulate: bool
    tile: tuple[int, int, int]

    @property
    def name(self) -> str:
        sizes = f"{self.rows}x{self.columns}x{self.depth}"
        return f"nc_matmul_{sizes}_{self.stationary}_{self.moving}{'_accumulate' * self.accumulate}"

    @property
    def argument_types(self) -> list[Any]:
        """Return the types of stationary, its scales, moving, its scales and the tensor that is stored into."""
        types: list[Any] = []
        for element, columns in ((self.stationary, _even(self.rows)), (self.moving, self.columns)):
            types += [
                ir.RankedTensorType.get([self.depth // LANES, columns], X4Type.get(element)),
                ir.RankedTensorType.get([self.depth // BLOCK_SIZE, columns], ir.IntegerType.get_signless(8)),
            ]
        return [*types, ir.RankedTensorType.get([self.rows, self.columns], ir.F32Type.get())]


def build(problem: Problem, name: str) -> Any:
    """Build the private kernel function of a problem at the current insertion point and return it.

    It stores the product, or its sum with what was there, into its last argument, all of it, and returns that.
    """
    types = problem.argument_types
    function = func.FuncOp(name, (types, types[-1:]), visibility="private")
    kernel = _Kernel(problem, function.add_entry_block())
    with ir.InsertionPoint(kernel.block):
        func.return_([kernel.product()])
    return function


def _even(extent: int) -> int:
    return extent + extent % 2


class _Kernel(KernelLoops):
    """The body of a kernel. Offsets are ints or index values; tensors are carried by loops."""

    def __init__(self, problem: Problem, block: Any):
        super().__init__(block)
        self.problem = problem
        self.stationary, self.stationary_scale, self.moving, self.moving_scale, self.out = block.arguments

    def product(self) -> Any:
        """Build the loops over tiles of the result and return the tensor that they stored into."""
        m, n, _ = self.problem.tile

        def row_of_tiles(m0: Any, rows: int, out: Any) -> Any:
            def tile(n0: Any, columns: int, out: Any) -> Any:
                return self._stored([m0, n0], [rows, columns], out)

            return self._over(0, self.problem.columns, n, out, tile)

        return self._over(0, self.problem.rows, m, self.out, row_of_tiles)

    def _over(self, start: int, stop: int, step: int, carried: Any, body: Callable[[Any, int, Any], Any]) -> Any:
        """Return `carried` after `body(offset, size, carried)` for whole steps, and for a rest as a smaller one."""
        rest = (stop - start) % step
        carried = self.repeat(start, stop - rest, step, carried, lambda offset, value: body(offset, step, value))
        return body(stop - rest, rest, carried) if rest else carried

    def _stored(self, place: list[Any], sizes: list[int], out: Any) -> Any:
        """Return `out` with one tile of the result in its place."""
        rows, columns = sizes
        part = _slice(self._tile(place, self._start(place, sizes, [_even(rows), columns], out)), [0, 0], sizes)
        values, static = split_numbers(place)
        return tensor.insert_slice(part, out, values, [], [], static, sizes, [1, 1])

    def _start(self, place: list[Any], sizes: list[int], whole: list[int], out: Any) -> Any:
        """Return what a tile of the result begins with: a part of `out`, or anything where nothing is added to it."""
        if self.problem.accumulate:
            return padded(_slice(out, place, sizes), whole, 0.0)
        return empty(whole, out.type.element_type)

    def _tile(self, place: list[Any], start: Any) -> Any:
        """Return one tile of the result. Along K it goes in steps of as many partitions as the engine takes."""
        m0, n0 = place
        partitions, step = self.problem.depth // LANES, self.problem.tile[2] // LANES
        rows, columns = start.type.shape

        def multiplied(p0: Any, size: int, dst: Any, accumulate: bool = True) -> Any:
            row, scale_rows = self._scale_row(p0), size // PARTITIONS_PER_SCALE
            left = _slice(self.stationary, [p0, m0], [size, rows])
            right = _slice(self.moving, [p0, n0], [size, columns])
            left_scale = scale_load_static(_slice(self.stationary_scale, [row, m0], [scale_rows, rows]))
            right_scale = scale_load_static(_slice(self.moving_scale, [row, n0], [scale_rows, columns]))
            return nc_matmul_mx(dst, left, right, left_scale, right_scale, self.problem.weights, accumulate)

        if self.problem.accumulate:
            return self._over(0, partitions, step, start, multiplied)
        first = min(step, partitions)
        return self._over(first, partitions, step, multiplied(0, first, start, False), multiplied)

    def _scale_row(self, p0: Any) -> Any:
        """Return the dense row of the scales that a partition begins."""
        if isinstance(p0, int):
            return p0 // PARTITIONS_PER_SCALE
        return arith.floordivsi(p0, self.index(PARTITIONS_PER_SCALE))


def _slice(value: Any, offsets: list[Any], sizes: list[int]) -> Any:
    if list(value.type.shape) == sizes:
        return value
    return slice_of(value, offsets, sizes, ir.RankedTensorType.get(sizes, value.type.element_type))
