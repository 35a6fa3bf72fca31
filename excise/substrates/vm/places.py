"""The folder of each guest on this host: it names the owner, holds what changes, and is how the dead are found."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

from excise.errors import InputError
from excise.substrates.local.directory import new_handle, owner
from excise.substrates.local.proctree import started
from excise.substrates.vm.lines import NOBODY
from excise.types import Handle

GIVE_UP_S = 10.0
_LOOK_S = 0.01


class Places:
    """Below one folder of this user's; machines run in theirs, so that whose a process is can be seen."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.root = Path(tempfile.gettempdir()).absolute() / f"excise-{os.getuid()}" / name

    def new(self) -> Handle:
        return new_handle(self._name)

    def make(self, box: Handle) -> Path:
        """An empty folder that the machine's user may write to."""
        self.root.mkdir(parents=True, exist_ok=True, mode=0o755)
        if self.root.stat().st_uid != os.getuid():
            raise InputError(
                f"{self.root} belongs to somebody else; set TMPDIR to a place of yours"
            )
        place = self.root / box
        place.mkdir(mode=0o700)
        if os.geteuid() == 0:
            os.chown(place, NOBODY, NOBODY)
        return place

    def is_ours(self, box: str) -> bool:
        """Whether this can be a handle of ours at all, before it becomes part of a path."""
        return owner(box, self._name) is not None and "/" not in box

    async def remove(self, place: Path) -> None:
        """Of a machine that has ended."""
        await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)

    async def clear(self, place: Path) -> bool:
        """End what still runs in it and remove it; False if something would not end."""
        if not await _end_all(place):
            return False
        await self.remove(place)
        return True

    def orphans(self) -> Iterator[Path]:
        """The places whose owner, a process of this host, is certainly dead."""
        for place in sorted(self.root.iterdir()) if self.root.is_dir() else ():
            who = owner(place.name, self._name)
            if who is not None and started(who[0]) != who[1]:
                yield place


def users_of(place: Path) -> list[int]:
    """The processes that run in this folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cwd").readlink() == place:
                found.append(int(process.name))
    return found


async def _end_all(place: Path) -> bool:
    for _ in range(int(GIVE_UP_S / _LOOK_S)):
        running = users_of(place)
        if not running:
            return True
        for pid in running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await asyncio.sleep(_LOOK_S)
    return False
