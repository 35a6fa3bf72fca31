"""Who waits, who holds, and the turns in which the two are brought together with what there is.

A turn decides purely: who gets which idle sandbox (`assign`), what is made for those that found none, what is
made ahead and what goes (`plan`); then it begins those things and returns. Every change makes a turn.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from dataclasses import replace

from excise.clock import Clock
from excise.errors import (
    DeadlineExceeded,
    Overloaded,
    Phase,
    SandboxGone,
    SubstrateError,
)
from excise.pools.box import Box
from excise.pools.environments import Environment, Environments
from excise.pools.fitness import Life, Verdict, before_use
from excise.pools.keeping import Keeping
from excise.pools.lease import Lease, Request, acquired_by, told
from excise.pools.rules import OWNER, Rules
from excise.pools.supply import Supply
from excise.scheduler.assign import Match, assign
from excise.scheduler.fairness import quotas
from excise.scheduler.waiting import Waiting, Wanted
from excise.substrates.base import Substrate
from excise.types import Handle, Spec

LONG_S = 3600.0
"""A nap while there is nothing at all to look after; whatever comes wakes the keeper."""


class Dispatch:
    """The queue, the leases and the plan of one pool."""

    def __init__(self, substrate: Substrate, rules: Rules, clock: Clock, name: str) -> None:
        self.rules = rules
        self.environments = Environments(substrate, from_base=rules.from_base)
        self.wake = asyncio.Event()
        self.supply = Supply(substrate, rules, clock, self.environments, self.wake.set)
        self.keeping = Keeping(substrate, rules, self.environments, self.supply)
        self.queue = Waiting()
        self.leases: dict[Handle, Lease] = {}
        self.held: Counter[str] = Counter()
        """How many sandboxes each owner holds, or is about to."""
        self._name = name
        self._clock = clock
        self._requests: dict[str, Request] = {}
        self._numbers = itertools.count(1)
        self._keeper: asyncio.Task[None] | None = None
        self._turning = False
        self._closed = False
        self._handovers: set[asyncio.Task[None]] = set()

    async def ask(self, spec: Spec) -> Handle:
        """Wait for a sandbox; whoever stops waiting leaves nothing behind."""
        environment = self.environments.of(spec)
        now_s = self.supply.now_s()
        self.keeping.asked(environment)
        self._refuse_at_once(environment)
        future: asyncio.Future[Handle] = asyncio.get_running_loop().create_future()
        owner = spec.labels.get(OWNER, "")
        name = f"r{next(self._numbers)}"
        request = Request(spec, environment, owner, now_s, future)
        self._requests[name] = request
        self.queue.add(Wanted(name, environment.path, owner))
        self._soon()
        try:
            return await future
        except asyncio.CancelledError:
            self._withdraw(name, future)
            raise
        finally:
            self._requests.pop(name, None)

    def adopt(self, handle: Handle, like: Lease) -> Handle:
        """A lease on a sandbox that was made of one that is held; nobody else ever gets it."""
        now_s = self.supply.now_s()
        life = Life(now_s, now_s, uses=1, doubt="it was made of a rollout's own state")
        box = Box(handle, like.box.environment, life, now_s)
        adopted = Handle(f"{handle}~{next(self._numbers)}")
        self.leases[adopted] = Lease(box, like.spec, like.owner, like.acquired)
        self.held[like.owner] += 1
        return adopted

    def release(self, handle: Handle) -> Lease | None:
        """The rollout is through with it."""
        lease = self.leases.pop(handle, None)
        if lease is not None:
            self._not_held(lease.owner)
            self.supply.give_back(lease.box)
            self.wake.set()
        return lease

    def plan_now(self) -> None:
        """What is worth keeping has changed: do not wait for the next time it is looked at."""
        self.keeping.planned_s = float("-inf")
        self.turn()

    def _soon(self) -> None:
        """One turn for all that ask in this moment: a batch is matched as a whole."""
        if not self._turning:
            self._turning = True
            asyncio.get_running_loop().call_soon(self._turn_for_the_new)

    def _turn_for_the_new(self) -> None:
        """Those who find what they want have it before anything else is thought of."""
        self._turning = False
        if self._closed:
            return
        places, room = self._match()
        for request in self._requests.values():
            request.new = False
        if self.queue:
            self._make_for_those_that_wait(places, room)
        self._have_keeper()
        self.wake.set()

    def turn(self) -> None:
        """Bring together what can be, and begin what should be."""
        self._have_keeper()
        needed = self._make_for_those_that_wait(*self._match())
        waiting = (self._requests[one.name].environment for one in self.queue)
        self.keeping.plan(self.held.total(), needed, waiting)

    def _have_keeper(self) -> None:
        if self._keeper is None:
            self._keeper = asyncio.get_running_loop().create_task(self._keep())

    def _match(self) -> tuple[dict[str, int], int]:
        """Hand over what idles and is wanted; returns the places that each owner has left, and the room."""
        places, room = self._places()
        for match in assign(self.queue, self.supply.idle, places=places, related=True):
            places[match.wanted.owner] -= 1
            self._hand_over(match)
        return places, room

    def _not_held(self, owner: str) -> None:
        self.held[owner] -= 1
        if not self.held[owner]:
            del self.held[owner]

    async def close(self, error: SubstrateError) -> None:
        """Nobody gets anything any more; everything goes."""
        self._closed = True
        tasks = [t for t in (self._keeper, *self._handovers) if t is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for waiting in list(self.queue):
            self._refuse(waiting.name, error)
        for request in self._requests.values():
            if not request.future.done():
                request.future.set_exception(told(error))
        for handle in list(self.leases):
            self.release(handle)
        await self.supply.close()

    def _places(self) -> tuple[dict[str, int], int]:
        """How many sandboxes each owner may get of those there are, are coming and could be made."""
        room = max(0, self.rules.budget.most - self.supply.total - self.held.total())
        free = len(self.supply.idle) + self.supply.under_way + room
        return quotas(self.queue.counts(), self.held, free, self.rules.weights), room

    def _make_for_those_that_wait(self, places: dict[str, int], room: int) -> int:
        """Begin what no idle sandbox could serve; returns for how many there is no room."""
        wanted: Counter[str] = Counter()
        for waiting in list(self.queue):
            key = waiting.path[-1].key
            failing = self.supply.refusal(key)
            if failing is not None:
                self._refuse(waiting.name, failing.error)
            elif places.get(waiting.owner, 0) > 0:
                places[waiting.owner] -= 1
                wanted[key] += 1
        short, coming, barred = 0, self.supply.coming, self.supply.barred()
        for key, count in wanted.items():
            missing = max(0, count - coming[key])
            if key in barred or missing == 0:
                continue
            fits = min(missing, room)
            room -= fits
            short += missing - fits
            if may := self.supply.admits(self.keeping.known[key], fits):
                self.supply.make(self.keeping.known[key], may)
        return short

    def _hand_over(self, match: Match) -> None:
        """At once where the sandbox is proved and complete; else it is made so first, in the background."""
        request = self._requests[match.wanted.name]
        box = self.supply.take(match.worker.name)
        request.found = request.new
        self.held[request.owner] += 1
        verdict = before_use(box.life, self.supply.now_s(), self.rules.trust)
        fit = verdict is Verdict.TRUST and box.environment.key == request.environment.key
        if fit and self.supply.maker.bind_now(box.handle, request.spec):
            self._lease(request, box, match)
            return
        task = asyncio.get_running_loop().create_task(self._complete(match, request, box, verdict))
        self._handovers.add(task)
        task.add_done_callback(self._handovers.discard)

    async def _complete(self, match: Match, request: Request, box: Box, verdict: Verdict) -> None:
        """Prove it, add what is missing, bind what belongs to the rollout; what fails any of it goes."""
        maker, key = self.supply.maker, request.environment.key
        try:
            if verdict is Verdict.DESTROY:
                raise self._error("too old or too often used", Phase.READY, retryable=True)
            if verdict is Verdict.PROVE:
                await maker.prove(box.handle)
                box.life = replace(box.life, proved_s=self.supply.now_s())
            if box.environment.key != key:
                begun_s = self.supply.now_s()
                await maker.advance(box.handle, request.environment.spec)
                self.environments.advanced(self.supply.now_s() - begun_s, match.left_s)
                box.environment = request.environment
            await maker.bind(box.handle, request.spec)
        except BaseException as error:
            self.supply.quarantine.add(box, error, self.supply.now_s())
            self._not_held(request.owner)
            self.supply.let_go(box)
            self.supply.counts.doubted += 1
            if not isinstance(error, Exception):
                raise
            self._again(match.wanted, request, error, box)
            return
        self._lease(request, box, match)

    def _again(self, wanted: Wanted, request: Request, error: Exception, box: Box) -> None:
        """Back to the front of the queue, for another sandbox, unless patience is at its end.

        One that had stood idle and turned out unfit says nothing against the next; one made for it does.
        """
        self.wake.set()
        if request.future.done():
            return
        unproved = isinstance(error, SubstrateError) and error.phase is Phase.READY
        stale = unproved or isinstance(error, SandboxGone)
        mended = stale or (isinstance(error, SubstrateError) and error.retryable)
        request.attempts += 1
        request.failures += not stale or box.life.born_s >= request.asked_s
        if request.failures >= self.rules.retries.attempts or not mended:
            self.supply.counts.refused += 1
            request.future.set_exception(told(error))
            return
        self.queue.add(wanted, front=True)

    def _lease(self, request: Request, box: Box, match: Match) -> None:
        """It is the rollout's from now on; or idle again, where nobody waits for it any more."""
        if request.future.done():
            self._not_held(request.owner)
            self.supply.put(box)
            return
        now_s = self.supply.now_s()
        waited_s = now_s - request.asked_s
        base_s, advance_s = self.environments.base_s, self.environments.advance_s
        acquired = acquired_by(request, box, match, waited_s, base_s, advance_s)
        box.life = replace(box.life, uses=box.life.uses + 1)
        handle = Handle(f"{box.handle}~{next(self._numbers)}")
        self.leases[handle] = Lease(box, request.spec, request.owner, acquired)
        self.supply.counts.add(acquired)
        request.future.set_result(handle)

    def _refuse_at_once(self, environment: Environment) -> None:
        """Turn away whom waiting would not help."""
        failing = self.supply.refusal(environment.key)
        if failing is not None:
            self.supply.counts.refused += 1
            raise told(failing.error)
        if len(self.queue) >= self.rules.waiting:
            self.supply.counts.refused += 1
            text = f"{len(self.queue)} rollouts wait already; ask again later"
            raise Overloaded(text, substrate=self._name, phase=Phase.CREATE, retryable=True)

    def _refuse(self, name: str, error: BaseException) -> None:
        """Tell one that waits that it waits in vain."""
        self.queue.remove(name)
        self.supply.counts.refused += 1
        request = self._requests[name]
        if not request.future.done():
            request.future.set_exception(told(error))

    def _withdraw(self, name: str, future: asyncio.Future[Handle]) -> None:
        """Whoever was cancelled neither waits nor holds; a sandbox on its way to it becomes idle."""
        self.supply.counts.withdrawn += 1
        if name in self.queue:
            self.queue.remove(name)
        if future.done() and not future.cancelled() and future.exception() is None:
            self.release(future.result())
        self.wake.set()

    def _expire(self, now_s: float) -> None:
        for waiting in list(self.queue):
            waited_s = now_s - self._requests[waiting.name].asked_s
            if waited_s >= self.rules.wait_within_s:
                text = f"no sandbox within {self.rules.wait_within_s:g} s"
                late = DeadlineExceeded(
                    text, substrate=self._name, phase=Phase.CREATE, retryable=True
                )
                self._refuse(waiting.name, late)

    async def _keep(self) -> None:
        """Turns between the calls: whatever came of the background, deadlines, pauses, ageing."""
        bell: asyncio.Task[None] | None = None
        rings_s = 0.0
        try:
            while True:
                self._expire(self.supply.now_s())
                self.turn()
                self.wake.clear()
                nap_s = self._nap_s()
                due_s = self.supply.now_s() + nap_s
                if bell is None or bell.done() or due_s < rings_s:
                    await _end(bell)
                    bell, rings_s = asyncio.create_task(self._ring(nap_s)), due_s
                await self.wake.wait()
        finally:
            await _end(bell)

    async def _ring(self, after_s: float) -> None:
        await self._clock.sleep(after_s)
        self.wake.set()

    def _nap_s(self) -> float:
        """Until the next thing that nobody would wake us for."""
        now_s = self.supply.now_s()
        due = [f.not_before_s for f in self.supply.failing.values() if f.not_before_s > now_s]
        asked = (self._requests[waiting.name].asked_s for waiting in self.queue)
        due += [asked_s + self.rules.wait_within_s for asked_s in asked]
        if self.keeping.known or self.supply.idle:
            due.append(self.keeping.planned_s + self.rules.plan_every_s)
        return max(0.001, min([now_s + LONG_S, *due]) - now_s)

    def _error(self, text: str, phase: Phase, *, retryable: bool) -> SubstrateError:
        return SubstrateError(text, substrate=self._name, phase=phase, retryable=retryable)


async def _end(bell: asyncio.Task[None] | None) -> None:
    if bell is not None:
        bell.cancel()
        await asyncio.gather(bell, return_exceptions=True)
