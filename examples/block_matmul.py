"""From an .mlir file with mx.block_matmul to numbers: lower it, run it, and check the result against its error bound.

Run `python examples/block_matmul.py`. The first half takes the file beside this script through the compiler; the second
does the same job through the array API.
"""

import sys
from pathlib import Path

import numpy as np

import mx_dialect

M, K, N = 512, 1024, 256


def main() -> int:
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((M, K), dtype=np.float32)
    activations = rng.standard_normal((K, N), dtype=np.float32)

    quantized = mx_dialect.quantize(weights, "f8E4M3FN", block_size=32, axis=-1, rounding="floor")
    print(f"quantized {M}x{K} float32 ({weights.nbytes:,} bytes) to {quantized}")
    print(f"  mantissa {quantized.mantissa.dtype} {quantized.mantissa.shape}, {quantized.mantissa.nbytes:,} bytes")
    print(f"  scale    {quantized.scale.dtype} {quantized.scale.shape}, {quantized.scale.nbytes:,} bytes")

    file = Path(__file__).with_name("block_matmul.mlir")
    module = mx_dialect.parse(file.read_text(), str(file))
    mx_dialect.run_pipeline(module, "mx-to-linalg")
    print(f"\n{file.name} after mx-to-linalg:\n")
    print(mx_dialect.to_asm(module))

    kernel = mx_dialect.compile(file.read_text())
    result = kernel(quantized, activations, np.zeros((M, N), np.float32))
    same = mx_dialect.matmul(quantized, activations)

    # The product of the dequantized matrix, in double precision, and how far f32 arithmetic may be from it.
    exact = mx_dialect.reference.matmul(quantized, activations)
    bound = mx_dialect.reference.matmul_bound(quantized, activations)
    error = np.abs(result - exact)
    print(f"compiled kernel:  largest error {error.max():.3e}, largest bound {bound.max():.3e}")
    print(f"array API:        largest error {np.abs(same - exact).max():.3e}")
    print(f"largest ratio of error to bound: {(error / bound).max():.4f} (1 is the limit)")
    from_quantization = np.abs(exact - weights.astype(np.float64) @ activations.astype(np.float64)).max()
    print(f"for comparison, quantizing changed the product by up to {from_quantization:.3e}")
    inside = bool((error <= bound).all() and (np.abs(same - exact) <= bound).all())
    print("within the bound" if inside else "OUTSIDE the bound")
    return 0 if inside else 1


if __name__ == "__main__":
    sys.exit(main())
