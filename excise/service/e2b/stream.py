"""One stream of answers: held back for a moment, so that what is short goes out whole and in one piece."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Protocol, Self

from aiohttp import web

from excise.service.e2b.wire import STREAM, envelope, last
from excise.service.gate import Asked

HOLD_S = 0.004
"""What is over by then goes out as one plain answer; after that, everything goes out as it comes."""

HELD_BYTES = 256 * 1024
LONGEST_SILENCE_S = 3600.0
CLOSED = (ConnectionResetError, ConnectionAbortedError, BrokenPipeError)


class Sink(Protocol):
    """Where a stream goes to, on either of a request's two ways."""

    def send(self, data: bytes) -> None:
        """Begin with the first, and go on; comes back at once."""
        ...

    async def drain(self) -> None:
        """Wait for a slow reader; raises one of `CLOSED` if nobody listens any more."""
        ...


class Outlet:
    """`put` messages and `await flush()` now and then; `finish` gives what is still to be sent.

    Whenever there was nothing else for `silence_s`, the message `ping` goes out.
    """

    def __init__(
        self, sink: Sink, *, ping: object = None, silence_s: float = 0, hold_s: float = HOLD_S
    ) -> None:
        self.begun = False
        self._sink = sink
        self._waiting = bytearray()
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(hold_s, self._send)
        self._ping = envelope(ping) if ping is not None else b""
        self._silence_s = silence_s

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._timer.cancel()

    def put(self, message: object) -> None:
        self._waiting += envelope(message)

    async def flush(self) -> None:
        """Hand out what was put, unless it is held back still; waits for a slow reader."""
        if self.begun or len(self._waiting) >= HELD_BYTES:
            self._send()
            await self._sink.drain()

    def finish(self, error: Mapping[str, str] | None = None) -> bytes:
        """The last of it: how it went, and what was not sent yet."""
        self._timer.cancel()
        data, self._waiting = bytes(self._waiting) + last(error), bytearray()
        return data

    def _send(self) -> None:
        self._timer.cancel()
        self.begun = True
        if self._waiting:
            data, self._waiting = bytes(self._waiting), bytearray()
            self._sink.send(data)
        if self._ping:
            self._timer = self._loop.call_later(self._silence_s, self._break_silence)

    def _break_silence(self) -> None:
        self._waiting += self._ping
        self._send()


class ToGate:
    """The quick way."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._begun = False

    def send(self, data: bytes) -> None:
        if not self._begun:
            self._begun = True
            self._asked.begin(200, STREAM.encode())
        self._asked.send(data)

    async def drain(self) -> None:
        await self._asked.drain()


class ToRequest:
    """The way of whatever is too long, or too strange, for the quick one."""

    def __init__(self, request: web.Request) -> None:
        self.response = web.StreamResponse(headers={"Content-Type": STREAM})
        self._request = request
        self._waiting = bytearray()
        self._writing: asyncio.Task[None] | None = None

    def send(self, data: bytes) -> None:
        self._waiting += data
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())

    async def drain(self) -> None:
        if self._writing is not None:
            await self._writing

    async def _write(self) -> None:
        if not self.response.prepared:
            await self.response.prepare(self._request)
        while self._waiting:
            data, self._waiting = bytes(self._waiting), bytearray()
            await self.response.write(data)


def silence_of(headers: Mapping[str, str], default_s: float = 90.0) -> float:
    """After how long without a word the client wants a sign of life."""
    asked = headers.get("keepalive-ping-interval", "")
    if asked.isascii() and asked.isdigit() and len(asked) < 10:
        return min(max(1.0, float(asked)), LONGEST_SILENCE_S)
    return default_s


def patience_of(headers: Mapping[str, str]) -> float | None:
    """When to answer at the latest, in seconds: a little before the client gives up. None: it never does."""
    asked = headers.get("connect-timeout-ms", "")
    if not (asked.isascii() and asked.isdigit() and len(asked) < 14) or int(asked) == 0:
        return None
    whole_s = int(asked) / 1000
    return max(0.001, whole_s - min(0.05, whole_s / 20))
