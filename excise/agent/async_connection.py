"""The asyncio client: the methods of `Connection` as coroutines, over a socket or any other transport.

Cancelling a coroutine kills what it asked for, whole trees of processes included; a late answer is dropped.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Self

from excise.agent import files, messages, procedures, transfer, wire
from excise.agent.answers import ActionState, Entry, Hello, Process, Result, Tree
from excise.agent.async_channel import AsyncChannel
from excise.agent.async_running import AsyncRunning, AsyncShell
from excise.agent.messages import NOTHING, OWN, Exec, Packed
from excise.agent.procedures import PATIENCE_S
from excise.agent.transfer import Moved


class AsyncConnection:
    """Many actions may be under way at once. Closing it tells the agent that nobody is interested any more."""

    def __init__(self, channel: AsyncChannel) -> None:
        self._channel = channel
        self._mux = channel.mux

    @classmethod
    async def over(cls, sock: socket.socket) -> Self:
        """A connection over a connected stream socket, which it owns from then on."""
        loop = asyncio.get_running_loop()
        sock.setblocking(False)
        if sock.family == socket.AF_UNIX:
            _, channel = await loop.create_unix_connection(AsyncChannel, sock=sock)
        else:
            _, channel = await loop.create_connection(AsyncChannel, sock=sock)
        return cls(channel)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    @property
    def alive(self) -> bool:
        """Nothing has gone wrong with the connection so far."""
        return not self._mux.failed

    async def hello(self) -> Hello:
        """Agree on the version of the protocol."""
        return await self._channel.do(procedures.hello(self._mux))

    async def ping(self) -> int:
        """The agent's CLOCK_MONOTONIC."""
        return await self._channel.do(procedures.ping(self._mux))

    async def run(self, what: Exec) -> Result:
        """A command from its start to its end. Cancelling it kills its whole tree."""
        return await self._channel.do(procedures.run(self._mux, what))

    async def start(self, what: Exec, *, stdin_open: bool = False) -> AsyncRunning:
        """A command whose output comes as it is written; with `stdin_open`, to be written to."""
        return AsyncRunning(
            self._channel,
            await self._channel.do(procedures.start(self._mux, what, stdin_open=stdin_open)),
            pty=what.pty,
        )

    async def background(self, what: Exec) -> int:
        """A command that goes on without us; `attach` listens to it."""
        return await self._channel.do(procedures.background(self._mux, what))

    async def attach(self, action: int) -> AsyncRunning:
        """What a background action printed, then what it prints, then how it ended."""
        return AsyncRunning(
            self._channel, await self._channel.do(procedures.attach(self._mux, action))
        )

    async def signal(self, action: int, number: int, *, whole_tree: bool = True) -> None:
        await self._channel.do(procedures.signal(self._mux, action, number, whole_tree=whole_tree))

    async def actions(self) -> list[ActionState]:
        """Those that are alive, or ended without anybody having read their result."""
        return await self._channel.do(procedures.actions(self._mux))

    async def processes(self) -> list[Process]:
        return await self._channel.do(procedures.processes(self._mux))

    async def environment(self) -> dict[str, str]:
        """What the agent was started with: where it is placed, what the platform gives every command."""
        return await self._channel.do(procedures.environment(self._mux))

    async def thaw(self, now_ns: int, seed: bytes) -> None:
        """Only of a guest's agent: set its clock to this, in ns since 1970, and begin its random numbers anew."""
        await self._channel.do(procedures.thaw(self._mux, now_ns, seed))

    async def quiet(self, timeout_s: float = PATIENCE_S) -> None:
        """Kill everything in the sandbox but the agent."""
        await self._channel.do(procedures.quiet(self._mux, timeout_s))

    async def open_shell(
        self,
        *,
        cwd: str = "",
        env: Packed | Mapping[str, str] = NOTHING,
        user: str = "",
    ) -> AsyncShell:
        """A bash that stays: directory, variables and functions survive."""
        what = Exec((), cwd=cwd, env=env, user=user, timeout_s=None)
        return AsyncShell(
            self._channel, await self._channel.do(procedures.open_shell(self._mux, what))
        )

    async def read(self, path: str, offset: int = 0, most: int | None = None) -> bytes:
        return await self._channel.do(files.read(self._mux, path, offset, most))

    async def write(
        self,
        path: str,
        data: bytes,
        *,
        mode: int = 0o644,
        uid: int = OWN,
        gid: int = OWN,
        parents: bool = False,
        in_place: bool = False,
    ) -> None:
        """Make or replace a file, whole or not at all; `in_place` truncates and writes the one there."""
        owner = {"mode": mode, "uid": uid, "gid": gid}
        await self._channel.do(
            files.write(self._mux, path, data, parents=parents, in_place=in_place, **owner)
        )

    async def write_pieces(
        self,
        path: str,
        pieces: Iterable[bytes],
        *,
        mode: int = 0o644,
        uid: int = OWN,
        gid: int = OWN,
        parents: bool = False,
    ) -> None:
        """Like `write`, of a file that is too large to be held at once; its pieces are made as it is written."""
        request = partial(messages.write, mode=mode, uid=uid, gid=gid)
        flags = wire.WRITE_PARENTS * parents
        await self._channel.do(files.write_pieces(self._mux, path, request, pieces, flags))

    async def stat(self, path: str, *, follow: bool = True) -> Entry:
        return await self._channel.do(files.stat(self._mux, path, follow=follow))

    async def look(self, paths: Sequence[str], kinds: Sequence[str] = ()) -> bytes:
        """How all of it looks: bytes that are equal as long as it looks the same."""
        return await self._channel.do(files.look(self._mux, paths, kinds))

    async def directory(self, path: str) -> list[Entry]:
        """What is in a directory, sorted by name."""
        return await self._channel.do(files.directory(self._mux, path))

    async def mkdir(self, path: str, mode: int = 0o755, *, parents: bool = False) -> None:
        await self._channel.do(files.mkdir(self._mux, path, mode, parents=parents))

    async def remove(self, path: str, *, tree: bool = False) -> None:
        await self._channel.do(files.remove(self._mux, path, tree=tree))

    async def rename(self, path: str, to: str) -> None:
        await self._channel.do(files.rename(self._mux, path, to))

    async def symlink(self, target: str, path: str) -> None:
        await self._channel.do(files.symlink(self._mux, target, path))

    async def chmod(self, path: str, mode: int) -> None:
        await self._channel.do(files.chmod(self._mux, path, mode))

    async def chown(self, path: str, uid: int, gid: int) -> None:
        await self._channel.do(files.chown(self._mux, path, uid, gid))

    async def digest(self, path: str) -> Tree:
        """SHA-256 over everything below `path`."""
        return await self._channel.do(files.digest(self._mux, path))

    async def upload(self, source: Path, to: str, *, uid: int = OWN, gid: int = OWN) -> Moved:
        """Copy a directory of this host into the sandbox."""
        return await self._channel.do(transfer.upload(self._mux, source, to, uid, gid))

    async def download(self, path: str, target: Path) -> Moved:
        """Copy a directory of the sandbox to this host, into an empty directory."""
        return await self._channel.do(transfer.download(self._mux, path, target))

    async def close(self) -> None:
        """Let go. In a child of fork nothing happens: the connection is the parent's."""
        await self._channel.close()

    def abort(self) -> None:
        """Let go at once: for a sandbox that is being killed anyway."""
        self._channel.abort()
