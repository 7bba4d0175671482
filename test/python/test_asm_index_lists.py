"""Index lists in custom assembly: `mx.extract_slice %x[0, %i] [32, %n]`."""

import pytest

import mx_dialect
from mx_dialect.asm import operation_table, to_custom

T = "!mx.tensor<?x?xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>"
SHORT = T.removeprefix("!mx.tensor")
DYNAMIC = -(2**63)


def module(line: str) -> str:
    return f"module {{\n  func.func @f(%arg0: {T}, %arg1: index, %arg2: index) {{\n    {line}\n    return\n  }}\n}}\n"


@pytest.mark.parametrize(
    ("custom", "attributes", "operands"),
    [
        ("[0, 32] [%arg1, 64]", ("1, 0, 1", f"0, 32|{DYNAMIC}, 64"), "%arg0, %arg1"),
        (
            "[%arg1, %arg2] [%arg2, %arg1]",
            ("1, 2, 2", f"{DYNAMIC}, {DYNAMIC}|{DYNAMIC}, {DYNAMIC}"),
            "%arg0, %arg1, %arg2, %arg2, %arg1",
        ),
        ("[0, %arg2] [%arg1, %arg1]", ("1, 1, 2", f"0, {DYNAMIC}|{DYNAMIC}, {DYNAMIC}"), "%arg0, %arg2, %arg1, %arg1"),
    ],
)
@pytest.mark.parametrize("dictionary", ["", ' {my.a, my.b = "x, {y} = [z]", my.c = [1, 2]}'])
def test_both_directions(custom: str, attributes: tuple[str, str], operands: str, dictionary: str) -> None:
    shape = "?x64" if custom.endswith("64]") else "?x?"
    result = f"<{shape}xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>"
    text = module(f"%0 = mx.extract_slice %arg0{custom}{dictionary} : {SHORT} -> {result}")
    parsed = mx_dialect.parse(text)
    assert mx_dialect.to_asm(parsed) == text
    generic = mx_dialect.to_asm(parsed, generic=True)
    segments, lists = attributes
    offsets, sizes = lists.split("|")
    assert f'"mx.extract_slice"({operands})' in generic
    for entry in (
        f"operandSegmentSizes = array<i32: {segments}>",
        f"static_offsets = array<i64: {offsets}>",
        f"static_sizes = array<i64: {sizes}>",
    ):
        assert entry in generic
    assert mx_dialect.to_asm(mx_dialect.parse(generic)) == text


def test_blanks_comments_and_lines() -> None:
    text = module(
        f"%0 = mx.extract_slice %arg0 [ 0 , // first\n %arg1 ]\n[%arg1,\n32 ] {{ }} :\n {SHORT} -> <?x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>\n%1 = arith.addi %arg1, %arg2 : index"
    )
    printed = mx_dialect.to_asm(mx_dialect.parse(text))
    assert "mx.extract_slice %arg0[0, %arg1] [%arg1, 32] : " in printed


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        (f"%0 = mx.extract_slice %arg0 : {SHORT} -> {SHORT}", 33, "expected '[' and the offsets of mx.extract_slice"),
        (f"%0 = mx.extract_slice %arg0[0, 0] : {SHORT} -> {SHORT}", 39, "expected '[' and the sizes"),
        (
            f"%0 = mx.extract_slice %arg0[0, x] [1, 1] : {SHORT} -> {SHORT}",
            36,
            "expected a number or an index value in the offsets",
        ),
        (f"%0 = mx.extract_slice %arg0[0 0] [1, 1] : {SHORT} -> {SHORT}", 35, "expected ',' or ']' in the offsets"),
        (f"%0 = mx.extract_slice %arg0[0, 99999999999999999999] [1, 1] : {SHORT} -> {SHORT}", 36, "expected a number"),
        (
            f"%0 = mx.extract_slice %arg0[0, 9223372036854775808] [1, 1] : {SHORT} -> {SHORT}",
            36,
            "expected a number that fits in 64 bits in the offsets",
        ),
        # The smallest of 64 bits stands for an operand.
        (f"%0 = mx.extract_slice %arg0[-9223372036854775808, 0] [1, 1] : {SHORT} -> {SHORT}", 33, "fits in 64 bits"),
        (f"%0 = mx.extract_slice %arg0[{'9' * 5000}, 0] [1, 1] : {SHORT} -> {SHORT}", 33, "fits in 64 bits"),
        (f"%0 = mx.extract_slice %arg0[0, -%arg1] [1, 1] : {SHORT} -> {SHORT}", 36, "expected a number"),
        (f"%0 = mx.extract_slice [0, 0] [1, 1] : {SHORT} -> {SHORT}", 10, "mx.extract_slice takes 1 operand, got 0"),
    ],
)
def test_errors(line: str, column: int, message: str) -> None:
    with pytest.raises(mx_dialect.MxError) as caught:
        mx_dialect.parse(module(line), "x.mlir")
    (diagnostic,) = caught.value.diagnostics
    assert message in diagnostic.message
    assert (diagnostic.line, diagnostic.column) == (3, column)


