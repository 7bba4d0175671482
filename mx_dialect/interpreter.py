"""What a function of the value level computes, in numpy: the reference that `mx-run --check` compares kernels with.

Shares no code with the lowerings: mx operations mean what `reference` says, named linalg operations what MLIR's own
generalization says, and floats are computed in double precision, each with a bound on how far a float32 kernel may lie
(`interpreter_values`). Codes are exact: `mx.quantize_block` of exact floats gives the bits of `reference.quantize`.
Quantizing what a kernel knows only up to roundings may go either way; nothing is claimed then.

Evaluated are the mx operations of the value level, func.call, linalg on tensors, and what `interpreter_control`,
`_tensor`, `_scalar`, `_math` and `_narrow` have. Everything else is refused by name.
"""

import re
from collections import ChainMap
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from mx_dialect import (
    interpreter_constants,
    interpreter_control,
    interpreter_scalar,
    interpreter_tensor,
    reference,
)
from mx_dialect._mlir import ir, transform_interpreter
from mx_dialect.codes import numpy_dtype
from mx_dialect.diagnostics import error_at
from mx_dialect.fold_chain import power_of_two
from mx_dialect.interpreter_tensor import Unsupported, shape_of, window
from mx_dialect.interpreter_values import (
    PRECISIONS,
    Array,
    Blocks,
    Floats,
    Value,
    element_of,
    exact,
    product,
    times,
)
from mx_dialect.layouts import packed
from mx_dialect.mx_array import MxArray
from mx_dialect.reference import Quantized
from mx_dialect.storage_ops import format_of

_DEEPEST = 64
_TERMINATORS = ("func.return", "linalg.yield", "scf.condition", "scf.yield")
_REMEDY = "compare with given arrays instead: --check=FILE.npz"


def evaluate(module: Any, name: str, arguments: Sequence[Any]) -> list[Value]:
    """Return the results of a function for arrays, scalars as arrays of rank 0, and MxArrays.

    The module is changed: its named linalg operations become generic ones.

    Raises:
        MxError: at an operation that is not evaluated, or that is undefined for these arguments.
    """
    _generalize(module)
    functions = {
        ir.StringAttr(op.operation.attributes["sym_name"]).value: op.operation
        for op in module.body
        if op.operation.name == "func.func"
    }
    function = functions[name]
    types = [argument.type for argument in function.regions[0].blocks[0].arguments]
    given = [_argument(value, type_) for value, type_ in zip(arguments, types, strict=True)]
    return _Evaluation(functions).call(function, given, 0)


# The pass linalg-generalize-named-ops folds, and makes infinities of scales that are NaN.
_GENERALIZATION = """
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
    %named = transform.structured.match interface{LinalgOp} in %root : (!transform.any_op) -> !transform.any_op
    %generic = transform.structured.generalize %named : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}"""


def _generalize(module: Any) -> None:
    """Turn the named linalg operations of a module into generic ones, and nothing else."""
    with module.context:
        program = ir.Module.parse(_GENERALIZATION)
        transform_interpreter.apply_named_sequence(module.operation, program.body.operations[0], program.operation)


def _argument(given: Any, type_: Any) -> Value:
    if isinstance(given, MxArray):
        return Blocks(Quantized(given.mantissa, given.scale, given.block_size, given.axis, given.element_type))
    element = element_of(type_)
    return exact(given, element) if element in PRECISIONS else np.asarray(given)


