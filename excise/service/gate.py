"""What stands before aiohttp on every connection: strict heads, time limits, and a short way for short requests.

A connection belongs to the gate while it is idle. Each request's head is taken whole and read strictly here; what
is malformed, too large or too slow never gets further. A request that a door has a quick way for (an action: the
one thing a rollout asks for again and again) is answered here, with a fifth of the work; all others are handed to
aiohttp, bytes as they came, and the connection comes back once it is idle again.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from excise.service.heads import MOST_HEAD_BYTES, BadHead, Head, chunked, parse, token_of
from excise.types import MIB

HEAD_S = 15.0
"""How long a head may take to come."""

STALLED_S = 60.0
"""How long nothing may come of a body that is announced, and how long a client may take nothing of an answer."""

IDLE_S = 75.0
LOOKS_EVERY_S = 5.0
QUICK_BODY_BYTES = MIB
"""A body that is larger goes the long way."""

MOST_CONNECTIONS = 4096
REFUSAL = b"HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s\n"


class Asked:
    """One request on the quick way: whoever handles it returns the whole answer.

    Or it lets the answer `begin`, sends it in pieces, and returns None. If the client leaves meanwhile, the handler
    is cancelled.
    """

    __slots__ = ("_gate", "body", "head", "id", "parts")

    def __init__(self, head: Head, parts: tuple[str, ...], body: bytes, gate: Gate) -> None:
        self.head = head
        self.parts = parts
        """What stands in the path where the pattern has a star."""
        self.body = body
        self.id = f"{random.getrandbits(64):016x}"  # a name, no secret
        self._gate = gate

    @property
    def token(self) -> str | None:
        """The key that came along."""
        fields = self.head.fields
        return token_of(fields.get("x-api-key"), fields.get("authorization"))

    def begin(self, status: int, kind: bytes) -> None:
        """What follows comes in pieces."""
        self._gate.begin(self, status, kind)

    def send(self, data: bytes) -> None:
        """A piece; nothing happens where nobody listens any more."""
        self._gate.send(data)

    async def drain(self) -> None:
        """Wait for a slow reader."""
        await self._gate.drained()


Answer: TypeAlias = tuple[int, bytes, bytes]
"""Status, content type (and any further header lines behind it), body."""
Quick: TypeAlias = Callable[[Asked], Awaitable[Answer | None]]
Pattern: TypeAlias = tuple[str, ...]
"""The parts of a path; a star stands for any one."""

_REASONS = {
    200: b"200 OK", 201: b"201 Created", 204: b"204 No Content", 400: b"400 Bad Request",
    401: b"401 Unauthorized", 404: b"404 Not Found", 409: b"409 Conflict",
    413: b"413 Content Too Large", 429: b"429 Too Many Requests", 500: b"500 Internal Server Error",
    501: b"501 Not Implemented", 502: b"502 Bad Gateway", 503: b"503 Service Unavailable",
    504: b"504 Gateway Timeout", 507: b"507 Insufficient Storage",
}  # fmt: skip


class Gates:
    """All connections of one service, and the ways they can take."""

    def __init__(
        self,
        inner: Callable[[], asyncio.Protocol],
        quick: Mapping[tuple[str, Pattern], Quick],
        *,
        most: int = MOST_CONNECTIONS,
        refused: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`refused` hears the kind of everything that gets no further than this."""
        self.inner = inner
        self.most = most
        self.open: set[Gate] = set()
        self.refused = refused
        self._handlers = {f"way{number}": handle for number, handle in enumerate(quick.values())}
        forms = [f"{_form(*way)}(?P<way{number}>)" for number, way in enumerate(quick)]
        self._find = re.compile("|".join(forms) or "(?!)").fullmatch

    def __call__(self) -> Gate:
        """A connection is coming."""
        return Gate(self)

    def way(self, head: Head) -> tuple[Quick, tuple[str, ...]] | None:
        """The quick way for a request, if it has one: an exact path, without anything quoted or asked behind it."""
        found = self._find(f"{head.method} {head.target}")
        if found is None or (head.length or 0) > QUICK_BODY_BYTES:
            return None
        if "expect" in head.fields or "content-encoding" in head.fields:
            return None
        parts = tuple(part for part in found.groups() if part)
        assert found.lastgroup is not None
        return self._handlers[found.lastgroup], parts

    async def watch(self) -> None:
        """End what is idle, slow or stalled, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(LOOKS_EVERY_S)
            now_s = loop.time()
            for gate in list(self.open):
                gate.look(now_s)

    def close(self) -> None:
        """End every connection that nothing is under way on; the others close behind their answer."""
        for gate in list(self.open):
            gate.drain()


def _form(method: str, pattern: Pattern) -> str:
    """As a regular expression; a star stands for one part of a path, with nothing in it that is quoted."""
    return f"{method} /" + "/".join(
        "([^/%?]+)" if part == "*" else re.escape(part) for part in pattern
    )


class Gate(asyncio.Protocol):
    """One connection."""

    def __init__(self, gates: Gates) -> None:
        self._gates = gates
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._inner: asyncio.Protocol | None = None
        self._buffer = bytearray()
        self._head: Head | None = None
        self._task: asyncio.Task[None] | None = None
        self._passing = False
        """What comes is aiohttp's, until that is idle again."""
        self._body_left = 0
        self._for_good = False
        """It speaks something else from now on, and never comes back."""
        self._closing = False
        self._going: asyncio.Task[None] | None = None
        """What sends an answer in pieces."""
        self._room: asyncio.Future[None] | None = None
        self._stalled_since_s: float | None = None
        self._since_s = self._loop.time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if len(self._gates.open) >= self._gates.most:
            self._refuse(b"503 Service Unavailable", b"too many connections", "connections")
            return
        self._gates.open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._gates.open.discard(self)
        if self._inner is not None:
            self._inner.connection_lost(exc)
        self._transport = None
        if self._going is not None:
            self._going.cancel()

    def data_received(self, data: bytes) -> None:
        self._since_s = self._loop.time()
        if self._passing and (self._for_good or not self._idle_inside()):
            self._pass(data)
            return
        self._passing, self._body_left = False, 0
        self._buffer += data
        if self._task is not None:
            if len(self._buffer) > MOST_HEAD_BYTES + QUICK_BODY_BYTES:
                self._pause()
            return
        self._go_on()

    def eof_received(self) -> bool | None:
        if self._inner is not None and self._passing:
            return self._inner.eof_received()
        return None

    def pause_writing(self) -> None:
        self._stalled_since_s = self._loop.time()
        self._room = self._loop.create_future()
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._stalled_since_s = None
        room, self._room = self._room, None
        if room is not None and not room.done():
            room.set_result(None)
        if self._inner is not None:
            self._inner.resume_writing()

    def begin(self, asked: Asked, status: int, kind: bytes) -> None:
        """The head of an answer in pieces."""
        self._going = self._task
        if self._transport is None and self._going is not None:
            self._going.cancel()
        if self._transport is not None:
            self._transport.write(
                b"HTTP/1.1 %b\r\nContent-Type: %b\r\nX-Request-Id: %b\r\nTransfer-Encoding: chunked\r\n\r\n"
                % (_REASONS.get(status, b"%d -" % status), kind, asked.id.encode())
            )

    def send(self, data: bytes) -> None:
        """A piece of it."""
        if self._transport is not None and data:
            self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    async def drained(self) -> None:
        """Until what was sent is on its way."""
        if self._room is not None:
            await self._room

    def look(self, now_s: float) -> None:
        """End it, if it has been idle, or slow, for too long."""
        transport = self._transport
        if transport is None or self._for_good:
            return
        quiet_s = now_s - self._since_s
        if self._stalled_since_s is not None:
            if now_s - self._stalled_since_s > STALLED_S:
                transport.abort()
        elif self._busy():
            if self._body_left and quiet_s > STALLED_S:
                transport.abort()
        elif self._head is not None or self._buffer:
            if quiet_s > (HEAD_S if self._head is None else STALLED_S):
                self._refuse(b"408 Request Timeout", b"the request did not come", "slow_client")
        elif quiet_s > IDLE_S:
            transport.close()

    def drain(self) -> None:
        """Close it, at once or behind the answer that is under way."""
        self._closing = True
        if not self._busy():
            self._end()

    def _busy(self) -> bool:
        return self._task is not None or (self._passing and not self._idle_inside())

    def _go_on(self) -> None:
        """Take the next request, if it is here."""
        head = self._head or self._take_head()
        if head is None:
            return
        way = self._gates.way(head)
        if way is None:
            self._head = None
            self._pass_whole(head)
            return
        try:
            found = self._whole(head)
        except BadHead:
            self._head = None
            self._pass_whole(head)
            return
        self._head = head
        if found is None:
            return
        body, size = found
        del self._buffer[:size]
        self._head = None
        handle, parts = way
        self._task = self._loop.create_task(self._quickly(handle, Asked(head, parts, body, self)))

    def _whole(self, head: Head) -> tuple[bytes, int] | None:
        """The body and its size on the wire, if all of it is here. BadHead: it is for aiohttp to make sense of it."""
        if head.length is None:
            return chunked(self._buffer, QUICK_BODY_BYTES)
        if len(self._buffer) < head.length:
            return None
        return bytes(self._buffer[: head.length]), head.length

    def _take_head(self) -> Head | None:
        while self._buffer.startswith(b"\r\n"):  # left behind by some clients after a body
            del self._buffer[:2]
        end = self._buffer.find(b"\r\n\r\n", 0, MOST_HEAD_BYTES)
        if end < 0:
            if len(self._buffer) >= MOST_HEAD_BYTES:
                text = b"a head of more than %d bytes" % MOST_HEAD_BYTES
                self._refuse(b"431 Request Header Fields Too Large", text)
            return None
        self._raw = bytes(self._buffer[: end + 4])
        del self._buffer[: end + 4]
        try:
            return parse(self._raw[:-4])
        except BadHead as error:
            self._refuse(b"400 Bad Request", str(error).encode())
            return None

    def _pass_whole(self, head: Head) -> None:
        """Hand a request on, and whatever has come behind its head."""
        if self._inner is None:
            self._inner = self._gates.inner()
            assert self._transport is not None
            self._inner.connection_made(self._transport)
        self._passing = True
        self._for_good = head.upgrades
        self._body_left = head.length or 0
        rest = bytes(self._buffer)
        self._buffer.clear()
        self._inner.data_received(self._raw)
        if rest:
            self._pass(rest)

    def _pass(self, data: bytes) -> None:
        assert self._inner is not None
        self._body_left = max(0, self._body_left - len(data))
        self._inner.data_received(data)

    def _idle_inside(self) -> bool:
        """Whether aiohttp waits for a request. Where a newer one does not tell any more, it keeps the connection."""
        inner = self._inner
        waiter = getattr(inner, "_waiter", None)
        return (
            waiter is not None
            and not waiter.done()
            and not getattr(inner, "_messages", True)
            and getattr(inner, "_current_request", inner) is None
            and not getattr(inner, "_message_tail", True)
        )

    async def _quickly(self, handle: Quick, asked: Asked) -> None:
        try:
            answer = await handle(asked)
        except asyncio.CancelledError:
            if self._transport is not None:
                self._transport.abort()
            raise
        finally:
            self._task = self._going = None
            self._since_s = self._loop.time()
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        keeps = asked.head.keeps and not self._closing
        if answer is None:
            transport.write(b"0\r\n\r\n")
        else:
            self._say(transport, asked, answer, keeps=keeps)
        if not keeps:
            self._end()
        elif self._buffer:
            transport.resume_reading()
            self._go_on()

    def _say(
        self, transport: asyncio.Transport, asked: Asked, answer: Answer, *, keeps: bool
    ) -> None:
        status, kind, body = answer
        transport.write(
            b"HTTP/1.1 %b\r\nContent-Type: %b\r\nX-Request-Id: %b\r\n%bContent-Length: %d\r\n\r\n%b"
            % (
                _REASONS.get(status, b"%d -" % status),
                kind,
                asked.id.encode(),
                b"" if keeps else b"Connection: close\r\n",
                len(body),
                body,
            )
        )

    def _refuse(self, status: bytes, why: bytes, kind: str = "bad_request") -> None:
        self._gates.refused(kind)
        if self._transport is not None:
            self._transport.write(REFUSAL % (status, len(why) + 1, why))
        self._end()

    def _pause(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def _end(self) -> None:
        self._buffer.clear()
        if self._transport is not None:
            self._transport.close()
