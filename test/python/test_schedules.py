"""Schedules of matrix products: right for every shape, format, form and size, and inside their arrays."""

from typing import Any

import numpy as np
import pytest
from guarded_kernels import run_in_a_process
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mx_dialect
from mx_dialect import reference
from mx_dialect.mx_array import MxArray
from mx_dialect.tensor_spec import TensorSpec

FORMATS = ("f8E4M3FN", "f8E5M2", "f6E3M2FN", "f6E2M3FN", "f4E2M1FN", "i8")
FORMS = ("A", "B", "AB", "BT", "ABT", "AT")


def program(m: int, n: int, k: int, form: str, fmt: str, block: int, schedule: str) -> str:
    """Return a product of [m, k] and [k, n]: which sides are quantized, T for a right side given as [n, k]."""
    transposed = "T" in form

    def mx(rows: int, columns: int, axis: int) -> str:
        return TensorSpec((rows, columns), fmt, block, "f8E8M0FNU", axis).custom()

    lhs = mx(m, k, 1) if "A" in form else f"tensor<{m}x{k}xf32>"
    right = (n, k) if transposed else (k, n)
    rhs = mx(*right, 1 if transposed else 0) if "B" in form else f"tensor<{right[0]}x{right[1]}xf32>"
    acc = f"tensor<{m}x{n}xf32>"
    attributes = [f"mx.schedule = {schedule}"] if schedule else []
    attributes += ["transpose_rhs"] if transposed else []
    return f"""
    func.func @f(%a: {lhs}, %b: {rhs}, %c: {acc}) -> {acc} {{
      %0 = mx.block_matmul %a, %b, %c {{{", ".join(attributes)}}} : {lhs}, {rhs}, {acc} -> {acc}
      return %0 : {acc}
    }}"""


