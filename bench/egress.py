"""What a rollout waits for its network beyond the jail: a keeper that waited for it, against one started for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from bench.convention import Row, Sample, interleaved
from excise.jail.blocking import Jail
from excise.jail.egress import Network, open_egress_now
from excise.jail.uplinks import Uplinks
from excise.types import Egress

ROUNDS = 40
PAUSE_S = 0.15
"""Between two, as agents think: the next keeper is ready by then, and the last one gone."""


def rows() -> Iterator[Row]:
    uplinks = Uplinks()
    ends: list[int] = []
    closes: list[int] = []

    def waiting() -> int:
        with jail.create() as box:
            start = time.perf_counter_ns()
            network = uplinks.open_now(box.pid, Egress.FULL)
            spent = time.perf_counter_ns() - start
            ends.append(_timed(lambda: uplinks.let_go(network)))
        time.sleep(PAUSE_S)
        return spent

    def started() -> int:
        with jail.create() as box:
            start = time.perf_counter_ns()
            network: Network = open_egress_now(box.pid, Egress.FULL)
            spent = time.perf_counter_ns() - start
            closes.append(_timed(network.close_now))
        time.sleep(PAUSE_S)
        return spent

    with Jail() as jail:
        taken = interleaved({"waiting": waiting, "started": started}, rounds=ROUNDS)
        uplinks.close()
    opened, alone = taken["waiting"], taken["started"]
    yield _row(
        "egress opened by a keeper that waited", opened, alone, "by one started for it", 0.75
    )
    let_go, closed = (Sample(tuple(ns / 1000 for ns in each)) for each in (ends, closes))
    yield _row("egress let go of", let_go, closed, "waiting until its tools are gone", 0.05)


def _timed(work: Callable[[], object]) -> int:
    start = time.perf_counter_ns()
    work()
    return time.perf_counter_ns() - start


def _row(name: str, mine: Sample, theirs: Sample, baseline: str, reach: float) -> Row:
    value = mine.p50_us / theirs.p50_us
    return Row(
        name, value, baseline, reach, reach / 2, len(mine.times_us), mine.p50_us, mine.p95_us
    )
