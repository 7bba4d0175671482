"""Custom assembly: the grammar both ways, what is and is not mx syntax, positions, whole modules."""

import pytest

from mx_dialect import asm, dialect, ops
from mx_dialect._mlir import ir
from mx_dialect.asm import reader, table
from mx_dialect.diagnostics import Collector, MxError, collecting, warn_at

BODY = "<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>"
CUSTOM = f"!mx.tensor{BODY}"
STORAGE = "!mx.tensor<tensor<32x64xf8E4M3FN>, 32 : i64, f8E8M0FNU, 1 : i64>"
PARTS = "tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU>"


@pytest.fixture(scope="module")
def context():
    context = dialect.load()
    # Round trips go through operations of unknown dialects too.
    context.allow_unregistered_dialects = True
    return context


def generic(text):
    return asm.to_generic(text, "-").text


# Both ways, form by form

FORMS = [
    (
        f"%0 = mx.quantize_block %x : tensor<32x64xf32> -> {BODY}",
        f'%0 = "mx.quantize_block"(%x) : (tensor<32x64xf32>) -> {STORAGE}',
    ),
    (
        f'%0 = mx.quantize_block %x {{rounding = "ceil"}} : tensor<32x64xf32> -> {BODY}',
        f'%0 = "mx.quantize_block"(%x) {{rounding = "ceil"}} : (tensor<32x64xf32>) -> {STORAGE}',
    ),
    (
        f"%0 = mx.dequantize_block %x : {BODY} -> tensor<32x64xf32>",
        f'%0 = "mx.dequantize_block"(%x) : ({STORAGE}) -> tensor<32x64xf32>',
    ),
    (
        f"%0 = mx.block_matmul %a, %b, %c : {BODY}, tensor<64x8xf32>, tensor<32x8xf32> -> tensor<32x8xf32>",
        f'%0 = "mx.block_matmul"(%a, %b, %c) : ({STORAGE}, tensor<64x8xf32>, tensor<32x8xf32>) -> tensor<32x8xf32>',
    ),
    (
        f"%0 = mx.fold_scale %x, %f : {BODY}, f32 -> {BODY}",
        f'%0 = "mx.fold_scale"(%x, %f) : ({STORAGE}, f32) -> {STORAGE}',
    ),
    (f"%0 = mx.compose %m, %s : {PARTS} -> {BODY}", f'%0 = "mx.compose"(%m, %s) : ({PARTS}) -> {STORAGE}'),
    (f"%0:2 = mx.decompose %x : {BODY} -> ({PARTS})", f'%0:2 = "mx.decompose"(%x) : ({STORAGE}) -> ({PARTS})'),
    (f"%0 = mx.compose %1#0, %1#1 : {PARTS} -> {BODY}", f'%0 = "mx.compose"(%1#0, %1#1) : ({PARTS}) -> {STORAGE}'),
    (f"mx.decompose %x : {BODY} -> ({PARTS})", f'"mx.decompose"(%x) : ({STORAGE}) -> ({PARTS})'),
    (
        f'%0:2 = mx.decompose %x : {BODY} -> ({PARTS}) loc("mx.a"("f":1:2))',
        f'%0:2 = "mx.decompose"(%x) : ({STORAGE}) -> ({PARTS}) loc("mx.a"("f":1:2))',
    ),
    (
        f"%0 = mx.fold_scale %x, %f : tuple<{CUSTOM}, i32>, (i32) -> i32 -> {BODY}",
        f'%0 = "mx.fold_scale"(%x, %f) : (tuple<{STORAGE}, i32>, (i32) -> i32) -> {STORAGE}',
    ),
    (
        f"%0 = mx.fold_scale %x, %f : {BODY}, f32 -> (({CUSTOM}) -> (i32, f32))",
        f'%0 = "mx.fold_scale"(%x, %f) : ({STORAGE}, f32) -> (({STORAGE}) -> (i32, f32))',
    ),
    (
        f"func.func private @f({CUSTOM}, tuple<{CUSTOM}>) -> {CUSTOM}",
        f"func.func private @f({STORAGE}, tuple<{STORAGE}>) -> {STORAGE}",
    ),
]


