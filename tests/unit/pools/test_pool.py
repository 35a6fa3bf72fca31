"""A pool in written-down time: what a rollout waits, what it gets, and why."""

from __future__ import annotations

import asyncio

import pytest

from excise import (
    Action,
    DeadlineExceeded,
    InputError,
    Isolation,
    Latencies,
    Phase,
    SandboxGone,
    Session,
    Spec,
    SubstrateError,
)
from excise.errors import Overloaded
from excise.pools.counts import Got
from excise.pools.plan import Ageing
from excise.pools.rules import Rules
from excise.pools.size import Budget
from excise.substrates.base import Files, Resettable, Shells, Sweeps, TimesInside
from tests.unit.pools.substrates import Tree, living

S = 1_000_000_000
ANY = Spec()
LAZY = Rules(ahead=False)
TRUE = Action(("true",))


async def asked(pool, clock, spec=ANY):
    """A sandbox, and how long it took to get it, in seconds."""
    begun = clock.now_ns()
    box = await pool.create(spec)
    return box, (clock.now_ns() - begun) / S


def test_who_finds_nothing_waits_as_long_as_creation_takes_and_is_told():
    async def trial(pool, fake, clock):
        box, took_s = await asked(pool, clock)
        return took_s, pool.got(box)

    took_s, got = living(trial, LAZY)
    assert took_s == 1.0
    assert (got.got, got.saved_s, got.waited_s) == (Got.MISS, 0.0, 1.0)
    assert "made for it" in got.why


def test_who_finds_one_kept_ready_waits_not_at_all():
    async def trial(pool, fake, clock):
        pool.pin(Spec(), 1)
        await clock.sleep(5)
        box, took_s = await asked(pool, clock)
        return took_s, pool.got(box)

    took_s, got = living(trial, Rules())
    assert took_s == 0
    assert (got.got, got.why, got.saved_s) == (Got.EXACT, "kept ready", 1.0)


def test_a_sandbox_that_was_given_back_is_reset_and_serves_again():
    async def trial(pool, fake, clock):
        first, _ = await asked(pool, clock)
        await pool.write(first, "secret", b"of the first rollout")
        await pool.destroy(first)
        await clock.sleep(1)
        second, took_s = await asked(pool, clock)
        with pytest.raises(FileNotFoundError):
            await pool.read(second, "secret")
        return took_s, pool.got(second), first, second, len(fake.created)

    took_s, got, first, second, created = living(trial, LAZY)
    assert (took_s, created) == (0, 1)
    assert got.why == "reset and proved"
    assert first != second


def test_giving_back_costs_the_rollout_nothing():
    async def trial(pool, fake, clock):
        box, _ = await asked(pool, clock)
        begun = clock.now_ns()
        await pool.destroy(box)
        return clock.now_ns() - begun

    assert living(trial, LAZY, latencies=Latencies(reset_s=3.0, destroy_s=3.0)) == 0


def test_a_session_over_a_pool_is_a_session_as_any_other():
    async def trial(pool, fake, clock):
        pool.pin(Spec(), 1)
        await clock.sleep(5)
        async with Session(pool, clock=clock) as session:
            await session.act(Action.shell("sleep 0.5"))
        return session.marks

    assert living(trial, Rules()).actions[0].inside_ns == S // 2


def test_a_pool_can_do_what_its_substrate_can_and_says_what_it_is():
    async def trial(pool, fake, clock):
        return (
            pool.name,
            pool.isolation,
            [isinstance(pool, a) for a in (Files, Shells, TimesInside, Sweeps, Resettable)],
        )

    name, isolation, abilities = living(trial, LAZY)
    assert (name, isolation) == ("fake+pool", Isolation.NONE)
    assert abilities == [True, True, True, False, True]


def test_what_belongs_to_one_rollout_forces_no_cold_start_and_is_bound_late():
    async def trial(pool, fake, clock):
        pool.pin(Spec(), 2)
        await clock.sleep(5)
        gots = []
        for name in ("ann", "bob"):
            spec = Spec(env={"WHO": name}, labels={"owner": name})
            box, _ = await asked(pool, clock, spec)
            await pool.run(box, Action(("say",), env={"MORE": "1"}))
            gots.append(pool.got(box).got)
        return gots

    seen = []
    gots = living(trial, Rules(), answers=lambda a: seen.append(a) if a.argv == ("say",) else None)
    assert gots == [Got.EXACT, Got.EXACT]
    assert [a.env for a in seen] == [{"WHO": n, "MORE": "1"} for n in ("ann", "bob")]


