"""What the machine code of a compiled program is made of: its loops, found in the object file and decoded with iced-x86.

Everything is decided by instructions, nothing by time, so that it holds on a loaded machine as well.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import iced_x86
from iced_x86 import FlowControl, Instruction, Mnemonic, Register

import mx_dialect
from mx_dialect import pipelines
from mx_dialect._mlir import execution_engine

REGISTERS = {512: "zmm", 256: "ymm", 128: "xmm"}
_SECTIONS_AT, _SECTION_SIZE, _SECTION_COUNT = 0x28, 0x3A, 0x3C
_EXECUTABLE = 0x4

_MNEMONICS = {value: name.lower() for name, value in vars(Mnemonic).items() if isinstance(value, int)}
_FORMATTER = iced_x86.Formatter(iced_x86.FormatterSyntax.INTEL)


def lower(text: str, vector_bits: int = 0) -> object:
    """Return a program in LLVM's dialect, as the vectorizing pipeline makes it.

    Its schedules are for registers of a width; 0 is this machine's.
    """
    module = mx_dialect.parse(text)
    choose = f"mx-schedule-cpu{{vector-bits={vector_bits}}}"
    stages = pipelines.PIPELINES["mx-lower-to-llvm-vectorized"].stages
    assert stages.count("mx-schedule-cpu") == 1
    mx_dialect.run_pipeline(module, ",".join(choose if s == "mx-schedule-cpu" else s for s in stages))
    return module


@dataclass(frozen=True)
class Loop:
    """The instructions of a loop, from where its last one jumps back to."""

    instructions: tuple[Instruction, ...]

    def __len__(self) -> int:
        return len(self.instructions)

    def __str__(self) -> str:
        return "\n".join(_FORMATTER.format(i) for i in self.instructions)

    def count(self, prefix: str, register: str = "") -> int:
        """Return how many instructions start with a mnemonic, and write to a kind of register."""
        return sum(self._is(i, prefix, register) for i in self.instructions)

    @staticmethod
    def _is(instruction: Instruction, prefix: str, register: str) -> bool:
        text = _FORMATTER.format(instruction)
        mnemonic, _, operands = text.partition(" ")
        return mnemonic.startswith(prefix) and operands.strip().startswith(register)

    @property
    def sums(self) -> int:
        """Return how many registers multiply-adds write to."""
        return len({i.op0_register for i in self.instructions if self._is(i, "vfmadd", "")})

    @property
    def calls(self) -> list[str]:
        """Return the calls, of addresses in registers and memory as well."""
        flows = (FlowControl.CALL, FlowControl.INDIRECT_CALL)
        return [_FORMATTER.format(i) for i in self.instructions if i.flow_control in flows]

    @property
    def scalar_conversions(self) -> list[str]:
        """Return conversions of one number: between floats, and between floats and integers."""
        return [_FORMATTER.format(i) for i in self.instructions if _converts_one(_MNEMONICS[i.mnemonic])]

    @property
    def scalar_arithmetic(self) -> list[str]:
        """Return multiplications, additions and the like of one f32."""
        return [_FORMATTER.format(i) for i in self.instructions if _MNEMONICS[i.mnemonic] in _SCALAR_ARITHMETIC]

    @property
    def spills(self) -> list[str]:
        """Return loads and stores of vector registers on the stack."""
        texts = [_FORMATTER.format(i) for i in self.instructions if i.memory_base == Register.RSP]
        return [text for text in texts if any(kind in text for kind in REGISTERS.values())]


_SCALAR_ARITHMETIC = {
    *("vmulss", "vaddss", "vsubss", "vdivss", "vminss", "vmaxss"),
    *(f"vf{kind}{order}ss" for kind in ("madd", "msub", "nmadd", "nmsub") for order in (132, 213, 231)),
}


def _converts_one(mnemonic: str) -> bool:
    plain = mnemonic.removeprefix("v")
    if not plain.startswith("cvt"):
        return False
    source, _, target = plain.removeprefix("cvtt").removeprefix("cvt").partition("2")
    scalars = ("ss", "sd", "sh", "si", "usi")
    return source in scalars or target in scalars


def loops(module: object, path: Path) -> list[Loop]:
    """Return the innermost loops of a program lowered to LLVM's dialect; the object file is written to `path`."""
    engine = execution_engine.ExecutionEngine(module, opt_level=3, enable_object_dump=True)
    engine.dump_to_object_file(str(path))
    return [loop for code in _code(path.read_bytes()) for loop in _innermost(code)]


def _code(elf: bytes) -> Iterator[bytes]:
    """Yield the executable sections of an ELF file of 64 bits."""
    assert elf[:5] == b"\x7fELF\x02", "no ELF file of 64 bits"
    (table,) = struct.unpack_from("<Q", elf, _SECTIONS_AT)
    (size,) = struct.unpack_from("<H", elf, _SECTION_SIZE)
    (count,) = struct.unpack_from("<H", elf, _SECTION_COUNT)
    for at in range(table, table + size * count, size):
        flags, _, offset, length = struct.unpack_from("<QQQQ", elf, at + 8)
        if flags & _EXECUTABLE:
            yield elf[offset : offset + length]


def _innermost(code: bytes) -> list[Loop]:
    """Return the loops that have no loop inside: the stretches that a jump back closes, and that no other one is in."""
    instructions = list(iced_x86.Decoder(64, code))
    assert not any(i.is_invalid for i in instructions), "the decoder does not know an instruction"
    positions = {i.ip: number for number, i in enumerate(instructions)}
    ranges: list[tuple[int, int]] = []
    for number, instruction in enumerate(instructions):
        jumps = instruction.flow_control in (FlowControl.CONDITIONAL_BRANCH, FlowControl.UNCONDITIONAL_BRANCH)
        if jumps and instruction.near_branch_target <= instruction.ip:
            ranges.append((positions[instruction.near_branch_target], number))
    found: list[Loop] = []
    for first, last in ranges:
        if not any(first <= a and b <= last and (a, b) != (first, last) for a, b in ranges):
            found.append(Loop(tuple(instructions[first : last + 1])))
    return found
