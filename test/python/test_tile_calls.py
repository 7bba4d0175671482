"""The tile level on the CPU: control flow, calls, blocks, and programs of more than tiles."""

import re

import ml_dtypes
import numpy as np
from tile_functions import E4M3, E8M0, A, B, Global, Matmul, assert_product, compiled, failing, scaled

import mx_dialect
from mx_dialect.layouts import a5


def test_control_flow_carries_tiles_and_views():
    """A row of 16 columns from one of two views, doubled, or not, by a loop that carries the tile."""
    view, tile = Global("x", (2, 32), E8M0, B), f"!mx.tile<2x16x{E8M0}, mat>"
    out = Global("out", (2, 16), E8M0)
    text = f"""func.func private @load(%v: {view.type}, %n: index) -> {tile} {{
        %t = mx.tile_load %v[0, %n] [2, 16] {{}} : {view.type} -> {tile}
        return %t : {tile}
    }}
    func.func @f(%x: {view.type}, %y: {view.type}, {out.argument}, %which: i1, %count: index) -> {out.type} {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c8 = arith.constant 8 : index
        %v = arith.select %which, %x, %y : {view.type}
        %first = func.call @load(%v, %c0) : ({view.type}, index) -> {tile}
        %last = scf.for %i = %c0 to %count step %c1 iter_args(%t = %first) -> ({tile}) {{
          %even = arith.remui %i, %c8 : index
          %is = arith.cmpi eq, %even, %c1 : index
          %u = scf.if %is -> ({tile}) {{
            %n = arith.addi %i, %c1 : index
            %l = func.call @load(%v, %n) : ({view.type}, index) -> {tile}
            scf.yield %l : {tile}
          }} else {{
            scf.yield %t : {tile}
          }}
          scf.yield %u : {tile}
        }}
        cf.cond_br %which, ^stay(%last : {tile}), ^other(%first, %v : {tile}, {view.type})
      ^other(%o: {tile}, %w: {view.type}):
        %l = func.call @load(%w, %c8) : ({view.type}, index) -> {tile}
        cf.br ^stay(%l : {tile})
      ^stay(%r0: {tile}):
        %r = mx.tile_store %r0, %out[0, 0] : {tile}, {out.type} -> {out.type}
        return %r : {out.type}
    }}"""
    kernel = compiled(text)
    logical = np.arange(128, dtype=np.uint8).reshape(2, 2, 32)
    boxes = [a5.pack(part, a5.MX_B_NN) for part in logical]
    empty = np.zeros((2, 16), np.uint8)
    np.testing.assert_array_equal(kernel(*boxes, empty, True, 0).view(np.uint8), logical[0, :, :16])
    np.testing.assert_array_equal(kernel(*boxes, empty, True, 5).view(np.uint8), logical[0, :, 2:18])
    np.testing.assert_array_equal(kernel(*boxes, empty, False, 5).view(np.uint8), logical[1, :, 8:24])


OUT = "tensor<8x4xi32>"
# Stores row `block` of `%t` where the block's number says, then what it was told in the next row.
BLOCKS = f"""
func.func private @row(%t: {OUT}, %shift: index) -> {OUT} {{
  %i = mx.block_idx : () -> index
  %n = mx.block_num : () -> index
  %j = arith.muli %i, %n : index
  %v = arith.index_cast %j : index to i32
  %w = tensor.splat %v : tensor<1x4xi32>
  %tile = mx.tile_load %w[0, 0] [1, 4] {{}} : tensor<1x4xi32> -> !mx.tile<1x4xi32, vec>
  %at = arith.addi %i, %shift : index
  %r = mx.tile_store %tile, %t[%at, 0] : !mx.tile<1x4xi32, vec>, {OUT} -> {OUT}
  return %r : {OUT}
}}
func.func @kernel(%shift: index, %t: {OUT}) -> {OUT} attributes {{mx.kernel = "aiv"}} {{
  %r = func.call @row(%t, %shift) : ({OUT}, index) -> {OUT}
  return %r : {OUT}
}}
"""


def rows(array, blocks, count, shift=0):
    """Return an array after a number of blocks of @kernel, which are told a count."""
    expected = array.copy()
    for block in range(blocks):
        expected[block + shift] = block * count
    return expected


def test_a_function_that_nobody_calls_is_block_0_of_1():
    kernel = compiled(BLOCKS, entry="kernel")
    start = np.full((8, 4), 9, np.int32)
    np.testing.assert_array_equal(kernel(2, start), rows(start, 1, 1, 2))


