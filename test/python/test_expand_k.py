"""mx-expand-k changes how a linalg.generic is written, never what it computes.

Each case is compiled before and after the pass, by upstream's plain loops, and compared with numpy, which evaluates the
indexing maps as integer arrays. All numbers are small integers, so that sums are exact in any order.
"""

import ctypes
import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mx_dialect import diagnostics, passes
from mx_dialect._mlir import execution_engine, ir, passmanager

TO_LOOPS = "one-shot-bufferize{bufferize-function-boundaries=1},convert-linalg-to-loops"
VECTORS_TO_LOOPS = (
    "one-shot-bufferize{bufferize-function-boundaries=1},func.func(lower-vector-multi-reduction),convert-vector-to-scf"
)
TO_LLVM = (
    "lower-affine,convert-scf-to-cf,expand-strided-metadata,lower-affine,convert-vector-to-llvm,"
    "finalize-memref-to-llvm,convert-arith-to-llvm,convert-index-to-llvm,convert-func-to-llvm,"
    "convert-cf-to-llvm,convert-ub-to-llvm,reconcile-unrealized-casts"
)
SCHEDULE = """
transform.named_sequence @__transform_main(%module: !transform.any_op {transform.readonly}) {
  %generic = transform.structured.match ops{["linalg.generic"]} in %module : (!transform.any_op) -> !transform.any_op
  transform.structured.vectorize %generic : !transform.any_op
  transform.yield
}
"""


