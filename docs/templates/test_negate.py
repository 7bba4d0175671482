"""mx.negate from Python to numbers; the expected ones are numpy's."""

import numpy as np

import mx_dialect

SPELLED = "!mx.tensor<8x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>"
PROGRAM = f"""\
func.func @negate(%x: {SPELLED}) -> tensor<8x64xf32> {{
  %0 = mx.negate %x : {SPELLED[10:]} -> {SPELLED[10:]}
  %1 = mx.dequantize_block %0 : {SPELLED[10:]} -> tensor<8x64xf32>
  return %1 : tensor<8x64xf32>
}}
"""


def test_negate() -> None:
    module = mx_dialect.parse(PROGRAM)
    mx_dialect.run_pipeline(module, "mx-expand-negate")
    quantized = mx_dialect.quantize(np.random.default_rng(0).standard_normal((8, 64), dtype=np.float32))
    negated = mx_dialect.compile(module, cache=False)(quantized)
    np.testing.assert_array_equal(negated, -mx_dialect.dequantize(quantized))
