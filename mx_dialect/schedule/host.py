"""What a schedule needs to know of the machine that a program is compiled for: this one, unless told otherwise."""

import ctypes
import functools
import glob
import os
import platform
import re
from dataclasses import dataclass

# Sizes to assume of a machine that does not tell: those of small cores.
_L1_BYTES = 32 << 10
_L2_BYTES = 512 << 10

_TILES = frozenset({"amx_tile", "amx_bf16", "amx_int8"})
# Of Linux on x86-64: the number of arch_prctl, its ARCH_REQ_XCOMP_PERM, and the state that tile registers are.
_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA = 158, 0x1023, 18


@dataclass(frozen=True)
class Host:
    """Vector registers of `vector_bits`, data caches in bytes, and instruction sets by their names in /proc/cpuinfo."""

    vector_bits: int
    l1_bytes: int
    l2_bytes: int
    features: frozenset[str]

    @property
    def lanes(self) -> int:
        """Return how many f32 a vector register holds."""
        return self.vector_bits // 32

    @property
    def registers(self) -> int:
        """Return how many vector registers there are."""
        return 32 if "avx512f" in self.features else 16


@functools.cache
def detect() -> Host:
    """Return the machine this process runs on."""
    features = _features()
    wide = 512 if "avx512f" in features else 256 if "avx" in features else 128
    return Host(wide, _cache_bytes(1) or _L1_BYTES, _cache_bytes(2) or _L2_BYTES, features)


def _features() -> frozenset[str]:
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            match = re.search(r"^(?:flags|Features)\s*:(.*)$", file.read(), re.MULTILINE)
    except OSError:
        return frozenset()
    found = frozenset(match[1].split()) if match else frozenset[str]()
    return found if _may_use_tiles(found) else found - _TILES


def _may_use_tiles(features: frozenset[str]) -> bool:
    """Ask Linux to let this process and its threads use tile registers, which it must before the first use."""
    if not features & _TILES or platform.machine() != "x86_64":
        return False
    system_call = getattr(ctypes.CDLL(None), "syscall", None)
    return system_call is not None and system_call(_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA) == 0


def _cache_bytes(level: int) -> int | None:
    """Return the size of the first core's data or unified cache of a level, None where the system does not say."""
    for folder in glob.glob("/sys/devices/system/cpu/cpu0/cache/index*"):
        try:
            kind, at, size = (_read(os.path.join(folder, name)) for name in ("type", "level", "size"))
        except OSError:
            continue
        match = re.fullmatch(r"(\d+)([KM])", size)
        if kind != "Instruction" and at == str(level) and match:
            return int(match[1]) << (10 if match[2] == "K" else 20)
    return None


def _read(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read().strip()
