"""Rewrite patterns of mx_dialect for pattern sets and drivers of one's own.

A set is pairs of an operation's class and a function, the two arguments of `RewritePatternSet.add`:

    patterns = rewrite.RewritePatternSet()
    for op_class, rewrite_op in mx_dialect.patterns.canonicalization():
        patterns.add(op_class, rewrite_op)

Only simplifications are offered. The patterns of the lowerings (`mx-to-linalg`, `mx-neuron-to-linalg`) are no such set:
they join and split values by casts that cancel only when functions, calls and loops are rewritten as well, some need a
`fold_scale` to be kept until all others are done, and they are wrong under a driver that folds, since MLIR folds the
scale code 255, NaN, to infinity. Run those passes whole, through `mx_dialect.pass_`.
"""

from collections.abc import Callable
from typing import Any

from mx_dialect.transforms import mx_canonicalize

Pattern = tuple[type[Any], Callable[[Any, Any], Any]]


def canonicalization() -> tuple[Pattern, ...]:
    """Return the patterns of `mx-canonicalize`, in the order in which it tries them.

    Each is exact by itself and may run in any driver, with other patterns, any number of times. The dialect has to be
    loaded into the context. Folding is MLIR's own business: set `GreedyRewriteConfig.enable_folding = False` where the
    scale code 255, NaN, may stand in a constant that is extended.
    """
    return mx_canonicalize.PATTERNS
