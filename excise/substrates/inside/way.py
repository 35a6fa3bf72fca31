"""A connection to an agent over any two-way stream of bytes: a websocket, an ssh channel, a pair of pipes.

A connected socket needs none of this: `AsyncConnection.over(sock)`.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Protocol

from excise.agent.async_channel import AsyncChannel
from excise.agent.async_connection import AsyncConnection

HIGH_WATER_BYTES = 1 << 20
"""So much may wait to be sent before whoever sends more has to wait."""


class ByteStream(Protocol):
    """What a platform's client gives. Whatever it raises means that the stream has ended."""

    async def receive(self) -> bytes:
        """Some bytes; none at the end."""
        ...

    async def send(self, data: bytes) -> None: ...
    async def close(self) -> None: ...


async def connect(stream: ByteStream) -> AsyncConnection:
    """A connection that owns `stream` from then on."""
    channel = AsyncChannel()
    _Way(stream, channel)
    return AsyncConnection(channel)


class _Way(asyncio.WriteTransport):
    """Moves bytes between the stream and the channel until either direction ends."""

    def __init__(self, stream: ByteStream, channel: AsyncChannel) -> None:
        super().__init__()
        self._stream = stream
        self._channel = channel
        self._queue: list[bytes] = []
        self._queued_bytes = 0
        self._to_send = asyncio.Event()
        self._closing = False
        channel.connection_made(self)
        loop = asyncio.get_running_loop()
        self._both = (loop.create_task(self._send()), loop.create_task(self._receive()))
        self._moving = loop.create_task(self._move())

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._closing or not data:
            return
        self._queue.append(bytes(data))
        self._queued_bytes += len(data)
        self._to_send.set()
        if self._queued_bytes > HIGH_WATER_BYTES:
            self._channel.pause_writing()

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        """What was written is still sent."""
        self._closing = True
        self._to_send.set()

    def abort(self) -> None:
        self._closing = True
        for task in self._both:
            task.cancel()

    async def _move(self) -> None:
        try:
            await asyncio.wait(self._both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.abort()
            ends = await asyncio.gather(*self._both, return_exceptions=True)
            with contextlib.suppress(Exception):
                await self._stream.close()
            why = next((end for end in ends if isinstance(end, Exception)), None)
            self._channel.connection_lost(why)

    async def _send(self) -> None:
        while self._queue or not self._closing:
            await self._to_send.wait()
            self._to_send.clear()
            data, self._queue, self._queued_bytes = b"".join(self._queue), [], 0
            if data:
                await self._stream.send(data)
            self._channel.resume_writing()

    async def _receive(self) -> None:
        while data := await self._stream.receive():
            self._channel.data_received(data)
