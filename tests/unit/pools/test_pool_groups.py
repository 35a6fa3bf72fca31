"""Many rollouts of few environments: announced, prepared once, forked or laid for all, and in which order."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from excise import InputError, Latencies, Session, Spec, SubstrateError
from excise.errors import Overloaded
from excise.pools.counts import Got
from excise.pools.failures import Retries
from excise.pools.fitness import Trust
from excise.pools.rules import Rules
from excise.pools.size import Budget
from excise.types import Action
from tests.unit.pools.substrates import Forking, Layered, an_error, living

S = 1_000_000_000
ANY = Spec()
TASKS, COPIES = 64, 8


async def asked(pool, clock, spec=ANY):
    """A sandbox, and how long it took to get it, in seconds."""
    begun = clock.now_ns()
    box = await pool.create(spec)
    return box, (clock.now_ns() - begun) / S


def batch():
    """The specs of a trainer's step: so many copies of each task, in no order."""
    specs = [Spec(image=f"{task}/b/c") for task in range(TASKS)]
    return [spec for _ in range(COPIES) for spec in specs]


async def rollouts(pool, clock, specs):
    async def one(spec):
        async with Session(pool, spec, clock=clock) as session:
            await session.act(Action.shell("true"))
            return spec.image

    return await asyncio.gather(*(one(spec) for spec in specs))


def test_a_group_is_one_preparation_and_forks_of_it():
    async def trial(pool, fake, clock):
        boxes = await asyncio.gather(*(pool.create(Spec(image="a/b/c")) for _ in range(8)))
        return len(set(boxes)), dict(fake.done), clock.now_ns() / S

    count, done, took_s = living(
        trial, Rules(ahead=False, creating=8), kind=Forking, latencies=Latencies()
    )
    assert count == 8
    assert done["created"] == 1
    assert done["forked"] == 7
    assert took_s == pytest.approx(14.0, abs=0.1)


def test_what_is_announced_is_ready_before_it_is_asked_for():
    async def trial(pool, fake, clock):
        pool.expect(Spec(), 5)
        await clock.sleep(30)
        return [(await asked(pool, clock))[1] for _ in range(5)]

    assert living(trial, Rules()) == [0.0] * 5


def test_a_wave_that_came_once_is_met_ready_the_next_time():
    async def trial(pool, fake, clock):
        waits = []
        for _ in range(2):
            boxes = await asyncio.gather(*(asked(pool, clock) for _ in range(6)))
            waits.append(max(took_s for _, took_s in boxes))
            for box, _ in boxes:
                await pool.destroy(box)
            await clock.sleep(120)
        return waits

    first, second = living(trial, Rules(trust=Trust(uses=1)))
    assert first >= 1.0
    assert second == 0


def test_a_rollout_forks_its_own_sandbox_within_the_budget_and_the_copies_are_never_used_again():
    async def trial(pool, fake, clock):
        box = await pool.create(Spec(image="a"))
        await pool.write(box, "work", b"half done")
        twins = await pool.fork(box, 2)
        works = [await pool.read(twin, "work") for twin in twins]
        with pytest.raises(Overloaded, match="room for 0"):
            await pool.fork(box)
        for held in (box, *twins):
            await pool.destroy(held)
        await clock.sleep(5)
        return works, pool.counts.reset, pool.counts.destroyed

    rules = Rules(budget=Budget(3), ahead=False)
    assert living(trial, rules, kind=Forking) == ([b"half done"] * 2, 1, 2)


def test_a_batch_of_512_on_64_tasks_is_64_preparations_and_forks_of_them():
    async def trial(pool, fake, clock):
        boxes = await asyncio.gather(*(pool.create(spec) for spec in batch()))
        return len(set(boxes)), dict(fake.done), pool.counts.forked

    rules = Rules(ahead=False, budget=Budget(TASKS * COPIES))
    count, done, forked = living(trial, rules, kind=Forking, latencies=Latencies())
    assert count == TASKS * COPIES
    assert done == {"created": TASKS, "forked": TASKS * (COPIES - 1)}
    assert forked == TASKS * (COPIES - 1)


def test_with_a_place_for_every_eighth_each_task_is_still_prepared_once():
    async def trial(pool, fake, clock):
        served = await rollouts(pool, clock, batch())
        return Counter(served), fake.laid, fake.most, pool.counts.laid

    rules = Rules(ahead=False, budget=Budget(TASKS))
    served, laid, most, counted = living(trial, rules, kind=Layered, latencies=Latencies())
    assert set(served.values()) == {COPIES}
    assert set(laid.values()) == {1}
    assert len(laid) == counted == TASKS
    assert most <= TASKS


