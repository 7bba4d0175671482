"""The flags of `mx-opt`: what they are and how they are parsed.

Names and forms are mlir-opt's: one dash or two, `--flag=value`, one flag a pass. Everything that is not a flag here
must be the name of a pass or of a pipeline.
"""

from mx_dialect import passes, pipelines, plugins
from mx_dialect.diagnostics import STACKTRACE_FLAG
from mx_dialect.opt_options import (
    SPLIT_MARKER,
    Flag,
    Flags,
    UsageError,
    choice,
    color,
    invalid,
    ir_printing,
    number,
    print_flag,
    stored,
    switch,
)
from mx_dialect.opt_refused import REFUSED
from mx_dialect.upstream_passes import UPSTREAM_PASSES

__all__ = ["FLAGS", "GROUPS", "Flags", "UsageError", "parse"]


def _dump_around(name: str, help: str, option: str) -> Flag:
    """Return a flag that names passes around which the IR is printed; given again it adds to them."""

    def apply(flags: Flags, text: str) -> None:
        named = text.split(",")
        for one in named:
            # What runs of a pipeline is its passes; nothing would be printed at its own name.
            if not _is_pass(one) or pipelines.get(one) is not None:
                close = passes.nearest(one, [*passes.names(), *UPSTREAM_PASSES])
                raise invalid(name, f"cannot find a pass named '{one}'{close}")
        flags.ir_printing[option] = flags.ir_printing.get(option, frozenset()).union(named)

    return Flag(name, help, apply, "PASS,...")


def _path(name: str, help: str, attribute: str) -> Flag:
    return Flag(name, help, stored(attribute), "FILE")


def _listing(name: str, help: str) -> Flag:
    """Return a switch that asks for a text instead of a run."""
    return switch(name, help, lambda flags, on: setattr(flags, "listing", name if on else None))


_SPLIT_HELP = f"Process the pieces between lines '{SPLIT_MARKER}' (or the marker given) one by one"
_JOIN_HELP = f"What to print between the pieces' outputs instead of '{SPLIT_MARKER}'"

