"""Machine code from another process: object files, linked into this one by llvmlite.

Only ELF on Linux is known here; elsewhere nothing is kept.
"""

import ctypes
import functools
import importlib
import importlib.util
import struct
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mx_dialect import parallel
from mx_dialect.external_constants import PREFIX, Constants

_PARALLEL_FOR = "_mlir_ciface_mx_parallel_for"

# 64 bits, little-endian (System V ABI, "Object files"): e_shoff, e_shentsize and e_shnum of the header; sh_type,
# sh_offset, sh_size and sh_link of a section; st_name, st_shndx of a symbol.
_ELF = b"\x7fELF\x02\x01"
_FILE = struct.Struct("<40xQ10xHH2x")
_SECTION = struct.Struct("<4xI16xQQI20x")
_SYMBOL = struct.Struct("<I2xH16x")
_SYMBOL_TABLE = 2

# llvmlite's table of symbols belongs to the process, and kernels divide their work differently.
_linking = threading.Lock()


@dataclass(frozen=True)
class Linked:
    """Machine code at `address`, which lives as long as `owner`."""

    owner: Any
    address: int


def is_available() -> bool:
    """Tell whether object files can be linked here."""
    return sys.platform == "linux" and sys.byteorder == "little" and importlib.util.find_spec("llvmlite") is not None


@functools.cache
def _llvm() -> Any:
    """Return llvmlite, ready to make code for this machine."""
    llvm: Any = importlib.import_module("llvmlite.binding")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@functools.cache
def target() -> tuple[str, str, str]:
    """Return the triple, the processor and its features that code for this machine is made for."""
    llvm = _llvm()
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


@dataclass(frozen=True)
class Symbols:
    """The names of what an object file has for others, and of what it wants from them."""

    defined: frozenset[str]
    wanted: frozenset[str]


def symbols(machine_code: bytes) -> Symbols | None:
    """Return the symbols of an object file, None if it is of an unknown kind."""
    if not machine_code.startswith(_ELF):
        return None
    try:
        found = list(_symbols(machine_code))
    except (struct.error, IndexError, OverflowError, ValueError):
        return None
    return Symbols(frozenset(n for n, defined in found if defined), frozenset(n for n, defined in found if not defined))


def _symbols(machine_code: bytes) -> Iterator[tuple[str, bool]]:
    """Yield each symbol of an ELF file, and whether it is defined there."""
    offset, size, count = _FILE.unpack_from(machine_code)
    sections: list[tuple[int, ...]] = [_SECTION.unpack_from(machine_code, offset + size * i) for i in range(count)]
    for kind, start, length, strings in sections:
        if kind == _SYMBOL_TABLE:
            for name, section in _SYMBOL.iter_unpack(machine_code[start : start + length]):
                if name:
                    begin = sections[strings][1] + name
                    yield machine_code[begin : machine_code.index(b"\0", begin)].decode(), section != 0


def link(machine_code: bytes, symbol: str, threads: int, constants: Constants | None = None) -> Linked | None:
    """Return the function that an object file calls `symbol`.

    None if there is no such function, or if it wants something that neither `constants` nor this process has. LLVM
    would end the process in both cases, and for what is no object file.
    """
    known = symbols(machine_code)
    if known is None or symbol not in known.defined:
        return None
    constants = constants or Constants()
    # Those of the kernel before are still in the table.
    if {name for name in known.wanted if name.startswith(PREFIX)} - constants.offsets.keys():
        return None
    llvm = _llvm()
    parallel_for = parallel.callback(threads)
    given = {**constants.addresses(), _PARALLEL_FOR: ctypes.cast(parallel_for, ctypes.c_void_p).value}
    with _linking:
        machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
        # With the engine comes the search in this process's libraries.
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        if any(llvm.address_of_symbol(name) is None for name in known.wanted - given.keys()):
            return None
        for name, place in given.items():
            llvm.add_symbol(name, place)
        engine.add_object_file(llvm.ObjectFileRef.from_data(machine_code))
        engine.finalize_object()
        address = engine.get_function_address(symbol)
    return Linked((engine, parallel_for, constants), address)
