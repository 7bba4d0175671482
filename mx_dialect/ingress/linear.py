"""Linear layers with constant weights, quantized: `quantize_linear`, which the pass mx-quantize-linear runs."""

import contextlib
import fnmatch
import importlib
import io
import sys
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mx_dialect import api, dialect
from mx_dialect._mlir import ir
from mx_dialect.diagnostics import error_at, remark_at
from mx_dialect.formats import DEFAULT_ROUNDING, ELEMENT_FORMATS
from mx_dialect.ingress.activations import FLOATS, extended, filled, rounded
from mx_dialect.ingress.constant_weights import Globals, Weight, globals_under, weight_of
from mx_dialect.ingress.contractions import Contraction, contraction
from mx_dialect.ingress.dead_weights import erase_globals, erase_unused
from mx_dialect.ingress.quantize_weight import Quantized, quantize_weight
from mx_dialect.ops import block_matmul, compose
from mx_dialect.storage_ops import UnpackOp
from mx_dialect.types import TensorType
from mx_dialect.walk import in_scopes, is_function


@dataclass(frozen=True)
class QuantizedWeight:
    """What was done to one weight: its name and shape, the element format, decibels of signal over noise, sizes.

    `non_finite` of its values are NaN or infinite; their blocks are NaN now and are left out of `sqnr_db`. K was longer
    by `padding` zeros afterwards, to be whole blocks.
    """

    name: str
    shape: tuple[int, ...]
    format: str
    sqnr_db: float
    bytes_before: int
    bytes_after: int
    non_finite: int = 0
    padding: int = 0

    def __str__(self) -> str:
        spoilt = f", {self.non_finite} NaN or Inf, whose blocks are NaN" if self.non_finite else ""
        padded = f", K padded by {self.padding}" if self.padding else ""
        return (
            f"{self.name}: {'x'.join(map(str, self.shape))} to {self.format}, SQNR {self.sqnr_db:.1f} dB, "
            f"{self.bytes_before} to {self.bytes_after} bytes{padded}{spoilt}"
        )


@dataclass(frozen=True)
class Choice:
    """Which weights are quantized, and how."""

    format: str
    rounding: str
    block_size: int
    min_elements: int
    exclude: tuple[str, ...]


@dataclass(frozen=True)
class _Match:
    """A product and its weight. `source` has, for each axis of the weight as it is stored, its axis in the constant.

    None stands for an axis of extent 1 that the constant does not have; the last axis is K.
    """

    product: Contraction
    weight: Weight
    is_lhs: bool
    source: tuple[int | None, ...]
    transpose_rhs: bool

    @property
    def value(self) -> Any:
        return self.product.lhs if self.is_lhs else self.product.rhs

    @property
    def activation(self) -> Any:
        return self.product.rhs if self.is_lhs else self.product.lhs

    @property
    def k_axis(self) -> int:
        """Return the axis of the activation that is summed over."""
        return self.activation.type.rank - (1 if self.transpose_rhs or not self.is_lhs else 2)

    @property
    def key(self) -> Any:
        return self.weight.value, self.source

    @property
    def k(self) -> int:
        """Return the extent of K in the constant."""
        axis = self.source[-1]
        return 1 if axis is None else self.weight.shape[axis]


@dataclass
class _Done:
    """What has been quantized so far, by constant and order of axes."""

    weights: dict[Any, Quantized] = field(default_factory=lambda: {})
    rows: dict[Any, QuantizedWeight] = field(default_factory=lambda: {})


def quantize_linear(
    module: Any,
    format: str = "f8E4M3FN",
    rounding: str = DEFAULT_ROUNDING,
    block_size: int = 32,
    min_elements: int = 0,
    exclude: str | Sequence[str] = (),
) -> list[QuantizedWeight]:
    """Quantize the constant weights of matrix products in a module, in place, and return a row for each.

    The products become `mx.block_matmul` on constants of codes and scales; the float constants that nothing uses any
    more are erased. A weight of less than `min_elements` elements stays as it is, and so does one that a pattern of
    `exclude` matches: as `fnmatch` has them, against the name of its resource, its symbol, or a name in its location.

    Raises:
        MxError: an unknown format or rounding mode, a block size that is no power of two, a weight without data.
    """
    from mx_dialect import passes

    known: Any = passes.get("mx-quantize-linear")
    text = {"format": format, "rounding": rounding, "block-size": str(block_size), "min-elements": str(min_elements)}
    known.parse_options(text)
    dialect.load(module.context)
    patterns = (exclude,) if isinstance(exclude, str) else tuple(exclude)
    return quantize_products(module.operation, Choice(format, rounding, block_size, min_elements, patterns))


