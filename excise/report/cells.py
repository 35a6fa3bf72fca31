"""One trial, and one cell of the design: from marks to times, from times to what is said of the cell."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from excise.errors import InputError
from excise.measure.record import Cell, TrialRecord
from excise.report.values import CellValues, Parts
from excise.tax.breakdown import Breakdown, ConservationError, break_down
from excise.tax.interval import Interval
from excise.tax.marks import ActionMarks
from excise.tax.split import Baseline, WorkTax, split
from excise.tax.stats import ecdf, mean, paired_ratio, quantile, standing


@dataclass(frozen=True, slots=True)
class Measured:
    """One trial's times in seconds: infinite where it failed, so that quantiles do not forget it."""

    block: tuple[int, int]
    actions: int
    failure: str | None
    parts: Breakdown | None
    taxed: WorkTax | None
    cpu_s: float | None
    dispatch_s: float | None = None
    """The median over the trial's actions."""
    steal_share: float | None = None

    @property
    def tti_s(self) -> float:
        return math.inf if self.parts is None else self.parts.tti_ns / 1e9

    @property
    def episode_s(self) -> float:
        return math.inf if self.parts is None else self.parts.episode_ns / 1e9

    @property
    def total_s(self) -> float:
        return math.inf if self.parts is None else self.parts.total_ns / 1e9

    @property
    def varying_s(self) -> float:
        """What grows with the number of actions."""
        return 0.0 if self.parts is None else (self.parts.acting_ns + self.parts.gap_ns) / 1e9


def measure(trial: TrialRecord, baseline: Baseline | None) -> Measured:
    """The times of one trial; a trial that is not ok has none, whatever marks it took."""
    block = (trial.session, trial.block)
    actions, cpu_s, steal = trial.actions_planned, trial.noise.cpu_s, trial.noise.steal_share
    if trial.outcome != "ok":
        return Measured(block, actions, trial.outcome, None, None, cpu_s, steal_share=steal)
    try:
        marks = trial.complete
        parts = break_down(marks)
        taxed = split(marks, baseline.work(block)) if baseline is not None else None
    except (KeyError, ConservationError, InputError) as error:
        kind = "conservation" if isinstance(error, ConservationError) else "incomplete record"
        return Measured(block, actions, kind, None, None, cpu_s, steal_share=steal)
    return Measured(block, actions, None, parts, taxed, cpu_s, _typical(marks.actions), steal)


def _typical(actions: Sequence[ActionMarks]) -> float | None:
    """The median dispatch of a trial's actions, where all of them were timed inside."""
    known = [a.received_ns - a.sent_ns - a.inside_ns for a in actions if a.inside_ns is not None]
    return median(known) / 1e9 if known and len(known) == len(actions) else None


def named(workload: str) -> tuple[str, str | None, str]:
    """`K150:attrs-1417+arc` as tier, task and variant."""
    base, _, variant = workload.partition("+")
    tier, _, task = base.partition(":")
    return tier, task or None, variant


def cell_values(
    cell: Cell,
    rows: Sequence[Measured],
    *,
    warm_ups: int,
    cache: str,
    bare: Sequence[Measured] | None,
) -> CellValues:
    """All that is said of one cell; without trials, only that it has none."""
    tier, task, variant = named(cell.workload)
    ok = [m for m in rows if m.parts is not None]
    taxed = [m.taxed for m in ok if m.taxed is not None]
    return CellValues(
        label=cell.label,
        substrate=cell.substrate,
        workload=cell.workload,
        tier=tier,
        task=task,
        variant="+".join(x for x in (variant, "" if cache == "warm" else cache) if x),
        actions=max((m.actions for m in rows), default=0),
        n=len(rows),
        failures=dict(sorted(Counter(m.failure for m in rows if m.failure).items())),
        warm_ups=warm_ups,
        tti_p50=_quantile(rows, 0.5, lambda m: m.tti_s),
        tti_p95=_quantile(rows, 0.95, lambda m: m.tti_s),
        episode_p50=_quantile(rows, 0.5, lambda m: m.episode_s),
        tti_p99=_quantile(rows, 0.99, lambda m: m.tti_s),
        episode_p95=_quantile(rows, 0.95, lambda m: m.episode_s),
        episode_p99=_quantile(rows, 0.99, lambda m: m.episode_s),
        total_p50=_quantile(rows, 0.5, lambda m: m.total_s),
        total_p95=_quantile(rows, 0.95, lambda m: m.total_s),
        total_mean=_mean([m.total_s for m in ok]),
        amortised_p50=_quantile(rows, 0.5, lambda m: m.episode_s / max(m.actions, 1)),
        dispatch_p50=_median_dispatch(ok),
        dispatch_per_action=_mean(_dispatch(ok)),
        tax_per_action=_mean([t.action_tax_ns / 1e9 / t.actions for t in taxed if t.actions]),
        work_mean=_mean([t.work_ns / 1e9 for t in taxed]),
        tax_mean=_mean([t.tax_ns / 1e9 for t in taxed]),
        tax_share=_mean([_share(t) for t in taxed], at_most=1.0),
        cpu_p50=_quantile([m for m in ok if m.cpu_s is not None], 0.5, lambda m: m.cpu_s or 0.0),
        parts=_parts(ok, taxed),
        episode_vs_bare=_ratio(rows, bare, lambda m: m.episode_s),
        tti_vs_bare=_ratio(rows, bare, lambda m: m.tti_s),
        curve=ecdf([m.tti_s for m in rows]) if rows else None,
    )