class _Evaluation:
    """One run of a module's functions."""

    def __init__(self, functions: dict[str, Any]):
        self._functions = functions
        self._iterations = interpreter_control.Iterations()

    def call(self, function: Any, arguments: Sequence[Value], depth: int) -> list[Value]:
        if len(function.regions[0].blocks) != 1:
            raise error_at(function, f"a function of one block is evaluated, no branches; {_REMEDY}")
        results = self._block(function.regions[0].blocks[0], arguments, ChainMap(), depth)
        return [_folded_in(value, function) for value in results]

    def _block(self, block: Any, arguments: Sequence[Value], outer: ChainMap[Any, Value], depth: int) -> list[Value]:
        """Return the values of a block's terminator; `outer` has the values around it.

        `depth` is in how many calls, loops and branches it is.
        """
        if depth > _DEEPEST:
            raise error_at(
                block.owner, f"calls, loops and branches nest deeper than the {_DEEPEST} that --check follows"
            )
        # A body sees the values around it; copying them for each point of a loop would take most of the time.
        known = outer.new_child(dict(zip(block.arguments, arguments, strict=True)))
        for op in block.operations:
            operation = op.operation
            operands = [known[value] for value in operation.operands]
            if operation.name in _TERMINATORS:
                return operands
            try:
                results = self._operation(operation, operands, known, depth)
            except (Unsupported, interpreter_scalar.Undecided) as error:
                raise error_at(operation, f"'{operation.name}' op {error}; {_REMEDY}") from None
            except MemoryError:
                raise error_at(operation, f"'{operation.name}' op needs more memory than there is") from None
            if results is None:
                raise error_at(operation, f"'{operation.name}' op is not evaluated by --check; {_REMEDY}")
            known.update(zip(operation.results, results, strict=True))
        raise error_at(block.owner, f"a block without a terminator is not evaluated; {_REMEDY}")

    def _operation(self, op: Any, operands: list[Value], known: ChainMap[Any, Value], depth: int) -> list[Value] | None:
        """Return an operation's results, None if it is not known."""
        if op.name == "func.call":
            callee = self._functions[ir.FlatSymbolRefAttr(op.attributes["callee"]).value]
            return self.call(callee, [_folded_in(value, op) for value in operands], depth + 1)

        def run(block: Any, given: Sequence[Value]) -> list[Value]:
            return self._block(block, given, known, depth + 1)

        if op.name == "linalg.generic" and op.results:
            return interpreter_tensor.generic(op, operands, run)
        followed = interpreter_control.evaluate(op, operands, run, self._iterations)
        if followed is not None:
            return followed
        if op.name == "mx.decompose":
            return _decompose(op, operands)
        for evaluate_op in (
            _mx,
            interpreter_constants.evaluate,
            interpreter_tensor.evaluate,
            interpreter_scalar.evaluate,
        ):
            result = evaluate_op(op, operands)
            if result is not None:
                return [result]
        return None


def _mx(op: Any, operands: list[Value]) -> Value | None:
    found = _MX.get(op.name)
    return None if found is None else found(op, *operands)


def _quantize(op: Any, source: Floats) -> Value:
    spec = op.results[0].type.spec
    data = reference.quantize(
        source.stored() if source.is_exact else source.values.astype(np.float32),
        spec.element,
        spec.block_size,
        spec.axis,
        op.opview.rounding,
        spec.scale_type,
    )
    return Blocks(data, source.is_exact)


def _floats(value: Blocks | Floats) -> Floats:
    """Return what the elements are worth, as floats of f32 or of their own type."""
    if isinstance(value, Floats):
        return value
    values = exact(reference.dequantize(value.data), "f32")
    if not value.exact:
        values = Floats(values.values, np.full(values.values.shape, np.inf), "f32")
    return values if value.factor is None else times(values, value.factor)


def _dequantize(op: Any, source: Blocks) -> Value:
    element = element_of(op.results[0].type)
    values = _floats(source)
    if element == "f32":
        return values
    narrowed = interpreter_scalar.truncated(values, element)
    assert narrowed is not None  # The verifier knows three float types.
    return narrowed


def _matmul(op: Any, lhs: Blocks | Floats, rhs: Blocks | Floats, acc: Floats) -> Value:
    transposed = op.opview.transpose_rhs
    sides = [_operand(lhs), _operand(rhs)]
    if sides[0] is None or sides[1] is None:
        right = _floats(rhs)
        if transposed:
            right = Floats(right.values.swapaxes(-1, -2), right.error.swapaxes(-1, -2), right.element)
        return product(_floats(lhs), right, acc)
    with np.errstate(all="ignore"):
        values = reference.matmul(sides[0], sides[1], transpose_rhs=transposed) + acc.values
        largest = np.nextafter((np.abs(acc.values) + acc.error).astype(np.float32), np.float32(np.inf))
        bound = reference.matmul_bound(sides[0], sides[1], largest, transpose_rhs=transposed)
        error = bound + acc.error
    return Floats(values, np.where(np.isfinite(error), error, np.inf), "f32")


