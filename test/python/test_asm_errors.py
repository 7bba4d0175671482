"""The errors of custom assembly: what each says, and that it is at the user's line and byte column."""

import pytest

from mx_dialect import asm, dialect
from mx_dialect.diagnostics import MxError

BODY = "<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>"
CUSTOM = f"!mx.tensor{BODY}"


@pytest.fixture(scope="module")
def context():
    context = dialect.load()
    context.allow_unregistered_dialects = True
    return context


def marked(text):
    """Take the mark § out of a text; return the text and the mark's line and byte column."""
    before, _, after = text.partition("§")
    line = before.count("\n") + 1
    return before + after, line, len(before.rpartition("\n")[2].encode()) + 1


def failure(text, context):
    """Return the error that parsing gives, which must be an MxError."""
    with pytest.raises(MxError) as caught:
        asm.parse(text, context, "user.mlir")
    return caught.value


BAD_TYPES = [
    (
        "<32x64xf8E4M3FN, blok_size = 32, scale_type = f8E8M0FNU>",
        "unknown parameter 'blok_size'; did you mean 'block_size'?",
    ),
    ("<32x64xf8E4M3FN, zzz = 32>", "unknown parameter 'zzz'; expected one of block_size, scale_type, axis"),
    (
        "<32x64xf8E4M3FN, block_size = 32, block_size = 32, scale_type = f8E8M0FNU>",
        "parameter 'block_size' is given twice",
    ),
    ("<32x64xf8E4M3FN, scale_type = f8E8M0FNU>", "missing parameter 'block_size'"),
    ("<32x64xf8E4M3FN, block_size = 32>", "missing parameter 'scale_type'"),
    (
        "<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU,>",
        "expected one of block_size, scale_type, axis after ','",
    ),
    ("<32x64xf8E4M3FN, block_size, scale_type = f8E8M0FNU>", "expected 'block_size = ' and its value"),
    ("<32x64xf8E4M3FN, block_size = , scale_type = f8E8M0FNU>", "expected 'block_size = ' and its value"),
    ("<32x64xf8E4M3FN, block_size = many, scale_type = f8E8M0FNU>", "block_size must be a number, but is 'many'"),
    ("<32x64xf8E4M3FN, block_size = 0x20, scale_type = f8E8M0FNU>", "block_size must be a number, but is '0x20'"),
    ("<32x64xf8E4M3FN, block_size = 32, scale_type = 8>", "scale_type must be a type such as f8E8M0FNU, but is '8'"),
    (
        "<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU, axis = -1>",
        "axis must not be negative, but is -1; count from the front",
    ),
    (
        "<-4x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>",
        "expected shape and element type such as 32x64xf8E4M3FN, but found '-4x64xf8E4M3FN'",
    ),
    (
        "<32x64, block_size = 32, scale_type = f8E8M0FNU>",
        "expected shape and element type such as 32x64xf8E4M3FN, but found '32x64'",
    ),
    ("<>", "expected shape and element type such as 32x64xf8E4M3FN, but found ''"),
    (f"<{2**63}xi8, block_size = 32, scale_type = f8E8M0FNU>", f"extent does not fit a signed 64-bit integer: {2**63}"),
    (
        f"<32xi8, block_size = {'9' * 5000}, scale_type = f8E8M0FNU>",
        "block_size does not fit a signed 64-bit integer: 9999",
    ),
    (f"<{'9' * 5000}xi8, block_size = 1, scale_type = f8E8M0FNU>", "extent does not fit a signed 64-bit integer: 9999"),
    (
        "<32x64x!e, block_size = 32, scale_type = f8E8M0FNU>",
        "'!e' is not an alias of an element or scale type defined above",
    ),
    ("<f8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>", "mx tensor must have rank 1 or more"),
    ("<32x64xf32, block_size = 32, scale_type = f8E8M0FNU>", "'f32' is not an MX element type"),
    ("<32x64xf8E4M3FN, block_size = 48, scale_type = f8E8M0FNU>", "block size must be a power of two >= 1, but is 48"),
    ("<tensor<32x64xf8E4M3FN>, 48 : i64, f8E8M0FNU, 1 : i64>", "block size must be a power of two >= 1, but is 48"),
    ("<tensor<32x64xf8E4M3FN>, 32 : i64, f8E8M0FNU, -1 : i64>", "axis -1 is out of range for an mx tensor of rank 2"),
    (" 32", "expected '<' after '!mx.tensor'"),
]


