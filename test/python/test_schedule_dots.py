"""Exact block dots: bit-equal to the reference for every pair of formats, shape, form and scale, and inside the arrays."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from guarded_kernels import run_in_a_process
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mx_dialect
from mx_dialect import pipelines
from mx_dialect.block_dots import matmul_block_dots
from mx_dialect.codes import numpy_dtype
from mx_dialect.mx_array import MxArray
from mx_dialect.schedule.attribute import ATTRIBUTE
from mx_dialect.schedule.host import detect
from mx_dialect.tensor_spec import TensorSpec
from mx_dialect.walk import operations

BITS = {"f4E2M1FN": 4, "f6E2M3FN": 6, "i8": 8}
PAIRS = [(a, b) for a in BITS for b in BITS]
FP4 = "f4E2M1FN"
VNNI = frozenset({"avx512f", "avx512_vnni", "avx512vbmi"})
AMX = VNNI | {"amx_tile", "amx_int8"}
needs_vnni = pytest.mark.skipif(not detect().features >= VNNI, reason="the processor has no AVX512-VNNI")
PANEL_KINDS = [
    "dots",
    pytest.param("dot_tiles", marks=pytest.mark.skipif(not detect().features >= AMX, reason="no AMX")),
]


def program(
    m: int,
    n: int,
    k: int,
    pair: tuple[str, str],
    transposed: bool,
    block: int = 32,
    schedule: str = "",
    packed: str = "",
) -> str:
    """Return a product of [m, k] and [k, n], or [n, k] if transposed; sides in `packed` are unpacked for it."""
    arguments: list[str] = []
    body: list[str] = []
    types: list[str] = []
    right, axis = ((n, k), 1) if transposed else ((k, n), 0)
    for name, shape, along, fmt in (("a", (m, k), 1, pair[0]), ("b", right, axis, pair[1])):
        spec = TensorSpec(shape, fmt, block, "f8E8M0FNU", along)
        types.append(spec.custom())
        if name not in packed:
            arguments.append(f"%{name}: {spec.custom()}")
            continue
        codes, scale = "x".join(map(str, shape)), "x".join(map(str, spec.scale_shape))
        bytes_ = f"tensor<{shape[0]}x{shape[1] // 2}xi8>"
        arguments += [f"%{name}p: {bytes_}", f"%{name}s: tensor<{scale}xf8E8M0FNU>"]
        body.append(f"%{name}c = mx.unpack %{name}p {{element = {fmt}}} : {bytes_} -> tensor<{codes}xi8>")
        parts = f"tensor<{codes}xi8>, tensor<{scale}xf8E8M0FNU>"
        body.append(f"%{name} = mx.compose %{name}c, %{name}s : {parts} -> {spec.custom()}")
    acc = f"tensor<{m}x{n}xf32>"
    attributes = [f"mx.schedule = {schedule}"] if schedule else []
    attributes += ["transpose_rhs"] if transposed else []
    lines = "\n".join(body)
    return f"""
    func.func @f({", ".join(arguments)}, %c: {acc}) -> {acc} {{
      {lines}
      %0 = mx.block_matmul %a, %b, %c {{{", ".join(attributes)}}} : {", ".join(types)}, {acc} -> {acc}
      return %0 : {acc}
    }}"""


def operands(
    m: int, n: int, k: int, pair: tuple[str, str], transposed: bool, block: int = 32, scales: Any = None, seed: int = 0
) -> tuple[MxArray, MxArray, np.ndarray[Any, Any]]:
    """Return sides of random codes; scales are near 1, or drawn from given codes, and some blocks are zero."""
    rng = np.random.default_rng(seed)

    def side(shape: tuple[int, int], axis: int, fmt: str) -> MxArray:
        codes = rng.integers(0, 1 << BITS[fmt], shape, dtype=np.uint8)
        scale_shape = tuple(size // block if i == axis else size for i, size in enumerate(shape))
        drawn = rng.integers(117, 138, scale_shape) if scales is None else rng.choice(scales, scale_shape)
        zero = rng.random(scale_shape) < 0.1
        codes[np.repeat(zero, block, axis)] = 0
        scale = np.where(zero & (rng.random(scale_shape) < 0.5), 0, drawn).astype(np.uint8)
        return MxArray(codes.view(numpy_dtype(fmt)), scale, block, axis, fmt)

    right, axis = ((n, k), 1) if transposed else ((k, n), 0)
    acc = rng.standard_normal((m, n)).astype(np.float32)
    return side((m, k), 1, pair[0]), side(right, axis, pair[1]), acc


def pack(side: MxArray) -> list[Any]:
    codes = side.mantissa.view(np.uint8)
    return [(codes[..., 0::2] | codes[..., 1::2] << 4).view(np.int8), side.scale]


def check(text: str, given_: Any, transposed: bool, packed: str = "", threads: int = 1) -> None:
    lhs, rhs, acc = given_
    arguments = [x for name, side in (("a", lhs), ("b", rhs)) for x in (pack(side) if name in packed else [side])]
    actual = mx_dialect.compile(text, threads=threads)(*arguments, acc)
    expected = matmul_block_dots(lhs, rhs, acc, transpose_rhs=transposed)
    assert np.array_equal(actual, expected, equal_nan=True)
    assert (np.signbit(actual) == np.signbit(expected))[expected == 0].all()


def rounded(x: Fraction) -> Fraction | float:
    """Return a number rounded to float32, nearest even."""
    if x == 0:
        return x
    exponent = -150
    while Fraction(2) ** (exponent + 1) <= abs(x):
        exponent += 1
    unit = Fraction(2) ** (max(exponent, -126) - 23)
    value = round(x / unit) * unit
    return value if abs(value) < 2**128 else float("inf") * (1 if x > 0 else -1)


@pytest.mark.parametrize("scales", [[127], [0, 1, 60, 127], [1, 120, 200, 254]])
def test_the_reference_rounds_once_a_block(scales: list[int]) -> None:
    a, b, acc = operands(3, 2, 96, ("i8", FP4), True, scales=scales, seed=3)
    actual = matmul_block_dots(a, b, acc, transpose_rhs=True)
    decode = mx_dialect.reference.decode
    left, right = decode(a.mantissa, "i8"), decode(b.mantissa, FP4)
    for m, n in np.ndindex(actual.shape):
        total: Any = Fraction(float(acc[m, n]))
        for g in range(3):
            terms = zip(left[m, 32 * g : 32 * g + 32], right[n, 32 * g : 32 * g + 32], strict=True)
            dot = sum((Fraction(float(x)) * Fraction(float(y)) for x, y in terms), Fraction(0))
            exponent = int(a.scale.view(np.uint8)[m, g]) + int(b.scale.view(np.uint8)[n, g]) - 254
            if not isinstance(total, float):
                total = rounded(total + dot * Fraction(2) ** exponent)
        assert float(actual[m, n]) == float(total)


def test_what_the_reference_refuses() -> None:
    a, b, acc = operands(4, 4, 32, ("i8", "i8"), True)
    fp8 = MxArray(a.mantissa.view(numpy_dtype("f8E4M3FN")), a.scale, 32, 1, "f8E4M3FN")
    along_rows = MxArray(np.zeros((32, 4), np.int8), np.zeros((1, 4), np.uint8), 32, 0, "i8")
    for left, right, flag, message in (
        (fp8, b, True, "no integers of 8 bits"),
        (a, b, False, "blocked along axis 1, not along the contracted axis -2"),
        (along_rows, b, True, "blocked along axis 0"),
        (operands(4, 4, 64, ("i8", "i8"), True)[0], b, True, "64 elements along K and B 32"),
    ):
        with pytest.raises(mx_dialect.MxError, match=message):
            matmul_block_dots(left, right, acc, transpose_rhs=flag)


SHAPES = [(37, 50, 96), (33, 1, 160), (1, 40, 64), (3, 2, 32), (70, 17, 544), (19, 5, 128), (2, 35, 96)]


@needs_vnni
@pytest.mark.parametrize("pair", PAIRS)
def test_every_pair_of_formats(pair: tuple[str, str]) -> None:
    number = PAIRS.index(pair)
    for i, transposed in enumerate((True, False)):
        m, n, k = SHAPES[(number + 3 * i) % len(SHAPES)]
        given_ = operands(m, n, k, pair, transposed, seed=m)
        check(program(m, n, k, pair, transposed), given_, transposed)


SPECIAL = [[0, 1, 2, 127, 253, 254, 255], [0, 1, 20, 60, 127, 200, 240, 254], [100, 127, 239], [0]]


@needs_vnni
@pytest.mark.parametrize("kind", PANEL_KINDS)
@pytest.mark.parametrize("pair", PAIRS)
def test_every_pair_in_panels(pair: tuple[str, str], kind: str) -> None:
    number = PAIRS.index(pair)
    m, n, k = [(37, 50, 96), (16, 16, 32), (70, 17, 1120)][number % 3]
    transposed = number % 2 == 0
    given_ = operands(m, n, k, pair, transposed, seed=n, scales=SPECIAL[1] if number > 4 else None)
    check(program(m, n, k, pair, transposed, schedule=f'"{kind}"'), given_, transposed)


@needs_vnni
@pytest.mark.parametrize("scales", SPECIAL)
@pytest.mark.parametrize(("m", "n"), [(33, 40), (35, 2), (2, 35)])
def test_extreme_scales(m: int, n: int, scales: list[int]) -> None:
    transposed = n > m
    given_ = operands(m, n, 544, ("i8", FP4), transposed, scales=scales, seed=n)
    check(program(m, n, 544, ("i8", FP4), transposed), given_, transposed)


@needs_vnni
@pytest.mark.parametrize("kind", PANEL_KINDS)
@pytest.mark.parametrize("block", [4, 16, 64, 128, 256])
def test_other_block_sizes_in_panels(block: int, kind: str) -> None:
    m, n = 21, 35
    given_ = operands(m, n, 3 * block, ("i8", "i8"), True, block)
    check(program(m, n, 3 * block, ("i8", "i8"), True, block, f'"{kind}"'), given_, True)


@needs_vnni
@pytest.mark.parametrize(
    ("pair", "block"), [(("i8", "i8"), 16), (("i8", FP4), 128), ((FP4, FP4), 64), (("i8", "i8"), 256)]
)
def test_other_block_sizes(pair: tuple[str, str], block: int) -> None:
    m, n, transposed = {16: (21, 35, True), 128: (18, 2, False), 64: (5, 20, True), 256: (18, 33, False)}[block]
    given_ = operands(m, n, 3 * block, pair, transposed, block)
    check(program(m, n, 3 * block, pair, transposed, block), given_, transposed)


@st.composite
def plans(draw: st.DrawFn, m: int, n: int, transposed: bool) -> str:
    """Draw a plan small enough that all of its loops run, or none."""
    kinds = ["", "dots", *(["dot_rows"] if n <= 8 or (m <= 8 and transposed) else [])]
    kinds += ["dot_tiles"] if detect().features >= AMX else []
    kind = draw(st.sampled_from(kinds))
    if kind == "dots":
        rows, vectors = draw(st.integers(1, 9)), draw(st.integers(1, 3))
        sizes: dict[str, Any] = {
            "rows": rows,
            "vectors": vectors,
            "block_m": rows * draw(st.integers(1, 3)),
            "block_n": 16 * vectors * draw(st.integers(1, 3)),
            "block_k": 64 * draw(st.integers(1, 3)),
        }
    elif kind == "dot_tiles":
        counts = [draw(st.integers(1, 3)) for _ in range(3)]
        sizes = dict(
            zip(("block_m", "block_n", "block_k"), (16 * counts[0], 16 * counts[1], 64 * counts[2]), strict=True)
        )
    elif kind == "dot_rows":
        sizes = {"long": '"lhs"' if n <= 8 else '"rhs"', "ahead": draw(st.integers(1, 32))}
    else:
        return ""
    return f'{{kind = "{kind}", {", ".join(f"{key} = {value}" for key, value in sizes.items())}}}'


@needs_vnni
@given(st.data(), st.integers(1, 70), st.integers(1, 70), st.integers(1, 9), st.sampled_from(PAIRS), st.booleans())
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_shape_by_any_plan(
    data: st.DataObject, m: int, n: int, blocks: int, pair: tuple[str, str], transposed: bool
) -> None:
    n = data.draw(st.sampled_from([n, n % 8 + 1]))
    m = data.draw(st.sampled_from([m, m % 8 + 1]))
    schedule = data.draw(plans(m, n, transposed))
    scales = data.draw(st.sampled_from([None, *SPECIAL]))
    packed = "".join(
        name
        for name, fmt, extent in (("a", pair[0], 32), ("b", pair[1], 32 if transposed else n))
        if fmt == FP4 and extent % 2 == 0 and data.draw(st.booleans())
    )
    given_ = operands(m, n, 32 * blocks, pair, transposed, scales=scales, seed=data.draw(st.integers(0, 2**32)))
    check(program(m, n, 32 * blocks, pair, transposed, 32, schedule, packed), given_, transposed, packed)


@needs_vnni
@pytest.mark.parametrize(("m", "n", "k"), [(0, 5, 32), (5, 0, 32), (5, 6, 0), (5, 2, 0), (0, 0, 0)])
def test_empty_products(m: int, n: int, k: int) -> None:
    for transposed in (True, False):
        given_ = operands(m, n, k, ("i8", "i8"), transposed)
        check(program(m, n, k, ("i8", "i8"), transposed), given_, transposed)


@needs_vnni
@pytest.mark.parametrize("n", [3, 20])
def test_batches(n: int) -> None:
    specs = [TensorSpec(s, "i8", 32, "f8E8M0FNU", axis).custom() for s, axis in (((2, 20, 64), 2), ((2, 64, n), 1))]
    acc = f"tensor<2x20x{n}xf32>"
    text = f"""
    func.func @f(%a: {specs[0]}, %b: {specs[1]}, %c: {acc}) -> {acc} {{
      %0 = mx.block_matmul %a, %b, %c : {", ".join(specs)}, {acc} -> {acc}
      return %0 : {acc}
    }}"""
    parts = [operands(20, n, 64, ("i8", "i8"), False, seed=i) for i in range(2)]
    sides: list[MxArray] = []
    for i in range(2):
        mantissa, scale = (np.stack([getattr(p[i], name) for p in parts]) for name in ("mantissa", "scale"))
        sides.append(MxArray(mantissa, scale, 32, 2 - i, "i8"))
    actual = mx_dialect.compile(text, threads=1)(*sides, np.stack([p[2] for p in parts]))
    for i, part in enumerate(parts):
        assert np.array_equal(actual[i], matmul_block_dots(*part))


@needs_vnni
@pytest.mark.parametrize(("m", "n", "k"), [(230, 140, 96), (700, 1, 3232), (1, 700, 3232)])
def test_threads_change_no_bit(m: int, n: int, k: int) -> None:
    transposed = n > m
    given_ = operands(m, n, k, (FP4, "i8"), transposed)
    text = program(m, n, k, (FP4, "i8"), transposed)
    for threads in (1, 3):
        check(text, given_, transposed, threads=threads)


@needs_vnni
@pytest.mark.parametrize(
    ("m", "n", "pair", "transposed"),
    [
        (37, 50, (FP4, "i8"), False),
        (37, 50, ("i8", FP4), False),
        (37, 50, (FP4, FP4), True),
        (35, 1, (FP4, "i8"), False),
        (1, 36, ("i8", FP4), True),
        (2, 36, (FP4, FP4), False),
    ],
)
def test_packed_codes(m: int, n: int, pair: tuple[str, str], transposed: bool) -> None:
    packed = "".join(name for name, fmt in zip("ab", pair, strict=True) if fmt == FP4)
    given_ = operands(m, n, 160, pair, transposed, seed=m)
    check(program(m, n, 160, pair, transposed, packed=packed), given_, transposed, packed)


@pytest.mark.parametrize(("m", "n"), [(37, 50), (35, 1), (3, 36)])
def test_packed_codes_times_floats(m: int, n: int) -> None:
    """Schedules in f32 read nibbles too."""
    k = 288
    left, _, acc = operands(m, n, k, (FP4, FP4), True)
    text = program(m, n, k, (FP4, FP4), False, packed="a").replace(
        TensorSpec((k, n), FP4, 32, "f8E8M0FNU", 0).custom(), f"tensor<{k}x{n}xf32>"
    )
    floats = np.random.default_rng(1).standard_normal((k, n)).astype(np.float32)
    actual = mx_dialect.compile(text, threads=1)(*pack(left), floats, acc)
    expected = mx_dialect.reference.matmul(left, floats, acc)
    assert (np.abs(actual - expected) <= mx_dialect.reference.matmul_bound(left, floats, acc)).all()


def test_packed_codes_mean_the_same_to_other_passes() -> None:
    """What took in its unpacking for a schedule may as well become loops."""
    left, right, acc = operands(5, 6, 64, (FP4, "f6E2M3FN"), True)
    module = mx_dialect.parse(program(5, 6, 64, (FP4, "f6E2M3FN"), True, packed="a"))
    mx_dialect.run_pipeline(module, f"{','.join(pipelines.TO_LINALG)},mx-schedule-cpu,canonicalize")
    (found,) = operations(module.operation, lambda op: op.name == "linalg.generic")
    del found.attributes[ATTRIBUTE]
    actual = mx_dialect.compile(module, threads=1, pipeline="mx-lower-to-llvm")(
        *pack(left), right.mantissa.view(np.int8), right.scale, acc
    )
    expected = mx_dialect.reference.matmul(left, right, acc, transpose_rhs=True)
    bound = mx_dialect.reference.matmul_bound(left, right, acc, transpose_rhs=True)
    assert (np.abs(actual - expected) <= bound).all()


@needs_vnni
def test_one_kernel_for_any_number_of_rows() -> None:
    n, k = 37, 96
    left = TensorSpec((-(2**63), k), "i8", 32, "f8E8M0FNU", 1).custom().replace("-9223372036854775808", "?")
    right, acc = TensorSpec((n, k), FP4, 32, "f8E8M0FNU", 1).custom(), f"tensor<?x{n}xf32>"
    text = f"""
    func.func @f(%a: {left}, %b: {right}, %c: {acc}) -> {acc} {{
      %0 = mx.block_matmul %a, %b, %c {{transpose_rhs}} : {left}, {right}, {acc} -> {acc}
      return %0 : {acc}
    }}"""
    for m in (0, 1, 3, 8, 21, 48):
        check(text, operands(m, n, k, ("i8", FP4), True, seed=m), True)


GUARDED = """
import mx_dialect
from guarded_kernels import assert_stays_inside
from test_schedule_dots import operands, pack, program

