"""Named pipelines: the sequences of passes that users run as one.

A stage is the text of one pipeline element, as it stands inside `builtin.module(...)`: a pass with its options, of this
project or of MLIR, or `func.func(...)` around one. A pipeline's name may stand wherever a pass's name may. The stages
are data; `driver.py` runs them.

`TO_BUFFERS` and `TO_LLVM` together make `mx-lower-to-llvm`. Between them every value is a buffer and a function still
returns all of its results; the first stage of `TO_LLVM` drops those that are arguments, so whoever calls the compiled
function looks there for which is which.
"""

from dataclasses import dataclass

from mx_dialect import passes


@dataclass(frozen=True)
class Pipeline:
    """A named sequence of stages, run in order on a builtin.module."""

    name: str
    summary: str
    stages: tuple[str, ...]


TO_LINALG = (
    "mx-to-linalg",
    # Before anything that folds: MLIR folds the extension of scale code 255, NaN, to infinity.
    "mx-conversions-to-linalg",
    "mx-expand-narrow-floats",
    # Arithmetic on whole tensors has no bufferization of its own. This folds.
    "convert-elementwise-to-linalg",
)

VECTORIZE = (
    # mx-vectorize knows linalg.generic only.
    "linalg-generalize-named-ops",
    # Contractions get schedules of their own, and nothing below touches them.
    "mx-schedule-cpu",
    # The vectorizer takes projected permutations only, not `k floordiv 32`.
    "mx-expand-k",
    # Chains over large tensors are worked on while their rows are in cache.
    "mx-fuse-rows",
    # On tensors, where tiles and their producers are values: no aliasing to disprove.
    "mx-vectorize",
    # Accumulators stay in registers while reductions run, and what a loop does not change is read before it.
    "loop-invariant-subset-hoisting",
    "loop-invariant-code-motion",
    # Reductions of vectors to numbers, in the one form that LLVM has.
    "func.func(lower-vector-multi-reduction{lowering-strategy=inner-reduction})",
)

BUFFERIZE = (
    # Results computed into an empty tensor and then inserted somewhere are computed there instead.
    "eliminate-empty-tensors",
    # What MLIR would take for the writing of a whole tensor.
    "mx-slice-partial-writes",
    # Plain memrefs at function boundaries; a kernel updates its accumulator in place. A loop may carry new buffers.
    "one-shot-bufferize{bufferize-function-boundaries=1 function-boundary-type-conversion=identity-layout-map"
    " allow-return-allocs-from-loops=1}",
    # A loop that returns its argument is seen through here, so that the function is seen to return it too.
    "canonicalize",
    # Views of the same part become one value, and copies between them vanish.
    "cse",
    "canonicalize",
)

TO_BUFFERS = (*TO_LINALG, *BUFFERIZE)
TO_BUFFERS_VECTORIZED = (*TO_LINALG, *VECTORIZE, *BUFFERIZE)

EMIT = "mx-schedule-cpu{emit=true}"
"""The stage that makes loops of contractions; `compile` adds how many threads they are divided among."""

