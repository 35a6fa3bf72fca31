"""The daemon's calls, on both ways that a request can take: each is a function of a sandbox, headers and a message.

A call with one answer returns it. A call with many puts them into an outlet, and returns the error that its stream
ends with, or None. Either may raise.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

import msgspec
from aiohttp import web

from excise.errors import InputError
from excise.service.doors import Desk
from excise.service.e2b.reach import reached
from excise.service.e2b.stream import CLOSED, Outlet, Sink, ToGate, ToRequest, silence_of
from excise.service.e2b.wire import STREAM, UNARY, Envelopes, error_of, message
from excise.service.gate import Answer, Asked, Pattern, Quick
from excise.service.problems import problem_of
from excise.service.sandbox import Sandbox

Headers: TypeAlias = Mapping[str, str]
Message: TypeAlias = dict[str, Any]
Unary: TypeAlias = Callable[[Sandbox, Headers, Message], Awaitable[Message]]
Streamed: TypeAlias = Callable[
    [Sandbox, Headers, Message, Outlet], Awaitable[Mapping[str, str] | None]
]
Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Calls:
    """The calls of one service, by name."""

    def __init__(self, desk: Desk, service: str) -> None:
        self._desk = desk
        self._service = service
        self._handlers: dict[str, tuple[Handler, Quick]] = {}

    def unary(self, name: str, answer: Unary) -> None:
        """One message in, one out."""

        async def handle(request: web.Request) -> web.Response:
            sandbox = await reached(self._desk, request.headers)
            told = await answer(sandbox, request.headers, message(await request.read()))
            return web.Response(body=msgspec.json.encode(told), content_type=UNARY)

        async def quickly(asked: Asked) -> Answer:
            headers = asked.head.fields
            sandbox = await reached(self._desk, headers)
            told = await answer(sandbox, headers, message(asked.body))
            return 200, UNARY.encode(), msgspec.json.encode(told)

        self._handlers[name] = handle, quickly

    def streamed(self, name: str, answer: Streamed, ping: Message) -> None:
        """One message in, many out; `ping` is the one that says nothing."""

        async def handle(request: web.Request) -> web.StreamResponse:
            sandbox = await reached(self._desk, request.headers)
            body, sink = await request.read(), ToRequest(request)
            data, begun = await self._relay(sandbox, request.headers, body, sink, answer, ping)
            if not begun:
                return web.Response(body=data, content_type=STREAM)
            with suppress(*CLOSED):
                sink.send(data)
                await sink.drain()
                await sink.response.write_eof()
            return sink.response

        async def quickly(asked: Asked) -> Answer | None:
            headers, sink = asked.head.fields, ToGate(asked)
            sandbox = await reached(self._desk, headers)
            data, begun = await self._relay(sandbox, headers, asked.body, sink, answer, ping)
            if not begun:
                return 200, STREAM.encode(), data
            sink.send(data)
            return None

        self._handlers[name] = handle, quickly

    async def _relay(
        self,
        sandbox: Sandbox,
        headers: Headers,
        body: bytes,
        sink: Sink,
        answer: Streamed,
        ping: Message,
    ) -> tuple[bytes, bool]:
        """What is left to be sent at the end, and whether anything was before."""
        asked = only_message(body)
        with (
            self._desk.streaming(sandbox.owner),
            Outlet(sink, ping=ping, silence_s=silence_of(headers)) as outlet,
        ):
            try:
                error = await answer(sandbox, headers, asked, outlet)
            except CLOSED:
                return b"", outlet.begun  # nobody listens; what runs goes on
            except Exception as failure:
                if not outlet.begun:
                    raise
                error = error_of(problem_of(failure))
            return outlet.finish(error), outlet.begun

    def routes(self) -> Iterable[web.RouteDef]:
        for name, (handle, _) in self._handlers.items():
            yield web.post(f"{self._service}/{name}", handle)

    def quick(self) -> Mapping[tuple[str, Pattern], Quick]:
        """The same by the quick way."""
        service = self._service.strip("/")
        return {("POST", (service, name)): quick for name, (_, quick) in self._handlers.items()}


def only_message(body: bytes) -> Message:
    """The one message that a client sends before it listens."""
    envelopes = Envelopes()
    found = envelopes.feed(body)
    envelopes.finish()
    if len(found) != 1:
        raise InputError(f"one message is expected here, not {len(found)}")
    return found[0]
