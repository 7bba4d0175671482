"""What `mx-tile-matmul` and `mx-neuron-matmul` share, which lower matmuls of two MX values to kernels of an engine.

They find the matmuls, refuse those that the engine does not take, and make one kernel for all that pose one problem.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from mx_dialect._mlir import ir
from mx_dialect.diagnostics import Diagnostic, MxError, at, error_at
from mx_dialect.formats import E8M0
from mx_dialect.ops import BlockMatmulOp
from mx_dialect.types import TensorType
from mx_dialect.walk import operations

BLOCK_SIZE = 32
"""The elements that share a scale, on every engine here."""

_MODULE = "builtin.module"
_MOST_BYTES = 1 << 62
_MOST_PADDING = 64
_OTHERWISE = "or lower it with --mx-to-linalg"


@dataclass(frozen=True)
class Engine:
    """A matrix engine: the pass that lowers to it, the element types that it multiplies, and what else it asks for.

    `rule` returns what it asks for in place of a matmul of valid sides, None if it takes it. `build` builds the kernel
    function of a problem, which has a `name`, under that name or another one.
    """

    flag: str
    elements: tuple[str, ...]
    build: Callable[[Any, str], Any]
    rule: Callable[[BlockMatmulOp], str | None] = lambda op: None


class Kernels:
    """The kernel functions made in a module so far, one for each problem."""

    def __init__(self, module: Any, build: Callable[[Any, str], Any]):
        self.body = module.regions[0].blocks[0]
        self._build = build
        self._taken = set(_symbols(self.body))
        self._made: dict[Any, Any] = {}

    def kernel(self, problem: Any) -> Any:
        """Return the function that computes a problem."""
        if problem not in self._made:
            with ir.InsertionPoint(self.body):
                self._made[problem] = self._build(problem, self._free_name(problem.name))
        return self._made[problem]

    def _free_name(self, wanted: str) -> str:
        name, count = wanted, 0
        while name in self._taken:
            name, count = f"{wanted}_{count}", count + 1
        self._taken.add(name)
        return name


def _symbols(body: Any) -> Iterable[str]:
    for op in body:
        attribute = op.operation.attributes.get("sym_name")
        if isinstance(attribute, ir.StringAttr):
            yield attribute.value


def replace_matmuls(root: Any, engine: Engine, lower: Callable[[BlockMatmulOp, Kernels], Any]) -> None:
    """Replace every block_matmul under the module `root` whose sides are both MX by what `lower` builds before it.

    Raises:
        MxError: `root` is no module, or one error for each matmul that the engine cannot run.
    """
    with root.context, ir.Location.unknown():
        matmuls = [op.opview for op in operations(root, _is_mx_matmul)]
        if not matmuls:
            return
        if root.name != _MODULE:
            raise error_at(root, f"--{engine.flag} adds functions to a module; run it on {_MODULE}, not '{root.name}'")
        errors = [error for op in matmuls if (error := _error(op, engine)) is not None]
        if errors:
            raise MxError.of(*errors)
        kernels: dict[Any, Kernels] = {}
        for op in matmuls:
            module = _module_of(op)
            if module not in kernels:
                kernels[module] = Kernels(module, engine.build)
            _replace(op, kernels[module], lower)


def _is_mx_matmul(op: Any) -> bool:
    matmul = op.opview
    return isinstance(matmul, BlockMatmulOp) and all(
        isinstance(value.type, TensorType) for value in (matmul.lhs, matmul.rhs)
    )


def _error(op: BlockMatmulOp, engine: Engine) -> Diagnostic | None:
    """Return why the engine cannot run a matmul, or None."""
    for type_, role in ((op.lhs.type, "lhs"), (op.rhs.type, "rhs")):
        rule = _operand_rule(type_, engine.elements)
        if rule is not None:
            return at(op, "error", f"'mx.block_matmul' op {role} '{type_}' {rule}, {_OTHERWISE}")
    rule = engine.rule(op) or _shape_rule(op)
    return None if rule is None else at(op, "error", f"'mx.block_matmul' op {rule}, {_OTHERWISE}")


def _operand_rule(type_: TensorType, elements: tuple[str, ...]) -> str | None:
    """Return what a matrix unit asks for in place of an MX type, None if it takes it."""
    spec = type_.spec
    if spec.element not in elements:
        listed = f"{', '.join(elements[:-1])} and {elements[-1]}"
        return f"holds {spec.element}, but the matrix unit multiplies {listed}; quantize to one of them"
    if spec.scale_type != E8M0.mlir:
        return f"has {spec.scale_type} scales, but those of the matrix unit are {E8M0.mlir}; quantize with them"
    if spec.block_size != BLOCK_SIZE:
        return (
            f"has blocks of {spec.block_size}, but the matrix unit applies a scale to {BLOCK_SIZE} elements;"
            f" quantize in blocks of {BLOCK_SIZE}"
        )
    return None


def _shape_rule(op: BlockMatmulOp) -> str | None:
    shapes = [list(value.type.shape) for value in (op.lhs, op.rhs, op.acc)]
    if ir.ShapedType.get_dynamic_size() in [extent for shape in shapes for extent in shape]:
        return "has dynamic extents, but tiles are laid out for static ones; claim them with mx.cast"
    if max(map(_padded_count, shapes)) > _MOST_BYTES:
        return "has operands too large to address; slice them"
    return None


def _padded_count(shape: list[int]) -> int:
    """Return a bound on the bytes of a tensor of f32 whose last two extents are padded to whole tiles."""
    return 4 * math.prod(shape[:-2]) * math.prod(2 * max(extent, _MOST_PADDING) for extent in shape[-2:])


def _module_of(op: Any) -> Any:
    parent = op.operation.parent
    while parent.name != _MODULE:
        parent = parent.operation.parent
    return parent.operation


def _replace(op: BlockMatmulOp, kernels: Kernels, lower: Callable[[BlockMatmulOp, Kernels], Any]) -> None:
    acc = op.acc
    if 0 in (*acc.type.shape, op.lhs.type.shape[-1]):
        # Nothing is added to the accumulator, or there is none of it.
        op.output.replace_all_uses_with(acc)
        op.operation.erase()
        return
    with op.location, ir.InsertionPoint(op.operation):
        result = lower(op, kernels)
    op.output.replace_all_uses_with(result)
    op.operation.erase()
    _erase_unused(acc)


def _erase_unused(acc: Any) -> None:
    """Remove the filling of an accumulator that the product has replaced."""
    if isinstance(acc, ir.OpResult) and acc.owner.name == "linalg.fill" and not list(acc.uses):
        target = acc.owner.operands[1]
        acc.owner.erase()
        if isinstance(target, ir.OpResult) and target.owner.name == "tensor.empty" and not list(target.uses):
            target.owner.erase()
