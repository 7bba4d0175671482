"""mx-infer-memory-space over random programs: everything is decided, lies where it is needed, and no move is wasted."""

from hypothesis import HealthCheck, given, settings
from tile_checks import check_moves, check_places, space, walk, without_moves
from tile_programs import tile_programs

import mx_dialect
from mx_dialect._mlir import ir

few = settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@few
@given(tile_programs(decided=False))
def test_everything_is_decided_and_lies_where_it_is_needed(program):
    module = mx_dialect.parse(program.text)
    before = without_moves(module)
    mx_dialect.run_pipeline(module, "mx-infer-memory-space")
    check_places(module)
    check_moves(module)
    assert without_moves(module) == before
    once = mx_dialect.to_asm(module)
    mx_dialect.run_pipeline(module, "mx-infer-memory-space")
    assert mx_dialect.to_asm(module) == once
    mx_dialect.run_pipeline(module, "mx-insert-scale-addr,mx-verify-scale-binding")


@few
@given(tile_programs(decided=True))
def test_decided_programs_stay(program):
    module = mx_dialect.parse(program.text)
    before = mx_dialect.to_asm(module)
    mx_dialect.run_pipeline(module, "mx-legalize-cast,mx-infer-memory-space")
    assert mx_dialect.to_asm(module) == before


MADE_BY = ("tile_load", "tile_create", "quant_mx", "tile_cast", "matmul_mx", "matmul_mx_acc", "matmul_mx_bias")


def forget(module):
    """Take the memory space from every tile that an operation makes, but where control flow and calls hand it on."""
    for op in walk(module):
        if op.name not in [f"mx.{name}" for name in MADE_BY]:
            continue
        for value in op.results:
            users = {use.owner.name for use in value.uses}
            if all(name.startswith("mx.") for name in users) and users.isdisjoint({"mx.submit", "mx.tget_scale_addr"}):
                value.set_type(ir.Type.parse(str(value.type).replace(f'"{space(value)}"', '"undecided"'), op.context))
                if "target" in op.attributes and "#mx.layout" not in str(op.operands[0].type):
                    del op.attributes["target"]


@few
@given(tile_programs(decided=True))
def test_forgotten_spaces_are_found_around_given_moves(program):
    module = mx_dialect.parse(program.text)
    before = without_moves(module)
    forget(module)
    mx_dialect.run_pipeline(module, "mx-infer-memory-space")
    check_places(module)
    assert without_moves(module) == before


NESTED = """
!a = !mx.tile<16x64xf8E4M3FN>
!as = !mx.tile<16x2xf8E8M0FNU>
!b = !mx.tile<64x32xf8E4M3FN>
!bs = !mx.tile<2x32xf8E8M0FNU>
!c = !mx.tile<16x32xf32>
func.func @k(%n: index, %x: tensor<16x64xf8E4M3FN>, %as: !as, %b: !b, %bs: !bs) -> !c attributes {{mx.kernel = "aic"}} {{
  %a = mx.tile_load %x[0, 0] [16, 64] : tensor<16x64xf8E4M3FN> -> !a
  %c0 = mx.tile_create : () -> !c
  {0}
  return %r0 : !c
}}"""


def test_what_nested_loops_carry_is_one_group():
    """Only the innermost loop shows that the tile is an accumulator; that must reach the outermost."""
    depth = 40
    loops = [f"%r{i} = scf.for %i{i} = %n to %n step %n iter_args(%c{i + 1} = %c{i}) -> (!c) {{" for i in range(depth)]
    matmul = f"%r{depth} = mx.matmul_mx_acc %c{depth}, %a, %as, %b, %bs : !c, !a, !as, !b, !bs -> !c"
    ends = [f"scf.yield %r{i + 1} : !c\n}}" for i in reversed(range(depth))]
    module = mx_dialect.parse(NESTED.format("\n".join([*loops, matmul, *ends])))
    mx_dialect.run_pipeline(module, "mx-infer-memory-space")
    check_places(module)
    assert [space(op.results[0]) for op in walk(module) if op.name == "scf.for"] == ["acc"] * depth
    assert sum(op.name == "mx.tile_move" for op in walk(module)) == 1
