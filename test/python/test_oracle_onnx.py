"""Quantization, dequantization and packing against onnx's reference implementation of its own operators.

onnx casts elements with ml_dtypes; what it computes itself are scales, quotients, products and packed bytes.
"""

import functools

import hard_blocks
import numpy as np
import oracle
import pytest
import third_party

import mx_dialect
from mx_dialect import reference

onnx = third_party.load("onnx")
ReferenceEvaluator = third_party.load("onnx.reference").ReferenceEvaluator
numpy_helper = third_party.load("onnx.numpy_helper")

TYPES = {
    "f8E5M2": onnx.TensorProto.FLOAT8E5M2,
    "f8E4M3FN": onnx.TensorProto.FLOAT8E4M3FN,
    "f6E3M2FN": onnx.TensorProto.FLOAT6E3M2,
    "f6E2M3FN": onnx.TensorProto.FLOAT6E2M3,
    "f4E2M1FN": onnx.TensorProto.FLOAT4E2M1,
    "i8": onnx.TensorProto.INT8,
}
PACKED = {"f6E3M2FN": 6, "f6E2M3FN": 6, "f4E2M1FN": 4}

every_element_type = pytest.mark.parametrize("element_type", TYPES)


@functools.cache
def operator(name, element_type):
    """Return a model of one QuantizeLinear or DequantizeLinear on [n, 32] in blocks of 32."""
    value_info, float_type = onnx.helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    codes = value_info("codes", TYPES[element_type], ["n", hard_blocks.SIZE])
    values = value_info("values", float_type, ["n", hard_blocks.SIZE])
    scales = value_info("scales", float_type, ["n", 1])
    source, result = (values, codes) if name == "QuantizeLinear" else (codes, values)
    extra = {"output_dtype": TYPES[element_type]} if name == "QuantizeLinear" else {}
    node = onnx.helper.make_node(
        name, [source.name, "scales"], [result.name], axis=1, block_size=hard_blocks.SIZE, **extra
    )
    graph = onnx.helper.make_graph([node], name, [source, scales], [result])
    opset = onnx.helper.make_opsetid("", onnx.defs.onnx_opset_version())
    return ReferenceEvaluator(onnx.helper.make_model(graph, opset_imports=[opset]))


def step(scale, element_type):
    """Return what a code of 1 stands for in onnx, float32 [n, 1]: its INT8 counts in ones, MXINT8 in 64ths."""
    exponent = scale.astype(np.int32)[:, None] - 127
    return np.ldexp(np.float32(1), exponent - (6 if element_type == "i8" else 0))


def to_e8m0(values, saturate, round_mode):
    return numpy_helper.to_float8e8m0(values.astype(np.float32), saturate, round_mode).view(np.uint8)


def finite_blocks(element_type, rounding="floor"):
    x = hard_blocks.hard_blocks()
    codes, scale = hard_blocks.quantized(element_type, rounding)
    finite = np.isfinite(hard_blocks.largest(x))
    return x[finite], codes[finite], scale[finite]


# Scales: a cast to FLOAT8E8M0, rounding down or up.


@every_element_type
def test_floor_is_the_cast_of_the_maximum_rounded_down(element_type):
    x, _, scale = finite_blocks(element_type)
    theirs = to_e8m0(hard_blocks.largest(x), True, "down").astype(int)
    np.testing.assert_array_equal(np.maximum(theirs - oracle.TABLE[element_type].emax, 0), scale)


@every_element_type
def test_ceil_is_the_cast_of_the_maximum_rounded_up(element_type):
    """Of MXINT8 the cast is the scale, and saturates as it does; for others emax is subtracted afterwards."""
    x, _, scale = finite_blocks(element_type, "ceil")
    amax = hard_blocks.largest(x)
    theirs = to_e8m0(amax, element_type == "i8", "up").astype(int) - oracle.TABLE[element_type].emax
    tiny = (amax > 0) & (amax <= 2.0**-127) & (element_type == "i8")
    np.testing.assert_array_equal(np.maximum(theirs, 0)[~tiny], scale[~tiny])
    # The disagreement of the next test.
    assert set(scale[tiny].tolist()) <= {0}
    assert set(theirs[tiny].tolist()) <= {1}