def test_what_stands_on_the_same_is_built_while_others_are_made():
    async def trial(pool, fake, clock):
        slow = [asyncio.create_task(asked(pool, clock, Spec(image="a/b/c"))) for _ in range(20)]
        await clock.sleep(0.1)
        _, took_s = await asked(pool, clock, Spec(image="here"))
        waits = {round(took) for _, took in await asyncio.gather(*slow)}
        return took_s, waits, fake.laid

    fast = Latencies(create_s=0.01)
    took_s, waits, laid = living(
        trial, Rules(ahead=False, creating=1), kind=Layered, latencies=fast, here={"here"}
    )
    assert took_s == pytest.approx(0.01)
    assert waits == {14}
    assert laid == {"a/b/c": 1}


def test_a_schedule_is_made_ready_in_its_order_and_built_beyond_what_fits():
    coming = [(Spec(image=f"{name}/b/c"), 2) for name in "zyxw"]

    async def trial(pool, fake, clock):
        pool.schedule(coming)
        await clock.sleep(120)
        ready = [line for spec, _ in coming for line in pool.explain(spec) if "3 of 3" in line]
        return list(fake.laid), len(ready), len(fake.boxes)

    laid, ready, boxes = living(
        trial, Rules(budget=Budget(4), laying=1), kind=Layered, latencies=Latencies()
    )
    assert laid == ["z/b/c", "y/b/c", "x/b/c", "w/b/c"]
    assert (ready, boxes) == (4, 4)


def test_whoever_comes_in_the_order_of_the_schedule_finds_the_next_ready():
    coming = [(Spec(image=f"{name}/b/c"), 2) for name in "zyxw"]

    async def trial(pool, fake, clock):
        pool.schedule(coming)
        await clock.sleep(120)
        for spec, copies in coming:
            for box in await asyncio.gather(*(pool.create(spec) for _ in range(copies))):
                await pool.destroy(box)
            await clock.sleep(10)
        return pool.counts.acquired

    acquired = living(trial, Rules(budget=Budget(4)), kind=Layered, latencies=Latencies())
    assert acquired == {Got.EXACT: 8}


def test_what_cannot_be_announced_changes_nothing():
    async def trial(pool, fake, clock):
        with pytest.raises(InputError):
            pool.schedule([(Spec(image="a"), 1), (Spec(image="b"), -1)])
        await clock.sleep(60)
        return fake.created

    assert living(trial, Rules()) == []


def test_a_build_that_fails_is_told_once_tried_once_and_blocks_nobody():
    error = an_error(retryable=False)

    async def trial(pool, fake, clock):
        fake.broken["a/b/c"] = error
        failed = [asyncio.create_task(pool.create(Spec(image="a/b/c"))) for _ in range(10)]
        _, took_s = await asked(pool, clock, Spec(image="here"))
        told = await asyncio.gather(*failed, return_exceptions=True)
        with pytest.raises(SubstrateError, match="written down to fail"):
            await pool.create(Spec(image="a/b/c"))
        pool.expect(Spec(image="a/b/c"), 4)
        await clock.sleep(20)
        return took_s, {str(each) for each in told}, fake.laid["a/b/c"], pool.counts.failures

    rules = Rules(retries=Retries(poison_s=60.0))
    took_s, told, tries, failures = living(
        trial, rules, kind=Layered, latencies=Latencies(), here={"here"}
    )
    assert took_s < 1
    assert told == {str(error)}
    assert tries == 1
    assert failures == {"create": 1}


def test_a_build_that_can_be_mended_serves_whoever_waited():
    async def trial(pool, fake, clock):
        fake.broken["a/b/c"] = an_error(retryable=True)
        waiting = asyncio.create_task(asked(pool, clock, Spec(image="a/b/c")))
        await clock.sleep(15)
        del fake.broken["a/b/c"]
        _, took_s = await waiting
        return took_s, fake.laid["a/b/c"]

    rules = Rules(ahead=False, retries=Retries(first_s=2.0))
    took_s, tries = living(trial, rules, kind=Layered, latencies=Latencies())
    assert tries == 2
    assert 29 < took_s < 31


def test_one_that_shares_the_base_alone_is_no_partial_hit_unless_the_rules_say_so():
    async def trial(pool, fake, clock):
        pool.pin(Spec(image="a"), 1)
        await clock.sleep(60)
        box, _ = await asked(pool, clock, Spec(image="z"))
        return pool.got(box).got, pool.got(box).shared, fake.done["advanced"]

    for from_base, found in ((False, (Got.MISS, 0, 0)), (True, (Got.PARTIAL, 1, 1))):
        rules = Rules(from_base=from_base)
        assert living(trial, rules, kind=Layered, latencies=Latencies()) == found


def test_closing_while_something_is_built_tells_whoever_waits():
    async def trial(pool, fake, clock):
        waiting = asyncio.create_task(pool.create(Spec(image="a/b/c")))
        await clock.sleep(1)
        await pool.close()
        with pytest.raises(SubstrateError, match="closed"):
            await waiting

    living(trial, Rules(ahead=False), kind=Layered, latencies=Latencies())
