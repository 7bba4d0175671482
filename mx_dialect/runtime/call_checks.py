"""Relations between the extents of a kernel's arguments, checked at each call before compiled code runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from mx_dialect.diagnostics import Diagnostic, MxError
from mx_dialect.runtime.signature import Signature


@dataclass(frozen=True)
class Term:
    """An extent as the caller knows it: of an argument slot's axis (of a scalar where `axis` is None), times `factor`.

    Without a slot it is the constant `factor`.
    """

    slot: int | None
    axis: int | None
    factor: Fraction

    def extent(self, arguments: Sequence[Any]) -> int:
        """Return the extent for the given arguments, before it is multiplied with `factor`."""
        if self.slot is None:
            return 1
        argument = arguments[self.slot]
        return int(argument) if self.axis is None else argument.shape[self.axis]

    def describe(self, signature: Signature, arguments: Sequence[Any]) -> str:
        if self.slot is None:
            return str(self.factor)
        what = f"extent {self.extent(arguments)} along axis {self.axis}"
        if self.axis is None:
            what = f"value {self.extent(arguments)}"
        times = "" if self.factor == 1 else f", times {self.factor}"
        return f"{signature.places[self.slot]} ({what}{times})"


@dataclass(frozen=True)
class Check:
    """Two extents that must be equal, or, without `right`, one that must be a multiple of `divisor`.

    `reason` says what they are, at the place of the operation that relates them.
    """

    reason: Diagnostic
    left: Term
    right: Term | None = None
    divisor: int = 1

    @cached_property
    def _multipliers(self) -> tuple[int, int]:
        """Return the integers that the relation is between: l * left == r * right, or l * left a multiple of r."""
        numerator, denominator = self.left.factor.as_integer_ratio()
        if self.right is None:
            return numerator, denominator * self.divisor
        other = self.right.factor
        return numerator * other.denominator, other.numerator * denominator

    def require(self, signature: Signature, arguments: Sequence[Any]) -> None:
        """Raise MxError unless the relation holds for the given arrays and scalars, one a slot."""
        left = self.left.extent(arguments)
        by_left, by_right = self._multipliers
        if self.right is None:
            holds = left * by_left % by_right == 0
        else:
            holds = left * by_left == self.right.extent(arguments) * by_right
        if not holds:
            raise self._error(signature, arguments)

    def _error(self, signature: Signature, arguments: Sequence[Any]) -> MxError:
        rule = self.left.describe(signature, arguments)
        if self.right is None:
            rule += f" must be a multiple of {self.divisor}"
        else:
            rule += f" and {self.right.describe(signature, arguments)} must agree"
        at = self.reason
        return MxError.of(Diagnostic("error", f"{rule}: {at.message}", at.file, at.line, at.column))
