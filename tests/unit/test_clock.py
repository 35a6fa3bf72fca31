"""Written-down time passes only when everybody sleeps, and then exactly."""

from __future__ import annotations

import asyncio
import time

from hypothesis import given
from hypothesis import strategies as st

from excise.clock import FakeClock, SystemClock

SECONDS = st.integers(0, 10**12).map(lambda ns: ns / 1e9)


@given(st.lists(SECONDS, max_size=8), st.integers(0, 10**12))
def test_sleeps_one_after_another_add_up_to_the_nanosecond(sleeps, start_ns):
    clock = FakeClock(start_ns)

    async def sleep_all():
        for seconds in sleeps:
            await clock.sleep(seconds)

    asyncio.run(sleep_all())
    assert clock.now_ns() == start_ns + sum(round(s * 1e9) for s in sleeps)


@given(st.lists(SECONDS, min_size=1, max_size=8))
def test_sleepers_wake_in_the_order_of_their_times_at_their_times(sleeps):
    clock = FakeClock()
    woken = []

    async def sleeper(seconds):
        await clock.sleep(seconds)
        woken.append((clock.now_ns(), round(seconds * 1e9)))

    async def together():
        await asyncio.gather(*(sleeper(s) for s in sleeps))

    asyncio.run(together())
    assert woken == sorted((t, t) for t in (round(s * 1e9) for s in sleeps))


def test_a_cancelled_sleeper_holds_nobody_up():
    clock = FakeClock()

    async def scenario():
        first = asyncio.create_task(clock.sleep(1.0))
        second = asyncio.create_task(clock.sleep(5.0))
        await asyncio.sleep(0)
        first.cancel()
        await second

    asyncio.run(scenario())
    assert clock.now_ns() == 5_000_000_000


def test_time_moved_by_hand_is_seen_by_sleepers():
    clock = FakeClock()

    async def scenario():
        sleeping = asyncio.create_task(clock.sleep(1.0))
        await asyncio.sleep(0)
        clock.advance(3.0)
        await sleeping

    asyncio.run(scenario())
    assert clock.now_ns() == 3_000_000_000


def test_the_system_clock_is_the_monotonic_clock_of_this_process():
    before = time.perf_counter_ns()
    now = SystemClock().now_ns()
    assert before <= now <= time.perf_counter_ns()
