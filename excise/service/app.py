"""The application: doors beside each other, and around them what holds for every request, whatever its protocol."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias, cast

from aiohttp import web

from excise.service.account import Account, Spans
from excise.service.doors import NAMED, REQUEST_ID, Desk, Door, retry_after
from excise.service.problems import NOT_FOUND, Fault, Problem, problem_of
from excise.types import MIB

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

ASKED: web.RequestKey[Door] = web.RequestKey("door", Door)
BODY_BYTES = 32 * MIB
"""The most a body may hold that is read whole, however small it came: some are packed. Files are taken in parts."""


def application(desk: Desk, doors: Sequence[Door]) -> web.Application:
    """All doors on one origin. Where two have the same path, the first that owns the request gets it."""
    app = web.Application(client_max_size=BODY_BYTES, middlewares=[_Around(desk, doors)])
    chosen: dict[tuple[str, str], list[tuple[Door, Handler]]] = {}
    for door in doors:
        for route in door.routes(desk):
            chosen.setdefault((route.method, route.path), []).append((door, _handler(route)))
    for (method, path), candidates in chosen.items():
        app.router.add_route(method, path, _choosing(candidates))
    return app


def _handler(route: web.RouteDef) -> Handler:
    handler: Handler = cast("Handler", route.handler)
    return handler


def _choosing(candidates: Sequence[tuple[Door, Handler]]) -> Handler:
    (last, default) = candidates[-1]

    async def handle(request: web.Request) -> web.StreamResponse:
        for door, handler in candidates[:-1]:
            if door.owns(request):
                request[ASKED] = door
                return await handler(request)
        request[ASKED] = last
        return await default(request)

    return handle


class _Around:
    """Request id in and out; errors into problems, problems into the words of the door that was asked."""

    __middleware_version__ = 1

    def __init__(self, desk: Desk, doors: Sequence[Door]) -> None:
        self._doors = doors
        self._metrics = desk.cloud.metrics
        self._spans = Spans()

    async def __call__(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        request[NAMED] = secrets.token_hex(8)
        route = request.match_info.route.resource
        what = f"{request.method} {route.canonical if route else 'nothing'}"
        account = Account(self._metrics, self._doors[-1].name, what)
        with self._spans.span(what, request[NAMED]):
            try:
                response = await handler(request)
            except web.HTTPException as error:
                response = self._refused(request, _of_http(error), error, account)
            except (asyncio.CancelledError, ConnectionResetError):
                account.answered(499)
                raise
            except Exception as error:  # noqa: BLE001  # told to the client and to the log
                response = self._refused(request, problem_of(error), error, account)
            if not response.prepared:
                response.headers[REQUEST_ID] = request[NAMED]
            account.answered(response.status, self._door(request).name)
        return response

    def _refused(
        self, request: web.Request, problem: Problem, error: BaseException, account: Account
    ) -> web.StreamResponse:
        account.went_wrong(problem, error)
        response = self._door(request).refused(request, problem)
        if problem.retry_after_s is not None and not response.prepared:
            response.headers["Retry-After"] = retry_after(problem.retry_after_s)
        return response

    def _door(self, request: web.Request) -> Door:
        asked: Door | None = request.get(ASKED)
        if asked is not None:
            return asked
        return next((door for door in self._doors if door.owns(request)), self._doors[-1])


def _of_http(error: web.HTTPException) -> Problem:
    if error.status == NOT_FOUND.status:
        return NOT_FOUND
    kind = (error.reason or "refused").lower().replace(" ", "_")
    fault = Fault.CALLER if error.status < 500 else Fault.INFRASTRUCTURE
    return Problem(error.status, kind, error.reason or "refused", fault)
