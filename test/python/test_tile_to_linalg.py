"""The tile level on the CPU: every operation in running programs, against numpy that follows the specification."""

import re

import ml_dtypes
import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tile_functions import (
    E4M3,
    E8M0,
    LOOPS,
    VECTORS,
    A,
    B,
    Global,
    Matmul,
    assert_product,
    compiled,
    failing,
    function,
    scaled,
    small_integers,
    spelled,
)

from mx_dialect.layouts import a5

MATMULS = [
    Matmul(16, 32, 64, (16, 32, 64)),
    Matmul(32, 32, 128, (20, 30, 128), "_acc"),
    Matmul(16, 64, 128, (9, 33, 112), "_bias"),
    Matmul(16, 32, 64, (16, 32, 48)),
    Matmul(16, 32, 64, (5, 17, 33), "_acc", dynamic=True),
    Matmul(16, 32, 128, (16, 31, 128), "_bias", dynamic=True),
    Matmul(16, 32, 64, (8, 16, 64), "", dynamic=True),
]


@pytest.mark.parametrize("case", MATMULS, ids=lambda c: f"{c.kind or '_'}{c.valid}{'?' * c.dynamic}")
@pytest.mark.parametrize("pipeline", [LOOPS, VECTORS])
def test_matmuls(case, pipeline):
    rng = np.random.default_rng(0)
    a, sa, b, sb, third = case.operands(rng)
    assert_product(case.run((a, sa, b, sb, third), pipeline), scaled(a, sa, 1), scaled(b, sb, 0), third)
    a, sa, b, sb, third = case.operands(rng, small_integers)
    exact = scaled(a, sa, 1) @ scaled(b, sb, 0) + third
    np.testing.assert_array_equal(case.run((a, sa, b, sb, third), pipeline), exact)


def test_valid_extents_that_do_not_fit():
    case = next(c for c in MATMULS if c.dynamic and c.kind == "_acc")
    kernel = compiled(case.program())
    arguments = [
        np.zeros((16, 64), np.uint8),
        np.zeros((1, 1, 1, 16, 2), np.uint8),
        np.zeros((64, 32), np.uint8),
        np.zeros((1, 2, 1, 16, 2), np.uint8),
        np.zeros((16, 32), np.float32),
        np.zeros((16, 32), np.float32),
    ]
    kernel(*arguments, 16, 32, 64, 2)
    for extents, message in (
        ((17, 32, 64, 2), "mx.tile_load: the valid extent of axis 0 is more than that of the window"),
        ((16, -1, 64, 2), "mx.tile_load: the valid extent of axis 1 is more than that of the window"),
        ((16, 32, 64, 1), "mx.matmul_mx_acc: lhs_scale has too few entries along axis 1"),
    ):
        with failing(message):
            kernel(*arguments, *extents)


@pytest.mark.parametrize(
    ("kind", "tile", "valid", "message"),
    [
        ("", "tb", "%l, %n", "mx.matmul_mx: lhs and rhs have different valid K"),
        ("_acc", "tc", "%l, %n", "mx.matmul_mx_acc: acc has another valid M than the product"),
        ("_bias", "tc", "1, %l", "mx.matmul_mx_bias: bias has another valid N than the product"),
    ],
)
def test_tiles_that_do_not_fit(kind, tile, valid, message):
    """One tile is loaded with another valid extent than the others, given at run time."""
    case = Matmul(16, 32, 64, (16, 16, 16), kind, dynamic=True)
    text = case.program().replace("%g: index", "%g: index, %l: index")
    text, count = re.subn(rf"(%{tile} = .*?\] \[.*?\]) \[.*?\]", rf"\1 [{valid}]", text)
    assert count == 1
    kernel = compiled(text)
    scale_codes = [np.zeros((1, count, 1, 16, 2), np.uint8) for count in (1, 2)]
    operands = [np.zeros((16, 64), np.uint8), scale_codes[0], np.zeros((64, 32), np.uint8), scale_codes[1]]
    if kind:
        operands.append(np.zeros((1 if kind == "_bias" else 16, 32), np.float32))
    operands += [np.zeros((16, 32), np.float32), 16, 16, 16, 1]
    kernel(*operands, 16)
    with failing(message):
        kernel(*operands, 8)


# Loads and stores.

