"""The operations of the tile level from Python: effects, builders, types."""

import re

import pytest

import mx_dialect
from mx_dialect import dialect, submit_ops, tile_matmul_ops, tile_memory_ops, tile_ops
from mx_dialect._mlir import arith, func, ir, scf
from mx_dialect.dialect import Mx
from mx_dialect.layouts.a5 import MX_A_ZZ, MX_B_NN
from mx_dialect.submit_ops import is_kernel, submit
from mx_dialect.tile_matmul_ops import matmul_mx, matmul_mx_acc, matmul_mx_bias, quant_mx
from mx_dialect.tile_memory_ops import tensor_view, tile_load, tile_store
from mx_dialect.tile_ops import block_idx, block_num, tile_cast, tile_create, tile_move
from mx_dialect.tile_types import LayoutAttr, TaskType, TileType, layout_of

dialect.define()
MODULES = {module.__name__ for module in (submit_ops, tile_matmul_ops, tile_memory_ops, tile_ops)}
OPERATIONS = [op for op in Mx.operations if op.__module__ in MODULES]
PURE = {"mx.tensor_view", "mx.block_idx", "mx.block_num"}


# Effects


def example_with_two(op):
    """Return the module of a docstring's example, the operation in it twice, and once more in a loop."""
    module = mx_dialect.parse(re.search(r"```mlir\n(.*?)```", op.__doc__, re.DOTALL)[1])
    found = next(o for f in module.body for o in f.regions[0].blocks[0] if o.operation.name == op.OPERATION_NAME)
    block = found.operation.block
    with module.context, ir.Location.unknown(), ir.InsertionPoint(found.operation):
        index = ir.IndexType.get()
        zero, four, one = (arith.constant(index, n) for n in (0, 4, 1))
    with module.context, ir.Location.unknown(), ir.InsertionPoint.at_block_terminator(block):
        found.operation.clone()
        loop = scf.ForOp(zero, four, one)
        with ir.InsertionPoint(loop.body):
            found.operation.clone()
            scf.yield_([])
    assert module.operation.verify()
    return module


def places_of(module, name):
    """Return the name of the operation around each operation of a name."""
    places = []

    def visit(op):
        if op.name == name:
            places.append(op.parent.name)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return places


def test_there_are_operations_of_both_kinds():
    names = {op.OPERATION_NAME for op in OPERATIONS}
    assert len(names) == 14
    assert names > PURE


@pytest.mark.parametrize("op", OPERATIONS, ids=lambda op: op.OPERATION_NAME)
def test_only_pure_operations_are_merged_dropped_and_hoisted(op):
    module = example_with_two(op)
    name = op.OPERATION_NAME
    before = places_of(module, name)
    mx_dialect.run_pipeline(module, "loop-invariant-code-motion")
    if name not in PURE:
        assert sorted(places_of(module, name)) == sorted(before)
        mx_dialect.run_pipeline(module, "cse,canonicalize,cse")
        assert sorted(places_of(module, name)) == sorted(before)
        return
    assert "scf.for" not in places_of(module, name)
    mx_dialect.run_pipeline(module, "cse,canonicalize")
    # The example's own one stays, which for a view is two that differ.
    assert len(places_of(module, name)) == (2 if name == "mx.tensor_view" else 1)


# Builders


F8, E8M0, F32 = "f8E4M3FN", "f8E8M0FNU", "f32"


def spelled(*types):
    """Return types as the parser reads them, in the current context."""
    return [ir.Type.parse(t) if isinstance(t, str) else t for t in types]


