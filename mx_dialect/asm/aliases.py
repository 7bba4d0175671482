"""What a short text may hide from MLIR's parser: aliases that multiply or nest, and numbers of endless digits.

    #a1 = [#a0, #a0]
    #a2 = [#a1, #a1]

thirty levels long stand for a thousand million elements, and MLIR walks every one; `#a1 = [#a0]` twenty thousand times
overflows its stack, though no bracket in the text is deep. `hidden_excess` measures both in time linear in the
text: it keeps, for each alias, how deep it nests and how much text it stands for.
"""

import re
from dataclasses import dataclass, field

from mx_dialect.asm.lexer import COMMENT, MAX_NESTING, STRING

MAX_EXPANSION = 2**23
"""How many characters an alias may stand for, strings left out. MLIR takes seconds for as many."""

MAX_USED = 2**28
"""How many characters all uses of aliases may stand for together."""

MAX_DIGITS = 8000
"""MLIR takes time quadratic in the digits of a number."""

_ALIAS = r"[\#!][\w$.\-]+"
# No text can be taken apart in two ways, so that what is no definition costs no more than one look.
_DEFINES = r"(?=(?:[ \t\r\n]|//[^\n]*\n)*=(?!=))"
_DEFINITION = re.compile(rf"{_ALIAS}{_DEFINES}", re.ASCII)
_DEFINITIONS = re.compile(rf"{STRING}|{COMMENT}|{_ALIAS}{_DEFINES}", re.ASCII)
# One look for each number, at its start.
_LONG_NUMBER = re.compile(rf"(?<![0-9])[0-9]{{{MAX_DIGITS + 1}}}")
_NUMBERS = re.compile(rf"{STRING}|{COMMENT}|0x[0-9a-fA-F]+|[0-9]+", re.ASCII)

_OUTSIDE = re.compile(rf"{STRING}|{COMMENT}|->|>=|<=|[][(){{}}<>]|{_ALIAS}", re.ASCII)
# Inside a definition words and punctuation tell where it ends.
_INSIDE = re.compile(rf"{STRING}|{COMMENT}|->|>=|<=|[][(){{}}<>]|{_ALIAS}|%?[\w$.]+|[=:@\-]", re.ASCII)
_STEPS = {**dict.fromkeys("<([{", 1), **dict.fromkeys(">)]}", -1)}
# After these an attribute or a type goes on; anything but a bracket that comes after something else starts anew.
_JOINTS = frozenset(["=", ":", "->", "@", "-"])

# Aliases below both are not worth counting where operations use them, which is nearly all of a file.
_HEAVY_DEPTH = 32
_HEAVY_LENGTH = 1024


@dataclass
class _Alias:
    """How many levels an alias nests, and how many characters it stands for."""

    depth: int = 0
    length: int = 0


@dataclass
class _Measure:
    """The state of the pass over a text; `current` is the alias being defined. Definitions are at no depth."""

    aliases: dict[str, _Alias] = field(default_factory=dict[str, _Alias])
    depth: int = 0
    used: int = 0
    current: tuple[str, _Alias] | None = None
    goes_on: bool = False

    def define(self, name: str) -> None:
        """Enter a definition."""
        self.finish()
        self.current = (name, _Alias())
        self.depth = 0
        self.goes_on = False

    def finish(self) -> None:
        """Leave the definition, if in one."""
        if self.current is not None:
            self.aliases[self.current[0]] = self.current[1]
        self.current = None

    def token(self, text: str) -> str | None:
        """Take a token that is no comment, and return what is wrong with it, if anything."""
        step = _STEPS.get(text)
        if self.current is not None and step is None and self.depth <= 0:
            if text not in _JOINTS and not self.goes_on:
                self.finish()
            self.goes_on = text in _JOINTS
        elif step is not None:
            self.depth += step
            self.goes_on = False
        alias = self.aliases.get(text) if text[0] in "#!" else None
        return self._measured(alias or _Alias(0, 0 if text[0] == '"' else len(text)), used=alias is not None)

    def _measured(self, found: _Alias, *, used: bool) -> str | None:
        if used:
            self.used += found.length
            if self.depth + found.depth > MAX_NESTING:
                return f"more than {MAX_NESTING} levels of nesting through aliases"
            if self.used > MAX_USED:
                return f"aliases stand for more than {MAX_USED} characters"
        if self.current is None:
            return None
        alias = self.current[1]
        alias.depth = max(alias.depth, self.depth + found.depth)
        alias.length += found.length
        return f"the alias stands for more than {MAX_EXPANSION} characters" if alias.length > MAX_EXPANSION else None


def _long_number(text: str) -> int | None:
    if _LONG_NUMBER.search(text) is None:
        return None
    for match in _NUMBERS.finditer(text):
        if match[0][0].isdigit() and match[0][1:2] != "x" and len(match[0]) > MAX_DIGITS:
            return match.start()
    return None


def _alias_excess(text: str, outside: re.Pattern[str], measure: _Measure) -> tuple[int, str] | None:
    """Measure the definitions, and of what is between them what `outside` finds."""
    position = 0
    while (match := (outside if measure.current is None else _INSIDE).search(text, position)) is not None:
        position = match.end()
        if match[0].startswith("//"):
            continue
        if match[0][0] in "#!" and _DEFINITION.match(text, match.start()) is not None:
            measure.define(match[0])
            continue
        wrong = measure.token(match[0])
        if wrong is not None:
            return match.start(), wrong
    measure.finish()
    return None


def hidden_excess(text: str) -> tuple[int, str] | None:
    """Return the position of an alias or a number that MLIR's parser would not survive and what is wrong, or None."""
    digits = _long_number(text)
    if digits is not None:
        return digits, f"a number of more than {MAX_DIGITS} digits"
    if _DEFINITION.search(text) is None:
        return None
    measure = _Measure()
    excess = _alias_excess(text, _DEFINITIONS, measure)
    heavy = any(a.depth > _HEAVY_DEPTH or a.length > _HEAVY_LENGTH for a in measure.aliases.values())
    return _alias_excess(text, _OUTSIDE, _Measure()) if excess is None and heavy else excess
