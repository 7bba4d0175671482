"""The schedule for the matrix unit: right for every shape and value, whatever the unit itself cannot do."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from machine_code import loops, lower
from test_schedules import FORMATS, check, operands, program

import mx_dialect
from mx_dialect.diagnostics import MxError
from mx_dialect.mx_array import MxArray
from mx_dialect.schedule import amx_fallback, host
from mx_dialect.schedule.amx_words import significant_bits

pytestmark = pytest.mark.skipif("amx_bf16" not in host.detect().features, reason="the processor has no matrix unit")

# Whose rows are packed as they are: an mx side, or an f32 one beside it.
FORMS = {"A": "lhs", "AB": "lhs", "AT": "lhs", "BT": "rhs", "ABT": "rhs", "B": "lhs"}


def _schedule(long: str, block_long: int = 32, block_short: int = 64, block_k: int = 64) -> str:
    sizes = f"block_long = {block_long}, block_short = {block_short}, block_k = {block_k}"
    return f'{{kind = "amx", long = "{long}", {sizes}}}'


@given(
    st.integers(1, 70),
    st.integers(1, 70),
    st.integers(1, 4),
    st.sampled_from(sorted(FORMS)),
    st.sampled_from(FORMATS),
    st.sampled_from([16, 32, 64]),
    st.sampled_from([32, 64]),
    st.sampled_from([32, 64]),
    st.sampled_from([64, 128]),
    st.booleans(),
    st.integers(0, 2**32),
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_shape(
    m: int, n: int, groups: int, form: str, fmt: str, block: int,
    block_long: int, block_short: int, block_k: int, special: bool, seed: int,
) -> None:  # fmt: skip
    k = 64 * groups
    text = program(m, n, k, form, fmt, block, _schedule(FORMS[form], block_long, block_short, block_k))
    check(text, operands(m, n, k, form, fmt, block, seed, special), "T" in form)


@pytest.mark.parametrize("few", [1, 4, 5, 6, 10, 11])
@pytest.mark.parametrize("form", ["A", "BT"])
def test_few_columns_or_rows(form: str, few: int) -> None:
    """Up to ten have the parts of their words side by side, in one tile or two; a group along k, and an odd number."""
    m, n, k = 37, few, 64 if few % 2 else 192
    m, n = (m, n) if form == "A" else (n, m)
    text = program(m, n, k, form, FORMATS[few % len(FORMATS)], 32, _schedule(FORMS[form], block_short=32, block_k=256))
    check(text, operands(m, n, k, form, FORMATS[few % len(FORMATS)], 32, few, special=False), "T" in form)


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("block_short", [32, 64])
def test_each_format_with_every_code_and_extreme_scales(fmt: str, block_short: int) -> None:
    m, n, k = 48, 40, 128
    text = program(m, n, k, "A", fmt, 32, _schedule("lhs", 32, block_short))
    rng = np.random.default_rng(7)
    given_ = operands(m, n, k, "A", fmt, 32, 7, special=False)
    codes = given_[0].mantissa.view(np.uint8)
    bits = {"f4E2M1FN": 4, "f6E3M2FN": 6, "f6E2M3FN": 6}.get(fmt, 8)
    # Rows with special values, and tiles of rows that have none.
    codes[:32] = rng.integers(0, 1 << bits, codes[:32].shape)
    given_[0].scale.view(np.uint8)[:20] = rng.integers(0, 256, (20, k // 32))
    check(text, given_, transposed=False)


def _ones(m: int, n: int, k: int) -> list[Any]:
    lhs = mx_dialect.quantize(np.ones((m, k), np.float32))
    return [lhs, np.ones((k, n), np.float32), np.zeros((m, n), np.float32)]


@pytest.mark.parametrize("block_short", [32, 64])
@pytest.mark.parametrize("value", [2.0**-149, 2.0**-126, 2.0**-100, 1.5 * 2.0**127, np.inf, np.nan, 0.0, -0.0])
def test_values_that_the_unit_cannot_multiply(value: float, block_short: int) -> None:
    """It would take subnormals for zeros, and split infinity into infinity and NaN."""
    m, n, k = 32, 16, 64
    lhs, rhs, acc = _ones(m, n, k)
    rhs[:] = 0
    rhs[3, 5] = value
    out = mx_dialect.compile(program(m, n, k, "A", "f8E4M3FN", 32, _schedule("lhs", 32, block_short)))(lhs, rhs, acc)
    expected = np.zeros((m, n), np.float32)
    expected[:, 5] = value
    assert np.array_equal(out, expected, equal_nan=True)


@pytest.mark.parametrize("code", [0, 1, 40, 254])
def test_products_that_are_too_small_or_too_large(code: int) -> None:
    m, n, k = 32, 16, 64
    lhs, rhs, acc = _ones(m, n, k)
    rhs *= np.float32(1 + 2.0**-20)
    lhs.scale.view(np.uint8)[5] = code
    out = mx_dialect.compile(program(m, n, k, "A", "f8E4M3FN", 32, _schedule("lhs")))(lhs, rhs, acc)
    with np.errstate(over="ignore"):
        row = np.float32(mx_dialect.dequantize(lhs)[5, 0] * np.float64(rhs[0, 0]) * k)
    assert np.allclose(out[5], row, rtol=1e-5, atol=0)


@pytest.mark.parametrize("block_short", [32, 64])
def test_blocks_of_zeros_do_not_keep_the_unit_from_working(monkeypatch: pytest.MonkeyPatch, block_short: int) -> None:
    """Their scale is the least there is. What the unit does not do is left out here, to see that it does all."""
    monkeypatch.setattr(amx_fallback.PartPanels, "multiply", lambda *parts: None)
    m, n, k = 64, 48, 128
    text = program(m, n, k, "A", "f8E4M3FN", 32, _schedule("lhs", block_short=block_short, block_k=k))
    given_ = operands(m, n, k, "A", "f8E4M3FN", 32, 3, special=False)
    given_[0].mantissa.view(np.uint8)[:40, :32] = 0
    given_[0].scale.view(np.uint8)[:40, 0] = 0
    out = mx_dialect.compile(text, cache=False, opt_level=2)(*given_)
    assert np.allclose(out, mx_dialect.dequantize(given_[0]) @ given_[1] + given_[2], rtol=1e-4, atol=1e-3)
    # And that it leaves to f32 arithmetic what it must: all columns that are packed with the first.
    given_[1][0, 0] = 2.0**-140
    given_[2][:] = 0
    assert not mx_dialect.compile(text, cache=False, opt_level=2)(*given_)[:, :block_short].any()


@pytest.mark.parametrize("block_short", [32, 64])
@pytest.mark.parametrize(("form", "fmt"), [("A", "f8E4M3FN"), ("A", "f4E2M1FN"), ("BT", "f6E2M3FN"), ("ABT", "f8E5M2")])
def test_a_nan_scale_of_zeros_makes_nan(form: str, fmt: str, block_short: int) -> None:
    m, n, k = (64, 9, 128) if FORMS[form] == "lhs" else (9, 64, 128)
    given_ = operands(m, n, k, form, fmt, 32, 5, special=False)
    side = given_[0 if FORMS[form] == "lhs" else 1]
    side.mantissa.view(np.uint8)[3, 32:64] = 0
    side.scale.view(np.uint8)[3, 1] = 255
    out = mx_dialect.compile(program(m, n, k, form, fmt, 32, _schedule(FORMS[form], block_short=block_short)))(*given_)
    nan = np.isnan(out if FORMS[form] == "lhs" else out.T)
    assert nan[3].all()
    assert nan.sum() == nan[3].size


@pytest.mark.parametrize("factor", ["0x1p-6", "0x1p-40", "0x1p-60"])
def test_a_nan_scale_beside_small_elements_makes_nan(factor: str) -> None:
    """The exponent of the product would be that of a number."""
    shape = "tensor<64x128xf8E4M3FN>, tensor<64x4xf8E8M0FNU>, tensor<128x48xf32>"
    text = f"""
    #a = affine_map<(m, n, k) -> (m, k)>
    #s = affine_map<(m, n, k) -> (m, k floordiv 32)>
    #b = affine_map<(m, n, k) -> (k, n)>
    #c = affine_map<(m, n, k) -> (m, n)>
    func.func @f(%q: tensor<64x128xf8E4M3FN>, %s: tensor<64x4xf8E8M0FNU>, %b: tensor<128x48xf32>,
                 %c: tensor<64x48xf32>) -> tensor<64x48xf32> {{
      %0 = linalg.generic {{indexing_maps = [#a, #s, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
                            mx.schedule = "amx"}} ins(%q, %s, %b : {shape}) outs(%c : tensor<64x48xf32>) {{
      ^bb0(%i: f8E4M3FN, %j: f8E8M0FNU, %y: f32, %o: f32):
        %factor = arith.constant {float.fromhex(factor):.17e} : f32
        %x = arith.extf %i : f8E4M3FN to f32
        %x1 = arith.mulf %x, %factor : f32
        %z = arith.extf %j : f8E8M0FNU to f32
        %w = arith.mulf %x1, %z : f32
        %p = arith.mulf %w, %y : f32
        %r = arith.addf %o, %p : f32
        linalg.yield %r : f32
      }} -> tensor<64x48xf32>
      return %0 : tensor<64x48xf32>
    }}"""
    codes, scales = np.full((64, 128), 0x38, np.uint8), np.full((64, 4), 127, np.uint8)
    scales[5, 2] = 255
    out = mx_dialect.compile(text)(codes, scales, np.ones((128, 48), np.float32), np.zeros((64, 48), np.float32))
    assert np.isnan(out[5]).all()
    assert np.array_equal(np.delete(out, 5, 0), np.full((63, 48), 128 * float.fromhex(factor), np.float32))


@pytest.mark.parametrize("n", [5, 64])
def test_open_rows_do_not_depend_on_the_number_of_threads(n: int) -> None:
    k = 256
    lhs, acc = f"?x{k}xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU", f"tensor<?x{n}xf32>"
    kernels = [
        mx_dialect.compile(
            f"""func.func @f(%a: !mx.tensor<{lhs}>, %b: tensor<{k}x{n}xf32>, %c: {acc}) -> {acc} {{
              %0 = mx.block_matmul %a, %b, %c : <{lhs}>, tensor<{k}x{n}xf32>, {acc} -> {acc}
              return %0 : {acc}
            }}""",
            threads=threads,
        )
        for threads in (1, 2)
    ]
    for m in (1, 2, 8, 9, 70):
        given_ = operands(m, n, k, "A", "f8E4M3FN", 32, m, special=False)
        one, two = (kernel(*given_) for kernel in kernels)
        assert np.array_equal(one.view(np.uint32), two.view(np.uint32)), m


@pytest.mark.parametrize("form", ["A", "BT"])
@pytest.mark.parametrize(("m", "n", "k"), [(130, 300, 128), (300, 40, 256), (40, 300, 256), (20, 2050, 128)])
def test_results_do_not_depend_on_the_number_of_threads(form: str, m: int, n: int, k: int) -> None:
    text = program(m, n, k, form, "f8E4M3FN", 32, _schedule(FORMS[form], 32, 64, 128))
    given_ = operands(m, n, k, form, "f8E4M3FN", 32, 1, special=False)
    # Some columns and rows are left to f32 arithmetic.
    next(x for x in given_ if not isinstance(x, MxArray))[5, 5] = 1e-42
    first, *others = (mx_dialect.compile(text, threads=t)(*given_) for t in (1, 2, 3, 4))
    for other in others:
        assert np.array_equal(first.view(np.uint32), other.view(np.uint32))


@pytest.mark.parametrize(
    ("n", "fmt", "kind"),
    [(2, "f8E4M3FN", "rows"), (3, "f8E4M3FN", "amx"), (48, "f8E4M3FN", "amx"), (4, "i8", "rows"), (5, "i8", "amx")],
)
def test_for_how_many_columns_it_is_chosen(n: int, fmt: str, kind: str) -> None:
    """Integers are no codes for tables, and take longer to pack."""
    module = mx_dialect.parse(program(64, n, 128, "A", fmt, 32, ""))
    mx_dialect.run_pipeline(module, "mx-to-linalg,mx-conversions-to-linalg,mx-expand-narrow-floats,mx-schedule-cpu")
    assert f'kind = "{kind}"' in mx_dialect.to_asm(module)


@pytest.mark.parametrize(("block_short", "packs"), [(64, False), (32, True)])
def test_the_inner_loop_multiplies_tiles(block_short: int, packs: bool, tmp_path: Path) -> None:
    """Three products for each step and tile of rows; packing codes is table lookups, in another loop or in this one."""
    found = loops(
        lower(program(64, 64, 256, "A", "f8E4M3FN", 32, _schedule("lhs", 32, block_short, 256))), tmp_path / "o"
    )
    packing = [(loop, loop.count("vpermt2b") + loop.count("vpermi2b")) for loop in found]
    packing = [(loop, lookups) for loop, lookups in packing if lookups]
    assert packing
    # Two lookups for 64 codes; LLVM may unroll.
    assert all(len(loop) <= 20 * lookups and not loop.calls and not loop.spills for loop, lookups in packing)
    multiplying = [loop for loop in found if loop.count("tdpbf16ps")]
    assert bool(multiplying) != packs
    for loop in multiplying:
        steps, rest = divmod(loop.count("tdpbf16ps"), 6)
        assert (rest, loop.count("tileloadd")) == (0, 5 * steps)
        assert not loop.calls


@pytest.mark.parametrize(
    ("sizes", "problem"),
    [
        ({"long": "middle"}, "'long' is lhs or rhs, not middle"),
        ({"long": "rhs"}, "the long side's rows do not lie along k"),
        ({"long": "lhs", "block_long": 48}, "block_long and block_short of 32"),
        ({"long": "lhs", "block_short": 16}, "block_long and block_short of 32"),
        ({"long": "lhs", "block_k": 32}, "block_k must be a multiple of 64"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(sizes: dict[str, Any], problem: str) -> None:
    with pytest.raises(MxError, match=problem):
        mx_dialect.compile(program(64, 64, 128, "A", "f8E4M3FN", 32, _schedule(**sizes)))


def test_k_that_does_not_fit_is_refused() -> None:
    with pytest.raises(MxError, match="k must be a multiple of 64"):
        mx_dialect.compile(program(64, 64, 96, "A", "f8E4M3FN", 32, _schedule("lhs")))


def test_significant_bits() -> None:
    for values, bits in (([0.0], 0), ([1.0, 2.0**-127, -4.0], 1), ([1.5], 2), ([448.0, np.nan], 3), ([127.0], 7)):
        assert significant_bits(np.array(values, np.float32)) == bits
