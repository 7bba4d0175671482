"""What a command line of `mx-opt` can say: `Flags`, a parsed one, and `Flag`, the description of one flag."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mx_dialect.diagnostics import MxError
from mx_dialect.passes import nearest
from mx_dialect.pipeline_text import Element, parse_anchored, parse_elements

if TYPE_CHECKING:
    from mx_dialect.driver import IrPrinting

SPLIT_MARKER = "// -----"


class UsageError(Exception):
    """The command line is wrong; the text says how."""


def given(arguments: Sequence[str], flag: str) -> bool:
    """Tell whether a command line that is not parsed, and may be wrong, has a flag: a name, or NAME=VALUE."""
    return any(argument.lstrip("-") == flag for argument in arguments)


@dataclass
class Flags:
    """A parsed command line. `pipeline_text` is the pipeline that the pass flags or `--pass-pipeline` spell."""

    input: str = "-"
    output: str = "-"
    pass_flags: list[str] = field(default_factory=lambda: [])
    pass_pipeline: str | None = None
    run_reproducer: bool = False
    trust_input: bool = False
    irdl_files: list[str] = field(default_factory=lambda: [])
    split_marker: str | None = None
    output_split_marker: str = SPLIT_MARKER
    implicit_module: bool = True
    allow_unregistered_dialect: bool = False
    verify_diagnostics: str | None = None
    verify_each: bool = True
    verify_roundtrip: bool = False
    emit_bytecode: bool = False
    bytecode_version: int | None = None
    dump_pass_pipeline: bool = False
    generate_reproducer: str | None = None
    crash_reproducer: str | None = None
    local_reproducer: bool = False
    timing: bool = False
    timing_display: str = "tree"
    statistics: bool = False
    statistics_display: str = "pipeline"
    report_format: str = "text"
    debug: bool = False
    print_op_on_diagnostic: bool = True
    print_notes: bool = True
    verbosity: str = "remarks"
    color: str = "auto"
    assume_verified: bool = False
    listing: str | None = None
    print_flags: dict[str, Any] = field(default_factory=lambda: {})
    ir_printing: dict[str, Any] = field(default_factory=lambda: {})

    @property
    def pipeline_text(self) -> str:
        return self.pass_pipeline if self.pass_pipeline is not None else ",".join(self.pass_flags)

    def elements(self, root: str) -> tuple[Element, ...]:
        """Return the passes to run on a `root` operation.

        Raises:
            MxError: the pipeline does not parse, or is anchored at another operation.
        """
        if self.pass_pipeline is None:
            return parse_elements(self.pipeline_text) if self.pass_flags else ()
        return anchored_at(root, self.pass_pipeline)

    def printing(self) -> "IrPrinting":
        from mx_dialect.driver import IrPrinting

        return IrPrinting(**self.ir_printing)


def anchored_at(root: str, text: str) -> tuple[Element, ...]:
    """Return the passes of a pipeline with its anchor, which has to be `root` or any.

    Raises:
        MxError: it does not parse, or its anchor is another operation.
    """
    anchored = parse_anchored(text)
    if anchored.name not in (root, "any"):
        raise MxError(f"can't run '{anchored.name}' pass manager on '{root}' op")
    return anchored.children or ()


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
        name = f"{dashes(self.name)}{self.name}"
        if self.value in ("", _SWITCH):
            return name
        return f"{name}[={self.value[1:-1]}]" if self.value.startswith("[") else f"{name}={self.value}"


def dashes(name: str) -> str:
    return "-" if len(name) == 1 else "--"


def invalid(name: str, problem: str) -> UsageError:
    return UsageError(f"for the {dashes(name)}{name} option: {problem}")


def stored(attribute: str, value: Any = None) -> Callable[[Flags, Any], None]:
    """Return what stores a flag's value, or `value` if given, in a field of `Flags`."""
    return lambda flags, given: setattr(flags, attribute, given if value is None else value)


def print_flag(option: str) -> Callable[[Flags, Any], None]:
    """Return what stores an option of `asm.to_asm`."""
    return lambda flags, value: flags.print_flags.update({option: value})


def ir_printing(option: str) -> Callable[[Flags, Any], None]:
    """Return what stores a field of `IrPrinting`."""
    return lambda flags, value: flags.ir_printing.update({option: value})


def switch(name: str, help: str, store: Callable[[Flags, bool], None]) -> Flag:
    """Return a flag that is on when given bare; `=0` turns it off."""

    def apply(flags: Flags, text: str) -> None:
        if text not in _BOOLEANS:
            raise invalid(name, f"'{text}' is invalid value for boolean argument! Try 0 or 1")
        store(flags, _BOOLEANS[text])

    return Flag(name, help, apply, _SWITCH)


def number(name: str, help: str, store: Callable[[Flags, int], None]) -> Flag:
    """Return a flag that takes a number of 32 bits."""

    def apply(flags: Flags, text: str) -> None:
        try:
            value = int(text, 0)
        except ValueError:
            value = -1
        if not 0 <= value < 2**32:
            raise invalid(name, f"'{text}' value invalid for uint argument!")
        store(flags, value)

    return Flag(name, help, apply, "N")


def choice(name: str, help: str, attribute: str, choices: tuple[str, ...], bare: str | None = None) -> Flag:
    """Return a flag that takes one of a few words; `bare` is what it means without any, if it may be left out."""

    def apply(flags: Flags, text: str) -> None:
        value = text or bare
        if value not in choices:
            raise invalid(name, f"'{text}' is not one of {', '.join(choices)}{nearest(text, list(choices))}")
        setattr(flags, attribute, value)

    words = "|".join(choices)
    return Flag(name, help, apply, words if bare is None else f"[{words}]")


_COLORS = {
    **dict.fromkeys((word for word, on in _BOOLEANS.items() if on), "always"),
    **dict.fromkeys((word for word, on in _BOOLEANS.items() if not on), "never"),
    **{word: word for word in ("auto", "always", "never")},
}


def color(flags: Flags, text: str) -> None:
    """Store when to print in colour: LLVM's switch, and the three words of other compilers."""
    if text not in _COLORS:
        raise invalid(
            "color", f"'{text}' is not one of auto, always, never{nearest(text, ['auto', 'always', 'never'])}"
        )
    flags.color = _COLORS[text]