def test_limits_that_cannot_be_bound_late_are_kept_apart():
    async def trial(pool, fake, clock):
        pool.pin(Spec(user="1000"), 1)
        await clock.sleep(5)
        _, took_s = await asked(pool, clock, Spec())
        return took_s

    assert living(trial, Rules()) == 1.0


def test_a_substrate_that_binds_takes_user_limits_and_egress_late_too():
    async def trial(pool, fake, clock):
        pool.pin(Spec(image="a"), 1)
        await clock.sleep(20)
        wanted = Spec(image="a", user="1000", env={"X": "1"})
        box, took_s = await asked(pool, clock, wanted)
        return took_s, pool.got(box).got, list(fake.bound.values()) == [wanted]

    assert living(trial, Rules(), kind=Tree) == (0, Got.EXACT, True)


def test_a_partial_hit_pays_only_for_what_is_missing():
    async def trial(pool, fake, clock):
        pool.pin(Spec(image="a/b/c"), 1)
        await clock.sleep(60)
        box, took_s = await asked(pool, clock, Spec(image="a/x/y"))
        return took_s, pool.got(box), fake.done["created"]

    took_s, got, created = living(trial, Rules(budget=Budget(1)), kind=Tree)
    assert took_s == 6.0
    assert (got.got, got.shared, got.stages, created) == (Got.PARTIAL, 1, 3, 1)
    assert got.why == "shares image and all below"
    assert got.saved_s == pytest.approx(got.saved_s)
    assert got.saved_s > 8.0


def test_a_rollout_that_shares_nothing_gets_a_sandbox_of_its_own():
    async def trial(pool, fake, clock):
        pool.pin(Spec(image="a/b/c"), 1)
        await clock.sleep(60)
        box, took_s = await asked(pool, clock, Spec(image="z"))
        return took_s, pool.got(box).got

    assert living(trial, Rules(), kind=Tree) == (9.0, Got.MISS)


@pytest.mark.parametrize("ahead", [True, False])
def test_there_are_never_more_sandboxes_than_the_budget(ahead):
    async def trial(pool, fake, clock):
        async def rollout(i):
            async with Session(pool, Spec(image=f"i{i % 5}"), clock=clock) as session:
                await session.act(Action.shell(f"sleep {1 + i % 3}"))

        await asyncio.gather(*(rollout(i) for i in range(40)))
        return fake.most, pool.counts.acquired.total()

    most, acquired = living(trial, Rules(budget=Budget(4), ahead=ahead))
    assert most <= 4
    assert acquired == 40


def test_one_place_serves_everybody_in_the_end_whatever_they_want():
    async def trial(pool, fake, clock):
        for i in range(3):
            box, _ = await asked(pool, clock, Spec(image=f"i{i}"))
            await pool.destroy(box)
        return fake.most

    assert living(trial, Rules(budget=Budget(1))) == 1


def test_a_flood_of_one_owner_does_not_starve_another():
    async def trial(pool, fake, clock):
        order = []

        async def rollout(owner, image):
            async with Session(pool, Spec(image=image, labels={"owner": owner}), clock=clock) as s:
                order.append(owner)
                await s.act(Action.shell("sleep 1"))

        flood = [asyncio.create_task(rollout("flood", "hot")) for _ in range(30)]
        await clock.sleep(0.5)
        await rollout("single", "cold")
        place = order.index("single")
        await asyncio.gather(*flood)
        return place

    assert living(trial, Rules(budget=Budget(2), ahead=False)) <= 6


def test_no_more_are_made_at_once_than_the_rules_say():
    async def trial(pool, fake, clock):
        await asyncio.gather(*(pool.create(Spec()) for _ in range(12)))
        return fake.most_creating

    assert living(trial, Rules(creating=3, ahead=False)) == 3