for m, n, k, pair, transposed, packed in {cases!r}:
    kernel = mx_dialect.compile(program(m, n, k, pair, transposed, packed=packed), threads=1)
    lhs, rhs, acc = operands(m, n, k, pair, transposed)
    flat = [x for name, side in (("a", lhs), ("b", rhs)) for x in
            (pack(side) if name in packed else [side.mantissa, side.scale])]
    assert_stays_inside(kernel, [*flat, acc], (m, n, k, pair))
"""


@needs_vnni
def test_no_access_outside_of_the_arrays() -> None:
    """Arrays lie against pages that nothing may touch; one access beyond them ends the process."""
    cases = [
        (13, 37, 96, ("i8", FP4), True, ""),
        (19, 37, 96, ("i8", FP4), True, ""),
        (33, 20, 32, (FP4, "i8"), False, "a"),
        (9, 70, 32, (FP4, "i8"), False, ""),
        (9, 48, 32, ("i8", "i8"), False, ""),
        (5, 34, 96, (FP4, FP4), False, "ab"),
        (19, 1, 96, (FP4, "i8"), False, "a"),
        (3, 21, 160, ("i8", FP4), True, "b"),
        (3, 1, 32, ("i8", "i8"), False, ""),
    ]
    run_in_a_process(GUARDED.format(cases=cases))
