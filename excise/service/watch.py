"""What happens below a directory, found by looking again and again: no program is needed inside, and none is left.

Looking sees what is different, not what happened: a file that was made and removed between two looks was never
there, and one that was moved is known by its size and time where there is no doubt.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from excise.errors import InputError
from excise.service.files import MOST_ENTRIES, Files
from excise.substrates.base import Entry, EntryKind

LEAST_S = 0.05
BEAT_S = 10.0


class What(StrEnum):
    """A kind of change."""

    CREATED = "created"
    WRITTEN = "written"
    REMOVED = "removed"
    MOVED = "moved"
    MODE = "mode"


@dataclass(frozen=True, slots=True)
class Change:
    """One change. `to` is where a path was moved to."""

    what: What
    path: str
    entry: Entry
    to: str | None = None


def changes(before: Mapping[str, Entry], now: Mapping[str, Entry]) -> list[Change]:
    """What must have happened between two looks, in an order in which it can have happened. Pure."""
    gone = {path: entry for path, entry in before.items() if path not in now}
    new = {path: entry for path, entry in now.items() if path not in before}
    found = []
    for path, entry in list(gone.items()):
        same = [to for to, other in new.items() if _same(entry, other)]
        twins = [other for other in gone.values() if _same(entry, other)]
        if len(same) == 1 and len(twins) == 1:
            found.append(Change(What.MOVED, path, new.pop(same[0]), same[0]))
            del gone[path]
    found += [Change(What.REMOVED, path, gone[path]) for path in sorted(gone, reverse=True)]
    found += [Change(What.CREATED, path, new[path]) for path in sorted(new)]
    for path in sorted(before.keys() & now.keys()):
        old, entry = before[path], now[path]
        if old.kind is not entry.kind:
            found += [Change(What.REMOVED, path, old), Change(What.CREATED, path, entry)]
            continue
        written = (old.size, old.modified_ns, old.target) != (
            entry.size, entry.modified_ns, entry.target,
        )  # fmt: skip
        if written and entry.kind is not EntryKind.DIRECTORY:
            found.append(Change(What.WRITTEN, path, entry))
        if (old.mode, old.uid, old.gid) != (entry.mode, entry.uid, entry.gid):
            found.append(Change(What.MODE, path, entry))
    return found


async def watching(
    files: Files, path: str, *, depth: int = 1, every_s: float = 0.25, beat_s: float = BEAT_S
) -> AsyncGenerator[Change | None, None]:
    """Changes below a directory as they are seen; None now and then, where there were none for long.

    Ends when the directory is gone.
    """
    if every_s < LEAST_S:
        raise InputError(f"looking every {every_s:g} s costs more than it shows: {LEAST_S} or more")
    before = await look(files, path, depth)
    quiet_s = 0.0
    while True:
        await asyncio.sleep(every_s)
        try:
            now = await look(files, path, depth)
        except (FileNotFoundError, NotADirectoryError):
            return
        for change in changes(before, now):
            quiet_s = 0.0
            yield change
        before = now
        quiet_s += every_s
        if quiet_s >= beat_s:
            quiet_s = 0.0
            yield None


async def look(files: Files, path: str, depth: int) -> dict[str, Entry]:
    """What is there now, by path. What goes while we look is not there."""
    found = await files.walk(path, depth=depth, most=MOST_ENTRIES, steady=False)
    return {each.path: each.entry for each in found}


def _same(one: Entry, other: Entry) -> bool:
    """So alike that it is the same file under another name; an empty one proves nothing."""
    return one.size > 0 and (one.kind, one.size, one.modified_ns) == (
        other.kind, other.size, other.modified_ns,
    )  # fmt: skip
