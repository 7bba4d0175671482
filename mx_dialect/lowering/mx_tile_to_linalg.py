"""`mx-tile-to-linalg`: from the tile level to linalg on plain tensors, which run on the CPU.

A tile becomes a tensor of its valid shape, a view of scales the tensor of its boxes, and each operation what it means
for them. It lowers a program at every stage of the tile level: views in logical or blocked shape, memory spaces decided
or not, scales bound or not. A function has the same signature whichever it was.

    func.func @k(%x: tensor<64x64xf8E4M3FN>, %s: tensor<64x2xf8E8M0FNU, #mx.layout<"MX_A_ZZ">>, %m: index, ...)
      %0 = mx.tile_load %x[%m, 0] [16, 64] : tensor<64x64xf8E4M3FN> -> !mx.tile<16x64xf8E4M3FN>
      %1 = mx.tile_load %s[%m, 0] [16, 2] {target = "mat"} : ... -> !mx.tile<16x2xf8E8M0FNU, mat>
      %2 = mx.matmul_mx %0, %1, %b, %t : ... -> !mx.tile<16x32xf32>

becomes

    func.func @k(%x: tensor<64x64xf8E4M3FN>, %s: tensor<1x4x1x16x2xf8E8M0FNU>, %m: index, ...)
      cf.assert ..., "mx.tile_load: the load leaves the tensor along axis 0"
      %0 = tensor.extract_slice %x[%m, 0] [16, 64] [1, 1] : tensor<64x64xf8E4M3FN> to tensor<16x64xf8E4M3FN>
      %1 = linalg.generic ... outs(... : tensor<16x2xf8E8M0FNU>) {
        // the entry of row %m + i and group j, at [0, row / 16, j / 2, row % 16, j % 2] of %s
      }
      %2 = linalg.generic {indexing_maps = [(m, n, k) -> (m, k), (m, n, k) -> (m, k floordiv 32), ...]}
           ins(%0, %1, %b, %t : ...) outs(%zeros : tensor<16x32xf32>) {
        // each element times its scale is exact; products and sums are rounded in f32
      }

A store gives a tensor with a slice inserted. Bindings and moves are the tiles themselves, tasks are constants, and a
submit is a loop that calls the function for one block after the other. Where offsets or valid extents are known only at
run time, asserts refuse what leaves a tensor. Of scales whose valid shape is open, a load of boxes gives all that its
window has in the tensor, of which a matmul takes as many as its data need. Operations of the value level may stand
beside those of the tile level; `mx-to-linalg` lowers them, before or after.
"""

from collections.abc import Callable, Mapping
from typing import Any

from mx_dialect._mlir import ir
from mx_dialect.diagnostics import Diagnostic, MxError
from mx_dialect.lowering import tile_boundaries, tile_compute, tile_memory
from mx_dialect.lowering.tile_boundaries import Emitter
from mx_dialect.lowering.tile_calls import Calls
from mx_dialect.passes import NoOptions, Pass, register_pass
from mx_dialect.walk import operations

Lowering = Callable[[Any], Emitter]


def run(root: ir.Operation, options: NoOptions) -> None:
    """Lower every tile-level operation and value under `root`.

    Raises:
        MxError: an operation of another dialect holds a tile in an unknown way, a view is not made of boxes, or an
            operation asks for what the CPU cannot do; one error an operation, and nothing is changed then.
    """
    with root.context, ir.Location.unknown():
        calls = Calls(root)
        lowerings = _lowerings(calls)
        types = tile_boundaries.PlainTypes()
        tile_boundaries.check(root, types, list(lowerings))
        emitters = _read(root, calls, lowerings)
        tile_boundaries.retype(root, types)
        calls.add_parameters()
        for op, emit in emitters:
            with ir.InsertionPoint(op), op.location:
                replacements = emit()
            for result, new in zip(op.results, replacements, strict=True):
                result.replace_all_uses_with(new)
            op.erase()


def _lowerings(calls: Calls) -> Mapping[str, Lowering]:
    return {
        **tile_memory.LOWERINGS,
        **tile_compute.LOWERINGS,
        "mx.block_idx": calls.lower_block_idx,
        "mx.block_num": calls.lower_block_num,
        "mx.submit": calls.lower_submit,
    }


def _read(root: Any, calls: Calls, lowerings: Mapping[str, Lowering]) -> list[tuple[Any, Emitter]]:
    """Return the operations to lower, each with what emits its replacement."""
    emitters: list[tuple[Any, Emitter]] = []
    errors: list[Diagnostic] = []
    for op in operations(root, lambda op: op.name in lowerings or calls.is_numbered(op)):
        lower = lowerings.get(op.name, calls.lower_call)
        try:
            emitters.append((op, lower(op.opview)))
        except MxError as error:
            errors.extend(error.diagnostics)
    if errors:
        raise MxError.of(*errors)
    return emitters


PASS = register_pass(
    Pass(
        name="mx-tile-to-linalg",
        summary="Lower tile operations, tiles and views of scales to linalg on plain tensors",
        run=run,
        requires="valid tile operations; tiles, views and tasks carried by func, scf, cf, arith.select and mx.submit",
        leaves="no tile-level operation or type and no layout; value-level operations as they are",
    )
)