@pytest.mark.parametrize(("body", "message"), BAD_TYPES)
def test_a_bad_type_is_reported_where_it_starts(body, message, context):
    text, line, column = marked(f'// é\nfunc.func private @f(tuple<§!mx.tensor{body}>) attributes {{s = "é"}}')
    (found,) = failure(text, context).diagnostics
    assert message in found.message
    assert (found.file, found.line, found.column) == ("user.mlir", line, column)


BAD_TILES = [
    ("<>", "expected shape and element type such as 32x64xf8E4M3FN, but found ''"),
    ("<16x2>", "expected shape and element type such as 32x64xf8E4M3FN, but found '16x2'"),
    ("<16x2xf8E4M3FN, left_scales>", "'left_scales' is not a memory space; did you mean 'left_scale'"),
    ("<16x2xf8E4M3FN, zzz>", "'zzz' is not a memory space; expected one of vec, mat, left, right, acc, bias, "),
    ("<16x2xf8E4M3FN, mat,>", "expected a memory space or 'valid = 8x64' after ','"),
    ("<16x2xf8E4M3FN, undecided>", "'undecided' is not a memory space; expected one of vec, mat, left, right, "),
    ("<16x2xf8E4M3FN, mat, vec>", "the memory space is given twice"),
    ("<16x2xf8E4M3FN, valid = 8x2, valid = 8x2>", "parameter 'valid' is given twice"),
    ("<16x2xf8E4M3FN, vald = 8x2>", "unknown parameter 'vald'; did you mean 'valid'?"),
    ("<16x2xf8E4M3FN, space = mat>", "unknown parameter 'space'; a tile has 'valid = 8x64'"),
    ("<16x2xf8E4M3FN, valid = >", "valid must be extents such as 8x64, but is ''"),
    ("<16x2xf8E4M3FN, valid = 8x-2>", "valid must be extents such as 8x64, but is '8x-2'"),
    ("<16x2xf8E4M3FN, valid = 8x2x>", "valid must be extents such as 8x64, but is '8x2x'"),
    (f"<16x2xf8E4M3FN, valid = {2**63}x2>", f"valid does not fit a signed 64-bit integer: {2**63}"),
    ("<16x2x!e>", "'!e' is not an alias of an element or scale type defined above"),
    ("<16xf8E4M3FN>", "invalid type '!mx.tile<16xf8E4M3FN>': a tile must have rank 2, but has 1"),
    ("<16x2xf64>", "'f64' is not an element type of tiles; expected one of f8E4M3FN, f8E5M2, "),
    ("<16x2xf8E4M3FN, valid = 17x2>", "valid extent 17 of axis 0 must be at most the extent 16"),
    ("<16x2xf8E4M3FN, valid = 16>", "a valid shape has the rank of its tile, 2, but has 1"),
    ('<tensor<16x2xf8E4M3FN>, "l1", [16, 2]>', "'l1' is not a memory space; expected one of vec, mat, "),
    ('<tensor<16x2xf8E4M3FN>, "mat", [16, 3]>', "valid extent 3 of axis 1 must be at most the extent 2"),
    (" 32", "expected '<' after '!mx.tile'"),
    (f'<tensor<{"9" * 5000}x2xf8E4M3FN>, "mat", [16, 2]>', "extent does not fit a signed 64-bit integer: 9999"),
    ('<tensor<16-2xf8E4M3FN>, "mat", [16, 2]>', "expected shape and element type such as 32x64xf8E4M3FN"),
]


@pytest.mark.parametrize(("body", "message"), BAD_TILES)
def test_a_bad_tile_type_is_reported_where_it_starts(body, message, context):
    text, line, column = marked(f'// é\nfunc.func private @f(tuple<§!mx.tile{body}>) attributes {{s = "é"}}')
    (found,) = failure(text, context).diagnostics
    assert message in found.message
    assert (found.file, found.line, found.column) == ("user.mlir", line, column)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('!m, "mat", [0x11, 2]', "valid extent 17 of axis 0 must be at most the extent 16"),
        ('!m, "mat", [-1, 2]', "valid extent -1 of axis 0 must be 0 or more"),
        ('!m, "mat", [16]', "a valid shape has the rank of its tile, 2, but has 1"),
        ('!m, "mat", 16', "malformed parameters; write it as !mx.tile<ROWSxCOLUMNSxELEMENT, SPACE, valid = "),
        ('i32, "mat", [16, 2]', "malformed parameters"),
    ],
)
def test_tiles_in_disguised_storage_spelling_are_checked_too(body, message, context):
    text = f"!m = tensor<16x2xf8E4M3FN>\n!i = i32\nfunc.func private @f(!mx.tile<{body.replace('i32', '!i')}>)"
    (found,) = failure(text, context).diagnostics
    assert message in found.message
    assert (found.file, found.line, found.column) == ("user.mlir", 3, 1)


