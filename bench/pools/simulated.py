"""Which worker gets which rollout: the scheduler's own code at 10,000 workers, in written-down time.

Rollouts are drawn once per load and every policy meets the same; the loads are steps of a trainer (all at
once) and a stream, popular by Zipf and uniform, with favourites that change and workers that are lost. What
is simulated is the same on every machine. The prices of the stages are inputs; `warm` passes those that it has
measured on this host. The last row alone is timed.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator, Sequence

from bench.convention import Row, interleaved
from excise.scheduler.assign import assignment
from excise.scheduler.idle import Worker
from excise.scheduler.loads import Forest, Prices, losses, rollouts, uniform, zipf
from excise.scheduler.rivals import policies
from excise.scheduler.simulate import Fleet, Outcome, Rollout, simulate
from excise.scheduler.waiting import Wanted

WORKERS, ROLLOUTS = 10_000, 100_000
FOREST = Forest(images=20, repos=25, commits=20)
OURS = "least work left"
RIVALS = ("round robin", "random", "exact key", "image only")
STRONGER = ("exact key, pulled", "image only, pulled")


def rows(prices: Prices) -> Iterator[Row]:
    """`prices` are seconds as measured."""
    for label, load, fleet in _loads(prices):
        reach = 0.85 if label == "Zipf" else 1.02
        yield from _compared(label, load, fleet, reach)
    yield _timed(prices, 1_000)


def _loads(prices: Prices) -> Iterator[tuple[str, list[Rollout], Fleet]]:
    popular, flat = zipf(FOREST.tasks), uniform(FOREST.tasks)
    fleet, rate = Fleet(WORKERS, 2), 0.012 * WORKERS
    yield "Zipf", rollouts(ROLLOUTS, FOREST, prices, popular, seed=1), fleet
    yield "uniform", rollouts(ROLLOUTS, FOREST, prices, flat, seed=2), fleet
    changing = ROLLOUTS // 10
    churning = rollouts(ROLLOUTS, FOREST, prices, popular, seed=3, churn_every=changing)
    yield "favourites change", churning, fleet
    lost = losses(WORKERS, share=0.05, within_s=200.0, away_s=60.0, seed=5)
    steady = rollouts(ROLLOUTS, FOREST, prices, popular, seed=4)
    yield "5 % of workers lost", steady, Fleet(WORKERS, 2, lost)
    stream = rollouts(ROLLOUTS // 5, FOREST, prices, popular, seed=6, rate_per_s=rate)
    yield "stream", stream, fleet


def _compared(label: str, load: Sequence[Rollout], fleet: Fleet, reach: float) -> Iterator[Row]:
    makers = policies(seed=11)
    stronger = STRONGER if label == "Zipf" else ()
    outcomes = {name: simulate(load, fleet, makers[name]()) for name in (OURS, *RIVALS, *stronger)}
    mine = outcomes[OURS]
    for rivals, bound in ((RIVALS, reach), *(((stronger, 1.02),) if stronger else ())):
        best = min(rivals, key=lambda name: outcomes[name].makespan_s)
        yield _row(
            f"simulated, {label}: makespan",
            mine.makespan_s,
            best,
            outcomes[best].makespan_s,
            mine,
            bound,
        )
    busy = min(RIVALS, key=lambda name: outcomes[name].prepared_s)
    prepared_s = outcomes[busy].prepared_s
    yield _row(f"simulated, {label}: preparation", mine.prepared_s, busy, prepared_s, mine, 1.02)


def _row(
    name: str, mine_s: float, rival: str, theirs_s: float, outcome: Outcome, reach: float
) -> Row:
    """The two times are of the wait from arrival to the first action, in simulated microseconds."""
    waits = outcome.waits_s
    return Row(
        name=name,
        value=mine_s / theirs_s,
        baseline=rival,
        reach=reach,
        aim=0.8,
        n=len(waits),
        p50_us=statistics.median(waits) * 1e6,
        p95_us=statistics.quantiles(waits, n=20, method="inclusive")[-1] * 1e6,
    )


def _timed(prices: Prices, waiting: int) -> Row:
    """One assignment, when that many wait for that many workers: indexes built, all of them matched."""
    load = rollouts(waiting, FOREST, prices, zipf(FOREST.tasks), seed=8)
    wanted = [Wanted(r.name, r.path, f"owner{i % 4}") for i, r in enumerate(load)]
    held = rollouts(WORKERS, FOREST, prices, zipf(FOREST.tasks), seed=9)
    idle = [Worker(str(i), tuple(s.key for s in r.path)) for i, r in enumerate(held)]
    taken = interleaved(
        {"true": _spawn_true, "assign": lambda: assignment(wanted, idle)}, rounds=30
    )
    one, baseline = taken["assign"], taken["true"]
    return Row(
        name=f"one assignment of {waiting:,} at {WORKERS:,} workers",
        value=one.p50_us / waiting / baseline.p50_us,
        baseline="start /bin/true and wait",
        reach=1.5,
        aim=0.2,
        n=len(one.times_us),
        p50_us=one.p50_us / waiting,
        p95_us=one.p95_us / waiting,
    )


def _spawn_true() -> None:
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(pid, 0)
