"""The numpy evaluation behind mx-run --check: loops, comparisons, constants, and what it refuses."""

import re

import ml_dtypes
import numpy as np
import pytest
from interpreter_checks import assert_kernel_agrees, evaluated, fails, of_body

import mx_dialect
from mx_dialect import MxError, interpreter_control
from mx_dialect.interpreter_values import Floats

POWER = """
func.func @f(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %r = scf.for %i = %c0 to %n step %c2 iter_args(%a = %x) -> (tensor<4xf32>) {
    %p = arith.mulf %a, %x : tensor<4xf32>
    %e = tensor.extract %p[%i] : tensor<4xf32>
    %d = arith.addf %e, %e : f32
    %q = tensor.insert %d into %p[%i] : tensor<4xf32>
    scf.yield %q : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}"""


@pytest.mark.parametrize(("n", "expected"), [(0, [1.0, 2, 3, 4]), (1, [2, 4, 9, 16]), (4, [2, 8, 54, 64])])
def test_for_carries_tensors(n, expected):
    (value,) = assert_kernel_agrees(POWER, np.array([1, 2, 3, 4], np.float32), n)
    assert value.values.tolist() == expected
    assert value.error.any() == (n > 0)


BRANCHES = """
func.func @f(%x: i32) -> (i32, f32) {
  %c0 = arith.constant 0 : i32
  %small = arith.constant 0.5 : f32
  %large = arith.constant 2.0 : f32
  %negative = arith.cmpi slt, %x, %c0 : i32
  %a, %b = scf.if %negative -> (i32, f32) {
    %m = arith.subi %c0, %x : i32
    scf.yield %m, %small : i32, f32
  } else {
    scf.yield %x, %large : i32, f32
  }
  scf.if %negative {
  }
  return %a, %b : i32, f32
}"""


@pytest.mark.parametrize(("x", "expected"), [(-3, (3, 0.5)), (4, (4, 2.0))])
def test_if_takes_one_branch(x, expected):
    number, weight = assert_kernel_agrees(BRANCHES, np.int32(x))
    assert (int(number), float(weight.values)) == expected


COLLATZ = """
func.func @f(%x: i32) -> (i32, i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %r:2 = scf.while (%v = %x, %n = %c0) : (i32, i32) -> (i32, i32) {
    %more = arith.cmpi ne, %v, %c1 : i32
    scf.condition(%more) %v, %n : i32, i32
  } do {
  ^bb0(%v: i32, %n: i32):
    %odd = arith.trunci %v : i32 to i1
    %next = scf.if %odd -> (i32) {
      %t = arith.muli %v, %c3 : i32
      %u = arith.addi %t, %c1 : i32
      scf.yield %u : i32
    } else {
      %h = arith.sitofp %v : i32 to f32
      %half = arith.constant 0.5 : f32
      %m = arith.mulf %h, %half : f32
      %w = scf.for %i = %c0 to %v step %c1 iter_args(%k = %c0) -> (i32) : i32 {
        %d = arith.addi %i, %i : i32
        %is = arith.cmpi eq, %d, %v : i32
        %s = arith.select %is, %i, %k : i32
        scf.yield %s : i32
      }
      scf.yield %w : i32
    }
    %m = arith.addi %n, %c1 : i32
    scf.yield %next, %m : i32, i32
  }
  return %r#0, %r#1 : i32, i32
}"""


def test_while_runs_until_its_condition_fails():
    last, steps = assert_kernel_agrees(COLLATZ, np.int32(6))
    # 6 3 10 5 16 8 4 2 1
    assert (int(last), int(steps)) == (1, 8)


MX = "!mx.tensor<4x32xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>"
CHOICES = f"""
func.func @f(%c: i1, %a: {MX}, %b: {MX}, %n: index) -> (tensor<4x32xf32>, tensor<4x32xf32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = arith.select %c, %a, %b : {MX}
  %i = scf.if %c -> ({MX}) {{
    scf.yield %b : {MX}
  }} else {{
    scf.yield %a : {MX}
  }}
  %w = scf.for %j = %c0 to %n step %c1 iter_args(%x = %i) -> ({MX}) {{
    scf.yield %s : {MX}
  }}
  %0 = mx.dequantize_block %s : {MX} -> tensor<4x32xf32>
  %1 = mx.dequantize_block %w : {MX} -> tensor<4x32xf32>
  return %0, %1 : tensor<4x32xf32>, tensor<4x32xf32>
}}"""


@pytest.mark.parametrize(("c", "n", "expected"), [(True, 0, (1, 2)), (False, 0, (2, 1)), (True, 3, (1, 1))])
def test_mx_tensors_are_chosen_and_carried(c, n, expected):
    a, b = (mx_dialect.quantize(np.full((4, 32), x, np.float32)) for x in (1, 2))
    values = assert_kernel_agrees(CHOICES, np.bool_(c), a, b, n)
    assert [float(value.values[0, 0]) for value in values] == [*expected]


