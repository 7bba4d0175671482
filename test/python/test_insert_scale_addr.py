"""mx-insert-scale-addr binds where it has to and nowhere else: random straight-line code against the rule, spelt out."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mx_dialect
from mx_dialect import MxError

TYPES = {
    "a": "!mx.tile<16x64xf8E4M3FN, left>",
    "as": "!mx.tile<16x2xf8E8M0FNU, left_scale>",
    "b": "!mx.tile<64x32xf8E4M3FN, right>",
    "bs": "!mx.tile<2x32xf8E8M0FNU, right_scale>",
}
ACC = "!mx.tile<16x32xf32, acc>"
MATMUL = f"{', '.join(TYPES.values())} -> {ACC}"
SIDE = {"a": "left", "as": "left", "b": "right", "bs": "right"}
OUT = "tensor<16x32xf32>"
DATA = "tensor<16x64xf8E4M3FN>"

which = st.integers(0, 1)
steps = st.one_of(
    st.tuples(st.just("matmul"), which, which, which, which),
    st.tuples(st.just("matmul"), st.just(0), st.just(0), which, which),
    st.tuples(st.just("move"), st.sampled_from(sorted(SIDE))),
    st.tuples(st.just("bind"), st.sampled_from([("as", "a"), ("bs", "b")]), which, which),
    st.tuples(st.sampled_from(["load", "store", "call", "if"])),
)


def line(number, step):
    """Return a step in text."""
    kind, *rest = step
    if kind == "matmul":
        return f"%c{number} = mx.matmul_mx %a{rest[0]}, %as{rest[1]}, %b{rest[2]}, %bs{rest[3]} : {MATMUL}"
    if kind == "move":
        mat = TYPES[rest[0]].rpartition(",")[0] + ", mat>"
        return f"%m{number} = mx.tile_move %{rest[0]}_mat : {mat} -> {TYPES[rest[0]]}"
    if kind == "bind":
        (scale, data), s, d = rest
        types = f"{TYPES[scale]}, {TYPES[data]} -> {TYPES[scale]}"
        return f"%e{number} = mx.tget_scale_addr %{scale}{s}, %{data}{d} : {types}"
    return {
        "load": f'%l{number} = mx.tile_load %x[0, 0] [16, 64] {{target = "mat"}} : {DATA} -> {DATA_TILE}',
        "store": f"%s{number} = mx.tile_store %c, %out[0, 0] : {ACC}, {OUT} -> {OUT}",
        "call": "func.call @other() : () -> ()",
        "if": "scf.if %p {\n}",
    }[kind]


DATA_TILE = "!mx.tile<16x64xf8E4M3FN, mat>"


def program(script):
    arguments = [f"%{sort}{i}: {type_}" for sort, type_ in TYPES.items() for i in (0, 1)]
    arguments += [f"%{sort}_mat: {type_.rpartition(',')[0]}, mat>" for sort, type_ in TYPES.items()]
    arguments += [f"%c: {ACC}", f"%x: {DATA}", f"%out: {OUT}", "%p: i1"]
    body = "\n".join(line(number, step) for number, step in enumerate(script))
    return f"""
    func.func private @other()
    func.func @kernel({", ".join(arguments)}) attributes {{mx.kernel = "aic"}} {{
      {body}
      return
    }}"""


def touches(step, side):
    """Tell whether a step undoes the binding of a side."""
    kind, *rest = step
    if kind == "move":
        return SIDE[rest[0]] == side
    if kind == "bind":
        return SIDE[rest[0][0]] == side
    return kind in ("call", "if")


def pair(matmul, side):
    return matmul[1:3] if side == "left" else matmul[3:5]


def shares(script, number, side):
    """Tell whether the matmul at a number can use what an earlier one is bound by.

    It can if the last matmul before it has the same pair, and nothing in between undoes the binding.
    """
    earlier = [n for n in range(number) if script[n][0] == "matmul"]
    if not earlier or pair(script[earlier[-1]], side) != pair(script[number], side):
        return False
    return not any(touches(step, side) for step in script[earlier[-1] : number])


def shape(module):
    """Return what happens in the kernel, an entry for each operation: the side for a binding, else the name."""
    found = []
    for view in module.body.operations:
        for op in view.operation.regions[0].blocks[0] if view.operation.regions[0].blocks else ():
            name = op.operation.name
            if name == "mx.tget_scale_addr":
                name = "left" if '"left_scale"' in str(op.operation.results[0].type) else "right"
            found.append(name)
    return found


NAMES = {
    "matmul": "mx.matmul_mx",
    "move": "mx.tile_move",
    "bind": None,
    "load": "mx.tile_load",
    "store": "mx.tile_store",
    "call": "func.call",
    "if": "scf.if",
}


def expected(script, reuse):
    found = []
    for number, step in enumerate(script):
        if step[0] == "matmul":
            found += [side for side in ("left", "right") if not (reuse and shares(script, number, side))]
        found.append(SIDE[step[1][0]] if step[0] == "bind" else NAMES[step[0]])
    return [*found, "func.return"]


@settings(max_examples=30)
@given(st.lists(steps, max_size=12), st.booleans())
def test_bindings_are_where_the_rule_says(script, reuse):
    module = mx_dialect.parse(program(script))
    mx_dialect.run_pipeline(module, f"mx-insert-scale-addr{{reuse={str(reuse).lower()}}}")
    assert shape(module) == expected(script, reuse)
    mx_dialect.run_pipeline(module, "mx-verify-scale-binding")


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_every_run_adds_a_layer(runs):
    module = mx_dialect.parse(program([("matmul", 0, 0, 0, 0)]))
    mx_dialect.run_pipeline(module, ",".join(["mx-insert-scale-addr"] * runs))
    assert shape(module) == ["left", "right"] * runs + ["mx.matmul_mx", "func.return"]


def test_an_option_that_is_none():
    module = mx_dialect.parse(program([]))
    with pytest.raises(MxError, match="option 'reuse' of pass 'mx-insert-scale-addr' takes true or false, not 'maybe'"):
        mx_dialect.run_pipeline(module, "mx-insert-scale-addr{reuse=maybe}")
