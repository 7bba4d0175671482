"""When exact block dots are chosen, and what is refused."""

from typing import Any

import pytest
from test_schedule_dots import AMX, FP4, VNNI, program

import mx_dialect
from mx_dialect.schedule import contraction, cost_model, dots, dots_rows, dots_tiles, schedules
from mx_dialect.schedule.host import Host
from mx_dialect.schedule.rows import RowsPlan
from mx_dialect.walk import operations


def lowered(text: str) -> Any:
    """Return a module and the contraction in it, on tensors."""
    module = mx_dialect.parse(text)
    mx_dialect.run_pipeline(module, "mx-to-linalg,mx-conversions-to-linalg,mx-expand-narrow-floats")
    root = module.operation
    found = [contraction.match(op) for op in operations(root, lambda o: o.name == "linalg.generic")]
    return module, next(c for c in reversed(found) if c is not None)


@pytest.mark.parametrize(
    ("m", "n", "pair", "features", "kind"),
    [
        (64, 64, ("i8", FP4), VNNI, "dots"),
        (64, 64, ("i8", FP4), AMX, "dot_tiles"),
        (15, 64, ("i8", FP4), AMX, "dots"),
        (64, 2, ("i8", FP4), AMX, "dot_rows"),
        (64, 2, ("i8", FP4), VNNI, "dot_rows"),
        (2, 64, ("i8", FP4), VNNI, "dot_rows"),
        (64, 64, ("i8", FP4), frozenset({"avx512f"}), "panel"),
        (64, 64, ("i8", "f6E3M2FN"), VNNI, "panel"),
        (64, 64, ("f8E4M3FN", "i8"), VNNI, "panel"),
    ],
)
def test_what_the_cost_model_chooses(m: int, n: int, pair: tuple[str, str], features: Any, kind: str) -> None:
    _module, found = lowered(program(m, n, 64, pair, True))
    choice = cost_model.choose(found, Host(512, 48 << 10, 2 << 20, features))
    assert not isinstance(choice, str)
    assert schedules.kind_of(choice.plan) == kind


def refused(text: str, plan: Any) -> str | None:
    _module, found = lowered(text)
    return schedules.SCHEDULES[schedules.kind_of(plan)].refusal(found, plan)


PANELS = dots.DotsPlan(4, 1, 4, 16, 64)
ROWS = dots_rows.DotRowsPlan("lhs", 16)


@pytest.mark.parametrize(
    ("text", "plan", "message"),
    [
        (program(8, 8, 64, ("i8", FP4), True), PANELS, None),
        (program(8, 8, 64, ("i8", FP4), True), ROWS, None),
        (program(8, 8, 512, ("i8", "i8"), True, 512), PANELS, "dot products of blocks of 512 may exceed 4194304"),
        (program(8, 8, 64, ("i8", "f6E3M2FN"), True), PANELS, "a side's elements are no integers of 8 bits"),
        (program(8, 8, 64, ("i8", FP4), True, 2), PANELS, "blocks of 2 do not fit vectors of 64"),
        (program(8, 8, 64, ("i8", FP4), True), dots.DotsPlan(4, 1, 6, 16, 64), "must be multiples of 64"),
        (program(8, 8, 64, ("i8", FP4), True), dots_tiles.DotTilesPlan(16, 16, 64), None),
        (program(8, 8, 64, ("i8", FP4), True), dots_tiles.DotTilesPlan(8, 16, 64), "must be multiples of 64"),
        (program(8, 8, 64, ("i8", "f6E3M2FN"), True), dots_tiles.DotTilesPlan(16, 16, 64), "are no integers of 8 bits"),
        (program(8, 9, 64, ("i8", FP4), True), ROWS, "is not known or more than 8"),
        (program(8, 8, 64, ("i8", FP4), True), dots_rows.DotRowsPlan("rsh", 16), "'long' is lhs or rhs, not rsh"),
        (program(8, 8, 64, ("i8", FP4), False), dots_rows.DotRowsPlan("rhs", 16), "do not lie along k"),
        (program(8, 8, 64, ("i8", FP4), True, 8), ROWS, "blocks of 8 bytes are no quarter of 64, half of it or all"),
    ],
)
def test_refusals(text: str, plan: Any, message: str | None) -> None:
    found = refused(text, plan)
    assert found == message or (message is not None and found is not None and message in found)


def test_scales_that_do_not_lie_along_k_are_refused() -> None:
    """Linalg written by hand may read the left side's scales as [k, m]."""
    text = """
    #a = affine_map<(m, n, k) -> (m, k)>
    #s = affine_map<(m, n, k) -> (k floordiv 32, m)>
    #b = affine_map<(m, n, k) -> (n, k)>
    #t = affine_map<(m, n, k) -> (n, k floordiv 32)>
    #c = affine_map<(m, n, k) -> (m, n)>
    func.func @f(%a: tensor<8x64xi8>, %s: tensor<2x8xf8E8M0FNU>, %b: tensor<8x64xi8>, %t: tensor<8x2xf8E8M0FNU>,
                 %c: tensor<8x8xf32>) -> tensor<8x8xf32> {
      %unit = arith.constant 0.015625 : f32
      %0 = linalg.generic {indexing_maps = [#a, #s, #b, #t, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%a, %s, %b, %t : tensor<8x64xi8>, tensor<2x8xf8E8M0FNU>, tensor<8x64xi8>, tensor<8x2xf8E8M0FNU>)
          outs(%c : tensor<8x8xf32>) {
      ^bb0(%x: i8, %e: f8E8M0FNU, %y: i8, %f: f8E8M0FNU, %z: f32):
        %x0 = arith.sitofp %x : i8 to f32
        %x1 = arith.mulf %x0, %unit : f32
        %e0 = arith.extf %e : f8E8M0FNU to f32
        %x2 = arith.mulf %x1, %e0 : f32
        %y0 = arith.sitofp %y : i8 to f32
        %y1 = arith.mulf %y0, %unit : f32
        %f0 = arith.extf %f : f8E8M0FNU to f32
        %y2 = arith.mulf %y1, %f0 : f32
        %p = arith.mulf %x2, %y2 : f32
        %q = arith.addf %z, %p : f32
        linalg.yield %q : f32
      } -> tensor<8x8xf32>
      return %0 : tensor<8x8xf32>
    }"""
    for plan in (PANELS, ROWS, RowsPlan(16, 4, 1, "lhs", "body")):
        assert refused(text, plan) == "the scales of neighbouring blocks are no neighbours in memory"
