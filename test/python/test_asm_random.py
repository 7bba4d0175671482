"""Random modules and mutated text: read as they are spelled, at their places, or refused with one."""

import random
import re

import pytest
from hypothesis import given, settings
from random_modules import FILE, SEEDS, Generator, generic, lenient_context

from mx_dialect import asm
from mx_dialect._mlir import ir
from mx_dialect.diagnostics import MxError


@pytest.fixture(scope="module")
def context():
    return lenient_context()


def place_of(text, offset):
    """Return line and byte column of a character."""
    before = text[:offset]
    return before.count("\n") + 1, len(before.rpartition("\n")[2].encode()) + 1


@settings(max_examples=150)
@given(SEEDS)
def test_random_modules(context, seed):
    """Text is read as its storage spelling says, at the user's places; printing is its inverse and idempotent."""
    generator = Generator(seed)
    text, storage = generator.module()
    module = asm.parse(text, context, FILE)
    meaning = generic(module)
    assert meaning == generic(ir.Module.parse(storage, context))

    found = {}

    def visit(op):
        if "test.id" in op.attributes:
            found[op.attributes["test.id"].value] = str(op.location)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for number, offset in generator.places.items():
        if offset is not None:
            line, column = place_of(text, offset)
            assert found[number] == f'loc("{FILE}":{line}:{column})'

    printed = asm.to_asm(module, assume_verified=True)
    assert re.search(r'^ *(%\S+ = )?"mx', printed, re.MULTILINE) is None
    assert "<tensor<" not in printed
    again = asm.parse(printed, context)
    assert generic(again) == meaning
    assert asm.to_asm(again, assume_verified=True) == printed
    assert generic(asm.parse(meaning, context)) == meaning


@settings(max_examples=50)
@given(SEEDS)
def test_translation_keeps_lines_and_maps_tokens(seed):
    """Every line break stays, and each word that a translation leaves alone maps back to where it was."""
    text, _ = Generator(seed).module()
    translation = asm.to_generic(text, FILE)
    assert translation.text.count("\n") == text.count("\n")
    original = text.splitlines(keepends=True)
    for number, line in enumerate(translation.text.split("\n"), start=1):
        for word in ("func.func", "test.id", "return", "scf.yield"):
            at = line.find(word)
            if at < 0 or "//" in line[:at]:
                continue
            user_line, user_column = translation.position(number, len(line[:at].encode()) + 1)
            assert user_line == number
            assert original[user_line - 1].encode()[user_column - 1 :].startswith(word.encode())


PIECES = [
    *"<>(){}[],:=!#%@-?\\/\0\r\n\t'$é\x7f",
    *("mx.", "!mx.tensor", "//", '"', "->", "%a", "%0#0", "mx.compose", "loc(", '"-":1:2', "{-#", "#-}", "32x", "0x"),
    *(
        "block_size",
        "99999999999999999999",
        "tensor<",
        "^bb0",
        "dense<",
        "affine_map<",
        '"mx.compose"(',
        "mx.compose %a, %b :",
        "mx.submit @k(",
        "mx.tile_load %a[",
        "after(",
        "!mx.tile<",
        "valid =",
    ),
]


def mutated(pick, text):
    for _ in range(pick.choice([1, 1, 1, 2, 5])):
        start = pick.randrange(len(text) + 1)
        end = min(len(text), start + int(pick.expovariate(1 / 8)))
        other = pick.randrange(len(text) + 1)
        middle = pick.choice(["", pick.choice(PIECES), pick.choice(PIECES) + text[start:end], text[other : other + 20]])
        text = text[:start] + middle + text[end:]
    return text


@settings(max_examples=400)
@given(SEEDS)
def test_mutated_text_gives_a_module_or_an_error_with_a_place(context, seed):
    pick = random.Random(seed)
    text = mutated(pick, Generator(pick.randrange(20)).module()[0])
    try:
        module = asm.parse(text, context, FILE)
    except MxError as error:
        first = error.diagnostics[0]
        assert first.severity == "error"
        # A mutation can reach a location that the text spells out, hence other names.
        if first.file == FILE:
            assert 0 <= first.line <= text.count("\n") + 1
        return
    meaning = generic(module)
    assert generic(asm.parse(asm.to_asm(module), context)) == meaning
