"""T(K) = F + K p: what a rollout costs once and what it costs per action, from trials of several lengths."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np
from scipy import stats

from excise.errors import InputError
from excise.tax.interval import Interval
from excise.tax.stats import BCA_FROM, SEED, Floats

RESAMPLES = 1_999


@dataclass(frozen=True, slots=True)
class Timed:
    """One trial's total time at one length."""

    block: Hashable
    actions: int
    total_s: float


@dataclass(frozen=True, slots=True)
class Fit:
    """A least-squares line, because projections need means, which add up; Theil-Sen as a robust second look."""

    fixed_s: Interval
    per_action_s: Interval
    robust_fixed_s: float
    robust_per_action_s: float
    lack: float
    """The largest relative distance between the mean at a measured length and the line."""
    measured: tuple[int, ...]
    n: int

    def at(self, actions: float) -> float:
        return self.fixed_s.estimate + actions * self.per_action_s.estimate

    def extrapolates(self, actions: float) -> bool:
        """Whether this length lies outside those that were measured."""
        return not self.measured[0] <= actions <= self.measured[-1]


def fit(trials: Iterable[Timed], *, level: float = 0.95, seed: int = SEED) -> Fit:
    """Fit F and p over all trials; intervals by resampling whole blocks, approximate below 30 of them."""
    rows = list(trials)
    k = np.array([t.actions for t in rows], dtype=np.float64)
    total = np.array([t.total_s for t in rows], dtype=np.float64)
    if np.unique(k).size < 2:
        raise InputError("F + K p needs trials of at least two different lengths")
    if not np.isfinite(total).all():
        raise InputError("F + K p is fitted to trials that came through")
    p, f = _line(k, total)
    robust = stats.theilslopes(total, k)
    low, high = _bounds(rows, k, total, level, seed)
    few = len({t.block for t in rows}) < BCA_FROM

    def interval(estimate: float, i: int) -> Interval:
        bounds = (low and low[i], high and high[i])
        return Interval(estimate, *bounds, n=len(rows), level=level, approximate=few)

    lengths = np.unique(k)
    means = np.array([total[k == length].mean() for length in lengths])
    return Fit(
        fixed_s=interval(f, 0),
        per_action_s=interval(p, 1),
        robust_fixed_s=float(robust.intercept),
        robust_per_action_s=float(robust.slope),
        lack=float(np.max(np.abs(f + p * lengths - means) / means)),
        measured=tuple(int(length) for length in lengths),
        n=len(rows),
    )


Bounds = tuple[float, float] | None


def _bounds(
    rows: list[Timed], k: Floats, total: Floats, level: float, seed: int
) -> tuple[Bounds, Bounds]:
    """Percentile bounds of (F, p), from the blocks' sums: a resample of blocks is a sum of sums."""
    blocks = {b: i for i, b in enumerate(dict.fromkeys(t.block for t in rows))}
    if len(blocks) < 2:
        return None, None
    index = [blocks[t.block] for t in rows]
    sums = np.zeros((len(blocks), 5))
    np.add.at(sums, index, np.column_stack([np.ones_like(k), k, total, k * k, k * total]))
    drawn = np.random.default_rng(seed).integers(0, len(blocks), size=(RESAMPLES, len(blocks)))
    n, sk, st, skk, skt = sums[drawn].sum(axis=1).T
    spread = n * skk - sk * sk
    usable = spread > 0
    p = (n * skt - sk * st)[usable] / spread[usable]
    f = (st[usable] - p * sk[usable]) / n[usable]
    tail = (1 - level) / 2
    low, high = np.quantile(np.column_stack([f, p]), [tail, 1 - tail], axis=0).tolist()
    return (low[0], low[1]), (high[0], high[1])


def _line(k: Floats, total: Floats) -> tuple[float, float]:
    found = stats.linregress(k, total)
    return float(found.slope), float(found.intercept)