def test_the_largest_number_is_read_back() -> None:
    line = "%0 = mx.tile_load %arg0[9223372036854775807, 0] [0, 32] : tensor<?x64xf32> -> !mx.tile<0x32xf32>"
    text = f"func.func @f(%arg0: tensor<?x64xf32>) {{\n {line}\n return }}"
    assert line in mx_dialect.to_asm(mx_dialect.parse(text))


LOAD = "tensor<64x64xf32> -> !mx.tile<16x32xf32"


@pytest.mark.parametrize(
    ("written", "printed", "valid"),
    [
        ("[0, 0] [16, 32]", "[0, 0] [16, 32]", "array<i64>"),
        ("[0, 0] [16, 32] [ // nothing\n ]", "[0, 0] [16, 32]", "array<i64>"),
        ("[0, 0] [16, 32] [8, 32]", "[0, 0] [16, 32] [8, 32]", "array<i64: 8, 32>"),
        ("[0, 0] [16, 32] [%i, 32]", "[0, 0] [16, 32] [%arg1, 32]", f"array<i64: {DYNAMIC}, 32>"),
        ('[0, 0] [16, 32] {target = "mat"}', '[0, 0] [16, 32] {target = "mat"}', "array<i64>"),
        ('[0, 0] [16, 32] [8, 32] {target = "mat"}', '[0, 0] [16, 32] [8, 32] {target = "mat"}', "array<i64: 8, 32>"),
    ],
)
def test_an_optional_list_that_is_empty_is_not_written(written: str, printed: str, valid: str) -> None:
    rows = "?" if "%i" in written else "8"
    suffix = (", mat" if "target" in written else "") + (f", valid = {rows}x32" if "32]" in written[16:] else "")
    text = f"func.func @f(%x: tensor<64x64xf32>, %i: index) {{\n mx.tile_load %x{written} : {LOAD}{suffix}>\n return }}"
    parsed = mx_dialect.parse(text)
    assert f"mx.tile_load %arg0{printed} : {LOAD}{suffix}>" in mx_dialect.to_asm(parsed)
    generic = mx_dialect.to_asm(parsed, generic=True)
    assert f"static_valid = {valid}, " in generic
    assert mx_dialect.to_asm(mx_dialect.parse(generic)) == mx_dialect.to_asm(parsed)


def test_only_the_last_lists_may_be_left_out() -> None:
    arities = [arity for arity in operation_table().values() if arity.lists]
    assert any(index_list.optional for arity in arities for index_list in arity.lists)
    for arity in arities:
        optional = [index_list.optional for index_list in arity.lists]
        assert optional == sorted(optional)


def test_what_does_not_fit_stays_generic() -> None:
    line = '    %0 = "mx.extract_slice"(%a, %b) {operandSegmentSizes = array<i32: 1, 1, 1>, static_offsets = array<i64: 0>, static_sizes = array<i64: 1>} : (i32, index) -> i32'
    assert to_custom(line) == line
