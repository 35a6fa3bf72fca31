"""What a door is: one protocol, put before the cloud. A door translates, and decides nothing.

    class Mine:
        name = "mine"
        def owns(self, request): return "Mine-Header" in request.headers
        def routes(self, desk): return [web.get("/mine/{id}", partial(read, desk))]
        def refused(self, request, problem): return web.json_response({...}, status=problem.status)

A handler asks `desk.owner(token)` who is there, calls the cloud, and lets errors fly: the application turns what a
handler raises into a `Problem` and has the door say it in its protocol's words. `refused` may not raise.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from aiohttp import web

from excise.errors import Phase
from excise.service.cloud import Cloud
from excise.service.errors import Refused
from excise.service.gate import Answer, Asked, Pattern, Quick
from excise.service.heads import token_of
from excise.service.keys import Key, Ring, Scope
from excise.service.problems import Problem
from excise.service.rates import Rate

REQUEST_ID = "X-Request-Id"
NAMED: web.RequestKey[str] = web.RequestKey("request id", str)


@dataclass(slots=True)
class Desk:
    """What a door stands before: the cloud, and who may ask it."""

    cloud: Cloud
    ring: Ring = field(default_factory=Ring)
    url: str = ""
    """Where the service answers, as clients on this host reach it; set once it listens."""
    domain: str | None = None
    """With TLS and wildcard names: the domain whose names lead here."""

    rate: Rate = field(init=False)
    streams: Counter[str] = field(default_factory=Counter)
    """Answers that go on for as long as somebody listens, by owner."""

    def __post_init__(self) -> None:
        policy = self.cloud.policy
        self.rate = Rate(policy.requests_per_s, policy.burst)

    def key(self, token: str | None, scope: Scope = Scope.ALL) -> Key:
        """The key that token is of; Unauthorized if it is of none, or of one that does not reach so far.

        Each call counts as a request of its owner, who is refused where there are too many.
        """
        key = self.ring.check(token, time.time(), scope)
        self.count(key.owner)
        return key

    def count(self, owner: str) -> None:
        """One request more of this owner's, whatever proved that it is; refused where there are too many."""
        wait_s = self.rate.take(owner, time.time())
        if wait_s is not None:
            text = f"you ask more often than {self.cloud.policy.requests_per_s:g} times a second"
            raise Refused(text, phase=Phase.RUN, retry_after_s=wait_s, theirs=True)

    @contextmanager
    def streaming(self, owner: str) -> Iterator[None]:
        """One stream more of this owner's, while the block runs; refused where there are too many."""
        most = self.cloud.policy.streams_per_owner
        if self.streams[owner] >= most:
            text = f"you follow {most} streams at once: end some first"
            raise Refused(text, phase=Phase.RUN, retry_after_s=1.0, theirs=True)
        self.streams[owner] += 1
        try:
            yield
        finally:
            self.streams[owner] -= 1
            if not self.streams[owner]:
                del self.streams[owner]

    def owner(self, token: str | None) -> str:
        """Whose sandboxes the bearer of that token may use."""
        return self.key(token).owner


class Door(Protocol):
    """One protocol before the cloud."""

    @property
    def name(self) -> str: ...

    def owns(self, request: web.BaseRequest) -> bool:
        """Whether this request is meant for this door, where several have a route of that path, or none has.

        Looks at host and headers only.
        """
        ...

    def routes(self, desk: Desk) -> Iterable[web.RouteDef]: ...

    def refused(self, request: web.BaseRequest, problem: Problem) -> web.StreamResponse:
        """The problem in the protocol's own words. Status and Retry-After are set by the application after this."""
        ...


@runtime_checkable
class Hurries(Protocol):
    """A door that has a quick way for some requests: they are answered by the gate, and aiohttp never sees them.

    The same paths have routes, too, for whatever cannot go this way. What is raised there is told in the words of
    `refused_quickly`.
    """

    @property
    def name(self) -> str: ...

    def quick(self, desk: Desk) -> Mapping[tuple[str, Pattern], Quick]: ...

    def refused_quickly(self, asked: Asked, problem: Problem) -> Answer: ...


def bearer(request: web.BaseRequest) -> str | None:
    """The token of a request, as `X-API-Key` or as `Authorization: Bearer`."""
    headers = request.headers
    return token_of(headers.get("X-API-Key"), headers.get("Authorization"))


def retry_after(wait_s: float) -> str:
    """A wait as the header of that name has it."""
    return str(max(1, math.ceil(wait_s)))


def request_id(request: web.BaseRequest) -> str:
    """Names this request in the log, in answers and in errors."""
    return request[NAMED]
