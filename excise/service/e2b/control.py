"""The control plane: sandboxes made, found, timed, paused, copied and ended, each for its owner."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from typing import Any

from aiohttp import web

from excise.errors import InputError, LifecycleError
from excise.service.catalogue import NoTemplate
from excise.service.doors import Desk, bearer
from excise.service.e2b import asked, metrics, told
from excise.service.e2b.environments import wanted_of
from excise.service.e2b.wire import message
from excise.service.errors import Unsupported
from excise.service.sandbox import NS, Sandbox, State

LIFETIME_S = 300
MOST_COPIES = 100
MOST_LISTED = 100
OLD_LIFETIME_S = 15
"""What the oldest routes say that a sandbox lives."""

Verb = Callable[[Sandbox, dict[str, Any]], Awaitable[web.Response]]


class Control:
    """The handlers."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._cloud = desk.cloud

    def routes(self) -> Iterable[web.RouteDef]:
        one = "/sandboxes/{sandbox}"
        for made in ("/sandboxes", "/v2/sandboxes"):
            yield web.post(made, self._create)
            yield web.get(made, self._list, allow_head=False)
        yield web.get(one, self._on(self._detail), allow_head=False)
        yield web.delete(one, self._on(self._kill))
        yield web.post(f"{one}/timeout", self._on(self._timeout))
        yield web.post(f"{one}/refreshes", self._on(self._refresh))
        yield web.post(f"{one}/pause", self._on(self._pause))
        yield web.post(f"{one}/fork", self._on(self._fork))
        yield web.put(f"{one}/network", self._on(self._network))
        yield web.get(f"{one}/metrics", self._on(self._metrics), allow_head=False)
        for resumed in (f"{one}/connect", f"/v2{one}/connect", f"{one}/resume"):
            yield web.post(resumed, self._on(self._connect))

    def _on(self, verb: Verb) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(request: web.Request) -> web.Response:
            owner = self._desk.owner(bearer(request))
            sandbox = self._cloud.find(owner, request.match_info["sandbox"])
            return await verb(sandbox, message(await request.read()))

        return handle

    async def _create(self, request: web.Request) -> web.Response:
        owner = self._desk.owner(bearer(request))
        given = message(await request.read())
        wanted, notes = wanted_of(self._cloud, given)
        key = request.headers.get("Idempotency-Key")
        try:
            sandbox = await self._cloud.create(owner, wanted, key=key)
        except NoTemplate as error:
            raise FileNotFoundError(2, str(error)) from error
        sandbox.notes.update(notes)
        return web.json_response(told.made(sandbox), status=201)

    async def _list(self, request: web.Request) -> web.Response:
        owner = self._desk.owner(bearer(request))
        query = request.query
        most = asked.whole(query, "limit", MOST_LISTED)
        if not 1 <= most <= 1000:
            raise InputError("a page has 1 to 1000 sandboxes")
        labels = told.labels_asked(query.get("metadata", ""))
        states = told.states_asked(query.getall("state", []))
        template, after_s = query.get("template"), _time_of(query.get("startedAfter"))
        found = [
            each
            for each in self._all(owner, labels, states)
            if told.matches(each, template, after_s, self._started_s(each))
        ]
        if query.get("order", "asc") == "desc":
            found.reverse()
        start = asked.whole(query, "nextToken", 0)
        page = found[start : start + most]
        headers = {"X-Next-Token": str(start + most)} if start + most < len(found) else {}
        return web.json_response(
            [told.listed(each, *self._times(each)) for each in page], headers=headers
        )

    async def _detail(self, sandbox: Sandbox, given: dict[str, Any]) -> web.Response:
        del given
        return web.json_response(told.detailed(sandbox, *self._times(sandbox)))

    async def _kill(self, sandbox: Sandbox, given: dict[str, Any]) -> web.Response:
        del given
        await self._cloud.destroy(sandbox)
        return web.Response(status=204)

    async def _timeout(self, sandbox: Sandbox, given: dict[str, Any]) -> web.Response:
        self._cloud.extend(sandbox, asked.whole(given, "timeout") or 0.001)
        return web.Response(status=204)

    async def _refresh(self, sandbox: Sandbox, given: dict[str, Any]) -> web.Response:
        self._at_least(sandbox, asked.whole(given, "duration", OLD_LIFETIME_S))
        return web.Response(status=204)

    async def _pause(self, sandbox: Sandbox, given: dict[str, Any]) -> web.Response:
        if sandbox.state is not State.RUNNING:
            raise LifecycleError(f"sandbox {sandbox.id} is paused already")
        if asked.flag(given, "memory", default=True):
            await self._cloud.pause(sandbox)
        else:
            await self._cloud.stop(sandbox)
        return web.Response(status=204)

    async def _connect(self, sandbox: Sandbox, given: dict[str, Any]) -> web.Response:
        """A paused one goes on; with `memory` false only its files do. A running one lives no shorter for it."""
        life_s = asked.whole(given, "timeout", LIFETIME_S)
        if sandbox.state is State.RUNNING:
            self._at_least(sandbox, life_s)
            return web.json_response(told.made(sandbox))
        if sandbox.state is State.PAUSED and not asked.flag(given, "memory", default=True):
            await self._cloud.stop(sandbox)
        await self._cloud.resume(sandbox, life_s or 0.001)
        return web.json_response(told.made(sandbox), status=201)

    async def _fork(self, sandbox: Sandbox, given: dict[str, Any]) -> web.Response:
        copies = asked.whole(given, "count", 1)
        if not 1 <= copies <= MOST_COPIES:
            raise InputError(f"{copies} copies: 1 to {MOST_COPIES} can be made at once")
        life_s = asked.whole(given, "timeout", LIFETIME_S)
        forks = await self._cloud.fork(sandbox, copies, lifetime_s=life_s)
        for each in forks:
            each.notes.update({k: v for k, v in sandbox.notes.items() if k in _INHERITED})
        return web.json_response([{"sandbox": told.made(each)} for each in forks], status=201)

    async def _network(self, sandbox: Sandbox, given: dict[str, Any]) -> web.Response:
        del sandbox, given
        raise Unsupported("the network of a sandbox is chosen when it is made, and stays")

    async def _metrics(self, sandbox: Sandbox, given: dict[str, Any]) -> web.Response:
        """As of now: nothing is measured that nobody asks for."""
        del given
        if sandbox.state is not State.RUNNING:
            return web.json_response([])
        return web.json_response([await metrics.measured(self._cloud, sandbox)])

    def _all(
        self, owner: str, labels: dict[str, str], states: frozenset[State]
    ) -> Iterable[Sandbox]:
        after: int | None = 0
        while after is not None:
            page = self._cloud.page(owner, labels=labels, states=states, after=after, most=1000)
            yield from page.items
            after = page.next

    def _at_least(self, sandbox: Sandbox, life_s: float) -> None:
        """It lives that long from now on, or longer."""
        until_ns = self._cloud.now_ns() + round(life_s * NS)
        if sandbox.deadline_ns is not None and sandbox.deadline_ns < until_ns:
            self._cloud.extend(sandbox, life_s)
        self._cloud.renew(sandbox)

    def _started_s(self, sandbox: Sandbox) -> float:
        return self._cloud.wall_s(sandbox.ready_ns)

    def _times(self, sandbox: Sandbox) -> tuple[float, float]:
        end_ns = sandbox.deadline_ns if sandbox.deadline_ns is not None else sandbox.ready_ns
        return self._started_s(sandbox), self._cloud.wall_s(end_ns)


_INHERITED = frozenset({"template", "alias", "auto_resume", "allowInternetAccess", "network"})


def _time_of(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InputError("startedAfter is no time") from None
    return found.timestamp()
