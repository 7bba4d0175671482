"""`mx-tile-matmul`: from a matmul of two MX values to a kernel on tiles of a matrix engine.

    %0 = mx.block_matmul %a, %b, %zero : <64x512xf8E4M3FN, ...>, <512x96xf8E4M3FN, ...>, tensor<64x96xf32> -> ...

becomes a call of a kernel function, one for all matmuls of the same extents and formats:

    %data, %scale = mx.decompose %a : ...
    // The scales are padded to whole tiles, and brought into the byte order of the engine:
    %boxes = linalg.transpose ins(%expanded : tensor<1x4x16x8x2xf8E8M0FNU>) ... permutation = [0, 1, 3, 2, 4]
    %view = mx.tensor_view %bytes [64, 16] : tensor<1x1024xf8E8M0FNU> -> tensor<64x16xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>
    %0 = call @matmul_64x96x512_f8E4M3FN_f8E4M3FN(%data, %view, %rhs_data, %rhs_view, %empty)

    func.func private @matmul_64x96x512_f8E4M3FN_f8E4M3FN(...) attributes {mx.kernel = "aic"} {
      // for each tile of M, for each tile of N:
      %acc = mx.matmul_mx ...                   // the first tile of K
      scf.for %k = ... iter_args(%c = %acc)     // the others
        %group = arith.floordivsi %k, %c32
        %lhs_scale = mx.tile_load %view[%m, %group] [16, 8] {target = "mat"} : ...
        ... mx.matmul_mx_acc %c, ...
      mx.tile_store ...

Memory spaces, blocked views and scale addresses are for the passes of `mx-tile-pipeline`. Sums start from zero and go
along K in order. An accumulator that is not known to be zero is added to the product, and so is the product times a
factor folded into an operand.

Remainders: the last tile of M or N is valid in part. K is padded with zeros to a multiple of 64 if it is none, and what
remains of it after whole tiles is a smaller one.
"""

from dataclasses import dataclass
from typing import Any

from mx_dialect._mlir import func
from mx_dialect.diagnostics import MxError
from mx_dialect.fold_chain import strip
from mx_dialect.generics import empty
from mx_dialect.lowering.matmul_host import added, is_zero, over_batches
from mx_dialect.lowering.matmul_kernels import Engine, Kernels, replace_matmuls
from mx_dialect.lowering.tile_matmul_host import lhs_side, rhs_side
from mx_dialect.lowering.tile_matmul_kernel import Problem, build
from mx_dialect.ops import BlockMatmulOp
from mx_dialect.passes import Pass, option, register_pass
from mx_dialect.tile_matmul_ops import MULTIPLE_K, MULTIPLE_M, MULTIPLE_N

_ENGINE = Engine("mx-tile-matmul", ("f8E4M3FN", "f4E2M1FN"), build)


@dataclass(frozen=True)
class Options:
    m: int = option(128, "Rows of a tile of the result, a multiple of 16")
    n: int = option(128, "Columns of a tile of the result, a multiple of 32")
    k: int = option(256, "How much of K the matrix unit gets at a time, a multiple of 64")


def run(root: Any, options: Options) -> None:
    """Replace every block_matmul under the module `root` whose sides are both MX.

    Raises:
        MxError: an option that the matrix unit does not take, or one error for each matmul that it cannot run.
    """
    tile = _tile(options)
    replace_matmuls(root, _ENGINE, lambda op, kernels: _product(op, kernels, tile))


def _tile(options: Options) -> tuple[int, int, int]:
    sizes = (options.m, options.n, options.k)
    for name, size, multiple in zip("mnk", sizes, (MULTIPLE_M, MULTIPLE_N, MULTIPLE_K), strict=True):
        if size <= 0 or size % multiple:
            raise MxError(
                f"option '{name}' of pass 'mx-tile-matmul' must be a positive multiple of {multiple}, but is {size}"
            )
    return sizes


def _product(op: BlockMatmulOp, kernels: Kernels, tile: tuple[int, int, int]) -> Any:
    """Build the calls of a kernel for all batches of a matmul, and what is added; return the result."""
    acc = op.acc
    rows, columns = list(acc.type.shape)[-2:]
    lhs_type, rhs_type = op.lhs.type, op.rhs.type
    problem = Problem.of(rows, columns, lhs_type.shape[-1], lhs_type.spec.element, rhs_type.spec.element, tile)
    kernel = kernels.kernel(problem)
    lhs_value, lhs_factor = strip(op.lhs)
    rhs_value, rhs_factor = strip(op.rhs)
    lhs, rhs = lhs_side(lhs_value, problem), rhs_side(rhs_value, problem, op.transpose_rhs)

    def call(indices: Any, matrix: Any) -> Any:
        return func.CallOp(kernel, [*lhs.of_batch(indices), *rhs.of_batch(indices), matrix]).result

    product = over_batches(empty(acc.type.shape, acc.type.element_type), call)
    factors = [factor for factor in (lhs_factor, rhs_factor) if factor is not None]
    return product if is_zero(acc) and not factors else added(acc, product, factors)


PASS = register_pass(
    Pass(
        name="mx-tile-matmul",
        summary="Lower matmuls of two MX values to kernels on tiles of a matrix engine",
        run=run,
        options=Options,
        requires="static extents; f8E4M3FN or f4E2M1FN elements in blocks of 32 with f8E8M0FNU scales",
        leaves="no block_matmul of two MX values; kernels that take scales as views in the engine's layouts",
    )
)
