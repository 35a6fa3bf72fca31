"""The Daytona door: `/api/...` for sandboxes, `/toolbox/SANDBOX/...` for what happens in one."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Iterable, Mapping

from aiohttp import web

from excise.service.daytona import absent, previews, quick
from excise.service.daytona.call import Call, Control, Inside, Toolbox, answer
from excise.service.daytona.describe import stamp
from excise.service.daytona.errors import Told, body_of, told_of
from excise.service.daytona.makings import Makings
from excise.service.daytona.room import room_of
from excise.service.daytona.routes import Table
from excise.service.daytona.shares import Shares, signed
from excise.service.daytona.tables import CONTROL, OPEN, SIGNED, TOOLBOX
from excise.service.doors import Desk, bearer, request_id
from excise.service.gate import Answer, Asked, Pattern, Quick
from excise.service.problems import NOT_FOUND, Problem
from excise.service.sandbox import Sandbox

PREFIXES = ("/api/", "/toolbox/", "/preview/")


class Daytona:
    """Translates what the Daytona SDK asks."""

    name = "daytona"

    def __init__(self) -> None:
        self._open: Table[Control] = Table(OPEN)
        self._control: Table[Control] = Table(CONTROL)
        self._toolbox: Table[Toolbox] = Table(TOOLBOX)
        self._signed: Table[Toolbox] = Table(SIGNED)
        self._makings = Makings()
        self._shares = Shares()

    def owns(self, request: web.BaseRequest) -> bool:
        return request.path.startswith(PREFIXES)

    def routes(self, desk: Desk) -> Iterable[web.RouteDef]:
        async def control(request: web.Request) -> web.StreamResponse:
            return await self._answered(request, self._controlled(desk, request))

        async def toolbox(request: web.Request) -> web.StreamResponse:
            return await self._answered(request, self._inside(desk, request))

        async def preview(request: web.Request) -> web.StreamResponse:
            return await self._answered(request, previews.serve(desk, self._shares, request))

        return [
            web.route("*", "/api/{rest:.*}", control),
            web.route("*", "/toolbox/{rest:.*}", toolbox),
            web.route("*", "/preview/{rest:.*}", preview),
        ]

    def quick(self, desk: Desk) -> Mapping[tuple[str, Pattern], Quick]:
        return quick.ways(desk)

    def refused_quickly(self, asked: Asked, problem: Problem) -> Answer:
        return quick.refused(asked, problem)

    def refused(self, request: web.BaseRequest, problem: Problem) -> web.Response:
        told = body_of(problem, request.path, stamp(time.time()), request_id(request))
        return answer(told, problem.status)

    async def _answered(
        self, request: web.Request, coming: Awaitable[web.StreamResponse]
    ) -> web.StreamResponse:
        """What the protocol alone knows is said here; all other errors by the application."""
        try:
            return await coming
        except Told as told:
            at = stamp(time.time())
            return answer(told_of(told, request.path, at, request_id(request)), told.status)

    async def _controlled(self, desk: Desk, request: web.Request) -> web.StreamResponse:
        path = request.rel_url.raw_path.removeprefix("/api/")
        if (free := self._open.find(request.method, path)) is not None:
            return await free[0](self._call(desk, request, "", ()))
        owner = desk.owner(bearer(request))
        found = self._control.find(request.method, path)
        if found is None:
            absent.refuse(absent.CONTROL, path)
            if path.startswith("sandbox/"):
                absent.refuse(absent.SANDBOX, path.partition("/")[2].partition("/")[2])
            raise _nowhere(request)
        handler, words = found
        return await handler(self._call(desk, request, owner, words))

    async def _inside(self, desk: Desk, request: web.Request) -> web.StreamResponse:
        raw = request.rel_url.raw_path.removeprefix("/toolbox/")
        id_, _, path = raw.partition("/")
        found = self._toolbox.find(request.method, path)
        token = bearer(request)
        if token is None and found and self._signed.find(request.method, path):
            box = self._by_signature(request, id_)
            desk.count(box.owner)
        else:
            box = desk.cloud.find(desk.owner(token), id_)
        if found is None:
            absent.refuse(absent.TOOLBOX, path)
            raise _nowhere(request)
        handler, words = found
        return await handler(
            Inside(desk, request, box.owner, words, self._makings, self._shares, box)
        )

    def _by_signature(self, request: web.Request, id_: str) -> Sandbox:
        box, query = self._shares.find(id_), request.query
        given = query.get("path", ""), query.get("expires", ""), query.get("signature", "")
        if box is not None:
            key, (path, expires, signature) = room_of(box).signing_key, given
            if signed(key, request.method, path, expires, signature, time.time()):
                return box
        raise Told(401, "UNAUTHORIZED", "the address is not signed, or not any more")

    def _call(self, desk: Desk, request: web.Request, owner: str, words: tuple[str, ...]) -> Call:
        return Call(desk, request, owner, words, self._makings, self._shares)


def _nowhere(request: web.Request) -> Told:
    said = f"{request.method} {request.path[:200]}: {NOT_FOUND.message}"
    return Told(404, "NOT_FOUND", said, "DAYTONA_API")
