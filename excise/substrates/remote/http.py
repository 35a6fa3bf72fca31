"""HTTP/1.1 to one service for event loops: kept connections, one request at a time on each, streams.

A request may be repeated only if its caller says so; then it is, once, on a fresh connection, when the kept one
that it was written to turns out to be broken before any answer came.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

from excise.errors import DeadlineExceeded, Phase
from excise.substrates.remote.problems import NAME, error_of, refusal_of, unreachable
from excise.substrates.remote.replies import BadAnswer, Head, Reply
from excise.substrates.remote.requests import Target
from excise.types import MIB

T = TypeVar("T")

MOST_CONNECTIONS = 512
CONNECT_S = 10.0
UNTAKEN_BYTES = MIB


class _Broken(Exception):
    """The connection ended or talked nonsense. `begun`: part of an answer had come."""

    def __init__(self, why: str, *, begun: bool) -> None:
        super().__init__(why)
        self.begun = begun


class _Connection(asyncio.Protocol):
    """One kept connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.reused = False
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._reply: Reply | None = None
        self._parts: deque[bytes] = deque()
        self._untaken = 0
        self._waiter: asyncio.Future[None] | None = None
        self._streams = False
        self._broken: str | None = None
        self._writable = asyncio.Event()
        self._writable.set()

    @property
    def fit(self) -> bool:
        """Another request may be sent on it."""
        whole = self._reply is None or (self._reply.done and self._keeps())
        return self._broken is None and whole and not self._parts

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def data_received(self, data: bytes) -> None:
        reply = self._reply
        if reply is None or self._transport is None:
            self._break("the service speaks without being asked")
            return
        try:
            reply.feed(data)
            part = reply.take()
        except BadAnswer as error:
            self._break(str(error))
            return
        if part:
            self._parts.append(part)
            self._untaken += len(part)
            if self._streams and self._untaken > UNTAKEN_BYTES:
                self._transport.pause_reading()
        if reply.done or (self._streams and reply.head is not None):
            self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._reply is not None and self._broken is None:
            try:
                self._reply.end()
            except BadAnswer as error:
                self._broken = str(exc or error)
        self._broken = self._broken or str(exc or "the service closed the connection")
        self._writable.set()
        self._wake()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    async def ask(self, data: bytes, *, without_body: bool = False) -> tuple[Head, bytes]:
        """One request and its whole answer."""
        reply = self._begin(data, streams=False, without_body=without_body)
        while not reply.done:
            self._check()
            await self._wait()
        assert reply.head is not None
        parts, self._parts, self._untaken = self._parts, deque(), 0
        return reply.head, parts[0] if len(parts) == 1 else b"".join(parts)

    async def begin(self, data: bytes) -> Head:
        """One request; returns once the head of its answer is here. `part` gives its body."""
        reply = self._begin(data, streams=True)
        while reply.head is None:
            self._check()
            await self._wait()
        return reply.head

    async def part(self) -> bytes:
        """What came of the body; nothing at its end."""
        assert self._reply is not None
        while not self._parts:
            if self._reply.done:
                return b""
            self._check()
            await self._wait()
        part = self._parts.popleft()
        self._untaken -= len(part)
        if self._untaken <= UNTAKEN_BYTES and self._transport is not None:
            self._transport.resume_reading()
        return part

    async def more(self, data: bytes) -> None:
        """More of a request's body."""
        assert self._transport is not None
        self._transport.write(data)
        await self._writable.wait()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _begin(self, data: bytes, *, streams: bool, without_body: bool = False) -> Reply:
        self._reply = Reply(without_body=without_body)
        self._streams = streams
        self._check()
        assert self._transport is not None
        self._transport.write(data)
        return self._reply

    def _keeps(self) -> bool:
        return self._reply is not None and self._reply.head is not None and self._reply.head.keeps

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _check(self) -> None:
        if self._broken is not None:
            begun = self._reply is not None and self._reply.begun
            raise _Broken(self._broken, begun=begun)

    def _break(self, why: str) -> None:
        self._broken = self._broken or why
        self.close()
        self._wake()


class Body:
    """The body of an answer as it comes. Leaving it before its end costs the connection."""

    def __init__(self, http: Http, connection: _Connection, head: Head, phase: Phase) -> None:
        self.head = head
        self._http = http
        self._connection = connection
        self._phase = phase

    async def parts(self) -> AsyncIterator[bytes]:
        try:
            while part := await self._connection.part():
                yield part
        except _Broken as error:
            raise unreachable(f"the answer was cut short: {error}", self._phase) from error

    async def lines(self) -> AsyncIterator[bytes]:
        """Its lines, without their ends; empty ones, which only keep the connection alive, are left out."""
        rest = b""
        async for part in self.parts():
            *whole, rest = (rest + part).split(b"\n")
            for line in whole:
                if line:
                    yield line
        if rest:
            raise unreachable("the answer was cut short within a line", self._phase)

    def close(self) -> None:
        self._http.give_back(self._connection)


