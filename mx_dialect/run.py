"""The `mx-run` command: compiles a function of an MLIR file and calls it with arrays of files.

The reference of `--check` is computed from the function as it is written, if it takes the same arrays as what the
passes of `--pass-pipeline` make of it, and from that otherwise.
"""

import math
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mx_dialect import run_flags
from mx_dialect.crash_guard import guarded, note
from mx_dialect.diagnostics import STACKTRACE_FLAG, MxError, Sources, bug, python_warnings, render, without_printed_op
from mx_dialect.opt_files import STANDARD, read_input, write_output
from mx_dialect.opt_options import UsageError, given
from mx_dialect.report.tensor_files import spell
from mx_dialect.run_flags import Flags


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with these arguments and return its exit code.

    With the process's own, which None stands for, it runs in a child process, so that a crash of MLIR is an error.
    """
    from mx_dialect.opt import own_process

    if argv is not None:
        return _reported(list(argv))
    own_process()
    arguments = sys.argv[1:]
    # A debugger wants one process.
    alone = given(arguments, STACKTRACE_FLAG)
    return _reported(arguments) if alone else guarded("mx-run", lambda: _reported(arguments))


def _reported(arguments: list[str]) -> int:
    """Run the command with its failures told to the user; return the exit code."""
    sources = Sources()
    try:
        with python_warnings(lambda warning: _say(f"mx-run: {warning.header()}")):
            return _main(arguments, sources)
    except UsageError as error:
        _say(f"mx-run: {error}")
    except MxError as error:
        for diagnostic in error.diagnostics:
            text = render(without_printed_op(diagnostic), sources)
            _say(text if diagnostic.file is not None else f"mx-run: {text}")
    except (MemoryError, RecursionError) as error:
        reason = "not enough memory" if isinstance(error, MemoryError) else "the input is nested too deeply"
        _say(f"mx-run: error: {reason}")
    except Exception as error:
        if given(arguments, STACKTRACE_FLAG):
            raise
        _say(f"mx-run: internal error: {bug(error)}")
    return 1


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _print(lines: Sequence[str]) -> None:
    write_output(STANDARD, "".join(f"{line}\n" for line in lines).encode())


def _main(arguments: list[str], sources: Sources) -> int:
    flags = run_flags.parse(arguments)
    if flags.help:
        _print(run_flags.HELP.splitlines())
        return 0
    from mx_dialect.run_inputs import Files

    # Files that cannot be read are refused before anything is compiled.
    with Files(flags.files) as files:
        return _Session(flags, sources).run(files)


@dataclass
class _Session:
    """One run of one function."""

    flags: Flags
    sources: Sources
    _text: str | None = field(default=None, init=False)

    def run(self, files: Any) -> int:
        from mx_dialect import run_outputs
        from mx_dialect.runtime.compiler import compile

        written, module = self._modules()
        note("compiling")
        kernel = compile(module, entry=self.flags.entry, threads=self.flags.threads)
        signature = kernel.interface.signature
        arguments = self._arguments(files, signature, module)
        note(f"running '{signature.name}'")
        results = self._call(kernel, arguments)
        failed = False
        if self.flags.check is not None:
            failed = not self._check(signature, written, module, arguments, results)
        if self.flags.repeat:
            self._time(kernel, arguments, _function(module, signature.name))
        if failed:
            return 1
        if self.flags.output is not None:
            run_outputs.write(self.flags.output, run_outputs.parts(signature, results))
        elif self.flags.check is None and not self.flags.repeat:
            _print(run_outputs.summary(signature, results))
        return 0

    def _modules(self) -> tuple[Any, Any]:
        """Return the module as it is written, and after the passes of the command line."""
        from mx_dialect import api, driver
        from mx_dialect.input_text import decoded

        name = "<stdin>" if self.flags.input == STANDARD else self.flags.input
        source = decoded(read_input(self.flags.input), name)
        note(f"reading '{name}'")
        if isinstance(source, str):
            self._text = source
            self.sources.add(name, source)
        module = api.parse(source, name)
        if self.flags.pass_pipeline is None:
            return module, module
        lowered = api.parse(source, name)
        driver.run_pipeline(
            lowered, self.flags.pass_pipeline, driver.Settings(on_diagnostic=self._report, debug=self.flags.debug)
        )
        return module, lowered

    def _report(self, diagnostic: Any) -> None:
        _say(render(without_printed_op(diagnostic), self.sources))

    def _arguments(self, files: Any, signature: Any, module: Any) -> list[Any]:
        from mx_dialect.run_inputs import Inputs, argument_names

        names = argument_names(_function(module, signature.name), self._text)
        return Inputs(self.flags, signature, names, files, _say).arguments()

    def _call(self, kernel: Any, arguments: Sequence[Any]) -> list[Any]:
        results = kernel(*arguments)
        if not kernel.interface.signature.results:
            return []
        return [*results] if len(kernel.interface.signature.results) > 1 else [results]

    def _check(
        self, signature: Any, written: Any, module: Any, arguments: Sequence[Any], results: Sequence[Any]
    ) -> bool:
        """Print how the results compare with what they should be, and return whether they are."""
        from mx_dialect import interpreter, run_check, run_outputs

        if self.flags.check:
            against = spell(self.flags.check)
            expected = run_check.of_file(self.flags.check, signature, results, self.flags)
        else:
            given = _as_written(written, signature, arguments)
            reference = module if given is None else written
            against = f"the reference of @{signature.name}{' after the passes' if given is None else ''}"
            values = interpreter.evaluate(_copy(reference), signature.name, arguments if given is None else given)
            expected = run_check.of_reference(values, self.flags)
        arrays = run_outputs.parts(signature, results)
        reports = [run_check.report(n, a, e) for (n, a), e in zip(arrays.items(), expected, strict=True)]
        _print([f"check against {against}:", *(f"  {text}" for _, text in reports)])
        return all(good for good, _ in reports)

    def _time(self, kernel: Any, arguments: Sequence[Any], function: Any) -> None:
        # The first call was the warm-up.
        times: list[float] = []
        for _ in range(self.flags.repeat):
            start = time.perf_counter()
            kernel(*arguments)
            times.append(time.perf_counter() - start)
        least, median = min(times), statistics.median(times)
        operations = _operations(function)
        rate = f", {operations / median / 1e9:.3g} GFLOP/s by the median" if operations and median else ""
        _print([f"{len(times)} calls: median {_duration(median)}, min {_duration(least)}{rate}"])


def _duration(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.4g} {unit}"
    return f"{seconds * 1e9:.4g} ns"


def _function(module: Any, name: str) -> Any:
    from mx_dialect._mlir import ir

    for op in module.body:
        if op.operation.name == "func.func" and ir.StringAttr(op.operation.attributes["sym_name"]).value == name:
            return op.operation
    raise MxError(f"there is no function @{name}")  # compile() has found it.


def _as_written(module: Any, compiled: Any, arguments: Sequence[Any]) -> list[Any] | None:
    """Return the arguments of a compiled function for the function as it is written, None if that takes others.

    Passes that lower may take an mx tensor apart; its two arrays are one argument then.
    """
    from mx_dialect.run_check import regrouped
    from mx_dialect.runtime.function_signature import of_function

    try:
        return regrouped(of_function(_function(module, compiled.name).opview), compiled, arguments)
    except MxError:
        return None


def _copy(module: Any) -> Any:
    """Return a module that may be changed."""
    from mx_dialect import asm, dialect

    return asm.parse_bytecode(asm.to_bytecode(module.operation), dialect.load())


def _operations(function: Any) -> int:
    """Return 2 M N K, times the batch, of all mx.block_matmul of a function; 0 where that is not all it multiplies."""
    from mx_dialect._mlir import ir

    total = 0
    for block in function.regions[0].blocks:
        for op in block.operations:
            operation = op.operation
            if operation.name == "mx.block_matmul":
                lhs, acc = list(operation.operands[0].type.shape), list(operation.results[0].type.shape)
                dynamic = ir.ShapedType.get_dynamic_size()
                if dynamic in (lhs[-1], *acc):
                    return 0
                total += 2 * lhs[-1] * math.prod(acc)
            elif list(operation.regions) or operation.name == "func.call":
                return 0
    return total


if __name__ == "__main__":
    sys.exit(main())
