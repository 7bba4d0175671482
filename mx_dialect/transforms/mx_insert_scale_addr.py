"""`mx-insert-scale-addr`: bind the scales of every MX matmul in a kernel to the data that they belong to.

The engine finds a scale tile by the address of the data tile, so that each matmul needs a binding of its scale in force
on each side:

    %c = mx.matmul_mx %a, %as, %b, %bs : ...
    %d = mx.matmul_mx_acc %c, %a, %as, %b2, %bs : ...

becomes

    %0 = mx.tget_scale_addr %as, %a : ...
    %1 = mx.tget_scale_addr %bs, %b : ...
    %c = mx.matmul_mx %a, %0, %b, %1 : ...
    %2 = mx.tget_scale_addr %bs, %b2 : ...
    %d = mx.matmul_mx_acc %c, %a, %0, %b2, %2 : ...

The latest binding of a side is reused by a matmul with the same scale and data, unless something in between may have
undone it:

| operation                                                   | undoes       |
|-------------------------------------------------------------|--------------|
| a matmul with another pair                                  | that side    |
| one that takes or gives a tile in left or left_scale        | the left     |
| one that takes or gives a tile in right or right_scale      | the right    |
| a call, a submit, one of a dialect that may call            | both         |
| one with regions, seen from outside and from inside         | both         |
| the end of a block                                          | both         |

Bindings in the input are such operations too: a run after another adds a second layer.
"""

from dataclasses import dataclass
from typing import Any

from mx_dialect._mlir import ir
from mx_dialect.diagnostics import error_at
from mx_dialect.passes import Pass, option, register_pass
from mx_dialect.submit_ops import kernels
from mx_dialect.tile_matmul_ops import MATMULS, TgetScaleAddrOp
from mx_dialect.tile_slots import SLOTS
from mx_dialect.tile_spec import UNDECIDED
from mx_dialect.tile_types import TileType
from mx_dialect.walk import in_scopes, is_function

_LEFT = frozenset({"left", "left_scale"})
_RIGHT = frozenset({"right", "right_scale"})
_SIDES = (_LEFT, _RIGHT)

# Their operations without regions run nothing but themselves.
_CALL_FREE = frozenset("affine arith builtin cf complex index math memref mx tensor ub vector".split())


@dataclass(frozen=True)
class Options:
    reuse: bool = option(True, "Let matmuls share a binding where it is still in force")


@dataclass(frozen=True)
class _Binding:
    data: Any
    scale: Any
    bound: Any


class _Bindings:
    """The latest binding of either side, while a block is gone through."""

    def __init__(self, reuse: bool) -> None:
        self._reuse = reuse
        self._latest: dict[frozenset[str], _Binding] = {}

    def pass_by(self, op: Any) -> None:
        """Forget what an operation that is no matmul may undo."""
        if len(op.regions) or not _is_call_free(op):
            self._latest.clear()
            return
        for side in _SIDES:
            if side in self._latest and any(_is_in(value.type, side) for value in (*op.operands, *op.results)):
                del self._latest[side]

    def bind(self, op: Any) -> None:
        """Make a matmul consume bound scales."""
        slots = {slot.name: number for number, slot in enumerate(SLOTS[op.name])}
        for side, data, scale in ((_LEFT, "lhs", "lhs_scale"), (_RIGHT, "rhs", "rhs_scale")):
            op.operands[slots[scale]] = self._bound(side, op, op.operands[slots[data]], op.operands[slots[scale]])

    def _bound(self, side: frozenset[str], op: Any, data: Any, scale: Any) -> Any:
        latest = self._latest.get(side)
        if latest is not None and latest.data == data and latest.scale == scale:
            return latest.bound
        bound = TgetScaleAddrOp(scale, data, scale.type, loc=op.location, ip=ir.InsertionPoint(op)).output
        if self._reuse:
            self._latest[side] = _Binding(data, scale, bound)
        return bound


def _is_call_free(op: Any) -> bool:
    return op.name.partition(".")[0] in _CALL_FREE and op.name != "mx.submit"


def _is_in(type_: Any, side: frozenset[str]) -> bool:
    """Tell whether a tile lies on a side or may yet, or another type holds a tile, wherever it lies."""
    if isinstance(type_, TileType):
        return type_.spec.space in (*side, UNDECIDED)
    return "!mx.tile<" in str(type_)


def _blocks(root: Any) -> list[Any]:
    """Return the blocks of kernels; a function within another counts by itself."""
    marked = set(kernels(root))
    inside = [op for function, op in in_scopes(root, is_function) if function in marked]
    return [block for op in inside for region in op.regions for block in region]


def _require_spaces(op: Any) -> None:
    """Refuse a matmul with an operand that does not lie where the matrix unit takes it from."""
    for slot, value in zip(SLOTS[op.name], op.operands, strict=True):
        space = value.type.spec.space
        if space == slot.space:
            continue
        found = "its memory space is not decided yet" if space == UNDECIDED else f"it lies in {space}"
        message = f"'{op.name}' op takes {slot.name} in {slot.space}, but {found}; run --mx-infer-memory-space first"
        raise error_at(op, message)


def run(root: Any, options: Options) -> None:
    """Bind the scales of every matmul in the kernel functions under `root`, in place.

    Raises:
        MxError: an operand of a matmul does not lie in the memory that its slot demands; a function is marked as no
            kind of kernel.
    """
    with root.context:
        for block in _blocks(root):
            bindings = _Bindings(options.reuse)
            for view in list(block):
                if not isinstance(view, MATMULS):
                    bindings.pass_by(view.operation)
                    continue
                _require_spaces(view.operation)
                bindings.bind(view.operation)


PASS = register_pass(
    Pass(
        name="mx-insert-scale-addr",
        summary="Bind the scales of every MX matmul in a kernel to its data",
        run=run,
        options=Options,
        requires="matmuls in kernel functions have their operands in the memories they take them from",
        leaves="matmuls in kernel functions consume scales that the latest binding of their side binds to their data",
    )
)
