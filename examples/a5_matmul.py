"""A matmul on tiles of an A5-like matrix engine: the IR after each pass, and what it computes after each pass.

Run `python examples/a5_matmul.py`. It takes the file beside this script from the value level to tiles and through the
passes of mx-tile-pipeline, prints the program after each, runs it on the CPU as it then is, and compares the result
with numpy. `--stage NAME` prints the program after that pass alone, `--quiet` no program.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

import mx_dialect
from mx_dialect import pipelines

M, K, N = 64, 768, 32
FILE = Path(__file__).with_name("a5_matmul.mlir")
LOOPS = "mx-lower-to-llvm"
VIEWS = "mx-block-scale-views"
STAGES = ("mx-tile-matmul{m=32 n=32 k=256}", *pipelines.PIPELINES["mx-tile-pipeline"].stages)


def name_of(stage: str) -> str:
    return stage.partition("{")[0]


def run(module: Any, x: mx_dialect.MxArray, w: mx_dialect.MxArray) -> np.ndarray[Any, Any]:
    """Return what a program computes on the CPU, in loops; the module stays as it is."""
    lowered = mx_dialect.parse(mx_dialect.to_asm(module))
    mx_dialect.run_pipeline(lowered, "mx-tile-to-linalg")
    return mx_dialect.compile(lowered, pipeline=LOOPS)(x, w)


def unchanged(module: Any, stage: str) -> bool:
    """Tell whether running a pass again changes nothing."""
    again = mx_dialect.parse(mx_dialect.to_asm(module))
    mx_dialect.run_pipeline(again, stage)
    return mx_dialect.to_asm(again) == mx_dialect.to_asm(module)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--stage", choices=[name_of(stage) for stage in STAGES], help="print the IR after this pass only"
    )
    parser.add_argument("--quiet", action="store_true", help="print no IR")
    flags = parser.parse_args()

    rng = np.random.default_rng(0)
    x = mx_dialect.quantize(rng.standard_normal((M, K), dtype=np.float32), "f8E4M3FN")
    w = mx_dialect.quantize(rng.standard_normal((N, K), dtype=np.float32), "f4E2M1FN")
    exact = mx_dialect.reference.matmul(x, w, transpose_rhs=True)
    bound = mx_dialect.reference.matmul_bound(x, w, transpose_rhs=True)

    module = mx_dialect.parse(FILE.read_text(), str(FILE))
    at_value_level = run(module, x, w)
    good = True
    lines: list[str] = []
    for stage in STAGES:
        mx_dialect.run_pipeline(module, stage)
        if not flags.quiet and flags.stage in (None, name_of(stage)):
            print(f"// -----// after {stage} //----- //\n{mx_dialect.to_asm(module)}")
        result = run(module, x, w)
        error = np.abs(result - exact)
        same = np.array_equal(result.view(np.uint32), at_value_level.view(np.uint32))
        good = good and same and bool((error <= bound).all())
        verdict = "the same bits as at the value level" if same else "OTHER BITS than at the value level"
        lines.append(f"{name_of(stage):24} {error.max():13.3e} {(error / bound).max():14.4f}  {verdict}")
        if stage == VIEWS:
            idempotent = unchanged(module, stage)
            good = good and idempotent
            lines.append(f"{'':24} a second run changes {'no view' if idempotent else 'THE PROGRAM'}")

    print(f"[{M}, {K}] MXFP8 times [{N}, {K}] MXFP4, transposed")
    print(f"largest bound on the error, gamma_(K+2) * sum |a||b|: {bound.max():.3e}")
    print(f"{'after':24} largest error error / bound  result")
    print("\n".join(lines))
    print("all stages agree" if good else "SOMETHING IS WRONG")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
