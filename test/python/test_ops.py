"""The operations from Python: docstrings, builders, accessors."""

import re

import pytest

import mx_dialect
from mx_dialect import dialect, ops
from mx_dialect._mlir import ext, func, ir
from mx_dialect.dialect import Mx
from mx_dialect.types import TensorType

dialect.define()
OPERATIONS = [pytest.param(op, id=op.OPERATION_NAME) for op in Mx.operations]
SHORT = "!mx.tensor<32x64xf8E4M3FN, block_size = 32, scale_type = f8E8M0FNU>"


@pytest.mark.parametrize("op", OPERATIONS)
def test_docstring_has_meaning_table_errors_and_an_example_that_parses(op: type) -> None:
    text = op.__doc__ or ""
    assert re.search(r"^\s*\| value ", text, re.MULTILINE)
    assert "Errors: " in text
    assert op.OPERATION_NAME in mx_dialect.to_asm(example_of(op))
    operands, _, results, _ = ext.partition_fields(op._fields)
    for field in (*operands, *results):
        # The fields name_0, name_1 and on are one row, as is the only result.
        name = re.sub(r"_\d+$", "", field.name)
        names = f"{name}|result" if name == "output" else name
        assert re.search(rf"^\s*\| ({names})\b", text, re.MULTILINE), field.name


def example_of(op: type) -> ir.Module:
    example = re.search(r"```mlir\n(.*?)```", op.__doc__ or "", re.DOTALL)
    assert example is not None
    return mx_dialect.parse(example[1], "docstring")


def lowering_of(op: type) -> str:
    """Return the pipeline that takes an operation's level to linalg."""
    module = op.__module__.removeprefix("mx_dialect.")
    if module.startswith("tile_") or module == "submit_ops":
        return "mx-tile-to-linalg"
    return "mx-neuron-expand-load,mx-neuron-to-linalg" if module.startswith("neuron_") else "mx-to-linalg"


@pytest.mark.parametrize("op", OPERATIONS)
def test_example_lowers(op: type) -> None:
    module = example_of(op)
    mx_dialect.run_pipeline(module, lowering_of(op))
    assert not [name for name in names_in(module) if name.startswith("mx.")]


def names_in(module: ir.Module) -> list[str]:
    """Return the names of all operations of a module."""
    names: list[str] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        names.append(op.name)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return names


def test_builders_infer_their_result_types() -> None:
    with dialect.load(), ir.Location.unknown():
        f32, f8 = ir.F32Type.get(), ir.Type.parse("f8E4M3FN")
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):

            @func.FuncOp.from_py_func(
                ir.RankedTensorType.get([32, 64], f32), ir.RankedTensorType.get([32, 8], f32), f32
            )
            def build(x: ir.Value, acc: ir.Value, factor: ir.Value) -> ir.Value:
                a = ops.quantize_block(x, f8, rounding="ceil")
                assert str(mx_dialect.to_asm(a.owner)).endswith(f"{SHORT[10:]}")
                mantissa, scale = ops.decompose(a)
                a = ops.fold_scale(ops.compose(mantissa, scale), factor)
                dense = ops.dequantize_block(a)
                b = ops.quantize_block(dense, f8, axis=0)
                assert b.type.axis == 0
                assert list(b.type.scale_tensor_type.shape) == [1, 64]
                with pytest.raises(mx_dialect.MxError, match="extent 64 of blocked axis 1 is not a multiple"):
                    ops.quantize_block(x, f8, block_size=128)
                transposed = ir.Operation.create("tensor.empty", results=[ir.RankedTensorType.get([64, 8], f32)]).result
                return ops.block_matmul(a, transposed, acc)

        assert module.operation.verify()
        assert 'rounding = "ceil"' in mx_dialect.to_asm(module)


def test_type_from_python() -> None:
    with dialect.load():
        f8 = ir.Type.parse("f8E4M3FN")
        type_ = TensorType.get([4, None, 64], f8, block_size=16, axis=-1)
        dynamic = ir.ShapedType.get_dynamic_size()
        assert type_.shape == [4, dynamic, 64]
        assert (type_.rank, type_.block_size, type_.axis) == (3, 16, 2)
        assert str(type_.element_type) == "f8E4M3FN"
        assert str(type_.scale_type) == "f8E8M0FNU"
        assert str(type_.mantissa_type) == "tensor<4x?x64xf8E4M3FN>"
        assert str(type_.scale_tensor_type) == "tensor<4x?x4xf8E8M0FNU>"
        assert type_ == TensorType.get([4, -1, 64], f8, 16)
        for shape, block, axis in (([64], 3, 0), ([64], 0, 0), ([63], 32, 0), ([], 32, 0), ([64], 32, 1)):
            with pytest.raises(mx_dialect.MxError):
                TensorType.get(shape, f8, block, axis=axis)
        with pytest.raises(mx_dialect.MxError, match="not an MX element type"):
            TensorType.get([64], ir.F32Type.get())


def test_a_type_the_bindings_let_through_is_caught_by_the_walk() -> None:
    """A type made behind the builders' back is found wherever it stands."""
    from mx_dialect.types import verify_types

    bad = "!mx.tensor<tensor<4x70xf8E4M3FN>, 32 : i64, f8E8M0FNU, 1 : i64>"
    for text in (
        f"func.func private @f({bad})",
        f"func.func private @f() -> {bad}",
        f"func.func private @f() attributes {{a = [{{b = {bad}}}]}}",
        f"func.func private @f(tuple<i32, {bad}>)",
        f"func.func @f(%c: i1, %x: i32) {{ cf.br ^bb1\n ^bb1:\n %0 = ub.poison : {bad}\n return }}",
        f"func.func @f() {{ cf.br ^bb2\n ^bb1(%y: {bad}): return\n ^bb2: return }}",
    ):
        with dialect.load():
            module = ir.Module.parse(text)
            errors = verify_types(module.operation)
        assert errors, text
        assert "extent 70 of blocked axis 1 is not a multiple of block size 32" in errors[0].message
        assert "4x70xf8E4M3FN, block_size = 32" in errors[0].message


def test_pure_operations_are_merged_and_dropped() -> None:
    text = f"""
    func.func @f(%x: tensor<32x64xf32>) -> ({SHORT}, {SHORT}) {{
      %0 = mx.quantize_block %x : tensor<32x64xf32> -> {SHORT}
      %1 = mx.quantize_block %x : tensor<32x64xf32> -> {SHORT}
      %2 = mx.quantize_block %x {{rounding = "ceil"}} : tensor<32x64xf32> -> {SHORT}
      return %0, %1 : {SHORT}, {SHORT}
    }}"""
    module = mx_dialect.parse(text)
    mx_dialect.run_pipeline(module, "cse,canonicalize")
    assert mx_dialect.to_asm(module).count("mx.quantize_block") == 1


def test_load_twice_and_in_several_contexts() -> None:
    first = mx_dialect.load()
    assert mx_dialect.load(first) is first
    second = ir.Context()
    second.enable_multithreading(True)
    mx_dialect.load(second)
    assert second.get_num_threads() == 1
    text = f"func.func private @f({SHORT})"
    for context in (first, second, mx_dialect.load(), first):
        module = mx_dialect.parse(text, context=context)
        assert module.context == context
        assert SHORT in mx_dialect.to_asm(module)