@pytest.mark.parametrize("rest", [") -> i32", "", " {", ', "'])
def test_a_type_that_is_not_closed(rest, context):
    text, line, column = marked(f"\n func.func private @f(§{CUSTOM.removesuffix('>')}{rest}")
    (found,) = failure(text, context).diagnostics
    assert found.message == "the '<' of this type is never closed"
    assert (found.line, found.column) == (line, column)


def test_a_bad_short_type_is_reported_where_it_starts(context):
    text, line, column = marked(
        f"%0 = mx.fold_scale %x, %f : {BODY}, f32 -> §<4x5xi8, block_size = 2, scale_type = f8E8M0FNU>"
    )
    (found,) = failure(text, context).diagnostics
    assert "extent 5 of blocked axis 1 is not a multiple of block size 2" in found.message
    assert (found.line, found.column) == (line, column)


def test_every_distinct_bad_type_is_reported_once(context):
    one, two = (f"!mx.tensor<32xi8, block_size = {n}, scale_type = f8E8M0FNU>" for n in (3, 5))
    found = failure(f"func.func private @f({one}, {two},\n {one})", context).diagnostics
    assert [(d.line, d.column) for d in found] == [(1, 22), (1, 24 + len(one))]


def test_the_number_of_bad_types_reported_is_limited(context):
    types = ", ".join(f"!mx.tensor<32xi8, block_size = {n}, scale_type = f8E8M0FNU>" for n in range(33, 63))
    assert len(failure(f"func.func private @f({types})", context).diagnostics) == 20


def test_a_misspelt_type_name(context):
    text, line, column = marked(f"func.func private @f(§!mx.tenser{BODY})")
    (found,) = failure(text, context).diagnostics
    assert found.message == "unknown type '!mx.tenser'; did you mean '!mx.tensor'?"
    assert (found.line, found.column) == (line, column)


def test_aliases_in_a_circle(context):
    text = "!a = !b\n!b = !a\n!t = !mx.tensor<4x!a, block_size = 2, scale_type = f8E8M0FNU>"
    assert "'!a' is not an alias of an element or scale type defined above" in str(failure(text, context))


def test_storage_spelling_in_disguise_is_checked_too(context):
    text = "!m = tensor<32x64xf8E4M3FN>\nfunc.func private @f(!mx.tensor<!m, 0x30 : i64, f8E8M0FNU, 1 : i64>)"
    (found,) = failure(text, context).diagnostics
    assert "block size must be a power of two >= 1, but is 48" in found.message
    assert (found.file, found.line, found.column) == ("user.mlir", 2, 1)


# Errors of the grammar