@every_element_type
def test_rceil_is_the_cast_of_the_quotient_rounded_up(element_type):
    """But onnx rounds what is below the smallest scale, 2^-127, up to 2^-126: every subnormal float32 but 0."""
    x, _, scale = finite_blocks(element_type, "rceil")
    amax = hard_blocks.largest(x)
    largest = float(oracle.TABLE[element_type].max_normal)
    quotient = (amax / largest).astype(np.float32)
    theirs = to_e8m0(quotient, True, "up")
    tiny = (quotient > 0) & (amax <= largest * 2.0**-127)
    assert tiny.sum() > 1000
    np.testing.assert_array_equal(theirs[~tiny], scale[~tiny])
    assert set(scale[tiny].tolist()) == {0}
    assert set(theirs[tiny].tolist()) == {1}


def test_special_values_are_nan_scales_in_both():
    assert to_e8m0(np.array([np.nan, np.inf, -np.inf]), True, "up").tolist() == [255, 255, 255]
    x = np.ones((3, hard_blocks.SIZE), np.float32)
    x[:, 5] = np.nan, np.inf, -np.inf
    assert hard_blocks.quantize(x, "f8E4M3FN")[1].tolist() == [255, 255, 255]


# Elements: QuantizeLinear with our scales, and DequantizeLinear.


@every_element_type
@pytest.mark.parametrize("rounding", oracle.ROUNDINGS)
def test_quantize_linear(element_type, rounding):
    x, codes, scale = finite_blocks(element_type, rounding)
    feeds = {"values": x, "scales": step(scale, element_type)}
    theirs = operator("QuantizeLinear", element_type).run(None, feeds)[0].view(np.uint8)
    if element_type == "i8":
        # INT8 reaches -128, which MXINT8 avoids.
        assert (theirs == 128).any() or rounding == "rceil"
        theirs = np.where(theirs == 128, 129, theirs)
    np.testing.assert_array_equal(theirs, codes)


@every_element_type
def test_dequantize_linear(element_type):
    _, codes, scale = finite_blocks(element_type)
    ours = hard_blocks.dequantize(codes, scale, element_type)
    feeds = {"codes": codes.view(oracle.TABLE[element_type].dtype), "scales": step(scale, element_type)}
    theirs = operator("DequantizeLinear", element_type).run(None, feeds)[0]
    np.testing.assert_array_equal(theirs.view(np.uint32), ours.view(np.uint32))


@every_element_type
def test_onnx_divides_by_a_nan_scale(element_type):
    """QuantizeLinear makes NaNs of a special block's elements, or, without NaNs, zeros; here they stay unscaled."""
    if element_type == "i8":
        return  # numpy leaves open what integer a NaN becomes.
    x = np.full((1, hard_blocks.SIZE), 2, np.float32)
    x[0, 0] = np.nan
    codes, scale = hard_blocks.quantize(x, element_type)
    assert scale.tolist() == [255]
    np.testing.assert_array_equal(reference.decode(codes, element_type)[0, 1:], x[0, 1:])
    feeds = {"values": x, "scales": np.full((1, 1), np.nan, np.float32)}
    theirs = operator("QuantizeLinear", element_type).run(None, feeds)[0].astype(np.float32)
    if oracle.TABLE[element_type].nan:
        assert np.isnan(theirs).all()
    else:
        np.testing.assert_array_equal(theirs, np.zeros_like(x))


# Packed storage: the bytes of a TensorProto.


@pytest.mark.parametrize("element_type", PACKED)
def test_packed_bytes(element_type):
    bits = PACKED[element_type]
    codes = np.random.default_rng(5).integers(0, 1 << bits, (64, 96), np.uint8)
    tensor = numpy_helper.from_array(codes.view(oracle.TABLE[element_type].dtype))
    theirs = np.frombuffer(tensor.raw_data, np.uint8).reshape(64, -1)
    loose, tight = "tensor<64x96xi8>", f"tensor<64x{96 * bits // 8}xi8>"
    program = f"""
      func.func @there_and_back(%x: {loose}) -> ({tight}, {loose}) {{
        %0 = mx.pack %x {{element = {element_type}}} : {loose} -> {tight}
        %1 = mx.unpack %0 {{element = {element_type}}} : {tight} -> {loose}
        return %0, %1 : {tight}, {loose}
      }}"""
    packed, unpacked = mx_dialect.compile(program)(codes.view(np.int8))
    np.testing.assert_array_equal(packed.view(np.uint8), theirs)
    np.testing.assert_array_equal(unpacked.view(np.uint8), codes)
