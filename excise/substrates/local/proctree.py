"""Finds and kills what a sandbox without walls has started, wherever it has gone.

Every command carries a mark in its environment, which children inherit. A process belongs to a mark if
its environment has it, if it is in the process group or session of a leader that is still ours, or if it
descends from such a process.

Not caught: a process that emptied or overwrote its environment, left the session and outlived its parent;
a process of another user. A container or a jail catches these; a bare process cannot.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

GIVE_UP_S = 30.0
_DEAD = "ZX"
_ROOM_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Process:
    """One line of the process table."""

    pid: int
    parent: int
    group: int
    session: int
    state: str
    started: int


def members(
    processes: Iterable[Process], marked: Collection[int], leader: int | None = None
) -> list[int]:
    """The living processes that belong together: the marked, the leader's, and all their descendants.

    Parents come before their children: a shell that sees a child of its killed has something to say about it.
    """
    table = list(processes)
    found = {p.pid for p in table if p.pid in marked or leader in (p.pid, p.group, p.session)}
    growing = True
    while growing:
        more = {p.pid for p in table if p.parent in found} - found
        found |= more
        growing = bool(more)
    living = [p for p in table if p.pid in found and p.state not in _DEAD]
    return [
        p.pid
        for p in sorted(living, key=lambda p: (p.started, p.pid))
        if p.pid not in {1, os.getpid()}
    ]


async def kill_all(mark: bytes, leader: int | None = None) -> bool:
    """Kill until none is left. False if some would not die within `GIVE_UP_S`."""
    loop = asyncio.get_running_loop()
    until = loop.time() + GIVE_UP_S
    while found := _find(mark, leader):
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if loop.time() > until:
            return False
        leader = None  # once dead, its number may become somebody else's
        await asyncio.sleep(0.001)
    return True


def started(pid: int) -> int | None:
    """When a process was started, in ticks since boot: with the pid, it names a process for good."""
    try:
        return _process(str(pid)).started
    except OSError:
        return None


def _find(mark: bytes, leader: int | None) -> list[int]:
    marked = {int(pid) for pid in _pids() if mark in _environ(pid)}
    return members(_table(), marked, leader) if marked or leader is not None else []


def _table() -> Iterator[Process]:
    for pid in _pids():
        with contextlib.suppress(OSError):  # it has ended meanwhile
            yield _process(pid)


def _pids() -> Iterator[str]:
    return (entry for entry in os.listdir("/proc") if entry.isdigit())


def _process(pid: str) -> Process:
    text = _read(f"/proc/{pid}/stat")
    # the name in brackets may itself hold brackets and spaces
    fields = text[text.rindex(b")") + 2 :].split()
    return Process(
        pid=int(pid),
        state=fields[0].decode(),
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        started=int(fields[19]),
    )


def _environ(pid: str) -> bytes:
    """The environment a process was started with; empty where we may not look, or it has ended."""
    try:
        return _read(f"/proc/{pid}/environ")
    except OSError:
        return b""


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = b""
        while more := os.read(fd, _ROOM_BYTES):
            text += more
            if len(more) < _ROOM_BYTES:
                break
        return text
    finally:
        os.close(fd)
