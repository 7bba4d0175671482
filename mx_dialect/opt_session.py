"""One run of `mx-opt` over one input: reading, checking, running passes, reporting, writing."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mx_dialect.crash_guard import note
from mx_dialect.diagnostics import Collector, Diagnostic, MxError, Sources, collecting, render, without_printed_op
from mx_dialect.input_text import decoded, split
from mx_dialect.opt_files import STANDARD, read_input, write_output
from mx_dialect.opt_options import Flags
from mx_dialect.pipeline_text import Element
from mx_dialect.terminal import highlighted, painted, plain, wanted

# What each level of --mlir-diagnostic-verbosity-level lets through.
_SHOWN = {
    "errors": ("error",),
    "warnings": ("error", "warning"),
    "remarks": ("error", "warning", "remark", "note"),
}


def say(text: str) -> None:
    """Print a line for the user on standard error."""
    print(text, file=sys.stderr)


@dataclass
class Session:
    """One run over one input: what is read, what was reported, what will be written."""

    flags: Flags
    elements: tuple[Element, ...] = ()
    irdl_texts: dict[str, str] = field(default_factory=lambda: {})
    sources: Sources = field(default_factory=Sources)
    failed: bool = False
    outputs: list[bytes] = field(default_factory=lambda: [])

    @property
    def name(self) -> str:
        """Return what the input is called in diagnostics and locations."""
        return "<stdin>" if self.flags.input == STANDARD else self.flags.input

    def run(self) -> int:
        try:
            self._prepare()
            for piece in self._pieces():
                self._process(piece)
        except MxError as error:
            for diagnostic in error.diagnostics:
                self._report(diagnostic)
            return 1
        between = b"" if self.flags.emit_bytecode else f"{self.flags.output_split_marker}\n".encode()
        if self.flags.output == STANDARD or not self.failed:
            self._write(between.join(self.outputs))
        return 1 if self.failed else 0

    def _prepare(self) -> None:
        """Refuse a pipeline or a definition of dialects that cannot be used before any input is read."""
        from mx_dialect import driver

        for path in self.flags.irdl_files:
            text = decoded(read_input(path), path)
            if isinstance(text, bytes):
                raise MxError(f"'{path}' is bytecode; --irdl-file reads text")
            self.irdl_texts[path] = text
            self.sources.add(path, text)
        context = self._context()
        if self.flags.implicit_module:
            self.elements = self._resolved(driver.MODULE, context)

    def _context(self) -> Any:
        """Return a new context with all dialects that the command line asks for."""
        from mx_dialect import dialect

        context = dialect.load()
        if self.irdl_texts:
            from mx_dialect import irdl_files

            for path, text in self.irdl_texts.items():
                note(f"reading '{path}'")
                irdl_files.load(text, context, path)
        context.allow_unregistered_dialects = self.flags.allow_unregistered_dialect
        return context

    def _resolved(self, root: str, context: Any) -> tuple[Element, ...]:
        """Return the passes that the command line asks for on a `root` operation."""
        from mx_dialect import driver

        elements = driver.resolve(self.flags.elements(root), context, self.flags.pipeline_text, (root,))
        if self.flags.dump_pass_pipeline:
            say(f"Pass Manager with {len(elements)} passes:")
            say(Element(root, children=elements).pretty())
        return elements

    def _pieces(self) -> Sequence[str | bytes]:
        """Return the input: texts that are processed one by one, or one bytecode."""
        text = decoded(read_input(self.flags.input), self.name)
        if isinstance(text, bytes):
            return [text]
        self.sources.add(self.name, text)
        if self.flags.split_marker is None:
            return [text]
        pieces, near_misses = split(text, self.flags.split_marker, self.name)
        for warning in near_misses:
            self._report(warning)
        return pieces

    def _process(self, piece: str | bytes) -> None:
        from mx_dialect import verify_diagnostics

        reported: list[Diagnostic] = []
        checking = self.flags.verify_diagnostics is not None
        report = reported.append if checking else self._report
        output = b""
        try:
            output = self._compile(piece, report)
        except MxError as error:
            for diagnostic in error.diagnostics:
                report(diagnostic)
            self.failed = self.failed or not checking
        # A bad piece contributes an empty piece of output, so that the markers still match the input's.
        self.outputs.append(output)
        if checking:
            # Bytecode has no comments that could expect anything.
            source = piece if isinstance(piece, str) else ""
            only_expected = self.flags.verify_diagnostics == "only-expected"
            problems = verify_diagnostics.check(source, self.name, reported, only_expected)
            for problem in problems:
                self._report(problem)
            self.failed = self.failed or bool(problems)

    def _compile(self, piece: str | bytes, report: Callable[[Diagnostic], None]) -> bytes:
        from mx_dialect import driver

        context = self._context()
        timing, statistics = driver.Timing(), driver.Statistics()
        try:
            with timing.measure("Parser"), collecting(context, Collector(self._of_parser(report))):
                module = self._parse(piece, context)
            elements, verify_each = self._plan(piece, module.operation)
            settings = driver.Settings(
                verify_each=verify_each,
                printing=self.flags.printing(),
                print_flags=self.flags.print_flags,
                timing=timing,
                statistics=statistics if self.flags.statistics else None,
                on_diagnostic=report,
                trust_input=self.flags.trust_input,
                debug=self.flags.debug,
            )
            self._run(module.operation, elements, settings)
            with timing.measure("Output"):
                return self._print(module, assume_verified=verify_each or not elements)
        finally:
            if self.flags.statistics:
                say(statistics.report(self.flags.statistics_display))
            if self.flags.timing:
                say(timing.report(self.flags.timing_display, self.flags.report_format))

    def _of_parser(self, report: Callable[[Diagnostic], None]) -> Callable[[Diagnostic], None]:
        """Return what reports the parser's diagnostics, but for that it does not know what is about to be run."""
        if not self.flags.run_reproducer:
            return report
        from mx_dialect.reproducer import IGNORED

        return lambda diagnostic: None if diagnostic.message == IGNORED else report(diagnostic)

    def _parse(self, piece: str | bytes, context: Any) -> Any:
        from mx_dialect import asm, roundtrip

        note(f"reading '{self.name}'")
        if isinstance(piece, str):
            module = asm.parse(piece, context, self.name, self.flags.implicit_module)
        elif self.flags.implicit_module:
            module = asm.parse_bytecode(piece, context, self.name)
        else:
            raise MxError("--no-implicit-module reads text only: the bindings make a module of all bytecode")
        if self.flags.verify_roundtrip:
            note(f"reading '{self.name}' once more")
            roundtrip.check(module, self._context)
        return module

    def _plan(self, piece: str | bytes, root: Any) -> tuple[tuple[Element, ...], bool]:
        """Return the passes to run on an operation, and whether to verify after each."""
        elements = self.elements if self.flags.implicit_module else self._resolved(root.name, root.context)
        if not self.flags.run_reproducer:
            return elements, self.flags.verify_each
        from mx_dialect import reproducer

        asked = reproducer.asked_for(piece, root, trusted=self.flags.trust_input)
        return (*asked.elements, *elements), asked.verify_each and self.flags.verify_each

    def _run(self, root: Any, elements: tuple[Element, ...], settings: Any) -> None:
        from mx_dialect import driver
        from mx_dialect.opt_reproducers import Reproducers

        reproducers = Reproducers(self.flags, root, elements, settings.verify_each)

        def on_pass(path: tuple[str, ...], element: Element) -> None:
            note(f"running pass '{element.text}'")
            reproducers.on_pass(path, element)

        settings.on_pass = on_pass
        reproducers.begin()
        try:
            driver.run(root, elements, settings)
        except MxError:
            if self.flags.crash_reproducer is not None:
                say(f"mx-opt: note: reproducer generated at '{self.flags.crash_reproducer}'")
            raise
        reproducers.succeeded()

    def _print(self, module: Any, assume_verified: bool) -> bytes:
        from mx_dialect import asm

        note("printing the result")
        if self.flags.emit_bytecode:
            return asm.to_bytecode(module, self.flags.bytecode_version)
        # The driver has verified the module after its last pass; printing would verify it once more.
        verified = assume_verified or self.flags.assume_verified
        text = asm.to_asm(module, assume_verified=verified, **self.flags.print_flags)
        return (text if text.endswith("\n") else f"{text}\n").encode()

    def _write(self, data: bytes) -> None:
        if self.flags.output == STANDARD and not self.flags.emit_bytecode and wanted(sys.stdout, self.flags.color):
            data = highlighted(data.decode()).encode()
        write_output(self.flags.output, data)

    def _report(self, diagnostic: Diagnostic) -> None:
        if diagnostic.severity not in _SHOWN[self.flags.verbosity]:
            return
        shown = diagnostic if self.flags.print_op_on_diagnostic else without_printed_op(diagnostic)
        if not self.flags.print_notes:
            shown = replace(shown, notes=())
        say(render(shown, self.sources, painted if wanted(sys.stderr, self.flags.color) else plain))
