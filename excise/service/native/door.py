"""The native door: `/v1/...` from the table of operations, and what belongs to no other door."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from aiohttp import web

from excise.service.doors import Desk, bearer
from excise.service.gate import Answer, Asked, Pattern, Quick
from excise.service.keys import Scope
from excise.service.native.actions import quick_run
from excise.service.native.openapi import document
from excise.service.native.operation import JSON
from excise.service.native.refusal import body_of_refusal, refused
from excise.service.native.table import OPERATIONS
from excise.service.page.files import routes as page
from excise.service.problems import Problem
from excise.service.watching import exposition

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


class Native:
    """Our own protocol; it answers for whatever nobody else owns."""

    name = "native"

    def owns(self, request: web.BaseRequest) -> bool:
        return request.path.startswith("/v1/")

    def routes(self, desk: Desk) -> Iterable[web.RouteDef]:
        described = msgspec.json.encode(document())

        async def openapi(request: web.Request) -> web.Response:
            del request
            return web.Response(body=described, content_type=JSON)

        async def alive(request: web.Request) -> web.Response:
            """For load balancers: 503 while it drains, so that nothing new is sent here."""
            del request
            draining = desk.cloud.draining
            return web.Response(
                text="draining" if draining else "ok", status=503 if draining else 200
            )

        async def metrics(request: web.Request) -> web.Response:
            desk.key(bearer(request), Scope.WATCH)
            text = exposition(desk.cloud).encode()
            return web.Response(body=text, headers={"Content-Type": PROMETHEUS})

        return [
            *(operation.route(desk) for operation in OPERATIONS),
            web.get("/v1/openapi.json", openapi),
            web.get("/healthz", alive),
            web.get("/metrics", metrics),
            *page(),
        ]

    def quick(self, desk: Desk) -> Mapping[tuple[str, Pattern], Quick]:
        return {("POST", ("v1", "sandboxes", "*", "run")): quick_run(desk)}

    def refused_quickly(self, asked: Asked, problem: Problem) -> Answer:
        return problem.status, JSON.encode(), body_of_refusal(problem, asked.id)

    def refused(self, request: web.BaseRequest, problem: Problem) -> web.Response:
        return refused(request, problem)
