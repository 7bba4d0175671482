"""examples/moe_layer and docs/neuron-load-path.md: the layer stays within its bound, garbage stays out, the docs are current."""

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from doc_excerpts import assert_in_program, excerpts
from hypothesis import given, settings
from hypothesis import strategies as st

import mx_dialect
from mx_dialect import MxError, passes, pipelines
from mx_dialect.layouts import neuron_reference, neuron_scales

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs" / "neuron-load-path.md").read_text()
SIZE, FP4 = 192, "f4E2M1FN"
EXPERT = 2


def load_example():
    spec = importlib.util.spec_from_file_location("moe_layer", ROOT / "examples" / "moe_layer.py")
    module = importlib.util.module_from_spec(spec)
    # Its dataclasses look themselves up.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


moe = load_example()


@pytest.fixture(scope="module")
def weights():
    return moe.Weights.random(np.random.default_rng(1), SIZE, FP4)


@pytest.fixture(scope="module")
def kernel():
    return moe.compiled(SIZE, FP4)


@pytest.fixture(scope="module")
def tokens():
    return np.random.default_rng(2).standard_normal((moe.SLOTS, moe.HIDDEN), dtype=np.float32)


# The example


def test_example_runs(capsys, monkeypatch):
    """All four layers: FP4 and FP8 weights, I of 512 and of 192."""
    monkeypatch.setattr(sys, "argv", ["moe_layer.py", "--ir"])
    assert moe.main() == 0
    output = capsys.readouterr().out
    found = re.findall(r"^(f4E2M1FN|f8E4M3FN) +(512|192) ", output, re.MULTILINE)
    assert found == [(element, size) for element in ("f4E2M1FN", "f8E4M3FN") for size in ("512", "192")]
    assert "all errors are within their bounds" in output
    assert output.count("= mx.scale_gather ") == 4


def test_what_the_bounds_refuse(kernel, weights, tokens):
    """Another expert, gate and up exchanged, hidden states in another order: all that is far outside."""
    reference = moe.Reference(weights)
    packed = weights.packed()
    exchanged = moe.Weights(weights.up, weights.gate, weights.down, weights.biases)
    wrong = {
        "nothing": moe.call(kernel, tokens, packed, EXPERT),
        "expert": moe.call(kernel, tokens, packed, EXPERT + 1),
        "exchanged": moe.call(kernel, tokens, exchanged.packed(), EXPERT),
        "order": moe.call(kernel, np.roll(tokens, 1, axis=1), packed, EXPERT),
    }
    for name, (y, product, _) in wrong.items():
        halves, whole = moe.Worst(), moe.Worst()
        expected = reference.product(tokens, EXPERT)
        halves.see(product, expected)
        whole.see(y, reference.down(moe.quantized(expected), EXPERT))
        assert (halves.ratio <= 1) == (whole.ratio <= 1) == (name == "nothing"), name
    nothing = moe.Worst()
    nothing.see(np.full((1, 1), np.nan), moe.exactly(np.zeros((1, 1))))
    assert nothing.ratio == np.inf


def test_products_are_quantized_to_the_bit(kernel, weights, tokens):
    _, product, data, scale = kernel(moe.neuron_weights.permute_hidden(tokens), *weights.packed(), EXPERT)
    cells = product.reshape(SIZE // 4, 4, moe.SLOTS).swapaxes(1, 2).reshape(SIZE // 4, 4 * moe.SLOTS)
    expected_data, expected_scale = neuron_reference.quantize_mx(cells, "f8E4M3FN")
    np.testing.assert_array_equal(data.view(np.uint32), expected_data)
    np.testing.assert_array_equal(scale.view(np.uint8), neuron_scales.spread_scales(expected_scale, 128))


@pytest.mark.parametrize("expert", [-1, moe.EXPERTS])
def test_an_expert_that_does_not_exist(kernel, weights, tokens, expert):
    with pytest.raises(MxError, match="the expert index is out of range"):
        kernel(tokens, *weights.packed(), expert)


# Its bound


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(-24, -6))
def test_bounds_hold_anywhere_inside_of_errors(seed, size):
    """Gate and up moved by as much as their errors allow, the product computed in float32 and quantized by the oracle."""
    rng = np.random.default_rng(seed)
    gate, up = (moe.Bounded(8 * rng.standard_normal((2, 64)), 2.0**size * rng.random((2, 64))) for _ in range(2))
    moved = [np.float32(side.value + side.error * rng.uniform(-1, 1, (2, 64))) for side in (gate, up)]
    # Rounding to float32 moved them a little more.
    gate, up = (moe.Bounded(side.value, side.error + 2.0**-20) for side in (gate, up))
    product = moved[0] / (np.float32(1) + np.exp(-moved[0])) * moved[1]
    bounded = moe.activated(gate, up)
    assert (np.abs(product - bounded.value) <= bounded.error).all()
    quantized = moe.quantized(bounded)
    cells = product.reshape(2, 16, 4).swapaxes(0, 1).reshape(16, 8)
    actual = moe._activations(*neuron_reference.quantize_mx(cells, "f8E4M3FN"))
    assert (np.abs(actual - quantized.value) <= quantized.error).all()


def test_the_quantizer_of_the_bound_is_the_oracle():
    rng = np.random.default_rng(3)
    x = (rng.standard_normal((4, 64)) * 2.0 ** rng.integers(-130, 100, (4, 64))).astype(np.float32)
    x[0, :32] = 0
    quantized = moe.quantized(moe.exactly(x))
    assert not quantized.error.any()
    cells = x.reshape(4, 16, 4).swapaxes(0, 1).reshape(16, 16)
    expected = moe._activations(*neuron_reference.quantize_mx(cells, "f8E4M3FN"))
    np.testing.assert_array_equal(quantized.value, expected)


