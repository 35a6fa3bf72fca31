"""What the harness itself costs: whole trials and single actions on a substrate that does nothing."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import pairwise

from excise.clock import Clock, SystemClock
from excise.measure.judge import judge
from excise.measure.plan import Slot
from excise.measure.record import Cell, Overhead
from excise.measure.trial import Setting, perform
from excise.substrates.base import Substrate
from excise.workloads.base import Listed, Site, Step

TRIALS = 200
ACTIONS = 300
CLOCK_READS = 2000


async def measure_overhead(
    null: Substrate, *, clock: Clock | None = None, trials: int = TRIALS
) -> Overhead:
    """p50 and p95 of a trial with one action, and of one action among many, when nothing is done."""
    clock = clock or SystemClock()
    one, many = _setting(null, 1), _setting(null, ACTIONS)
    for _ in range(trials // 10 + 1):
        await _trial_us(one, clock)
    whole = [await _trial_us(one, clock) for _ in range(trials)]
    seen = await perform(many, clock=clock, nonce="overhead")
    sent = [marks.sent_ns for _, marks, _ in seen.actions]
    steps = [(b - a) / 1e3 for a, b in pairwise(sent)]
    return Overhead(
        trial_us=_p50_p95(whole),
        action_us=_p50_p95(steps),
        clock_ns=_clock_ns(clock),
        trials=trials,
    )


async def _trial_us(setting: Setting, clock: Clock) -> float:
    """Everything that happens per trial: preparing, running, judging."""
    began = clock.now_ns()
    seen = await perform(setting, clock=clock, nonce="overhead")
    judge(seen, setting, Slot(1, 0, 0, setting.cell, 0), study="overhead")
    return (clock.now_ns() - began) / 1e3


def _setting(null: Substrate, actions: int) -> Setting:
    step = Step("command", "echo rollout-ready", exit_code=None)

    def listed(_: Site) -> tuple[Step, ...]:
        return (step,) * actions

    workload = Listed(f"null:{actions}", listed)
    return Setting(Cell(label="null", substrate="fake", workload=workload.name), null, workload)


def _clock_ns(clock: Clock) -> float:
    began = clock.now_ns()
    for _ in range(CLOCK_READS):
        clock.now_ns()
    return (clock.now_ns() - began) / CLOCK_READS


def _p50_p95(values: Sequence[float]) -> tuple[float, float]:
    cuts = statistics.quantiles(values, n=20, method="inclusive")
    return round(cuts[9], 3), round(cuts[18], 3)
