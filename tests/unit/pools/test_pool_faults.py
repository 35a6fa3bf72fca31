"""A pool over a substrate that fails: nothing unfit is handed out, nothing spins, nothing is left over."""

from __future__ import annotations

import asyncio
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from excise import (
    Action,
    DeadlineExceeded,
    InputError,
    Latencies,
    LifecycleError,
    Phase,
    Session,
    Spec,
    SubstrateError,
)
from excise.pools.failures import Retries
from excise.pools.fitness import Trust
from excise.pools.rules import Rules
from excise.pools.size import Budget
from excise.substrates.base import Proof
from tests.unit.pools.substrates import Forking, Tree, Ward, an_error, living

S = 1_000_000_000
LAZY = Rules(ahead=False)
QUICK = Latencies()
TRUE = Action(("true",))


def test_a_sandbox_that_falls_sick_while_idle_is_never_handed_out():
    async def trial(pool, fake, clock):
        box = await pool.create(Spec())
        await pool.destroy(box)
        await clock.sleep(20)
        fake.sick.update(fake.boxes)
        sick = set(fake.boxes)
        healthy = await pool.create(Spec())
        seen = await pool.run(healthy, TRUE)
        return seen.ok, pool.counts.doubted, sick & set(fake.boxes), pool.got(healthy).attempts

    rules = Rules(ahead=False, trust=Trust(proof_s=0.0))
    assert living(trial, rules) == (True, 1, set(), 2)


def test_one_that_falls_sick_while_idle_is_found_before_anybody_asks_and_reported():
    async def trial(pool, fake, clock):
        await pool.destroy(await pool.create(Spec()))
        await clock.sleep(1)
        [sick] = fake.boxes
        fake.sick.add(sick)
        await clock.sleep(10)
        return sick in fake.boxes, pool.status()["idle"], pool.unfit()

    lives, idle, [unfit] = living(trial, Rules(ahead=False, trust=Trust(proof_s=10.0)))
    assert (lives, idle) == (False, 0)
    assert (unfit.uses, unfit.at_s) == (1, 6.0)
    assert "the probe ended with 1" in unfit.why


def test_a_sandbox_that_is_not_pristine_after_its_reset_is_destroyed():
    async def trial(pool, fake, clock):
        box = await pool.create(Spec(image="a"))
        [inner] = fake.boxes
        fake.wrong[inner] = Proof(files=("/etc/passwd",))
        await pool.destroy(box)
        await clock.sleep(60)
        return inner in fake.boxes, pool.counts.doubted, pool.counts.reset

    assert living(trial, LAZY, kind=Tree) == (False, 1, 0)


@pytest.mark.parametrize("error", [an_error(Phase.RESET), OSError("no space left on device")])
def test_a_sandbox_whose_reset_fails_is_destroyed(error):
    async def trial(pool, fake, clock):
        box = await pool.create(Spec())
        [inner] = fake.boxes
        await pool.destroy(box)
        await clock.sleep(60)
        return inner in fake.boxes, pool.counts.failures["reset"]

    assert living(trial, LAZY, fail={Phase.RESET: error}) == (False, 1)


def test_what_a_rollout_left_in_doubt_is_not_used_again():
    async def trial(pool, fake, clock):
        box = await pool.create(Spec())
        fake._fail = {Phase.RUN: an_error(Phase.RUN)}
        with pytest.raises(SubstrateError):
            await pool.run(box, TRUE)
        fake._fail = {}
        await pool.destroy(box)
        await clock.sleep(60)
        return pool.counts.reset, pool.counts.destroyed

    assert living(trial, LAZY) == (0, 1)


def test_taking_back_a_sandbox_that_still_acts_destroys_it():
    async def trial(pool, fake, clock):
        box = await pool.create(Spec())
        acting = asyncio.create_task(pool.run(box, Action.shell("sleep 5")))
        await clock.sleep(1)
        await pool.destroy(box)
        await acting
        return pool.counts.reset

    assert living(trial, LAZY) == 0


def test_bad_input_for_an_action_is_the_callers_and_casts_no_doubt():
    async def trial(pool, fake, clock):
        box = await pool.create(Spec())
        with pytest.raises(InputError):
            await pool.run(box, Action(()))
        await pool.destroy(box)
        await clock.sleep(1)
        return pool.counts.reset

    assert living(trial, LAZY) == 1


def test_after_so_many_uses_a_sandbox_is_replaced():
    async def trial(pool, fake, clock):
        for _ in range(5):
            box = await pool.create(Spec())
            await pool.destroy(box)
            await clock.sleep(1)
        return len(fake.created)

    assert living(trial, Rules(ahead=False, trust=Trust(uses=2))) == 3


