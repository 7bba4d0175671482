"""Where tiles lie when operations work on them: the memory of each operand and result, and ways between memories.

| operation      | operands                                                             | results  |
|----------------|----------------------------------------------------------------------|----------|
| matmul_mx      | lhs: left, lhs_scale: left_scale, rhs: right, rhs_scale: right_scale | acc      |
| matmul_mx_acc  | acc: acc, then those of matmul_mx                                    | acc      |
| matmul_mx_bias | those of matmul_mx, then bias: bias                                  | acc      |
| tile_cast      | input: vec                                                           | vec      |
| quant_mx       | input: vec                                                           | vec, vec |
"""

import functools
from dataclasses import dataclass

from mx_dialect.tile_ops import TileMoveOp
from mx_dialect.tile_spec import UNDECIDED


@dataclass(frozen=True)
class Slot:
    """An operand of an operation, by name, and the memory that it has to lie in."""

    name: str
    space: str


_PRODUCT = (
    Slot("lhs", "left"),
    Slot("lhs_scale", "left_scale"),
    Slot("rhs", "right"),
    Slot("rhs_scale", "right_scale"),
)

SLOTS: dict[str, tuple[Slot, ...]] = {
    "mx.matmul_mx": _PRODUCT,
    "mx.matmul_mx_acc": (Slot("acc", "acc"), *_PRODUCT),
    "mx.matmul_mx_bias": (*_PRODUCT, Slot("bias", "bias")),
    "mx.tile_cast": (Slot("input", "vec"),),
    "mx.quant_mx": (Slot("input", "vec"),),
}
"""The slots of an operation by its name, one for each operand."""

RESULT_SPACES = {
    "mx.matmul_mx": "acc",
    "mx.matmul_mx_acc": "acc",
    "mx.matmul_mx_bias": "acc",
    "mx.tile_cast": "vec",
    "mx.quant_mx": "vec",
}
"""The memory that all results of an operation lie in, by its name."""

STORABLE = ("vec", "mat", "acc")
"""The memories that `mx.tile_store` stores from."""


@functools.cache
def way(source: str, target: str) -> tuple[str, ...] | None:
    """Return the memories that moves from `source` to `target` reach one after the other, None if no way leads there.

    A tile that is not decided yet can be moved anywhere: it will be decided such that it can.
    """
    if source == UNDECIDED:
        return (target,)
    reached: dict[str, tuple[str, ...]] = {source: ()}
    waiting = [source]
    for space in waiting:
        for following, sources in TileMoveOp.sources.items():
            if space in sources and following not in reached:
                reached[following] = (*reached[space], following)
                waiting.append(following)
    return reached.get(target)