def loop(bounds, type_="index", attributes=""):
    lower, upper, step = bounds
    return f"""func.func @f() -> {type_} {{
      %l = arith.constant {lower} : {type_}
      %u = arith.constant {upper} : {type_}
      %s = arith.constant {step} : {type_}
      %r = scf.for {attributes} %i = %l to %u step %s iter_args(%a = %l) -> ({type_}) {": " + type_ if type_ != "index" else ""} {{
        scf.yield %i : {type_}
      }}
      return %r : {type_}
    }}"""


def test_bounds_of_loops():
    assert int(evaluated(loop((-4, 5, 3)))[0]) == 2
    assert int(evaluated(loop((5, -4, 3)))[0]) == 5
    # 250 is -6 as a signed i8.
    assert int(evaluated(loop((0, 250, 100), "i8"))[0]) == 0
    assert int(evaluated(loop((0, 250, 100), "i8", "unsigned"))[0]) == -56


FOREVER = """func.func @f(%x: i1) -> i1 {
  %r = scf.while (%v = %x) : (i1) -> i1 {
    scf.condition(%v) %v : i1
  } do {
  ^bb0(%v: i1):
    scf.yield %v : i1
  }
  return %r : i1
}"""


def test_loops_end(monkeypatch):
    monkeypatch.setattr(interpreter_control, "MOST_ITERATIONS", 100)
    fails(r":2:8: error: 'scf.while' op goes past the 100 iterations of all loops", FOREVER, np.True_)
    assert not evaluated(FOREVER, np.False_)[0]
    fails(r"'scf.for' op goes past the 100 iterations", loop((0, 101, 1)))
    assert int(evaluated(loop((0, 100, 1)))[0]) == 99
    inner = COLLATZ.replace("%x, %n = %c0", "%x, %n = %c0")
    fails(r"'scf.for' op goes past the 100 iterations", inner, np.int32(256))


def test_refused_loops():
    fails(r"'scf.for' op has the step 0, which is not positive", loop((0, 5, 0)))
    fails(r"'scf.for' op has the step -1, which is not positive", loop((0, 5, -1)))
    fails(
        r"'scf.for' op counts in i1",
        loop((0, 1, 1), "i1").replace("constant 0 : i1", "constant false").replace("constant 1 : i1", "constant true"),
    )


def test_comparison_that_roundings_may_turn_decides_nothing():
    text = """func.func @f(%x: f32) -> f32 {
      %y = arith.mulf %x, %x : f32
      %less = arith.cmpf olt, %y, %x : f32
      %r = scf.if %less -> (f32) {
        scf.yield %x : f32
      } else {
        scf.yield %y : f32
      }
      return %r : f32
    }"""
    assert float(evaluated(text, np.float32(0.5))[0].values) == 0.5
    fails("'arith.cmpf' op compares floats that lie closer", text, np.float32(1.0))


def nested(depth):
    opening = "".join(f"%r{i} = scf.if %c -> (i32) {{\n" for i in range(depth))
    closing = "".join(
        f"scf.yield %{'x' if i == depth else f'r{i}'} : i32 }} else {{ scf.yield %x : i32 }}\n"
        for i in range(depth, 0, -1)
    )
    return f"func.func @f(%c: i1, %x: i32) -> i32 {{\n{opening}{closing}return %r0 : i32 }}"


def test_depth_is_bounded():
    assert int(evaluated(nested(60), np.True_, np.int32(7))[0]) == 7
    fails("nest deeper than the 64 that --check follows", nested(70), np.True_, np.int32(7))
    recursive = "func.func @f(%x: i32) -> i32 {\n %r = call @f(%x) : (i32) -> i32\n return %r : i32 }"
    fails("nest deeper than the 64 that --check follows", recursive, np.int32(7))


PREDICATES = "oeq ogt oge olt ole ord ueq ugt uge ult ule une uno one".split()


@pytest.mark.parametrize("predicate", PREDICATES)
def test_float_comparisons(predicate):
    x, y = (a.ravel() for a in np.meshgrid(np.array([1, 2, np.nan], np.float32), np.array([1, 2, np.nan], np.float32)))
    text = of_body(
        ("%x: tensor<9xf32>, %y: tensor<9xf32>", "tensor<9xi1>"),
        f" %r = arith.cmpf {predicate}, %x, %y : tensor<9xf32>",
    )
    assert_kernel_agrees(text, x, y)