def test_submits():
    text = f"""{BLOCKS}
    func.func @f(%t: {OUT}, %n: index, %p: i1) -> ({OUT}, {OUT}, {OUT}) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %0 = mx.submit @kernel(%c0, %t) cores(%n) : index, {OUT}, index -> {OUT}
      %1, %task = mx.submit @kernel(%c1, %t) : index, {OUT} -> ({OUT}, !mx.task)
      %2, %last = scf.for %i = %c0 to %n step %c1 iter_args(%u = %1, %before = %task) -> ({OUT}, !mx.task) {{
        %3, %new = mx.submit @kernel(%i, %u) after(%before, %task) cores(%c1) if(%p) {{sync_start}}
          : index, {OUT}, !mx.task, !mx.task, index, i1 -> ({OUT}, !mx.task)
        scf.yield %3, %new : {OUT}, !mx.task
      }}
      return %0, %1, %2 : {OUT}, {OUT}, {OUT}
    }}"""
    kernel = compiled(text)
    start = np.full((8, 4), 9, np.int32)
    for count, predicate in ((0, True), (3, False), (8, True)):
        every, once, loop = kernel(start, count, predicate)
        np.testing.assert_array_equal(every, rows(start, count, count))
        np.testing.assert_array_equal(once, rows(start, 1, 1, 1))
        expected = once.copy()
        for shift in range(count if predicate else 0):
            expected = rows(expected, 1, 1, shift)
        np.testing.assert_array_equal(loop, expected)
    with failing("mx.tile_store: the store leaves the tensor along axis 0"):
        kernel(start, 9, True)


def test_stores_are_followed_to_the_argument():
    """Through loops, branches, selects and calls; each block adds to what the ones before stored."""
    text = f"""{BLOCKS}
    func.func private @deep(%a: {OUT}, %b: {OUT}, %shift: index) -> ({OUT}, {OUT}) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %true = arith.constant true
      %0 = scf.for %i = %c0 to %c2 step %c1 iter_args(%u = %a) -> ({OUT}) {{
        %is = arith.cmpi eq, %i, %c1 : index
        %1 = scf.if %is -> ({OUT}) {{
          %2 = func.call @row(%u, %shift) : ({OUT}, index) -> {OUT}
          scf.yield %2 : {OUT}
        }} else {{
          scf.yield %u : {OUT}
        }}
        scf.yield %1 : {OUT}
      }}
      %3, %k = scf.while (%u = %0, %i = %c0) : ({OUT}, index) -> ({OUT}, index) {{
        %more = arith.cmpi slt, %i, %c1 : index
        scf.condition(%more) %u, %i : {OUT}, index
      }} do {{
      ^bb0(%u: {OUT}, %i: index):
        %next = arith.addi %i, %c1 : index
        %at = arith.addi %shift, %c1 : index
        %4 = func.call @kernel(%at, %u) : (index, {OUT}) -> {OUT}
        scf.yield %4, %next : {OUT}, index
      }}
      %5 = arith.select %true, %3, %0 : {OUT}
      %6 = scf.execute_region -> {OUT} {{
        scf.yield %5 : {OUT}
      }}
      return %b, %6 : {OUT}, {OUT}
    }}
    func.func @f(%a: {OUT}, %b: {OUT}, %n: index) -> ({OUT}, {OUT}) {{
      %c0 = arith.constant 0 : index
      %0:2 = mx.submit @deep(%a, %b, %c0) cores(%n) : {OUT}, {OUT}, index, index -> ({OUT}, {OUT})
      return %0#0, %0#1 : {OUT}, {OUT}
    }}"""
    kernel = compiled(text)
    a, b = np.full((8, 4), 9, np.int32), np.full((8, 4), 5, np.int32)
    same, stored = kernel(a, b, 3)
    np.testing.assert_array_equal(same, b)
    expected = a.copy()
    for block in range(3):
        expected[block] = expected[block + 1] = block * 3
    np.testing.assert_array_equal(stored, expected)


