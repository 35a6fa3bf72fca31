"""Companions of the paired ratio: effect sizes, tests, ratios of tails, and the max/min of many."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import stats

from excise.errors import InputError
from excise.tax.interval import Interval
from excise.tax.stats import SEED, Floats, pairs

RESAMPLES = 1_999


@dataclass(frozen=True, slots=True)
class Companions:
    """What may stand beside a paired ratio, never in its place."""

    shift: Interval
    """Hodges-Lehmann: the median difference a - b over all averages of two blocks' differences."""
    cliffs_delta: float
    """Share of pairs with a > b less the share with a < b: -1 to 1, 0 for equal distributions."""
    mann_whitney_p: float
    wilcoxon_p: float


def companions(
    a_by_block: Mapping[Any, float],
    b_by_block: Mapping[Any, float],
    *,
    level: float = 0.95,
    seed: int = SEED,
) -> Companions:
    """All of them for one declared pair; the effect size and the rank test count failures as slowest."""
    a, b, failed = pairs(a_by_block, b_by_block)
    everything_a = list(a_by_block.values())
    everything_b = list(b_by_block.values())
    u = stats.mannwhitneyu(everything_a, everything_b, method="asymptotic")
    pairs_of_trials = len(everything_a) * len(everything_b)
    differences = a - b
    return Companions(
        shift=_shift(differences, failed, level, seed),
        cliffs_delta=float(2 * u.statistic / pairs_of_trials - 1),
        mann_whitney_p=_p(float(u.pvalue)),
        wilcoxon_p=1.0 if not differences.any() else float(_wilcoxon(differences)),
    )


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """The p-values of a declared family, adjusted so that the whole family errs at the stated level."""
    ordered = sorted(p_values, key=lambda name: p_values[name])
    adjusted: dict[str, float] = {}
    worst = 0.0
    for i, name in enumerate(ordered):
        worst = max(worst, min(1.0, (len(ordered) - i) * p_values[name]))
        adjusted[name] = worst
    return {name: adjusted[name] for name in p_values}


def ratio_of_quantiles(
    a_by_block: Mapping[Any, float],
    b_by_block: Mapping[Any, float],
    q: float = 0.95,
    *,
    level: float = 0.95,
    seed: int = SEED,
) -> Interval:
    """Ratio of two p95s by bootstrap over blocks. Approximate: such intervals are too short at small n."""
    a, b, failed = pairs(a_by_block, b_by_block)
    if (a <= 0).any() or (b <= 0).any():
        raise InputError("a ratio needs times above zero")
    drawn = _draw(a.size, seed)
    resampled = np.quantile(a[drawn], q, axis=1) / np.quantile(b[drawn], q, axis=1)
    estimate = float(np.quantile(a, q) / np.quantile(b, q))
    low, high = _percentiles(resampled, level, a.size)
    return Interval(estimate, low, high, n=a.size, failures=failed, level=level, approximate=True)


@dataclass(frozen=True, slots=True)
class Extremes:
    """The slowest over the fastest of several: a description chosen after the fact, not a comparison."""

    slowest: str
    fastest: str
    ratio: Interval
    same_pair: float
    """Share of resamples in which the same two were slowest and fastest."""


def extremes(
    by_name: Mapping[str, Mapping[Any, float]],
    *,
    centre: Literal["p50", "mean"] = "p50",
    level: float = 0.95,
    seed: int = SEED,
) -> Extremes:
    """Max/min of the p50s or means, slowest and fastest selected anew in every resample of the blocks."""
    names = list(by_name)
    if len(names) < 2:
        raise InputError("slowest over fastest needs at least two substrates")
    common = [k for k in by_name[names[0]] if all(k in by_name[name] for name in names)]
    table = np.array([[by_name[name][k] for k in common] for name in names], dtype=np.float64)
    table = table[:, np.isfinite(table).all(axis=0)]
    if not table.shape[1] or (table <= 0).any():
        raise InputError("slowest over fastest needs blocks in which all came through, above zero")
    middle = np.mean if centre == "mean" else np.median
    found = middle(table, axis=1)
    slow, fast = int(found.argmax()), int(found.argmin())
    again = middle(table[:, _draw(table.shape[1], seed)], axis=2)
    low, high = _percentiles(again.max(axis=0) / again.min(axis=0), level, table.shape[1])
    same = (again.argmax(axis=0) == slow) & (again.argmin(axis=0) == fast)
    ratio = Interval(
        float(found[slow] / found[fast]),
        low,
        high,
        n=table.shape[1],
        failures=len(common) - table.shape[1],
        level=level,
        approximate=True,
    )
    return Extremes(names[slow], names[fast], ratio, float(same.mean()))


def drift(values: Sequence[float], *, level: float = 0.95, seed: int = SEED) -> Interval:
    """Median of the second half over that of the first, in the order of the trials: 1 where nothing drifts."""
    x = np.asarray([v for v in values if math.isfinite(v)], dtype=np.float64)
    if x.size < 2 or (x <= 0).any():
        raise InputError("a drift needs at least two times above zero")
    first, second = x[: x.size // 2], x[x.size // 2 :]
    resampled = np.median(second[_draw(second.size, seed)], axis=1) / np.median(
        first[_draw(first.size, seed + 1)], axis=1
    )
    low, high = _percentiles(resampled, level, first.size)
    estimate = float(np.median(second) / np.median(first))
    return Interval(estimate, low, high, n=x.size, level=level, approximate=True)


def _shift(differences: Floats, failed: int, level: float, seed: int) -> Interval:
    i, j = np.triu_indices(differences.size)

    def centre(x: Floats) -> float:
        return float(np.median((x[i] + x[j]) / 2))

    drawn = _draw(differences.size, seed, 499)
    low, high = _percentiles(
        np.array([centre(differences[d]) for d in drawn]), level, differences.size
    )
    return Interval(
        centre(differences), low, high, n=differences.size, failures=failed, level=level
    )


def _wilcoxon(differences: Floats) -> float:
    method = "exact" if differences.size <= 25 and differences.all() else "asymptotic"
    return float(stats.wilcoxon(differences, method=method).pvalue)


def _p(value: float) -> float:
    """All values tied: there is nothing to tell apart."""
    return 1.0 if math.isnan(value) else value


def _draw(
    n: int, seed: int, resamples: int = RESAMPLES
) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    return np.random.default_rng(seed).integers(0, n, size=(resamples, n))


def _percentiles(resampled: Floats, level: float, n: int) -> tuple[float | None, float | None]:
    if n < 2:
        return None, None
    tail = (1 - level) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail])
    return float(low), float(high)
