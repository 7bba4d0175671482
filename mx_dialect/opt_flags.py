"""The flags of `mx-opt`: what they are, how they are parsed, and the texts that list them.

Names and forms are mlir-opt's: one dash or two, `--flag=value`, one flag a pass. Everything that is not a flag here
must be the name of a pass or of a pipeline.
"""

import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mx_dialect import passes, pipelines
from mx_dialect.diagnostics import MxError
from mx_dialect.pipeline_text import Element, parse_anchored, parse_elements
from mx_dialect.upstream_passes import UPSTREAM_PASSES

if TYPE_CHECKING:
    from mx_dialect.driver import IrPrinting


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
    verify_diagnostics: str | None = None
    verify_each: bool = True
    allow_unregistered_dialect: bool = False
    emit_bytecode: bool = False
    dump_pass_pipeline: bool = False
    timing: bool = False
    debug: bool = False
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


@dataclass(frozen=True)
class _Flag:
    """One flag: `value` names what it takes ("" for none, "[...]" if it may be left out), `apply` stores it."""

    name: str
    help: str
    apply: Callable[[Flags, str], None]
    value: str = ""


def _store(name: str, value: Any = True) -> Callable[[Flags, str], None]:
    return lambda flags, text: setattr(flags, name, value)


def _boolean(name: str, text: str) -> bool:
    known = {"": True, "true": True, "1": True, "false": False, "0": False}
    if text.lower() not in known:
        raise UsageError(f"for the --{name} option: '{text}' is invalid value for boolean argument! Try 0 or 1")
    return known[text.lower()]


def _number(name: str, text: str) -> int:
    if not text.isdecimal():
        raise UsageError(f"for the --{name} option: '{text}' value invalid for integer argument!")
    return int(text)


def _print_flag(option: str, number_of: str = "") -> Callable[[Flags, str], None]:
    def apply(flags: Flags, text: str) -> None:
        flags.print_flags[option] = _number(number_of, text) if number_of else True

    return apply


def _ir_printing(option: str) -> Callable[[Flags, str], None]:
    def apply(flags: Flags, text: str) -> None:
        flags.ir_printing[option] = frozenset(text.split(",")) if text else True

    return apply


def _pretty_debug_info(flags: Flags, text: str) -> None:
    flags.print_flags.update(enable_debug_info=True, pretty_debug_info=True)


def _verify_each(flags: Flags, text: str) -> None:
    flags.verify_each = _boolean("verify-each", text)


def _verify_diagnostics(flags: Flags, text: str) -> None:
    if text not in ("", "all", "only-expected"):
        raise UsageError(f"for the --verify-diagnostics option: '{text}' is not one of all, only-expected")
    flags.verify_diagnostics = text or "all"


def _text(name: str) -> Callable[[Flags, str], None]:
    return lambda flags, text: setattr(flags, name, text)


_SPLIT_DEFAULT = "// -----"

