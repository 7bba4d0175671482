"""Runs a pipeline of Python and upstream passes over a module: for the command line and the API alike.

A pass at a time, so that verification, IR printing in the custom spelling and timing are the same for both kinds.
"""

import re
import sys
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, TextIO

from mx_dialect import input_passes, passes, pipelines, transform_files
from mx_dialect._mlir import ir, passmanager
from mx_dialect.diagnostics import Collector, Diagnostic, MxError, bug, collecting, is_unreadable
from mx_dialect.ir_dumps import Dumps, IrPrinting, targets
from mx_dialect.pass_reports import Statistics, Timing
from mx_dialect.pipeline_text import Element, fail_at, parse_elements, shifted
from mx_dialect.types import verify_types

MODULE = "builtin.module"

# Python passes that run around an upstream pass of another name, so that users get both under the name they know.
_COMPANIONS = {"canonicalize": "mx-canonicalize"}


@dataclass
class Settings:
    """How a pipeline is run.

    `print_flags` are those of `asm.to_asm`, used for IR dumps, which go to `stream` (standard error if None).
    `on_diagnostic` sees warnings and remarks as they arrive; errors come with the exception. `on_pass` is called before
    each pass with the anchors that it is nested in. Transform operations of the module may write files and start
    programs if `trust_input`: see `input_passes`.
    """

    verify_each: bool = True
    printing: IrPrinting = field(default_factory=IrPrinting)
    print_flags: dict[str, Any] = field(default_factory=lambda: {})
    stream: TextIO | None = None
    timing: Timing | None = None
    statistics: Statistics | None = None
    on_diagnostic: Callable[[Diagnostic], None] | None = None
    on_pass: Callable[[tuple[str, ...], Element], None] | None = None
    trust_input: bool = False
    debug: bool = False


def run_pipeline(module: Any, pipeline: str, settings: Settings | None = None) -> None:
    """Run a textual pipeline over a module, in place: `mx-to-linalg,canonicalize` or `builtin.module(...)`.

    Raises:
        MxError: the pipeline does not parse, a pass refuses or fails, or the IR after a pass is invalid. The module is
            then in the state the failing pass left it in.
    """
    operation = module.operation
    elements = plan(pipeline, operation.context, anchor=operation.name)
    run(operation, elements, settings or Settings())


def plan(pipeline: str, context: Any, anchor: str = MODULE) -> tuple[Element, ...]:
    """Parse a pipeline's text, anchored or not, expand named pipelines and check that every pass exists.

    Raises:
        MxError: a syntax error, an unknown pass, a bad option, with the position in the text.
    """
    elements = parse_elements(pipeline) if pipeline.strip() else ()
    if len(elements) == 1 and elements[0].children is not None:
        if elements[0].name in (anchor, "any"):
            elements = elements[0].children
        elif elements[0].name == MODULE:
            raise MxError(f"can't run '{MODULE}' pass manager on '{anchor}' op")
    return resolve(elements, context, pipeline, (anchor,))


def resolve(
    elements: tuple[Element, ...], context: Any, text: str, path: tuple[str, ...] = (MODULE,)
) -> tuple[Element, ...]:
    """Expand named pipelines, nest passes that cannot run on the anchor, and check each pass and its options."""
    resolved: list[Element] = []
    for element in elements:
        if element.children is not None:
            children = resolve(element.children, context, text, (*path, element.name))
            resolved.append(Element(element.name, children=children, position=element.position))
        elif (named := pipelines.get(element.name)) is not None:
            if element.options:
                raise fail_at(text, element, f"pipeline '{element.name}' takes no options")
            if path != (MODULE,):
                raise fail_at(text, element, f"pipeline '{element.name}' runs on {MODULE} only")
            stages = shifted(parse_elements(",".join(named.stages)), element.position)
            resolved.extend(resolve(stages, context, text, path))
        elif (python_pass := passes.get(element.name)) is not None:
            try:
                python_pass.parse_options(element.option_items())
            except MxError as error:
                raise fail_at(text, element, str(error)) from None
            resolved.append(element)
        else:
            resolved.append(_check_upstream(element, context, text, path))
    return tuple(resolved)


def _nested_text(path: tuple[str, ...], element: Element) -> str:
    return "(".join(path) + "(" + element.text + ")" * len(path)


def _check_upstream(element: Element, context: Any, text: str, path: tuple[str, ...]) -> Element:
    """Return the element, inside `func.func(...)` where MLIR lets the pass run only there."""
    problem = _upstream_problem(_nested_text(path, element), context)
    if problem is None:
        return element
    if path[-1] == MODULE and "intend to nest" in problem:
        nested = Element("func.func", children=(element,), position=element.position)
        if _upstream_problem(_nested_text(path, nested), context) is None:
            return nested
    if "does not refer to a registered pass" in problem:
        from mx_dialect.upstream_passes import UPSTREAM_PASSES

        hint = passes.nearest(element.name, [*passes.names(), *pipelines.names(), *UPSTREAM_PASSES])
        raise fail_at(text, element, f"'{element.name}' does not refer to a registered pass or pass pipeline{hint}")
    raise fail_at(text, element, f"{problem}{_meant_option(element, problem, context)}")


def _meant_option(element: Element, problem: str, context: Any) -> str:
    """Return a hint where MLIR knows no option of a pass that the element gives."""
    unknown = re.search(r"no such option (\S+)", problem)
    if unknown is None:
        return ""
    with context:
        # Printed, a pass has all of its options.
        printed = str(passmanager.PassManager.parse(f"any({element.name})"))
    return passes.nearest(unknown[1], re.findall(r"([\w-]+)=", printed))