def _quantile(
    rows: Sequence[Measured], q: float, of: Callable[[Measured], float]
) -> Interval | None:
    """The quantile where n allows one to be stated, with its lower bound alone where that is all there is."""
    found = [of(m) for m in rows]
    what = standing(len(found), q)
    return None if what == "none" else quantile(found, q)


def _mean(values: Sequence[float], at_most: float = math.inf) -> Interval | None:
    """The mean; what can never be above a limit, such as a share, has no bound above it."""
    found = mean(values) if values else None
    if found is None or found.high is None or found.high <= at_most:
        return found
    return replace(found, high=at_most)


def _ratio(
    rows: Sequence[Measured], bare: Sequence[Measured] | None, of: Callable[[Measured], float]
) -> Interval | None:
    if bare is None or rows is bare:
        return None
    try:
        return paired_ratio({m.block: of(m) for m in rows}, {m.block: of(m) for m in bare})
    except InputError:
        return None


def _dispatch(ok: Sequence[Measured]) -> list[float]:
    """Per trial, the mean dispatch of its actions; nothing where any trial cannot tell."""
    parts = [m.parts for m in ok if m.parts is not None and m.parts.actions]
    if any(p.dispatch_ns is None for p in parts):
        return []
    return [(p.dispatch_ns or 0) / 1e9 / p.actions for p in parts]


def _median_dispatch(ok: Sequence[Measured]) -> Interval | None:
    known = [m.dispatch_s for m in ok if m.dispatch_s is not None]
    return quantile(known, 0.5) if known and len(known) == len(ok) else None


def _share(t: WorkTax) -> float:
    whole = t.tax_ns + t.work_ns
    return t.tax_ns / whole if whole else 0.0


def _parts(ok: Sequence[Measured], taxed: Sequence[WorkTax]) -> Parts | None:
    """Mean components; work, slowdown and dispatch only where every trial knows them."""
    parts = [m.parts for m in ok if m.parts is not None]
    if not parts:
        return None
    complete = len(taxed) == len(parts)
    return Parts(
        queue=_average([p.queue_ns for p in parts]),
        create=_average([p.create_ns for p in parts]),
        ready=_average([p.ready_ns for p in parts]),
        set_up=_average([p.set_up_ns for p in parts]),
        acting=_average([p.acting_ns for p in parts]),
        gap=_average([p.gap_ns for p in parts]),
        cleanup=_average([p.cleanup_ns for p in parts]),
        total=_average([p.total_ns for p in parts]),
        work=_average([t.work_actions_ns for t in taxed]) if complete else None,
        slowdown=_known([t.slowdown_ns for t in taxed]) if complete else None,
        dispatch=_known([p.dispatch_ns for p in parts]),
    )


def _average(values: Sequence[int]) -> float:
    return sum(values) / len(values) / 1e9


def _known(values: Sequence[int | None]) -> float | None:
    """The mean, or nothing as soon as one trial cannot tell."""
    known = [v for v in values if v is not None]
    return _average(known) if known and len(known) == len(values) else None
