"""What a rollout asks for again and again, without aiohttp: a command, or code, to its end."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from excise.service.cloud import Cloud
from excise.service.daytona.asked import CodeRun, Execute, read
from excise.service.daytona.call import Here
from excise.service.daytona.describe import stamp
from excise.service.daytona.errors import Told, body_of, told_of
from excise.service.daytona.process import code_ran, executed
from excise.service.daytona.room import Room, room_of
from excise.service.doors import Desk
from excise.service.gate import Answer, Asked, Pattern, Quick
from excise.service.problems import Problem
from excise.service.sandbox import Sandbox

JSON = b"application/json"
T = TypeVar("T")


@dataclass(slots=True)
class _Reached:
    """The sandbox that a request is for."""

    cloud: Cloud
    box: Sandbox

    @property
    def room(self) -> Room:
        return room_of(self.box)


def ways(desk: Desk) -> Mapping[tuple[str, Pattern], Quick]:
    """The same as the routes of these paths."""
    return {
        ("POST", ("toolbox", "*", "process", "execute")): _way(desk, Execute, executed),
        ("POST", ("toolbox", "*", "process", "code-run")): _way(desk, CodeRun, code_ran),
    }


def _way(
    desk: Desk, kind: type[T], do: Callable[[Here, T], Awaitable[Mapping[str, object]]]
) -> Quick:
    cloud = desk.cloud

    async def run(asked: Asked) -> Answer:
        here = _Reached(cloud, cloud.find(desk.owner(asked.token), asked.parts[0]))
        try:
            found = await do(here, read(asked.body, kind))
        except Told as told:
            return told.status, JSON, _json(told_of(told, asked.head.target, _now(), asked.id))
        return 200, JSON, _json(found)

    return run


def refused(asked: Asked, problem: Problem) -> Answer:
    """The problem in the words of the protocol."""
    return problem.status, JSON, _json(body_of(problem, asked.head.target, _now(), asked.id))


def _now() -> str:
    return stamp(time.time())


_json = msgspec.json.Encoder().encode