@pytest.mark.parametrize(("custom", "storage"), FORMS)
def test_forms_both_ways(custom, storage):
    assert generic(custom) == storage
    assert generic(storage) == storage
    assert asm.to_custom(storage) == custom


NEW_OPERATIONS = {
    "mx.nothing": table.Arity(0, 0),
    "mx.source": table.Arity(0, 1),
    "mx.sink": table.Arity(1, 0),
    "mx.any": table.Arity(None, None),
}


@pytest.mark.parametrize(
    ("custom", "storage"),
    [
        ("mx.nothing : ()", '"mx.nothing"() : () -> ()'),
        ('mx.nothing {a = "b"} : ()', '"mx.nothing"() {a = "b"} : () -> ()'),
        (f"%0 = mx.source : () -> {BODY}", f'%0 = "mx.source"() : () -> {STORAGE}'),
        ("mx.sink %a : i32", '"mx.sink"(%a) : (i32) -> ()'),
        ("mx.sink %a : () -> i32", '"mx.sink"(%a) : (() -> i32) -> ()'),
        (
            "%0:3 = mx.any %a, %b : i32, i32 -> (i32, i32, i32)",
            '%0:3 = "mx.any"(%a, %b) : (i32, i32) -> (i32, i32, i32)',
        ),
        ("mx.any %a, %b : i32, i32", '"mx.any"(%a, %b) : (i32, i32) -> ()'),
    ],
)
def test_one_grammar_serves_any_arity(monkeypatch, custom, storage):
    monkeypatch.setattr(reader, "operation_table", lambda: NEW_OPERATIONS)
    assert generic(custom) == storage
    assert asm.to_custom(storage) == custom


def test_an_empty_list_of_operand_types_can_be_left_out(monkeypatch):
    monkeypatch.setattr(reader, "operation_table", lambda: NEW_OPERATIONS)
    assert generic("%0 = mx.source : -> i32") == '%0 = "mx.source"() : () -> i32'


def test_operation_table_follows_the_classes():
    table = asm.operation_table()
    assert {op.OPERATION_NAME for op in dialect.Mx.operations} == set(table)
    assert table["mx.block_matmul"][:2] == (3, 1)
    assert table["mx.decompose"][:2] == (1, 2)


@pytest.mark.parametrize(
    "line",
    [
        '"mx.compose"(%0) ({',
        '"mx.compose"(%0) <{a = 1 : i64}> : (i32) -> i32',
        '"mx.compose"(%0)[^bb1] : (i32) -> i32',
        '%0 = "mx.compose"(<<UNKNOWN SSA VALUE>>) : (i32) -> i32',
        '%0 = emitc.call_opaque "mx.compose"(%1) : (i32) -> i32',
        '%0 = pdl.operation "mx.compose"(%1 : !pdl.value)',
        '%0 = test.call callee = "mx.compose"(%1) : (i32) -> i32',
        f'"test.op"() {{s = "{STORAGE}"}} : () -> ()',
        f"// {STORAGE}",
        'module attributes {mx.a = "\\22mx.compose\\22(%a) : (i32) -> i32"} {',
        '} loc("mx.compose"("f":1:2))',
    ],
)
def test_printing_leaves_alone(line):
    assert asm.to_custom(line) == line


def test_an_operation_that_stays_generic_still_gets_custom_types():
    assert asm.to_custom(f'"mx.compose"(%0) <{{a = 1}}> : ({STORAGE}) -> i32') == (
        f'"mx.compose"(%0) <{{a = 1}}> : ({CUSTOM}) -> i32'
    )


# Types

