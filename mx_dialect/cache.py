"""Compiled kernels on disk, for other processes of the same user.

The cache is on where the extra `cache` is installed. It lives in `$MX_CACHE_DIR`, by default `mx_dialect` in the user's
cache folder (`$XDG_CACHE_HOME` or `~/.cache`), and holds at most 256 MiB: the entries that were used least recently go.
`MX_CACHE=0` turns it off. It may be deleted at any time.

Whoever can write to the folder can make this process run code. So it belongs to the user and nobody else may write to
it, or it is not used and a warning says why.

An entry is one file: a magic word with the version of this format, the SHA-256 of all that follows, the lengths of the
description, of the machine code and of the constants, the key, the description (JSON), the machine code (an object
file) and, at the next multiple of 64 bytes, the constants, which are used where they are, in the file mapped into
memory: processes share them. It is written under another name and then renamed, so that readers see all of it or
nothing. One that is not what it should be counts as missing, and is replaced.
"""

import contextlib
import hashlib
import json
import mmap
import os
import secrets
import stat
import struct
import time
import warnings
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from mx_dialect.external_constants import ALIGNMENT

LIMIT_BYTES = 256 << 20

_MAGIC = b"mxkernel\x02\x00\x00\x00\n"
_LENGTHS = struct.Struct("<IQQ")
_DIGEST_BYTES = hashlib.sha256().digest_size
_HEADER_BYTES = len(_MAGIC) + _DIGEST_BYTES + _LENGTHS.size
_SUFFIX = ".kernel"
_UNFINISHED = ".tmp"
# A writer takes milliseconds; what is older was left by a process that died.
_UNFINISHED_SECONDS = 3600.0

_reported: set[str] = set()


@dataclass(frozen=True)
class Entry:
    """A compiled function: how it is called, as plain JSON, an object file, and the bytes of its large constants."""

    description: Any
    machine_code: bytes
    constants: bytes | memoryview = b""


def is_on() -> bool:
    """Tell whether the user wants a cache."""
    return os.environ.get("MX_CACHE") != "0"


def folder() -> str | None:
    """Return where the cache lives, None if this user has no such place."""
    chosen = os.environ.get("MX_CACHE_DIR")
    if chosen:
        return os.path.abspath(chosen)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "mx_dialect") if os.path.isabs(base) else None


def load(key: str) -> Entry | None:
    """Return what was saved under a key, None if there is nothing, or nothing that can be trusted."""
    with _opened() as opened:
        if opened is None:
            return None
        try:
            content = _read(opened, key + _SUFFIX)
        except OSError:
            return None
        return _decode(key, content)


def save(key: str, description: Any, machine_code: bytes, constants: bytes | memoryview = b"") -> None:
    """Keep a kernel under a key, in the place of what is there. Where nothing can be written, do nothing."""
    parts = _encode(key, description, machine_code, constants)
    size = sum(len(part) for part in parts)
    with _opened() as opened:
        if opened is None or size > LIMIT_BYTES:
            return
        with contextlib.suppress(OSError):
            _make_room(opened, size)
            _write(opened, key + _SUFFIX, parts)


@contextlib.contextmanager
def _opened() -> Generator[int | None, None, None]:
    """Open the folder, made if need be; all files are reached through it, so that no other can take its place."""
    path = folder()
    opened = None if path is None else _open(path)
    try:
        yield opened
    finally:
        if opened is not None:
            os.close(opened)


def _open(path: str) -> int | None:
    try:
        with contextlib.suppress(FileExistsError):
            os.makedirs(path, mode=0o700)
        opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        _report(path, f"cannot be opened: {error.strerror}")
        return None
    problem = _problem(os.fstat(opened))
    if problem is None:
        return opened
    os.close(opened)
    _report(path, f"{problem}, and could make this process run code")
    return None


def _problem(status: os.stat_result) -> str | None:
    """Return why a file or folder is not to be trusted, or None."""
    if status.st_uid != os.geteuid():
        return "belongs to another user"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "may be written to by other users"
    return None


def _report(path: str, problem: str) -> None:
    """Warn, once a process and folder, that kernels are not cached."""
    if path not in _reported:
        _reported.add(path)
        warnings.warn(f"kernels are not cached: {path} {problem}", RuntimeWarning, stacklevel=2)


def _read(opened: int, name: str) -> memoryview:
    """Return the content of a file, mapped, and mark it as used; nothing if it is not to be trusted."""
    # A pipe would be waited for, a link might lead anywhere.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, dir_fd=opened), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or _problem(status) is not None or not 0 < status.st_size <= LIMIT_BYTES:
            return memoryview(b"")
        content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        with contextlib.suppress(OSError):
            os.utime(file.fileno())
    return content


def _write(opened: int, name: str, parts: Sequence[bytes | memoryview]) -> None:
    unfinished = f"{name}.{os.getpid()}.{secrets.token_hex(8)}{_UNFINISHED}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(unfinished, flags, 0o600, dir_fd=opened), "wb") as file:
            file.writelines(parts)
        os.replace(unfinished, name, src_dir_fd=opened, dst_dir_fd=opened)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(unfinished, dir_fd=opened)
        raise


def _make_room(opened: int, size: int) -> None:
    """Delete what was used least recently until `size` more bytes are within the limit, and what was never finished."""
    found: list[tuple[float, int, str]] = []
    with os.scandir(opened) as listing:
        for item in listing:
            # Another process may have deleted it by now.
            with contextlib.suppress(FileNotFoundError):
                status = item.stat(follow_symlinks=False)
                if item.name.endswith(_SUFFIX):
                    found.append((status.st_mtime, status.st_size, item.name))
                elif item.name.endswith(_UNFINISHED) and time.time() - status.st_mtime > _UNFINISHED_SECONDS:
                    os.unlink(item.name, dir_fd=opened)
    excess = sum(entry[1] for entry in found) + size - LIMIT_BYTES
    for _, freed, name in sorted(found):
        if excess <= 0:
            return
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=opened)
        excess -= freed


def _encode(key: str, description: Any, machine_code: bytes, constants: bytes | memoryview) -> list[bytes | memoryview]:
    text = json.dumps(description, separators=(",", ":")).encode()
    lengths = _LENGTHS.pack(len(text), len(machine_code), len(constants))
    before = len(_MAGIC) + _DIGEST_BYTES + len(lengths) + len(key.encode()) + len(text) + len(machine_code)
    body = [lengths, key.encode(), text, machine_code, bytes(-before % ALIGNMENT), constants]
    digest = hashlib.sha256()
    for part in body:
        digest.update(part)
    return [_MAGIC, digest.digest(), *body]


def _decode(key: str, content: memoryview) -> Entry | None:
    """Return the entry that a file holds, None unless it is one of this format, whole, unchanged and of this key."""
    if len(content) < _HEADER_BYTES or bytes(content[: len(_MAGIC)]) != _MAGIC:
        return None
    start = _HEADER_BYTES - _LENGTHS.size
    if hashlib.sha256(content[start:]).digest() != bytes(content[len(_MAGIC) : start]):
        return None
    described, coded, held = _LENGTHS.unpack_from(content, start)
    text = _HEADER_BYTES + len(key.encode())
    code = text + described
    constants = code + coded + -(code + coded) % ALIGNMENT
    if bytes(content[_HEADER_BYTES:text]) != key.encode() or len(content) != constants + held:
        return None
    # Without constants the file need not stay mapped.
    return Entry(json.loads(bytes(content[text:code])), bytes(content[code : code + coded]), content[constants:] or b"")