BAD_TEXT = [
    (
        f"%0 = §mx.block_matmull %a : {BODY} -> i32",
        "unknown operation 'mx.block_matmull'; did you mean 'mx.block_matmul'?",
    ),
    ("func.func @f() {\n  §mx.zzz %a : i32\n}", "unknown operation 'mx.zzz'; the mx operations are mx.block_idx, mx."),
    (
        'func.func @f() {\n  §"mx.composee"() : () -> ()\n  return\n}',
        "unknown operation 'mx.composee'; did you mean 'mx.compose' or 'mx.decompose'?",
    ),
    ("%0 = §mx.block_matmul %a, %b : i32, i32 -> i32", "mx.block_matmul takes 3 operands, got 2"),
    ("§mx.compose", "mx.compose takes 2 operands, got 0"),
    ("mx.compose %a, %b : §i32 -> i32", "mx.compose has 2 operands but 1 operand type"),
    (
        "mx.compose %a, %b : §(i32, i32) -> i32",
        "mx.compose has 2 operands but 1 operand type; write them without parentheses",
    ),
    (
        "mx.compose§(%a, %b) : i32, i32 -> i32",
        "expected operands of mx.compose without parentheses, or its name in quotes",
    ),
    ("mx.compose %a, §: i32, i32 -> i32", "expected an operand of mx.compose after ','"),
    ("mx.compose %a, %b§\n\n// c\nreturn", "expected ':' and the types of mx.compose"),
    ("mx.compose %a, %b§  ", "expected ':' and the types of mx.compose"),
    ("mx.compose %a, %b §-> i32", "expected ':' and the types of mx.compose"),
    (
        "mx.compose %a, %b §({}) : i32, i32 -> i32",
        "expected ':' and the types of mx.compose; regions and successors need the generic form",
    ),
    ("mx.compose %a, %b :§", "expected a type"),
    ("mx.compose %a, %b : i32, §%a -> i32", "expected a type"),
    ("mx.compose %a, %b : i32, (i32) -> i32 -> §", "expected a type"),
    ("mx.compose %a, %b : i32, i32§", "expected '->' and the result type of mx.compose"),
    ("mx.compose %a, %b : i32, i32§\nreturn", "expected '->' and the result type of mx.compose"),
    ("mx.decompose %a : i32 -> §i32, i32", "mx.decompose has 2 results but 1 result type; write several as (T1, T2)"),
    ("mx.decompose %a : i32 -> (i32 §i32)", "expected ',' or ')' in the list of result types"),
    ("mx.compose %a, %b : tensor§<i32, i32 -> i32", "'<' is never closed"),
    ("mx.compose %a, %b §{a = 1 : i32, i32 -> i32", "the attributes of mx.compose are never closed"),
    ("mx.submit §%a : i32", "expected the callee of mx.submit, such as @name"),
    ("mx.submit§\nreturn", "expected the callee of mx.submit, such as @name"),
    ("mx.submit §(%a) : i32", "expected the callee of mx.submit, such as @name"),
    ("mx.submit §#a() : ()", "expected the callee of mx.submit, such as @name"),
    ("mx.submit @k§\n : ()", "expected '(' and the arguments of mx.submit"),
    ("mx.submit @a§::@k() : ()", "expected '(' and the arguments of mx.submit"),
    ("mx.submit @k(%a §%b) : i32", "expected ',' or ')' in the arguments of mx.submit"),
    ("mx.submit @k(%a, §) : i32", "expected a value in the arguments of mx.submit after ','"),
    ("mx.submit @k(§1) : i32", "expected a value in the arguments of mx.submit"),
    ("mx.submit @k(%a§", "expected ',' or ')' in the arguments of mx.submit"),
    ("mx.submit @k() after(%a§\n : i32", "expected ',' or ')' in the dependencies of mx.submit"),
    ("mx.submit @k() §afterr(%a) : i32", "mx.submit has no operands 'afterr'; did you mean 'after'?"),
    ("mx.submit @k() §zzz(%a) : i32", "mx.submit has no operands 'zzz'; it has after, cores, if"),
    ("mx.submit @k() if() §if(%a) : i32", "'if' of mx.submit is given twice"),
    ("mx.submit @k() if(%a) §after(%b) : i1, !mx.task", "'after' of mx.submit must come before 'if'"),
    ("mx.submit @k() after §: ()", "expected '(' and the dependencies of mx.submit"),
    ("mx.submit @k() after §%a : ()", "expected '(' and the dependencies of mx.submit"),
    ("mx.submit @k()§\nreturn", "expected ':' and the types of mx.submit"),
    ("mx.submit @k()§", "expected ':' and the types of mx.submit"),
    ("mx.submit @k() §return", "expected ':' and the types of mx.submit"),
    ("mx.submit @k() §(%a) : i32", "expected ':' and the types of mx.submit"),
    ("mx.submit @k(%a) after(%b) : §i32", "mx.submit has 2 operands but 1 operand type"),
    ("mx.submit @k(%a) §{a = 1 : i32", "the attributes of mx.submit are never closed"),
    ("mx.submit @k§(" + ", ".join(["%a"] * 65) + ") : ()", "mx.submit takes at most 64 arguments, got 65"),
    ("§mx.submit @k() : () -> (" + ", ".join(["i32"] * 17) + ")", "mx.submit gives at most 16 results, got 17"),
    ("mx.tile_load %a §: i32 -> i32", "expected '[' and the offsets of mx.tile_load"),
    ("mx.tile_load %a[0, 0] §: i32 -> i32", "expected '[' and the window of mx.tile_load"),
    ("mx.tile_load %a[0, 0] [1, 1] [1, 1] §[1, 1] : i32 -> i32", "expected ':' and the types of mx.tile_load"),
]


