"""A session in written-down time: what is marked, and what is left when something breaks."""

from __future__ import annotations

import asyncio
import pickle

import pytest

from excise import (
    Action,
    Fake,
    FakeClock,
    InputError,
    Latencies,
    LifecycleError,
    Observation,
    Phase,
    Session,
    SubstrateError,
)
from excise.lifecycle import State
from excise.noting import note
from excise.tax.breakdown import break_down

S = 1_000_000_000
WRITTEN = Latencies(create_s=0.8, ready_s=0.2, run_s=0.05, destroy_s=0.3)


def a_fake(**more):
    clock = FakeClock(7 * S)
    return Fake(WRITTEN, clock=clock, **more), clock


def an_error(phase, **more):
    return SubstrateError("written down to fail", substrate="fake", phase=phase, **more)


def test_marks_are_exact_to_the_nanosecond():
    fake, clock = a_fake()

    async def trial():
        async with Session(fake, clock=clock, due_ns=6 * S) as session:
            async with session.setting_up():
                await session.act(Action.shell("sleep 2"))
            await session.act(Action.shell("sleep 0.25"))
            clock.advance(1.5)
            await session.act(Action(("sleep", "0.5")))
        return session.marks

    marks = asyncio.run(trial())
    parts = break_down(marks)
    assert (parts.queue_ns, parts.create_ns, parts.ready_ns) == (S, 800_000_000, 250_000_000)
    assert (parts.set_up_ns, parts.dispatch_ns, parts.inside_ns) == (
        2_050_000_000,
        100_000_000,
        750_000_000,
    )
    assert (parts.gap_ns, parts.cleanup_ns) == (1_500_000_000, 300_000_000)
    assert parts.total_ns == clock.now_ns() - 6 * S
    assert len(marks.set_up_actions) == 1


class Telling(Fake):
    """Sees more of its sandboxes' beginning than the contract asks for."""

    async def ready(self, box):
        note("answered")
        await super().ready(box)
        note("ready_seen")


def test_what_a_driver_notes_stands_beside_the_marks_and_moves_none_of_them():
    clock = FakeClock(7 * S)
    fake = Telling(WRITTEN, clock=clock)

    async def trial():
        async with Session(fake, clock=clock) as session:
            await session.act(Action(("true",)))
        return session

    session = asyncio.run(trial())
    assert session.taken["ready_seen"] - session.taken["answered"] == 200_000_000
    assert session.taken["ready"] - session.taken["ready_seen"] == 50_000_000
    parts = break_down(session.marks)
    assert (parts.create_ns, parts.ready_ns) == (800_000_000, 250_000_000)
    note("nobody listens")
    assert "nobody listens" not in session.taken


@pytest.mark.parametrize("phase", [Phase.CREATE, Phase.READY, Phase.RUN])
def test_a_failing_substrate_leaves_no_sandbox_and_keeps_the_marks_so_far(phase):
    fake, clock = a_fake(fail={phase: an_error(phase)})
    session = Session(fake, clock=clock)

    async def trial():
        async with session:
            await session.act(Action(("true",)))

    with pytest.raises(SubstrateError) as error:
        asyncio.run(trial())
    assert error.value.phase is phase
    assert fake.boxes == ()
    assert session.state is State.GONE
    assert ("created" in session.taken) == (phase is not Phase.CREATE)
    with pytest.raises(LifecycleError):
        _ = session.marks


def test_an_action_that_breaks_the_substrate_ends_the_session():
    fail = an_error(Phase.RUN)
    fake, clock = a_fake(fail=lambda phase, before: fail if (phase, before) == ("run", 2) else None)
    session = Session(fake, clock=clock)

    async def trial():
        async with session:
            await session.act(Action(("true",)))
            with pytest.raises(SubstrateError):
                await session.act(Action(("true",)))
            with pytest.raises(LifecycleError, match="broken"):
                await session.act(Action(("true",)))

    asyncio.run(trial())
    assert fake.boxes == ()
    assert len(session.marks.actions) == 1


def test_a_failing_destroy_is_raised_and_can_be_tried_again():
    fail = an_error(Phase.DESTROY, retryable=True)
    fake, clock = a_fake(
        fail=lambda phase, before: fail if (phase, before) == ("destroy", 0) else None
    )
    session = Session(fake, clock=clock)

    async def trial():
        with pytest.raises(SubstrateError, match="destroy"):
            async with session:
                pass
        assert session.state is State.BROKEN
        await session.end()

    asyncio.run(trial())
    assert (session.state, fake.boxes) == (State.GONE, ())


def test_a_probe_that_fails_is_a_failure_to_get_ready():
    fake, clock = a_fake(answers={"true": Observation(1, stderr=b"no true here")})
    with pytest.raises(SubstrateError, match="no true here") as error:
        asyncio.run(_enter(fake, clock))
    assert error.value.phase is Phase.READY
    assert fake.boxes == ()


@pytest.mark.parametrize("phase", [Phase.CREATE, Phase.READY, Phase.RUN])
def test_cancelling_in_any_phase_destroys_the_sandbox(phase):
    fake, clock = a_fake(hang={phase})

    async def trial():
        task = asyncio.create_task(_enter(fake, clock))
        for _ in range(50):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(trial())
    assert fake.boxes == ()


def test_cancelling_during_the_end_still_destroys():
    clock = FakeClock()
    fake = Fake(Latencies(destroy_s=1.0), clock=clock)

    async def trial():
        session = Session(fake, clock=clock)
        await session.__aenter__()
        task = asyncio.create_task(session.__aexit__(None, None, None))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert session.state is State.GONE

    asyncio.run(trial())
    assert fake.boxes == ()


def test_a_persistent_shell_is_marked_like_actions():
    fake, clock = a_fake()

    async def trial():
        async with Session(fake, clock=clock) as session:
            with pytest.raises(LifecycleError, match="open_shell"):
                await session.tell("true")
            await session.open_shell()
            told = await session.tell("echo hi; exit 3")
            assert (told.exit_code, told.stdout) == (3, b"hi\n")
            with pytest.raises(SubstrateError, match="shell has ended"):
                await session.tell("true")
        return session.marks

    assert len(asyncio.run(trial()).actions) == 1


def test_a_substrate_without_shells_is_said_so():
    class Bare:
        name = "bare"

    with pytest.raises(InputError, match="bare has no persistent shells"):
        asyncio.run(Session(Bare()).open_shell())


def test_no_action_after_the_end_and_no_set_up_after_an_action():
    fake, clock = a_fake()

    async def trial():
        async with Session(fake, clock=clock) as session:
            await session.act(Action(("true",)))
            with pytest.raises(LifecycleError, match="before the first action"):
                async with session.setting_up():
                    pass
        with pytest.raises(LifecycleError):
            await session.act(Action(("true",)))

    asyncio.run(trial())


def test_errors_survive_a_process_boundary():
    error = an_error(Phase.RESET, retryable=True)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.phase, again.retryable) == (
        SubstrateError,
        str(error),
        Phase.RESET,
        True,
    )


async def _enter(fake, clock):
    async with Session(fake, clock=clock):
        raise AssertionError("never entered")