def _operand(value: Blocks | Floats) -> Quantized | Array | None:
    """Return a side that a kernel has exactly, as `reference` takes it; None for another."""
    if isinstance(value, Floats):
        return value.stored() if value.is_exact else None
    return value.data if value.exact and value.factor is None else None


def _fold(op: Any, source: Blocks, factor: Floats) -> Value:
    # Factors of nested folds are multiplied with each other first, innermost first.
    total = factor if source.factor is None else times(source.factor, factor)
    return Blocks(source.data, source.exact, total)


def _folded_in(value: Value, where: Any) -> Value:
    """Return a value with its factor in the scales, which takes a power of two.

    Raises:
        MxError: it is none, or a scale leaves its range.
    """
    if not isinstance(value, Blocks) or value.factor is None:
        return value
    exponent = power_of_two(float(value.factor.values)) if value.factor.is_exact else None
    scale = np.asarray(value.data.scale)
    if exponent is None or str(scale.dtype) != "float8_e8m0fnu":
        raise error_at(where, f"a folded factor that is no power of two of its scales is not evaluated; {_REMEDY}")
    codes = scale.view(np.uint8).astype(np.int64)
    moved = np.where(codes == 255, 255, codes + exponent)
    if np.any((codes != 255) & ((moved < 0) | (moved > 254))):
        raise error_at(where, "a folded factor takes a scale out of its range")
    data = value.data
    scaled = Quantized(
        data.mantissa, moved.astype(np.uint8).view(scale.dtype), data.block_size, data.axis, data.element_type
    )
    return Blocks(scaled, value.exact)


def _compose(op: Any, mantissa: Array | Floats, scale: Array | Floats) -> Value:
    if isinstance(mantissa, Floats) or isinstance(scale, Floats):
        raise Unsupported("takes codes that roundings may change")
    spec = op.results[0].type.spec
    dtype = numpy_dtype(spec.element)
    if mantissa.dtype != dtype:
        bits = int(re.sub(r"\D.*", "", spec.element[1:]))
        mantissa = (mantissa.view(np.uint8) & ((1 << bits) - 1)).view(dtype)
    return Blocks(Quantized(mantissa, scale, spec.block_size, spec.axis, spec.element))


def _decompose(op: Any, operands: list[Value]) -> list[Value]:
    whole = cast(Blocks, _folded_in(operands[0], op))
    if not whole.exact:
        raise Unsupported("takes codes apart that roundings may change")
    element = element_of(op.results[0].type)
    mantissa = np.asarray(whole.data.mantissa)
    return [mantissa.view(np.int8) if element == "i8" else mantissa, np.asarray(whole.data.scale)]


def _dim(op: Any, source: Blocks, axis: Array) -> Value:
    shape = shape_of(source)
    if not 0 <= int(axis) < len(shape):
        raise Unsupported(f"asks for axis {int(axis)} of a tensor of rank {len(shape)}")
    return np.array(shape[int(axis)], np.int64)


def _cast(op: Any, source: Blocks) -> Value:
    return source


def _extract_slice(op: Any, source: Blocks, *dynamic: Value) -> Value:
    data = source.data
    where = list(window(op, list(dynamic), shape_of(source)))
    elements = tuple(where)
    along = where[data.axis]
    if along.start % data.block_size or along.stop % data.block_size:
        raise Unsupported(f"cuts a block of {data.block_size}")
    where[data.axis] = slice(along.start // data.block_size, along.stop // data.block_size)
    part = Quantized(data.mantissa[elements], data.scale[tuple(where)], data.block_size, data.axis, data.element_type)
    return Blocks(part, source.exact, source.factor)


def _pack(op: Any, codes: Array) -> Value:
    bits = format_of(op).bits
    return packed.pack(codes.view(np.uint8) & np.uint8((1 << bits) - 1), bits).view(np.int8)


def _unpack(op: Any, stored: Array) -> Value:
    return packed.unpack(stored.view(np.uint8), format_of(op).bits).view(np.int8)


_MX: dict[str, Any] = {
    "mx.quantize_block": _quantize,
    "mx.dequantize_block": _dequantize,
    "mx.block_matmul": _matmul,
    "mx.fold_scale": _fold,
    "mx.compose": _compose,
    "mx.dim": _dim,
    "mx.cast": _cast,
    "mx.extract_slice": _extract_slice,
    "mx.pack": _pack,
    "mx.unpack": _unpack,
}
