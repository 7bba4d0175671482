"""Whole paths: an expert's gate, up and down projections, and a QKV projection both ways, from checkpoint to result."""

import ml_dtypes
import numpy as np
import pytest
from neuron_kernels import DTYPE, LOOPS, compiled, dequantized, lane, quantized, spread, tensor, unsigned, values, x4

import mx_dialect
from mx_dialect import MxError
from mx_dialect.layouts import neuron, neuron_weights

EXPERTS, H, T = 2, 1024, 4


def affine_generic(name, source, source_type, result_type, source_map, result_map):
    """Return the text of a generic that moves elements."""
    rank = result_map.partition("->")[0].count(",") + 1
    element = result_type[result_type.rindex("x") + 1 : -1]
    parallel = ", ".join(['"parallel"'] * rank)
    return f"""
      %{name}_empty = tensor.empty() : {result_type}
      %{name} = linalg.generic {{indexing_maps = [affine_map<{source_map}>, affine_map<{result_map}>], iterator_types = [{parallel}]}} ins(%{source} : {source_type}) outs(%{name}_empty : {result_type}) {{
      ^bb0(%in: {element}, %out: {element}):
        linalg.yield %in : {element}
      }} -> {result_type}"""


def matmul(name, dst, operands, types, weights, accumulate):
    flag = "accumulate, " if accumulate else ""
    return (
        f'%{name} = mx.nc_matmul_mx %{dst}, {", ".join(f"%{o}" for o in operands)} {{{flag}weights = "{weights}"}} :'
        f" {', '.join(types)} -> {types[0]}"
    )


def sliced(name, source, source_type, offsets, sizes, result_type):
    ones = ", ".join("1" for _ in sizes)
    return (
        f"%{name} = tensor.extract_slice %{source}[{', '.join(map(str, offsets))}]"
        f" [{', '.join(map(str, sizes))}] [{ones}] : {source_type} to {result_type}"
    )


def concat(name, axis, parts, part_type, type_):
    return (
        f"%{name} = tensor.concat dim({axis}) {', '.join(f'%{part}' for part in parts)} :"
        f" ({', '.join([part_type] * len(parts))}) -> {type_}"
    )


# An expert


