"""The `mx-opt` command: flags to a driver run, nothing more.

Behaves as mlir-opt does where the two share a feature: input from a file or standard input, one flag a pass or
`--pass-pipeline`, `-o` written only on success, diagnostics on standard error, exit code 0 or 1.
"""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mx_dialect import opt_flags, opt_listings
from mx_dialect.diagnostics import Collector, Diagnostic, MxError, Sources, bug, collecting, render, without_printed_op
from mx_dialect.input_text import decoded, split
from mx_dialect.opt_files import STANDARD, read_input, write_output
from mx_dialect.opt_flags import Flags, UsageError
from mx_dialect.pipeline_text import Element

_DEBUG = "mlir-print-stacktrace-on-diagnostic"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with these arguments (the process's own if None) and return its exit code."""
    if argv is None:
        own_process()
    arguments = sys.argv[1:] if argv is None else list(argv)
    try:
        return _main(arguments)
    except UsageError as error:
        _say(f"mx-opt: {error}")
    except MxError as error:
        sources = Sources()
        for diagnostic in error.diagnostics:
            _say(render(diagnostic, sources))
    except RecursionError:
        _say("mx-opt: error: the input is nested too deeply")
    except Exception as error:
        if any(argument.lstrip("-") == _DEBUG for argument in arguments):
            raise
        _say(f"mx-opt: internal error: {bug(error)}")
    return 1


def own_process() -> None:
    """Die of signals as other commands do.

    Python would look at an interrupt only after a pass in native code, and take the end of a reader (`mx-opt | head`)
    for an error.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  # print() would turn to standard output


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _main(arguments: list[str]) -> int:
    flags = opt_flags.parse(arguments)
    listing = opt_listings.asked_for(flags)
    if listing is None:
        return _Session(flags).run()
    write_output(STANDARD, listing.encode())
    return 0


@dataclass
class _Session:
    """One run over one input: what is read, what was reported, what will be written."""

    flags: Flags
    elements: tuple[Element, ...] = ()
    sources: Sources = field(default_factory=Sources)
    failed: bool = False
    outputs: list[bytes] = field(default_factory=lambda: [])

    @property
    def name(self) -> str:
        """Return what the input is called in diagnostics and locations."""
        return "<stdin>" if self.flags.input == STANDARD else self.flags.input

    def run(self) -> int:
        from mx_dialect import dialect, driver

        # A pipeline that cannot run is refused before any input is read.
        self.elements = driver.resolve(self.flags.elements, dialect.load(), self.flags.pipeline_text)
        if self.flags.dump_pass_pipeline:
            _say(f"Pass Manager with {len(self.elements)} passes:")
            _say(Element(driver.MODULE, children=self.elements).pretty())
        for piece in self._pieces():
            self._process(piece)
        between = b"" if self.flags.emit_bytecode else f"{self.flags.output_split_marker}\n".encode()
        if self.flags.output == STANDARD or not self.failed:
            write_output(self.flags.output, between.join(self.outputs))
        return 1 if self.failed else 0

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
        from mx_dialect import dialect, driver

        context = dialect.load()
        context.allow_unregistered_dialects = self.flags.allow_unregistered_dialect
        timing = driver.Timing()
        settings = driver.Settings(
            verify_each=self.flags.verify_each,
            printing=self.flags.printing(),
            print_flags=self.flags.print_flags,
            timing=timing,
            on_diagnostic=report,
            debug=self.flags.debug,
        )
        try:
            with timing.measure("Parser"), collecting(context, Collector(report)):
                module = self._parse(piece, context)
            driver.run(module.operation, self.elements, settings)
            with timing.measure("Output"):
                return self._print(module)
        finally:
            if self.flags.timing:
                _say(timing.report())

    def _parse(self, piece: str | bytes, context: Any) -> Any:
        from mx_dialect import asm

        if isinstance(piece, bytes):
            return asm.parse_bytecode(piece, context, self.name)
        return asm.parse(piece, context, self.name)

    def _print(self, module: Any) -> bytes:
        from mx_dialect import asm

        if self.flags.emit_bytecode:
            return asm.to_bytecode(module)
        # The driver has verified the module after its last pass; printing would verify it once more.
        verified = self.flags.verify_each or not self.elements
        return asm.to_asm(module, assume_verified=verified, **self.flags.print_flags).encode()

    def _report(self, diagnostic: Diagnostic) -> None:
        shown = diagnostic if self.flags.print_op_on_diagnostic else without_printed_op(diagnostic)
        _say(render(shown, self.sources))


if __name__ == "__main__":
    sys.exit(main())
