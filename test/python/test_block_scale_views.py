"""mx-block-scale-views and mx-materialize-strides: what they load, what they leave alone, what they refuse."""

import contextlib
import random
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_programs import Emitter, Undefined, evaluate, program, random_inputs, random_tree
from tile_programs import tile_programs

import mx_dialect
from mx_dialect import passes
from mx_dialect._mlir import ir
from mx_dialect.analysis import alignment
from mx_dialect.transforms.blocked_views import BLOCKED
from mx_dialect.walk import operations

PASS = "mx-block-scale-views"
DYNAMIC = -(2**63)
LOGICAL = re.compile(r"tensor<\d+x\d+x[a-z]\w*, #mx\.layout")


def view(layout: str, block: int, group: int, element: str = "f8E8M0FNU") -> str:
    shape = f"{block}x{group}" if layout == "MX_A_ZZ" else f"{group}x{block}"
    return f'tensor<{shape}x{element}, #mx.layout<"{layout}">>'


def ordered(layout: str, block: Any, group: Any) -> tuple[Any, Any]:
    return (block, group) if layout == "MX_A_ZZ" else (group, block)


def load(layout: str, source: str, offsets: Any, window: Any) -> str:
    """Return a load, offset and window given as (block, group)."""
    first, second = ordered(layout, *offsets)
    rows, columns = ordered(layout, *window)
    tile = f"!mx.tile<{rows}x{columns}xf8E8M0FNU, mat>"
    return f'mx.tile_load {source}[{first}, {second}] [{rows}, {columns}] {{target = "mat"}} : {source_type(layout)} -> {tile}'


def source_type(layout: str) -> str:
    return view(layout, 4096, 4096)


def loads(module: Any) -> list[Any]:
    return operations(module.operation, lambda op: op.name == "mx.tile_load", outer_first=True)


LAYOUTS = st.sampled_from(["MX_A_ZZ", "MX_B_NN"])


