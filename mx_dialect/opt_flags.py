"""The flags of `mx-opt`: what they are and how they are parsed.

Names and forms are mlir-opt's: one dash or two, `--flag=value`, one flag a pass. Everything that is not a flag here
must be the name of a pass or of a pipeline.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mx_dialect import passes, pipelines
from mx_dialect.diagnostics import MxError
from mx_dialect.pipeline_text import Element, parse_anchored, parse_elements
from mx_dialect.upstream_passes import UPSTREAM_PASSES

if TYPE_CHECKING:
    from mx_dialect.driver import IrPrinting


SPLIT_MARKER = "// -----"


class UsageError(Exception):
    """The command line is wrong; the text says how."""


@dataclass
class Flags:
    """A parsed command line. `pipeline_text` is the pipeline that the pass flags or `--pass-pipeline` spell."""

    input: str = "-"
    output: str = "-"
    pass_flags: list[str] = field(default_factory=lambda: [])
    pass_pipeline: str | None = None
    split_marker: str | None = None
    output_split_marker: str = SPLIT_MARKER
    verify_diagnostics: str | None = None
    verify_each: bool = True
    allow_unregistered_dialect: bool = False
    emit_bytecode: bool = False
    dump_pass_pipeline: bool = False
    timing: bool = False
    debug: bool = False
    print_op_on_diagnostic: bool = True
    help: bool = False
    version: bool = False
    list_passes: bool = False
    show_dialects: bool = False
    print_flags: dict[str, Any] = field(default_factory=lambda: {})
    ir_printing: dict[str, Any] = field(default_factory=lambda: {})

    @property
    def pipeline_text(self) -> str:
        return self.pass_pipeline if self.pass_pipeline is not None else ",".join(self.pass_flags)

    @property
    def elements(self) -> tuple[Element, ...]:
        """Return the passes to run on the module.

        Raises:
            MxError: the pipeline does not parse, or its anchor is not a module.
        """
        if self.pass_pipeline is None:
            return parse_elements(self.pipeline_text) if self.pass_flags else ()
        anchored = parse_anchored(self.pass_pipeline)
        if anchored.name not in ("builtin.module", "any"):
            raise MxError(f"can't run '{anchored.name}' pass manager on 'builtin.module' op")
        return anchored.children or ()

    def printing(self) -> "IrPrinting":
        from mx_dialect.driver import IrPrinting

        return IrPrinting(**self.ir_printing)


_SWITCH = "[BOOL]"
_BOOLEANS = {
    **dict.fromkeys(("", "true", "True", "TRUE", "1"), True),
    **dict.fromkeys(("false", "False", "FALSE", "0"), False),
}


@dataclass(frozen=True)
class Flag:
    """One flag: `value` names what it takes ("" for none, "[...]" if it may be left out), `apply` stores it."""

    name: str
    help: str
    apply: Callable[[Flags, str], None]
    value: str = ""

    @property
    def spelled(self) -> str:
        """Return the flag and its value as the help shows them; what switches take goes without saying."""
        name = f"{_dashes(self.name)}{self.name}"
        if self.value in ("", _SWITCH):
            return name
        return f"{name}[={self.value[1:-1]}]" if self.value.startswith("[") else f"{name}={self.value}"


def _dashes(name: str) -> str:
    return "-" if len(name) == 1 else "--"


def _invalid(name: str, problem: str) -> UsageError:
    return UsageError(f"for the {_dashes(name)}{name} option: {problem}")


def _switch(name: str, help: str, store: Callable[[Flags, bool], None]) -> Flag:
    """Return a flag that is on when given bare; `=0` turns it off."""

    def apply(flags: Flags, text: str) -> None:
        if text not in _BOOLEANS:
            raise _invalid(name, f"'{text}' is invalid value for boolean argument! Try 0 or 1")
        store(flags, _BOOLEANS[text])

    return Flag(name, help, apply, _SWITCH)


def _field(name: str) -> Callable[[Flags, Any], None]:
    return lambda flags, value: setattr(flags, name, value)


def _print_flag(option: str) -> Callable[[Flags, Any], None]:
    """Store what `asm.to_asm` calls `option`."""
    return lambda flags, value: flags.print_flags.update({option: value})


def _ir_printing(option: str) -> Callable[[Flags, bool], None]:
    return lambda flags, value: flags.ir_printing.update({option: value})


def _limit(name: str, help: str, option: str) -> Flag:
    """Return a flag that takes a number for a print flag."""

    def apply(flags: Flags, text: str) -> None:
        try:
            number = int(text, 0)
        except ValueError:
            number = -1
        if not 0 <= number < 2**32:
            raise _invalid(name, f"'{text}' value invalid for uint argument!")
        flags.print_flags[option] = number

    return Flag(name, help, apply, "N")


def _dump_around(name: str, help: str, option: str) -> Flag:
    """Return a flag that names passes around which the IR is printed; given again it adds to them."""

    def apply(flags: Flags, text: str) -> None:
        named = text.split(",")
        for one in named:
            # What runs of a pipeline is its passes; nothing would be printed at its own name.
            if not _is_pass(one) or pipelines.get(one) is not None:
                close = passes.nearest(one, [*passes.names(), *UPSTREAM_PASSES])
                raise _invalid(name, f"cannot find a pass named '{one}'{close}")
        flags.ir_printing[option] = flags.ir_printing.get(option, frozenset()).union(named)

    return Flag(name, help, apply, "PASS,...")


def _verify_diagnostics(flags: Flags, text: str) -> None:
    if text not in ("", "all", "only-expected"):
        raise _invalid("verify-diagnostics", f"'{text}' is not one of all, only-expected")
    flags.verify_diagnostics = text or "all"


FLAGS = {
    f.name: f
    for f in (
        Flag("help", "Print this help and exit", lambda flags, text: setattr(flags, "help", True)),
        Flag(
            "version",
            "Print the versions of this tool and of its MLIR and exit",
            lambda flags, text: setattr(flags, "version", True),
        ),
        _switch("list-passes", "Print the names of all passes and pipelines and exit", _field("list_passes")),
        _switch(
            "show-dialects", "Print the names of the dialects that can be parsed and exit", _field("show_dialects")
        ),
        Flag("o", "Output file, written only on success ('-' for standard output)", _field("output"), "FILE"),
        Flag(
            "pass-pipeline",
            "The passes to run, e.g. 'builtin.module(mx-to-linalg,cse)'",
            _field("pass_pipeline"),
            "TEXT",
        ),
        Flag(
            "split-input-file",
            f"Process the pieces between lines '{SPLIT_MARKER}' (or the marker given) one by one",
            lambda flags, text: setattr(flags, "split_marker", text or SPLIT_MARKER),
            "[MARKER]",
        ),
        Flag(
            "output-split-marker",
            f"What to print between the pieces' outputs instead of '{SPLIT_MARKER}'",
            _field("output_split_marker"),
            "MARKER",
        ),
        Flag(
            "verify-diagnostics",
            "Compare what is reported with expected-* comments: all (the default) or only-expected",
            _verify_diagnostics,
            "[all|only-expected]",
        ),
        _switch("verify-each", "Verify the IR after each pass (on unless =0)", _field("verify_each")),
        _switch(
            "allow-unregistered-dialect",
            "Accept operations of unknown dialects",
            _field("allow_unregistered_dialect"),
        ),
        _switch("emit-bytecode", "Write MLIR bytecode instead of text", _field("emit_bytecode")),
        _switch("dump-pass-pipeline", "Print the pipeline that will be run", _field("dump_pass_pipeline")),
        _switch("mlir-timing", "Print how long each pass took", _field("timing")),
        _switch("mlir-print-ir-before-all", "Print the IR before each pass", _ir_printing("before_all")),
        _switch("mlir-print-ir-after-all", "Print the IR after each pass", _ir_printing("after_all")),
        _dump_around("mlir-print-ir-before", "Print the IR before these passes", "before"),
        _dump_around("mlir-print-ir-after", "Print the IR after these passes", "after"),
        _switch(
            "mlir-print-ir-after-change",
            "Print the IR after passes (all, or those that -after names) only if it changed",
            _ir_printing("after_change"),
        ),
        _switch(
            "mlir-print-ir-after-failure",
            "Print the IR after passes (all, or those that -after names) only if they failed",
            _ir_printing("after_failure"),
        ),
        _switch(
            "mlir-print-ir-module-scope",
            "Print the whole module when printing IR around nested passes",
            _ir_printing("module_scope"),
        ),
        _switch(
            "mlir-print-op-generic", "Print operations in their generic form, types as stored", _print_flag("generic")
        ),
        _switch("mlir-print-debuginfo", "Print locations", _print_flag("enable_debug_info")),
        _switch(
            "mlir-pretty-debuginfo",
            "With --mlir-print-debuginfo, print locations in a form for people",
            _print_flag("pretty_debug_info"),
        ),
        _switch("mlir-print-local-scope", "Print without aliases", _print_flag("use_local_scope")),
        _switch("mlir-print-skip-regions", "Do not print regions", _print_flag("skip_regions")),
        _switch(
            "mlir-use-nameloc-as-prefix",
            "Name values after their name locations",
            _print_flag("use_name_loc_as_prefix"),
        ),
        _limit(
            "mlir-elide-elementsattrs-if-larger",
            "Leave out constants with more elements than this",
            "large_elements_limit",
        ),
        _limit(
            "mlir-elide-resource-strings-if-larger",
            "Leave out resources with more characters than this",
            "large_resource_limit",
        ),
        _switch(
            "mlir-print-op-on-diagnostic",
            "Show the operation that a diagnostic is about in a note (on unless =0)",
            _field("print_op_on_diagnostic"),
        ),
        _switch(
            "mlir-print-stacktrace-on-diagnostic",
            "Show the Python traceback of an internal error",
            _field("debug"),
        ),
        _switch(
            "mlir-disable-threading",
            "Accepted for compatibility: passes always run on one thread",
            lambda flags, value: None,
        ),
    )
}

_SHORT = {"h": "help"}


def parse(arguments: list[str]) -> Flags:
    """Parse a command line.

    Raises:
        UsageError: an unknown flag, a missing or bad value, more than one input.
    """
    flags = Flags()
    inputs: list[str] = []
    waiting = list(arguments)
    only_inputs = False
    while waiting:
        argument = waiting.pop(0)
        if only_inputs or argument == "-" or not argument.startswith("-"):
            inputs.append(argument)
        elif argument == "--":
            only_inputs = True
        else:
            _one(flags, argument, waiting)
    if len(inputs) > 1:
        raise UsageError(f"Too many positional arguments specified!\nCan specify at most 1: got {', '.join(inputs)}")
    if inputs:
        flags.input = inputs[0]
    if flags.pass_pipeline is not None and flags.pass_flags:
        raise UsageError("error: '-pass-pipeline' option can't be used with individual pass options")
    return flags


def _one(flags: Flags, argument: str, waiting: list[str]) -> None:
    """Apply one flag; it may take its value from the arguments that follow."""
    name, equals, value = argument.removeprefix("-").removeprefix("-").partition("=")
    name = _SHORT.get(name, name)
    flag = FLAGS.get(name)
    if flag is None:
        flags.pass_flags.append(_pass_flag(argument, name, value))
        return
    if not flag.value and equals:
        raise _invalid(name, f"does not allow a value! '{value}' specified.")
    if flag.value and not flag.value.startswith("[") and not equals:
        if not waiting:
            raise _invalid(name, "requires a value!")
        value = waiting.pop(0)
    flag.apply(flags, value)


def _pass_names() -> set[str]:
    return {*passes.names(), *pipelines.names(), *UPSTREAM_PASSES}


def _is_pass(name: str) -> bool:
    known = passes.exists(name) or pipelines.get(name) is not None or name in UPSTREAM_PASSES
    return known or _bindings_know(name)


def _pass_flag(argument: str, name: str, options: str) -> str:
    """Return the pipeline element for a flag that names a pass."""
    if not _is_pass(name):
        known = [f"--{n}" for n in (*FLAGS, *sorted(_pass_names()))]
        close = passes.nearest(f"--{name}", known).replace("; d", "\nmx-opt: D")
        raise UsageError(f"Unknown command line argument '{argument}'.  Try: 'mx-opt --help'{close}")
    return f"{name}{{{options}}}" if options else name


def _bindings_know(name: str) -> bool:
    """Ask the bindings for a pass that is not in the list; another host package may have more."""
    from mx_dialect._mlir import ir, passmanager

    with ir.Context():
        try:
            passmanager.PassManager.parse(f"any({name})")
        except ValueError as error:
            return "does not refer to a registered pass" not in str(error) and "(" not in name
    return True
