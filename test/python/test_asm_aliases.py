"""Aliases that stand for too much or nest too deeply, and endless numbers, are refused; honest files are not."""

import pytest

from mx_dialect.asm import aliases, to_generic
from mx_dialect.diagnostics import MxError

# The first definition, one that uses another twice, and one that uses it once, a level down.
KINDS = {
    "array": ("#a0 = [1, 2]", "#a{n} = [#a{m}, #a{m}]", "#a{n} = [#a{m}]"),
    "dict": ("#a0 = [1, 2]", "#a{n} = {{x = #a{m}, y = #a{m}}}", "#a{n} = {{x = #a{m}}}"),
    "tuple": ("!a0 = i1", "!a{n} = tuple<!a{m}, !a{m}>", "!a{n} = tuple<!a{m}>"),
    "function": ("!a0 = i1", "!a{n} = (!a{m}) -> !a{m}", "!a{n} = (!a{m}) -> i1"),
    "result": ("!a0 = i1", "!a{n} = (!a{m}) -> !a{m}", "!a{n} = () -> (!a{m})"),
    "location": ('#a0 = loc("a":1:1)', "#a{n} = loc(fused[#a{m}, #a{m}])", '#a{n} = loc(callsite("a" at #a{m}))'),
    "comment": ("#a0 = [1]", "#a{n} // =\n = [#a{m}, // [\n #a{m}]", '#a{n} // "\n\n = ["]", #a{m}]'),
}


def chained(kind, count, form):
    return "\n".join([KINDS[kind][0], *(KINDS[kind][form].format(n=n, m=n - 1) for n in range(1, count))])


def refused(text):
    with pytest.raises(MxError) as caught:
        to_generic(text, "a.mlir")
    return str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_aliases_that_double(kind):
    assert aliases.hidden_excess(chained(kind, 12, 1)) is None
    assert "the alias stands for more than 8388608 characters" in refused(chained(kind, 40, 1))


@pytest.mark.parametrize("kind", KINDS)
def test_aliases_that_nest(kind):
    assert aliases.hidden_excess(chained(kind, 100, 2)) is None
    assert "more than 256 levels of nesting through aliases" in refused(chained(kind, 20_000, 2))


def test_the_position_is_that_of_the_use():
    # The first alias is a level deep, each one after it one more: the one on line 257 would be 257 levels deep.
    text = chained("array", 300, 2)
    assert refused(text).startswith("a.mlir:257:10: error: more than 256 levels")


def test_levels_of_operations_and_aliases_add_up():
    deep = chained("array", 200, 2) + "\nmodule attributes {x = "
    assert aliases.hidden_excess(deep + "[" * 50 + "#a199" + "]" * 50 + "} {}") is None
    assert "256 levels" in refused(deep + "[" * 100 + "#a199" + "]" * 100 + "} {}")


def test_uses_add_up():
    text = "#big = [" + "1, " * 100_000 + "1]\nmodule attributes {x = ["
    assert aliases.hidden_excess(text + "#big, " * 100 + "1]} {}") is None
    many = "#big = [" + "[1], " * 50_000 + "1]\nmodule attributes {x = [" + "#big, " * 2000 + "1]} {}"
    assert "aliases stand for more than 268435456 characters" in refused(many)


HONEST = {
    "renamed": "#a0 = [1]\n" + "\n".join(f"#a{n} = #a{n - 1}" for n in range(1, 1000)),
    "many": "\n".join(f"#map{n} = affine_map<(d0) -> (d0 + {n})>" for n in range(20_000)),
    "used": "#m = affine_map<(d0) -> (d0)>\nmodule {\n" + '"x.y"() {a = #m, b = #m} : () -> ()\n' * 20_000 + "}",
    "after": "module {\n"
    + '"x.y"() : () -> () loc(#loc1)\n' * 20_000
    + '}\n#loc = loc("a":1:1)\n#loc1 = loc("b"(#loc))',
    # What follows the last definition is no part of it, though it names other aliases.
    "between": "#a = ["
    + "1, " * 300
    + "1]\n#b = 1 : i32\nmodule {"
    + "x.y {a = #a, b = #b}\n" * 20_000
    + "}\n#c = [#b, #b]",
    "string": '#a = "[[[[ #a = [#a, #a]"\n' * 1000,
    "big string": '#a = dense<"0x' + "0" * 10_000_000 + '"> : tensor<5000000xi8>\n#b = [#a, #a]',
    "digits": f'module attributes {{a = "{"9" * 5000}", b = 0x{"1" * 5000}}} {{}} // {"9" * 5000}',
    "thousands": f"module attributes {{a = {'9' * 8000} : i16777215}} {{}}",
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_files(name):
    assert aliases.hidden_excess(HONEST[name]) is None


@pytest.mark.parametrize("form", ["{} : i16777215", "array<i64: {}>", "dense<1> : tensor<{}xi8>", "1.{}", "-{}"])
def test_endless_numbers(form):
    text = f"module attributes {{\n  a = {form.format('9' * 20_000)}}} {{}}"
    error = refused(text)
    assert "a number of more than 8000 digits" in error
    assert error.startswith(f"a.mlir:2:{7 + form.index('{')}")
