"""The standard streams of a container's main process, as the connection to an agent that runs as that process.

The engine sends output in pieces with a head of 8 bytes: the stream, three zeros, the length, big endian.
Input goes as it is. Nothing is queued in between: the connection's own transport is handed over.
"""

from __future__ import annotations

import asyncio
import struct
from typing import Any

from aiodocker.containers import DockerContainer
from aiodocker.stream import Stream

from excise.agent.async_channel import AsyncChannel
from excise.agent.async_connection import AsyncConnection

_HEAD = struct.Struct(">BxxxI")
_STDOUT = 1
_COMPLAINT_BYTES = 4096


class Pieces:
    """Takes the engine's pieces apart: what the agent sent, and what was complained beside it. No I/O."""

    def __init__(self) -> None:
        self.complaint = b""
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """What of it the agent sent."""
        data = self._held + data if self._held else data
        said: list[bytes] = []
        at = 0
        while len(data) - at >= _HEAD.size:
            stream, length = _HEAD.unpack_from(data, at)
            end = at + _HEAD.size + length
            if end > len(data):
                break
            piece = data[at + _HEAD.size : end]
            if stream == _STDOUT:
                said.append(piece)
            else:
                self.complaint = (self.complaint + piece)[-_COMPLAINT_BYTES:]
            at = end
        self._held = data[at:]
        return said[0] if len(said) == 1 else b"".join(said)


class _Channel(AsyncChannel):
    def __init__(self, pieces: Pieces) -> None:
        super().__init__()
        self._pieces = pieces

    def data_received(self, data: bytes) -> None:
        if said := self._pieces.feed(data):
            super().data_received(said)


class Attached:
    """A connection to the main process of one container; `agent` speaks over it. Let go of it with `end`."""

    def __init__(self, stream: Stream, config: dict[str, Any]) -> None:
        self.config = config
        """The container as the engine describes it."""
        self._pieces = Pieces()
        self._stream = stream
        transport = _transport(stream)
        channel = _Channel(self._pieces)
        transport.set_protocol(channel)
        channel.connection_made(transport)
        self.agent = AsyncConnection(channel)

    @classmethod
    async def to(cls, container: DockerContainer) -> Attached:
        """Attach before the start: then nothing can have been said yet."""
        stream = container.attach(stdin=True, stdout=True, stderr=True)
        await stream.__aenter__()
        return cls(stream, container._container)  # noqa: SLF001  # looked up by attach itself

    @property
    def complaint(self) -> str:
        """What was printed in place of an answer, such as why the agent could not be started."""
        return self._pieces.complaint.decode("utf-8", "replace").strip()

    def end(self) -> None:
        self.agent.abort()
        response = self._stream._resp  # noqa: SLF001  # close() would look for the protocol we have replaced
        self._stream._closed = True  # noqa: SLF001
        if response is not None:
            response.close()


def _transport(stream: Stream) -> asyncio.Transport:
    response = stream._resp  # noqa: SLF001  # aiodocker gives its queue, and not the connection
    connection = None if response is None else response.connection
    assert connection is not None
    assert connection.transport is not None
    return connection.transport
