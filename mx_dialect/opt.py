"""The `mx-opt` command: flags to a driver run, nothing more.

Behaves as mlir-opt does where the two share a feature: input from a file or standard input, one flag a pass or
`--pass-pipeline`, `-o` written only on success, diagnostics on standard error, exit code 0 or 1.
"""

import os
import signal
import sys
from collections.abc import Sequence

from mx_dialect import opt_flags, opt_listings
from mx_dialect.crash_guard import guarded
from mx_dialect.diagnostics import STACKTRACE_FLAG, MxError, bug, python_warnings
from mx_dialect.opt_files import STANDARD, write_output
from mx_dialect.opt_options import UsageError, given
from mx_dialect.opt_session import Session, say

_ERRORS_ONLY = "mlir-diagnostic-verbosity-level=errors"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with these arguments and return its exit code.

    With the process's own, which None stands for, it runs in a child process, so that a crash of MLIR is an error.
    """
    if argv is not None:
        return _reported(list(argv))
    own_process()
    arguments = sys.argv[1:]
    # A debugger wants one process.
    alone = given(arguments, STACKTRACE_FLAG)
    return _reported(arguments) if alone else guarded("mx-opt", lambda: _reported(arguments))


def _reported(arguments: list[str]) -> int:
    """Run the command with its failures told to the user; return the exit code."""
    try:
        # Plugins are looked for, and may fail, before the flags are known.
        with python_warnings(lambda warning: None if given(arguments, _ERRORS_ONLY) else say(warning.header())):
            return _main(arguments)
    except UsageError as error:
        say(f"mx-opt: {error}")
    except MxError as error:  # before there is a session: no bindings that can be used
        say(f"mx-opt: error: {error}")
    except MemoryError:
        say("mx-opt: error: not enough memory")
    except RecursionError:
        say("mx-opt: error: the input is nested too deeply")
    except Exception as error:
        if given(arguments, STACKTRACE_FLAG):
            raise
        say(f"mx-opt: internal error: {bug(error)}")
    return 1


def own_process() -> None:
    """Die of signals as other commands do.

    Python would look at an interrupt only after a pass in native code, and take the end of a reader (`mx-opt | head`)
    for an error. Whoever starts it may have said that interrupts are ignored, as shells do of commands behind `&`.
    """
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if sys.stderr is None:
        # Without one, print() would turn to standard output.
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def _main(arguments: list[str]) -> int:
    flags = opt_flags.parse(arguments)
    listing = opt_listings.asked_for(flags)
    if listing is None:
        return Session(flags).run()
    # Only the definition of the dialect is something to keep.
    write_output(flags.output if flags.listing == "emit-irdl" else STANDARD, listing.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
