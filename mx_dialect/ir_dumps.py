"""Dumps of the IR between passes: which passes they surround, and whether they go to a stream or to a tree of files."""

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

from mx_dialect import asm
from mx_dialect.diagnostics import Collector, MxError, collecting

# What a file's name may hold of a symbol, which a program chooses freely, and how much of it.
_NOT_PORTABLE = re.compile(r"[^A-Za-z0-9_.$-]")
_LONGEST = 100


@dataclass(frozen=True)
class IrPrinting:
    """What `--mlir-print-ir-*` asks for: dumps before and after all passes or those named.

    `after_change` and `after_failure` keep dumps after passes to those where that happened; alone they mean all passes.
    With `tree_dir` each dump is a file under that folder, in folders for the operations around it.
    """

    before_all: bool = False
    after_all: bool = False
    before: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()
    after_change: bool = False
    after_failure: bool = False
    module_scope: bool = False
    tree_dir: str | None = None

    def wants_before(self, name: str) -> bool:
        return self.before_all or name in self.before

    def wants_after(self, name: str, failed: bool) -> bool:
        every = self.after_all or (not self.after and (self.after_change or self.after_failure))
        return (every or name in self.after) and (failed or not self.after_failure)


def targets(root: Any, path: Sequence[str]) -> list[Any]:
    """Return the operations that an anchor path names: each anchor among the children of the one before."""
    found: list[Any] = [root]
    for name in path[1:]:
        found = [
            child.operation
            for target in found
            for region in target.regions
            for block in region
            for child in block
            if name in ("any", child.operation.name)
        ]
    return found


@dataclass
class Dumps:
    """The dumps of one run on `root`."""

    root: Any
    printing: IrPrinting
    print_flags: dict[str, Any]
    stream: TextIO | None
    counts: dict[str, int] = field(default_factory=lambda: {})

    def texts(self, path: tuple[str, ...]) -> list[str]:
        """Return what dumps around a pass on `path` would show, in a form that is cheap to compare."""
        return [_text(op) for _, op in self._shown(path)]

    def _shown(self, path: tuple[str, ...]) -> list[tuple[Any, Any]]:
        """Return (operation that the pass runs on, operation that its dump shows) pairs."""
        found = targets(self.root, path)
        if not self.printing.module_scope:
            return [(op, op) for op in found]
        return [(op, self.root) for op in (found if self.printing.tree_dir else found[:1])]

    def dump(self, title: str, pass_name: str, path: tuple[str, ...], known: Sequence[str] = ()) -> None:
        """Dump the operations of a path, but for those whose text is still the known one.

        Raises:
            MxError: the file of a dump cannot be written.
        """
        for index, (target, op) in enumerate(self._shown(path)):
            if index < len(known) and _text(op) == known[index]:
                continue
            # Printing verifies, and falls back to the generic form; what is wrong is reported elsewhere.
            with collecting(self.root.context, Collector()):
                text = asm.to_asm(op, **self.print_flags)
            text = f"// -----// IR Dump {title} //----- //\n{text}\n"
            if self.printing.tree_dir is None:
                print(text, file=self.stream or sys.stderr)
            else:
                self._write(self._file(self.printing.tree_dir, target, pass_name), text)

    def _file(self, folder: str, op: Any, pass_name: str) -> str:
        """Return the file of the next dump of an operation: numbers of the dumps around it, and the pass."""
        numbers: list[str] = []
        around = [op]
        while around[-1] != self.root and (parent := around[-1].parent) is not None:
            around.append(parent.operation)
        for outer in reversed(around[1:]):
            folder = os.path.join(folder, _folder_name(outer))
            numbers.append(str(self.counts.setdefault(folder, 0)))
        folder = os.path.join(folder, _folder_name(op))
        self.counts[folder] = self.counts.get(folder, -1) + 1
        return os.path.join(folder, "_".join([*numbers, str(self.counts[folder]), pass_name]) + ".mlir")

    def _write(self, path: str, text: str) -> None:
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise MxError(f"cannot write IR dump '{path}': {error.strerror}") from None


def _text(op: Any) -> str:
    return op.get_asm(print_generic_op_form=True, assume_verified=True)


def _folder_name(op: Any) -> str:
    symbol = op.attributes["sym_name"].value if "sym_name" in op.attributes else "no-symbol-name"
    return _NOT_PORTABLE.sub("_", f"{op.name.replace('.', '_')}_{symbol}")[:_LONGEST]
