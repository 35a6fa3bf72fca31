"""Load shapes: when sandboxes are asked for, drawn before the run, whatever the answers do (open loop).

    burst:N            N at once
    staggered:N:S      N, one every S seconds (0.2 if left out)
    poisson:N:RATE     N at random, RATE per second on average
    wave:B:N:S         N waves of B at once, one every S seconds: the steps of a synchronous trainer
    closed:W:N         N in all, W workers always busy: a closed loop, in which the next one waits for an answer

A latency counts from the intended time, so that a stalled generator or a queue is not left out. The
generator proves itself: a run in which it asked 5 ms too late even once is void.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from excise.clock import Clock
from excise.errors import InputError
from excise.measure.judge import judge
from excise.measure.plan import Slot
from excise.measure.record import TrialRecord
from excise.measure.trial import Setting, perform, rehearse

LATE_NS = 5_000_000
LEAD_S = 0.05
"""Between drawing the plan and the first arrival."""

MOST = 10_000

KNOWN = "burst:N, staggered:N[:SECONDS], poisson:N:RATE, wave:SIZE:COUNT:SECONDS, closed:WORKERS:N"
CLOSED = "closed"


def arrivals(shape: str, seed: int) -> tuple[float, ...]:
    """The intended times in seconds from the start, in order; in a closed loop nothing but how many."""
    kind, *rest = shape.split(":")
    try:
        numbers = [float(word) for word in rest]
    except ValueError:
        raise _unknown(shape) from None
    if not numbers or not all(math.isfinite(n) and n > 0 for n in numbers):
        raise _unknown(shape)
    count = int(numbers[0])
    if any(n != int(n) for n in numbers[: 2 if kind in ("wave", CLOSED) else 1]):
        raise _unknown(shape)
    match kind, numbers:
        case "burst", [_]:
            times = (0.0,) * count
        case "staggered", [_] | [_, _]:
            gap = numbers[1] if len(numbers) > 1 else 0.2
            times = tuple(i * gap for i in range(count))
        case "poisson", [_, rate]:
            times = _poisson(count, rate, seed)
        case "wave", [_, waves, gap]:
            times = tuple(w * gap for w in range(int(waves)) for _ in range(count))
        case "closed", [_, all_of_them]:
            times = (0.0,) * int(all_of_them)
        case _:
            raise _unknown(shape)
    if len(times) > MOST:
        raise InputError(f"load {shape!r} asks for {len(times)} sandboxes; at most {MOST}")
    return times


def workers_of(shape: str) -> int | None:
    """How many are busy in a closed loop; None for an open one."""
    kind, *numbers = shape.split(":")
    return int(float(numbers[0])) if kind == CLOSED else None


def _poisson(count: int, rate: float, seed: int) -> tuple[float, ...]:
    drawn = random.Random(f"poisson/{seed}")  # noqa: S311 - arrival times, not a secret
    now, times = 0.0, []
    for _ in range(count):
        now += drawn.expovariate(rate)
        times.append(now)
    return tuple(times)


def _unknown(shape: str) -> InputError:
    return InputError(f"unknown load shape {shape!r}; known: {KNOWN}")


async def run_load(
    setting: Setting, *, clock: Clock, study: str, session: int, seed: int
) -> list[TrialRecord]:
    """Ask for every sandbox at its time, let each run its workload, and record all of them."""
    shape = setting.cell.load or "burst:1"
    times = arrivals(shape, seed)
    nonces = [f"{seed:x}l{i}" for i in range(len(times))]
    ready = [rehearse(setting, nonce) for nonce in nonces]
    start_ns = clock.now_ns() + round(LEAD_S * 1e9)
    workers = workers_of(shape)
    free = asyncio.Semaphore(workers or len(times))

    async def arrive(i: int) -> TrialRecord:
        due_ns = start_ns + round(times[i] * 1e9)
        await clock.sleep((due_ns - clock.now_ns()) / 1e9)
        async with free:
            return await ask(i, due_ns if workers is None else clock.now_ns())

    async def ask(i: int, due_ns: int) -> TrialRecord:
        seen = await perform(setting, clock=clock, nonce=nonces[i], due_ns=due_ns, sending=ready[i])
        slot = Slot(session, i, i, setting.cell, seed)
        return judge(seen, setting, slot, study=study, load=shape, intended_ns=due_ns)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(arrive(i)) for i in range(len(times))]
    return [task.result() for task in tasks]


@dataclass(frozen=True, slots=True)
class LoadSummary:
    """What came of one load run; times count from the first intended arrival."""

    asked: int
    succeeded: int
    first_ready_s: float | None
    all_ready_s: float | None
    """None where one of them never became ready."""
    ended_s: float
    per_second: float
    """Trials that went through, over the time until the last ended."""
    latest_s: float
    """The worst lateness of the generator itself."""

    @property
    def success_rate(self) -> float:
        return self.succeeded / self.asked if self.asked else math.nan

    @property
    def void(self) -> bool:
        return self.latest_s * 1e9 >= LATE_NS


def summarise(trials: Sequence[TrialRecord]) -> LoadSummary:
    """The summary of the trials of one load run."""
    start = min(t.marks["due"] for t in trials)
    ready = [t.marks["ready"] for t in trials if "ready" in t.marks]
    ok = [t for t in trials if t.outcome == "ok"]
    ended = (max(max(t.marks.values()) for t in trials) - start) / 1e9
    return LoadSummary(
        asked=len(trials),
        succeeded=len(ok),
        first_ready_s=(min(ready) - start) / 1e9 if ready else None,
        all_ready_s=(max(ready) - start) / 1e9 if len(ready) == len(trials) else None,
        ended_s=ended,
        per_second=len(ok) / ended if ended else math.nan,
        latest_s=max((t.marks["requested"] - t.marks["due"]) / 1e9 for t in trials),
    )
