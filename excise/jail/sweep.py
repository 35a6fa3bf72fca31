"""Removes what dead drivers left: processes in their cgroups, the cgroups, the folders of their leases.

A spawner's end does the same by itself; this is for when that was killed too, or the machine lost power.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from excise.agent.binary import agent_binary
from excise.jail import cgroups, lease
from excise.jail.cgroups import Place

ATTACH = Path("/run/excise/attach")
"""There while a spawner has the host attach to cgroups fast, or has left it so."""

_TRIES, _PAUSE_S = 200, 0.02


@dataclass(frozen=True, slots=True)
class Swept:
    """How many of each kind were removed, or in a dry run: would be."""

    leases: int = 0
    processes: int = 0
    cgroups: int = 0

    def __add__(self, other: Swept) -> Swept:
        return Swept(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def __bool__(self) -> bool:
        return any(getattr(self, f.name) for f in fields(self))


def sweep(leases: Path | None = None, *, dry_run: bool = False) -> Swept:
    """Remove what belongs to leases that nobody holds any more."""
    total = Swept()
    leases = leases or lease.root()
    for folder, _lock in lease.dead(leases):
        total += _look(folder) if dry_run else _clear(folder)
    total += _sweep_orphans(leases, dry_run=dry_run)
    if not dry_run and ATTACH.exists() and os.geteuid() == 0:
        subprocess.run([agent_binary(), "settle"], check=True)
    return total


def clear_if_dead(folder: Path) -> Swept:
    """The same for one lease; nothing is left to do where its own burial has done it."""
    with lease.dead_one(folder) as lock:
        return Swept() if lock is None else _clear(folder)


def _sweep_orphans(leases: Path, *, dry_run: bool) -> Swept:
    """Cgroups of a dead driver whose lease is gone, removed by somebody who should have swept."""
    if os.geteuid() != 0:
        return Swept()
    found = (cgroups.leases_in(place).items() for place in cgroups.discover().places)
    places = [each for named in found for name, each in named if lease.is_orphan(name, leases)]
    return _counted(places) if dry_run else _clear_cgroups(places)[0]


def _look(folder: Path) -> Swept:
    return Swept(1) + _counted(lease.cgroups_of(folder))


def _counted(places: Iterable[Place]) -> Swept:
    groups = [group for place in places for group in _groups(place)]
    processes = {pid for group in groups for pid in _pids(group)}
    return Swept(0, len(processes), len(groups))


def _clear(folder: Path) -> Swept:
    """The folder goes last: what could not be removed now is found again by the next sweep."""
    swept, gone = _clear_cgroups(lease.cgroups_of(folder))
    if not gone:
        return swept
    lease.remove(folder)
    return swept + Swept(1)


def _clear_cgroups(places: Sequence[Place]) -> tuple[Swept, bool]:
    """What was killed and removed, and whether nothing is left."""
    killed: set[int] = set()
    removed = 0
    for attempt in range(_TRIES):
        left = [group for place in places for group in _groups(place)]
        if not left:
            return Swept(0, len(killed), removed), True
        if attempt:
            time.sleep(_PAUSE_S)
        _thaw(left)
        killed |= _kill(left)
        removed += sum(map(_remove, left))
    return Swept(0, len(killed), removed), False


def _groups(place: Place) -> list[Path]:
    """The lease's directory in one hierarchy, after all below it."""
    return [Path(at) for at, _, _ in os.walk(place.path, topdown=False)]


def _thaw(groups: Iterable[Path]) -> None:
    for group in groups:
        with contextlib.suppress(OSError):  # version 2 has no such file, and kills what is frozen
            if (group / "freezer.state").exists():
                (group / "freezer.state").write_text("THAWED")


def _kill(groups: Iterable[Path]) -> set[int]:
    pids = {pid for group in groups for pid in _pids(group)}
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return pids


def _pids(group: Path) -> set[int]:
    """Those in there that we can see; 0 stands for one of a name space above ours."""
    try:
        return {int(line) for line in (group / "cgroup.procs").read_text().split()} - {
            0,
            os.getpid(),
        }
    except OSError:
        return set()


def _remove(group: Path) -> bool:
    try:
        group.rmdir()
    except OSError:
        return False
    return True
