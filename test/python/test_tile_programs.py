"""The random tile programs of `tile_programs` are what its knobs say, valid and executable."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tile_programs import COMPILED, CONTROL, MAX_SELECTOR, STRAIGHT, tile_programs

import mx_dialect


@settings(max_examples=10)
@given(program=tile_programs(decided=False))
def test_undecided_programs_name_no_matrix_space(program):
    mx_dialect.parse(program.text)
    assert "left" not in program.text
    assert "tile_move" not in program.text


@settings(max_examples=10)
@given(program=tile_programs(steps=STRAIGHT))
def test_programs_have_the_steps_asked_for(program):
    mx_dialect.parse(program.text)
    assert "scf." not in program.text
    assert "@helper" not in program.text


def test_every_step_is_drawn():
    spelled = {f"scf.{step}": step for step in CONTROL} | {"scf.index_switch": "switch", "scf.execute_region": "region"}
    spelled |= {"call @helper": "call", "call @note": "note", "arith.select": "select", "mx.tile_create": "create"}
    missing = {*CONTROL, "note", "select", "create"}

    @settings(max_examples=40, derandomize=True)
    @given(program=tile_programs())
    def draw(program):
        missing.difference_update(step for text, step in spelled.items() if text in program.text)

    draw()
    assert not missing


@settings(max_examples=3)
@given(
    program=tile_programs(steps=(*STRAIGHT, *COMPILED), length=8),
    selector=st.integers(0, MAX_SELECTOR),
    seed=st.integers(0, 9),
)
def test_programs_run(program, selector, seed):
    module = mx_dialect.parse(program.text)
    mx_dialect.run_pipeline(module, "mx-tile-to-linalg")
    kernel = mx_dialect.compile(module, pipeline="mx-lower-to-llvm", opt_level=0)
    arguments = program.arguments(seed, selector)
    out = kernel(*arguments)
    assert out.shape == program.sizes.tensor("acc")
    assert not np.isnan(out).any()
