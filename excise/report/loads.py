"""What came of the load shapes: open loop, so that every latency counts from when the trial was due."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from excise.measure.load import summarise
from excise.measure.record import StudyRecord, TrialRecord
from excise.report.values import Load
from excise.tax.interval import Interval
from excise.tax.stats import quantile, standing


def loads(record: StudyRecord, trials: Sequence[TrialRecord]) -> tuple[Load, ...]:
    """One row per session, cell and shape, in the study's order."""
    runs: dict[tuple[str, str, int], list[TrialRecord]] = {}
    order = {c.name: i for i, c in enumerate(record.cells)}
    for t in sorted(trials, key=lambda t: order.get(t.cell, len(order))):
        if t.load is not None and {"due", "requested"} <= t.marks.keys():
            runs.setdefault((t.cell, t.load, t.session), []).append(t)
    return tuple(_load(mine, shape) for (_, shape, _), mine in runs.items())


def _load(trials: Sequence[TrialRecord], shape: str) -> Load:
    found = summarise(trials)
    start = min(t.marks["due"] for t in trials)
    ttis = [_until_ready(t, "due") for t in trials]
    first = trials[0]
    return Load(
        label=first.cell.removesuffix(f"@{shape}").removesuffix(f"/{first.workload}"),
        workload=first.workload,
        load=shape,
        n=len(trials),
        failures=dict(sorted(Counter(t.outcome for t in trials if t.outcome != "ok").items())),
        tti_p50=_quantile(ttis, 0.5),
        tti_p95=_quantile(ttis, 0.95),
        tti_p99=_quantile(ttis, 0.99),
        service_p50=_quantile([_until_ready(t, "requested") for t in trials], 0.5),
        first_s=found.first_ready_s,
        last_s=found.all_ready_s,
        per_second=found.per_second,
        latest_s=found.latest_s,
        memory_each_bytes=_memory_each(trials),
        void=found.void,
        asked=tuple(sorted((t.marks["due"] - start) / 1e9 for t in trials)),
        answered=tuple(
            sorted((t.marks["ready"] - start) / 1e9 for t in trials if "ready" in t.marks)
        ),
    )


def _memory_each(trials: Sequence[TrialRecord]) -> float | None:
    noise = trials[0].noise
    if noise.available_before_bytes is None or noise.lowest_bytes is None:
        return None
    return max(0, noise.available_before_bytes - noise.lowest_bytes) / _most_at_once(trials)


def _most_at_once(trials: Sequence[TrialRecord]) -> int:
    """By the marks: from when each was asked for until the last that is known of it."""
    steps = sorted(
        step for t in trials for step in ((t.marks["requested"], 1), (max(t.marks.values()), -1))
    )
    return max(1, *accumulate(change for _, change in steps))


def _until_ready(trial: TrialRecord, since: str) -> float:
    if trial.outcome != "ok":
        return math.inf
    return (trial.marks["ready"] - trial.marks[since]) / 1e9


def _quantile(values: Sequence[float], q: float) -> Interval | None:
    return None if standing(len(values), q) == "none" else quantile(values, q)
