"""The texts that `mx-opt` prints about itself: `--help`, `--list-passes`, `--show-dialects`, `--version`."""

import textwrap

from mx_dialect import opt_flags, passes, pipelines
from mx_dialect.upstream_passes import UPSTREAM_PASSES


def asked_for(flags: opt_flags.Flags) -> str | None:
    """Return the text that a command line asks for instead of a run, or None."""
    texts = {
        "help": help_text,
        "version": version_text,
        "list-passes": list_passes_text,
        "show-dialects": dialects_text,
        "emit-irdl": irdl_text,
    }
    return None if flags.listing is None else texts[flags.listing]()


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
    for title, flags in opt_flags.GROUPS.items():
        lines += ["", f"  {title}:"] if len(lines) > 5 else [f"  {title}:"]
        for flag in flags:
            lines += _entry(flag.spelled, flag.help, 4)
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


def irdl_text() -> str:
    """Return what `--emit-irdl` prints."""
    from mx_dialect import irdl_files

    return irdl_files.dialect_text()


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
