"""`jail+pool`: a pool as one of the substrates that have names, and what a rollout is declared to find in it.

Without `state` it is a pool as it is, which fills by demand. With one, every creation finds just that, so that
it can be measured: `exact`, the whole environment kept ready; `partial`, a sandbox that lacks the last stage;
`miss`, nothing that idles. What does not find what was declared fails, and says what it found instead.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from excise.clock import Clock, SystemClock
from excise.errors import InputError, Phase, SubstrateError
from excise.pools.counts import Got
from excise.pools.desk import Attended
from excise.pools.environments import Environment
from excise.pools.fitness import Trust
from excise.pools.lease import told
from excise.pools.plan import Ageing
from excise.pools.pool import Pool
from excise.pools.rules import Rules
from excise.pools.size import Budget
from excise.pools.through import pooled
from excise.substrates import registry
from excise.substrates.base import Availability, Substrate
from excise.types import Handle, Spec

SANDBOXES = 32


def open_substrate(
    *, over: str, state: str | None = None, sandboxes: str = str(SANDBOXES), **options: str
) -> Pool:
    """A pool over the substrate of that name, which gets the other options."""
    budget = Budget(sandboxes=_count(sandboxes))
    inner = registry.open_substrate(over, **options)
    if state is None:
        return pooled(inner, Rules(budget=budget), kind=Attended)
    return declared(inner, _state(state), budget)


async def availability(
    *, over: str, state: str | None = None, sandboxes: str = str(SANDBOXES), **options: str
) -> Availability:
    """As what is pooled."""
    _state(state or Got.MISS)
    _count(sandboxes)
    return await registry.availability(over, **options)


def declared(
    substrate: Substrate, state: Got, budget: Budget, *, clock: Clock | None = None
) -> Pool:
    """A pool in which every creation finds just that."""
    trust = Trust(uses=1) if state is Got.MISS else Trust()
    lasting = Ageing(grace_s=trust.oldest_s)
    rules = Rules(budget=budget, trust=trust, ageing=lasting, ahead=False, from_base=True)
    made = pooled(substrate, rules, clock=clock, kind=_Declared)
    assert isinstance(made, _Declared)
    made.declare(state, clock or SystemClock())
    return made


class _Declared(Pool):
    """Makes ready what was declared before each creation, or before so many as it was told of."""

    def declare(self, state: Got, clock: Clock) -> None:
        """Once, before anything else."""
        self._state = state
        self._clock = clock
        self._prepared: Counter[str] = Counter()
        self._turn = asyncio.Lock()

    async def prepare(self, spec: Spec, copies: int = 1) -> None:
        """Return when so many idle at just the stage that was declared, none beyond, and nothing else goes on."""
        wanted = self._dispatch.environments.of(spec)
        place = self._place(wanted)
        await self._settled()
        for worker in list(self._supply.idle):
            if place is None or worker.at != place.key:
                self._supply.let_go(self._supply.take(worker.name))
        await self._settled()
        if place is not None:
            await self._filled(place, copies)
        self._prepared[wanted.key] = copies

    async def create(self, spec: Spec) -> Handle:
        """What was declared, or an error."""
        key = self._dispatch.environments.of(spec).key
        if self._prepared[key]:
            self._prepared[key] -= 1
            box = await super().create(spec)
        else:
            async with self._turn:  # or another would take what is made ready for this one
                await self.prepare(spec)
                self._prepared[key] = 0
                box = await super().create(spec)
        found = self.got(box)
        if found.got is not self._state:
            await self.destroy(box)
            raise self._failed(f"declared to be {self._state}, but it was {found}")
        return box

    async def describe(self) -> dict[str, str]:
        """With the state, which figures must be read with."""
        describe = getattr(super(), "describe", None)
        facts: dict[str, str] = await describe() if describe is not None else {}
        return {**facts, "state": str(self._state)}

    def _place(self, wanted: Environment) -> Environment | None:
        """Where sandboxes are to stand; None: there are to be none."""
        if self._state is Got.MISS:
            return None
        if self._state is Got.EXACT:
            return wanted
        if len(wanted.path) == 1:
            raise InputError(
                f"{self.name}: this environment has one stage, so no part of it is one"
            )
        return wanted.cut(len(wanted.path) - 1)

    async def _filled(self, place: Environment, copies: int) -> None:
        if copies > self.rules.budget.most:
            most = self.rules.budget.most
            raise InputError(f"{copies} at once: raise sandboxes={most}, the pool's budget")
        while True:
            there = sum(worker.at == place.key for worker in self._supply.idle)
            if there >= copies:
                return
            refused = self._supply.refusal(place.key)
            if refused is not None:
                raise told(refused.error)
            failing = self._supply.failing.get(place.key)
            if failing is not None and failing.barred(self._supply.now_s()):
                await self._clock.sleep(failing.not_before_s - self._supply.now_s())
            missing = copies - there - self._supply.coming[place.key]
            if may := self._supply.admits(place, max(0, missing)):
                self._supply.make(place, may)
            await self._supply.change()

    async def _settled(self) -> None:
        """Nothing is made, reset, proved or destroyed any more."""
        while self._supply.under_way or self._supply.leaving:
            await self._supply.change()

    def _failed(self, text: str) -> SubstrateError:
        return SubstrateError(text, substrate=self.name, phase=Phase.CREATE)


def _state(name: str) -> Got:
    try:
        return Got(name)
    except ValueError:
        raise InputError(f"no state {name!r} of a pool; there are {', '.join(Got)}") from None


def _count(text: str) -> int:
    if not text.isdecimal():
        raise InputError(f"sandboxes={text}: the pool's budget is a number of them")
    return int(text)