def expert_program(features, element, carrier):
    """Return the text of an expert's three projections: gate * up, biases added, quantized again, then down.

    The results are the sum, and the quantized product with its scales, so that each half can be judged by itself.
    """
    tiles, partitions = H // 512, features // 4
    # At most 128 columns are stationary at a time.
    pieces = 2 if features > 128 else 1
    columns = features // pieces
    fp8 = "f8E4M3FN"
    operands = {
        "x": tensor(T, H, element="f32"),
        "w": tensor(EXPERTS, 128, 2, tiles, features, element=carrier),
        "s": tensor(EXPERTS, 16, 2, tiles, features, element="ui8"),
        "b": tensor(EXPERTS, partitions, 2, 1, 4, element="f32"),
        "dw": tensor(EXPERTS, partitions, 1, H, element=carrier),
        "ds": tensor(EXPERTS, partitions // 8, 1, H, element="ui8"),
        "db": tensor(EXPERTS, H, element="f32"),
    }
    loaded = x4(128, 2, tiles, features, element=element)
    scales = tensor(128, 2, tiles, features, element="ui8")
    bias = tensor(partitions, 2, 1, 4, element="f32")
    up_sources = [operands[k] for k in "wsb"]
    lines = [
        f"%g:3 = mx.load_gate_up %w, %s, %b, %e[0] : {', '.join(up_sources)}, index -> ({loaded}, {scales}, {bias})",
    ]
    # Activations: position q * H/4 + 128t + p of a token is lane q of container p of tile t.
    lanes = tensor(tiles, 128, T, 4, element="f32")
    lines += [
        affine_generic(
            "lanes", "x", operands["x"], lanes,
            f"(t, p, j, q) -> (j, q * {H // 4} + t * 128 + p)", "(t, p, j, q) -> (t, p, j, q)",
        ),
        f"%cells = tensor.collapse_shape %lanes [[0], [1], [2, 3]] : {lanes} into {tensor(tiles, 128, 4 * T, element='f32')}",
    ]  # fmt: skip
    cells, tile = tensor(tiles, 128, 4 * T, element="f32"), tensor(128, 4 * T, element="f32")
    q, qs = x4(128, T, element=fp8), tensor(128, T, element="ui8")
    for t in range(tiles):
        lines += [
            sliced(f"x{t}", "cells", cells, (t, 0, 0), (1, 128, 4 * T), tile),
            f"%q{t}:2 = mx.quantize_mx %x{t} : {tile} -> ({q}, {qs})",
        ]
    part, part_scales = x4(128, columns, element=element), tensor(128, columns, element="ui8")
    out, whole = tensor(columns, T, element="f32"), tensor(features, T, element="f32")
    lines += [f"%zeros = arith.constant dense<0.0> : {out}"]
    # Gate is 0 and up 1.
    for which in range(2):
        for piece in range(pieces):
            name, dst = f"p{which}{piece}", "zeros"
            for t in range(tiles):
                place, sizes = (0, which, t, piece * columns), (128, 1, 1, columns)
                suffix = f"{which}{piece}{t}"
                lines += [
                    sliced(f"w{suffix}", "g#0", loaded, place, sizes, part),
                    sliced(f"s{suffix}", "g#1", scales, place, sizes, part_scales),
                    matmul(
                        f"{name}t{t}", dst, (f"w{suffix}", f"q{t}#0", f"s{suffix}", f"q{t}#1"),
                        (out, part, q, part_scales, qs), "stationary", t > 0,
                    ),
                ]  # fmt: skip
                dst = f"{name}t{t}"
        lines += [concat(f"h{which}", 0, [f"p{which}{piece}t{tiles - 1}" for piece in range(pieces)], out, whole)]
    # Feature 4p + q of a token is lane q of container p, and meets bias (p, which, 0, q).
    inner, pair = tensor(partitions, 4, T, element="f32"), tensor(partitions, 4, element="f32")
    for which in range(2):
        flat = tensor(features, element="f32")
        lines += [
            sliced(f"b{which}", "g#2", bias, (0, which, 0, 0), (partitions, 1, 1, 4), pair),
            f"%f{which} = tensor.collapse_shape %b{which} [[0, 1]] : {pair} into {flat}",
            affine_generic(f"c{which}", f"f{which}", flat, whole, "(i, j) -> (i)", "(i, j) -> (i, j)"),
            f"%a{which} = arith.addf %h{which}, %c{which} : {whole}",
        ]
    dq, dqs = x4(partitions, T, element=fp8), tensor(max(partitions, 32), T, element="ui8")
    row = tensor(partitions, T, 4, element="f32")
    flat = tensor(partitions, 4 * T, element="f32")
    lines += [
        f"%product = arith.mulf %a0, %a1 : {whole}",
        f"%rows = tensor.expand_shape %product [[0, 1], [2]] output_shape [{partitions}, 4, {T}] : {whole} into {inner}",
        affine_generic("turned", "rows", inner, row, "(p, j, q) -> (p, q, j)", "(p, j, q) -> (p, j, q)"),
        f"%inner = tensor.collapse_shape %turned [[0], [1, 2]] : {row} into {flat}",
        f"%i:2 = mx.quantize_mx %inner : {flat} -> ({dq}, {dqs})",
    ]
    down = [x4(partitions, 1, H, element=element), tensor(128, 1, H, element="ui8"), tensor(H, element="f32")]
    sources = [operands[k] for k in ("dw", "ds", "db")]
    lines += [
        f"%d:3 = mx.load_down %dw, %ds, %db, %e, %g#0[0] : {', '.join(sources)}, index, {loaded} -> ({', '.join(down)})",
    ]
    piece, piece_scales = x4(partitions, 512, element=element), tensor(128, 512, element="ui8")
    result, row512, all_biases = (tensor(*s, element="f32") for s in ((T, H), (T, 512), (T, H)))
    lines += [
        affine_generic("biases", "d#2", down[2], all_biases, "(j, i) -> (i)", "(j, i) -> (j, i)"),
    ]
    for n in range(H // 512):
        place = (0, 0, 512 * n)
        lines += [
            sliced(f"dw{n}", "d#0", down[0], place, (partitions, 1, 512), piece),
            sliced(f"ds{n}", "d#1", down[1], place, (128, 1, 512), piece_scales),
            sliced(f"db{n}", "biases", all_biases, (0, 512 * n), (T, 512), row512),
            matmul(
                f"y{n}", f"db{n}", ("i#0", f"dw{n}", "i#1", f"ds{n}"),
                (row512, dq, piece, dqs, piece_scales), "moving", True,
            ),
        ]  # fmt: skip
    lines += [concat("y", 1, [f"y{n}" for n in range(H // 512)], row512, result)]
    arguments = ", ".join(f"%{name}: {type_}" for name, type_ in operands.items())
    body = "\n".join(lines)
    return f"""func.func @f({arguments}, %e: index) -> ({result}, {dq}, {dqs}) {{
                 {body}
                 return %y, %i#0, %i#1 : {result}, {dq}, {dqs}
               }}"""


def weight(rng, *shape, element, axis):
    """Return random weights of experts, quantized along an axis, and what they are worth."""
    q = mx_dialect.quantize(rng.standard_normal(shape).astype(np.float32), element, axis=axis)
    codes = q.mantissa.view(np.uint8)
    return codes, q.scale.view(np.uint8), mx_dialect.reference.dequantize(q).astype(np.float64)


@pytest.mark.parametrize(
    ("features", "element", "carrier", "scale_path"),
    [(192, "f4E2M1FN", "ui16", "index"), (64, "f8E5M2", "i32", "static")],
)
def test_an_expert(features, element, carrier, scale_path):
    """I of 192: 48 partitions, whose scales fill a quadrant and half of another."""
    rng = np.random.default_rng(features)
    gate, up = (weight(rng, EXPERTS, H, features, element=element, axis=1) for _ in range(2))
    down = weight(rng, EXPERTS, features, H, element=element, axis=1)
    gate_bias, up_bias = (rng.standard_normal((EXPERTS, features)).astype(np.float32) for _ in range(2))
    down_bias = rng.standard_normal((EXPERTS, H)).astype(np.float32)
    x = rng.standard_normal((T, H)).astype(np.float32)
    kernel = compiled(expert_program(features, element, carrier), LOOPS, scale_path, opt_level=1)
    arguments = [
        neuron_weights.permute_hidden(x),
        neuron_weights.pack_gate_up(gate[0], up[0], element),
        neuron_weights.pack_gate_up_scales(gate[1], up[1]),
        neuron_weights.pack_gate_up_bias(gate_bias, up_bias),
        neuron_weights.pack_down(down[0], element),
        neuron_weights.pack_down_scales(down[1]),
        down_bias,
    ]
    # Activations are quantized in groups of 32 features: containers 8 by 8, four features each.
    cells = x.reshape(T, H // 4, 4).swapaxes(0, 1).reshape(H // 4, 4 * T)
    activations = dequantized(*quantized(cells, "f8E4M3FN"), "f8E4M3FN").reshape(H // 4, T, 4)
    hidden = activations.swapaxes(0, 1).reshape(T, H)
    for expert in range(EXPERTS):
        y, data, tile = kernel(*arguments, expert)
        product = (hidden @ gate[2][expert] + gate_bias[expert]) * (hidden @ up[2][expert] + up_bias[expert])
        dense = np.array([tile.view(np.uint8)[32 * (s // 4) + s % 4] for s in range(features // 32)])
        inner = dequantized(unsigned(data), dense, "f8E4M3FN").reshape(features // 4, T, 4)
        quantized_product = inner.swapaxes(0, 1).reshape(T, features)
        # FP8 keeps four significant bits, of values down to 2^-14 times the largest of a group.
        largest = np.abs(product.reshape(T, -1, 32)).max(axis=2).repeat(32, axis=1)
        assert (np.abs(quantized_product - product) <= 2.0**-3 * np.abs(product) + 2.0**-13 * largest).all()
        expected = quantized_product @ down[2][expert] + down_bias[expert]
        np.testing.assert_allclose(y, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    for expert in (-1, EXPERTS):
        with pytest.raises(MxError, match="the expert index is out of range"):
            kernel(*arguments, expert)


# QKV

COLUMNS = 8


def qkv_program(layout, activations):
    """Return the text of a QKV projection of [T, H] activations: bf16, quantized here, or f8E4M3FN with its scales.

    MX_INTERLEAVED weights meet activations from the transposing DMA, MX_CONTIGUOUS ones such as lie plainly transposed.
    """
    tiles, element = H // 512, "f8E4M3FN"
    is_float = activations == "bf16"
    x, w, s = (
        tensor(T, H, element=activations),
        tensor(H // 4, COLUMNS, element="ui32"),
        tensor(H // 32, COLUMNS, element="ui8"),
    )
    loaded, loaded_scales = x4(128, tiles, COLUMNS, element=element), tensor(128, tiles, COLUMNS, element="ui8")
    flags = f"input = {activations}" + (", input_scale" * is_float) + ", dma_transpose" * (layout == "MX_INTERLEAVED")
    lines = [
        f'%w:2 = mx.load_qkv %packed, %s {{layout = "{layout}", {flags}}} : {w}, {s} -> ({loaded}, {loaded_scales})'
    ]
    turned = tensor(H // 4, 4 * T, element="bf16") if is_float else x4(H // 4, T, element=element)
    if layout == "MX_INTERLEAVED":
        lines += [f"%t = mx.dma_transpose %x : {x} -> {turned}"]
    else:
        lanes = tensor(H // 4, T, 4, element="bf16")
        lines += [
            affine_generic("lanes", "x", x, lanes, "(r, j, q) -> (j, r * 4 + q)", "(r, j, q) -> (r, j, q)"),
            f"%t = tensor.collapse_shape %lanes [[0], [1, 2]] : {lanes} into {turned}",
        ]
    extent, kind = (4 * T, "bf16") if is_float else (T, f"!mx.x4<{element}>")
    parts = tensor(128, tiles, extent, element=kind)
    lines += [f"%parts = mx.partition_rows %t : {turned} -> {parts}"]
    q, qs = x4(128, T, element=element), tensor(128, T, element="ui8")
    wt, st = x4(128, COLUMNS, element=element), tensor(128, COLUMNS, element="ui8")
    out = tensor(T, COLUMNS, element="f32")
    lines += [f"%y_ = arith.constant dense<0.0> : {out}"]
    for t in range(tiles):
        part = tensor(128, extent, element=kind)
        lines += [sliced(f"x{t}", "parts", parts, (0, t, 0), (128, 1, extent), part)]
        data, scales = f"q{t}#0", f"q{t}#1"
        if is_float:
            lines += [f"%q{t}:2 = mx.quantize_mx %x{t} : {part} -> ({q}, {qs})"]
        else:
            data, scales = f"x{t}", "ones"
        lines += [
            sliced(f"w{t}", "w#0", loaded, (0, t, 0), (128, 1, COLUMNS), wt),
            sliced(f"s{t}", "w#1", loaded_scales, (0, t, 0), (128, 1, COLUMNS), st),
            matmul(
                f"y{t}", f"y{t - 1}" if t else "y_", (data, f"w{t}", scales, f"s{t}"), (out, q, wt, qs, st), "moving",
                t > 0,
            ),
        ]  # fmt: skip
    body = "\n".join(lines)
    return f"""func.func @f(%x: {x}, %packed: {w}, %s: {s}, %ones: {qs}) -> {out} {{
                 {body}
                 return %y{tiles - 1} : {out}
               }}"""


def qkv_weight(rng, layout):
    """Return a weight's containers, its scales, and what it is worth, rows in their own order.

    It is quantized in the order in which its rows lie in containers, so that 32 of them share a scale.
    """
    w = rng.standard_normal((H, COLUMNS)).astype(np.float32)
    order = (
        np.arange(H).reshape(2, H // 4, 2).swapaxes(0, 1).reshape(-1) if layout == "MX_INTERLEAVED" else np.arange(H)
    )
    q = mx_dialect.quantize(w[order], "f8E4M3FN", axis=0)
    worth = np.empty((H, COLUMNS))
    worth[order] = mx_dialect.reference.dequantize(q)
    containers = neuron.pack_weight(q.mantissa.view(np.uint8), "MX_CONTIGUOUS", "f8E4M3FN")
    return containers, q.scale.view(np.uint8), worth, order


@pytest.mark.parametrize("layout", ["MX_CONTIGUOUS", "MX_INTERLEAVED"])
def test_qkv_of_floats(layout):
    rng = np.random.default_rng(9)
    containers, scales, worth, order = qkv_weight(rng, layout)
    x = rng.standard_normal((T, H)).astype(ml_dtypes.bfloat16)
    y = compiled(qkv_program(layout, "bf16"), LOOPS)(x, containers, scales, np.zeros((128, T), np.uint8))
    # Container r of a token holds features order[4r] to order[4r + 3]; eight containers share a scale.
    cells = x.astype(np.float32)[:, order].reshape(T, H // 4, 4).swapaxes(0, 1).reshape(H // 4, 4 * T)
    lanes = dequantized(*quantized(cells, "f8E4M3FN"), "f8E4M3FN").reshape(H // 4, T, 4)
    activations = np.empty((T, H))
    activations[:, order] = lanes.swapaxes(0, 1).reshape(T, H)
    expected = activations @ worth
    np.testing.assert_allclose(y, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_qkv_of_fp8():
    """Activations in FP8 are carried by the transposing DMA as they are."""
    rng = np.random.default_rng(10)
    containers, scales, worth, _ = qkv_weight(rng, "MX_INTERLEAVED")
    x = rng.standard_normal((T, H)).astype(DTYPE["f8E4M3FN"])
    ones = spread(np.full((16, T), 127, np.uint8), 128, 0, 255)
    y = compiled(qkv_program("MX_INTERLEAVED", "f8E4M3FN"), LOOPS)(x, containers, scales, ones)
    expected = x.astype(np.float64) @ worth
    np.testing.assert_allclose(y, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_weights_in_the_other_layout_give_something_else():
    """Nothing is permuted when the program runs: what a layout says is what it must be."""
    rng = np.random.default_rng(11)
    containers, scales, worth, _ = qkv_weight(rng, "MX_CONTIGUOUS")
    x = rng.standard_normal((T, H)).astype(DTYPE["f8E4M3FN"])
    ones = np.full((128, T), 127, np.uint8)
    y = compiled(qkv_program("MX_INTERLEAVED", "f8E4M3FN"), LOOPS)(x, containers, scales, ones)
    expected = x.astype(np.float64) @ worth
    assert np.abs(y - expected).max() > 0.1 * np.abs(expected).max()


def test_the_lanes_of_these_tests():
    containers = neuron.pack_weight(np.arange(8, dtype=np.uint8)[:, None], "MX_CONTIGUOUS", "f8E4M3FN")
    assert [lane(containers[1, 0], q, "f8E4M3FN") for q in range(4)] == [4, 5, 6, 7]
    assert values("f8E4M3FN")[0x38] == 1
