"""What jails could leave on a host, counted: processes, cgroups, mounts, name spaces, folders."""

from __future__ import annotations

import ctypes
import os
import socket
import sys
from collections.abc import Iterable
from pathlib import Path

from excise.jail.cgroups import discover

_LIBC = ctypes.CDLL(None, use_errno=True)
_NETWORK, _COOKIE = 0x40000000, 71


def processes(leases: Path, names: Iterable[str]) -> list[int]:
    """Live ones of these leases: spawners say where they are, jails are in cgroups of that name."""
    marks = [f"excise-{name}" for name in names]
    found = []
    for each in Path("/proc").iterdir():
        try:
            if not each.name.isdigit():
                continue
            state = (each / "stat").read_text().rpartition(")")[2].split()[0]
            said = (each / "cmdline").read_text() + (each / "cgroup").read_text()
        except OSError:
            continue
        ours = str(leases) in said and "spawner" in said
        if state not in "ZX" and (ours or any(mark in said for mark in marks)):
            found.append(int(each.name))
    return found


def cgroups(names: Iterable[str]) -> list[Path]:
    """Directories of these leases."""
    places = discover().places
    found = (place.path / f"excise-{name}" for place in places for name in names)
    return [folder for folder in found if folder.exists()]


def mounts(*folders: Path) -> list[str]:
    """The host's mounts that stand on, or come from, something in these folders."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line for line in lines if any(str(folder) in line for folder in folders)]


def networks(pids: Iterable[int] | None = None) -> set[int]:
    """The network name spaces that these processes, or any at all, are in.

    By cookie: the number of their file is given to the next one when they are gone, which may be anybody's.
    """
    links = (f"/proc/{pid}/ns/net" for pid in pids) if pids is not None else None
    found: dict[int, int] = {}
    with Path("/proc/self/ns/net").open("rb") as home:
        for each in map(Path, links) if links is not None else Path("/proc").glob("[0-9]*/ns/net"):
            try:
                with each.open("rb") as space:
                    number = os.fstat(space.fileno()).st_ino
                    if number not in found:
                        found[number] = _cookie(space.fileno(), home.fileno())
            except OSError:
                continue
    return set(found.values())


def _cookie(space: int, home: int) -> int:
    _enter(space)
    try:
        with socket.socket(socket.AF_UNIX) as any_socket:
            data = any_socket.getsockopt(socket.SOL_SOCKET, _COOKIE, 8)
    finally:
        _enter(home)
    return int.from_bytes(data, sys.byteorder)


def _enter(space: int) -> None:
    if _LIBC.setns(space, _NETWORK) != 0:
        raise OSError(ctypes.get_errno(), "setns")