_FLAGS = {
    f.name: f
    for f in (
        _Flag("help", "Print this help and exit", _store("help")),
        _Flag("version", "Print the versions of this tool and of its MLIR and exit", _store("version")),
        _Flag("list-passes", "Print the names of all passes and pipelines and exit", _store("list_passes")),
        _Flag("show-dialects", "Print the names of the dialects that can be parsed and exit", _store("show_dialects")),
        _Flag("o", "Output file, written only on success ('-' for standard output)", _text("output"), "FILE"),
        _Flag(
            "pass-pipeline",
            "The passes to run, e.g. 'builtin.module(mx-to-linalg,cse)'",
            _text("pass_pipeline"),
            "TEXT",
        ),
        _Flag(
            "split-input-file",
            f"Process the pieces between lines '{_SPLIT_DEFAULT}' (or the marker given) one by one",
            lambda flags, text: setattr(flags, "split_marker", text or _SPLIT_DEFAULT),
            "[MARKER]",
        ),
        _Flag(
            "verify-diagnostics",
            "Compare what is reported with expected-* comments: all (the default) or only-expected",
            _verify_diagnostics,
            "[all|only-expected]",
        ),
        _Flag("verify-each", "Verify the IR after each pass (the default)", _verify_each, "[BOOL]"),
        _Flag(
            "allow-unregistered-dialect",
            "Accept operations of unknown dialects",
            _store("allow_unregistered_dialect"),
        ),
        _Flag("emit-bytecode", "Write MLIR bytecode instead of text", _store("emit_bytecode")),
        _Flag("dump-pass-pipeline", "Print the pipeline that will be run", _store("dump_pass_pipeline")),
        _Flag("mlir-timing", "Print how long each pass took", _store("timing")),
        _Flag("mlir-print-ir-before-all", "Print the IR before each pass", _ir_printing("before_all")),
        _Flag("mlir-print-ir-after-all", "Print the IR after each pass", _ir_printing("after_all")),
        _Flag("mlir-print-ir-before", "Print the IR before these passes", _ir_printing("before"), "PASS,..."),
        _Flag("mlir-print-ir-after", "Print the IR after these passes", _ir_printing("after"), "PASS,..."),
        _Flag(
            "mlir-print-ir-after-change",
            "Print the IR after each pass that changed it",
            _ir_printing("after_change"),
        ),
        _Flag("mlir-print-ir-after-failure", "Print the IR after a pass that failed", _ir_printing("after_failure")),
        _Flag(
            "mlir-print-ir-module-scope",
            "Print the whole module when printing IR around nested passes",
            _ir_printing("module_scope"),
        ),
        _Flag(
            "mlir-print-op-generic", "Print operations in their generic form, types as stored", _print_flag("generic")
        ),
        _Flag("mlir-print-debuginfo", "Print locations", _print_flag("enable_debug_info")),
        _Flag("mlir-pretty-debuginfo", "Print locations in a form for people", _pretty_debug_info),
        _Flag("mlir-print-local-scope", "Print without aliases", _print_flag("use_local_scope")),
        _Flag("mlir-print-skip-regions", "Do not print regions", _print_flag("skip_regions")),
        _Flag(
            "mlir-use-nameloc-as-prefix",
            "Name values after their name locations",
            _print_flag("use_name_loc_as_prefix"),
        ),
        _Flag(
            "mlir-elide-elementsattrs-if-larger",
            "Leave out constants with more elements than this",
            _print_flag("large_elements_limit", "mlir-elide-elementsattrs-if-larger"),
            "N",
        ),
        _Flag(
            "mlir-elide-resource-strings-if-larger",
            "Leave out resources with more characters than this",
            _print_flag("large_resource_limit", "mlir-elide-resource-strings-if-larger"),
            "N",
        ),
        _Flag(
            "mlir-print-stacktrace-on-diagnostic",
            "Show the Python traceback of an internal error",
            _store("debug"),
        ),
        _Flag(
            "mlir-disable-threading",
            "Accepted for compatibility: passes always run on one thread",
            lambda flags, text: None,
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
    name, equals, value = argument.lstrip("-").partition("=")
    name = _SHORT.get(name, name)
    flag = _FLAGS.get(name)
    if (
        flag is None
        and argument.startswith("-o")
        and not argument.startswith("--")
        and not equals
        and name not in _pass_names()
    ):
        flag, name, value, equals = _FLAGS["o"], "o", argument[2:], "="
    if flag is None:
        flags.pass_flags.append(_pass_flag(argument, name, value))
        return
    if not flag.value and equals and value:
        raise UsageError(f"for the --{name} option: does not allow a value! '{value}' specified.")
    if flag.value and not flag.value.startswith("[") and not equals:
        if not waiting:
            dashes = "-" if len(name) == 1 else "--"
            raise UsageError(f"for the {dashes}{name} option: requires a value!")
        value = waiting.pop(0)
    flag.apply(flags, value)


def _pass_names() -> set[str]:
    return {*passes.names(), *pipelines.names(), *UPSTREAM_PASSES}


def _pass_flag(argument: str, name: str, options: str) -> str:
    """Return the pipeline element for a flag that names a pass."""
    if name not in _pass_names() and not _bindings_know(name):
        known = [f"--{n}" for n in (*_FLAGS, *sorted(_pass_names()))]
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


def _entry(name: str, text: str, indent: int = 2, width: int = 46) -> list[str]:
    """Return the lines of one entry of the help: the name in a column, the text wrapped beside it."""
    lines = textwrap.wrap(text, 72) or [""]
    head = " " * indent + name
    first = f"{head:<{width}} - {lines[0]}" if len(head) <= width else f"{head} - {lines[0]}"
    return [first, *(" " * (width + 3) + line for line in lines[1:])]


def _pass_entries(with_options: bool) -> list[str]:
    lines: list[str] = []
    for name in passes.names():
        found = passes.get(name)
        assert found is not None  # names() lists what get() finds
        lines += _entry(f"--{name}", found.summary, 4)
        if not with_options:
            continue
        for option in found.option_fields():
            kind = type(option.default).__name__
            text = f"{option.metadata['help']} (default: {option.default})"
            choices = option.metadata["choices"]
            text += f"; one of {', '.join(choices)}" if choices else ""
            lines += _entry(f"--{option.name.replace('_', '-')}=<{kind}>", text, 6)
    return lines


def _pipeline_entries() -> list[str]:
    lines: list[str] = []
    for name in pipelines.names():
        found = pipelines.get(name)
        assert found is not None  # names() lists what get() finds
        lines += _entry(f"--{name}", found.summary, 4)
    return lines


def help_text() -> str:
    """Return what `--help` prints."""
    lines = [
        "OVERVIEW: mx-opt, MLIR's optimizer driver with the mx dialect",
        "",
        "USAGE: mx-opt [options] <input file, or - for standard input>",
        "",
        "OPTIONS:",
    ]
    for flag in _FLAGS.values():
        value = flag.value
        spelled = f"[={value[1:-1]}]" if value.startswith("[") else f"={value}" if value else ""
        dashes = "-" if len(flag.name) == 1 else "--"
        lines += _entry(f"{dashes}{flag.name}{spelled}", flag.help)
    lines += ["", "  Compiler passes to run", "    Passes of mx_dialect:"]
    lines += _pass_entries(with_options=True)
    lines += ["    Pass pipelines of mx_dialect:", *_pipeline_entries()]
    lines += [
        "    Passes of MLIR:",
        "      every pass that the bindings register is a flag too, with its own options: --one-shot-bufferize=a=1;",
        "      --list-passes names them",
    ]
    return "\n".join(lines) + "\n"


def list_passes_text() -> str:
    """Return what `--list-passes` prints."""
    lines = ["Passes of mx_dialect:", *_pass_entries(with_options=False)]
    lines += ["Pass pipelines of mx_dialect:", *_pipeline_entries()]
    lines += ["Passes and pass pipelines of MLIR:", *(f"    --{name}" for name in UPSTREAM_PASSES)]
    return "\n".join(lines) + "\n"


# The bindings cannot list the dialects they register; each of these is asked for.
_DIALECTS = """
    acc affine amdgpu amx arith arm_neon arm_sme arm_sve async bufferization builtin cf chlo complex dlti emitc func gpu
    index irdl linalg llvm math memref ml_program mpi nvgpu nvvm omp pdl pdl_interp ptr quant rocdl scf shape shard smt
    sparse_tensor spirv stablehlo tensor torch torch_c tosa transform ub vcix vector vhlo wasmssa x86 xegpu xevm
""".split()


def dialects_text() -> str:
    """Return what `--show-dialects` prints."""
    from mx_dialect import dialect

    context = dialect.load()
    context.load_all_available_dialects()
    names = [name for name in _DIALECTS if context.is_dialect_loaded(name)]
    return f"Available Dialects: {', '.join(sorted([*names, 'mx']))}\n"


def version_text() -> str:
    """Return what `--version` prints: this package, and the bindings by the package that brings them."""
    from importlib import metadata

    from mx_dialect import __version__, _mlir

    lines = [f"mx-opt (mx_dialect) {__version__}"]
    try:
        bindings = f"{_mlir.HOST} {metadata.version(_mlir.HOST.partition('.')[0])}"
    except metadata.PackageNotFoundError:
        bindings = _mlir.HOST
    lines.append(f"MLIR bindings: {bindings}")
    return "\n".join(lines) + "\n"
