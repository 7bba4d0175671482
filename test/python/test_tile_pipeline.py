"""mx-tile-pipeline: what it leaves of random programs, and that a kernel computes the same numbers before and after it."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from tile_checks import check_places, space, walk
from tile_programs import tile_programs

import mx_dialect
from mx_dialect import pipelines


def test_every_pass_runs_once_in_order():
    assert pipelines.get("mx-tile-pipeline").stages == (
        "mx-block-scale-views",
        "mx-legalize-cast",
        "mx-infer-memory-space",
        "mx-insert-scale-addr",
        "mx-verify-scale-binding",
        "mx-materialize-strides",
    )


@settings(max_examples=7, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(tile_programs(decided=False))
def test_random_programs_are_ready_for_the_engine(program):
    module = mx_dialect.parse(program.text)
    mx_dialect.run_pipeline(module, "mx-tile-pipeline")
    check_places(module)
    for op in walk(module):
        if op.name.startswith("mx.matmul_mx"):
            scales = [operand for operand in op.operands if "f8E8M0FNU" in str(operand.type)]
            assert [scale.owner.name for scale in scales] == ["mx.tget_scale_addr"] * 2
        for value in op.results:
            assert "#mx.layout" not in str(value.type) or "strides" in str(value.type)
    # Other passes do not break what was bound.
    mx_dialect.run_pipeline(module, "cse,canonicalize,loop-invariant-code-motion,mx-verify-scale-binding")


M, N, K = 16, 32, 256
AS, BS = (
    f"tensor<{shape}xf8E8M0FNU, #mx.layout<{layout}>>"
    for shape, layout in ((f"{M}x{K // 32}", '"MX_A_ZZ"'), (f"{K // 32}x{N}", '"MX_B_NN"'))
)
KERNEL = f"""
!a = !mx.tile<16x64xf8E4M3FN>
!as = !mx.tile<16x2xf8E8M0FNU, mat>
!b = !mx.tile<64x32xf8E4M3FN>
!bs = !mx.tile<2x32xf8E8M0FNU, mat>
!c = !mx.tile<16x32xf32>
func.func @kernel(%x: tensor<{M}x{K}xf4E2M1FN>, %xs: {AS}, %y: tensor<{K}x{N}xf8E4M3FN>, %ys: {BS},
                  %out: tensor<{M}x{N}xf32>) -> tensor<{M}x{N}xf32> attributes {{mx.kernel = "incore"}} {{
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c192 = arith.constant 192 : index
  %c256 = arith.constant 256 : index
  // The data of the first iteration are loaded before the loop, those of each other one at the end of the one before.
  %w0 = mx.tile_load %x[0, 0] [16, 64] : tensor<{M}x{K}xf4E2M1FN> -> !mx.tile<16x64xf4E2M1FN>
  %b0 = mx.tile_load %y[0, 0] [64, 32] : tensor<{K}x{N}xf8E4M3FN> -> !b
  %init = mx.tile_create : () -> !c
  %0:3 = scf.for %k = %c0 to %c256 step %c64 iter_args(%w = %w0, %b = %b0, %c = %init)
      -> (!mx.tile<16x64xf4E2M1FN>, !b, !c) {{
    %g = arith.floordivsi %k, %c32 : index
    %a = mx.tile_cast %w : !mx.tile<16x64xf4E2M1FN> -> !a
    %as = mx.tile_load %xs[0, %g] [16, 2] {{target = "mat"}} : {AS} -> !as
    %bs = mx.tile_load %ys[%g, 0] [2, 32] {{target = "mat"}} : {BS} -> !bs
    %1 = mx.matmul_mx_acc %c, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c
    %after = arith.addi %k, %c64 : index
    %next = arith.minsi %after, %c192 : index
    %w1 = mx.tile_load %x[0, %next] [16, 64] : tensor<{M}x{K}xf4E2M1FN> -> !mx.tile<16x64xf4E2M1FN>
    %b1 = mx.tile_load %y[%next, 0] [64, 32] : tensor<{K}x{N}xf8E4M3FN> -> !b
    scf.yield %w1, %b1, %1 : !mx.tile<16x64xf4E2M1FN>, !b, !c
  }}
  %r = mx.tile_store %0#2, %out[0, 0] : !c, tensor<{M}x{N}xf32> -> tensor<{M}x{N}xf32>
  return %r : tensor<{M}x{N}xf32>
}}"""
STAGES = pipelines.get("mx-tile-pipeline").stages
# Of the codes 0 to 7; those from 8 on have the sign bit set.
FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


def boxes(scales):
    """Return scales [X, G], rows of what they belong to first, in boxes of 16 x 2: [1, X / 16, G / 2, 16, 2]."""
    x, g = scales.shape
    return np.ascontiguousarray(scales.reshape(x // 16, 16, g // 2, 2).transpose(0, 2, 1, 3))[np.newaxis]


def test_what_a_loop_carries_lies_where_it_is_used():
    module = mx_dialect.parse(KERNEL)
    mx_dialect.run_pipeline(module, "mx-tile-pipeline")
    (loop,) = [op for op in walk(module) if op.name == "scf.for"]
    assert [space(result) for result in loop.results] == ["vec", "right", "acc"]
    assert [space(op.operands[0]) for op in walk(module) if op.name == "mx.tile_cast"] == ["vec"]


@pytest.mark.parametrize("count", range(len(STAGES) + 1))
def test_a_kernel_computes_the_product_after_every_pass(count):
    rng = np.random.default_rng(count)
    x, y = rng.integers(0, 16, (M, K), np.uint8), rng.integers(0, 0x30, (K, N), np.uint8)
    xs, ys = rng.integers(125, 130, (M, K // 32), np.uint8), rng.integers(125, 130, (K // 32, N), np.uint8)
    a = np.where(x < 8, 1, -1) * FP4[x % 8] * np.repeat(np.exp2(xs - 127.0), 32, axis=1)
    b = y.view(ml_dtypes.float8_e4m3fn).astype(np.float64) * np.repeat(np.exp2(ys - 127.0), 32, axis=0)

    module = mx_dialect.parse(KERNEL)
    mx_dialect.run_pipeline(module, ",".join([*STAGES[:count], "mx-tile-to-linalg"]))
    kernel = mx_dialect.compile(module, pipeline="mx-lower-to-llvm", opt_level=0)
    e8m0, e4m3 = ml_dtypes.float8_e8m0fnu, ml_dtypes.float8_e4m3fn
    found = kernel(x, boxes(xs).view(e8m0), y.view(e4m3), boxes(ys.T).view(e8m0), np.zeros((M, N), np.float32))
    # gamma_K: a rounding for each product that is added.
    bound = K * 2.0**-24 / (1 - K * 2.0**-24) * (np.abs(a) @ np.abs(b))
    assert np.all(np.abs(found - a @ b) <= bound)