GROUPS: dict[str, tuple[Flag, ...]] = {
    "About this tool": (
        Flag("help", "Print this help and exit", stored("listing", "help")),
        Flag("version", "Print the versions of this tool and of its MLIR and exit", stored("listing", "version")),
        _listing("list-passes", "Print the names of all passes and pipelines and exit"),
        _listing("show-dialects", "Print the names of the dialects that can be parsed and exit"),
        _listing("emit-irdl", "Print the definition of the mx dialect in IRDL, for other tools' --irdl-file, and exit"),
    ),
    "Input and output": (
        _path("o", "Output file, written only on success ('-' for standard output)", "output"),
        Flag(
            "split-input-file",
            _SPLIT_HELP,
            lambda flags, text: setattr(flags, "split_marker", text or SPLIT_MARKER),
            "[MARKER]",
        ),
        Flag("output-split-marker", _JOIN_HELP, stored("output_split_marker"), "MARKER"),
        switch("emit-bytecode", "Write MLIR bytecode instead of text", stored("emit_bytecode")),
        number("emit-bytecode-version", "Write this version of the bytecode", stored("bytecode_version")),
        switch(
            "no-implicit-module",
            "Put no module around the input, which has to be one operation",
            lambda flags, on: setattr(flags, "implicit_module", not on),
        ),
        switch(
            "allow-unregistered-dialect", "Accept operations of unknown dialects", stored("allow_unregistered_dialect")
        ),
        Flag(
            "irdl-file",
            "Load the dialects that this file defines in IRDL; may be given more than once",
            lambda flags, text: flags.irdl_files.append(text),
            "FILE",
        ),
    ),
    "Passes": (
        Flag(
            "pass-pipeline",
            "The passes to run, e.g. 'builtin.module(mx-to-linalg,cse)'",
            stored("pass_pipeline"),
            "TEXT",
        ),
        Flag(
            "load",
            "Run a Python file that registers passes or pipelines, which are flags then; may be given more than once",
            lambda flags, path: None,  # before anything else: see parse()
            "FILE.py",
        ),
        switch("dump-pass-pipeline", "Print the pipeline that will be run", stored("dump_pass_pipeline")),
        switch("run-reproducer", "Run the pipeline that the input, a reproducer, holds", stored("run_reproducer")),
        switch(
            "trust-input",
            "Let passes that the input asks for (by transform.apply_registered_pass, or as a reproducer) write files"
            " and start programs",
            stored("trust_input"),
        ),
        switch(
            "mlir-disable-threading",
            "Accepted for compatibility: passes always run on one thread",
            lambda flags, value: None,
        ),
    ),
    "Checks": (
        switch("verify-each", "Verify the IR after each pass (on unless =0)", stored("verify_each")),
        switch(
            "verify-roundtrip",
            "Check that what was parsed is the same when it is printed, or written as bytecode, and read again",
            stored("verify_roundtrip"),
        ),
        choice(
            "verify-diagnostics",
            "Compare what is reported with expected-* comments: all (the default) or only-expected",
            "verify_diagnostics",
            ("all", "only-expected"),
            bare="all",
        ),
    ),
    "Diagnostics": (
        switch(
            "mlir-print-op-on-diagnostic",
            "Show the operation that a diagnostic is about in a note (on unless =0)",
            stored("print_op_on_diagnostic"),
        ),
        switch(
            "mlir-disable-diagnostic-notes",
            "Do not show notes",
            lambda flags, on: setattr(flags, "print_notes", not on),
        ),
        choice(
            "mlir-diagnostic-verbosity-level",
            "Show errors, also warnings, or also remarks (the default)",
            "verbosity",
            ("errors", "warnings", "remarks"),
        ),
        switch(
            STACKTRACE_FLAG,
            "Show the Python traceback of an internal error",
            stored("debug"),
        ),
        Flag(
            "color",
            "Print diagnostics and IR in colour: auto (the default: on a terminal), always or never",
            color,
            "[auto|always|never]",
        ),
    ),
    "Reproducers and reports": (
        _path(
            "mlir-pass-pipeline-crash-reproducer",
            "Write the input and the pipeline to this file if a pass fails or crashes",
            "crash_reproducer",
        ),
        switch(
            "mlir-pass-pipeline-local-reproducer",
            "Let the crash reproducer hold the IR before the pass that failed, and that pass only",
            stored("local_reproducer"),
        ),
        _path("mlir-generate-reproducer", "Write the input and the pipeline to this file", "generate_reproducer"),
        switch("mlir-timing", "Print how long each pass took", stored("timing")),
        choice(
            "mlir-timing-display", "How to print it: nested, or added up by name", "timing_display", ("list", "tree")
        ),
        choice("mlir-output-format", "In what form to print it", "report_format", ("text", "json")),
        switch(
            "mlir-pass-statistics",
            "Print how many operations each pass added and removed",
            stored("statistics"),
        ),
        choice(
            "mlir-pass-statistics-display",
            "How to print it: nested, or added up by name",
            "statistics_display",
            ("list", "pipeline"),
        ),
    ),
    "Printing the IR": (
        switch("mlir-print-ir-before-all", "Print the IR before each pass", ir_printing("before_all")),
        switch("mlir-print-ir-after-all", "Print the IR after each pass", ir_printing("after_all")),
        _dump_around("mlir-print-ir-before", "Print the IR before these passes", "before"),
        _dump_around("mlir-print-ir-after", "Print the IR after these passes", "after"),
        switch(
            "mlir-print-ir-after-change",
            "Print the IR after passes (all, or those that -after names) only if it changed",
            ir_printing("after_change"),
        ),
        switch(
            "mlir-print-ir-after-failure",
            "Print the IR after passes (all, or those that -after names) only if they failed",
            ir_printing("after_failure"),
        ),
        switch(
            "mlir-print-ir-module-scope",
            "Print the whole module when printing IR around nested passes",
            ir_printing("module_scope"),
        ),
        Flag(
            "mlir-print-ir-tree-dir",
            "Print the IR around passes to files under this folder, in folders for the operations they run on",
            ir_printing("tree_dir"),
            "DIR",
        ),
        switch(
            "mlir-print-op-generic", "Print operations in their generic form, types as stored", print_flag("generic")
        ),
        switch("mlir-print-debuginfo", "Print locations", print_flag("enable_debug_info")),
        switch(
            "mlir-pretty-debuginfo",
            "With --mlir-print-debuginfo, print locations in a form for people",
            print_flag("pretty_debug_info"),
        ),
        switch("mlir-print-local-scope", "Print without aliases", print_flag("use_local_scope")),
        switch("mlir-print-skip-regions", "Do not print regions", print_flag("skip_regions")),
        switch(
            "mlir-print-assume-verified",
            "Do not verify again before printing; meant for --verify-each=0",
            stored("assume_verified"),
        ),
        switch(
            "mlir-use-nameloc-as-prefix",
            "Name values after their name locations",
            print_flag("use_name_loc_as_prefix"),
        ),
        number(
            "mlir-elide-elementsattrs-if-larger",
            "Leave out constants with more elements than this",
            print_flag("large_elements_limit"),
        ),
        number(
            "mlir-elide-resource-strings-if-larger",
            "Leave out resources with more characters than this",
            print_flag("large_resource_limit"),
        ),
    ),
}

FLAGS = {flag.name: flag for group in GROUPS.values() for flag in group}

_SHORT = {"h": "help", **dict.fromkeys(("help-hidden", "help-list", "help-list-hidden"), "help")}


def parse(arguments: list[str]) -> Flags:
    """Parse a command line.

    Raises:
        UsageError: an unknown flag, a missing or bad value, more than one input.
    """
    _load_files(arguments)
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


def _load_files(arguments: list[str]) -> None:
    """Run the files that `--load` names, wherever it stands: what they register may stand before it."""
    for index, argument in enumerate(arguments):
        if argument == "--":
            return
        name, equals, path = argument.removeprefix("-").removeprefix("-").partition("=")
        if name != "load" or not argument.startswith("-"):
            continue
        if not equals and index + 1 == len(arguments):
            raise invalid(name, "requires a value!")
        plugins.load_file(path if equals else arguments[index + 1])


def _one(flags: Flags, argument: str, waiting: list[str]) -> None:
    """Apply one flag; it may take its value from the arguments that follow."""
    name, equals, value = argument.removeprefix("-").removeprefix("-").partition("=")
    name = _SHORT.get(name, name)
    flag = FLAGS.get(name)
    if flag is None:
        if name in REFUSED:
            raise UsageError(f"error: {argument.partition('=')[0]} is not supported: {REFUSED[name]}")
        flags.pass_flags.append(_pass_flag(argument, name, value))
        return
    if not flag.value and equals:
        raise invalid(name, f"does not allow a value! '{value}' specified.")
    if flag.value and not flag.value.startswith("[") and not equals:
        if not waiting:
            raise invalid(name, "requires a value!")
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
