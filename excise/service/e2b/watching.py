"""Watching directories: a client asks again and again what is new, or listens to a stream of it.

The door looks at the directory when it is asked, or ten times a second for a stream, and tells what differs. Nothing
is left in the sandbox, no program is needed there, and nothing is watched that nobody listens to.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Mapping

from excise.errors import InputError, Phase
from excise.service.abilities import must_live
from excise.service.doors import Desk
from excise.service.e2b import asked
from excise.service.e2b.filesystem import SERVICE, Place, must_be_directory, place_of
from excise.service.e2b.inside import inside
from excise.service.e2b.rpc import Calls, Headers, Message
from excise.service.e2b.stream import Outlet, patience_of
from excise.service.errors import Refused
from excise.service.sandbox import Sandbox, State
from excise.service.watch import Change, What, changes, look
from excise.substrates.base import Entry, EntryKind

LOOK_S = 0.1
SHARE = 10
"""Looking takes at most this part of the time: large trees are looked at less often."""

MOST_WATCHERS = 64
DEEPEST = 1000


class Watcher:
    """One directory that somebody watches."""

    def __init__(self, place: Place, path: str, *, recursive: bool, tells_entries: bool) -> None:
        self._place = place
        self._path = path
        self._depth = DEEPEST if recursive else 1
        self._tells_entries = tells_entries
        self._seen: dict[str, Entry] = {}

    async def begin(self) -> None:
        """What is there now is nothing new."""
        await must_be_directory(self._place, self._path)
        self._seen = await self._look()

    async def news(self) -> list[dict[str, object]]:
        """What happened since this was last asked."""
        if self._place.sandbox.state is State.PAUSED:
            return []
        must_live(self._place.sandbox)
        seen, self._seen = self._seen, await self._look()
        return [
            await self._told(happened, path)
            for change in changes(seen, self._seen)
            for happened, path in events_of(change)
        ]

    async def _look(self) -> dict[str, Entry]:
        try:
            return await look(self._place.files, self._path, self._depth)
        except (FileNotFoundError, NotADirectoryError):
            return {}

    async def _told(self, happened: str, path: str) -> dict[str, object]:
        name = path[len(self._path.rstrip("/")) + 1 :]
        told: dict[str, object] = {"name": name, "type": f"EVENT_TYPE_{happened}"}
        entry = self._seen.get(path)
        if self._tells_entries and entry is not None:
            told["entry"] = await self._place.info(path, entry)
        return told


def events_of(change: Change) -> list[tuple[str, str]]:
    """A change in the SDKs' words: a new file was written, too, and what was moved is gone here and new there."""
    match change.what:
        case What.CREATED if change.entry.kind is EntryKind.FILE:
            return [("CREATE", change.path), ("WRITE", change.path)]
        case What.CREATED:
            return [("CREATE", change.path)]
        case What.MOVED if change.to is not None:
            return [("RENAME", change.path), ("CREATE", change.to)]
        case What.WRITTEN:
            return [("WRITE", change.path)]
        case What.MODE:
            return [("CHMOD", change.path)]
    return [("REMOVE", change.path)]


class Watching:
    """The calls."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.calls = Calls(desk, SERVICE)
        self.calls.unary("CreateWatcher", self._create)
        self.calls.unary("GetWatcherEvents", _events)
        self.calls.unary("RemoveWatcher", _remove)
        self.calls.streamed("WatchDir", self._stream, {"keepalive": {}})

    async def _create(self, sandbox: Sandbox, headers: Headers, given: Message) -> Message:
        known = inside(sandbox).watchers
        if len(known) >= MOST_WATCHERS:
            raise Refused(
                f"{MOST_WATCHERS} directories are watched in this sandbox: stop some first",
                phase=Phase.RUN,
                retry_after_s=1.0,
                theirs=True,
            )
        id_ = f"w{secrets.token_hex(8)}"
        known[id_] = await _begun(await place_of(self._desk, sandbox, headers), given)
        return {"watcherId": id_}

    async def _stream(
        self, sandbox: Sandbox, headers: Headers, given: Message, outlet: Outlet
    ) -> Mapping[str, str] | None:
        """Until whoever listens has left, or the sandbox."""
        watcher = await _begun(await place_of(self._desk, sandbox, headers), given)
        outlet.put({"start": {}})
        try:
            async with asyncio.timeout(patience_of(headers)):
                while True:
                    begun_s = time.monotonic()
                    for each in await watcher.news():
                        outlet.put({"filesystem": each})
                    await outlet.flush()
                    await asyncio.sleep(max(LOOK_S, (time.monotonic() - begun_s) * SHARE))
        except TimeoutError:
            text = "the time that was given for watching is over"
            return {"code": "deadline_exceeded", "message": text}


async def _events(sandbox: Sandbox, headers: Headers, given: Message) -> Message:
    del headers
    id_ = asked.text(given, "watcherId")
    watcher = inside(sandbox).watchers.get(id_)
    if watcher is None:
        raise FileNotFoundError(2, "no such watcher", id_[:80])
    return {"events": await watcher.news()}


async def _remove(sandbox: Sandbox, headers: Headers, given: Message) -> Message:
    del headers
    id_ = asked.text(given, "watcherId")
    if inside(sandbox).watchers.pop(id_, None) is None:
        raise FileNotFoundError(2, "no such watcher", id_[:80])
    return {}


async def _begun(place: Place, given: Message) -> Watcher:
    if not asked.text(given, "path", ""):
        raise InputError("which directory? The path is missing")
    watcher = Watcher(
        place,
        place.path(asked.text(given, "path")),
        recursive=asked.flag(given, "recursive", default=False),
        tells_entries=asked.flag(given, "includeEntry", default=False),
    )
    await watcher.begin()
    return watcher
