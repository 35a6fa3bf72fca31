"""The E2B door: one origin for the control plane and for the daemon in every sandbox."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from aiohttp import web

from excise.service.doors import Desk
from excise.service.e2b.commands import Commands
from excise.service.e2b.control import Control
from excise.service.e2b.filesystem import Filesystem
from excise.service.e2b.reach import address_of
from excise.service.e2b.refusal import DAEMON, SERVICES, refusal
from excise.service.e2b.templates import Templates
from excise.service.e2b.transfers import Transfers
from excise.service.e2b.watching import Watching
from excise.service.gate import Answer, Asked, Pattern, Quick
from excise.service.problems import Problem

_CONTROL = re.compile(r"/(v\d/)?(sandboxes|templates|snapshots|volumes|secrets)(/|$)")


class E2B:
    """What the `e2b` SDKs ask for."""

    name = "e2b"

    def __init__(self) -> None:
        self._daemon: _Daemon | None = None

    def owns(self, request: web.BaseRequest) -> bool:
        if request.headers.get("User-Agent", "").startswith("e2b-"):
            return True
        path = request.path
        if path in DAEMON or path.startswith(SERVICES) or _CONTROL.match(path):
            return True
        return address_of(request.headers) is not None

    def routes(self, desk: Desk) -> Iterable[web.RouteDef]:
        calls = self._on(desk)
        yield from Control(desk).routes()
        yield from Templates(desk).routes()
        yield from Transfers(desk).routes()
        yield from calls.commands.routes()
        yield from calls.filesystem.calls.routes()
        yield from calls.watching.calls.routes()

    def quick(self, desk: Desk) -> Mapping[tuple[str, Pattern], Quick]:
        parts = self._on(desk)
        calls = (parts.commands.calls, parts.filesystem.calls, parts.watching.calls)
        return {way: quick for each in calls for way, quick in each.quick().items()}

    def refused_quickly(self, asked: Asked, problem: Problem) -> Answer:
        return refusal(asked.head.target, asked.head.fields, problem)

    def refused(self, request: web.BaseRequest, problem: Problem) -> web.Response:
        status, kind, body = refusal(request.path, request.headers, problem)
        return web.Response(body=body, content_type=kind.decode(), status=status)

    def _on(self, desk: Desk) -> _Daemon:
        """What stands for the daemons of that desk's sandboxes: one, on both ways that a request can take."""
        if self._daemon is None or self._daemon.desk is not desk:
            self._daemon = _Daemon(desk)
        return self._daemon


class _Daemon:
    """The calls of the daemon that every sandbox seems to have."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.commands = Commands(desk)
        self.filesystem = Filesystem(desk)
        self.watching = Watching(desk)
