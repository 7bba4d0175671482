"""mx-neuron-expand-load: expand the load paths of a Neuron-style kernel into their steps.

    %0:3 = mx.load_gate_up %w, %s, %b, %e[0] : tensor<8x128x2x1x1024xui16>, tensor<8x16x2x1x1024xui8>, ...

becomes, with I of 1024 and all of it loaded,

    %view = mx.view_cast %w : tensor<8x128x2x1x1024xui16> -> tensor<8x128x2x1x1024x!mx.x4<f4E2M1FN>>
    %0#0 = mx.select_expert %view, %e[0, 0, 0, 0] {dge_mode = "hwdge", oob_mode = "error"} : ...
    %index = mx.expert_index %e {scale_rows = 16, full_quadrants = 4, remaining_rows = 0} : index -> tensor<128xi32>
    %0#1 = mx.scale_gather %s, %index {oob_mode = "skip"} : ... -> tensor<128x2x1x1024xui8>
    %0#2 = mx.select_expert %b, %e[0, 0, 0, 0] {dge_mode = "hwdge"} : ...

The scales of a part of the features are gathered from a slice of them. With `scale-path=static` an expert's scales are
selected and copied to the four quadrants, which gives the same tile. A QKV path has no experts: its weights are laid on
partitions, and its scales copied to quadrants, with dge_mode swdge.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

from mx_dialect._mlir import arith, ir, rewrite
from mx_dialect.generics import extent
from mx_dialect.layouts.neuron_weights import TILE
from mx_dialect.lowering.slices import assert_equal, index, numbers, slice_of
from mx_dialect.neuron_expert_ops import LoadDownOp, LoadGateUpOp
from mx_dialect.neuron_load_ops import expert_index, scale_gather, scale_load_static, select_expert
from mx_dialect.neuron_ops import ViewCastOp, partition_rows
from mx_dialect.neuron_qkv_ops import LoadQkvDenseOp, LoadQkvOp
from mx_dialect.neuron_types import is_x4
from mx_dialect.passes import Pass, option, register_pass

SCALE_PATHS = ("index", "static")


@dataclass(frozen=True)
class Options:
    scale_path: str = option(
        "index",
        "How an expert's scales reach the quadrants: gathered by an index vector, or selected and copied",
        choices=SCALE_PATHS,
    )


@dataclass(frozen=True)
class _Range:
    """The part of the intermediate features that is loaded: where it begins, an int or an index, and in which tile."""

    first: Any
    first_tile: Any


def _expand_gate_up(options: Options, op: LoadGateUpOp, rewriter: rewrite.PatternRewriter) -> None:
    with rewriter.ip, op.location:
        part = _range(op)
        weights = _expert_weights(op, [0, 0, 0, part.first])
        scales = _scales(op, options, [0, 0, 0, part.first])
        bias = select_expert(op.bias, op.expert, [0, 0, part.first_tile, 0], op.loaded_bias.type.shape, "hwdge")
    rewriter.replace_op(op, [weights, scales, bias])


def _expand_down(options: Options, op: LoadDownOp, rewriter: rewrite.PatternRewriter) -> None:
    with rewriter.ip, op.location:
        part = _range(op)
        weights = _expert_weights(op, [0, part.first_tile, 0])
        scales = _scales(op, options, [0, part.first_tile, 0])
        bias = select_expert(op.bias, op.expert, dge_mode="hwdge")
    rewriter.replace_op(op, [weights, scales, bias])


def _expand_qkv(op: LoadQkvOp, rewriter: rewrite.PatternRewriter) -> None:
    with rewriter.ip, op.location:
        weights = partition_rows(_view(op), dge_mode="swdge")
        scales = scale_load_static(op.scales, tiles=True, dge_mode="swdge")
    rewriter.replace_op(op, [weights, scales])


def _expand_qkv_dense(op: LoadQkvDenseOp, rewriter: rewrite.PatternRewriter) -> None:
    with rewriter.ip, op.location:
        weights = partition_rows(op.weights, dge_mode="swdge")
    rewriter.replace_op(op, [weights])


def _range(op: Any) -> _Range:
    """Return the range that a load takes; one that begins inside a tile fails an assertion."""
    (value,) = numbers(op.static_shard, op.shard)
    if isinstance(value, int):
        return _Range(value, value // TILE)
    rest = arith.remui(value, index(TILE))
    assert_equal(rest, 0, f"{op.operation.name}: a range begins at a multiple of {TILE}")
    return _Range(value, arith.divui(value, index(TILE)))


def _view(op: Any) -> Any:
    """Return the weights of a path as the containers that it loads."""
    if is_x4(op.weights.type.element_type):
        return op.weights
    view = ir.RankedTensorType.get(op.weights.type.shape, op.loaded.type.element_type)
    return ViewCastOp(op.weights, view).output


def _expert_weights(op: Any, offsets: list[Any]) -> Any:
    attributes = op.operation.attributes
    oob_mode = ir.StringAttr(attributes["oob_mode"]).value if "oob_mode" in attributes else "error"
    return select_expert(_view(op), op.expert, offsets, op.loaded.type.shape, "hwdge", oob_mode)


def _scales(op: Any, options: Options, offsets: list[Any]) -> Any:
    """Return the tile of an expert's scales, for a part of the features."""
    rows = op.scales.type.shape[1]
    sizes = list(op.loaded_scales.type.shape)[1:]
    if options.scale_path == "static":
        return scale_load_static(select_expert(op.scales, op.expert, offsets, [rows, *sizes]))
    return scale_gather(_part(op.scales, offsets, [rows, *sizes]), expert_index(op.expert, rows), oob_mode="skip")


def _part(scales: Any, offsets: list[Any], sizes: list[int]) -> Any:
    """Return the part of all experts' scales that begins at the offsets along all axes but the first."""
    if list(scales.type.shape)[1:] == sizes:
        return scales
    type_ = ir.RankedTensorType.get([scales.type.shape[0], *sizes], scales.type.element_type)
    return slice_of(scales, [0, *offsets], [extent(scales, 0), *sizes], type_)


def run(root: ir.Operation, options: Options) -> None:
    """Expand every load path under `root`, in place."""
    with root.context, ir.Location.unknown():
        patterns = rewrite.RewritePatternSet()
        patterns.add(LoadGateUpOp, partial(_expand_gate_up, options))
        patterns.add(LoadDownOp, partial(_expand_down, options))
        patterns.add(LoadQkvOp, _expand_qkv)
        patterns.add(LoadQkvDenseOp, _expand_qkv_dense)
        frozen = patterns.freeze()
        rewrite.walk_and_apply_patterns(root, frozen)


PASS = register_pass(
    Pass(
        name="mx-neuron-expand-load",
        summary="Expand Neuron-style load paths into views, slices of experts and gathers of scales",
        run=run,
        options=Options,
        requires="valid load paths",
        leaves="no load path",
    )
)
