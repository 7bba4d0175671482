"""The kernel function that `mx-tile-matmul` makes for a matmul of two MX matrices: loops over tiles of M, N and K."""

from dataclasses import dataclass
from typing import Any

from mx_dialect._mlir import arith, func, ir
from mx_dialect.layouts.a5 import GROUP_SIZE, MX_A_ZZ, MX_B_NN, ScaleLayout
from mx_dialect.lowering.kernel_loops import KernelLoops
from mx_dialect.submit_ops import KERNEL
from mx_dialect.tile_matmul_ops import ELEMENT, MULTIPLE_K, MULTIPLE_M, MULTIPLE_N, SCALE, matmul_mx, matmul_mx_acc
from mx_dialect.tile_memory_ops import tile_load, tile_store
from mx_dialect.tile_ops import tile_cast
from mx_dialect.tile_types import LayoutAttr


@dataclass(frozen=True)
class Problem:
    """A product of [rows, depth] and [depth, columns], both MX with blocks of 32, and the tiles to compute it by.

    `lhs` and `rhs` are the element types, f8E4M3FN or f4E2M1FN; `depth` is a multiple of 64; `tile` is the largest
    (M, N, K) that the matrix unit gets at a time.
    """

    rows: int
    columns: int
    depth: int
    lhs: str
    rhs: str
    tile: tuple[int, int, int]

    @classmethod
    def of(cls, rows: int, columns: int, depth: int, lhs: str, rhs: str, tile: tuple[int, int, int]) -> "Problem":
        """Return the problem of a matmul, K rounded up to what the matrix unit takes and no tile larger than needed."""
        multiples = (MULTIPLE_M, MULTIPLE_N, MULTIPLE_K)
        m, n, k = (
            min(size, round_up(extent, multiple))
            for size, extent, multiple in zip(tile, (rows, columns, depth), multiples, strict=True)
        )
        return cls(rows, columns, round_up(depth, MULTIPLE_K), lhs, rhs, (m, n, k))

    @property
    def name(self) -> str:
        return f"matmul_{self.rows}x{self.columns}x{self.depth}_{self.lhs}_{self.rhs}"

    @property
    def kind(self) -> str:
        """Return what runs the kernel: a matrix core, or one with both units where FP4 is cast on the vector unit."""
        return "aic" if self.lhs == self.rhs == ELEMENT else "incore"

    @property
    def lhs_scale_shape(self) -> tuple[int, int]:
        """Return [M, G] of the view of lhs scales, M rounded up to whole tiles."""
        return round_up(self.rows, self.tile[0]), self.depth // GROUP_SIZE

    @property
    def rhs_scale_shape(self) -> tuple[int, int]:
        """Return [G, N] of the view of rhs scales, N rounded up to whole tiles."""
        return self.depth // GROUP_SIZE, round_up(self.columns, self.tile[1])

    @property
    def argument_types(self) -> list[Any]:
        """Return the types of lhs, its scales, rhs, its scales and the tensor that is stored into, in this order."""
        tensor = ir.RankedTensorType.get
        return [
            tensor([self.rows, self.depth], ir.Type.parse(self.lhs)),
            scale_view_type(self.lhs_scale_shape, MX_A_ZZ),
            tensor([self.depth, self.columns], ir.Type.parse(self.rhs)),
            scale_view_type(self.rhs_scale_shape, MX_B_NN),
            tensor([self.rows, self.columns], ir.F32Type.get()),
        ]


