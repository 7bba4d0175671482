"""The `mx-opt` command: flags to a driver run, nothing more.

Behaves as mlir-opt does where the two share a feature: input from a file or standard input, one flag a pass or
`--pass-pipeline`, `-o` written only on success, diagnostics on standard error, exit code 0 or 1.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mx_dialect import opt_flags
from mx_dialect.diagnostics import Diagnostic, MxError, render
from mx_dialect.opt_flags import Flags, UsageError

SPLIT_MARKER = "// -----"
BYTECODE_MAGIC = b"ML\xefR"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with these arguments (the process's own if None) and return its exit code."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    try:
        return _main(arguments)
    except UsageError as error:
        print(f"mx-opt: {error}", file=sys.stderr)
    except MxError as error:
        for diagnostic in error.diagnostics:
            print(render(diagnostic, {}), file=sys.stderr)
    except BrokenPipeError:
        # The reader of our output went away, as `mx-opt ... | head` does; point stdout at nothing for the final flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        return 130
    except RecursionError:
        print("mx-opt: error: the input is nested too deeply", file=sys.stderr)
    except Exception as error:
        if "--mlir-print-stacktrace-on-diagnostic" in arguments:
            raise
        print(
            f"mx-opt: internal error: {type(error).__name__}: {error} (this is a bug;"
            " --mlir-print-stacktrace-on-diagnostic shows the traceback)",
            file=sys.stderr,
        )
    return 1


def _main(arguments: list[str]) -> int:
    flags = opt_flags.parse(arguments)
    if flags.help:
        print(opt_flags.help_text(), end="")
        return 0
    if flags.version:
        print(opt_flags.version_text(), end="")
        return 0
    if flags.list_passes:
        print(opt_flags.list_passes_text(), end="")
        return 0
    if flags.show_dialects:
        print(opt_flags.dialects_text(), end="")
        return 0
    return _Session(flags).run()


@dataclass
class _Chunk:
    """A piece of the input that is processed by itself: its text, preceded by blank lines up to its place."""

    text: str
    first_line: int


@dataclass
class _Session:
    """One run over one input: what is read, what was reported, what will be written."""

    flags: Flags
    name: str = ""
    source: str = ""
    failed: bool = False
    outputs: list[str | bytes] = field(default_factory=lambda: [])

    def run(self) -> int:
        from mx_dialect import dialect, driver

        # A pipeline that cannot run is refused before any input is read.
        self.elements = driver.resolve(self.flags.elements, dialect.load(), self.flags.pipeline_text)
        if self.flags.dump_pass_pipeline:
            body = ",\n  ".join(e.text for e in self.elements)
            print(f"Pass Manager with {len(self.elements)} passes:", file=sys.stderr)
            print(f"builtin.module(\n  {body}\n)" if body else "builtin.module()", file=sys.stderr)
        data = self._read()
        if data.startswith(BYTECODE_MAGIC):
            self._process(data)
        else:
            try:
                self.source = data.decode()
            except UnicodeDecodeError as error:
                line = data.count(b"\n", 0, error.start) + 1
                column = error.start - data.rfind(b"\n", 0, error.start)
                raise MxError.of(Diagnostic("error", "the input is not valid UTF-8", self.name, line, column)) from None
            for chunk in self._chunks():
                self._process(chunk)
        self._write()
        return 1 if self.failed else 0

    def _read(self) -> bytes:
        if self.flags.input == "-":
            self.name = "<stdin>"
            return sys.stdin.buffer.read()
        self.name = self.flags.input
        try:
            with open(self.flags.input, "rb") as file:
                return file.read()
        except OSError as error:
            raise UsageError(f"error: cannot open input file '{self.flags.input}': {error.strerror}") from None

    def _chunks(self) -> list[_Chunk]:
        marker = self.flags.split_marker
        if marker is None:
            return [_Chunk(self.source, 0)]
        chunks: list[_Chunk] = []
        lines: list[str] = []
        first = 0
        for number, line in enumerate(self.source.split("\n")):
            if line.rstrip() == marker:
                chunks.append(_Chunk("\n" * first + "\n".join(lines) + "\n", first))
                lines, first = [], number + 1
            else:
                lines.append(line)
        chunks.append(_Chunk("\n" * first + "\n".join(lines), first))
        return chunks

    def _process(self, chunk: _Chunk | bytes) -> None:
        from mx_dialect import verify_diagnostics

        reported: list[Diagnostic] = []
        checking = self.flags.verify_diagnostics is not None
        report = reported.append if checking else self._report
        output: str | bytes | None = None
        try:
            output = self._compile(chunk, report)
        except MxError as error:
            for diagnostic in error.diagnostics:
                report(diagnostic)
            if not checking:
                self.failed = True
        # A bad chunk contributes an empty piece of output, so that the markers still match the input's.
        self.outputs.append(b"" if output is None else output)
        if checking and isinstance(chunk, _Chunk):
            only_expected = self.flags.verify_diagnostics == "only-expected"
            problems = verify_diagnostics.check(chunk.text, self.name, reported, only_expected)
            for problem in problems:
                self._report(problem)
            self.failed = self.failed or bool(problems)

    def _compile(self, chunk: _Chunk | bytes, report: Any) -> str | bytes:
        from mx_dialect import asm, dialect, driver

        timing = driver.Timing() if self.flags.timing else None
        context = dialect.load()
        context.allow_unregistered_dialects = self.flags.allow_unregistered_dialect
        clock = timing or driver.Timing()
        with clock.measure("Parser"):
            if isinstance(chunk, bytes):
                module = asm.parse_bytecode(chunk, context)
            else:
                module = asm.parse(chunk.text, context, self.name)
        settings = driver.Settings(
            verify_each=self.flags.verify_each,
            printing=self.flags.printing(),
            print_flags=self.flags.print_flags,
            timing=timing,
            on_diagnostic=report,
            debug=self.flags.debug,
        )
        driver.run(module.operation, self.elements, settings)
        with clock.measure("Output"):
            output = self._print(module)
        if timing is not None:
            print(timing.report(), file=sys.stderr)
        return output

    def _print(self, module: Any) -> str | bytes:
        from mx_dialect import asm

        if self.flags.emit_bytecode:
            return asm.to_bytecode(module)
        # The driver has verified the module after its last pass; printing would verify it once more.
        verified = self.flags.verify_each or not self.elements
        return asm.to_asm(module, assume_verified=verified, **self.flags.print_flags)

    def _report(self, diagnostic: Diagnostic) -> None:
        print(render(diagnostic, {self.name: self.source}), file=sys.stderr)

    def _write(self) -> None:
        if self.flags.emit_bytecode:
            data = b"".join(o if isinstance(o, bytes) else o.encode() for o in self.outputs)
        else:
            texts = [o if isinstance(o, str) else o.decode() for o in self.outputs]
            ended = [t if not t or t.endswith("\n") else t + "\n" for t in texts]
            data = f"{SPLIT_MARKER}\n".join(ended).encode()
        if self.flags.output == "-":
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        elif not self.failed:
            _write_whole(self.flags.output, data)


def _write_whole(path: str, data: bytes) -> None:
    """Write a file so that it is either complete or as it was before."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            # A device or a pipe is written through; it cannot be replaced.
            with open(path, "wb") as file:
                file.write(data)
            return
        with open(temporary, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except OSError as error:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise UsageError(f"error: cannot write output file '{path}': {error.strerror}") from None


if __name__ == "__main__":
    sys.exit(main())