def _upstream_problem(pipeline: str, context: Any) -> str | None:
    """Return MLIR's complaint about a pipeline, or None."""
    collector = Collector()
    with context, collecting(context, collector):
        try:
            passmanager.PassManager.parse(pipeline)
        except ValueError as error:
            return "\n".join(line for line in str(error).splitlines() if line)
    return None


def _failure(element: Element, error: Exception) -> str:
    """Return the message about an exception that is no `MxError`: a bug, unless the bindings cannot read the IR."""
    if is_unreadable(error):
        return f"pass '{element.name}' failed: a name or string that it has to read is not valid UTF-8"
    return f"internal error in pass '{element.name}': {bug(error)}"


def run(root: ir.Operation, elements: tuple[Element, ...], settings: Settings) -> None:
    """Run resolved elements over an operation, in place.

    Raises:
        MxError: as `run_pipeline`.
    """
    on_diagnostic = settings.on_diagnostic

    def tell(diagnostic: Diagnostic) -> None:
        if on_diagnostic is not None and diagnostic.severity != "error":
            on_diagnostic(diagnostic)

    collector = Collector(tell)
    _Run(root, settings, collector).elements(elements, (root.name,))


class _Run:
    """One run of a pipeline: the root operation, the settings, and what was reported so far."""

    def __init__(self, root: ir.Operation, settings: Settings, collector: Collector):
        self.root = root
        self.settings = settings
        self.collector = collector
        self.dumps = Dumps(root, settings.printing, settings.print_flags, settings.stream)

    def elements(self, elements: tuple[Element, ...], path: tuple[str, ...]) -> None:
        for element in elements:
            if element.children is not None:
                with self._timed(f"'{element.name}' Pipeline"):
                    self.elements(element.children, (*path, element.name))
            else:
                self.one(element, path)

    def one(self, element: Element, path: tuple[str, ...]) -> None:
        printing = self.settings.printing
        if self.settings.on_pass is not None:
            self.settings.on_pass(path, element)
        if printing.wants_before(element.name):
            self.dumps.dump(f"Before {element.text}", element.name, path)
        before = self.dumps.texts(path) if printing.after_change else []
        failed = True
        try:
            with self._counted(element.name, path), self._timed(element.name):
                self._guarded(element, path)
            failed = False
        finally:
            if printing.wants_after(element.name, failed):
                title = f"After {element.text}{' Failed' if failed else ''}"
                self.dumps.dump(title, element.name, path, [] if failed else before)

    def _timed(self, name: str) -> AbstractContextManager[None]:
        return nullcontext() if self.settings.timing is None else self.settings.timing.measure(name)

    def _counted(self, name: str, path: tuple[str, ...]) -> AbstractContextManager[None]:
        statistics = self.settings.statistics
        return nullcontext() if statistics is None else statistics.count(name, path, self.root)

    def _guarded(self, element: Element, path: tuple[str, ...]) -> None:
        """Run a pass and turn every way it can fail into an `MxError`."""
        context = self.root.context
        known = len(self.collector.errors)
        with collecting(context, self.collector):
            try:
                self._execute(element, path)
                errors = self.collector.errors[known:]
                if not errors and self.settings.verify_each:
                    self._verify()
                    errors = self.collector.errors[known:]
            except MxError as error:
                raise MxError.of(*self.collector.errors[known:], *error.diagnostics) from error
            except ir.MLIRError as error:
                errors = self.collector.errors[known:]
                if not errors:
                    raise MxError(f"pass '{element.name}' failed: {error}") from error
            except Exception as error:
                if self.settings.debug:
                    traceback.print_exc(file=self.settings.stream or sys.stderr)
                raise MxError(_failure(element, error)) from error
        if errors:
            raise MxError.of(*errors)

    def _execute(self, element: Element, path: tuple[str, ...]) -> None:
        companion = _COMPANIONS.get(element.name)
        python_pass = passes.get(element.name)
        if python_pass is not None:
            self._python(python_pass, python_pass.parse_options(element.option_items()), path)
            return
        around = passes.get(companion) if companion else None
        if around is not None:
            self._python(around, around.options(), path)
        if input_passes.interprets(element) and not self.settings.trust_input:
            input_passes.check_transforms(self.root)
        with transform_files.readable(element, self.root.context, self.settings.trust_input) as runnable:
            self._upstream(runnable, path)
        if around is not None:
            self._python(around, around.options(), path)

    def _upstream(self, element: Element, path: tuple[str, ...]) -> None:
        known = len(self.collector.diagnostics)
        with self.root.context:
            manager = passmanager.PassManager.parse(_nested_text(path, element))
            # Verification after the pass is the same for all passes, and once is enough.
            manager.enable_verifier(False)
            try:
                manager.run(self.root)
                return
            except ir.MLIRError:
                # Whether a pass on an op interface fits its anchor is known only when MLIR schedules it.
                unscheduled = any("unable to schedule pass" in d.message for d in self.collector.diagnostics[known:])
                if not unscheduled or path[-1] != MODULE:
                    raise
        del self.collector.diagnostics[known:]
        self._upstream(element, (*path, "func.func"))

    def _python(self, python_pass: passes.Pass, options: Any, path: tuple[str, ...]) -> None:
        for target in targets(self.root, path):
            python_pass.run(target, options)

    def _verify(self) -> None:
        # The call reports through the collector; its own exception carries no text.
        try:
            self.root.verify()
        except ir.MLIRError:
            return
        for diagnostic in verify_types(self.root):
            self.collector.add(diagnostic)
