"""Ports of a sandbox under addresses of this service.

A link needs its token in a header, a signed link has it in its path, and a public sandbox needs none. Pages come from
this service's own origin, but what they may do is what a page of nowhere may: they see nothing that is kept for it.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import AsyncIterator

from aiohttp import web

from excise.errors import InputError
from excise.service.daytona.call import Call, answer, nothing, whole
from excise.service.daytona.errors import API, Told
from excise.service.daytona.relay import asked, request_head
from excise.service.daytona.room import room_of
from excise.service.daytona.sandboxes import found
from excise.service.daytona.shares import Shares
from excise.service.doors import Desk
from excise.service.errors import Unsupported
from excise.service.sandbox import Sandbox

TOKEN = "X-Daytona-Preview-Token"  # noqa: S105  # the name of a header
DEFAULT_S = 60
LONGEST_S = 24 * 3600
ALONE = "sandbox allow-scripts allow-forms allow-popups allow-downloads"


async def link(call: Call) -> web.StreamResponse:
    box, port = found(call), _port(call.words[1])
    call.shares.add(box)
    url = f"{call.origin}/preview/{box.id}/{port}/"
    return answer({"sandboxId": box.id, "url": url, "token": _token(box)})


async def signed_link(call: Call) -> web.StreamResponse:
    box, port = found(call), _port(call.words[1])
    seconds = call.number("expiresInSeconds", DEFAULT_S, most=LONGEST_S)
    token = call.shares.open(box, port, time.time() + seconds)
    url = f"{call.origin}/preview/{token}/{port}/"
    return answer({"sandboxId": box.id, "port": port, "token": token, "url": url})


async def expire(call: Call) -> web.StreamResponse:
    call.shares.shut(found(call), call.words[2])
    return nothing(200)


async def serve(desk: Desk, shares: Shares, request: web.Request) -> web.StreamResponse:
    """Hand a request to the port that its address names."""
    raw = request.rel_url.raw_path.removeprefix("/preview/")
    name, _, rest = raw.partition("/")
    number, _, rest = rest.partition("/")
    port = _port(number)
    box = _allowed(shares, request, name, port)
    desk.count(box.owner)
    if "Upgrade" in request.headers:
        raise Unsupported("previews carry plain HTTP only, no WebSocket")
    query = request.rel_url.raw_query_string
    target = f"/{rest}?{query}" if query else f"/{rest}"
    head = request_head(request.method, target, request.headers.items(), port)
    desk.cloud.renew(box)
    with desk.streaming(box.owner):
        return await _served(desk, box, port, head, request)


async def _served(
    desk: Desk, box: Sandbox, port: int, head: bytes, request: web.Request
) -> web.StreamResponse:
    async with asked(desk.cloud, box, port, head, _body(request)) as (told, body):
        response = web.StreamResponse(status=told.status, reason=told.reason)
        for key, value in told.headers:
            if key.lower() != "content-length":
                response.headers.add(key, value)
        response.headers["Content-Security-Policy"] = ALONE
        await response.prepare(request)
        async for part in body:
            await response.write(part)
    await response.write_eof()
    return response


def _allowed(shares: Shares, request: web.Request, name: str, port: int) -> Sandbox:
    box = shares.opened(name, port, time.time())
    if box is not None:
        return box
    box = shares.find(name)
    given = request.headers.get(TOKEN, "").encode("utf-8", "replace")
    if box is not None:
        right = hmac.compare_digest(_token(box).encode(), given)
        if right or room_of(box).terms.public:
            return box
    raise Told(401, "UNAUTHORIZED", "that address needs a token, or its time is over", API)


async def _body(request: web.Request) -> AsyncIterator[bytes]:
    if request.body_exists and request.content_length is None:
        raise InputError("a preview takes a body whose length is told")
    async for part in request.content.iter_any():
        yield part


def _token(box: Sandbox) -> str:
    """Of all ports of one sandbox; it opens nothing else of it."""
    return hmac.new(box.token.encode(), b"preview", "sha256").hexdigest()[:40]


def _port(text: str) -> int:
    return whole(text, "port", 1, 65535)