def in_new_context(module: Any) -> ir.Module:
    """Return a copy of a module in a context of its own, which holds no constant that the module does not use.

    A context keeps every constant it has seen until it goes away: drop the module and its context to free them.

    Raises:
        MxError: the module is not valid.
    """
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return api.parse(buffer.getvalue())


def quantize_products(root: Any, choice: Choice) -> list[QuantizedWeight]:
    """Do what `quantize_linear` says to the operations under `root`."""
    with root.context:
        known = globals_under(root)
        matches = [(scope, m) for scope, op in in_scopes(root, _is_scope) if (m := _match(op, known, choice))]
        values = [m.value for _, m in matches]
        done = _Done()
        sizes = {m.key: m.weight.size for _, m in matches}
        with _progress(sum(sizes.values())) as advance:
            composed: dict[Any, Any] = {}
            for scope, match in matches:
                _quantize(match, choice, done, advance)
                _rewrite(match, scope, choice, done, composed)
        holders = [m.weight.holder for _, m in matches if m.weight.holder.name == "ml_program.global"]
        erase_unused(values)
        erase_globals(root, holders)
        return list(done.rows.values())


def _is_scope(op: Any) -> bool:
    """Tell whether values from around an operation may not be used in it."""
    return is_function(op) or op.name == "builtin.module"


def _match(op: Any, known: Globals, choice: Choice) -> _Match | None:
    product = contraction(op)
    if product is None:
        return None
    sides = [weight_of(v, known) for v in (product.lhs, product.rhs)]
    weight = sides[1] or sides[0]
    if weight is None or all(sides):
        return None
    is_lhs = sides[1] is None
    if _is_excluded(weight, choice):
        return None
    source = _stored_axes(product, weight, is_lhs)
    transposed = _activation_is_transposed(product, is_lhs)
    obstacle = _obstacle(product, weight, is_lhs, source, transposed)
    if obstacle is not None:
        remark_at(op, f"'{op.name}' op keeps its weight in {weight.element}: {obstacle}")
        return None
    return _Match(product, weight, is_lhs, tuple(source or ()), bool(transposed) if is_lhs else True)


def _is_excluded(weight: Weight, choice: Choice) -> bool:
    if weight.size < max(choice.min_elements, 1):
        return True
    return any(fnmatch.fnmatchcase(name, pattern) for name in weight.names for pattern in choice.exclude)


def _stored_axes(product: Contraction, weight: Weight, is_lhs: bool) -> list[int | None] | None:
    """Return for [batch..., rows or columns, K] of the weight its axes in the constant; None if one is broadcast."""
    dims = product.dims[0 if is_lhs else 1]
    by_loop = dict(zip(dims, weight.axes, strict=True))
    matrix = [by_loop[product.dims[2][-2 if is_lhs else -1]], by_loop[product.k]]
    if None in matrix:
        return None
    batch = [by_loop.get(loop) for loop in product.batch]
    while batch and batch[0] is None:
        batch.pop(0)
    return [*batch, *matrix]


def _activation_is_transposed(product: Contraction, is_lhs: bool) -> bool | None:
    """Tell whether the other side is [batch..., N, K]; None if its axes are in an order that no product has."""
    dims = product.dims[1 if is_lhs else 0]
    own, k = product.dims[2][-1 if is_lhs else -2], product.k
    batch = product.batch[len(product.batch) - (len(dims) - 2) :]
    if dims[:-2] != batch:
        return None
    if dims[-2:] == (own, k):
        return True
    return False if is_lhs and dims[-2:] == (k, own) else None


def _obstacle(
    product: Contraction,
    weight: Weight,
    is_lhs: bool,
    source: list[int | None] | None,
    transposed: bool | None,
) -> str | None:
    """Return why a product cannot be rewritten, or None."""
    activation = product.rhs if is_lhs else product.lhs
    if not weight.is_float:
        return "weights must be f32, f16 or bf16"
    for value, role in ((activation, "activations"), (product.acc, "accumulator")):
        if str(value.type.element_type) not in FLOATS or value.type.encoding is not None:
            return f"{role} must be a tensor of f32, f16 or bf16, but the type is '{value.type}'; convert to f32"
    if source is None:
        return "it is broadcast along K or along its rows"
    if transposed is None:
        return "the axes of the activations are not [batch..., M, K]; transpose them first"
    return None


