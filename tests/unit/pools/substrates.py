"""Substrates for the tests of pools: written-down time, sandboxes that fall sick, and stages."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace

from excise import Fake, FakeClock, Handle, Latencies, Observation, Phase, Spec, SubstrateError
from excise.pools.stage import Kind, Stage
from excise.pools.through import pooled
from excise.substrates.base import Proof


class Ward(Fake):
    """A fake whose sandboxes can fall sick one by one, and that remembers how many there were at once."""

    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.sick: set[str] = set()
        self.created: list[tuple[int, Spec]] = []
        self.most = 0
        self.creating = 0
        self.most_creating = 0

    async def create(self, spec):
        self.created.append((self._clock.now_ns(), spec))
        self.creating += 1
        self.most_creating = max(self.most_creating, self.creating)
        try:
            box = await super().create(spec)
        finally:
            self.creating -= 1
        self.most = max(self.most, len(self.boxes))
        return box

    async def run(self, box, action):
        seen = await super().run(box, action)
        return Observation(1, stderr=b"sick") if box in self.sick else seen


A_SECOND = Latencies(create_s=1.0)
PRICES = {Kind.IMAGE: 8.0, Kind.REPO: 2.0, Kind.DEPENDENCIES: 4.0}


class Tree(Ward):
    """Environments in stages: image "a/b/c" is image a, repository b, dependencies c."""

    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.at: dict[Handle, str] = {}
        self.bound: dict[Handle, Spec] = {}
        self.wrong: dict[Handle, Proof] = {}
        self.done: Counter[str] = Counter()

    def stages(self, spec):
        names = spec.image.split("/")
        return tuple(
            Stage(kind, "/".join(names[: i + 1]), price)
            for i, (kind, price) in enumerate(list(PRICES.items())[: len(names)])
        )

    async def create_at(self, spec, depth):
        path = self.stages(spec)[:depth]
        box = await super().create(spec)
        try:
            await self._clock.sleep(sum(stage.price_s for stage in path))
        except BaseException:
            self._boxes.pop(box)
            raise
        self.at[box] = path[-1].key
        self.done["created"] += 1
        return box

    async def advance(self, box, spec):
        want = self.stages(spec)
        there = self.at[box].split("/")
        left = [s for s in want if s.key.split("/") != there[: s.key.count("/") + 1]]
        await self._clock.sleep(sum(stage.price_s for stage in left))
        self.at[box] = want[-1].key
        self.done["advanced"] += 1

    def bind_now(self, box, spec):
        return False

    async def bind(self, box, spec):
        self.bound[box] = spec

    async def prove(self, box):
        return self.wrong.get(box, Proof())


class Forking(Tree):
    """Stages, and forks of what stands at one."""

    async def fork(self, box, copies=1):
        await self._clock.sleep(0.01)
        twins = []
        for _ in range(copies):
            twin = Handle(f"{box}-fork-{next(self._numbers)}")
            self._boxes[twin] = replace(self._boxes[box], files=dict(self._boxes[box].files))
            self.at[twin] = self.at[box]
            twins.append(twin)
        self.most = max(self.most, len(self.boxes))
        self.done["forked"] += copies
        return twins


class Layered(Tree):
    """Stages on a base, built once for all: what is here costs nothing more, as with layers that are mounted."""

    def __init__(self, *args, here=(), **more):
        super().__init__(*args, **more)
        self.here = set(here)
        self.laid: Counter[str] = Counter()
        self.broken: dict[str, Exception] = {}

    def stages(self, spec):
        path = super().stages(spec)
        priced = (replace(s, price_s=0.0) if s.key in self.here else s for s in path)
        return (Stage(Kind.BASE, "base", 0.0), *priced)

    async def lay(self, spec, depth):
        path = self.stages(spec)[:depth]
        self.laid[path[-1].key] += 1
        await self._clock.sleep(sum(stage.price_s for stage in path))
        if path[-1].key in self.broken:
            raise self.broken[path[-1].key]
        self.here.update(stage.key for stage in path)


def an_error(phase=Phase.CREATE, *, retryable=False):
    return SubstrateError(
        "written down to fail", substrate="fake", phase=phase, retryable=retryable
    )


def living(trial, rules, *, latencies=A_SECOND, kind=Ward, **more):
    """Run `trial(pool, fake, clock)` to its end; afterwards the substrate must be empty."""
    clock = FakeClock(turns=40)
    fake = kind(latencies, clock=clock, **more)

    async def whole():
        async with pooled(fake, rules, clock=clock) as pool:
            result = await trial(pool, fake, clock)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert not others, f"still running after the end: {others}"
        return result

    result = asyncio.run(whole())
    assert fake.boxes == (), "a sandbox outlived its pool"
    return result
