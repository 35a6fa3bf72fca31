"""A pool of real jails against what a rollout would else have to do: what each degree of warmth costs and saves.

Each part has jails of its own on one store, because a pool takes over what it pools. Between a rollout and the
next one of the same sandbox is as long as a reset takes: agents think longer.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Sequence

from bench.convention import Row, Sample
from bench.pools.world import World
from excise.jail.substrate import Jail
from excise.pools.counts import Got
from excise.pools.fitness import Trust
from excise.pools.pool import Pool
from excise.pools.rules import Rules
from excise.pools.size import Budget
from excise.pools.stage import Kind
from excise.pools.through import pooled
from excise.scheduler.loads import Prices
from excise.session import Session
from excise.substrates.base import Substrate
from excise.tasks.serve import GitServer
from excise.types import Action, Egress, Handle, Limits, Repo, Spec
from excise.workloads.actions import Desk
from excise.workloads.base import Site
from excise.workloads.tiers import t1

TRUE = Action(("true",))
THINK_S = 0.015
ANY = Spec(limits=Limits(memory_bytes=None))
DIRTY = "mkdir w; cd w; for i in $(seq 200); do head -c 10000 /dev/zero > f$i; done"
BURST, EXACT, ROLLOUTS = 100, 300, 40


async def rows(world: World) -> list[Row]:
    """All of them; the layers of the environment are in the store afterwards."""
    gc.freeze()
    found = [await exact(world), await burst(world), *await partial(world)]
    found += [await forks(world, copies, rounds) for copies, rounds in ((16, 12), (64, 5))]
    return [*found, await nothing_hit(world)]


def prices(world: World, image_s: float) -> Prices:
    """What building each stage took in this run."""
    took = {stage.kind: stage.price_s for stage in Jail(world.store).stages(world.spec())}
    return Prices(image_s, took[Kind.REPO], took[Kind.DEPENDENCIES])


async def exact(world: World) -> Row:
    """What a rollout waits for its sandbox and its first answer, where one idles for it."""
    steady, warm = [], []
    async with _pool(world, 16) as pool:
        pool.pin(ANY, 8)
        await _idle(pool, 8)
        held = await pool.create(ANY)
        for _ in range(EXACT):
            steady += [await _us(pool.run(held, TRUE)) for _ in range(2)]
            start = time.perf_counter_ns()
            box = await pool.create(ANY)
            await pool.run(box, TRUE)
            warm.append(_since(start))
            await pool.destroy(box)
            await asyncio.sleep(THINK_S)
        _expect(pool, Got.EXACT, EXACT + 1)
    return _row("exact hit: acquire and first action", warm, steady, "a steady action", 1.5, 1.2)


async def burst(world: World) -> Row:
    """All at once, and each gets its own."""
    bursts, actions = [], []
    async with _pool(world, BURST + 1) as pool:
        held = await pool.create(ANY)
        pool.pin(ANY, BURST)
        for _ in range(6):
            await _idle(pool, BURST)
            start = time.perf_counter_ns()
            for _ in range(BURST):
                await pool.run(held, TRUE)
            actions.append(_since(start))
            start = time.perf_counter_ns()
            boxes = await asyncio.gather(*(pool.create(ANY) for _ in range(BURST)))
            bursts.append(_since(start))
            for box in boxes:
                await pool.destroy(box)
        assert pool.counts.acquired[Got.EXACT] == 6 * BURST, pool.counts
    return _row(
        f"burst of {BURST} exact hits", bursts, actions, f"{BURST} steady actions", 1.0, 0.5
    )


async def partial(world: World) -> list[Row]:
    """The right dependencies and another commit: one that was never built here, and one that was."""
    cold: list[float] = []
    unseen: list[float] = []
    seen: list[float] = []
    cloning = Jail(world.store)
    host = await cloning.host_address()
    async with (
        GitServer({"attrs": world.prepared.git_dir}, host=host) as server,
        _pool(world, 4) as pool,
    ):
        await _and_back(pool, world.spec())
        for commit in world.commits:
            cold.append(await _us(_clone(cloning, world, server.url("attrs", host=host))))
            for times in (unseen, seen):
                start = time.perf_counter_ns()
                box = await pool.create(world.spec(commit))
                times.append(_since(start))
                assert pool.got(box).got is Got.PARTIAL, pool.got(box)
                await pool.destroy(box)
                await _idle(pool, 1)
                await _and_back(pool, world.spec())
    await cloning.close()
    clone = "cold T2 set-up: create with egress, clone"
    return [
        _row("partial hit: a commit never built here", unseen, cold, clone, 0.30, 0.10),
        _row("partial hit: a commit built before", seen, cold, clone, 0.30, 0.10),
    ]


async def forks(world: World, copies: int, rounds: int) -> Row:
    """Of one workspace that was worked in, all answering; against so many new ones that know nothing."""
    jail = Jail(world.store)
    forked: list[float] = []
    made: list[float] = []
    source = await jail.create(ANY)
    await jail.run(source, Action.shell(DIRTY))
    ways: Sequence[tuple[list[float], Callable[[], Awaitable[list[Handle]]]]] = (
        (made, lambda: _creates(jail, copies)),
        (forked, lambda: jail.fork(source, copies)),
    )
    for number in range(rounds):
        for times, begin in ways[:: 1 if number % 2 else -1]:
            start = time.perf_counter_ns()
            boxes = await begin()
            await asyncio.gather(*(jail.run(box, TRUE) for box in boxes))
            times.append(_since(start))
            for box in boxes:
                await jail.destroy(box)
            await asyncio.sleep(0.2)
    await jail.close()
    name = f"{copies} forks of a dirty workspace, all answering"
    return _row(name, forked, made, f"{copies} creates, all answering", 1.1, 1.0)


async def nothing_hit(world: World) -> Row:
    """Rollouts of the paper's T1, each of which has its sandbox made for it, with a pool and without."""
    site = Site(repo=Repo("", "", "repo"))
    actions = [step.action({}) for step in t1(world.prepared).steps(site)]
    rules = Rules(budget=Budget(4), ahead=False, trust=Trust(uses=1))
    plain: list[float] = []
    pooling: list[float] = []
    alone = Jail(world.store)
    async with pooled(Jail(world.store), rules) as pool:
        ways: Sequence[tuple[list[float], Substrate]] = ((plain, alone), (pooling, pool))
        for number in range(ROLLOUTS + 4):
            for times, substrate in ways[:: 1 if number % 2 else -1]:
                times.append(await _us(_rollout(substrate, world.spec(), actions)))
        _expect(pool, Got.MISS, ROLLOUTS + 4)
    await alone.close()
    name = "pool on, nothing hit: a T1 rollout"
    return _row(name, pooling[4:], plain[4:], "without a pool", 1.05, 1.0)


