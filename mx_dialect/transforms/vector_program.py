"""Writes the transform-dialect program that tiles, fuses and vectorizes planned operations, and interprets it.

An operation is found by the tag it carries, so a program can be made while nothing has moved yet.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from mx_dialect._mlir import ir, transform_interpreter

TAG = "mx_vectorize"
"""The attribute that marks the operations a program is about."""

REFUSED = "refused"
"""The tag of tiles that the vectorizer could not vectorize."""

_ANY = "!transform.any_op"

# Unit dimensions go before vectorization, so that vectors have one dimension.
_ONE_DIMENSION = "linalg.fold_unit_extent_dims_via_slices"

# Slices of a tile fold into the offsets of its vector transfers. Only inside loops: outside, an operation that was
# split writes nested slices, and bufferization sees that it does so in place while extraction and insertion match.
_FOLD_SLICES = (
    "tensor.merge_consecutive_insert_extract_slice",
    "tensor.fold_tensor_subset_ops_into_vector_transfers",
    "vector.transfer_permutation_patterns",
    "canonicalization",
)


class VectorProgram:
    """A transform program under construction. Its values, handles on operations, are named by strings."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._count = 0

    def match(self, tag: str) -> str:
        """Return the operation with a tag."""
        return self._emit(f'transform.structured.match attributes {{{TAG} = "{tag}"}} in %root', operands=1, results=1)[
            0
        ]

    def split(self, target: str, loop: int, at: int) -> tuple[str, str]:
        """Split a loop in two; return the operations of the first `at` iterations and of the others."""
        both = self._emit(f"transform.structured.split {target} after {at} {{dimension = {loop}}}", operands=1)
        first, second = self._emit(f"transform.split_handle {both[0]}", operands=1, results=2)
        return first, second

    def tile(self, target: str, sizes: Mapping[int, int], loop_count: int) -> tuple[str, list[str]]:
        """Tile loops by `sizes`; return the operation on one tile and the new loops, outermost first."""
        if not sizes:
            return target, []
        text = ", ".join(str(sizes.get(loop, 0)) for loop in range(loop_count))
        tiled, *loops = self._emit(
            f"transform.structured.tile_using_for {target} tile_sizes [{text}]",
            operands=1,
            results=1 + len(sizes),
        )
        return tiled, loops

    def fuse(self, producers: Sequence[str], loop: str) -> list[str]:
        """Compute what a loop reads of producers inside the loop; return the producers there."""
        fused: list[str] = []
        for producer in producers:
            inside, loop = self._emit(
                f"transform.structured.fuse_into_containing_op {producer} into {loop}", operands=2, results=2
            )
            fused.append(inside)
        # What is computed in panels needs no whole buffer. This comes before splits, whose parts share the panel's.
        self._lines.append(_apply_patterns(loop, ("tensor.fold_tensor_empty",)))
        return fused

    def vectorize(self, loops: Sequence[str], unrolled: Mapping[str, int]) -> None:
        """Vectorize the operations inside `loops`, unroll the loops in `unrolled`, and tidy the functions around.

        What the vectorizer refuses is left as it is, tagged `REFUSED`.
        """
        (inside,) = self._emit(f"transform.merge_handles {', '.join(loops)}", operands=1)
        self._lines.append(
            f"""%refused = transform.param.constant "{REFUSED}" -> !transform.any_param
                transform.foreach {inside} : {_ANY} {{
                ^bb0(%loop: {_ANY}):
                  {_apply_patterns("%loop", (_ONE_DIMENSION,))}
                  %operations = {_generics_in("%loop")}
                  transform.sequence %operations : {_ANY} failures(suppress) {{
                  ^bb1(%suitable: {_ANY}):
                    transform.structured.vectorize %suitable : {_ANY}
                  }}
                  {_apply_patterns("%loop", ("canonicalization",))}
                  {_apply_patterns("%loop", _FOLD_SLICES)}
                  %left = {_generics_in("%loop")}
                  transform.annotate %left "{TAG}" = %refused : {_ANY}, !transform.any_param
                }}"""
        )
        (functions,) = self._emit(
            f"transform.get_parent_op {inside} {{isolated_from_above, deduplicate}}", operands=1, results=1
        )
        for loop, factor in unrolled.items():
            self._lines.append(f"transform.loop.unroll {loop} {{factor = {factor}}} : {_ANY}")
        self._lines.append(
            f"""transform.foreach {functions} : {_ANY} {{
                ^bb0(%function: {_ANY}):
                  {_apply_patterns("%function", ("canonicalization",))}
                  transform.apply_cse to %function : {_ANY}
                }}"""
        )

    def interpret(self, root: Any) -> None:
        """Run the program on the operations under `root`."""
        body = "\n".join(self._lines)
        module = ir.Module.parse(
            f"""module attributes {{transform.with_named_sequence}} {{
                  transform.named_sequence @main(%root: {_ANY}) {{
                    {body}
                    transform.yield
                  }}
                }}"""
        )
        transform_interpreter.apply_named_sequence(root, module.body.operations[0], module)

    def _emit(self, operation: str, operands: int, results: int | None = None) -> list[str]:
        """Append an operation on handles; without `results` its type is that of its operand alone."""
        handles = [f"%h{self._count + i}" for i in range(1 if results is None else results)]
        self._count += len(handles)
        types = f"({', '.join([_ANY] * operands)}) -> ({', '.join([_ANY] * len(handles))})"
        self._lines.append(f"{', '.join(handles)} = {operation} : {_ANY if results is None else types}")
        return handles


def _generics_in(target: str) -> str:
    return f'transform.structured.match ops {{["linalg.generic"]}} in {target} : ({_ANY}) -> {_ANY}'


def _apply_patterns(target: str, names: Sequence[str]) -> str:
    patterns = "\n".join(f"transform.apply_patterns.{name}" for name in names)
    return f"transform.apply_patterns to {target} {{ {patterns} }} : {_ANY}"