# Garbage


def test_slots_without_a_token_reach_no_other(kernel, weights, tokens):
    packed = weights.packed()
    full = moe.call(kernel, tokens, packed, EXPERT)
    part = moe.call(kernel, tokens[:5], packed, EXPERT)
    for whole, few in zip(full, part, strict=True):
        np.testing.assert_array_equal(few, whole[:5])


def test_other_experts_reach_nothing(kernel, weights, tokens):
    clean = moe.call(kernel, tokens, weights.packed(), EXPERT)
    others = np.arange(moe.EXPERTS) != EXPERT
    packed = [np.array(part) for part in weights.packed()]
    for part in packed:
        part[others] = np.nan if part.dtype == np.float32 else np.iinfo(part.dtype).max
    for found, expected in zip(moe.call(kernel, tokens, packed, EXPERT), clean, strict=True):
        np.testing.assert_array_equal(found, expected)


def holes(partitions, columns):
    """Return the text of a tile that is 255, NaN, wherever no scale of so many partitions of containers lies."""
    tile = np.full((128, columns), 255, np.uint8)
    for s in range(partitions // 8):
        tile[32 * (s // 4) + s % 4] = 0
    return f'dense<"0x{tile.tobytes().hex()}">'


def with_nan_in_holes(text):
    """Return a program of i8 scales in which every product gets tiles whose holes are NaN."""
    product = re.compile(r"mx\.nc_matmul_mx (%\S+, %\S+, %\S+), (%\S+), (%\S+) ({.*}) : (.*) -> ")
    lines = []
    for line in text.splitlines():
        match = product.search(line)
        if match:
            partitions = int(re.search(r"tensor<(\d+)x\d+x!mx", line)[1])
            types = match[5].split(", ")[3:]
            for number, (scales, type_) in enumerate(zip(match.groups()[1:3], types, strict=True)):
                columns = int(re.fullmatch(r"tensor<128x(\d+)xi8>", type_)[1])
                lines += [
                    f"%noise{number} = arith.constant {holes(partitions, columns)} : {type_}",
                    f"%noisy{number} = arith.ori {scales}, %noise{number} : {type_}",
                ]
            line = line.replace(f"{match[1]}, {match[2]}, {match[3]}", f"{match[1]}, %noisy0, %noisy1")
        lines.append(line)
    return "\n".join(lines)


def test_holes_reach_nothing(kernel, weights, tokens):
    module = mx_dialect.parse(moe.FILE.read_text().replace("ui8", "i8"))
    mx_dialect.run_pipeline(module, "mx-neuron-expand-load")
    text = mx_dialect.to_asm(module)
    noisy_text = with_nan_in_holes(
        text[: text.index("func.func @expert_512")] + text[text.index("func.func @expert_192") :]
    )
    assert noisy_text.count("arith.ori") == 4
    module = mx_dialect.parse(noisy_text)
    mx_dialect.run_pipeline(module, "mx-neuron-to-linalg")
    noisy = mx_dialect.compile(module, f"expert_{SIZE}", opt_level=1)
    packed = weights.packed()
    results = [moe.call(k, tokens, packed, EXPERT) for k in (noisy, kernel)]
    for found, expected in zip(*results, strict=True):
        np.testing.assert_array_equal(found, expected)


# The docs


@pytest.fixture(scope="module")
def programs():
    """Return the lines of the program after each pass, stripped, by the name of the pass."""

    def after(file, pipeline):
        module = mx_dialect.parse((ROOT / "examples" / file).read_text())
        mx_dialect.run_pipeline(module, pipeline)
        return [line.strip() for line in mx_dialect.to_asm(module).splitlines()]

    return {
        "mx-neuron-expand-load": after("moe_layer.mlir", "mx-neuron-expand-load"),
        "mx-neuron-matmul": after("a5_matmul.mlir", "mx-neuron-matmul"),
        "mx-neuron-to-linalg": after("a5_matmul.mlir", "mx-neuron-matmul,mx-neuron-to-linalg"),
    }


@pytest.mark.parametrize("number", range(len(excerpts(DOCS))))
def test_excerpts_in_the_docs_are_current(programs, number):
    name, groups = excerpts(DOCS)[number]
    assert_in_program(programs[name], groups)


def test_sources_in_the_docs():
    file = [line.strip() for line in moe.FILE.read_text().splitlines()]
    (source,) = re.findall(r"[^>]\n```mlir\n(.*?)```", DOCS, re.DOTALL)
    assert set(source.splitlines()) <= set(file)


def test_every_pass_is_documented():
    known = {name for name in passes.names() if name.startswith("mx-neuron-")}
    assert set(re.findall(r"^### (\S+)$", DOCS, re.MULTILINE)) == known == {name for name, _ in excerpts(DOCS)}
    assert set(re.findall(r"^\| `(mx-[\w-]+)`", DOCS, re.MULTILINE)) == known


def test_names_in_the_docs_exist():
    from mx_dialect.dialect import Mx

    named = set(re.findall(r"`-?-?(mx-[a-z-]+)`", DOCS)) - {"mx-opt"}
    assert named <= {*passes.names(), *pipelines.names()}
    operations = set(re.findall(r"`mx\.([a-z_]+)`", DOCS))
    assert operations <= {op.OPERATION_NAME.removeprefix("mx.") for op in Mx.operations}