ELEMENTS = {
    E4M3: np.uint8,
    "f8E5M2": np.uint8,
    "f4E2M1FN": np.uint8,
    E8M0: np.uint8,
    "i8": np.int8,
    "ui8": np.uint8,
    "i32": np.int32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
}


def byte_of(layout, shape, row, column):
    """Return where the specification puts the scale of a row and a column."""
    block, group = (row, column) if layout == A else (column, row)
    groups = shape[1] if layout == A else shape[0]
    return ((block // 16) * (groups // 2) + group // 2) * 32 + (block % 16) * 2 + group % 2


def window_of_scales(layout, element):
    """Return a program that loads a window of a view of 48 blocks and 6 groups and stores its valid part."""
    shape, window, valid = (*(((48, 6), (16, 4)) if layout == A else ((6, 48), (4, 16))), ("%h", "%w"))
    view, out = Global("x", shape, element, layout), Global("out", window, element)
    return function(
        f"{view.argument}, {out.argument}, %i: index, %j: index, %h: index, %w: index",
        f"""{view.load("t", window, valid, ("%i", "%j"))}
        %r = mx.tile_store %t, %out[0, 0] : {view.tile(window, valid)}, {out.type} -> {out.type}""",
        out.type,
    )


@settings(max_examples=200)
@given(st.sampled_from([(A, E8M0), (A, "ui8"), (B, E8M0), (B, "i8")]), st.data())
def test_scales_are_loaded_from_any_offset(kind, draw):
    layout, element = kind
    shape, window = ((48, 6), (16, 4)) if layout == A else ((6, 48), (4, 16))
    kernel = compiled(window_of_scales(layout, element))
    stored = np.arange(288, dtype=np.uint16).astype(np.uint8)
    dtype = ELEMENTS[element]
    offsets = [draw.draw(st.integers(-1, extent + 1) | st.sampled_from([-(2**63), 2**63 - 1])) for extent in shape]
    valid = [draw.draw(st.integers(0, extent)) for extent in window]

    def load():
        boxes = stored.view(dtype).reshape(1, 3, 3, 16, 2)
        return kernel(boxes, np.full(window, 99, dtype), *offsets, *valid).view(np.uint8)

    if any(offset < 0 or offset + size > end for offset, size, end in zip(offsets, valid, shape, strict=True)):
        with failing("mx.tile_load: the load leaves the tensor along axis"):
            load()
        return
    result = load()
    for row, column in np.ndindex(*window):
        inside = row < valid[0] and column < valid[1]
        expected = stored[byte_of(layout, shape, offsets[0] + row, offsets[1] + column)] if inside else 99
        assert result[row, column] == expected


@pytest.mark.parametrize("layout", [A, B])
def test_boxes_are_loaded_as_the_same_entries(layout):
    """A window of boxes that leaves the tensor is ragged: what the tile's valid shape needs is there."""
    ordered = (lambda x, g: (x, g)) if layout == A else (lambda x, g: (g, x))
    shape, window, valid = ordered(64, 4), ordered(32, 4), ordered(20, 3)
    boxed = f"tensor<1x4x2x16x2x{E8M0}, {layout}>"
    out = Global("out", window, E8M0)
    loads = "\n".join(
        f"""%t{i} = mx.tile_load %x[0, %b, {group}, 0, 0] [1, 2, 2, 16, 2] {{target = "mat"}} : {boxed} -> {tile}
        %o{i} = mx.tile_store %t{i}, %o{i - 1}[0, 0] : {tile}, {out.type} -> {out.type}"""
        for i, (group, tile) in enumerate(
            (
                (0, f"!mx.tile<{spelled(window)}x{E8M0}, mat, valid = {spelled(valid)}>"),
                (1, f"!mx.tile<{spelled(window)}x{E8M0}, mat, valid = {spelled(ordered('?', '?'))}>"),
            ),
            1,
        )
    )
    text = f"""func.func @f(%x: {boxed}, %o0: {out.type}, %b: index) -> ({out.type}, {out.type}) {{
        {loads}
        return %o1, %o2 : {out.type}, {out.type}
    }}"""
    kernel = compiled(text)
    stored = np.arange(256, dtype=np.uint16).astype(np.uint8)
    for box in (0, 1, 2):
        first, second = kernel(stored.reshape(1, 4, 2, 16, 2), np.full(window, 99, np.uint8), box)
        entries = [[stored[byte_of(layout, shape, *ordered(box * 16 + x, g))] for g in range(4)] for x in range(32)]
        entries = np.array(entries, np.uint8) if layout == A else np.array(entries, np.uint8).T
        part = tuple(slice(extent) for extent in valid)
        np.testing.assert_array_equal(first.view(np.uint8)[part], entries[part])
        # Of a valid shape that is not known, all that is there: groups 2 and 3 here.
        rest = tuple(slice(extent) for extent in ordered(32, 2))
        np.testing.assert_array_equal(second.view(np.uint8)[rest], np.roll(entries, -2, 1 if layout == A else 0)[rest])
    for box in (3, 4, -1, 2**60, 2**63 - 1):
        with failing("mx.tile_load: the load leaves the tensor along axis 1"):
            kernel(stored.reshape(1, 4, 2, 16, 2), np.full(window, 99, np.uint8), box)


@pytest.mark.parametrize("pipeline", [LOOPS, VECTORS])
def test_loads_and_stores_of_every_element(pipeline):
    arguments, lines = [], []
    for element in ELEMENTS:
        source, dest = Global(f"x_{element}", (20, 40), element), Global(f"y_{element}", (20, 40), element)
        arguments += [source.argument, dest.argument]
        tile = source.tile((16, 32), (10, 32))
        lines.append(source.load(f"t_{element}", (16, 32), (10, 32), ("%i", 8)))
        lines.append(
            f"%r_{element} = mx.tile_store %t_{element}, %{dest.name}[%j, 1] : {tile}, {dest.type} -> {dest.type}"
        )
    types = ", ".join(Global("", (20, 40), element).type for element in ELEMENTS)
    values = ", ".join(f"%r_{element}" for element in ELEMENTS)
    arguments += ["%i: index", "%j: index"]
    body = "\n".join(lines)
    text = f"func.func @f({', '.join(arguments)}) -> ({types}) {{\n{body}\nreturn {values} : {types}\n}}"
    kernel = compiled(text, pipeline)
    rng = np.random.default_rng(0)
    arrays = []
    for element, dtype in ELEMENTS.items():
        high = 16 if element == "f4E2M1FN" else 100
        arrays += [rng.integers(0, high, (20, 40)).astype(dtype) for _ in range(2)]
    results = kernel(*arrays, 10, 3)
    for number, result in enumerate(results):
        expected = arrays[2 * number + 1].copy()
        expected[3:13, 1:33] = arrays[2 * number][10:20, 8:40]
        np.testing.assert_array_equal(result.view(expected.dtype), expected)
    for i, j, what in (
        (11, 3, "tile_load: the load"),
        (0, 11, "tile_store: the store"),
        (-1, 0, "tile_load: the load"),
    ):
        with failing(f"mx.{what} leaves the tensor along axis 0"):
            kernel(*arrays, i, j)


@pytest.mark.parametrize("layout", [A, B])
def test_views_keep_the_bytes(layout):
    shape = (32, 4) if layout == A else (4, 32)
    view = f"tensor<{spelled(shape)}x{E8M0}, {layout}>"
    boxed = f"tensor<1x2x2x16x2x{E8M0}, {layout}>"
    flat, rows = f"tensor<128x{E8M0}>", f"tensor<2x1x?x{E8M0}>"
    text = f"""func.func @f(%x: {flat}, %n: index) -> ({view}, {rows}, {flat}, {boxed}) {{
        %0 = mx.tensor_view %x {[*shape]} : {flat} -> {view}
        %1 = mx.tensor_view %0 [2, 1, %n] : {view} -> {rows}
        %2 = mx.tensor_view %1 [1, 2, 2, 16, 2] : {rows} -> {boxed}
        %3 = mx.tensor_view %2 [128] : {boxed} -> {flat}
        return %0, %1, %3, %2 : {view}, {rows}, {flat}, {boxed}
    }}"""
    kernel = compiled(text)
    stored = np.arange(128, dtype=np.uint8)
    results = kernel(stored, 64)
    for result, expected in zip(results, ((1, 2, 2, 16, 2), (2, 1, 64), (128,), (1, 2, 2, 16, 2)), strict=True):
        np.testing.assert_array_equal(result.view(np.uint8), stored.reshape(expected))
    for wrong in (63, 0, -64, 2**63 - 64):
        with failing("mx.tensor_view: the number of bytes is not that of the result"):
            kernel(stored, wrong)


def test_views_of_dynamic_shape():
    view = f"tensor<?x?x{E8M0}, {A}>"
    text = f"""func.func @f(%x: tensor<?x{E8M0}>, %m: index, %g: index) -> {view} {{
        %r = mx.tensor_view %x [%m, %g] : tensor<?x{E8M0}> -> {view}
        return %r : {view}
    }}"""
    kernel = compiled(text)
    stored = np.arange(192, dtype=np.uint8)
    np.testing.assert_array_equal(kernel(stored, 48, 4).view(np.uint8), stored.reshape(1, 3, 2, 16, 2))
    np.testing.assert_array_equal(kernel(stored[:0], 16, 0).view(np.uint8), np.zeros((1, 1, 0, 16, 2), np.uint8))
    for m, g, message in (
        (40, 4, "a size of MX_A_ZZ is not a multiple of 16"),
        (48, 3, "a size of MX_A_ZZ is not a multiple of 2"),
        (48, 2, "the number of bytes is not that of the result"),
        # Multiplied, these wrap to 192 bytes and 0.
        (16 * (2**58 + 3), 4, "the number of bytes is not that of the result"),
        (2**40, 2**40, "the number of bytes is not that of the result"),
    ):
        with failing(f"mx.tensor_view: {message}"):
            kernel(stored, m, g)


# Operations on tiles.


@pytest.mark.parametrize("pipeline", [LOOPS, VECTORS])
def test_fp4_becomes_fp8_exactly(pipeline):
    source = Global("x", (2, 40), "f4E2M1FN")
    outs = [Global(f"o{i}", (2, 40), element) for i, element in enumerate((E4M3, "f8E5M2"))]
    lines = [source.load("t", (2, 40), (2, 40))]
    for out in outs:
        tile = out.tile((2, 40))
        lines.append(f"%c_{out.name} = mx.tile_cast %t : {source.tile((2, 40))} -> {tile}")
        lines.append(
            f"%r_{out.name} = mx.tile_store %c_{out.name}, %{out.name}[0, 0] : {tile}, {out.type} -> {out.type}"
        )
    types = ", ".join(out.type for out in outs)
    arguments = ", ".join(value.argument for value in (source, *outs))
    body = "\n".join(lines)
    text = f"func.func @f({arguments}) -> ({types}) {{\n{body}\nreturn %r_o0, %r_o1 : {types}\n}}"
    elements = (np.arange(80, dtype=np.uint8) % 16).reshape(2, 40)
    values = np.float32([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])[elements]
    results = compiled(text, pipeline)(elements, *np.zeros((2, 2, 40), np.uint8))
    for result in results:
        np.testing.assert_array_equal(result.astype(np.float32), values)
        np.testing.assert_array_equal(np.signbit(result.astype(np.float32)), np.signbit(values))


@pytest.mark.parametrize("element", [E8M0, "i8", "ui8"])
def test_bytes_become_scales(element):
    """A move to a scale space takes bytes as the codes of f8E8M0FNU."""
    case = Matmul(16, 32, 64, (16, 32, 64))
    text = case.program().replace("%ts = mx.tile_load", "%bytes = mx.tile_load")
    matrix = f"tensor<16x2x{element}, {A}>"
    text = text.replace(f"tensor<16x2x{E8M0}, {A}>", matrix)
    loaded = f"!mx.tile<16x2x{E8M0}, mat, valid = 16x2>"
    moved = f"!mx.tile<16x2x{E8M0}, left_scale>"
    head, load, rest = text.partition(f"{matrix} -> {loaded}")
    assert load
    read = f"!mx.tile<16x2x{element}, mat>"
    text = f"{head}{matrix} -> {read}\n%ts = mx.tile_move %bytes : {read} -> {moved}{rest.replace(loaded, moved)}"
    a, sa, b, sb, _ = case.operands(np.random.default_rng(0))
    dtype = np.int8 if element == "i8" else np.uint8
    boxes = a5.pack(sa, a5.MX_A_ZZ).view(dtype)
    result = compiled(text)(a, boxes, b, a5.pack(sb, a5.MX_B_NN), np.zeros((16, 32), np.float32))
    assert_product(result, scaled(a, sa, 1), scaled(b, sb, 0))


def test_created_tiles_are_zero():
    lines, types = [], []
    for element in ELEMENTS:
        out = Global(f"o_{element}", (4, 8), element)
        types.append(out.type)
        lines += [
            f"%t_{element} = mx.tile_create : () -> !mx.tile<16x32x{element}, vec, valid = 4x8>",
            f"%e_{element} = tensor.empty() : {out.type}",
            f"%r_{element} = mx.tile_store %t_{element}, %e_{element}[0, 0] : !mx.tile<16x32x{element}, vec, valid = 4x8>,"
            f" {out.type} -> {out.type}",
        ]
    values = ", ".join(f"%r_{element}" for element in ELEMENTS)
    body = "\n".join(lines)
    text = f"func.func @f() -> ({', '.join(types)}) {{\n{body}\nreturn {values} : {', '.join(types)}\n}}"
    for result in compiled(text)():
        assert result.shape == (4, 8)
        assert not result.view(np.uint8).any()


QUANTIZATIONS = [
    ("f32", E4M3, A, "floor", (5, 64), False),
    ("bf16", "f8E5M2", A, "even", (3, 48), False),
    ("f16", E4M3, B, "rceil", (33, 4), False),
    ("f32", "f8E5M2", B, "ceil", (64, 5), False),
    ("f32", E4M3, A, "floor", (4, 40), True),
    ("f32", E4M3, B, "floor", (96, 3), True),
]


@pytest.mark.parametrize("case", QUANTIZATIONS, ids=str)
@pytest.mark.parametrize("pipeline", [LOOPS, VECTORS])
def test_quantization(case, pipeline):
    floats, element, layout, rounding, valid, dynamic = case
    axis = 1 if layout == A else 0
    shape = tuple(-(-extent // 96) * 96 for extent in valid)
    groups = tuple(-(-extent // 32) if i == axis else extent for i, extent in enumerate(valid))
    scale_shape = tuple(extent // 32 if i == axis else extent for i, extent in enumerate(shape))
    extents = ("%h", "%w") if dynamic else valid
    group_extents = ("%h", "%w") if dynamic else groups
    source, q, s = Global("x", shape, floats), Global("q", shape, element), Global("s", scale_shape, E8M0)
    tiles = (source.tile(shape, extents), q.tile(shape, extents), s.tile(scale_shape, group_extents))
    text = f"""func.func @f({source.argument}, {q.argument}, {s.argument}, %h: index, %w: index) -> ({q.type}, {s.type}) {{
        {source.load("t", shape, extents)}
        %d, %e = mx.quant_mx %t {{layout = "{"MX_A_ZZ" if layout == A else "MX_B_NN"}", rounding = "{rounding}"}}
          : {tiles[0]} -> ({tiles[1]}, {tiles[2]})
        %0 = mx.tile_store %d, %q[0, 0] : {tiles[1]}, {q.type} -> {q.type}
        %1 = mx.tile_store %e, %s[0, 0] : {tiles[2]}, {s.type} -> {s.type}
        return %0, %1 : {q.type}, {s.type}
    }}"""
    rng = np.random.default_rng(0)
    dtype = ELEMENTS[floats]
    x = np.full(shape, np.nan, dtype)
    part = tuple(slice(extent) for extent in valid)
    x[part] = (rng.standard_normal(valid) * 2.0 ** rng.integers(-8, 8, valid)).astype(dtype)
    elements, scale = compiled(text, pipeline)(x, *(np.full(sh, 99, np.uint8) for sh in (shape, scale_shape)), *valid)
    elements, scale = elements.view(np.uint8), scale.view(np.uint8)
    rows = x[part].astype(np.float64) if axis == 1 else x[part].astype(np.float64).T
    for row, values in enumerate(rows):
        for start in range(0, len(values), 32):
            block = [float(v) for v in values[start : start + 32]]
            wanted, wanted_scale = oracle.quantize_block(block, element, rounding)
            found = elements[part] if axis == 1 else elements[part].T
            assert list(found[row, start : start + 32]) == wanted
            assert (scale if axis == 1 else scale.T)[row, start // 32] == wanted_scale
    elements[part] = 99
    scale[tuple(slice(extent) for extent in groups)] = 99
    assert (elements == 99).all()
    assert (scale == 99).all()
