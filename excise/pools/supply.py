"""The sandboxes that nobody holds: being made, idle, being reset, leaving. Everything here runs in the background.

A sandbox is in exactly one of those states, and counts against the budget in all of them until the substrate
has confirmed that it is gone.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Container, Coroutine, Iterable
from dataclasses import replace

from excise.clock import Clock
from excise.errors import Phase, SubstrateError
from excise.pools.box import Box, Group, Quarantine
from excise.pools.counts import Counts
from excise.pools.environments import Environment, Environments
from excise.pools.failures import Failing, failed
from excise.pools.fitness import Life, Verdict, after_use, is_stale
from excise.pools.laying import Laying
from excise.pools.maker import Maker
from excise.pools.plan import Idle as IdleCopy
from excise.pools.plan import Stock
from excise.pools.rules import Rules
from excise.pools.stage import keys_of, whole_price_s
from excise.pools.window import Window
from excise.scheduler.idle import Idle, Worker
from excise.substrates.base import Forks, Resettable, Substrate
from excise.types import Handle


class Supply:
    """Begins what it is told to and says `changed` when something came of it."""

    def __init__(
        self,
        substrate: Substrate,
        rules: Rules,
        clock: Clock,
        environments: Environments,
        changed: Callable[[], None],
    ) -> None:
        self.maker = Maker(substrate, clock, rules.create_within_s, self._bury)
        within_s = rules.lay_within_s
        self.laying = Laying(self.maker, environments, within_s, self.now_s, self._laid)
        self.counts = Counts()
        self.quarantine = Quarantine()
        self.idle = Idle()
        self.making: Counter[str] = Counter()
        self.renewing: Counter[str] = Counter()
        self.failing: dict[str, Failing] = {}
        self.window = Window(rules.creating, size=min(4.0, float(rules.creating)))
        self.broken: BaseException | None = None
        self._boxes: dict[str, Box] = {}
        self._groups: dict[str, Group] = {}
        self.leaving = 0
        self._rules = rules
        self._clock = clock
        self._environments = environments
        self._tell = changed
        self._watching: list[asyncio.Future[None]] = []
        self._tasks: dict[asyncio.Task[None], bool] = {}
        self._closing = False
        self._resettable = isinstance(substrate, Resettable)
        self._forkable = isinstance(substrate, Forks)

    def now_s(self) -> float:
        return self._clock.now_ns() / 1e9

    async def change(self) -> None:
        """Return when something has come of what was begun."""
        watching = asyncio.get_running_loop().create_future()
        self._watching.append(watching)
        await watching

    def _changed(self) -> None:
        self._tell()
        watching, self._watching = self._watching, []
        for each in watching:
            if not each.done():
                each.set_result(None)

    def stock(self, held: int) -> Stock:
        """What the planner looks at. What is being reset will be idle again, like what is being made."""
        idle = tuple(
            IdleCopy(name, box.environment.key, box.since_s, box.life.born_s)
            for name, box in self._boxes.items()
        )
        return Stock(idle, self.coming, held, self.leaving)

    @property
    def under_way(self) -> int:
        """How many will be idle soon."""
        return self.making.total() + self.renewing.total()

    @property
    def total(self) -> int:
        """How many there are that nobody holds."""
        return len(self._boxes) + self.under_way + self.leaving

    @property
    def coming(self) -> Counter[str]:
        """How many will be idle soon, by stage."""
        return self.making + self.renewing

    def refusal(self, key: str) -> Failing | None:
        """Why nothing can be had at that stage for now, if so."""
        failing = self.failing.get(key)
        return failing if failing is not None and failing.refuses(self.now_s()) else None

    def forget(self, known: Container[str]) -> None:
        """Failures of stages that nobody asks for any more."""
        now_s = self.now_s()
        for key in [k for k, f in self.failing.items() if k not in known and not f.barred(now_s)]:
            del self.failing[key]

    def barred(self) -> set[str]:
        """The stages that nothing may be made at yet."""
        now_s = self.now_s()
        return {key for key, failing in self.failing.items() if failing.barred(now_s)}

    def admits(self, environment: Environment, count: int) -> int:
        """How many of these may be begun now: forks of what is being made need no place in the window."""
        if self.laying.wanted(environment):
            return count
        if not self._forks(environment):
            return min(count, self.window.room(self.making.total()))
        joins = environment.key in self._groups
        return count if joins or self.window.room(len(self._groups)) else 0

    def _forks(self, environment: Environment) -> bool:
        """Whether one is made and then forked, rather than each made from nothing."""
        price_s = whole_price_s(environment.path)
        return self._forkable and price_s >= self._rules.fork_from_s

    def make(self, environment: Environment, count: int = 1) -> None:
        """Begin that many at one stage: one and forks of it where the substrate can, else each from nothing.

        Where something is to be built first, that is begun, and this is to be asked again when it is done.
        """
        if self.laying.wanted(environment):
            self.laying.begin(environment)
            return
        key = environment.key
        self.making[key] += count
        if not self._forks(environment):
            for _ in range(count):
                self._spawn(self._make(environment, Group(1)), unfinished=True)
        elif key in self._groups:
            self._groups[key].left += count
        else:
            self._groups[key] = Group(count)
            self._spawn(self._make(environment, self._groups[key]), unfinished=True)

    def take(self, name: str) -> Box:
        """It is somebody's from now on; the caller has taken the worker out of `idle`, or has it done here."""
        if name in self.idle:
            self.idle.remove(name)
        box = self._boxes.pop(name)
        self.counts.kept_s += self.now_s() - box.since_s
        return box

    def put(self, box: Box, since_s: float | None = None) -> None:
        """It is idle from now on, or still is."""
        box.since_s = self.now_s() if since_s is None else since_s
        self._boxes[box.handle] = box
        self.idle.add(Worker(box.handle, keys_of(box.environment.path)))
        self._changed()

    def give_back(self, box: Box) -> None:
        """A rollout is through with it: reset it if that can be trusted, else let it go."""
        if self._closing:
            box.doubt("the pool is closing")
        now_s = self.now_s()
        verdict = after_use(box.life, now_s, self._rules.trust, resettable=self._resettable)
        if verdict is Verdict.RESET:
            self.renewing[box.environment.key] += 1
            self._spawn(self._renew(box))
        else:
            self.let_go(box)

    def stale(self) -> list[Box]:
        """The idle ones whose proof will soon be too old to be handed out on."""
        now_s = self.now_s()
        return [b for b in self._boxes.values() if is_stale(b.life, now_s, self._rules.trust)]

    def prove_again(self, stale: Iterable[Box]) -> None:
        """Renew their proofs, while nobody waits for it."""
        for box in stale:
            self.take(box.handle)
            self.renewing[box.environment.key] += 1
            self._spawn(self._prove_again(box))

    def let_go(self, box: Box) -> None:
        """Destroy it in the background, again and again until the substrate says that it is gone."""
        self._bury(box.handle)

    def _bury(self, handle: Handle) -> None:
        self.leaving += 1
        self._spawn(self._destroy(handle))

    async def close(self) -> None:
        """Stop making, destroy what is idle, and wait until all of it is gone."""
        self._closing = True
        await self.laying.close()
        for task in [task for task, unfinished in self._tasks.items() if unfinished]:
            task.cancel()
        while self._tasks or self._boxes:
            for name in list(self._boxes):
                self.let_go(self.take(name))
            await asyncio.wait(list(self._tasks))

    async def _make(self, environment: Environment, group: Group) -> None:
        """One, then forks of it for as many as want the same meanwhile."""
        key, begun_s = environment.key, self.now_s()
        source = self._source(key, group) if key in self._groups else None
        try:
            if source is None:
                handle = await self.maker.make(environment)
                self._environments.took(key, self.now_s() - begun_s)
                source = self._made(handle, environment, begun_s)
            try:
                while group.left > 1:
                    forked_s = self.now_s()
                    for fork in await self.maker.fork(source.handle, group.left - 1):
                        self._arrived(self._made(fork, environment, forked_s), group)
                        self.counts.forked += 1
            finally:
                self._forget_group(key, group)
                self._arrived(source, group)
            self.failing.pop(key, None)
            self.window = self.window.went_well()
        except Exception as error:  # noqa: BLE001 - `failing` keeps it, and tells whoever waits
            self._failed(key, error, begun_s)
        finally:
            self._forget_group(key, group)
            _less(self.making, key, group.left)
            self._changed()

    def _source(self, key: str, group: Group) -> Box | None:
        """An idle one that stands there already: it is busy being forked for that long."""
        idle = self.idle.holder(key)
        if idle is None or idle.at != key:
            return None
        group.left += 1
        self.making[key] += 1
        return self.take(idle.name)

    def _made(self, handle: Handle, environment: Environment, begun_s: float) -> Box:
        now_s = self.now_s()
        self.counts.made += 1
        self.counts.fill_s += now_s - begun_s
        return Box(handle, environment, Life(now_s, now_s), now_s)

    def _arrived(self, box: Box, group: Group) -> None:
        group.left -= 1
        _less(self.making, box.environment.key)
        self.put(box)

    def _forget_group(self, key: str, group: Group) -> None:
        """Nobody can join it any more."""
        if self._groups.get(key) is group:
            del self._groups[key]

    def _laid(self, environment: Environment, error: Exception | None, begun_s: float) -> None:
        """What waited for its layers can be made now, or never."""
        if error is not None:
            self._failed(environment.key, error, begun_s)
        else:
            self.counts.laid += 1
            self.counts.fill_s += self.now_s() - begun_s
            self.failing.pop(environment.key, None)
        self._changed()

    def _failed(self, key: str, error: Exception, begun_s: float) -> None:
        """Remember it, and when it may be tried again; a choking substrate is asked for less at once."""
        now_s = self.now_s()
        retryable = isinstance(error, SubstrateError) and error.retryable
        self.counts.failures[phase_of(error, Phase.CREATE)] += 1
        self.counts.fill_s += now_s - begun_s
        if retryable:
            self.counts.retried += 1
            self.window = self.window.choked(begun_s, now_s)
        self.failing[key] = failed(
            self.failing.get(key),
            error,
            key=key,
            retryable=retryable,
            now_s=now_s,
            rules=self._rules.retries,
        )

    async def _renew(self, box: Box) -> None:
        """Pristine again, proved, and idle; or gone."""
        if await self._proved(box, self.maker.renew(box.handle, box.environment)):
            self.counts.reset += 1
        self._back(box)

    async def _prove_again(self, box: Box) -> None:
        """It stays idle, if it is still what it was."""
        since_s = box.since_s
        await self._proved(box, self.maker.prove(box.handle))
        self._back(box, since_s)

    async def _proved(self, box: Box, work: Coroutine[object, object, None]) -> bool:
        begun_s = self.now_s()
        try:
            await work
        except Exception as error:  # noqa: BLE001 - counted, and the reason that it is let go
            self.counts.failures[phase_of(error, Phase.RESET)] += 1
            self.counts.doubted += 1
            self.quarantine.add(box, error, self.now_s())
        else:
            box.life = replace(box.life, proved_s=self.now_s())
        self.counts.reset_s += self.now_s() - begun_s
        return box.life.doubt is None

    def _back(self, box: Box, since_s: float | None = None) -> None:
        _less(self.renewing, box.environment.key)
        if self._closing or box.life.doubt is not None:
            self.let_go(box)
        else:
            self.put(box, since_s)

    async def _destroy(self, handle: Handle) -> None:
        pause_s = self._rules.retries.first_s
        while True:
            try:
                await self.maker.destroy(handle)
                break
            except Exception as error:  # tried again, and raised at the end
                self.counts.failures[phase_of(error, Phase.DESTROY)] += 1
                if self._closing and pause_s >= self._rules.retries.most_s:
                    raise
            await self._clock.sleep(pause_s)
            pause_s = min(self._rules.retries.most_s, pause_s * 2)
        self.counts.destroyed += 1
        self.leaving -= 1
        self._changed()

    def _spawn(self, work: Coroutine[object, object, None], *, unfinished: bool = False) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = unfinished
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """What failed in the background is not lost: the next call of the pool raises it."""
        del self._tasks[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            self.broken = error


def _less(counter: Counter[str], key: str, count: int = 1) -> None:
    """Keys come and go for as long as the pool lives: one that counts nothing is none."""
    counter[key] -= count
    if not counter[key]:
        del counter[key]


def phase_of(error: BaseException, otherwise: Phase) -> Phase:
    """The phase that an error names, or the one it came up in."""
    return error.phase if isinstance(error, SubstrateError) else otherwise
