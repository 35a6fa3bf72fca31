"""One sandbox as its owner knows it; what is below it is swapped by reset, snapshot, fork and advance."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from excise.agent.async_connection import AsyncConnection
from excise.jail import egress
from excise.jail.control import BoxLimits
from excise.jail.proof import LOOK_AROUND, SHARED, Told
from excise.jail.spawner import Box
from excise.jail.yard import Standing
from excise.substrates.inside.habits import Habits, exec_of
from excise.types import Spec


@dataclass(eq=False, slots=True)
class Sandbox:
    """`origin` is what reset returns to; `limits` is what the present jail was bounded by."""

    spec: Spec
    habits: Habits
    origin: Standing
    box: Box
    agent: AsyncConnection
    loop: asyncio.AbstractEventLoop
    limits: BoxLimits
    network: egress.Network | None = None
    oom_kills: int = 0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def look_around(self) -> Told:
        """What the agent in there says of it."""
        seen = await self.agent.run(exec_of(LOOK_AROUND, self.habits))
        shared = tuple([await self.agent.read(place) for place in SHARED])
        listed = await self.agent.processes()
        return Told(tuple((each.pid, each.name) for each in listed), seen.stdout, shared)