@dataclass(frozen=True)
class Generic:
    """`outs += product of ins + sum of loop numbers in index`, over loops d0, d1, ... of the given extents.

    Maps are text in MLIR's syntax, such as `d0, d2 floordiv 32`. The outs map is the last.
    """

    extents: tuple[int, ...]
    maps: tuple[str, ...]
    index: tuple[int, ...] = ()

    def indices(self, text: str, loops: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        """Evaluate a map over arrays of loop numbers; one index array a result."""
        python = text.replace("floordiv", "//").replace("mod", "%")
        names = {f"d{i}": loop for i, loop in enumerate(loops)}
        return tuple(loops[0] * 0 + eval(e, {}, names) for e in python.split(",") if e.strip())

    def shapes(self) -> list[tuple[int, ...]]:
        """Return the shape of each operand: what the last iteration reads is its last element."""
        last = [np.int64(extent - 1) for extent in self.extents]
        return [tuple(int(i) + 1 for i in self.indices(text, last)) for text in self.maps]

    def iterator_types(self) -> list[str]:
        plain = [e.strip() for e in self.maps[-1].split(",")]
        return ["parallel" if f"d{i}" in plain else "reduction" for i in range(len(self.extents))]

    def text(self, on_buffers: bool = False) -> str:
        """Return a function `f` that takes a memref for each operand and writes the last."""
        shapes = ["x".join([*map(str, shape), "f32"]) for shape in self.shapes()]
        last = len(shapes) - 1
        dims = ", ".join(f"d{i}" for i in range(len(self.extents)))
        maps = ", ".join(f"affine_map<({dims}) -> ({text})>" for text in self.maps)
        kinds = ", ".join(f'"{kind}"' for kind in self.iterator_types())
        kind, prefix = ("memref", "%m") if on_buffers else ("tensor", "%t")
        ins = ", ".join(f"{prefix}{i}" for i in range(last))
        in_types = ", ".join(f"{kind}<{shape}>" for shape in shapes[:-1])
        out_type = f"{kind}<{shapes[-1]}>"

        product = "%p0 = arith.addf %x0, %zero : f32\n" + "\n".join(
            f"%p{i} = arith.mulf %p{i - 1}, %x{i} : f32" for i in range(1, last)
        )
        numbers = "\n".join(
            f"%i{i} = linalg.index {loop} : index\n"
            f"%n{i} = arith.index_cast %i{i} : index to i32\n"
            f"%f{i} = arith.sitofp %n{i} : i32 to f32\n"
            f"%s{i + 1} = arith.addf %s{i}, %f{i} : f32"
            for i, loop in enumerate(self.index)
        )
        generic = f"""
            linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
                ins({ins} : {in_types}) outs({prefix}{last} : {out_type}) {{
            ^bb0({", ".join(f"%x{i}: f32" for i in range(last + 1))}):
              {product}
              %s0 = arith.addf %x{last}, %p{last - 1} : f32
              {numbers}
              linalg.yield %s{len(self.index)} : f32
            }}
        """
        if not on_buffers:
            tensors = "\n".join(
                f"%t{i} = bufferization.to_tensor %m{i} restrict writable : memref<{s}> to tensor<{s}>"
                for i, s in enumerate(shapes)
            )
            generic = f"""
                {tensors}
                %r = {generic} -> {out_type}
                bufferization.materialize_in_destination %r in restrict writable %m{last}
                    : ({out_type}, memref<{shapes[-1]}>) -> ()
            """
        return f"""
            func.func @f({", ".join(f"%m{i}: memref<{shape}>" for i, shape in enumerate(shapes))})
                attributes {{llvm.emit_c_interface}} {{
              %zero = arith.constant 0.0 : f32
              {generic}
              return
            }}
        """

    def expected(self, operands: Sequence[np.ndarray]) -> np.ndarray:
        loops = np.indices(self.extents)
        values = [x[self.indices(text, loops)] for text, x in zip(self.maps[:-1], operands[:-1], strict=True)]
        term = np.prod(values, axis=0) + sum(loops[d] for d in self.index)
        result = operands[-1].copy()
        np.add.at(result, self.indices(self.maps[-1], loops), term)
        return result


@pytest.fixture(autouse=True)
def context():
    with ir.Context() as context, ir.Location.unknown():
        yield context


def expand(module) -> None:
    chosen = passes.get("mx-expand-k")
    assert chosen is not None
    chosen.run(module.operation, chosen.parse_options({}))
    module.operation.verify()


def generics(module) -> list:
    found = []

    def visit(op):
        if op.name == "linalg.generic":
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def descriptor(array: np.ndarray):
    """Return MLIR's memref descriptor of a contiguous array."""
    sizes = ctypes.c_int64 * array.ndim

    class Descriptor(ctypes.Structure):
        _fields_ = [
            ("allocated", ctypes.c_void_p),
            ("aligned", ctypes.c_void_p),
            ("offset", ctypes.c_int64),
            ("sizes", sizes),
            ("strides", sizes),
        ]

    strides = [stride // array.itemsize for stride in array.strides]
    return Descriptor(array.ctypes.data, array.ctypes.data, 0, sizes(*array.shape), sizes(*strides))


def run_passes(module, pipeline: str) -> None:
    passmanager.PassManager.parse(f"builtin.module({pipeline})").run(module.operation)


def vectorize(module) -> None:
    """Run the schedule and drop it: LLVM cannot translate it."""
    run_passes(module, "transform-interpreter")
    module.body.operations[1].operation.erase()


def execute(module, lowering: str, operands: Sequence[np.ndarray]) -> np.ndarray:
    """Lower and run `f`; the last operand is read and written, and returned."""
    run_passes(module, f"{lowering},{TO_LLVM}")
    arrays = [array.copy() for array in operands]
    pointers = [ctypes.pointer(ctypes.pointer(descriptor(array))) for array in arrays]
    execution_engine.ExecutionEngine(module, opt_level=0).invoke("f", *pointers)
    return arrays[-1]


def integers(generic: Generic) -> list[np.ndarray]:
    rng = np.random.default_rng(prod(generic.extents))
    return [rng.integers(-4, 5, shape).astype(np.float32) for shape in generic.shapes()]


def check(generic: Generic, on_buffers: bool = False, divided: bool = True) -> None:
    """Require equal results before and after, projected permutations after, and a second run that changes nothing."""
    text = generic.text(on_buffers)
    operands = integers(generic)
    expected = generic.expected(operands)
    np.testing.assert_array_equal(execute(ir.Module.parse(text), TO_LOOPS, operands), expected)

    module = ir.Module.parse(text)
    assert ("floordiv" in str(module)) == divided
    expand(module)
    once = str(module)
    assert not re.search("floordiv|mod ", once)
    for attribute in generics(module)[0].attributes["indexing_maps"]:
        loops = [str(result) for result in attribute.value.results if str(result) != "0"]
        assert all(re.fullmatch(r"d\d+", loop) for loop in loops)
        assert len(set(loops)) == len(loops)
    expand(module)
    assert str(module) == once
    np.testing.assert_array_equal(execute(module, TO_LOOPS, operands), expected)


CASES = {
    "A": Generic((3, 5, 64), ("d0, d2", "d0, d2 floordiv 32", "d2, d1", "d0, d1")),
    "B": Generic((3, 5, 64), ("d0, d2", "d2, d1", "d2 floordiv 32, d1", "d0, d1")),
    "A and B": Generic((3, 5, 64), ("d0, d2", "d0, d2 floordiv 32", "d2, d1", "d2 floordiv 32, d1", "d0, d1")),
    "A and B, different blocks": Generic(
        (3, 5, 64), ("d0, d2", "d0, d2 floordiv 32", "d2, d1", "d2 floordiv 16, d1", "d0, d1")
    ),
    "three block sizes": Generic(
        (48,), ("d0", "d0 floordiv 24", "d0 floordiv 6", "d0 mod 12", "d0 mod 6", "d0 floordiv 12", "d0")
    ),
    "batch": Generic(
        (2, 2, 3, 5, 8),
        ("d0, d1, d2, d4", "d0, d1, d2, d4 floordiv 4", "d0, d1, d4, d3", "d0, d1, d2, d3"),
    ),
    "dequantize, last axis": Generic((3, 64), ("d0, d1", "d0, d1 floordiv 32", "d0, d1")),
    "dequantize, first axis": Generic((64, 3), ("d0, d1", "d0 floordiv 32, d1", "d0, d1")),
    "dequantize, middle axis, transposed": Generic((3, 8, 2), ("d0, d1, d2", "d2, d1 floordiv 4, d0", "d1, d2, d0")),
    "sum of each block": Generic((3, 64), ("d0, d1", "d0, d1 floordiv 32")),
    "sum over blocks": Generic((3, 64), ("d0, d1", "d1 floordiv 32", "d1 mod 32, d0")),
    "blocked layout": Generic((3, 64), ("d0, d1", "d1 floordiv 32, d0, d1 mod 32", "d0, d1")),
    "one scale for all rows": Generic((3, 64), ("d0, d1", "0, d1 floordiv 32", "d0, d1")),
    "no block": Generic((3, 5, 0), ("d0, d2", "d0, d2 floordiv 32", "d2, d1", "d0, d1")),
    "one block": Generic((3, 32), ("d0, d1", "d0, d1 floordiv 32", "d0, d1")),
    "blocks of one or two": Generic((4, 8), ("d0, d1", "d0 floordiv 2, d1 floordiv 1", "d0, d1")),
    "two loops": Generic((12, 16), ("d0, d1", "d1 floordiv 8, d0 floordiv 4", "d1, d0")),
    "two loops, reduction": Generic((6, 3, 8), ("d2, d0", "d2 floordiv 4, d0 floordiv 3", "d1, d2", "d0, d1")),
    "index of a split loop": Generic((3, 8), ("d0, d1", "d0, d1 floordiv 4", "d0, d1"), index=(1,)),
    "index of others": Generic((4, 3, 8), ("d0, d2", "d0 floordiv 2, d2", "d2, d1", "d0, d1"), index=(2, 0, 1)),
    "index of a loop split twice": Generic((24,), ("d0", "d0 floordiv 12", "d0 floordiv 4", "d0"), index=(0,)),
}


@pytest.mark.parametrize("name", CASES)
def test_results_stay(name):
    check(CASES[name])


@pytest.mark.parametrize("name", ["A and B", "dequantize, first axis", "index of others", "three block sizes"])
def test_results_stay_on_buffers(name):
    check(CASES[name], on_buffers=True)


@st.composite
def dividing_generics(draw) -> Generic:
    """Return a product of operands that reach loops whole, divided and modulo, in any order and axis."""
    blocks = draw(st.lists(st.sampled_from([1, 2, 3, 4, 8, 32]), min_size=1, max_size=4))
    blocks[draw(st.integers(0, len(blocks) - 1))] = draw(st.sampled_from([2, 3, 16]))
    extents = tuple(block * draw(st.integers(1, 3 if block < 16 else 1)) for block in blocks)
    loops = range(len(blocks))
    some_loops = st.lists(st.sampled_from(loops), min_size=1, unique=True)
    divided = draw(st.sampled_from([loop for loop in loops if blocks[loop] > 1]))

    maps = [[f"d{loop}" for loop in draw(st.permutations(loops))], [f"d{divided} floordiv {blocks[divided]}"]]
    for _ in range(draw(st.integers(0, 2))):
        part = st.sampled_from(["d{0}", "d{0} floordiv {1}", "d{0} mod {1}"])
        maps.append([draw(part).format(loop, blocks[loop]) for loop in draw(some_loops)])
    order = draw(st.permutations(range(len(maps))))
    outs = [f"d{loop}" for loop in draw(some_loops)]
    index = draw(st.lists(st.sampled_from(loops), max_size=2))
    return Generic(extents, (*(", ".join(maps[i]) for i in order), ", ".join(outs)), tuple(index))


@settings(max_examples=60, deadline=None, database=None)
@given(dividing_generics())
def test_results_stay_on_random_generics(generic):
    with ir.Context(), ir.Location.unknown():
        check(generic)


@pytest.mark.parametrize("name", ["A and B", "sum of each block", "sum over blocks", "two loops"])
def test_vectorizes_after_and_not_before(name):
    generic = CASES[name]
    text = f"module attributes {{transform.with_named_sequence}} {{ {generic.text()} {SCHEDULE} }}"
    with pytest.raises(ir.MLIRError, match="Attempted to vectorize, but failed"):
        vectorize(ir.Module.parse(text))

    module = ir.Module.parse(text)
    expand(module)
    vectorize(module)
    assert "vector.transfer_write" in str(module)
    operands = integers(generic)
    np.testing.assert_array_equal(execute(module, VECTORS_TO_LOOPS, operands), generic.expected(operands))


CHAIN = """
#all = affine_map<(d0, d1) -> (d0, d1)>
#scale = affine_map<(d0, d1) -> (d0, d1 floordiv 4)>
func.func @f(%x: tensor<?x8xf32>, %s: tensor<?x2xf32>, %out: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = linalg.generic {indexing_maps = [#all, #scale, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<?x8xf32>, tensor<?x2xf32>) outs(%out : tensor<?x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<?x8xf32> loc("first":3:7)
  %1 = linalg.generic {indexing_maps = [#all, #scale, #all], iterator_types = ["parallel", "parallel"]}
      ins(%0, %s : tensor<?x8xf32>, tensor<?x2xf32>) outs(%0 : tensor<?x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.addf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<?x8xf32> loc("second":5:9)
  return %1 : tensor<?x8xf32>
}
"""


def test_reshapes_between_two_operations_fold():
    module = ir.Module.parse(CHAIN)
    expand(module)
    assert str(module).count("tensor.collapse_shape") == 2
    run_passes(module, "canonicalize")
    text = str(module)
    assert text.count("tensor.collapse_shape") == 1
    assert text.count("tensor.expand_shape") == 2


def test_locations_stay():
    module = ir.Module.parse(CHAIN)
    expand(module)
    assert [str(op.location) for op in generics(module)] == ['loc("first":3:7)', 'loc("second":5:9)']


def test_reshapes_bufferize_to_views():
    module = ir.Module.parse(CASES["A and B"].text())
    expand(module)
    run_passes(module, "one-shot-bufferize{bufferize-function-boundaries=1},canonicalize")
    text = str(module)
    assert text.count("memref.expand_shape") == 2
    assert "memref.alloc" not in text
    assert "memref.copy" not in text


def test_says_why_where_the_operation_is():
    module = ir.Module.parse(CHAIN.replace("x8x", "x6x"))
    before = str(module)
    with diagnostics.collecting(module.context, diagnostics.Collector()) as collector:
        expand(module)
    assert str(module) == before
    assert [d.header() for d in collector.diagnostics] == [
        f"{place}: remark: mx-expand-k leaves this linalg.generic as it is:"
        " the extent 6 of d1 is not a multiple of 4; pad it to whole blocks first"
        for place in ("first:3:7", "second:5:9")
    ]