TO_LLVM = (
    # The caller has its own arguments. Returning one would oblige the callee to return a copy that can be freed.
    "drop-equivalent-buffer-results{modify-public-functions=1}",
    # Scratch buffers of fixed size are made once a call, small ones on the stack.
    "func.func(buffer-loop-hoisting)",
    "func.func(promote-buffers-to-stack{max-alloc-size-in-bytes=4096 max-rank-of-allocated-memref=8})",
    # Every buffer that is not returned is freed; what is returned belongs to the caller.
    "buffer-deallocation-pipeline",
    # The copies that this needed, of arguments that are returned by some path only, are allocations and memref.copy.
    "convert-bufferization-to-memref",
    # MLIR copies buffers with strides by calling its C runtime, which is not at hand.
    "mx-expand-copies",
    # Contractions become the loops that were chosen for them, with scratch memory that they free.
    EMIT,
    # Those copies, and all that was not vectorized.
    "convert-linalg-to-loops",
    # Vector transfers need memrefs they can index, and only those of rank one have instructions.
    "fold-memref-alias-ops",
    "func.func(convert-vector-to-scf{full-unroll=1})",
    # Fewer operations to convert; index computations that became equal are shared.
    "canonicalize",
    "cse",
    # Indices become arithmetic.
    "lower-affine",
    # Ceiling and floor divisions; bf16, whose x86 instructions flush subnormals.
    "arith-expand{include-bf16=1}",
    # Nothing below needs loops to be loops.
    "convert-scf-to-cf",
    # Asserts lie directly in function bodies from here on, and would become calls of abort.
    "mx-assert-to-status",
    # Views become arithmetic on offsets and strides, in affine.apply.
    "expand-strided-metadata",
    "lower-affine",
    # From here on one dialect after the other becomes LLVM's; math while it is on vectors of MLIR.
    "convert-math-to-llvm",
    # What LLVM has no instruction or intrinsic for calls the C library's function, for each element of a vector.
    "convert-math-to-libm",
    # Sums of vectors may be reordered: any order is within the error bound of a dot product.
    "convert-vector-to-llvm{reassociate-fp-reductions=1}",
    "convert-index-to-llvm",
    "convert-arith-to-llvm",
    "finalize-memref-to-llvm",
    "convert-func-to-llvm",
    "convert-cf-to-llvm",
    "convert-ub-to-llvm",
    # The conversions met through casts, which cancel now.
    "reconcile-unrealized-casts",
    # Not for LLVM, which optimizes on its own, but for whoever reads the result.
    "canonicalize",
    "cse",
    # Last of all, as it makes functions that only LLVM knows the types of.
    "mx-parallel-calls",
    # The conversions above report success whatever they leave behind.
    "mx-check-lowered",
)

TILES = (
    # The engine reads scales in boxes. First, while offsets are the arithmetic that programs state them in.
    "mx-block-scale-views",
    # The vector unit casts, the matrix unit does not: this says which tiles have to be in vec.
    "mx-legalize-cast",
    # Everything below is about where tiles lie. Moves to the matrix unit's inputs end bindings, so they come first.
    "mx-infer-memory-space",
    # Once and for good: a second run would bind what is bound already.
    "mx-insert-scale-addr",
    # By other code than that which placed the bindings, for a wrong one shows in nothing but wrong numbers.
    "mx-verify-scale-binding",
    # Last, for any pass that changes the shape of a view drops its strides.
    "mx-materialize-strides",
)

PIPELINES: dict[str, Pipeline] = {}


def register_pipeline(new: Pipeline) -> Pipeline:
    """Add a pipeline under its name. A name can be registered once.

    Raises:
        ValueError: the name is not kebab-case, or is that of another pass or pipeline, of MLIR's included.
    """
    passes.require_free("pipeline", new.name)
    passes.pipeline_names.add(new.name)
    PIPELINES[new.name] = new
    return new


def withdraw(name: str) -> None:
    """Take a pipeline out of the registry, if it is there."""
    PIPELINES.pop(name, None)
    passes.pipeline_names.discard(name)


def get(name: str) -> Pipeline | None:
    """Return the pipeline of that name, or None."""
    if name not in PIPELINES:
        passes.load_plugins_for(name)
    return PIPELINES.get(name)


def names() -> list[str]:
    """Return the names of all pipelines, sorted."""
    passes.load_plugins()
    return sorted(PIPELINES)


register_pipeline(
    Pipeline(
        "mx-bufferize",
        "Turn tensors into buffers, updated in place where possible (mx-expand-narrow-floats first: this folds)",
        BUFFERIZE,
    )
)
register_pipeline(
    Pipeline("mx-tile-pipeline", "Make kernels on tiles ready for the engine: boxes, memories, bound scales", TILES)
)
register_pipeline(
    Pipeline("mx-lower-to-llvm", "Lower mx and linalg on tensors to LLVM, in loops", (*TO_BUFFERS, *TO_LLVM))
)
register_pipeline(
    Pipeline(
        "mx-lower-to-llvm-vectorized",
        "Lower mx and linalg on tensors to LLVM, in vectors where shapes are static",
        (*TO_BUFFERS_VECTORIZED, *TO_LLVM),
    )
)
