"""Text that is deep, long or no text at all: refused, or read in linear time."""

import contextlib
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_modules import FILE, lenient_context

from mx_dialect import asm
from mx_dialect.asm import lexer
from mx_dialect.diagnostics import MxError


@pytest.fixture(scope="module")
def context():
    return lenient_context()


DEEP = [
    "module attributes {a = " + "[" * 100_000,
    "func.func private @f(" + "tuple<" * 100_000,
    "func.func private @f(" + "(" * 100_000,
    "module {" * 5_000 + "}" * 5_000,
    "#m = affine_map<(d0) -> (" + "- \n" * 100_000 + "d0)>",
    "!t = " + "!mx.tensor<" * 100_000,
    "mx.compose %a, %b : " + "(" * 100_000,
    "mx.compose %a, %b " + "{mx.a = " * 100_000,
    "mx.submit @k" + "(" * 100_000,
    "!t = " + "!mx.tile<" * 100_000,
]


@pytest.mark.parametrize("text", DEEP, ids=lambda text: text[:12])
def test_nesting_that_would_overflow_the_parser_is_refused(text, context):
    with pytest.raises(MxError, match="more than 256 levels of nesting"):
        asm.parse(text, context)


def test_deep_nesting_that_fits_is_parsed(context):
    depth = 250
    text = "func.func private @f(" + "tuple<" * depth + "i32" + ">" * depth + ")"
    assert asm.to_asm(asm.parse(text, context)).count("tuple<") == depth
    # Brackets in strings, comments, arrows and comparisons do not nest.
    flat = 'module attributes {test.a = "' + "<(" * 1000 + '"} {} // ' + "{" * 1000
    assert asm.to_asm(asm.parse(flat, context)).count("<(") == 1000
    asm.parse("#m = affine_set<(d0) : (" + ", ".join(["d0 >= 0"] * 1000) + ")>", context)


BRACKETS = st.lists(
    st.tuples(
        st.sampled_from(
            ["<", ">", "(", ")", "()", "<()>", '["]"', "{//}\n", '"<\\""', "->", ">=", "<->=", "-", '"', "\n", "<>"]
        ),
        st.sampled_from([1, 1, 2, 130, 255, 256, 257]),
    ),
    max_size=6,
).map(lambda runs: "".join(piece * times for piece, times in runs))


def depth_of(text):
    """Return how deep brackets and runs of minus signs nest, character by character."""
    depth = deepest = minus = at = 0
    while at < len(text):
        pair = text[at : at + 2]
        if text[at] == '"':
            at += 1
            while at < len(text) and text[at] not in '"\n':
                at += 2 if text[at] == "\\" and text[at + 1 : at + 2] not in ("", "\n") else 1
            at += text[at : at + 1] == '"'
        elif pair == "//":
            while at < len(text) and text[at] != "\n":
                at += 1
        elif pair in ("->", ">=", "<="):
            at += 2
        else:
            depth += (text[at] in "<([{") - (text[at] in ">)]}")
            minus = minus + 1 if text[at] == "-" else minus * (text[at] in " \t\r\n")
            deepest = max(deepest, depth, minus)
            at += 1
            continue
        minus = 0
    return deepest


@settings(max_examples=300)
@given(BRACKETS)
def test_nesting_is_measured_as_brackets_say(text):
    assert (lexer.too_deep(text) is not None) == (depth_of(text) > lexer.MAX_NESTING)


N = 100_000