SPELLINGS = [
    (CUSTOM, STORAGE),
    (STORAGE, STORAGE),
    ("!mx.tensor<32x64xf8E4M3FN,block_size=32,scale_type=f8E8M0FNU>", STORAGE),
    ("!mx.tensor<32x64xf8E4M3FN, scale_type = f8E8M0FNU, block_size = 32>", STORAGE),
    ("!mx.tensor < 32 x 64x f8E4M3FN , axis = 1 , block_size = 32, scale_type = f8E8M0FNU >", STORAGE),
    (
        "!mx.tensor<32x64xi8, block_size = 16, scale_type = f8E8M0FNU, axis = 0>",
        "!mx.tensor<tensor<32x64xi8>, 16 : i64, f8E8M0FNU, 0 : i64>",
    ),
    (
        "!mx.tensor<?x?x64xf4E2M1FN, block_size = 1, scale_type = f8E8M0FNU, axis = 1>",
        "!mx.tensor<tensor<?x?x64xf4E2M1FN>, 1 : i64, f8E8M0FNU, 1 : i64>",
    ),
    (
        "!mx.tensor<0xf8E5M2, block_size = 4, scale_type = f8E8M0FNU>",
        "!mx.tensor<tensor<0xf8E5M2>, 4 : i64, f8E8M0FNU, 0 : i64>",
    ),
    ("!mx.tensor<32x64xf8E4M3FN, // > , axis = 7\nblock_size = 32,\n\tscale_type = f8E8M0FNU>", STORAGE + "\n\n"),
    ("!mx.tensor<32x64xf8E4M3FN,\r\nblock_size = 32, scale_type = f8E8M0FNU>", STORAGE + "\n"),
]


@pytest.mark.parametrize(("spelled", "storage"), SPELLINGS)
def test_type_spellings(spelled, storage, context):
    translated = generic(f"!t = {spelled}")
    assert translated.replace("\r", "") == f"!t = {storage}"
    module = asm.parse(f"func.func private @f({spelled})", context)
    assert module.body.operations[0].attributes["function_type"].value.inputs[0] == ir.Type.parse(storage, context)


def test_element_and_scale_types_through_aliases():
    text = "!e = f8E4M3FN\n!d = !e // alias of an alias\n!s\n = f8E8M0FNU\n!t = !mx.tensor<32x64x!d, block_size = 32, scale_type = !s>"
    assert generic(text).endswith(f"!t = {STORAGE}")


# What is not mx syntax

PASSES_THROUGH = [
    "module attributes {mx.a} {}",
    "module attributes {mx.a = 1, mx.b, mx.c = [unit]} {}",
    'module attributes {a = "mx.compose %a : i32 -> i32"} {}',
    'module attributes {a = "say \\"mx.compose\\" !mx.tensor<oops>"} {}',
    "// mx.compose %a !mx.tenser<\nmodule {}",
    'module {} loc("mx.compose"("mx.f":1:2))',
    "func.func private @mx.compose()",
    'func.func private @"mx.compose"()',
    "func.func @f(%mx.a: i32) {\n^mx.bb:\n  return\n}",
    "#mx.a = loc(unknown)\nmodule {} loc(#mx.a)",
    "module attributes {a = dense_resource<mx.blob> : tensor<1xi8>} {}\n"
    '{-#\n dialect_resources: { builtin: { mx.blob: "0x0800000001", mx.c : "0x0800000001" } }\n#-}',
    'module {}\n{-#\n external_resources: { a: { k: "#-" }, b: {mx.compose: "v"} }\n#-}',
    "x.mx.compose",
    "other = mx.compose",
    "my_mx.compose %a",
]


@pytest.mark.parametrize("text", PASSES_THROUGH)
def test_passes_through_untouched(text):
    assert generic(text) == text


def test_text_without_mx_syntax_is_returned_as_it_is():
    text = "func.func @f() { return }"
    assert asm.to_generic(text, "-").text is text


