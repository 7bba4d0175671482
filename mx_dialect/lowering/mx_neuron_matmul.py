"""`mx-neuron-matmul`: from a matmul of two MX values to a kernel on x4 containers of a Neuron-style matrix engine.

    %0 = mx.block_matmul %a, %b, %zero : <64x1024xf8E4M3FN, ...>, <1024x96xf4E2M1FN, ...>, tensor<64x96xf32> -> ...

becomes a call of a kernel function, one for all matmuls of the same extents and formats:

    %data, %scale = mx.decompose %a : ...
    // K comes first and four of its elements become a container; scales become their codes:
    %k_first = linalg.transpose ins(%data : tensor<64x1024xf8E4M3FN>) ... permutation = [1, 0]
    %stationary = mx.pack_weights %k_first {layout = "MX_CONTIGUOUS"} : ... -> tensor<256x64x!mx.x4<f8E4M3FN>>
    %0 = call @nc_matmul_64x96x1024_f8E4M3FN_f4E2M1FN(%stationary, %codes, %moving, %moving_codes, %empty)

    func.func private @nc_matmul_64x96x1024_f8E4M3FN_f4E2M1FN(...) {
      // for each tile of M, for each tile of N, for each 128 partitions of K but the first, which begins the sum:
      %row = arith.floordivsi %p, %c8
      %tile = tensor.extract_slice %stationary[%p, 0] [128, 64] ...
      %dense = tensor.extract_slice %codes[%row, 0] [16, 64] ...
      %quadrants = mx.scale_load_static %dense : tensor<16x64xi8> -> tensor<128x64xi8>
      %sum = mx.nc_matmul_mx %so_far, %tile, ..., %quadrants, ... {accumulate, weights = "moving"} : ...

lhs is stationary and rhs moving. The weights, the side that may be FP4, are rhs, or lhs if only that is FP4. Sums go
along K in order. They start from zero, or from an accumulator that is not known to be zero, except that with factors
folded into an operand the product is multiplied by those before it is added.

Remainders are smaller tiles. K is a whole number of blocks of 32, which are 8 partitions each. An odd number of
stationary columns is made even with a column of zeros, whose row of the result is dropped.
"""

from dataclasses import dataclass
from typing import Any

from mx_dialect._mlir import func
from mx_dialect.diagnostics import MxError
from mx_dialect.fold_chain import strip
from mx_dialect.generics import empty
from mx_dialect.layouts.neuron import X4_ELEMENT_TYPES
from mx_dialect.layouts.neuron_reference import ACTIVATION_TYPES, MAX_MOVING, MAX_STATIONARY
from mx_dialect.layouts.neuron_scales import BLOCK_SIZE
from mx_dialect.layouts.neuron_weights import TILE
from mx_dialect.lowering.matmul_host import added, is_zero, over_batches
from mx_dialect.lowering.matmul_kernels import Engine, Kernels, replace_matmuls
from mx_dialect.lowering.neuron_matmul_host import side
from mx_dialect.lowering.neuron_matmul_kernel import Problem, build
from mx_dialect.ops import BlockMatmulOp
from mx_dialect.passes import Pass, option, register_pass


@dataclass(frozen=True)
class Options:
    m: int = option(MAX_STATIONARY, f"Stationary columns at a time, an even number up to {MAX_STATIONARY}")
    n: int = option(MAX_MOVING, f"Moving columns at a time, up to {MAX_MOVING}")
    k: int = option(TILE, f"How much of K the engine gets at a time, a multiple of {BLOCK_SIZE} up to {TILE}")


def run(root: Any, options: Options) -> None:
    """Replace every block_matmul under the module `root` whose sides are both MX.

    Raises:
        MxError: an option that the engine does not take, or one error for each matmul that it cannot run.
    """
    tile = _tile(options)
    replace_matmuls(root, _ENGINE, lambda op, kernels: _result(op, kernels, tile))


def _tile(options: Options) -> tuple[int, int, int]:
    sizes = (options.m, options.n, options.k)
    limits = ((2, MAX_STATIONARY), (1, MAX_MOVING), (BLOCK_SIZE, TILE))
    for name, size, (multiple, most) in zip("mnk", sizes, limits, strict=True):
        if not 0 < size <= most or size % multiple:
            raise MxError(
                f"option '{name}' of pass 'mx-neuron-matmul' must be a positive multiple of {multiple} up to {most},"
                f" but is {size}"
            )
    return sizes


def _elements(op: BlockMatmulOp) -> tuple[str, str]:
    return op.lhs.type.spec.element, op.rhs.type.spec.element


def _rule(op: BlockMatmulOp) -> str | None:
    """Refuse a matmul without FP8 activations."""
    lhs, rhs = _elements(op)
    if lhs in ACTIVATION_TYPES or rhs in ACTIVATION_TYPES:
        return None
    return (
        f"multiplies {lhs} by {rhs}, but activations are FP8 always, only weights may be FP4; quantize one side to FP8"
    )


def _weights(op: BlockMatmulOp) -> str:
    """Return which operand of the engine holds the weights."""
    return "moving" if op.lhs.type.spec.element in ACTIVATION_TYPES else "stationary"


def _result(op: BlockMatmulOp, kernels: Kernels, tile: tuple[int, int, int]) -> Any:
    """Build the calls of a kernel for all batches of a matmul and return the result."""
    acc = op.acc
    (lhs_value, lhs_factor), (rhs_value, rhs_factor) = strip(op.lhs), strip(op.rhs)
    factors = [factor for factor in (lhs_factor, rhs_factor) if factor is not None]
    adds_up = not factors and not is_zero(acc)
    rows, columns = list(acc.type.shape)[-2:]
    kernel = kernels.kernel(Problem(rows, columns, op.lhs.type.shape[-1], *_elements(op), _weights(op), adds_up, tile))
    lhs = side(lhs_value, is_k_last=True, is_stationary=True)
    rhs = side(rhs_value, is_k_last=op.transpose_rhs, is_stationary=False)

    def call(indices: Any, matrix: Any) -> Any:
        return func.CallOp(kernel, [*lhs.of_batch(indices), *rhs.of_batch(indices), matrix]).result

    start = acc if adds_up else empty(acc.type.shape, acc.type.element_type)
    product = over_batches(start, call)
    return added(acc, product, factors) if factors else product


_ENGINE = Engine("mx-neuron-matmul", X4_ELEMENT_TYPES, build, _rule)

PASS = register_pass(
    Pass(
        name="mx-neuron-matmul",
        summary="Lower matmuls of two MX values to kernels on x4 containers of a Neuron-style engine",
        run=run,
        options=Options,
        requires="static extents; f4E2M1FN, f8E4M3FN or f8E5M2 elements, one side FP8, blocks of 32, f8E8M0FNU scales",
        leaves="no block_matmul of two MX values; kernels that take x4 containers and scale codes",
    )
)