def test_calls_nested_deeper_than_python_recurses():
    depth = 1200
    calls = "\n".join(
        f"""func.func private @f{i}(%t: {OUT}) -> {OUT} {{
          %r = {"func.call" if i % 3 else "mx.submit"} @f{i - 1}(%t) : {"(" if i % 3 else ""}{OUT}{")" if i % 3 else ""} -> {OUT}
          return %r : {OUT}
        }}"""
        for i in range(1, depth)
    )
    text = f"""func.func private @f0(%t: {OUT}) -> {OUT} {{
      %c0 = arith.constant 0 : index
      %r = func.call @kernel(%c0, %t) : (index, {OUT}) -> {OUT}
      return %r : {OUT}
    }}
    {calls}
    func.func @f(%t: {OUT}, %n: index) -> {OUT} {{
      %r = mx.submit @f{depth - 1}(%t) cores(%n) : {OUT}, index -> {OUT}
      return %r : {OUT}
    }}"""
    module = mx_dialect.parse(BLOCKS + text)
    mx_dialect.run_pipeline(module, "mx-tile-to-linalg")
    lowered = mx_dialect.to_asm(module)
    assert "mx." not in re.sub(r"\".*?\"", "", lowered)
    # The submit nearest to @f0 is in @f3, so that @f1 and @f2 are told its block, of which there is one.
    assert [len(re.search(rf"@f{i}\((.*?)\) ->", lowered)[1].split(",")) for i in (0, 2, 3)] == [3, 3, 1]


# Together with the rest.


def test_a_refused_program_stays_as_it_was():
    text = f"""func.func private @nothing(%t: {OUT}) -> {OUT} {{
      %tile = mx.tile_load %t[0, 0] [8, 4] : {OUT} -> !mx.tile<8x4xi32, vec>
      %r = tensor.empty() : {OUT}
      return %r : {OUT}
    }}
    func.func @f(%t: {OUT}, %n: index) {{
      %r = mx.submit @nothing(%t) cores(%n) : {OUT}, index -> {OUT}
      return
    }}"""
    module = mx_dialect.parse(text)
    before = mx_dialect.to_asm(module)
    with failing("'mx.submit' op runs @nothing on other than one block, but its result 0 is not made by stores"):
        mx_dialect.run_pipeline(module, "mx-tile-to-linalg")
    assert mx_dialect.to_asm(module) == before


def test_what_has_no_tiles_stays_as_it_is():
    text = f"""func.func private @other(%x: !mx.tensor<32xf8E4M3FN, block_size = 32, scale_type = {E8M0}>, %y: tensor<4xui8>) {{
      %0 = mx.dequantize_block %x : <32xf8E4M3FN, block_size = 32, scale_type = {E8M0}> -> tensor<32xf32>
      %1 = tensor.extract_slice %y[0] [2] [1] : tensor<4xui8> to tensor<2xui8>
      return
    }}"""
    module = mx_dialect.parse(text)
    before = mx_dialect.to_asm(module)
    mx_dialect.run_pipeline(module, "mx-tile-to-linalg")
    assert mx_dialect.to_asm(module) == before


def test_either_level_may_be_lowered_first():
    """A value-level operand feeds a tile program; the bytes of a single box are those of a plain tensor."""
    mx = f"!mx.tensor<16x64x{E4M3}, block_size = 32, scale_type = {E8M0}>"
    case = Matmul(16, 32, 64, (16, 32, 64))
    view = Global("s", (16, 2), E8M0, A)
    right = [Global("b", (64, 32), E4M3), Global("t", (2, 32), E8M0, B), Global("out", (16, 32), "f32")]
    types = ", ".join([f"tensor<16x64x{E4M3}>", view.type, *(value.type for value in right)])
    text = f"""{case.program().replace("func.func @f", "func.func private @tiles")}
    func.func @f(%x: {mx}, {", ".join(value.argument for value in right)}) -> {right[2].type} {{
      %m, %plain = mx.decompose %x : {mx} -> (tensor<16x64x{E4M3}>, tensor<16x2x{E8M0}>)
      %bytes = tensor.collapse_shape %plain [[0, 1]] : tensor<16x2x{E8M0}> into tensor<32x{E8M0}>
      %s = mx.tensor_view %bytes [16, 2] : tensor<32x{E8M0}> -> {view.type}
      %r = func.call @tiles(%m, %s, %b, %t, %out) : ({types}) -> {right[2].type}
      return %r : {right[2].type}
    }}"""
    a, sa, b, sb, _ = case.operands(np.random.default_rng(0))
    q = mx_dialect.MxArray(a.view(ml_dtypes.float8_e4m3fn), sa.view(ml_dtypes.float8_e8m0fnu), 32)
    arguments = (q, b, a5.pack(sb, a5.MX_B_NN), np.zeros((16, 32), np.float32))
    orders = ("mx-tile-to-linalg", "mx-tile-to-linalg,mx-to-linalg", "mx-to-linalg,mx-tile-to-linalg")
    # Once lowered, an mx tensor is two arguments.
    results = [
        compiled(text, passes=order)(*(arguments if order == orders[0] else (a, sa, *arguments[1:])))
        for order in orders
    ]
    assert_product(results[0], scaled(a, sa, 1), scaled(b, sb, 0))
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
