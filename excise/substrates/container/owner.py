"""Who made a container, written on it as labels, so that what a killed owner leaves behind can be told and removed."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

MINE = "excise"
_OWNER = "excise.owner"
_CREATED = "excise.created"


@dataclass(frozen=True, slots=True)
class Owner:
    """One process: its id means something only within one boot and one process name space."""

    boot: str
    pid_space: str
    pid: int
    started_ticks: int

    def __str__(self) -> str:
        return f"{self.boot}/{self.pid_space}/{self.pid}/{self.started_ticks}"

    @classmethod
    def parse(cls, text: str) -> Owner | None:
        parts = text.split("/")
        if len(parts) != 4 or not (parts[2].isdigit() and parts[3].isdigit()):
            return None
        return cls(parts[0], parts[1], int(parts[2]), int(parts[3]))


def myself() -> Owner:
    pid = os.getpid()
    return Owner(_boot(), _pid_space(), pid, started_ticks(pid) or 0)


def labels(owner: Owner, given: Mapping[str, str]) -> dict[str, str]:
    """The labels of a new container; `given` cannot disown it."""
    return {**given, MINE: "1", _OWNER: str(owner), _CREATED: f"{time.time():.3f}"}


def owner_of(marked: Mapping[str, str]) -> Owner | None:
    return Owner.parse(marked.get(_OWNER, ""))


def is_orphan(owner: Owner | None, me: Owner, ticks_of_pid: int | None) -> bool:
    """Whether `owner` is certainly dead: another machine's processes, or another boot's, cannot be told."""
    if owner is None or (owner.boot, owner.pid_space) != (me.boot, me.pid_space):
        return False
    return ticks_of_pid != owner.started_ticks


def started_ticks(pid: int) -> int | None:
    """When a process started, in ticks since boot; None if it is dead. Tells a reused id apart."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _pid_space() -> str:
    return Path("/proc/self/ns/pid").readlink().name.strip("pid:[]")
