"""mx-fuse-rows changes no result: programs run before and after it, over shapes, formats and tile sizes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mx_dialect
from mx_dialect.tensor_spec import TensorSpec, spell_shape

BEFORE = "mx-to-linalg,mx-expand-narrow-floats,linalg-generalize-named-ops,mx-expand-k"


def program(spec: TensorSpec) -> str:
    """Quantize, and dequantize what came out: two chains that share tensors."""
    dense = f"tensor<{spell_shape(spec.shape, 'f32')}>"
    return f"""
    func.func @f(%x: {dense}) -> ({spec.custom()}, {dense}) {{
      %0 = mx.quantize_block %x : {dense} -> {spec.custom()}
      %1 = mx.dequantize_block %0 : {spec.custom()} -> {dense}
      return %0, %1 : {spec.custom()}, {dense}
    }}"""


@settings(max_examples=12)
@given(
    rows=st.sampled_from([1, 2, 6, 8, 24, 32]),
    blocks=st.integers(1, 3),
    block_size=st.sampled_from([1, 4, 32]),
    axis=st.integers(0, 1),
    element=st.sampled_from(["f8E4M3FN", "f4E2M1FN", "i8"]),
    cache_bytes=st.sampled_from([1, 300, 2000]),
    seed=st.integers(0, 99),
)
def test_results_stay(
    rows: int, blocks: int, block_size: int, axis: int, element: str, cache_bytes: int, seed: int
) -> None:
    shape = (rows, blocks * block_size) if axis else (blocks * block_size, rows)
    spec = TensorSpec(shape, element, block_size, "f8E8M0FNU", axis)
    x = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    module = mx_dialect.parse(program(spec))
    mx_dialect.run_pipeline(module, f"{BEFORE},mx-fuse-rows{{cache-bytes={cache_bytes}}}")
    mantissa, scale, values = mx_dialect.compile(module, pipeline="mx-lower-to-llvm", opt_level=0)(x)
    expected = mx_dialect.reference.quantize(x, element, block_size, axis)
    assert mantissa.tobytes() == expected.mantissa.tobytes()
    assert scale.tobytes() == expected.scale.tobytes()
    np.testing.assert_array_equal(values, mx_dialect.reference.dequantize(expected))


@pytest.mark.parametrize("cache_bytes", [1, 4096])
def test_the_pipeline_fuses_what_is_large(cache_bytes: int) -> None:
    module = mx_dialect.parse(program(TensorSpec((64, 256), "f8E4M3FN", 32, "f8E8M0FNU", 1)))
    mx_dialect.run_pipeline(module, f"{BEFORE},mx-fuse-rows{{cache-bytes={cache_bytes}}}")
    text = mx_dialect.to_asm(module)
    assert text.count("scf.for") == 1
    before = text
    mx_dialect.run_pipeline(module, f"mx-fuse-rows{{cache-bytes={cache_bytes}}}")
    assert mx_dialect.to_asm(module) == before