def _quantize(match: _Match, choice: Choice, done: _Done, advance: Callable[[int], object]) -> None:
    if match.key in done.weights:
        return
    weight, op = match.weight, match.product.op
    try:
        values = weight.values()
    except LookupError as lack:
        name = weight.names[0] if weight.names else "without a name"
        raise error_at(op, f"'{op.name}' op weight {name} cannot be read: {lack}; give the module its data") from None
    padding = -match.k % choice.block_size
    stored = _stored(values, match.source)
    # Zeros change no scale: a block has at least one of the weight's own values.
    whole = np.pad(stored, [(0, 0)] * (stored.ndim - 1) + [(0, padding)]) if padding else stored
    quantized = quantize_weight(whole, choice.format, choice.block_size, choice.rounding, advance)
    array = quantized.array
    bits = ELEMENT_FORMATS[choice.format].bits
    row = QuantizedWeight(
        weight.names[0] if weight.names else "constant",
        weight.shape,
        choice.format,
        quantized.sqnr_db,
        weight.size_in_bytes,
        array.mantissa.size * bits // 8 + array.scale.size,
        quantized.non_finite,
        padding,
    )
    done.weights[match.key], done.rows[match.key] = quantized, row


def _stored(values: Any, source: tuple[int | None, ...]) -> Any:
    """Return the numbers of a constant with its axes as `source` says; axes that it leaves out have extent 1."""
    used = [axis for axis in source if axis is not None]
    left_out = [axis for axis in range(values.ndim) if axis not in used]
    moved = values.transpose(*left_out, *used).reshape([values.shape[axis] for axis in used])
    return moved.reshape([1 if axis is None else values.shape[axis] for axis in source])


def _rewrite(match: _Match, scope: Any, choice: Choice, done: _Done, composed: dict[Any, Any]) -> None:
    """Replace a product by mx.block_matmul; a function has the constants of a weight once, at its start."""
    op = match.product.op
    remark_at(op, f"quantized weight {done.rows[match.key]}")
    function = scope if scope is not None and is_function(scope) else None
    place = (function or op, match.key)
    if place not in composed:
        start = ir.InsertionPoint(op) if function is None else ir.InsertionPoint.at_block_begin(_entry(function))
        with start, match.weight.holder.location:
            composed[place] = _constants(done.weights[match.key].array, choice)
    weight = composed[place]
    whole = done.weights[match.key].array.shape[-1]
    with ir.InsertionPoint(op), op.location:
        activation = extended(filled(match.activation, match.k_axis, match.k, whole))
        lhs, rhs = (weight, activation) if match.is_lhs else (activation, weight)
        product = block_matmul(lhs, rhs, extended(match.product.acc), match.transpose_rhs)
        result = rounded(product, op.results[0].type)
    op.results[0].replace_all_uses_with(result)
    op.erase()


def _entry(function: Any) -> Any:
    return function.regions[0].blocks[0]


def _constants(array: Any, choice: Choice) -> Any:
    """Make the mx tensor of an array of constants at the insertion point; codes of less than a byte are packed."""
    fmt = ELEMENT_FORMATS[choice.format]
    byte = ir.IntegerType.get_signless(8)
    type_ = TensorType.get(list(array.shape), ir.Type.parse(choice.format), choice.block_size)
    if fmt.bits < 8:
        packed = _constant(array.packed(), byte)
        codes = UnpackOp(packed, ir.TypeAttr.get(type_.element_type), ir.RankedTensorType.get(array.shape, byte)).codes
    else:
        codes = _constant(array.mantissa.view(np.uint8), type_.element_type)
    scale = _constant(array.scale.view(np.uint8), type_.scale_type)
    if fmt.bits >= 8:
        return compose(codes, scale, choice.block_size)
    from mx_dialect.ops import ComposeOp

    return ComposeOp(codes, scale, type_).output


def _constant(codes: Any, element_type: Any) -> Any:
    """Make an arith.constant of codes, a byte each."""
    type_ = ir.RankedTensorType.get(codes.shape, element_type)
    value = ir.DenseElementsAttr.get(np.ascontiguousarray(codes), type=type_)
    return ir.Operation.create("arith.constant", results=[type_], attributes={"value": value}).result


@contextlib.contextmanager
def _progress(total: int) -> Generator[Callable[[int], object]]:
    """Show a bar on standard error if that is a terminal, tqdm is installed and the work takes over a second."""
    try:
        tqdm = importlib.import_module("tqdm").tqdm
    except ImportError:
        yield lambda _: None
        return
    with tqdm(total=total, delay=1, leave=False, disable=None, unit="value", unit_scale=True, file=sys.stderr) as bar:
        yield bar.update
