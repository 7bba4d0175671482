"""The files of `--mlir-generate-reproducer` and `--mlir-pass-pipeline-crash-reproducer`."""

import os
from dataclasses import dataclass
from typing import Any

from mx_dialect import reproducer
from mx_dialect.opt_files import read_input, write_output
from mx_dialect.opt_options import Flags
from mx_dialect.pipeline_text import Element


@dataclass
class Reproducers:
    """The reproducers of one run over `root`.

    That of a crash is written before anything runs, or, if it is to be local, before each pass, and after success its
    file is as it was: nothing can be written once native code has ended the process.
    """

    flags: Flags
    root: Any
    elements: tuple[Element, ...]
    verify_each: bool
    before: bytes | None = None

    def begin(self) -> None:
        """Write what has to be written before the run.

        Raises:
            UsageError: a file cannot be written.
        """
        if self.flags.generate_reproducer is not None:
            self._write(self.flags.generate_reproducer, self.elements)
        if self.flags.crash_reproducer is not None:
            if os.path.isfile(self.flags.crash_reproducer):
                self.before = read_input(self.flags.crash_reproducer)
            self._write(self.flags.crash_reproducer, self.elements)

    def on_pass(self, path: tuple[str, ...], element: Element) -> None:
        """Note that a pass is about to run."""
        if self.flags.crash_reproducer is not None and self.flags.local_reproducer:
            nested = element
            for anchor in reversed(path[1:]):
                nested = Element(anchor, children=(nested,))
            self._write(self.flags.crash_reproducer, (nested,))

    def succeeded(self) -> None:
        """Take back the reproducer of the crash that did not happen."""
        path = self.flags.crash_reproducer
        if path is None or not os.path.isfile(path):
            return
        if self.before is None:
            os.unlink(path)
        else:
            write_output(path, self.before)

    def _write(self, path: str, elements: tuple[Element, ...]) -> None:
        pipeline = Element(self.root.name, children=elements).text
        write_output(path, reproducer.written(self.root, pipeline, self.verify_each).encode())
