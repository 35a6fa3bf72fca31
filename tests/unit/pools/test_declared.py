"""Pools that are declared to have something ready: just that is found, and nothing else passes for it."""

from __future__ import annotations

import asyncio

import pytest

from excise import FakeClock, InputError, Spec, SubstrateError
from excise.measure import ready
from excise.measure.record import Readied
from excise.pools.counts import Got
from excise.pools.declared import availability, declared, open_substrate
from excise.pools.size import Budget
from excise.substrates.base import Prepares
from excise.substrates.registry import open_substrate as by_name
from excise.substrates.registry import parse
from tests.unit.pools.substrates import A_SECOND, Layered, Ward, an_error

WHOLE = Spec(image="a/b/c")


def under(state, trial, *, kind=Layered, sandboxes=8, **more):
    """Run `trial(pool, fake, clock)` over a pool of that state, and close it."""
    clock = FakeClock(turns=40)
    fake = kind(A_SECOND, clock=clock, **more)

    async def whole():
        pool = declared(fake, Got(state), Budget(sandboxes), clock=clock)
        try:
            return await trial(pool, fake, clock)
        finally:
            await pool.close()

    result = asyncio.run(whole())
    assert fake.boxes == ()
    return result


async def got(pool, clock, spec=WHOLE):
    """What a rollout found, and how long that took; it gives it back at once."""
    begun = clock.now_ns()
    box = await pool.create(spec)
    took_s = (clock.now_ns() - begun) / 1e9
    found = pool.got(box)
    await pool.destroy(box)
    return found, took_s


@pytest.mark.parametrize(
    ("state", "shared", "took_s"), [("exact", 4, 0.0), ("partial", 3, 4.0), ("miss", 0, 15.0)]
)
def test_each_rollout_finds_what_was_declared(state, shared, took_s):
    async def trial(pool, fake, clock):
        found = []
        for _ in range(3):
            fake.here.discard("a/b/c")
            if state == "miss":
                fake.here.clear()
            await pool.prepare(WHOLE)
            found.append(await got(pool, clock))
        return found

    for found, took in under(state, trial):
        assert (found.got, found.shared) == (state, shared)
        if state != "exact":
            assert took == pytest.approx(took_s, abs=0.01)


@pytest.mark.parametrize("state", list(Got))
def test_without_being_told_it_makes_itself_ready_before_each_creation(state):
    async def trial(pool, fake, clock):
        return [(await got(pool, clock))[0].got for _ in range(3)]

    assert under(state, trial) == [state] * 3


@pytest.mark.parametrize("state", list(Got))
def test_so_many_at_once_all_find_it(state):
    async def trial(pool, fake, clock):
        await pool.prepare(WHOLE, 6)
        return [each.got for each, _ in await asyncio.gather(*(got(pool, clock) for _ in range(6)))]

    assert under(state, trial) == [state] * 6


def test_more_workers_than_were_prepared_for_each_find_it():
    async def trial(pool, fake, clock):
        return [each.got for each, _ in await asyncio.gather(*(got(pool, clock) for _ in range(5)))]

    assert under("exact", trial) == [Got.EXACT] * 5


def test_what_was_declared_and_is_not_found_is_an_error_and_no_silent_miss():
    async def trial(pool, fake, clock):
        await pool.prepare(WHOLE)
        fake.sick.update(fake.boxes)
        await clock.sleep(31)
        with pytest.raises(SubstrateError, match="declared to be exact, but it was miss"):
            await pool.create(WHOLE)
        return pool.status()["held"]

    assert under("exact", trial) == 0


def test_an_environment_of_one_stage_has_no_part():
    async def trial(pool, fake, clock):
        with pytest.raises(InputError, match="has one stage"):
            await pool.create(Spec())

    under("partial", trial, kind=Ward)


def test_what_cannot_be_made_ready_says_why():
    async def trial(pool, fake, clock):
        fake.broken["a/b/c"] = an_error()
        with pytest.raises(SubstrateError, match="written down to fail"):
            await pool.prepare(WHOLE)
        with pytest.raises(InputError, match="sandboxes=8"):
            await pool.prepare(Spec(image="z"), 9)

    under("exact", trial)


def test_what_readiness_took_is_told_beside_what_it_saved():
    async def trial(pool, fake, clock):
        readying = await ready.begin(pool, WHOLE, 2)
        await clock.sleep(5)
        for _ in range(2):
            await got(pool, clock)
        return readying.told(2)

    assert under("exact", trial) == Readied(spent_s=8.0, saved_s=1.0, idle_s=5.0)


def test_a_substrate_that_makes_nothing_ready_has_nothing_to_tell():
    assert asyncio.run(ready.begin(Ward(), WHOLE)).told() is None


def test_it_has_a_name_like_any_other_substrate():
    name, options = parse("jail+pool:state=exact,sandboxes=4")
    pool = by_name(name, **options)
    assert isinstance(pool, Prepares)
    assert (pool.name, pool.rules.budget.most) == ("jail+pool", 4)
    assert not isinstance(by_name("jail+pool"), Prepares)


@pytest.mark.parametrize("wrong", [{"state": "warm"}, {"sandboxes": "many"}, {"sandboxes": "0"}])
def test_what_cannot_be_declared_is_refused(wrong):
    with pytest.raises(InputError):
        open_substrate(over="fake", **wrong)


def test_it_is_usable_where_what_it_pools_is():
    assert asyncio.run(availability(over="fake", state="exact")).usable
    with pytest.raises(InputError):
        asyncio.run(availability(over="fake", state="warm"))


def test_it_says_of_itself_which_state_it_is_in():
    async def trial(pool, fake, clock):
        return (await pool.describe())["state"]

    assert under("partial", trial) == "partial"