def built(build, *types):
    """Return the text of the verified module whose only function is `build` on arguments of these types."""
    with dialect.load(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            func.FuncOp.from_py_func(*spelled(*(t() if callable(t) else t for t in types)), name="f")(build)
        assert module.operation.verify()
        text = mx_dialect.to_asm(module)
        # What builders make, the parser makes of their text.
        assert mx_dialect.to_asm(mx_dialect.parse(text)) == text
        return text


def tile_type(*arguments):
    return lambda: TileType.get(*arguments)


def test_tiles_are_loaded_moved_multiplied_and_stored():
    def build(a, a_scale, b, b_scale, out, row):
        left = tile_move(tile_load(a, [row, 0], [16, 64], target="mat"), "left")
        right = tile_move(tile_load(b, [0, 0], [64, 32], target="mat"), "right")
        left_scale = tile_move(tile_load(a_scale, [row, 0], [16, 2]), "left_scale")
        right_scale = tile_move(tile_load(b_scale, [0, 0], [2, 32]), "right_scale")
        bias = tile_move(tile_create(TileType.get([1, 32], ir.F32Type.get(), "mat")), "bias")
        acc = matmul_mx_bias(left, left_scale, right, right_scale, bias, "acc")
        acc = matmul_mx_acc(acc, left, left_scale, right, right_scale)
        matmul_mx(left, left_scale, right, right_scale, "acc")
        return tile_store(acc, out, [row, 0])

    text = built(
        build,
        f"tensor<64x64x{F8}>",
        f'tensor<64x2x{E8M0}, #mx.layout<"MX_A_ZZ">>',
        f"tensor<64x32x{F8}>",
        f'tensor<2x32x{E8M0}, #mx.layout<"MX_B_NN">>',
        "tensor<64x32xf32>",
        "index",
    )
    assert re.search(r"mx\.tile_load %arg1\[%arg5, 0\] \[16, 2\] \{target = \"mat\"\} : ", text)
    assert "-> !mx.tile<2x32xf8E8M0FNU, right_scale>" in text
    assert text.count("-> !mx.tile<16x32xf32, acc>") == 3


def test_a_load_of_scales_goes_to_mat_and_others_are_undecided():
    def build(scales, plain):
        loaded, other = tile_load(scales, [0, 0], [16, 2]), tile_load(plain, [0, 0], [16, 2])
        assert (loaded.type.space, other.type.space) == ("mat", None)
        assert (loaded.owner.opview.target, other.owner.opview.target) == ("mat", None)

    built(build, f'tensor<64x2x{E8M0}, #mx.layout<"MX_A_ZZ">>', f"tensor<64x2x{E8M0}>")


def test_a_load_has_the_shapes_of_its_lists():
    def build(x, rows, start):
        loaded = tile_load(x, [start, 0], [16, 64], [rows, 64], "vec")
        assert loaded.type.spec.custom() == "!mx.tile<16x64xf8E4M3FN, vec, valid = ?x64>"
        open_ended = tile_load(x, [0, 0], [rows, 64])
        assert open_ended.type.spec.custom() == "!mx.tile<?x64xf8E4M3FN>"

    text = built(build, f"tensor<?x64x{F8}>", "index", "index")
    assert "[%arg2, 0] [16, 64] [%arg1, 64]" in text
    assert "[0, 0] [%arg1, 64] :" in text


def test_views_take_their_sizes_from_the_type():
    def build(scales, size):
        plain = tensor_view(scales, spelled(f"tensor<1x128x{E8M0}>")[0])
        tensor_view(plain, spelled(f'tensor<?x4x{E8M0}, #mx.layout<"MX_B_NN">>')[0], [size, 4])

    text = built(build, f'tensor<32x4x{E8M0}, #mx.layout<"MX_A_ZZ">>', "index")
    assert "mx.tensor_view %arg0 [1, 128]" in text or "mx.tensor_view %arg0[1, 128]" in text
    assert "[%arg1, 4]" in text


@pytest.mark.parametrize(
    ("layout", "shape", "valid", "scale"),
    [
        (MX_A_ZZ, (16, 64), (9, 33), "16x2xf8E8M0FNU, vec, valid = 9x2"),
        (MX_A_ZZ, (16, 64), (9, 32), "16x2xf8E8M0FNU, vec, valid = 9x1"),
        (MX_B_NN, (64, 32), (32, 20), "2x32xf8E8M0FNU, vec, valid = 1x20"),
        (MX_A_ZZ, (None, 64), (None, None), "?x2xf8E8M0FNU, vec, valid = ?x?"),
    ],
)
def test_quantization_gives_data_and_a_scale_for_32_elements(layout, shape, valid, scale):
    def build(x):
        data, scales = quant_mx(x, spelled(F8)[0], layout)
        assert data.type.spec == TileType.get(shape, F8, "vec", valid).spec
        assert scales.type.spec.custom() == f"!mx.tile<{scale}>"
        assert data.owner.opview.rounding == "floor"
        assert data.owner.opview.scale_layout == layout
        rounded, _ = quant_mx(x, spelled("f8E5M2")[0], layout, "even")
        assert rounded.owner.opview.rounding == "even"

    text = built(build, tile_type(shape, F32, "vec", valid))
    assert f'layout = "{layout.name}", rounding = "even"' in text


def test_casts_and_block_numbers():
    def build(x):
        cast = tile_cast(x, spelled(F8)[0], "vec")
        assert cast.type.spec.custom() == "!mx.tile<16x64xf8E4M3FN, vec, valid = 8x64>"
        assert tile_cast(x, spelled("f8E5M2")[0]).type.space is None
        return block_idx(), block_num()

    assert "-> (index, index)" in built(build, tile_type((16, 64), "f4E2M1FN", "vec", (8, 64)))


def test_bytes_become_scales_on_their_way_to_a_scale_space():
    def build(x):
        assert tile_move(x, "left_scale").type.spec.custom() == "!mx.tile<16x2xf8E8M0FNU, left_scale>"
        assert tile_move(x, "vec").type.spec.custom() == "!mx.tile<16x2xui8, vec>"
        with pytest.raises(mx_dialect.MxError, match="'l0a' is not a memory space"):
            tile_move(x, "l0a")

    built(build, tile_type((16, 2), "ui8", "mat"))


def test_submits_take_any_types_in_any_order():
    def build(x, n, scales, condition):
        first = submit("kernel", [x, n, x, scales], [x.type, scales.type], task=True)
        assert [str(r.type) for r in first] == [str(x.type), str(scales.type), "!mx.task"]
        task = first[-1]
        op = first[0].owner.opview
        assert (op.arguments, op.callee_name) == ([x, n, x, scales], "kernel")
        assert (op.values, list(op.dependencies)) == (first[:2], [])
        flags = {"sync_start": ir.UnitAttr.get()}
        again = submit("kernel", [n], [], [task, task], n, condition, True, flags)
        op = again[0].owner.opview
        assert (op.arguments, op.values, list(op.dependencies)) == ([n], [], [task, task])
        assert (list(op.core_count), list(op.predicate)) == ([n], [condition])
        assert submit("other", [], []) == []

    text = built(build, "tensor<4xf32>", "index", f'tensor<32x4x{E8M0}, #mx.layout<"MX_A_ZZ">>', "i1")
    assert "mx.submit @kernel(%arg1) after(%0#2, %0#2) cores(%arg1) if(%arg3) {sync_start} : " in text
    assert "mx.submit @other() : ()" in text


def test_a_submit_has_so_many_arguments_and_results_and_no_more():
    def build(x, n):
        values = [(x, n)[i % 2] for i in range(64)]
        results = submit("kernel", values, [v.type for v in values[:15]], task=True)
        assert results[0].owner.opview.arguments == values
        with pytest.raises(mx_dialect.MxError, match="at most 64 arguments, but is given 65"):
            submit("kernel", [*values, x], [])
        with pytest.raises(mx_dialect.MxError, match="at most 16 results, but is given 17"):
            submit("kernel", [], [x.type] * 16, task=True)

    built(build, "tensor<4xf32>", "index")


def test_scales_are_bound_by_the_pass_and_the_parser_only():
    """No public function makes the binding: a missing or doubled one would be a wrong program."""
    names = [name for module in (tile_matmul_ops, tile_ops, tile_memory_ops, mx_dialect) for name in dir(module)]
    assert "TgetScaleAddrOp" in names
    assert not [name for name in names if "scale_addr" in name.lower() and not name.endswith("Op")]


def test_kernels_are_marked_functions():
    text = """
    func.func private @a() attributes {mx.kernel = "aic"}
    func.func private @b() attributes {mx.kernel = "cpu"}
    func.func private @c() attributes {mx.kernel}
    func.func private @d()
    """
    marked, misspelt, no_kind, unmarked = (op.operation for op in mx_dialect.parse(text).body)
    assert is_kernel(marked)
    assert not is_kernel(unmarked)
    # Passed over in silence, what was meant to be a kernel would go unbound.
    for op in (misspelt, no_kind):
        with pytest.raises(mx_dialect.MxError, match="is no kind of kernel; expected "):
            is_kernel(op)


# Types and attributes


def test_tile_types_from_python():
    with dialect.load():
        dynamic = ir.ShapedType.get_dynamic_size()
        whole = TileType.get([16, None], F8)
        assert str(whole) == f'!mx.tile<tensor<16x?x{F8}>, "undecided", [16, {dynamic}]>'
        assert (whole.shape, whole.valid, whole.space) == ([16, dynamic], [16, dynamic], None)
        part = TileType.get([16, 2], ir.Type.parse(E8M0), "left_scale", [8, None])
        assert (part.shape, part.valid, part.space) == ([16, 2], [8, dynamic], "left_scale")
        assert str(part.element_type) == E8M0
        assert part == TileType.of(part.spec) == ir.Type.parse(str(part))
        assert str(TaskType.get()) == "!mx.task"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([16], F8), "a tile must have rank 2, but has 1"),
        (([1, 2, 3], F8), "a tile must have rank 2, but has 3"),
        (([16, 2], "f64"), "'f64' is not an element type of tiles; expected one of f8E4M3FN, "),
        (([16, 2], F8, "l1"), "'l1' is not a memory space; expected one of vec, mat, left, "),
        (([16, 2], F8, None, [16]), "a valid shape has the rank of its tile, 2, but has 1"),
        (([16, 2], F8, None, [17, 2]), "valid extent 17 of axis 0 must be at most the extent 16"),
        (([16, None], F8, None, [16, -1]), "valid extent -1 of axis 1 must be 0 or more"),
    ],
)
def test_tile_types_that_break_a_rule(arguments, message):
    with dialect.load(), pytest.raises(mx_dialect.MxError, match=re.escape(message)):
        TileType.get(*arguments)


def test_layouts_from_python():
    with dialect.load():
        name, unit = ir.StringAttr.get("MX_B_NN"), ir.UnitAttr.get()
        plain = LayoutAttr.of({"layout": name})
        assert str(plain) == '#mx.layout<"MX_B_NN">'
        assert (plain.layout, plain.strides, plain.valid_shape, plain.distributed) == (MX_B_NN, None, None, False)
        numbers = ir.ArrayAttr.get([ir.IntegerAttr.get(ir.IntegerType.get_signless(64), n) for n in (64, 1)])
        full = LayoutAttr.of({"layout": name, "strides": numbers, "valid_shape": numbers, "distributed": unit})
        assert (full.layout, full.strides, full.valid_shape, full.distributed) == (MX_B_NN, [64, 1], [64, 1], True)
        assert LayoutAttr.of(full.entries) == full
        tensor = ir.Type.parse(f"tensor<4x64x{E8M0}, {full}>")
        assert layout_of(tensor) == full
        assert layout_of(ir.Type.parse(f"tensor<4x64x{E8M0}>")) is None
        assert layout_of(ir.Type.parse(f'tensor<4x64x{E8M0}, "MX_B_NN">')) is None
        assert layout_of(ir.F32Type.get()) is None
