"""The command line of `mx-run`: its flags, their help, and how they are parsed."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mx_dialect.diagnostics import STACKTRACE_FLAG
from mx_dialect.opt_options import UsageError

HELP = """\
OVERVIEW: mx-run, runs a function of an MLIR file on numpy arrays

USAGE: mx-run [options] <input file, or - for standard input> [array files]

Each .npy file is the next argument that no name gives; the arrays of a .npz file are found by name: arg0, arg1, ...
or the names that the text has (%lhs is lhs). An mx tensor takes two arrays, NAME.mantissa and NAME.scale, or two .npy
files one after the other, of codes (uint8, or dtypes of ml_dtypes); or one of floats, which is quantized.

OPTIONS:
  --arg=<NAME=VALUE>     - An argument by its name: a number for a scalar, or a .npy file
  --random[=<SEED>]      - Make up every argument that is not given, from this seed (0)
  --shape=<NAME:4x32>    - The shape of a random argument with open extents
  -o <FILE>              - Write the results: one array to .npy, or result0, result1, ... to .npz; codes are uint8
                           Without it, a summary of each result is printed
  --entry=<NAME>         - The function to run; the only public one if not given
  --pass-pipeline=<TEXT> - Passes to run before compiling, as in mx-opt
  --threads=<N>          - How many threads large products are divided among; all processors if not given
  --check[=<FILE.npz>]   - Compare the results with a reference in numpy within its error bound, or with the arrays
                           of a file; exit 1 if they differ
  --rtol=<R>, --atol=<A> - Compare floats within A + R * |expected| instead; for a file R is 1e-5 if not given
  --repeat=<N>           - Time N calls after a first one
  --mlir-print-stacktrace-on-diagnostic
                         - Show the Python traceback of internal errors
  --help                 - Print this help and exit
"""

_MOST_REPEATS = 1_000_000


@dataclass
class Flags:
    """A parsed command line. `check` is "" for the reference, None for no check."""

    input: str = ""
    files: list[str] = field(default_factory=lambda: [])
    named: dict[str, str] = field(default_factory=lambda: {})
    shapes: dict[str, tuple[int, ...]] = field(default_factory=lambda: {})
    output: str | None = None
    entry: str | None = None
    pass_pipeline: str | None = None
    threads: int | None = None
    seed: int | None = None
    check: str | None = None
    rtol: float | None = None
    atol: float | None = None
    repeat: int = 0
    debug: bool = False
    help: bool = False


def _invalid(name: str, value: str, expected: str) -> UsageError:
    return UsageError(f"error: {'-' if name == 'o' else '--'}{name}: '{value}' is not {expected}")


def _set(attribute: str) -> Callable[[Flags, str], None]:
    return lambda flags, value: setattr(flags, attribute, value)


def _number(attribute: str, least: int, most: int) -> Callable[[Flags, str], None]:
    def apply(flags: Flags, value: str) -> None:
        number = int(value) if re.fullmatch(r"[0-9]{1,18}", value) else -1
        if not least <= number <= most:
            raise _invalid(attribute, value, f"a number from {least} to {most}")
        setattr(flags, attribute, number)

    return apply


def _tolerance(attribute: str) -> Callable[[Flags, str], None]:
    def apply(flags: Flags, value: str) -> None:
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not 0 <= number < math.inf:
            raise _invalid(attribute, value, "a number from 0 on")
        setattr(flags, attribute, number)

    return apply


def _named(flags: Flags, value: str) -> None:
    name, equals, given = value.partition("=")
    if not name or not equals:
        raise _invalid("arg", value, "NAME=VALUE")
    if name in flags.named:
        raise UsageError(f"error: --arg: '{name}' is given twice")
    flags.named[name] = given


def _shape(flags: Flags, value: str) -> None:
    name, colon, extents = value.rpartition(":")
    if not name or not colon or not re.fullmatch(r"[0-9]{1,12}(x[0-9]{1,12})*", extents):
        raise _invalid("shape", value, "NAME:EXTENTxEXTENT...")
    flags.shapes[name] = tuple(int(extent) for extent in extents.split("x"))


def _output(flags: Flags, value: str) -> None:
    if not value.endswith((".npy", ".npz")):
        raise _invalid("o", value, "a file named .npy or .npz")
    flags.output = value


def _seed(flags: Flags, value: str) -> None:
    _number("seed", 0, 2**32 - 1)(flags, value or "0")


# Flags that need a value, and flags that may have one.
_VALUED: dict[str, Callable[[Flags, str], None]] = {
    "arg": _named,
    "shape": _shape,
    "o": _output,
    "entry": _set("entry"),
    "pass-pipeline": _set("pass_pipeline"),
    "threads": _number("threads", 1, 4096),
    "rtol": _tolerance("rtol"),
    "atol": _tolerance("atol"),
    "repeat": _number("repeat", 1, _MOST_REPEATS),
}
_OPTIONAL: dict[str, Callable[[Flags, str], None]] = {"random": _seed, "check": _set("check")}


def parse(arguments: list[str]) -> Flags:
    """Parse a command line.

    Raises:
        UsageError: an unknown flag, a missing or bad value, no input.
    """
    flags = Flags()
    inputs: list[str] = []
    waiting = list(reversed(arguments))
    while waiting:
        argument = waiting.pop()
        if argument == "--":
            inputs += reversed(waiting)
            break
        if argument == "-" or not argument.startswith("-"):
            inputs.append(argument)
        else:
            _one(flags, argument, waiting)
    if flags.help:
        return flags
    if not inputs:
        raise UsageError("error: no input file; try 'mx-run --help'")
    if flags.check is None and (flags.rtol is not None or flags.atol is not None):
        raise UsageError("error: --rtol and --atol say how --check compares; add --check")
    flags.input, flags.files = inputs[0], inputs[1:]
    return flags


def _one(flags: Flags, argument: str, waiting: list[Any]) -> None:
    name, equals, value = argument.removeprefix("-").removeprefix("-").partition("=")
    if name in ("h", "help") and not equals:
        flags.help = True
    elif name == STACKTRACE_FLAG and not equals:
        flags.debug = True
    elif name in _OPTIONAL:
        _OPTIONAL[name](flags, value)
    elif name not in _VALUED:
        raise UsageError(f"error: unknown flag '{argument}'; try 'mx-run --help'")
    elif equals:
        _VALUED[name](flags, value)
    elif waiting:
        _VALUED[name](flags, waiting.pop())
    else:
        raise UsageError(f"error: {argument} needs a value")