def test_a_failure_that_a_retry_may_mend_is_retried_after_pauses_that_double():
    def twice(phase, before):
        return an_error(retryable=True) if phase is Phase.CREATE and before < 2 else None

    async def trial(pool, fake, clock):
        await pool.create(Spec())
        return [at_ns / S for at_ns, _ in fake.created], pool.counts.retried

    rules = Rules(ahead=False, retries=Retries(attempts=3, first_s=1.0))
    times, retried = living(trial, rules, latencies=QUICK, fail=twice)
    gaps = [b - a for a, b in itertools.pairwise(times)]
    assert retried == 2
    assert 0.75 <= gaps[0] <= 1.0
    assert 1.5 <= gaps[1] <= 2.0


def test_an_environment_that_cannot_be_made_is_tried_once_for_all_that_wait_and_others_go_on():
    class Picky(Ward):
        async def create(self, spec):
            if spec.image == "broken":
                self.created.append((self._clock.now_ns(), spec))
                await self._clock.sleep(1)
                raise an_error()
            return await super().create(spec)

    async def trial(pool, fake, clock):
        waiting = [asyncio.create_task(pool.create(Spec(image="broken"))) for _ in range(1)]
        await clock.sleep(0.5)
        waiting += [asyncio.create_task(pool.create(Spec(image="broken"))) for _ in range(4)]
        good = asyncio.create_task(pool.create(Spec(image="good")))
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        await good
        with pytest.raises(SubstrateError, match="written down to fail"):
            await pool.create(Spec(image="broken"))
        await clock.sleep(20)
        tries = sum(spec.image == "broken" for _, spec in fake.created)
        return ended, tries

    ended, tries = living(trial, Rules(creating=1), kind=Picky)
    assert all(isinstance(e, SubstrateError) for e in ended)
    assert len({id(e) for e in ended}) == 5
    assert all(isinstance(e.__cause__, SubstrateError) for e in ended)
    assert tries == 1


def test_a_poisoned_environment_is_tried_again_after_its_pause():
    def once(phase, before):
        return an_error() if phase is Phase.CREATE and before == 0 else None

    async def trial(pool, fake, clock):
        with pytest.raises(SubstrateError):
            await pool.create(Spec())
        await clock.sleep(31)
        return bool(await pool.create(Spec()))

    assert living(trial, LAZY, fail=once)


@pytest.mark.parametrize("error", [OSError("no space left on device"), InputError("no such image")])
def test_whatever_creation_raises_reaches_who_asked_as_an_error_of_ours(error):
    async def trial(pool, fake, clock):
        with pytest.raises((SubstrateError, InputError), match=str(error)) as raised:
            await pool.create(Spec())
        return isinstance(raised.value, InputError)

    ours = living(trial, LAZY, fail={Phase.CREATE: error})
    assert ours is isinstance(error, InputError)


def test_creation_that_wedges_is_given_up_and_fewer_are_tried_at_once():
    async def trial(pool, fake, clock):
        with pytest.raises(DeadlineExceeded, match="no answer within 9 s"):
            await pool.create(Spec())
        return pool.status()["window"], pool.status()["making"]

    rules = Rules(ahead=False, create_within_s=9.0, retries=Retries(attempts=2))
    assert living(trial, rules, hang={Phase.CREATE}) == (1.0, 0)


def test_a_substrate_that_chokes_on_too_many_gets_fewer_and_everybody_is_served():
    class Narrow(Ward):
        async def create(self, spec):
            if self.creating >= 3:
                await self._clock.sleep(0.5)
                raise an_error(retryable=True)
            return await super().create(spec)

    async def trial(pool, fake, clock):
        boxes = await asyncio.gather(*(pool.create(Spec()) for _ in range(20)))
        return len(set(boxes))

    rules = Rules(ahead=False, creating=16, retries=Retries(attempts=8))
    assert living(trial, rules, kind=Narrow) == 20


def test_a_sandbox_that_fails_its_first_probe_is_destroyed_and_made_again():
    class Weak(Ward):
        async def create(self, spec):
            box = await super().create(spec)
            if len(self.created) == 1:
                self.sick.add(box)
            return box

    async def trial(pool, fake, clock):
        box = await pool.create(Spec())
        return (await pool.run(box, TRUE)).ok, len(fake.created), len(fake.boxes)

    assert living(trial, LAZY, kind=Weak) == (True, 2, 1)


