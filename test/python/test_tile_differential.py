"""No pass of the tile level changes what a program computes: bit for bit, on the CPU, after every one of them."""

import functools

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tile_programs import COMPILED, STRAIGHT, tile_programs

import mx_dialect
from mx_dialect.layouts import a5
from mx_dialect.pipelines import TILES

FEW = settings(max_examples=4, suppress_health_check=list(HealthCheck))


@functools.lru_cache(maxsize=64)
def compiled(lowered, pipeline):
    return mx_dialect.compile(lowered, "main", pipeline=pipeline, opt_level=0)


def stages(text, passes):
    """Yield (stage, program lowered to linalg) before and after each pass; moves and bindings leave no trace there."""
    module = mx_dialect.parse(text)
    for name in (None, *passes):
        if name is not None:
            mx_dialect.run_pipeline(module, name)
        lowered = mx_dialect.parse(mx_dialect.to_asm(module))
        mx_dialect.run_pipeline(lowered, "mx-tile-to-linalg,cse")
        yield name or "as written", mx_dialect.to_asm(lowered)


def bits(results):
    results = results if isinstance(results, tuple) else (results,)
    return [(result.shape, result.tobytes()) for result in results]


def assert_unchanged(text, passes, arguments, pipeline="mx-lower-to-llvm"):
    """Run a program before and after each pass on several lists of arguments; return the kernel of the last stage."""
    expected = None
    kernel = None
    for stage, lowered in stages(text, passes):
        kernel = compiled(lowered, pipeline)
        found = [bits(kernel(*given)) for given in arguments]
        expected = found if expected is None else expected
        assert found == expected, stage
    return kernel


@FEW
@given(tile_programs(decided=False, steps=(*STRAIGHT, *COMPILED), length=6), st.integers(0, 2**32 - 1))
def test_the_whole_pipeline(program, seed):
    assert_unchanged(program.text, TILES, [program.arguments(seed, selector) for selector in (0, 2)])


@FEW
@given(
    tile_programs(decided=True, steps=(*STRAIGHT, *COMPILED), length=6),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["", "{reuse=false}"]),
)
def test_bindings(program, seed, reuse):
    upstream = ("cse", "canonicalize", "loop-invariant-code-motion")
    passes = (f"mx-insert-scale-addr{reuse}", "mx-verify-scale-binding", *upstream)
    assert_unchanged(program.text, passes, [program.arguments(seed, selector) for selector in (1, 3)])


A, B = '#mx.layout<"MX_A_ZZ">', '#mx.layout<"MX_B_NN">'
GLOBALS = f"""
!a = tensor<40x128xf8E4M3FN>
!as = tensor<48x4xf8E8M0FNU, {A}>
!b = tensor<128x64xf4E2M1FN>
!bytes = tensor<1x256xui8>
!bs = tensor<4x64xui8, {B}>
!out = tensor<40x64xf32>
"""


def step(result, k, g):
    """Return the operands of a matmul at a K and a group, called %a{result} and so on."""
    return f"""
    %a{result} = mx.tile_load %a[%m, {k}] [32, 64] [%rows, 64] : !a -> !ta
    %s{result} = mx.tile_load %as[%m, {g}] [32, 2] [%rows, 2] {{target = "mat"}} : !as -> !tas
    %f{result} = mx.tile_load %b[{k}, %n] [64, 32] : !b -> !mx.tile<64x32xf4E2M1FN>
    %b{result} = mx.tile_cast %f{result} : !mx.tile<64x32xf4E2M1FN> -> !tb
    %u{result} = mx.tile_load %bs[{g}, %n] [2, 32] {{target = "mat"}} : !bs -> !mx.tile<2x32xui8, mat>
    %t{result} = mx.tile_move %u{result} : !mx.tile<2x32xui8, mat> -> !tbs"""


# A matmul of 40 rows in tiles of 32, K in tiles of 64: the second tile of rows and its window of scales are ragged. Each
# of two blocks makes half of the columns.
RAGGED = f"""{GLOBALS}
!ta = !mx.tile<32x64xf8E4M3FN, valid = ?x64>
!tas = !mx.tile<32x2xf8E8M0FNU, mat, valid = ?x2>
!tb = !mx.tile<64x32xf8E4M3FN>
!tbs = !mx.tile<2x32xf8E8M0FNU, right_scale>
!acc = !mx.tile<32x32xf32, valid = ?x32>
func.func private @kernel(%a: !a, %as: !as, %b: !b, %bs: !bs, %out: !out) -> !out attributes {{mx.kernel = "aic"}} {{
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c40 = arith.constant 40 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %block = mx.block_idx : () -> index
  %n = arith.muli %block, %c32 : index
  %0 = scf.for %m = %c0 to %c40 step %c32 iter_args(%to = %out) -> (!out) {{
    %left = arith.subi %c40, %m : index
    %rows = arith.minsi %left, %c32 : index
    {step(0, 0, 0)}
    %first = mx.matmul_mx %a0, %s0, %b0, %t0 : !ta, !tas, !tb, !tbs -> !acc
    %sum = scf.for %k = %c64 to %c128 step %c64 iter_args(%acc = %first) -> (!acc) {{
      %g = arith.floordivsi %k, %c32 : index
      {step(1, "%k", "%g")}
      %next = mx.matmul_mx_acc %acc, %a1, %s1, %b1, %t1 : !acc, !ta, !tas, !tb, !tbs -> !acc
      scf.yield %next : !acc
    }}
    %stored = mx.tile_store %sum, %to[%m, %n] : !acc, !out -> !out
    scf.yield %stored : !out
  }}
  return %0 : !out
}}
func.func @main(%a: !a, %as: !as, %b: !b, %bytes: !bytes, %out: !out) -> !out {{
  %c2 = arith.constant 2 : index
  %bs = mx.tensor_view %bytes [4, 64] : !bytes -> !bs
  %0 = mx.submit @kernel(%a, %as, %b, %bs, %out) cores(%c2) : !a, !as, !b, !bs, !out, index -> !out
  return %0 : !out
}}
"""


@pytest.mark.parametrize("pipeline", ["mx-lower-to-llvm", "mx-lower-to-llvm-vectorized"])
def test_a_ragged_matmul(pipeline):
    rng = np.random.default_rng(0)
    a = rng.integers(-8, 9, (40, 128)).astype(ml_dtypes.float8_e4m3fn)
    sa = np.full((48, 4), 255, np.uint8)
    sa[:40] = rng.integers(126, 129, (40, 4))
    b, sb = rng.integers(0, 16, (128, 64)).astype(np.uint8), rng.integers(126, 129, (4, 64)).astype(np.uint8)
    out = np.full((40, 64), np.nan, np.float32)
    arguments = (a, a5.pack(sa, a5.MX_A_ZZ), b, a5.pack(sb, a5.MX_B_NN).reshape(1, 256), out)
    kernel = assert_unchanged(RAGGED, TILES, [arguments], pipeline)
    powers = [np.exp2(scale.astype(np.float64) - 127).repeat(32, axis) for scale, axis in ((sa[:40], 1), (sb, 0))]
    lhs, rhs = a.astype(np.float64), b.view(ml_dtypes.float4_e2m1fn).astype(np.float64)
    # Small integers over a power of two: the sums are exact.
    np.testing.assert_array_equal(kernel(*arguments), (lhs * powers[0]) @ (rhs * powers[1]))