@given(
    layout=LAYOUTS,
    boxes=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    data=st.data(),
)
@settings(max_examples=15)
def test_boxes_hold_the_window(layout: str, boxes: tuple[int, int], data: Any) -> None:
    """A blocked load addresses the very bytes that the logical one means, by the formula of the layout."""
    blocks, groups = boxes
    first = [data.draw(st.integers(0, count - 1)) for count in boxes]
    count = [data.draw(st.integers(1, total - start)) for total, start in zip(boxes, first, strict=True)]
    offsets, window = (16 * first[0], 2 * first[1]), (16 * count[0], 2 * count[1])
    type_ = view(layout, 16 * blocks, 2 * groups)
    module = mx_dialect.parse(
        f"func.func @f(%s: {type_}) {{\n%0 = {load(layout, '%s', offsets, window)}\nreturn\n}}".replace(
            source_type(layout), type_
        )
    )
    mx_dialect.run_pipeline(module, PASS)
    blocked = loads(module)[0]
    assert blocked.operands[0].type.shape == [1, blocks, groups, 16, 2]
    memory = np.arange(blocks * groups * 32).reshape(1, blocks, groups, 16, 2)
    start, size = list(blocked.attributes["static_offsets"]), list(blocked.attributes["static_window"])
    assert size == [1, count[0], count[1], 16, 2]
    box = memory[tuple(slice(o, o + s) for o, s in zip(start, size, strict=True))]
    for x in range(window[0]):
        for g in range(window[1]):
            row, group = offsets[0] + x, offsets[1] + g
            byte = ((row // 16) * groups + group // 2) * 32 + (row % 16) * 2 + group % 2
            assert box[0, x // 16, g // 2, x % 16, g % 2] == byte


def offsets_program(rng: Any) -> tuple[str, str, list[Any], Any]:
    """Return a program with a load at random offsets: its text, the layout, the trees of the offsets, the inputs."""
    layout, inputs = rng.choice(["MX_A_ZZ", "MX_B_NN"]), random_inputs(rng)
    trees = [random_tree(rng, 2), random_tree(rng, 2)]
    if rng.randrange(2):
        trees = [("operation", "maxsi", tree, ("constant", 0), "index") for tree in trees]
    if rng.randrange(4):
        trees = [("operation", "muli", tree, ("constant", 16), "arith") for tree in trees]
    emitter = Emitter()
    offsets = [emitter.tree(tree) for tree in trees]
    lines = [*emitter.lines, f"%tile = {load(layout, '%s', offsets, (32, 4))}"]
    text = program(lines, inputs, f", %s: {source_type(layout)}", ", %s", f", {source_type(layout)}")
    return text, layout, trees, inputs


@settings(max_examples=30)
@given(st.randoms(use_true_random=True))
def test_what_is_rewritten_is_whole_boxes(rng: Any) -> None:
    check_offsets(*offsets_program(rng))


def test_enough_random_programs_are_accepted() -> None:
    rng = random.Random(0)
    assert sum(check_offsets(*offsets_program(rng)) for _ in range(30)) >= 10


def check_offsets(text: str, layout: str, trees: list[Any], inputs: Any) -> bool:
    """Check that each offset of an accepted program is, in every run, what is emitted times the size of a box.

    Returns whether it was accepted; if not, nothing has changed.
    """
    module = mx_dialect.parse(text)
    before = mx_dialect.to_asm(module)
    values = list(loads(module)[0].operands)[1:]
    try:
        mx_dialect.run_pipeline(module, PASS)
    except mx_dialect.MxError:
        assert mx_dialect.to_asm(module) == before
        return False
    blocked = loads(module)[0]
    assert list(blocked.attributes["static_window"]) == [1, 2, 2, 16, 2]
    static = list(blocked.attributes["static_offsets"])
    assert [static[i] for i in (0, 3, 4)] == [0, 0, 0]
    quotients = iter(list(blocked.operands)[1:])
    for tree, original, emitted, box in zip(trees, ordered(layout, *values), static[1:3], (16, 2), strict=True):
        quotient = next(quotients) if emitted == DYNAMIC else None
        is_constant = isinstance(original, ir.OpResult) and original.owner.name == "arith.constant"
        assert (quotient is None) == is_constant
        if quotient is not None:
            # The whole offset is divided, by its own name.
            assert quotient.owner.name == "arith.floordivsi"
            assert quotient.owner.operands[0] == original
            assert quotient.owner.operands[1].owner.attributes["value"].value == box
        for environment in inputs.environments():
            with contextlib.suppress(Undefined):
                number = evaluate(tree, environment, strict=True)
                assert number >= 0
                assert number % box == 0
                assert quotient is not None or emitted == number // box
    return True


@settings(max_examples=15)
@given(tile_programs(decided=False))
def test_a_second_run_changes_nothing(made: Any) -> None:
    module = mx_dialect.parse(made.text)
    mx_dialect.run_pipeline(module, PASS)
    once = mx_dialect.to_asm(module)
    assert LOGICAL.search(once) is None
    functions = operations(module.operation, lambda op: op.name == "func.func")
    assert all(BLOCKED in function.attributes for function in functions)
    mx_dialect.run_pipeline(module, PASS)
    assert mx_dialect.to_asm(module) == once
    # What was printed can be read, and is done as well.
    again = mx_dialect.parse(once)
    mx_dialect.run_pipeline(again, PASS)
    assert mx_dialect.to_asm(again) == once


@settings(max_examples=5)
@given(tile_programs(decided=False))
def test_one_bad_offset_leaves_everything(made: Any) -> None:
    """Nothing is rewritten in part: a program that also has one load that is refused stays as it is, to the byte."""
    bad = (
        f"func.func @bad(%s: {source_type('MX_A_ZZ')}) {{\n%0 = {load('MX_A_ZZ', '%s', (8, 0), (16, 2))}\nreturn\n}}\n"
    )
    module = mx_dialect.parse(bad + made.text)
    before = mx_dialect.to_asm(module)
    with pytest.raises(mx_dialect.MxError, match="offset 8 along the block dimension"):
        mx_dialect.run_pipeline(module, PASS)
    assert mx_dialect.to_asm(module) == before


@settings(max_examples=10)
@given(layout=LAYOUTS, blocks=st.integers(1, 300), groups=st.integers(1, 300))
def test_strides_are_those_of_numpy(layout: str, blocks: int, groups: int) -> None:
    module = mx_dialect.parse(f"func.func private @f({view(layout, 16 * blocks, 2 * groups)})")
    mx_dialect.run_pipeline(module, f"{PASS},mx-materialize-strides")
    strides = np.empty((1, blocks, groups, 16, 2), np.uint8).strides
    # numpy gives an axis of extent 1 a stride that nothing depends on.
    assert f"strides = [{blocks * groups * 32}, {', '.join(map(str, strides[1:]))}]" in mx_dialect.to_asm(module)
    once = mx_dialect.to_asm(module)
    mx_dialect.run_pipeline(module, f"mx-materialize-strides,{PASS}")
    assert mx_dialect.to_asm(module) == once


def kernels(count: int, functions: int = 1) -> str:
    """Return functions of `count` loads each, with offsets that share their arithmetic in part."""
    body = "\n".join(
        f"%m{i} = arith.addi %m{i - 1 if i % 20 else 0}, %base : index\n%t{i} = {load('MX_A_ZZ', '%s', (f'%m{i}', 2), (16, 2))}"
        for i in range(1, count + 1)
    )
    return "\n".join(
        f"""func.func @f{number}(%s: {source_type("MX_A_ZZ")}) {{
          %c16 = arith.constant 16 : index
          %block = mx.block_idx : -> index
          %base = arith.muli %block, %c16 : index
          %m0 = arith.muli %c16, %block : index
          {body}
          return
        }}"""
        for number in range(functions)
    )


def test_work_is_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in looks at values: twice the loads or functions cost twice as many."""
    looks = 0
    read = alignment.read

    def counting(term: Any) -> Any:
        nonlocal looks
        looks += 1
        return read(term)

    monkeypatch.setattr(alignment, "read", counting)

    def cost(count: int, functions: int) -> int:
        nonlocal looks
        module = mx_dialect.parse(kernels(count, functions))
        looks = 0
        mx_dialect.run_pipeline(module, PASS)
        return looks

    one, twice, both = cost(60, 1), cost(120, 1), cost(60, 2)
    assert one < 60 * 20
    assert one < twice <= 2 * one
    assert both == 2 * one


def test_types_nest_deeper_than_python_recurses() -> None:
    module = mx_dialect.parse(f"func.func private @f({view('MX_A_ZZ', 16, 2)})")
    blocking = passes.get(PASS)
    assert blocking is not None
    with module.context, ir.Location.unknown():
        logical = ir.Type.parse(view("MX_A_ZZ", 16, 2))
        blocked = ir.Type.parse('tensor<1x1x1x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>')
        function = module.body.operations[0].operation

        def nested(type_: Any) -> Any:
            for _ in range(3000):
                type_ = ir.TupleType.get_tuple([type_, type_])
            return ir.TypeAttr.get(ir.FunctionType.get([type_], []))

        function.attributes["function_type"] = nested(logical)
        blocking.run(module.operation, blocking.options())
        assert function.attributes["function_type"] == nested(blocked)


def test_a_function_in_a_function_is_a_function() -> None:
    """What is marked is the nearest function: a blocked one may hold a module with one that is not, and the reverse."""
    plain, marked = "", "attributes {mx_tensor_views_blocked}"
    for outer, inner in ((plain, marked), (marked, plain)):
        types = {plain: view("MX_A_ZZ", 32, 2), marked: 'tensor<1x2x1x16x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>'}
        module = mx_dialect.parse(f"""
        func.func @outer(%s: {types[outer]}) {outer} {{
          builtin.module {{
            func.func private @inner({types[inner]}) {inner}
          }}
          return
        }}""")
        mx_dialect.run_pipeline(module, PASS)
        text = mx_dialect.to_asm(module)
        assert LOGICAL.search(text) is None
        assert text.count(BLOCKED) == 2


def test_all_errors_are_reported() -> None:
    text = "\n".join(
        f"func.func @f{m}(%s: {source_type('MX_A_ZZ')}) {{\n%0 = {load('MX_A_ZZ', '%s', (m, 0), (16, 2))}\nreturn\n}}"
        for m in (8, 16, 24)
    )
    module = mx_dialect.parse(text, "file.mlir")
    with pytest.raises(mx_dialect.MxError) as caught:
        mx_dialect.run_pipeline(module, PASS)
    assert [(d.line, d.message[:30]) for d in caught.value.diagnostics] == [
        (2, "'mx.tile_load' op has offset 8"),
        (10, "'mx.tile_load' op has offset 24"[:30]),
    ]