@pytest.mark.parametrize(("text", "message"), BAD_TEXT)
def test_errors_of_the_grammar(text, message, context):
    text, line, column = marked(text)
    found = failure(text, context).diagnostics[0]
    assert found.message.startswith(message)
    assert (found.file, found.line, found.column) == ("user.mlir", line, column)


MLIR_ERRORS = [
    (
        "func.func @f(%a: !mx.tile<16x2xf32>, %s: f32) {\n mx.tile_cast §%s : !mx.tile<16x2xf32> -> f32 return }",
        "expects different type than prior uses: '!mx.tile<16x2xf32>' vs 'f32'",
    ),
    ('func.func private @f(!mx.tile<tensor<16x2xf32>, "mat", [16§ 2]>)', "expected ',' or ']'"),
    (f'func.func private @f(!mx.tile<tensor<16x2xf32>, "mat", [§{"9" * 5000}]>)', "integer constant out of range"),
    (f"func.func @f(%a: {CUSTOM}, %b: {CUSTOM}) {{ return §%c : {CUSTOM} }}", "use of undeclared SSA value name"),
    (f"func.func @f(§%é: {CUSTOM}) {{ return }}", "invalid SSA name"),
    (
        f'func.func @f(%a: {CUSTOM}) attributes {{s = "é", t = {CUSTOM}}} {{ return §%c : i32 }}',
        "use of undeclared SSA value name",
    ),
    (
        "func.func @f(%a: !mx.tensor<32x64xf8E4M3FN,\n block_size = 32, scale_type = f8E8M0FNU>, §%a: i32) { return }",
        "region entry argument '%a' is already in use",
    ),
    (
        f"func.func @f(%a: {CUSTOM}) {{\n  %0 = §mx.dequantize_block %a : {BODY} -> tensor<32x32xf32>\n  return\n}}",
        "'mx.dequantize_block' op input '!mx.tensor<32x64xf8E4M3FN, ",
    ),
    (
        f"func.func @f(%a: {CUSTOM}, %s: f32) {{\n %0 = mx.fold_scale §%s, %s : {BODY}, f32 -> {BODY} return }}",
        "use of value '%s' expects different type than prior uses: '!mx.tensor<32x64xf8E4M3FN, ",
    ),
]


@pytest.mark.parametrize(("text", "message"), MLIR_ERRORS)
def test_errors_of_mlir_are_at_the_users_place(text, message, context):
    text, line, column = marked(text)
    found = failure(text, context).diagnostics[0]
    assert message in found.message
    assert (found.file, found.line, found.column) == ("user.mlir", line, column)


def test_notes_are_at_the_users_place(context):
    text = f"func.func @f(%a: {CUSTOM}, %s: f32) {{\n  mx.fold_scale %a, %a : {BODY}, f32 -> {BODY}\n  return\n}}"
    found = failure(text, context).diagnostics[0]
    assert (found.line, found.column) == (2, text.splitlines()[1].rindex("%a") + 1)
    assert [(n.severity, n.file, n.line, n.column) for n in found.notes] == [("note", "user.mlir", 1, 14)]


def test_the_error_text_is_what_users_read(context):
    assert str(failure("mx.compose", context)) == "user.mlir:1:1: error: mx.compose takes 2 operands, got 0"


def test_an_error_at_a_location_the_user_wrote_stays_there(context):
    text = (
        f'func.func @f(%a: {CUSTOM}) {{\n  mx.dequantize_block %a : {BODY} -> tensor<3xf32> loc("-":7:8)\n  return\n}}'
    )
    found = failure(text, context).diagnostics[0]
    assert (found.file, found.line, found.column) == ("-", 7, 8)


def test_a_message_that_is_not_unicode_keeps_its_place(context):
    name = '@"\\FF"'
    (found,) = failure(f"func.func private {name}()\nfunc.func private {name}()", context).diagnostics
    assert (found.file, found.line, found.column) == ("user.mlir", 2, 1)


@pytest.mark.parametrize("body", ["{ §mx.compose }", "{§mx.compose, a}"])
def test_an_operation_that_looks_like_an_attribute(body, context):
    """MLIR refuses it without a word."""
    flag = f"func.func private @f({CUSTOM}) attributes {{mx.flag}}\n"
    text, line, column = marked(f"{flag}func.func @g() {body}")
    (found,) = failure(text, context).diagnostics
    assert found.message == "expected operands and types after mx.compose"
    assert (found.file, found.line, found.column) == ("user.mlir", line, column)
