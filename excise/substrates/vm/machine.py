"""One machine as a process of this host: started with our end of its serial line, heard on its console, ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from excise.agent.async_connection import AsyncConnection

READY = b"excise-guest 1\n"
"""What the agent says once, as soon as the line is its own; see native/guest.c."""

Connect = Callable[[socket.socket], Awaitable[AsyncConnection]]

_WALL = "unshare:"
"""Says something about signals when what it waited for was killed."""
_TAIL_BYTES = 4096
_CHUNK_BYTES = 65536


class BootFailed(Exception):
    """The machine ended, or said something else, before its agent answered."""


class Console:
    """Reads what a kernel prints, so that it never waits for us, and keeps the end of it."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._tail = b""
        self._loop = asyncio.get_running_loop()
        os.set_blocking(pipe, False)
        self._loop.add_reader(pipe, self._read)

    @property
    def tail(self) -> str:
        return self._tail.decode("utf-8", "replace").strip()

    def listen(self) -> None:
        """Take what is there by now."""
        if self._pipe >= 0:
            self._read()

    def close(self) -> None:
        if self._pipe >= 0:
            self._read()
            self._loop.remove_reader(self._pipe)
            os.close(self._pipe)
            self._pipe = -1

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._pipe, _CHUNK_BYTES)
            except BlockingIOError:
                return
            if not data:
                self._loop.remove_reader(self._pipe)
                return
            self._tail = (self._tail + data)[-_TAIL_BYTES:]
            if len(data) < _CHUNK_BYTES:
                return


class Machine:
    """A process group of its own. Whoever starts one ends it; if he is killed, the agent ends the guest."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        line: socket.socket,
        console: Console,
        connect: Connect,
    ) -> None:
        self.monitor: socket.socket | None = None
        self._process = process
        self._line: socket.socket | None = line
        self._console = console
        self._connect = connect
        self._booted = False

    @classmethod
    def start(
        cls,
        words: Callable[..., Sequence[str]],
        place: Path,
        *,
        files: Sequence[int],
        env: Mapping[str, str],
        connect: Connect,
        monitored: bool = False,
        booted: bool = False,
    ) -> Machine:
        """`words` is told the machine's ends of the line and, if wanted, of a monitor; `files` are open in it too.

        `booted`: the agent will not say that it is there, because it said so before it was copied.
        """
        pairs = [socket.socketpair() for _ in range(1 + monitored)]
        ends = [theirs.fileno() for _, theirs in pairs]
        hear, say = os.pipe()
        try:
            process = subprocess.Popen(
                words(*ends),
                stdin=subprocess.DEVNULL,
                stdout=say,
                stderr=say,
                cwd=place,
                env=dict(env),
                pass_fds=(*ends, *files),
                start_new_session=True,
            )
        except BaseException:
            for ours, _ in pairs:
                ours.close()
            os.close(hear)
            raise
        finally:
            for _, theirs in pairs:
                theirs.close()
            os.close(say)
        line, *monitor = (ours for ours, _ in pairs)
        line.setblocking(False)
        made = cls(process, line, Console(hear), connect)
        made.monitor = monitor[0] if monitor else None
        made._booted = booted
        return made

    @property
    def complaint(self) -> str:
        """The last of what the console said, for people."""
        lines = [line for line in self._console.tail.splitlines() if not line.startswith(_WALL)]
        ours = [line for line in lines if line.startswith("excise-guest:")]
        return "; ".join(ours or lines[-3:])

    async def agent(self) -> AsyncConnection:
        """A connection to the agent, as soon as the guest has booted. Asked for once."""
        line = self._line
        assert line is not None
        if not self._booted:
            await _until_ready(line)
        self._line = None
        return await self._connect(line)

    async def end(self) -> None:
        """At once: what a guest has not written is of no use to anybody."""
        if self._line is not None:
            self._line.close()
            self._line = None
        for pid in _children(self._process.pid) or [self._process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await self._ended()
        self._console.close()

    async def _ended(self) -> None:
        if self._process.poll() is not None:
            return
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()
        process = os.pidfd_open(self._process.pid)
        loop.add_reader(process, _settle, ended)
        try:
            await ended
        finally:
            loop.remove_reader(process)
            os.close(process)
        self._process.wait()


async def _until_ready(line: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    said = b""
    while len(said) < len(READY):
        more = await loop.sock_recv(line, len(READY) - len(said))
        if not more:
            raise BootFailed("the machine ended while it booted")
        said += more
    if said != READY:
        raise BootFailed(f"the agent of this guest says {said!r}: another version?")


def _settle(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _children(pid: int) -> list[int]:
    """Whoever a walled machine is behind waits for it and reaps it, and is itself waited for by us."""
    try:
        return [
            int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        ]
    except OSError:
        return []