def operands(m: int, n: int, k: int, form: str, fmt: str, block: int, seed: int, special: bool) -> list[Any]:
    rng = np.random.default_rng(seed)
    transposed = "T" in form

    def side(rows: int, columns: int, quantized: bool, axis: int) -> Any:
        values = (rng.standard_normal((rows, columns)) * np.exp2(rng.integers(-6, 6, (rows, 1)))).astype(np.float32)
        if not quantized:
            return values
        quantized_ = reference.quantize(values, fmt, block, axis)
        found = MxArray(quantized_.mantissa, quantized_.scale, block, axis, fmt)
        if special and found.scale.size:
            scale = found.scale.view(np.uint8)
            places = rng.integers(0, scale.size, max(1, scale.size // 8))
            scale.reshape(-1)[places] = rng.choice([0, 1, 254, 255], len(places))
        return found

    right = (n, k) if transposed else (k, n)
    lhs, rhs = side(m, k, "A" in form, 1), side(*right, "B" in form, 1 if transposed else 0)
    return [lhs, rhs, rng.standard_normal((m, n)).astype(np.float32)]


def check(text: str, given_: list[Any], transposed: bool, **options: Any) -> None:
    """Compile and compare with the reference; what is not finite there must be the same here."""
    actual = mx_dialect.compile(text, threads=1, **options)(*given_)
    expected = reference.matmul(*given_, transpose_rhs=transposed)
    bound = reference.matmul_bound(*given_, transpose_rhs=transposed)
    with np.errstate(invalid="ignore"):
        near = np.abs(actual.astype(np.float64) - expected) <= bound
    sure = np.isfinite(bound) & (np.abs(expected) + bound < np.finfo(np.float32).max)
    assert (np.isnan(actual) == np.isnan(expected))[sure | np.isnan(expected)].all()
    assert near[sure].all()


@st.composite
def schedules(draw: st.DrawFn) -> str:
    """Draw a schedule, small enough that all of its loops run and all of its edges are met."""
    lanes = draw(st.sampled_from([4, 8, 16]))
    kind = draw(st.sampled_from(["", "panel", "rows", "columns"]))
    if kind == "panel":
        rows, vectors = draw(st.integers(1, 9)), draw(st.integers(1, 3))
        sizes = {
            "rows": rows,
            "vectors": vectors,
            "unroll": draw(st.sampled_from([1, 2, 4])),
            "block_m": rows * draw(st.integers(1, 3)),
            "block_n": lanes * vectors * draw(st.integers(1, 3)),
            "block_k": 32 * draw(st.integers(1, 2)),
        }
    elif kind == "rows":
        sizes = {"rows": draw(st.integers(1, 5)), "strips": draw(st.integers(1, 2))}
        decode = draw(st.sampled_from(["", "body"]))
        sizes |= {"decode": f'"{decode}"'} if decode or lanes < 16 else {}
        if lanes < 16:
            sizes["decode"] = '"body"'
    elif kind == "columns":
        sizes = {"vectors": draw(st.integers(1, 5)), "unroll": draw(st.sampled_from([1, 2]))}
    else:
        return ""
    entries = ", ".join(f"{key} = {value}" for key, value in {"lanes": lanes, **sizes}.items())
    return f'{{kind = "{kind}", {entries}}}'


@given(
    st.integers(1, 70),
    st.integers(1, 70),
    st.integers(1, 4),
    st.sampled_from(FORMS),
    st.sampled_from(FORMATS),
    st.sampled_from([16, 32]),
    schedules(),
    st.booleans(),
    st.integers(0, 2**32),
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_schedule_of_any_shape(
    m: int, n: int, blocks: int, form: str, fmt: str, block: int, schedule: str, special: bool, seed: int
) -> None:
    if "rows" in schedule[:20]:
        m, n = (m, n % 5 + 1) if "A" in form or "T" not in form else (m % 5 + 1, n)
        schedule = schedule.replace("{kind", f'{{long = "{"lhs" if "A" in form or "T" not in form else "rhs"}", kind')
    if "columns" in schedule[:20]:
        m, form = m % 5 + 1, form.replace("T", "") or "A"
    k = blocks * 32
    text = program(m, n, k, form, fmt, block, schedule)
    given_ = operands(m, n, k, form, fmt, block, seed, special)
    try:
        mx_dialect.compile(text, threads=1)
    except mx_dialect.MxError as refused:
        # Sizes may be drawn that do not go together; that must be said, and nothing else go wrong.
        if "does not apply" not in str(refused):
            raise
        return
    check(text, given_, "T" in form)


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize(("m", "n"), [(1, 1), (5, 1), (1, 6), (37, 3), (40, 50)])
def test_each_format_with_special_values(fmt: str, m: int, n: int) -> None:
    """The schedule that the cost model chooses, on data with every code of elements and extreme scales."""
    k = 96
    rng = np.random.default_rng(m)
    lhs, rhs, acc = operands(m, n, k, "A", fmt, 32, 0, special=True)
    codes = lhs.mantissa.view(np.uint8).reshape(-1)
    bits = {"f8": 8, "f6": 6, "f4": 4, "i8": 8}[fmt[:2]]
    count = min(codes.size, 1 << bits)
    codes[rng.permutation(codes.size)[:count]] = rng.permutation(1 << bits)[:count].astype(np.uint8)
    check(program(m, n, k, "A", fmt, 32, ""), [lhs, rhs, acc], False)


@pytest.mark.parametrize("value", [0.0, 1e-40, 2.0**-126, 2.0**-90, 2.0**99, 2.0**115, 3e38, np.inf, -np.inf, np.nan])
def test_extreme_values_of_the_plain_side(value: float) -> None:
    """Where scales wait for the sum of a block, they do not when that would leave f32's range."""
    lhs, rhs, acc = operands(6, 1, 128, "A", "f8E4M3FN", 32, 1, special=False)
    lhs.scale.view(np.uint8)[:] = 127 if value < 1e10 else 20
    rhs[3] = rhs[77] = value
    check(program(6, 1, 128, "A", "f8E4M3FN", 32, ""), [lhs, rhs, acc], False)


@pytest.mark.parametrize(("m", "n", "k"), [(0, 5, 32), (5, 0, 32), (5, 6, 0), (0, 0, 0)])
def test_empty_products(m: int, n: int, k: int) -> None:
    for form in ("A", "B", "BT"):
        given_ = operands(m, n, k, form, "f8E4M3FN", 32, 0, special=False)
        actual = mx_dialect.compile(program(m, n, k, form, "f8E4M3FN", 32, ""), threads=1)(*given_)
        assert np.array_equal(actual, given_[2])


@pytest.mark.parametrize("transposed", [True, False])
def test_one_kernel_for_any_number_of_rows(transposed: bool) -> None:
    n, k = 45, 64
    spec = TensorSpec((n, k) if transposed else (k, n), "f8E4M3FN", 32, "f8E8M0FNU", 1 if transposed else 0)
    flag = "{transpose_rhs}" if transposed else ""
    text = f"""
    func.func @f(%a: tensor<?x{k}xf32>, %b: {spec.custom()}, %c: tensor<?x{n}xf32>) -> tensor<?x{n}xf32> {{
      %0 = mx.block_matmul %a, %b, %c {flag} : tensor<?x{k}xf32>, {spec.custom()}, tensor<?x{n}xf32> -> tensor<?x{n}xf32>
      return %0 : tensor<?x{n}xf32>
    }}"""
    form = "BT" if transposed else "B"
    for m in (0, 1, 2, 3, 7, 8, 9, 15, 64, 67):
        check(text, operands(m, n, k, form, "f8E4M3FN", 32, m, special=False), transposed)


GUARDED = """
import mx_dialect
from guarded_kernels import assert_stays_inside
from test_schedules import operands, program

for m, n, k, form, fmt in {cases!r}:
    kernel = mx_dialect.compile(program(m, n, k, form, fmt, 32, ""), threads=1)
    given = operands(m, n, k, form, fmt, 32, 0, False)
    flat = [part for x in given for part in ([x.mantissa, x.scale] if hasattr(x, "scale") else [x])]
    assert_stays_inside(kernel, flat, (m, n, k, form))
"""


def test_no_access_outside_of_the_arrays() -> None:
    """Arrays lie against pages that nothing may touch; one access beyond them ends the process."""
    cases = [
        (m, n, k, form, fmt)
        for m, n, k in ((3, 1, 96), (1, 5, 32), (13, 37, 96), (9, 70, 32), (45, 48, 128))
        for form, fmt in (("A", "f8E4M3FN"), ("B", "f4E2M1FN"), ("ABT", "f8E5M2"))
    ]
    run_in_a_process(GUARDED.format(cases=cases))
