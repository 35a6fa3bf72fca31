"""The files of one sandbox, as its owner's clients want them: absolute paths, whole trees, users by name.

Nothing here looks at the host: every path is resolved inside the sandbox, by the substrate.
"""

from __future__ import annotations

import posixpath
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import cast

from excise.errors import InputError
from excise.service.errors import TooLarge
from excise.service.people import ROOT, Person, entered, groups, newcomer, numbered, people
from excise.service.shell_tree import ShellTree
from excise.substrates.base import Entry, EntryKind, Substrate, Tree
from excise.types import MIB, Handle

PART_BYTES = MIB
"""What is read or written at a time."""

WHOLE_BYTES = 256 * MIB
"""The most that is read or written as one value; beyond that a caller takes it in pieces."""

MOST_ENTRIES = 50_000
LONGEST_PATH = 4096


@dataclass(frozen=True, slots=True)
class Found:
    """One entry of a tree, with its path from the root."""

    path: str
    entry: Entry


@cache
def has_tree(kind: type) -> bool:
    """Asked for every command and file, and a protocol is slow to answer."""
    return issubclass(kind, Tree)


class Files:
    """`cloud.files(sandbox)`. Errors about a path are `OSError`s; a sandbox that is gone is `SandboxGone`."""

    def __init__(self, substrate: Substrate, handle: Handle) -> None:
        self._tree = cast("Tree", substrate) if has_tree(type(substrate)) else ShellTree(substrate)
        self._box = handle

    async def stat(self, path: str, *, follow: bool = False) -> Entry:
        return await self._tree.stat(self._box, checked(path), follow=follow)

    async def exists(self, path: str) -> bool:
        try:
            await self.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    async def look(self, paths: Sequence[str], kinds: Sequence[str] = ()) -> bytes:
        """How all of it looks, links followed: bytes that are equal as long as nothing was changed.

        Of `kinds` counts only what they lead to, if to anything.
        """
        return await self._tree.look(self._box, paths, kinds)

    async def entries(self, path: str) -> list[Entry]:
        """What is in a directory, sorted by name."""
        return await self._tree.entries(self._box, checked(path))

    async def walk(
        self, path: str, *, depth: int = 1, most: int = MOST_ENTRIES, steady: bool = True
    ) -> list[Found]:
        """What is below a directory, `depth` levels down, each directory before what is in it.

        Unless it is to be `steady`, a directory that goes meanwhile is passed over.
        """
        if depth < 1:
            raise InputError(f"a listing {depth} levels deep shows nothing: ask for 1 or more")
        found: list[Found] = []
        waiting = [(checked(path), depth)]
        while waiting:
            above, left = waiting.pop()
            try:
                entries = await self._tree.entries(self._box, above)
            except (FileNotFoundError, NotADirectoryError):
                if steady or not found:
                    raise
                continue
            for entry in entries:
                below = posixpath.join(above, entry.name)
                found.append(Found(below, entry))
                if entry.kind is EntryKind.DIRECTORY and left > 1:
                    waiting.append((below, left - 1))
            if len(found) > most:
                raise TooLarge(f"{path} holds more than {most} entries: list it in parts")
        return sorted(found, key=lambda each: each.path)

    async def read(self, path: str, *, most: int = WHOLE_BYTES) -> bytes:
        """A whole file; TooLarge beyond `most`."""
        parts, size = [], 0
        async for part in self.parts(path):
            parts.append(part)
            size += len(part)
            if size > most:
                raise TooLarge(f"{path} is larger than {most} bytes: read it in parts")
        return b"".join(parts)

    async def parts(
        self, path: str, *, offset: int = 0, most: int | None = None
    ) -> AsyncGenerator[bytes, None]:
        """A file of any size, or some of it, a part at a time."""
        path, left = checked(path), most
        while True:
            want = PART_BYTES if left is None else min(PART_BYTES, left)
            part = await self._tree.read_part(self._box, path, offset, want)
            offset += len(part)
            left = None if left is None else left - len(part)
            if part:
                yield part
            if len(part) < want or left == 0:
                break

    async def write(
        self,
        path: str,
        data: bytes | Iterable[bytes],
        *,
        mode: int = 0o644,
        person: Person | None = None,
    ) -> Entry:
        """Make or replace a file; it and the directories made for it belong to `person`. Tells what is there now."""
        pieces = _pieces(data) if isinstance(data, bytes) else data
        path = checked(path)
        if person is None or person.uid == 0:
            await self._tree.put(self._box, path, pieces, mode=mode)
        else:
            await self._make_above(path, person)
            owner = (person.uid, person.gid)
            await self._tree.put(self._box, path, pieces, mode=mode, owner=owner)
        return await self._tree.stat(self._box, path)

    async def make_directory(
        self, path: str, *, mode: int = 0o755, person: Person | None = None
    ) -> None:
        """With those above it; FileExistsError where there is something already."""
        path = checked(path)
        if person is None or person.uid == 0:
            await self._tree.make_directory(self._box, path, mode=mode)
            return
        await self._make_above(path, person)
        await self._make(path, mode, person)

    async def remove(self, path: str, *, tree: bool = True) -> None:
        await self._tree.remove(self._box, checked(path), tree=tree)

    async def rename(self, path: str, to: str, *, person: Person | None = None) -> Entry:
        """Move it; directories above the new place are made."""
        path, to = checked(path), checked(to)
        try:
            await self._tree.rename(self._box, path, to)
        except FileNotFoundError:
            await self._tree.stat(self._box, path, follow=False)
            await self._make_above(to, person or ROOT)
            await self._tree.rename(self._box, path, to)
        return await self._tree.stat(self._box, to, follow=False)

    async def chmod(self, path: str, mode: int) -> None:
        await self._tree.chmod(self._box, checked(path), mode)

    async def chown(self, path: str, uid: int, gid: int) -> None:
        await self._tree.chown(self._box, checked(path), uid, gid)

    async def person(self, name: str) -> Person:
        """A user of this sandbox, by name or number; InputError if there is none."""
        known = await self._people()
        found = known.get(name)
        if found is None and name.isdigit():
            number = int(name)
            numbered = Person(name, number, number, "/")
            found = next((each for each in known.values() if each.uid == number), numbered)
        if found is None:
            raise InputError(f"the sandbox has no user {name!r}")
        return found

    async def names(self) -> tuple[dict[int, str], dict[int, str]]:
        """What the numbers of users and of groups are called in this sandbox."""
        users = (await self._people()).values()
        return numbered(users), groups(await self._or_nothing("/etc/group"))

    async def add_person(self, name: str) -> Person:
        """A user with a home, made if there is none of that name."""
        passwd = await self._or_nothing("/etc/passwd")
        known = people(passwd)
        found = known.get(name)
        if found is None:
            found = newcomer(name, known)
            group = await self._or_nothing("/etc/group")
            passwd, group = entered(found, passwd, group)
            await self._tree.put(self._box, "/etc/passwd", (passwd,))
            await self._tree.put(self._box, "/etc/group", (group,))
        if not await self.exists(found.home):
            await self._tree.make_directory(self._box, found.home)
            await self._tree.chown(self._box, found.home, found.uid, found.gid)
        return found

    async def _people(self) -> dict[str, Person]:
        return {"root": ROOT} | people(await self._or_nothing("/etc/passwd"))

    async def _or_nothing(self, path: str) -> bytes:
        try:
            return await self.read(path)
        except FileNotFoundError:
            return b""

    async def _make_above(self, path: str, person: Person) -> None:
        missing = []
        above = posixpath.dirname(path)
        while above != "/" and not await self.exists(above):
            missing.append(above)
            above = posixpath.dirname(above)
        for each in reversed(missing):
            await self._make(each, 0o755, person)

    async def _make(self, path: str, mode: int, person: Person) -> None:
        await self._tree.make_directory(self._box, path, mode=mode)
        if person.uid:
            await self._tree.chown(self._box, path, person.uid, person.gid)


def checked(path: str) -> str:
    """An absolute path in its plain form. Where it leads is decided in the sandbox, and only there."""
    if not path.startswith("/") or "\0" in path:
        raise InputError(f"{path[:100]!r} is no absolute path")
    if len(path) > LONGEST_PATH:
        raise InputError(f"a path of {len(path)} characters; {LONGEST_PATH} is the most")
    try:
        path.encode()
    except UnicodeEncodeError:
        raise InputError(f"{path[:100]!r} is not text") from None
    return posixpath.normpath(path).replace("//", "/")


def _pieces(data: bytes) -> Iterable[bytes]:
    view = memoryview(data)
    return (bytes(view[at : at + PART_BYTES]) for at in range(0, len(view), PART_BYTES))
