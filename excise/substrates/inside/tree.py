"""What an agent inside does itself: files as direct operations, and quiet. No command is spawned for any of it."""

from __future__ import annotations

import contextlib
import errno
import stat as modes
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

from excise.agent import answers
from excise.agent.async_connection import AsyncConnection
from excise.agent.errors import AgentRefused
from excise.agent.messages import OWN
from excise.errors import Phase
from excise.substrates.base import Entry, EntryKind
from excise.substrates.inside.habits import Habits, place
from excise.types import Handle

Place: TypeAlias = Callable[[str], str]

QUIET_S = 5.0
"""How long processes may take to die before their sandbox counts as broken."""

_KINDS = {
    modes.S_IFREG: EntryKind.FILE,
    modes.S_IFDIR: EntryKind.DIRECTORY,
    modes.S_IFLNK: EntryKind.LINK,
}


class Resident(Protocol):
    """The agent that lives in one sandbox, and what holds for the commands there."""

    @property
    def agent(self) -> AsyncConnection: ...
    @property
    def habits(self) -> Habits: ...


class InsideTree(ABC):
    """The abilities `Files`, `Tree` and `Quiets`, for whoever has an agent in each sandbox."""

    @abstractmethod
    async def resident(self, box: Handle, phase: Phase) -> Resident:
        """The agent of this sandbox. SandboxGone where there is none, or the handle is not of this substrate."""

    @abstractmethod
    def _told(
        self, box: Handle, phase: Phase = Phase.RUN
    ) -> contextlib.AbstractContextManager[None]: ...

    @contextlib.asynccontextmanager
    async def _reach(self, box: Handle) -> AsyncIterator[tuple[AsyncConnection, Place]]:
        """The agent and the path from the root of what is named; its errors are told as they come."""
        resident = await self.resident(box, Phase.RUN)
        with self._told(box):
            yield resident.agent, lambda path: place(path, resident.habits)

    async def read(self, box: Handle, path: str) -> bytes:
        async with self._reach(box) as (agent, at):
            return await agent.read(at(path))

    async def write(self, box: Handle, path: str, data: bytes) -> None:
        async with self._reach(box) as (agent, at):
            await agent.write(at(path), data, parents=True)

    async def upload(self, box: Handle, source: Path, to: str) -> None:
        """Copy a folder of this host into the sandbox."""
        async with self._reach(box) as (agent, at):
            await agent.upload(source, at(to))

    async def download(self, box: Handle, path: str, target: Path) -> None:
        """Copy a folder of the sandbox into an empty one of this host."""
        async with self._reach(box) as (agent, at):
            await agent.download(at(path), target)

    async def digest(self, box: Handle, path: str = ".") -> str:
        """SHA-256 over names, modes, owners and contents of everything below `path`."""
        async with self._reach(box) as (agent, at):
            return (await agent.digest(at(path))).sha256.hex()

    async def quiet(self, box: Handle) -> None:
        async with self._reach(box) as (agent, _):
            await agent.quiet(QUIET_S)

    async def stat(self, box: Handle, path: str, *, follow: bool = True) -> Entry:
        async with self._reach(box) as (agent, at):
            return entry_of(await agent.stat(at(path), follow=follow))

    async def look(self, box: Handle, paths: Sequence[str], kinds: Sequence[str] = ()) -> bytes:
        async with self._reach(box) as (agent, _):
            return await agent.look(paths, kinds)

    async def entries(self, box: Handle, path: str) -> list[Entry]:
        async with self._reach(box) as (agent, at):
            return [entry_of(each) for each in await agent.directory(at(path))]

    async def read_part(self, box: Handle, path: str, offset: int, most: int) -> bytes:
        async with self._reach(box) as (agent, at):
            return await agent.read(at(path), offset, most)

    async def put(
        self,
        box: Handle,
        path: str,
        pieces: Iterable[bytes],
        *,
        mode: int = 0o644,
        owner: tuple[int, int] | None = None,
    ) -> None:
        uid, gid = owner or (OWN, OWN)
        async with self._reach(box) as (agent, at):
            await agent.write_pieces(at(path), pieces, mode=mode, uid=uid, gid=gid, parents=True)

    async def make_directory(self, box: Handle, path: str, *, mode: int = 0o755) -> None:
        async with self._reach(box) as (agent, at):
            try:
                await agent.mkdir(at(path), mode)
            except AgentRefused as refused:
                if refused.number != errno.ENOENT:
                    raise
                await agent.mkdir(at(path), mode, parents=True)

    async def remove(self, box: Handle, path: str, *, tree: bool = False) -> None:
        async with self._reach(box) as (agent, at):
            await agent.remove(at(path), tree=tree)

    async def rename(self, box: Handle, path: str, to: str) -> None:
        async with self._reach(box) as (agent, at):
            await agent.rename(at(path), at(to))

    async def chmod(self, box: Handle, path: str, mode: int) -> None:
        async with self._reach(box) as (agent, at):
            await agent.chmod(at(path), mode)

    async def chown(self, box: Handle, path: str, uid: int, gid: int) -> None:
        async with self._reach(box) as (agent, at):
            await agent.chown(at(path), uid, gid)


def entry_of(found: answers.Entry) -> Entry:
    """What the agent says of a file, as every substrate says it."""
    kind = _KINDS.get(modes.S_IFMT(found.mode), EntryKind.OTHER)
    mode, target = modes.S_IMODE(found.mode), found.target if kind is EntryKind.LINK else None
    return Entry(found.name, kind, found.size, mode, found.uid, found.gid, found.mtime_ns, target)
