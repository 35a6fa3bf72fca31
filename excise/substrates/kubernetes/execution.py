"""One command by the API server's exec: a websocket whose messages are input, output, and at last how it ended."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass

import aiohttp

from excise.errors import Phase
from excise.substrates.exec_shell import Sink
from excise.substrates.kubernetes import channels
from excise.substrates.kubernetes.cluster import Cluster
from excise.substrates.kubernetes.pod import CONTAINER

LEAVE = b"exit\n"
"""v4 cannot say that the input has ended; a shell that reads commands is told so."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How an exec ended: with a code, or without one and with a reason."""

    code: int | None
    said: str = ""


class Running:
    """A command that was sent to a pod. Always `release` it."""

    def __init__(self, cluster: Cluster, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self._cluster = cluster
        self._writer: asyncio.Task[None] | None = None
        self._reader: asyncio.Task[Ended] | None = None

    @classmethod
    async def start(
        cls, cluster: Cluster, box: str, argv: tuple[str, ...], *, stdin: bool = False
    ) -> Running:
        async with cluster.asking(Phase.RUN):
            return cls(cluster, await cluster.exec(box, CONTAINER, argv, stdin=stdin))

    def read_into(self, out: Sink, err: Sink, over: Callable[[], bool] = bool) -> None:
        """Begin to read until the command has ended, or what was read says that this is `over`."""
        self._reader = asyncio.ensure_future(self._read(out, err, over))

    async def send(self, data: bytes) -> None:
        for piece in channels.pieces(data):
            await self.socket.send_bytes(piece)

    def feed(self, data: bytes) -> None:
        """Send meanwhile; the command need not read it."""
        self._writer = asyncio.ensure_future(self._feed(data))

    def end_of_input(self) -> None:
        self.feed(LEAVE)

    async def ended(self) -> Ended:
        assert self._reader is not None
        async with self._cluster.asking(Phase.RUN, deadline_s=None):
            return await asyncio.shield(self._reader)

    async def code(self, count: Callable[[], int]) -> int:
        del count  # nothing has to be looked for here
        found = await self.ended()
        if found.code is None:
            raise self._cluster.broken(found.said, Phase.RUN, retryable=True)
        return found.code

    def release(self) -> None:
        """Let go of the connection at once. What runs in the pod is not touched by it."""
        for task in (self._writer, self._reader):
            if task is not None:
                task.cancel()
        self._cluster.hang_up(self.socket)

    async def _read(self, out: Sink, err: Sink, over: Callable[[], bool]) -> Ended:
        while not over():
            message = await self.socket.receive()
            if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
                if message.type in _LAST:
                    return Ended(None, "the connection ended before the command did")
                continue
            channel = message.data[0]
            if channel == channels.STDOUT:
                out.add(message.data[1:])
            elif channel == channels.STDERR:
                err.add(message.data[1:])
            elif channel == channels.STATUS:
                return Ended(*channels.end_in(message.data[1:]))
        return Ended(None, "read to its mark")

    async def _feed(self, data: bytes) -> None:
        with contextlib.suppress(OSError, RuntimeError, aiohttp.ClientError):
            await self.send(data)


_LAST = frozenset(
    {
        aiohttp.WSMsgType.CLOSE,
        aiohttp.WSMsgType.CLOSING,
        aiohttp.WSMsgType.CLOSED,
        aiohttp.WSMsgType.ERROR,
    }
)