def test_filling_ahead_waits_for_running_actions_but_not_for_ever():
    rules = Rules(yield_at=1, yield_for_s=5.0)

    async def trial(pool, fake, clock):
        box = await pool.create(Spec(image="busy"))
        acting = asyncio.create_task(pool.run(box, Action.shell("sleep 30", timeout_s=None)))
        await clock.sleep(0.1)
        begun = clock.now_ns()
        pool.pin(Spec(image="later"), 1)
        while fake.created[-1][1].image != "later":
            await clock.sleep(0.25)
        waited_s = (clock.now_ns() - begun) / S
        await acting
        return waited_s

    assert 5.0 <= living(trial, rules, latencies=Latencies()) <= 7.0


def test_idle_copies_age_out_when_nobody_asks_any_more():
    async def trial(pool, fake, clock):
        box = await pool.create(Spec())
        await pool.destroy(box)
        await clock.sleep(2 * 3600)
        return pool.status()["idle"]

    assert living(trial, Rules(ageing=Ageing(grace_s=30.0))) == 0


def test_more_than_the_queue_takes_are_told_so_at_once():
    async def trial(pool, fake, clock):
        first = [asyncio.create_task(pool.create(Spec())) for _ in range(3)]
        await clock.sleep(0.1)
        with pytest.raises(Overloaded, match="2 rollouts wait already") as error:
            await pool.create(Spec())
        await first[0]
        for task in first[1:]:
            task.cancel()
        await asyncio.gather(*first, return_exceptions=True)
        return error.value

    error = living(trial, Rules(budget=Budget(1), waiting=2, ahead=False))
    assert (error.phase, error.retryable) == (Phase.CREATE, True)


def test_who_waits_too_long_is_told_so_and_leaves_nothing():
    async def trial(pool, fake, clock):
        held = await pool.create(Spec())
        with pytest.raises(DeadlineExceeded, match="within 7 s"):
            await pool.create(Spec())
        assert held
        return clock.now_ns() / S, pool.status()["waiting"]

    took_s, waiting = living(trial, Rules(budget=Budget(1), wait_within_s=7.0, ahead=False))
    assert took_s == pytest.approx(8.0, abs=0.1)
    assert waiting == 0


def test_after_the_end_nothing_is_given_and_whoever_waited_is_told():
    async def trial(pool, fake, clock):
        await pool.create(Spec())
        waiting = asyncio.create_task(pool.create(Spec()))
        await clock.sleep(0.1)
        await pool.close()
        with pytest.raises(SubstrateError, match="closed"):
            await waiting
        with pytest.raises(SubstrateError, match="closed"):
            await pool.create(Spec())

    living(trial, Rules(budget=Budget(1)))


def test_a_handle_that_was_given_back_is_gone_though_the_sandbox_lives():
    async def trial(pool, fake, clock):
        old = await pool.create(Spec())
        await pool.destroy(old)
        await clock.sleep(1)
        await pool.create(Spec())
        for handle in (old, "never-made"):
            with pytest.raises(SandboxGone):
                await pool.run(handle, TRUE)

    living(trial, LAZY)


def test_a_pool_explains_what_a_rollout_would_find():
    async def trial(pool, fake, clock):
        pool.pin(Spec(image="a/b/c"), 1)
        await clock.sleep(60)
        return pool.explain(Spec(image="a/b/x")), pool.worthy(), pool.metrics(), repr(pool)

    lines, worthy, metrics, shown = living(trial, Rules(), kind=Tree)
    assert "2 of 3 stages there, 4 s left" in lines[1]
    assert worthy[0].why == "pinned, 1 of 1"
    assert 'excise_pool_idle{pool="fake+pool"} 1' in metrics
    assert shown == "<Pool fake+pool: 1 idle, 0 held, 0 waiting>"


def test_what_warmth_cost_is_counted_beside_what_it_saved():
    async def trial(pool, fake, clock):
        pool.pin(Spec(), 1)
        await clock.sleep(11)
        await pool.create(Spec())
        counts = pool.counts
        return counts.fill_s, counts.kept_s, counts.saved_s

    assert living(trial, Rules()) == (1.0, 10.0, 1.0)


@pytest.mark.parametrize(
    "wrong",
    [{"creating": 0}, {"waiting": 0}, {"wait_within_s": 0.0}, {"weights": {"ann": 0.0}}],
)
def test_rules_that_serve_nobody_are_refused(wrong):
    with pytest.raises(InputError):
        Rules(**wrong)