class Http:
    """Requests to one service. Belongs to one event loop at a time."""

    def __init__(
        self,
        target: Target,
        *,
        tls: ssl.SSLContext | None = None,
        most: int = MOST_CONNECTIONS,
    ) -> None:
        self.target = target
        self.repeated = 0
        """Requests that were sent again, because the connection they were sent on had broken."""
        self._tls = tls
        self._most = most
        self._idle: list[_Connection] = []
        self._slots: asyncio.Semaphore | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def ask(
        self, data: bytes, phase: Phase, *, patience_s: float | None, repeatable: bool
    ) -> bytes:
        """The body of a successful answer; raises what any other one says."""
        head, body = await self._patiently(self._ask(data, phase, repeatable), phase, patience_s)
        if head.status >= 300:
            raise error_of(refusal_of(head.status, body), phase)
        return body

    async def stream(
        self, data: bytes, phase: Phase, *, patience_s: float, repeatable: bool
    ) -> Body:
        """An answer whose body is taken as it comes; raises what one says that is no success."""
        return await self._patiently(self._stream(data, phase, repeatable), phase, patience_s)

    def give_back(self, connection: _Connection) -> None:
        """Keep it for the next request, if it is fit for one."""
        if self._slots is not None:
            self._slots.release()
        if connection.fit:
            connection.reused = True
            self._idle.append(connection)
        else:
            connection.close()

    async def close(self) -> None:
        """Let go of every idle connection. The next request makes new ones."""
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
        await asyncio.sleep(0)

    async def _ask(self, data: bytes, phase: Phase, repeatable: bool) -> tuple[Head, bytes]:
        while True:
            connection = await self._take(phase)
            try:
                return await connection.ask(data)
            except _Broken as error:
                if not self._again(connection, error, repeatable):
                    raise _cut(error, phase, repeatable) from error
            finally:
                self.give_back(connection)

    async def _stream(self, data: bytes, phase: Phase, repeatable: bool) -> Body:
        while True:
            connection = await self._take(phase)
            try:
                head = await connection.begin(data)
                body = Body(self, connection, head, phase)
                if head.status < 300:
                    return body
                said = b"".join([part async for part in body.parts()])
            except _Broken as error:
                self.give_back(connection)
                if not self._again(connection, error, repeatable):
                    raise _cut(error, phase, repeatable) from error
                continue
            except BaseException:
                self.give_back(connection)
                raise
            self.give_back(connection)
            raise error_of(refusal_of(head.status, said), phase)

    def _again(self, connection: _Connection, error: _Broken, repeatable: bool) -> bool:
        """A kept connection that the service has closed meanwhile says nothing about this request."""
        again = repeatable and connection.reused and not error.begun
        self.repeated += again
        return again

    async def _take(self, phase: Phase) -> _Connection:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._idle, self._slots = loop, [], asyncio.Semaphore(self._most)
        assert self._slots is not None
        await self._slots.acquire()
        while self._idle:
            connection = self._idle.pop()
            if connection.fit:
                return connection
            connection.close()
        try:
            return await self._connect(loop)
        except (OSError, TimeoutError) as error:
            self._slots.release()
            text = f"no service at {self.target.url}: {str(error) or 'no answer'}; start one with `excise serve`"
            raise unreachable(text, phase) from error
        except BaseException:
            self._slots.release()
            raise

    async def _connect(self, loop: asyncio.AbstractEventLoop) -> _Connection:
        target = self.target
        secure = self._tls or ssl.create_default_context() if target.secure else None
        async with asyncio.timeout(CONNECT_S):
            _, connection = await loop.create_connection(
                lambda: _Connection(loop), target.host, target.port, ssl=secure
            )
        return connection

    async def _patiently(
        self, asking: Coroutine[Any, Any, T], phase: Phase, patience_s: float | None
    ) -> T:
        if patience_s is None:
            return await asking
        try:
            async with asyncio.timeout(patience_s) as bound:
                return await asking
        except TimeoutError as error:
            if not bound.expired():
                raise
            text = f"the service did not answer within {patience_s:g} s"
            raise DeadlineExceeded(text, substrate=NAME, phase=phase, retryable=True) from error


def _cut(error: _Broken, phase: Phase, repeatable: bool) -> Exception:
    return unreachable(f"the connection to the service broke: {error}", phase, retryable=repeatable)