HOSTILE = {
    "names": "mx.compose " * N,
    "results": "%a = " * N + "mx.compose",
    "comments": "// mx.\n" * N + "mx.compose",
    "operands": "mx.compose " + "%a, " * N,
    "digits": "!mx.tensor<" + "9" * N,
    "shape": "!mx.tensor<" + "32x" * N + "f8E4M3FN>",
    "keys": "!mx.tensor<2xi8" + ", axis = 1" * N + ">",
    "backslashes": "!mx.tensor<" + "\\" * N,
    "quote": 'mx. "' + "\\" * N,
    "blanks": " " * N + "mx.compose",
    "inside a comment": "// mx" + " " * N + "\nmx.compose",
    "blank body": "!mx.tensor<2xi8"
    + " " * N
    + ", block_size"
    + " " * N
    + "= 2, scale_type = f8E8M0FNU"
    + " " * N
    + ">",
    "blank shape": "!mx.tensor<2" + " " * N + ">",
    "commented body": "!mx.tensor<2xi8" + " // c\n" * N + ">",
    "commented operation": "mx.decompose" + " // c\n" * N + "%a :" + " // c\n" * N + "i32",
    "closed digits": "!mx.tensor<" + "9" * N + ">",
    "storage": "!mx.tensor<tensor<" + "2x" * N + "i8>, 2 : i64" + " " * N + ">",
    "alias chain": "!a0 = i8\n"
    + "".join(
        f"!a{i + 1} = !a{i}\n!mx.tensor<2x!a{i}, block_size = 2, scale_type = f8E8M0FNU>\n" for i in range(20_000)
    ),
    "bad types": "".join(f"!mx.tensor<2xi{i}, block_size = 2, scale_type = f8E8M0FNU>\n" for i in range(9, 50_000)),
    "minus signs": ("-" + " " * 100) * 250 + "x" + "- " * N,
    "blank type": "!mx.tensor<" + " " * N,
    "dots": "mx." * N,
    "not operations": "= mx.a" * N,
    "aliases": "!a " * N + "mx.compose",
    "open types": "%0 = mx.compose %a, %b : i32, tensor<" * 200 + "i32 " * N,
    "bytes": "\0" * N + "mx.compose",
    "long name": "%" + "a" * N + " = mx.compose",
    "resources": '{-# mx. "' + "00" * N,
    "arguments": "mx.submit @k(" + "%a, " * N,
    "too many arguments": "mx.submit @k(" + "%a, " * N + "%a) : i32",
    "dependencies": "mx.submit @k() after(" + "%a, " * N + "%a) : " + "!mx.task, " * N + "!mx.task",
    "groups": "mx.submit @k()" + " after()" * N,
    "submits": "mx.submit @k() after() cores()\n" * (N // 10),
    "symbol": 'mx.submit @"' + "a" * N,
    "commented groups": "mx.submit" + " // c\n" * N + "@k" + " // c\n" * N + "()" + " // c\n" * N + ": ()",
    "lists": "mx.tile_load %a" + "[0, 0] " * N,
    "entries": "mx.tile_load %a[" + "0, " * N + "0] [1, 2] : i32 -> i32",
    "tile keys": "!mx.tile<2x2xi8" + ", mat" * N + ">",
    "valid extents": "!mx.tile<2x2xi8, valid = 2" + "x2" * N + ">",
    "blank valid extents": "!mx.tile<2x2xi8, valid = 2" + " " * N + "x" + " " * N + "2" + " " * N + "!>",
    "tile storage": '!mx.tile<tensor<2x2xi8>, "mat", [' + "2, " * N + "2]>",
    "printed entries": '%0 = "mx.submit"(%a) {a = ' + "[1], b = [" * (N // 10) + "} : (i32) -> i32",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_takes_linear_time(name, context):
    start = time.process_time()
    with contextlib.suppress(MxError):
        asm.to_generic(HOSTILE[name], FILE)
    asm.to_custom(HOSTILE[name])
    # Measured: under 0.5 s. Quadratic time would be minutes.
    assert time.process_time() - start < 10


@pytest.mark.parametrize("text", ["\udc80", "module {} // \ud800 mx."])
def test_text_that_is_not_unicode_is_an_error(text, context):
    with pytest.raises(MxError, match="not valid Unicode"):
        asm.parse(text, context)


def test_large_constants_are_skipped_over(context):
    blob = "0x" + "00" * 1_000_000
    text = f'module attributes {{mx.a, test.a = dense<"{blob}"> : tensor<1000000xi8>}} {{\n}}\n'
    start = time.process_time()
    module = asm.parse(text, context)
    asm.to_asm(module)
    assert time.process_time() - start < 5
