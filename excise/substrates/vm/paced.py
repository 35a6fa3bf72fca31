"""A serial line is sent no more than its driver keeps: what is on the way is counted, and the agent tells what it took.

The terminal driver of user-mode Linux goes to sleep for good once its buffer was full. So the line is never full.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from typing import cast

from excise.agent.async_channel import AsyncChannel
from excise.agent.async_connection import AsyncConnection
from excise.agent.wire import LINE_BYTES

HIGH_WATER_BYTES = 1 << 20
"""So much may wait to be sent before whoever sends more has to wait."""


async def connect_paced(line: socket.socket) -> AsyncConnection:
    """A connection to the agent at the other end of a serial line, which it owns from then on."""
    loop = asyncio.get_running_loop()
    line.setblocking(False)
    _, channel = await loop.create_unix_connection(PacedChannel, sock=line)
    return AsyncConnection(channel)


class PacedChannel(AsyncChannel):
    """A channel whose transport holds back what the line has no room for."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        paced = Paced(cast("asyncio.WriteTransport", transport), self)
        self.mux.on_taken = paced.taken
        super().connection_made(paced)


class Paced(asyncio.WriteTransport):
    """At most `LINE_BYTES` on the way at any time; the rest waits here, in order."""

    def __init__(self, below: asyncio.WriteTransport, channel: asyncio.Protocol) -> None:
        super().__init__()
        self._below = below
        self._channel = channel
        self._room = LINE_BYTES
        self._queue: deque[memoryview] = deque()
        self._queued_bytes = 0
        self._closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._closing or not data:
            return
        if not self._queue and len(data) <= self._room:  # nearly every request
            self._room -= len(data)
            self._below.write(data)
            return
        self._queue.append(memoryview(bytes(data)))
        self._queued_bytes += len(data)
        if self._queued_bytes > HIGH_WATER_BYTES:
            self._channel.pause_writing()
        self._send()

    def taken(self, count: int) -> None:
        """The agent has read so much."""
        self._room = min(self._room + count, LINE_BYTES)
        self._send()

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        """What was written is still sent."""
        self._closing = True
        self._send()

    def abort(self) -> None:
        self._closing = True
        self._queue.clear()
        self._below.abort()

    def _send(self) -> None:
        while self._queue and self._room:
            first = self._queue.popleft()
            piece = first[: self._room]
            if len(piece) < len(first):
                self._queue.appendleft(first[len(piece) :])
            self._room -= len(piece)
            self._queued_bytes -= len(piece)
            self._below.write(piece)
        if self._queued_bytes <= HIGH_WATER_BYTES:
            self._channel.resume_writing()
        if self._closing and not self._queue:
            self._below.close()