def _pool(world: World, sandboxes: int) -> Pool:
    return pooled(Jail(world.store), Rules(budget=Budget(sandboxes), ahead=sandboxes > 4))


async def _idle(pool: Pool, count: int) -> None:
    """Until so many idle, and nothing goes on in the background."""
    busy = ("laying", "making", "resetting", "leaving")
    while pool.status()["idle"] < count or any(pool.status()[name] for name in busy):  # noqa: ASYNC110
        await asyncio.sleep(0.002)


async def _and_back(pool: Pool, spec: Spec) -> None:
    """One sandbox idles there afterwards."""
    await pool.destroy(await pool.create(spec))
    await _idle(pool, 1)


async def _clone(jail: Jail, world: World, url: str) -> None:
    """What a rollout of T2 waits for where nothing is warm but the programs and packages."""
    spec = Spec(deps=world.deps, limits=ANY.limits, egress=Egress.FULL)
    box = await jail.create(spec)
    try:
        await jail.ready(box)
        step = Desk(world.prepared.task, Site(git_url=url)).clone()
        cloned = await jail.run(box, step.action({}))
        assert cloned.ok, cloned.text
    finally:
        await jail.destroy(box)


async def _creates(jail: Jail, copies: int) -> list[Handle]:
    return list(await asyncio.gather(*(jail.create(ANY) for _ in range(copies))))


async def _rollout(substrate: Substrate, spec: Spec, actions: Sequence[Action]) -> None:
    async with Session(substrate, spec) as session:
        for action in actions:
            await session.act(action)


async def _us(work: Awaitable[object]) -> float:
    start = time.perf_counter_ns()
    await work
    return _since(start)


def _since(start: int) -> float:
    return (time.perf_counter_ns() - start) / 1000


def _expect(pool: Pool, got: Got, count: int) -> None:
    """A benchmark that measured something else than it says has no row."""
    found = pool.counts.acquired
    if found[got] != count or found.total() != count:
        raise AssertionError(f"{found} instead of {count} {got}")


def _row(
    name: str, taken: list[float], against: list[float], baseline: str, reach: float, aim: float
) -> Row:
    mine, theirs = Sample(tuple(taken)), Sample(tuple(against))
    value = mine.p50_us / theirs.p50_us
    return Row(name, value, baseline, reach, aim, len(taken), mine.p50_us, mine.p95_us)
