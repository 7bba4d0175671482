"""The machine code of the CPU schedules: their inner loops are multiply-adds on whole registers, and nothing is scalar.

What would make a kernel ten times slower shows in its instructions: a narrower register, a call, a conversion of one
number. The bounds on how many instructions may surround the multiply-adds are loose, those of today's code and some.
"""

import platform
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import mx_dialect
from mx_dialect.schedule.host import detect

if sys.platform != "linux" or platform.machine() != "x86_64":
    pytest.skip("reads ELF files of x86-64", allow_module_level=True)

from machine_code import REGISTERS, Loop, loops, lower

FORMATS = ("f8E4M3FN", "f8E5M2", "f6E3M2FN", "f6E2M3FN", "f4E2M1FN", "i8")
HOST = detect()
WIDTHS = [
    pytest.param(bits, marks=pytest.mark.skipif(bits > HOST.vector_bits, reason=f"no registers of {bits} bits"))
    for bits in REGISTERS
]

pytestmark = pytest.mark.skipif("fma" not in HOST.features, reason="the processor has no fused multiply-add")


class Product(NamedTuple):
    """A product whose extents choose a schedule, and how many of its inner loop's instructions are multiply-adds."""

    schedule: str
    m: int
    n: int
    share: float


PANEL = Product("panel", 256, 256, 0.5)
ROWS = Product("rows", 256, 1, 0.1)
FEW_COLUMNS = Product("rows", 256, 4, 0.25)
COLUMNS = Product("columns", 4, 256, 0.45)
K = 512


def program(product: Product, a: str = "f8E4M3FN", b: str | None = None, schedule: str | None = None) -> str:
    m, n = product.m, product.n
    lhs, c = f"{m}x{K}x{a}, block_size = 32, scale_type = f8E8M0FNU", f"tensor<{m}x{n}xf32>"
    rhs = f"tensor<{K}x{n}xf32>" if b is None else f"<{K}x{n}x{b}, block_size = 32, scale_type = f8E8M0FNU, axis = 0>"
    whole_rhs = rhs if b is None else f"!mx.tensor{rhs}"
    attributes = f' {{mx.schedule = "{schedule}"}}' if schedule else ""
    return f"""func.func @f(%a: !mx.tensor<{lhs}>, %b: {whole_rhs}, %c: {c}) -> {c} {{
  %0 = mx.block_matmul %a, %b, %c{attributes} : <{lhs}>, {rhs}, {c} -> {c}
  return %0 : {c}
}}"""


def fused(loop: Loop, bits: int) -> int:
    return loop.count("vfmadd", REGISTERS[bits])


def require_vectors(found: list[Loop]) -> None:
    """Require that no loop does anything with one number at a time, or calls."""
    for loop in found:
        assert not loop.calls, loop
        assert not loop.scalar_conversions, loop
        assert not loop.scalar_arithmetic, loop


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("product", [PANEL, ROWS, FEW_COLUMNS, COLUMNS], ids=lambda p: f"{p.schedule}-{p.m}x{p.n}")
def test_inner_loops_are_multiply_adds_on_whole_registers(product: Product, bits: int, tmp_path: Path):
    module = lower(program(product), bits)
    found = loops(module, tmp_path / "kernel.o")
    require_vectors(found)
    inner = [loop for loop in found if fused(loop, bits)]
    assert inner, "no loop multiplies and adds on registers of this width"
    for loop in inner:
        assert fused(loop, bits) >= product.share * len(loop), f"{fused(loop, bits)} of {len(loop)}:\n{loop}"
        assert loop.count("vfmadd") == fused(loop, bits), "multiply-adds of another width"


@pytest.mark.parametrize("bits", WIDTHS)
def test_the_register_tile_has_many_sums_in_registers(bits: int, tmp_path: Path):
    found = loops(lower(program(PANEL), bits), tmp_path / "kernel.o")
    inner = max(found, key=lambda loop: fused(loop, bits))
    # Fewer would wait for each other: two units take one multiply-add a cycle each, and four cycles for it.
    assert inner.sums >= 8, inner
    assert not inner.spills, inner


@pytest.mark.parametrize("product", [PANEL, ROWS], ids=lambda p: p.schedule)
@pytest.mark.parametrize("element", FORMATS)
def test_every_format_is_decoded_in_vectors(element: str, product: Product, tmp_path: Path):
    found = loops(lower(program(product, element)), tmp_path / "kernel.o")
    require_vectors(found)
    assert max(fused(loop, HOST.vector_bits) / len(loop) for loop in found) >= product.share


@pytest.mark.skipif(
    not {"avx512_vnni", "avx512vbmi"} <= HOST.features, reason="the processor has no dot products of bytes"
)
@pytest.mark.parametrize(("a", "b"), [("i8", "i8"), ("f4E2M1FN", "i8"), ("f6E2M3FN", "f4E2M1FN")])
def test_dot_products_of_integers_are_vnni(a: str, b: str, tmp_path: Path):
    found = loops(lower(program(PANEL, a, b, "dots")), tmp_path / "kernel.o")
    inner = max(found, key=lambda loop: loop.count("vpdpbusd", "zmm"))
    assert inner.count("vpdpbusd", "zmm") >= 0.3 * len(inner), inner
    require_vectors([loop for loop in found if loop.count("vpdpbusd")])


@pytest.mark.skipif(
    not {"avx512_vnni", "avx512vbmi", "amx_int8"} <= HOST.features, reason="the processor has no matrix unit for bytes"
)
@pytest.mark.parametrize(("a", "b"), [("i8", "i8"), ("f4E2M1FN", "i8"), ("f6E2M3FN", "f4E2M1FN")])
def test_dot_products_of_integers_by_tiles(a: str, b: str, tmp_path: Path):
    found = loops(lower(program(PANEL, a, b)), tmp_path / "kernel.o")
    inner = max(found, key=lambda loop: loop.count("tdpbusd"))
    products = inner.count("tdpbusd")
    assert products == inner.count("tilestored")
    # Each is 16 vectors of dot products, with two multiply-adds and one addition each.
    assert fused(inner, 512) == 32 * products, inner
    assert 48 * products >= 0.6 * len(inner), inner
    require_vectors([loop for loop in found if loop.count("tdpbusd")])


# The guard itself.


@pytest.mark.parametrize("element", ["f8E4M3FN", "i8"])
def test_scalar_code_is_seen(element: str, tmp_path: Path):
    module = mx_dialect.parse(program(PANEL, element))
    mx_dialect.run_pipeline(module, "mx-lower-to-llvm")
    found = loops(module, tmp_path / "kernel.o")
    assert not any(fused(loop, HOST.vector_bits) for loop in found)
    assert any(loop.scalar_arithmetic for loop in found)
    # Without conversions of half floats in hardware, those are arithmetic on integers.
    assert element == "f8E4M3FN" or any(loop.scalar_conversions for loop in found)


def test_calls_are_seen(tmp_path: Path):
    module = mx_dialect.parse("""func.func @f(%x: tensor<4096xf32>) -> tensor<4096xf32> {
      %0 = math.tan %x : tensor<4096xf32>
      return %0 : tensor<4096xf32>
    }""")
    mx_dialect.run_pipeline(module, "mx-lower-to-llvm")
    found = loops(module, tmp_path / "kernel.o")
    assert any(loop.calls for loop in found)
    with pytest.raises(AssertionError):
        require_vectors(found)