def test_who_stops_waiting_leaves_a_sandbox_for_the_next():
    async def trial(pool, fake, clock):
        waiting = asyncio.create_task(pool.create(Spec()))
        await clock.sleep(0.5)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await clock.sleep(1)
        begun = clock.now_ns()
        await pool.create(Spec())
        return clock.now_ns() - begun, len(fake.created), pool.counts.withdrawn, waiting.cancelled()

    assert living(trial, LAZY) == (0, 1, 1, True)


@pytest.mark.parametrize("after_s", [0.0, 0.5, 1.0, 3.0, 9.0, 13.0, 15.0])
def test_stopping_at_any_moment_of_a_partial_hit_leaves_nothing(after_s):
    async def trial(pool, fake, clock):
        pool.pin(Spec(image="a/b/c"), 1)
        await clock.sleep(60)
        waiting = asyncio.create_task(pool.create(Spec(image="a/x/y")))
        await clock.sleep(after_s)
        waiting.cancel()
        [ended] = await asyncio.gather(waiting, return_exceptions=True)
        await clock.sleep(60)
        return pool.status()["held"] - (not isinstance(ended, asyncio.CancelledError))

    assert living(trial, Rules(budget=Budget(2)), kind=Tree) == 0


def test_a_fork_that_fails_costs_the_others_nothing():
    class Brittle(Forking):
        async def fork(self, box, copies=1):
            self.done["tried"] += 1
            if self.done["tried"] == 1:
                raise an_error(retryable=True)
            return await super().fork(box, copies)

    async def trial(pool, fake, clock):
        boxes = await asyncio.gather(*(pool.create(Spec(image="a/b")) for _ in range(6)))
        return len(set(boxes))

    assert living(trial, LAZY, kind=Brittle, latencies=QUICK) == 6


def test_destruction_is_tried_until_the_sandbox_is_gone_and_counts_until_then():
    def thrice(phase, before):
        return an_error(Phase.DESTROY) if phase is Phase.DESTROY and before < 3 else None

    async def trial(pool, fake, clock):
        box = await pool.create(Spec())
        await pool.destroy(box)
        await clock.sleep(0.05)
        leaving = pool.status()["leaving"]
        await clock.sleep(30)
        return leaving, pool.status()["leaving"], fake.boxes

    rules = Rules(ahead=False, trust=Trust(uses=1))
    assert living(trial, rules, fail=thrice) == (1, 0, ())


def test_closing_over_a_substrate_that_destroys_nothing_says_so():
    async def trial(pool, fake, clock):
        await pool.create(Spec())
        fake._fail = {Phase.DESTROY: an_error(Phase.DESTROY)}
        with pytest.raises(SubstrateError, match="destroy failed"):
            await pool.close()
        fake._boxes.clear()

    living(trial, LAZY)


@st.composite
def schedules(draw):
    """When each rollout comes, what it wants, how long it acts, and whether it gives up."""
    image = st.sampled_from(["a/b/c", "a/b/d", "a/x", "z"])
    rollout = st.tuples(st.floats(0, 20), image, st.floats(0, 10), st.none() | st.floats(0, 15))
    return draw(st.lists(rollout, min_size=1, max_size=10))


@given(
    schedules(),
    st.sampled_from([Ward, Tree, Forking]),
    st.integers(1, 4),
    st.booleans(),
    st.sets(st.tuples(st.sampled_from(list(Phase)), st.integers(0, 12)), max_size=6),
)
@settings(max_examples=40, deadline=None)
def test_whatever_happens_the_budget_holds_everybody_is_answered_and_nothing_is_left(
    schedule, kind, most, ahead, failures
):
    def fail(phase, before):
        return an_error(phase, retryable=before % 2 == 0) if (phase, before) in failures else None

    async def rollout(pool, clock, start_s, image, act_s, patience_s):
        await clock.sleep(start_s)

        async def live():
            async with Session(pool, Spec(image=image), clock=clock) as session:
                await session.act(Action.shell(f"sleep {act_s}"))

        task = asyncio.create_task(live())
        if patience_s is not None:
            await clock.sleep(patience_s)
            task.cancel()
        ended = (await asyncio.gather(task, return_exceptions=True))[0]
        known = ended is None or isinstance(
            ended, SubstrateError | LifecycleError | asyncio.CancelledError
        )
        assert known, repr(ended)

    async def trial(pool, fake, clock):
        await asyncio.gather(*(rollout(pool, clock, *one) for one in schedule))
        status = pool.status()
        assert (status["held"], status["waiting"]) == (0, 0)
        return fake.most

    rules = Rules(budget=Budget(most), ahead=ahead, retries=Retries(first_s=0.5))
    assert living(trial, rules, kind=kind, fail=fail) <= most