RECOGNIZED = [
    "mx.decompose %x : i32 -> (i32, i32)",
    "%a, %b = mx.decompose %x : i32 -> (i32, i32)",
    "%a:2 = mx.decompose %x : i32 -> (i32, i32)",
    "%a // =\n : // 3\n 2 = // mx.a\n // mx.b\n mx.decompose %x : i32 -> (i32, i32)",
    "test.region { mx.decompose %x : i32 -> (i32, i32) }",
    "test.region {} mx.decompose %x : i32 -> (i32, i32)",
    "return mx.decompose %x : i32 -> (i32, i32)",
    "^bb0: mx.decompose %x : i32 -> (i32, i32)",
    '"test.op"() : () -> () mx.decompose %x : i32 -> (i32, i32)',
    "mx.decompose\n%x // %y\n {mx.a, b = {mx.c}} // :\n : i32 // ->\n -> (i32,\ti32)",
]


@pytest.mark.parametrize("text", RECOGNIZED)
def test_recognizes_operations(text):
    translated = generic(text)
    assert '"mx.decompose"(' in translated
    assert translated.count("\n") == text.count("\n")


# Locations


def locations(module):
    """Return the printed locations of all operations, and of all block arguments, in order."""
    found = []

    def visit(op):
        found.append(str(op.location))
        found.extend(str(a.location) for region in op.regions for block in region for a in block.arguments)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def test_locations_are_the_users(context):
    text = f"""func.func @f(%a: {CUSTOM}, %s: f32, %b: i1) {{
  %0 = mx.fold_scale %a, %s : {BODY}, f32 -> {BODY}  %1 = mx.fold_scale %0, %s : {BODY}, f32 -> {BODY}
  %2 = mx.fold_scale %0, %s : {BODY}, f32 -> {BODY} loc("-":7:8)
  %3 = mx.fold_scale %0, %s : {BODY}, f32 -> {BODY} loc(fused<{CUSTOM}>["-":7:8 to 9:10, callsite("n"("--":1:2) at "-":3:4)])
  return
}}
"""
    lines = text.splitlines()
    spelled = [
        'loc("user.mlir":0:0)',
        'loc("user.mlir":1:1)',
        *(f'loc("user.mlir":1:{lines[0].index(name) + 1})' for name in ("%a", "%s", "%b")),
        'loc("user.mlir":2:8)',
        f'loc("user.mlir":2:{lines[1].rindex("mx.") + 1})',
        'loc("-":7:8)',
        f'loc(fused<{STORAGE}>["-":7:8 to 9:10, callsite("n"("--":1:2) at "-":3:4)])',
        'loc("user.mlir":5:3)',
    ]
    assert locations(asm.parse(text, context, "user.mlir")) == spelled
    # Under the name that MLIR itself gives unnamed text, and without any mx syntax.
    unnamed = locations(asm.parse(text, context))
    assert unnamed == [entry.replace("user.mlir", "-") for entry in spelled]
    plain = 'module {\n  module {} loc("-":7:8)\n  module {}\n}'
    assert locations(asm.parse(plain, context, 'a "b".mlir'))[0] == 'loc("a \\22b\\22.mlir":1:1)'
    assert locations(asm.parse(plain, context, "u"))[1:] == ['loc("-":7:8)', 'loc("u":3:3)']


def test_debug_info_round_trips(context):
    text = (
        f'func.func @f(%a: {CUSTOM}) {{\n  mx.decompose %a : {BODY} -> ({PARTS}) loc("x mx.y"("f":1:2))\n  return\n}}'
    )
    module = asm.parse(text, context, "user.mlir")
    for flags in ({"enable_debug_info": True}, {"enable_debug_info": True, "use_local_scope": True}):
        printed = asm.to_asm(module, **flags)
        assert "mx.decompose %arg0" in printed
        assert locations(asm.parse(printed, context, "other.mlir")) == locations(module)