def round_up(extent: int, multiple: int) -> int:
    return -(-extent // multiple) * multiple


def scale_view_type(shape: tuple[int, int], layout: ScaleLayout) -> Any:
    """Return the type of a view of scales of a logical shape."""
    encoding = LayoutAttr.of({"layout": ir.StringAttr.get(layout.name)})
    return ir.RankedTensorType.get(shape, ir.Type.parse(SCALE), encoding)


def build(problem: Problem, name: str) -> Any:
    """Build the private kernel function of a problem at the current insertion point and return it.

    It stores lhs * rhs into its last argument, all of it, and returns that.
    """
    types = problem.argument_types
    function = func.FuncOp(name, (types, types[-1:]), visibility="private")
    function.attributes[KERNEL] = ir.StringAttr.get(problem.kind)
    kernel = _Kernel(problem, function.add_entry_block())
    with ir.InsertionPoint(kernel.block):
        func.return_([kernel.product()])
    return function


class _Kernel(KernelLoops):
    """The body of a kernel. Offsets are ints or index values; tensors and accumulators are carried by loops."""

    def __init__(self, problem: Problem, block: Any):
        super().__init__(block)
        self.problem = problem
        self.lhs, self.lhs_scale, self.rhs, self.rhs_scale, self.out = block.arguments

    def product(self) -> Any:
        """Build the loops over tiles of the result and return the tensor that they stored into."""
        rows, columns = self.problem.rows, self.problem.columns
        m, n, _ = self.problem.tile

        def row_of_tiles(m0: Any, out: Any) -> Any:
            valid_m = self._valid(m0, rows, m)

            def tile(n0: Any, out: Any) -> Any:
                valid_n = self._valid(n0, columns, n)
                return tile_store(self._tile(m0, valid_m, n0, valid_n), out, [m0, n0])

            return self.repeat(0, columns, n, out, tile)

        return self.repeat(0, rows, m, self.out, row_of_tiles)

    def _tile(self, m0: Any, valid_m: Any, n0: Any, valid_n: Any) -> Any:
        """Return the accumulator of one tile of the result: the first step along K starts it, the others add to it.

        What remains of K after whole steps is a smaller step, since a tile's valid K needs all of the tile's scales.
        """
        depth, k = self.problem.depth, self.problem.tile[2]
        rest = depth % k

        def operands(k0: Any, size: int) -> tuple[Any, Any, Any, Any]:
            group = self._group(k0)
            return (*self._load_lhs(m0, valid_m, k0, group, size), *self._load_rhs(n0, valid_n, k0, group, size))

        def add(k0: Any, acc: Any) -> Any:
            return matmul_mx_acc(acc, *operands(k0, k))

        acc = self.repeat(k, depth - rest, k, matmul_mx(*operands(0, k)), add)
        return matmul_mx_acc(acc, *operands(depth - rest, rest)) if rest else acc

    def _load_lhs(self, m0: Any, valid_m: Any, k0: Any, group: Any, size: int) -> tuple[Any, Any]:
        m, groups = self.problem.tile[0], size // GROUP_SIZE
        data = tile_load(self.lhs, [m0, k0], [m, size], _part([valid_m, size], [m, size]))
        scale = tile_load(self.lhs_scale, [m0, group], [m, groups], _part([valid_m, groups], [m, groups]))
        return _as_fp8(data), scale

    def _load_rhs(self, n0: Any, valid_n: Any, k0: Any, group: Any, size: int) -> tuple[Any, Any]:
        n, groups = self.problem.tile[1], size // GROUP_SIZE
        data = tile_load(self.rhs, [k0, n0], [size, n], _part([size, valid_n], [size, n]))
        scale = tile_load(self.rhs_scale, [group, n0], [groups, n], _part([groups, valid_n], [groups, n]))
        return _as_fp8(data), scale

    def _group(self, k0: Any) -> Any:
        """Return the number of the group that an offset along K begins."""
        if isinstance(k0, int):
            return k0 // GROUP_SIZE
        return arith.floordivsi(k0, self.index(GROUP_SIZE))

    def _valid(self, start: Any, extent: int, size: int) -> Any:
        """Return how much of a tile that starts at an offset lies in the matrix."""
        if extent % size == 0:
            return size
        if isinstance(start, int):
            return min(size, extent - start)
        return arith.minsi(self.index(size), arith.subi(self.index(extent), start))


def _part(valid: list[Any], window: list[int]) -> list[Any] | None:
    """Return the valid shape of a load, None where it is all of the window."""
    return None if valid == window else valid


def _as_fp8(data: Any) -> Any:
    is_fp8 = data.type.spec.element == ELEMENT
    return data if is_fp8 else tile_cast(data, ir.Type.parse(ELEMENT))
