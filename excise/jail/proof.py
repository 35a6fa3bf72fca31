"""Whether a jail is as it was made: what it wrote, what runs, what is mounted, what commands see, what bounds it.

Seen from the host, and compared with a jail that was just made on the same layers. Layers themselves are
read-only and shared: `excise layer verify` reads those. Times of files are left out: no two jails have the same.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import posixpath
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from excise.substrates.base import Proof
from excise.types import Action

AGENT = 1
LOOK_AROUND = Action(("env", "-0"), timeout_s=10.0)
"""What shows the variables that commands get; a tree without `env` shows none, before and after."""

SHM = "/dev/shm"  # noqa: S108  # in the jail
SHARED = tuple(f"/proc/sysvipc/{name}" for name in ("msg", "sem", "shm"))

READ_BYTES = 1 << 20
"""Contents are compared up to that much in all: a jail that was just made has written less, so more is a difference."""

_GET_FLAGS = 0x80086601

Written: TypeAlias = tuple[str, int, int, int, int, str]
"""Path, mode, owner, group, size; and a digest of content, attributes and flags."""


@dataclass(frozen=True, slots=True)
class Looks:
    """What there is to compare."""

    files: frozenset[Written]
    """Everything that lies in the writable layer."""
    processes: tuple[tuple[int, str], ...]
    mounts: tuple[str, ...]
    env: tuple[str, ...]
    """What a command sees."""
    limits: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Told:
    """What the agent inside says: its processes, the variables of a command, and the tables of `SHARED`."""

    processes: tuple[tuple[int, str], ...]
    env: bytes
    shared: tuple[bytes, ...]


def look(upper: int, pid: int, told: Told, limits: Sequence[str]) -> Looks:
    """`upper` is the open folder that the jail writes to, beside that of its /dev/shm; `pid` its first process."""
    shm = os.open("../shm", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=upper)
    try:
        files = {*_written(upper, "/"), *_written(shm, SHM), *_shared(told.shared)}
    finally:
        os.close(shm)
    room = os.fstatvfs(upper)
    bounds = (*limits, f"disk {room.f_blocks * room.f_frsize}", f"files {room.f_files}")
    env = sorted(told.env.decode("utf-8", "replace").split("\0"))
    return Looks(frozenset(files), told.processes, mounts_of(pid), tuple(env), bounds)


def _shared(tables: Iterable[bytes]) -> list[Written]:
    """What is shared between processes by number and not by name: a line each below the headings."""
    counts = (max(0, len(table.splitlines()) - 1) for table in tables)
    return [(place, 0, 0, 0, count, "") for place, count in zip(SHARED, counts, strict=True)]


def mounts_of(pid: int) -> tuple[str, ...]:
    """The mounts of a process, without the numbers that differ from one jail to the next."""
    lines = Path(f"/proc/{pid}/mountinfo").read_text().splitlines()
    return tuple(_mount(line) for line in lines)


def compare(
    now: Looks, fresh: Looks, layers: Iterable[str] = (), missing: Iterable[str] = ()
) -> Proof:
    """What differs from a jail that was just made on the same `layers`, which are named by their digests.

    A layer that is `missing` shows through for a while, in what the kernel remembers of it.
    """
    changed = {path for path, *_ in now.files ^ fresh.files} | set(missing)
    return Proof(
        files=tuple(sorted(changed)),
        processes=tuple(f"{pid} {name}" for pid, name in now.processes if pid != AGENT),
        mounts=tuple(sorted(set(now.mounts) ^ set(fresh.mounts))),
        env=tuple(sorted({_name(one) for one in set(now.env) ^ set(fresh.env)})),
        limits=tuple(sorted(set(now.limits) ^ set(fresh.limits))),
        tree=tree_of(now, layers),
    )


def tree_of(looks: Looks, layers: Iterable[str]) -> str:
    """One digest of the whole tree: the layers below, and every entry that was written upon them."""
    sha256 = hashlib.sha256()
    for part in (*layers, *map(repr, sorted(looks.files))):
        sha256.update(part.encode("utf-8", "surrogateescape") + b"\0")
    return sha256.hexdigest()


def _written(top: int, at: str) -> list[Written]:
    found = []
    left = READ_BYTES
    for folder, folders, files, here in os.fwalk(".", dir_fd=top, follow_symlinks=False):
        for name in (*folders, *files):
            status = os.stat(name, dir_fd=here, follow_symlinks=False)
            size = 0 if stat.S_ISDIR(status.st_mode) else status.st_size
            path = posixpath.normpath(posixpath.join(at, folder, name))
            left -= size
            inside = _inside(name, here, status) if left >= 0 else "more than is read"
            found.append((path, status.st_mode, status.st_uid, status.st_gid, size, inside))
    return found


def _inside(name: str, here: int, status: os.stat_result) -> str:
    """A digest of what listing does not show; of devices and the like their number."""
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFLNK:
        return os.readlink(name, dir_fd=here)
    if kind not in (stat.S_IFREG, stat.S_IFDIR):
        return f"{status.st_rdev}"
    sha256 = hashlib.sha256()
    opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
    try:
        sha256.update(_flags(opened))
        for attribute in sorted(os.listxattr(opened)):
            sha256.update(attribute.encode() + b"\0" + os.getxattr(opened, attribute) + b"\0")
        while kind == stat.S_IFREG and (data := os.read(opened, READ_BYTES)):
            sha256.update(data)
    finally:
        os.close(opened)
    return sha256.hexdigest()


def _flags(opened: int) -> bytes:
    """What `chattr` sets, where the file system has such a thing."""
    with contextlib.suppress(OSError):
        return fcntl.ioctl(opened, _GET_FLAGS, bytes(8))
    return b""


def _name(variable: str) -> str:
    """Of a variable its name: its value may be nobody's business."""
    return variable.partition("=")[0]


def _mount(line: str) -> str:
    """Where, what of it, how, and of which type: `36 35 98:0 /root /at options - type source options`."""
    before, _, after = line.partition(" - ")
    fields = before.split(" ")
    return f"{fields[4]} {fields[5]} {after.split(' ')[0]}"
