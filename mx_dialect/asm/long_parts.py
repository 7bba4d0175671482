"""What MLIR's parser takes quadratic time for: long shapes, affine expressions and lists of affine dimensions.

    tensor<1x1x1x1x...>    affine_map<(d0, d1, d2, ...) -> (d0 + d1 + d2 + ...)>

A few hundred kilobytes of either keep it busy for minutes. `slow_part` finds them in time linear in the text; the
bounds are far above what programs have, and what stays below them takes MLIR seconds for a megabyte.
"""

import re
from collections.abc import Iterator

from mx_dialect.asm.lexer import COMMENT, STRING

MAX_EXTENTS = 1024
"""How many extents in a row a shape may have: the lexer reads all that follow again for each."""

MAX_OPERATORS = 1024
"""How many operators an affine expression may have: MLIR looks at what is left of each when it simplifies."""

MAX_NAMES = 4096
"""How many dimensions or symbols an affine map or set may have: each name is compared with all before it."""

_COMMENT_OR_STRING = re.compile(rf"{STRING}|{COMMENT}", re.ASCII)
# One look for each row, at its start, as it fails at the same place for all of its tails.
_LONG_SHAPE = re.compile(rf"(?<![0-9])(?<![0-9]x)(?:[0-9]+x){{{MAX_EXTENTS + 1}}}")
_NAMES = re.compile(r"affine_(?:map|set)[ \t\r\n]*<[ \t\r\n]*(\([^()]*\))[ \t\r\n]*(\[[^][]*\])?")
# No affine expression reaches beyond these characters, and each operator takes two.
_STRETCH = re.compile(rf"[^][,{{}}=:<>]{{{2 * MAX_OPERATORS},}}")
_OPERATORS = re.compile(
    r"[@%#!^](?:[0-9]+|[A-Za-z$._\-][\w$.\-]*)|[+*\-]|(?<![A-Za-z_$.])(?:mod|floordiv|ceildiv)(?![\w$.])", re.ASCII
)


def slow_part(text: str) -> tuple[int, str] | None:
    """Return the position of what would keep MLIR's parser busy and what is wrong with it, or None."""
    has_affine = "affine" in text
    if not has_affine and _LONG_SHAPE.search(text) is None:
        return None
    bare = _COMMENT_OR_STRING.sub(lambda match: " " * len(match[0]), text)
    shape = _LONG_SHAPE.search(bare)
    if shape is not None:
        return shape.start(), f"a shape of more than {MAX_EXTENTS} extents"
    return next(_slow_affine(bare), None) if has_affine else None


def _slow_affine(bare: str) -> Iterator[tuple[int, str]]:
    for match in _NAMES.finditer(bare):
        for group in (1, 2):
            if match[group] is not None and match[group].count(",") >= MAX_NAMES:
                yield match.start(group), f"more than {MAX_NAMES} dimensions or symbols"
    for match in _STRETCH.finditer(bare):
        operators = [found for found in _OPERATORS.finditer(match[0]) if found[0][0] not in "@%#!^"]
        if len(operators) > MAX_OPERATORS:
            start = match.start() + operators[MAX_OPERATORS].start()
            yield start, f"an affine expression of more than {MAX_OPERATORS} operators"