INTEGER_PAIRS = [(7, 2), (-7, 2), (7, -2), (-7, -2), (-128, 3), (127, 127), (0, 5), (6, 3), (-1, 7), (100, 6)]
# By Python's unbounded integers, signed and as unsigned of 8 bits.
INTEGER_OPERATIONS = {
    "divsi": lambda x, y: abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1),
    "remsi": lambda x, y: abs(x) % abs(y) * (-1 if x < 0 else 1),
    "floordivsi": lambda x, y: x // y,
    "ceildivsi": lambda x, y: -(-x // y),
    "divui": lambda x, y: (x % 256) // (y % 256),
    "remui": lambda x, y: (x % 256) % (y % 256),
    "ceildivui": lambda x, y: -(-(x % 256) // (y % 256)),
    "minui": lambda x, y: min(x % 256, y % 256),
    "maxui": lambda x, y: max(x % 256, y % 256),
    "shli": lambda x, y: x << y % 8,
    "shrsi": lambda x, y: x >> y % 8,
    "shrui": lambda x, y: (x % 256) >> y % 8,
}


@pytest.mark.parametrize("name", INTEGER_OPERATIONS)
def test_integers(name):
    x, y = (np.array(column, np.int8) for column in zip(*INTEGER_PAIRS, strict=True))
    if name.startswith("sh"):
        y = y % 8
    n = len(x)
    text = of_body(
        (f"%x: tensor<{n}xi8>, %y: tensor<{n}xi8>", f"tensor<{n}xi8>"), f" %r = arith.{name} %x, %y : tensor<{n}xi8>"
    )
    (value,) = assert_kernel_agrees(text, x, y)
    expected = [(INTEGER_OPERATIONS[name](int(a), int(b)) + 128) % 256 - 128 for a, b in zip(x, y, strict=True)]
    assert value.tolist() == expected


def test_division_by_zero_is_refused():
    text = of_body(("%x: i32, %y: i32", "i32"), " %r = arith.divsi %x, %y : i32")
    fails("'arith.divsi' op divides by zero", text, np.int32(1), np.int32(0))


def test_shifts_by_the_width_are_something():
    text = of_body(("%x: i32, %y: i32", "i32"), " %r = arith.shli %x, %y : i32")
    assert evaluated(text, np.int32(1), np.int32(32))[0].dtype == np.int32


@pytest.mark.parametrize(
    ("name", "x"), [("fptosi", [1.9, -1.9, 0.5, -128, 127.99]), ("fptoui", [1.9, 0, -0.9, 255.9, 128])]
)
def test_floats_to_integers(name, x):
    text = of_body(("%x: tensor<5xf32>", "tensor<5xi8>"), f" %r = arith.{name} %x : tensor<5xf32> to tensor<5xi8>")
    (value,) = assert_kernel_agrees(text, np.array(x, np.float32))
    assert [int(v) % 256 for v in value] == [int(v) % 256 for v in x]
    rounded = text.replace(" %r =", " %y = arith.mulf %x, %x : tensor<5xf32>\n %r =").replace(
        f"{name} %x", f"{name} %y"
    )
    near = np.sqrt(np.full(5, 9, np.float32))
    fails(f"'arith.{name}' op cuts off floats that roundings may take past an integer", rounded, near)


def test_bits():
    text = """func.func @f(%x: tensor<3xf32>, %c: tensor<3xf8E4M3FN>) -> (tensor<3xi32>, tensor<3xf32>, tensor<3xi8>) {
      %0 = arith.bitcast %x : tensor<3xf32> to tensor<3xi32>
      %1 = arith.bitcast %0 : tensor<3xi32> to tensor<3xf32>
      %2 = arith.bitcast %c : tensor<3xf8E4M3FN> to tensor<3xi8>
      return %0, %1, %2 : tensor<3xi32>, tensor<3xf32>, tensor<3xi8>
    }"""
    x, c = np.array([1.5, -0.0, np.inf], np.float32), np.array([1, -2, np.nan], ml_dtypes.float8_e4m3fn)
    bits, values, codes = assert_kernel_agrees(text, x, c)
    assert bits.tolist() == x.view(np.int32).tolist()
    assert codes.tolist() == c.view(np.int8).tolist()
    assert values.is_exact
    fails("'arith.bitcast' op takes the bits of a NaN", text, np.full(3, np.nan, np.float32), c)
    rounded = text.replace("bitcast %x", "bitcast %y").replace(
        "%0 =", "%y = arith.mulf %x, %x : tensor<3xf32>\n %0 =", 1
    )
    fails("'arith.bitcast' op takes the bits of floats that roundings may change", rounded, x, c)


def resource(type_, data, named="w"):
    return (
        f"func.func @f() -> tensor<{type_}> {{\n %r = arith.constant dense_resource<w> : tensor<{type_}>\n"
        f" return %r : tensor<{type_}>\n}}\n"
        f'{{-# dialect_resources: {{ builtin: {{ {named}: "0x04000000{data.tobytes().hex().upper()}" }} }} #-}}'
    )


@pytest.mark.parametrize(
    ("element", "array"),
    [
        ("f32", np.array([1.5, -2, np.inf], np.float32)),
        ("f64", np.array([0.1, -2, 1e300], np.float64)),
        ("f16", np.array([1.5, -2, 6e-8], np.float16)),
        ("bf16", np.array([1.5, -2, 1e38], ml_dtypes.bfloat16)),
        ("i32", np.array([1, -2, 1 << 30], np.int32)),
        ("i8", np.array([1, -2, 127], np.int8)),
        ("f8E4M3FN", np.array([1.5, -2, 448], ml_dtypes.float8_e4m3fn)),
        ("f8E8M0FNU", np.array([1, 2.0**127, np.nan], ml_dtypes.float8_e8m0fnu)),
    ],
)
def test_resources(element, array):
    (value,) = assert_kernel_agrees(resource(f"3x{element}", array), *[])
    np.testing.assert_array_equal(
        (value.values if isinstance(value, Floats) else value).astype(np.float64), array.astype(np.float64)
    )


def test_the_constant_scale_nan_stays_nan():
    text = """func.func @f() -> (tensor<2xf32>, f32) {
      %s = arith.constant dense<[0xFF, 0x80]> : tensor<2xf8E8M0FNU>
      %0 = arith.extf %s : tensor<2xf8E8M0FNU> to tensor<2xf32>
      %t = arith.constant 0xFF : f8E8M0FNU
      %1 = arith.extf %t : f8E8M0FNU to f32
      return %0, %1 : tensor<2xf32>, f32
    }"""
    several, one = assert_kernel_agrees(text)
    np.testing.assert_array_equal(several.values, [np.nan, 2])
    assert np.isnan(one.values)


def test_named_operations_of_linalg_are_evaluated_as_generic_ones():
    text = """func.func @f(%x: tensor<1x1x4x4xf32>, %k: tensor<1x1x2x2xf32>, %o: tensor<1x1x3x3xf32>) -> tensor<1x1x3x3xf32> {
      %0 = linalg.conv_2d_nchw_fchw ins(%x, %k : tensor<1x1x4x4xf32>, tensor<1x1x2x2xf32>) outs(%o : tensor<1x1x3x3xf32>) -> tensor<1x1x3x3xf32>
      %1 = linalg.exp ins(%0 : tensor<1x1x3x3xf32>) outs(%o : tensor<1x1x3x3xf32>) -> tensor<1x1x3x3xf32>
      return %1 : tensor<1x1x3x3xf32>
    }"""
    x, k, o = np.ones((1, 1, 4, 4), np.float32), np.ones((1, 1, 2, 2), np.float32), np.ones((1, 1, 3, 3), np.float32)
    (value,) = assert_kernel_agrees(text, x, k, o)
    np.testing.assert_allclose(value.values, np.exp(5.0), rtol=1e-12)


def test_resources_that_lack_data():
    data = np.ones(3, np.float32)
    fails(
        "'arith.constant' op holds data that cannot be read here: its resource has no data",
        resource("3xf32", data, "v"),
    )
    fails("has 12 bytes, not 16", resource("4xf32", data))


def test_parallel_iterations_that_write_one_entry_are_refused():
    text = """
    #all = affine_map<(d0, d1) -> (d0, d1)>
    #row = affine_map<(d0, d1) -> (d0)>
    func.func @f(%x: tensor<2x3xf32>, %o: tensor<2xf32>) -> tensor<2xf32> {
      %r = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "KIND"]}
          ins(%x : tensor<2x3xf32>) outs(%o : tensor<2xf32>) {
      ^bb0(%a: f32, %b: f32):
        %m = arith.maximumf %a, %b : f32
        linalg.yield %m : f32
      } -> tensor<2xf32>
      return %r : tensor<2xf32>
    }"""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    (value,) = evaluated(text.replace("KIND", "reduction"), x, np.zeros(2, np.float32))
    assert value.values.tolist() == [2, 5]
    fails("writes an entry in several parallel", text.replace("KIND", "parallel"), x, np.zeros(2, np.float32))


def test_every_refusal_has_a_remedy():
    text = of_body(("%x: f32", "tensor<2xf32>"), " %r = tensor.from_elements %x, %x : tensor<2xf32>")
    with pytest.raises(MxError, match=re.escape("'tensor.from_elements' op is not evaluated by --check; compare with")):
        evaluated(text, np.float32(1))
