"""The one convention of all benchmarks: rows of ratios, each taken in one run against its baseline.

A benchmark is a module `bench/NAME.py` with `def rows() -> Iterator[Row]`. These machines are shared and
noisy, so a bare time says little: `interleaved` alternates the candidates round by round, and a row's
value is a ratio of medians of that run. `reach` must hold; `aim` is where we want to be.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One promise. `value` is a ratio (lower is better unless `higher`), `ok` says whether `reach` holds."""

    name: str
    value: float
    baseline: str
    reach: float
    aim: float
    n: int
    p50_us: float
    p95_us: float
    higher: bool = False

    @property
    def ok(self) -> bool:
        return self.value >= self.reach if self.higher else self.value <= self.reach

    def as_json(self) -> dict[str, object]:
        fields = {k: v for k, v in asdict(self).items() if k != "higher"}
        return fields | {"ok": self.ok}


@dataclass(frozen=True, slots=True)
class Sample:
    """The times of one candidate, in microseconds, in the order they were taken."""

    times_us: tuple[float, ...]

    @property
    def p50_us(self) -> float:
        return statistics.median(self.times_us)

    @property
    def p95_us(self) -> float:
        return statistics.quantiles(self.times_us, n=20, method="inclusive")[-1]


def interleaved(
    candidates: Mapping[str, Callable[[], object]],
    *,
    rounds: int,
    warm_ups: int = 3,
    rotate: bool = True,
) -> dict[str, Sample]:
    """Time every candidate once per round, in an order that rotates, so that noise falls on all alike.

    A candidate that times itself returns its nanoseconds as an int. Where one needs what the one before it
    made, the order stays.
    """
    names = list(candidates)
    times: dict[str, list[float]] = {name: [] for name in names}
    for i in range(warm_ups + rounds):
        turn = i % len(names) if rotate else 0
        for name in names[turn:] + names[:turn]:
            call = candidates[name]
            start = time.perf_counter_ns()
            timed = call()
            spent = timed if type(timed) is int else time.perf_counter_ns() - start
            if i >= warm_ups:
                times[name].append(spent / 1000)
    return {name: Sample(tuple(taken)) for name, taken in times.items()}
