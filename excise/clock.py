"""Time, as a value one can replace: `SystemClock` for real, `FakeClock` for written-down time."""

from __future__ import annotations

import asyncio
import heapq
import time
from typing import Protocol


class Clock(Protocol):
    """Monotonic integer nanoseconds, and a sleep on the same time line."""

    def now_ns(self) -> int: ...
    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """`CLOCK_MONOTONIC` of this process."""

    def now_ns(self) -> int:
        return time.perf_counter_ns()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class FakeClock:
    """Time that passes only when everybody sleeps: `sleep(0.25)` takes exactly 0.25 s, at once.

    Sleepers wake in the order of their times. The earliest one moves the clock when for `turns` turns of the
    event loop nobody woke or went to sleep: until then somebody is still running. Where one step of a program
    takes many turns between its sleeps, as gathering and cancelling do, say so.
    """

    def __init__(self, start_ns: int = 0, *, turns: int = 4) -> None:
        self._now_ns = start_ns
        self._turns = turns
        self._stirs = 0
        self._sleepers: list[tuple[int, int]] = []
        self._count = 0

    def now_ns(self) -> int:
        return self._now_ns

    def advance(self, seconds: float) -> None:
        """Move time by hand, as work that nobody awaits would."""
        self._now_ns += round(seconds * 1e9)

    async def sleep(self, seconds: float) -> None:
        self._count += 1
        me = (self._now_ns + round(seconds * 1e9), self._count)
        heapq.heappush(self._sleepers, me)
        self._stirs += 1
        try:
            while True:
                stirred = self._stirs
                for _ in range(self._turns):
                    await asyncio.sleep(0)
                quiet = self._stirs == stirred or me[0] <= self._now_ns
                if self._sleepers[0] == me and quiet:
                    break
        finally:
            self._sleepers.remove(me)
            heapq.heapify(self._sleepers)
            self._stirs += 1
        self._now_ns = max(self._now_ns, me[0])
