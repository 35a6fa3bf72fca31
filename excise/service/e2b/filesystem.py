"""`filesystem.Filesystem`: what is where in a sandbox, and moving it about. Watching is in `watching`."""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import Awaitable, Callable, Mapping

from excise.errors import InputError
from excise.service.doors import Desk
from excise.service.e2b import asked
from excise.service.e2b.entries import entry_info, placed
from excise.service.e2b.inside import inside
from excise.service.e2b.reach import user_of
from excise.service.e2b.rpc import Calls, Headers, Message, Unary
from excise.service.files import Files
from excise.service.people import Person
from excise.service.sandbox import Sandbox
from excise.substrates.base import Entry, EntryKind

SERVICE = "/filesystem.Filesystem"
DEEPEST = 1000


class Place:
    """The files of one sandbox, as one of its users names them."""

    def __init__(self, sandbox: Sandbox, files: Files, person: Person) -> None:
        self.sandbox = sandbox
        self.files = files
        self.person = person
        self._names: Mapping[int, str] | None = None
        self._groups: Mapping[int, str] = {}

    def path(self, text: str) -> str:
        """The absolute path that is meant."""
        return placed(text, self.person, self.sandbox.workdir)

    async def info(self, path: str, entry: Entry | None = None) -> dict[str, object]:
        """What a client is told of what is there."""
        entry = entry or await self.files.stat(path)
        if self._names is None:
            self._names, self._groups = await self.files.names()
        leads_to = await self._kind(path) if entry.kind is EntryKind.LINK else None
        told = entry_info(path, entry, self._names, self._groups, leads_to=leads_to)
        labels = inside(self.sandbox).labels.of(path, entry)
        return told | {"metadata": labels} if labels else told

    async def _kind(self, link: str) -> EntryKind | None:
        try:
            return (await self.files.stat(link, follow=True)).kind
        except OSError:
            return None


Answer = Callable[[Place, Message], Awaitable[Message]]


class Filesystem:
    """The calls."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.calls = Calls(desk, SERVICE)
        for name, answer in (
            ("Stat", _stat),
            ("ListDir", _list_dir),
            ("MakeDir", _make_dir),
            ("Move", _move),
            ("Remove", _remove),
        ):
            self.calls.unary(name, self._in_place(answer))

    def _in_place(self, answer: Answer) -> Unary:
        async def call(sandbox: Sandbox, headers: Headers, asked: Message) -> Message:
            return await answer(await place_of(self._desk, sandbox, headers), asked)

        return call


async def place_of(desk: Desk, sandbox: Sandbox, headers: Headers) -> Place:
    """The files that a request is about, as its user sees them."""
    person = await inside(sandbox).person(desk, sandbox, user_of(headers))
    return Place(sandbox, desk.cloud.files(sandbox), person)


async def _stat(place: Place, given: Message) -> Message:
    return {"entry": await place.info(place.path(asked.text(given, "path", "")))}


async def _list_dir(place: Place, given: Message) -> Message:
    path = place.path(asked.text(given, "path", ""))
    depth = asked.whole(given, "depth", 0) or 1
    if depth > DEEPEST:
        raise InputError(f"a listing {depth} levels deep; {DEEPEST} is the most")
    await must_be_directory(place, path)
    found = await place.files.walk(path, depth=depth)
    return {"entries": [await place.info(each.path, each.entry) for each in found]}


async def _make_dir(place: Place, given: Message) -> Message:
    path = place.path(asked.text(given, "path"))
    try:
        await place.files.make_directory(path, person=place.person)
    except FileExistsError:
        entry = await place.files.stat(path, follow=True)
        if entry.kind is not EntryKind.DIRECTORY:
            raise InputError(f"path already exists but it is not a directory: {path}") from None
        raise
    return {"entry": await place.info(path)}


async def _move(place: Place, given: Message) -> Message:
    source = place.path(asked.text(given, "source"))
    to = place.path(asked.text(given, "destination"))
    entry = await place.files.rename(source, to, person=place.person)
    inside(place.sandbox).labels.moved(source, to)
    return {"entry": await place.info(to, entry)}


async def _remove(place: Place, given: Message) -> Message:
    """What is not there is removed already."""
    path = place.path(asked.text(given, "path"))
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        await place.files.remove(path)
    inside(place.sandbox).labels.removed(path)
    return {}


async def must_be_directory(place: Place, path: str) -> None:
    """The words that SDKs know for what is no directory."""
    entry = await place.files.stat(path, follow=True)
    if entry.kind is not EntryKind.DIRECTORY:
        raise InputError(f"path is not a directory: {posixpath.normpath(path)}")
