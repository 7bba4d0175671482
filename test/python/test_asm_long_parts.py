"""Shapes, affine expressions and lists of dimensions that MLIR takes quadratic time for are refused; others are not."""

import time

import pytest

from mx_dialect.asm import long_parts, to_generic
from mx_dialect.asm.long_parts import MAX_EXTENTS, MAX_NAMES, MAX_OPERATORS
from mx_dialect.diagnostics import MxError


def names(count: int, letter: str = "d") -> str:
    return ", ".join(f"{letter}{n}" for n in range(count))


def chain(count: int, operator: str) -> str:
    return f" {operator} ".join(["d0"] * (count + 1))


COMMENTED = "+ // , = [{\n d0"

# What repeats, the text of a number of repetitions, the largest number that is accepted, and what the error says.
KINDS = {
    "tensor": (lambda n: f"!a = tensor<{'1x' * n}f32>", MAX_EXTENTS, "1024 extents"),
    "vector": (lambda n: f"!a = vector<{'2x' * n}f32>", MAX_EXTENTS, "1024 extents"),
    "open": (lambda n: f"!a = memref<?x{'33x' * n}f32>", MAX_EXTENTS, "1024 extents"),
    "mx": (lambda n: f"!a = !mx.tensor<{'1x' * (n - 1)}32xi8, block_size = 32>", MAX_EXTENTS, "1024 extents"),
    "dimensions": (lambda n: f"#m = affine_map<({names(n)}) -> (d0)>", MAX_NAMES, "4096 dimensions"),
    "symbols": (lambda n: f"#m = affine_map<(d0)[{names(n, 's')}] -> (d0)>", MAX_NAMES, "4096 dimensions"),
    "set": (lambda n: f"#m = affine_set < ({names(n)}) : (d0 >= 0)>", MAX_NAMES, "4096 dimensions"),
    "sum": (lambda n: f"#m = affine_map<(d0) -> ({chain(n, '+')})>", MAX_OPERATORS, "1024 operators"),
    "minus": (lambda n: f"#m = affine_map<(d0) -> ({chain(n, '-')})>", MAX_OPERATORS, "1024 operators"),
    "product": (lambda n: f"#m = affine_map<(d0) -> ({'2*' * n}d0)>", MAX_OPERATORS, "1024 operators"),
    "mod": (lambda n: f"#m = affine_map<(d0) -> (d0{' mod 2' * n})>", MAX_OPERATORS, "1024 operators"),
    "division": (lambda n: f"#m = affine_map<(d0) -> (d0{' floordiv 2' * n})>", MAX_OPERATORS, "1024 operators"),
    "comments": (
        lambda n: f"#m = affine_map<(d0) -> (d0 {COMMENTED * n})>",
        MAX_OPERATORS,
        "1024 operators",
    ),
    "access": (lambda n: f"affine.load %m[%i{' + %j-k' * n}] : memref<4xf32>", MAX_OPERATORS, "1024 operators"),
    "set of one": (lambda n: f"#m = affine_set<(d0) : ({chain(n, '+')} >= 0)>", MAX_OPERATORS, "1024 operators"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_longest_and_one_more(kind: str) -> None:
    write, most, message = KINDS[kind]
    assert long_parts.slow_part(write(most)) is None
    with pytest.raises(MxError, match=f"more than {message}"):
        to_generic(write(most + 1), "a.mlir")


@pytest.mark.parametrize("kind", KINDS)
def test_a_megabyte_takes_no_time(kind: str) -> None:
    text = KINDS[kind][0](300_000)
    begin = time.process_time()
    assert long_parts.slow_part(text) is not None
    assert time.process_time() - begin < 5


HONEST = {
    "results": f"#m = affine_map<(d0) -> ({', '.join(f'd0 + {n}' for n in range(20_000))})>",
    "maps": "\n".join(f"#m{n} = affine_map<(d0) -> (d0 * {n} + 1 - d0 mod 3)>" for n in range(20_000)),
    "names with signs": "// affine\n" + 'func.func private @a-b-c-d()\n"x.y"() : () -> ()\n' * 5000,
    "string": f'#m = affine_map<() -> ()>\nmodule attributes {{a = "{"1x" * 5000}", b = "{"+ " * 5000}"}} {{}}',
    "comment": "#m = affine_map<() -> ()> // " + "1x" * 5000 + "+ " * 5000,
    "numbers": f"#m = affine_map<() -> ()>\n!a = dense<[{', '.join(['-1.0e-5'] * 20_000)}]> : tensor<20000xf32>",
    "shapes": "// affine\n" + f"!a = tensor<{'1x' * 100}f32>\n" * 1000,
    "digits": f"!a = dense<0x{'0' * 100_000}> : tensor<1xf32>",
    "open brackets": "affine_map<(" * 100_000,
    "almost": f"// affine\n{('1x' * 1000 + ' ') * 500}",
}


@pytest.mark.parametrize("name", HONEST)
def test_what_is_not_refused(name: str) -> None:
    begin = time.process_time()
    assert long_parts.slow_part(HONEST[name]) is None
    assert time.process_time() - begin < 5


def test_the_position() -> None:
    text = "#m = affine_map<(d0) -> (d0)>\n!a = tensor<" + "1x" * 2000 + "f32>"
    with pytest.raises(MxError, match=r"^a.mlir:2:13: error: a shape of"):
        to_generic(text, "a.mlir")
