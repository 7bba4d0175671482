"""The tutorial: README's first program after every stage on its way to machine code, as the tools print it."""

import importlib
import re
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import mx_dialect
from mx_dialect import pipelines
from mx_dialect.schedule.host import Host, detect
from mx_dialect.transforms import mx_schedule_cpu

_HERE = Path(__file__).resolve().parent
_README = _HERE.parents[1] / "README.md"
_TEMPLATE = _HERE / "tutorial.md"

_MACHINE = re.compile(r"<!-- machine: (.*) -->\n.*?<!-- end of machine code -->", re.DOTALL)

# The schedule depends on the processor, and the page on none: it is written for one with AVX2.
_HOST = Host(256, 32 << 10, 512 << 10, frozenset(["avx", "avx2", "f16c", "fma"]))

_INSTRUCTIONS = 40


def page(shown: str) -> str:
    """Return the page; of the page as it is, `shown`, machine code of another processor is kept."""
    template = _TEMPLATE.read_text(encoding="utf-8")
    stages = _stages()
    text = re.sub(r"<<([\w-]+)(?: from \"(.*?)\" (\d+))?>>", lambda m: _block(stages, m), template)
    old = _MACHINE.search(shown)
    keeps = old is not None and old[1] != _machine()
    return text.replace("{{assembly}}", old[0] if keeps and old is not None else _assembly())


def _block(stages: dict[str, str], wanted: re.Match[str]) -> str:
    """Return the program after a stage, or the lines of it that a part's pattern and length ask for."""
    text = stages[wanted[1]]
    if wanted[2] is None:
        return text.rstrip("\n")
    lines = text.splitlines()
    first = next(number for number, line in enumerate(lines) if re.search(wanted[2], line))
    kept = lines[first : first + int(wanted[3])]
    indent = min(len(line) - len(line.lstrip()) for line in kept if line.strip())
    out = [line[indent:] for line in kept]
    before, after = first, len(lines) - first - len(kept)
    return "\n".join([f"// ... {before} lines before ...", *out, f"// ... {after} lines after ..."])


def source() -> str:
    """Return the program that the tutorial follows: README's first."""
    match = re.search(r"```mlir\n(.*?)```", _README.read_text(encoding="utf-8"), re.DOTALL)
    if match is None:
        raise ValueError("README.md has no program")
    return match[1]


def _stages() -> dict[str, str]:
    """Return the program by what it is called in the template, after each stage that the template may show."""
    texts = {"custom": source()}
    module = mx_dialect.parse(texts["custom"])
    texts["generic"] = mx_dialect.to_asm(module, generic=True)
    aside = mx_dialect.parse(texts["custom"])
    mx_dialect.run_pipeline(aside, "mx-to-linalg,mx-expand-k")
    texts["mx-expand-k"] = mx_dialect.to_asm(aside)
    with mock.patch.object(mx_schedule_cpu, "detect", return_value=_HOST):
        for stage in pipelines.PIPELINES["mx-lower-to-llvm-vectorized"].stages:
            mx_dialect.run_pipeline(module, stage)
            # Of a stage that runs several times, the last.
            texts[_name(stage)] = mx_dialect.to_asm(module)
            if stage == "cse" and "emitted" not in texts and _name(pipelines.EMIT) in texts:
                texts["emitted"] = texts["cse"]
    return texts


def _name(stage: str) -> str:
    return "emit" if stage == pipelines.EMIT else stage.partition("{")[0]


def _machine() -> str:
    """Return what machine code depends on, in words: the processor's name, its registers and caches."""
    try:
        match = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        match = None
    name, here = match[1] if match else "unknown processor", detect()
    return f"{name}, vectors of {here.vector_bits} bits, caches of {here.l1_bytes >> 10} and {here.l2_bytes >> 10} KiB"


def _assembly() -> str:
    """Return the innermost loop of this processor's machine code, decoded, between the comments that mark it."""
    module = mx_dialect.parse(source())
    # The schedule that the page shows, also where the processor has a matrix unit.
    chosen = {"mx-schedule-cpu": "mx-schedule-cpu{schedule=panel}"}
    stages = pipelines.PIPELINES["mx-lower-to-llvm-vectorized"].stages
    mx_dialect.run_pipeline(module, ",".join(chosen.get(stage, stage) for stage in stages))
    decoder: Any = importlib.import_module("machine_code")
    with tempfile.TemporaryDirectory() as folder:
        loops = decoder.loops(module, Path(folder) / "seed.o")
    loop = max(loops, key=lambda each: each.sums)
    lines = str(loop).splitlines()
    shown = lines[:_INSTRUCTIONS]
    left_out = [f"; ... {len(lines) - len(shown)} more instructions"] if len(lines) > len(shown) else []
    code = "\n".join([*shown, *left_out])
    return (
        f"<!-- machine: {_machine()} -->\n"
        f"On this processor ({_machine()}) the loop has {len(lines)} instructions, of which "
        f"{loop.count('vfmadd')} multiply and add; {loop.sums} registers hold sums:\n\n"
        f"```nasm\n{code}\n```\n<!-- end of machine code -->"
    )