def test_positions_without_edits_and_outside_the_text():
    plain = asm.to_generic("module {}", "-")
    assert plain.position(3, 4) == (3, 4)
    edited = asm.to_generic(f"!t = {CUSTOM}\n", "-")
    assert edited.position(0, 0) == (0, 0)
    assert edited.position(1, 6) == (1, 6)
    assert edited.position(1, 30) == (1, 6)
    assert edited.position(1, 6 + len(STORAGE)) == (1, 6 + len(CUSTOM))
    assert edited.position(99, 1) == (2, 1)


# The whole way


def test_the_example_of_the_dialect(context):
    text = f"""module {{
  func.func @block_matmul(%arg0: {CUSTOM}, %arg1: tensor<64x64xf32>, %arg2: tensor<32x64xf32>) -> tensor<32x64xf32> {{
    %0 = mx.block_matmul %arg0, %arg1, %arg2 : {BODY}, tensor<64x64xf32>, tensor<32x64xf32> -> tensor<32x64xf32>
    return %0 : tensor<32x64xf32>
  }}
}}
"""
    module = asm.parse(text, context)
    assert asm.to_asm(module) == text
    assert "mx.block_matmul" in asm.to_asm(module, generic=True)
    assert asm.to_asm(ir.Module.parse(asm.to_asm(module, generic=True), context)) == text


@pytest.mark.parametrize("text", ["", " \n", "// nothing\n", "module {}", "module {\n}\r\n"])
def test_empty_text_is_an_empty_module(text, context):
    assert asm.to_asm(asm.parse(text, context)) == "module {\n}\n"


def test_several_operations_at_the_top_get_a_module(context):
    module = asm.parse("func.func private @a()\nfunc.func private @b()", context, "user.mlir")
    assert locations(module) == ['loc("user.mlir":0:0)', 'loc("user.mlir":1:1)', 'loc("user.mlir":2:1)']


def test_operations_print_alone_and_with_flags(context):
    text = f"func.func @f(%a: {CUSTOM}) -> tensor<4xi8> {{\n  mx.decompose %a : {BODY} -> ({PARTS})\n  %c = arith.constant dense<[1, 2, 3, 4]> : tensor<4xi8>\n  return %c : tensor<4xi8>\n}}"
    module = asm.parse(text, context)
    op = module.body.operations[0].regions[0].blocks[0].operations[0]
    assert asm.to_asm(op) == f"%0:2 = mx.decompose %arg0 : {BODY} -> ({PARTS})"
    assert "dense_resource<__elided__>" in asm.to_asm(module, large_elements_limit=2)


def test_bytecode_round_trips(context):
    text = f"func.func @f(%a: {CUSTOM}) {{\n  mx.decompose %a : {BODY} -> ({PARTS})\n  return\n}}"
    module = asm.parse(text, context, "user.mlir")
    data = asm.to_bytecode(module)
    assert data.startswith(b"ML\xefR")
    again = asm.parse_bytecode(data, context)
    assert asm.to_asm(again) == asm.to_asm(module)
    assert locations(again) == locations(module)


@pytest.mark.parametrize("data", [b"ML\xefR", b"ML\xefR" + bytes(40), b"ML\xefR\x0dgarbage"])
def test_bad_bytecode_is_an_error(data, context):
    with pytest.raises(MxError):
        asm.parse_bytecode(data, context)


def test_what_is_no_error_reaches_the_one_who_collects(context, monkeypatch):
    def verify(op):
        warn_at(op, "beware")
        return True

    monkeypatch.setattr(ops.DecomposeOp, "verify_invariants", verify)
    text = f"func.func @f(%a: {CUSTOM}) {{\n  mx.decompose %a : {BODY} -> ({PARTS})\n  return\n}}"
    with collecting(context, Collector()) as collector:
        asm.parse(text, context, "user.mlir")
    (found,) = collector.diagnostics
    assert (found.severity, found.file, found.line, found.column) == ("warning", "user.mlir", 2, 3)
