"""Estimates with intervals: quantiles by order statistics, means by BCa, ratios by bootstrap over blocks.

A failed trial enters a quantile as `math.inf`. Everything is deterministic for given data: a bootstrap
takes its seed as a parameter and has the same one every time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from excise.errors import InputError
from excise.tax.interval import Interval

Floats = NDArray[np.float64]

SEED = 20_260_701
RESAMPLES = 4_999
BCA_FROM, NORMAL_FROM = 30, 2_000
"""Below 30 values a bootstrap's intervals of a mean are too short (at n=5 they hold it in 83 %), Student's
are not; from 2,000 on BCa would differ from the normal interval by less than its own noise."""


def ranks(n: int, q: float, level: float = 0.95) -> tuple[int | None, int | None]:
    """The order statistics (counted from 1) that bound the q-quantile whatever the distribution is."""
    tail = (1 - level) / 2
    low = int(stats.binom.ppf(tail, n, q))
    high = int(stats.binom.ppf(1 - tail, n, q)) + 1
    return (low if low >= 1 else None), (high if high <= n else None)


def quantile(values: Sequence[float], q: float, level: float = 0.95) -> Interval:
    """Type-7 quantile with its order-statistic interval; failures are `math.inf` among the values."""
    if not 0 < q < 1:
        raise InputError(f"a quantile lies between 0 and 1, not at {q}")
    x = _sorted(values)
    low, high = ranks(x.size, q, level)
    return Interval(
        _type7(x, q),
        None if low is None else float(x[low - 1]),
        None if high is None else float(x[high - 1]),
        n=x.size,
        failures=int(np.isinf(x).sum()),
        level=level,
    )


Standing = Literal["estimate", "bound", "none"]


def standing(n: int, q: float, level: float = 0.95) -> Standing:
    """What may be printed of the q-quantile of n values: the estimate, "≥ its lower bound", or nothing.

    A quantile above the median is an estimate only where it has an upper bound (p95 from n=72, p99 from
    368, p99.9 from 3,688), and is nothing where fewer than two values are expected beyond it.
    """
    low, high = ranks(n, q, level) if n else (None, None)
    if n and (q <= 0.5 or high is not None):
        return "estimate"
    return "bound" if low is not None and round(n * (1 - q), 9) >= 2 else "none"


def mean(values: Sequence[float], level: float = 0.95, seed: int = SEED) -> Interval:
    """Mean with its interval, for what is summed up. Give it finite values; count failures beside it.

    BCa, Student's below 30 values, normal from 2,000 on. What is never negative has no negative bound.
    """
    x = _array(values)
    found = _mean(x, level, seed)
    if found.low is None or found.low >= 0 or x.min() < 0:
        return found
    return replace(found, low=0.0)


Centre = Literal["median", "mean"]


def paired_ratio(
    a_by_block: Mapping[Any, float],
    b_by_block: Mapping[Any, float],
    *,
    centre: Centre = "median",
    level: float = 0.95,
    seed: int = SEED,
) -> Interval:
    """How many times longer a takes than b: exp(median or mean) of the log-ratios within blocks.

    Only blocks where both came through have a ratio; `failures` counts the others of the common blocks,
    so that a success rate can stand beside the ratio.
    """
    a, b, failed = pairs(a_by_block, b_by_block)
    if (a <= 0).any() or (b <= 0).any():
        raise InputError("a ratio needs times above zero")
    logs = np.log(a) - np.log(b)
    over = (
        _bootstrap(logs, np.median, level=level, seed=seed, method="percentile")
        if centre == "median"
        else _mean(logs, level, seed)
    ).mapped(math.exp)
    return Interval(over.estimate, over.low, over.high, n=a.size, failures=failed, level=level)


def pairs(
    a_by_block: Mapping[Any, float], b_by_block: Mapping[Any, float]
) -> tuple[Floats, Floats, int]:
    """The finite values of the blocks that both have, in one order, and how many common blocks failed."""
    common = [k for k in a_by_block if k in b_by_block]
    both = [
        (a_by_block[k], b_by_block[k])
        for k in common
        if math.isfinite(a_by_block[k]) and math.isfinite(b_by_block[k])
    ]
    if not both:
        raise InputError("no block has both: a ratio needs blocks in which both came through")
    a, b = np.asarray(both, dtype=np.float64).T
    return a, b, len(common) - len(both)


@dataclass(frozen=True, slots=True)
class Ecdf:
    """The distribution as steps: at `values[i]` the share `shares[i]` of trials had ended.

    `low` and `high` are a band that holds the whole true distribution at the given level
    (Dvoretzky-Kiefer-Wolfowitz). Failures are in `n` and never end: the curve stays below 1.
    """

    values: tuple[float, ...]
    shares: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    n: int
    failures: int


def ecdf(values: Sequence[float], level: float = 0.95) -> Ecdf:
    """The empirical distribution with its confidence band."""
    x = _sorted(values)
    finite = x[np.isfinite(x)]
    steps, counts = np.unique(finite, return_counts=True)
    shares = counts.cumsum() / x.size
    band = math.sqrt(math.log(2 / (1 - level)) / (2 * x.size))
    return Ecdf(
        tuple(steps.tolist()),
        tuple(shares.tolist()),
        tuple(np.clip(shares - band, 0, 1).tolist()),
        tuple(np.clip(shares + band, 0, 1).tolist()),
        n=x.size,
        failures=int(x.size - finite.size),
    )


def _type7(x: Floats, q: float) -> float:
    """Linear interpolation, where an infinite upper neighbour makes the result infinite, not NaN."""
    above = float(np.quantile(x, q, method="higher"))
    return above if math.isinf(above) else float(np.quantile(np.minimum(x, above), q))


def _mean(x: Floats, level: float, seed: int) -> Interval:
    centre = float(x.mean())
    if not math.isfinite(centre) or x.size == 1:
        return Interval(centre, None, None, n=x.size, level=level)
    if BCA_FROM <= x.size < NORMAL_FROM or np.ptp(x) == 0:
        return _bootstrap(x, np.mean, level=level, seed=seed, method="BCa")
    half = float(stats.t.ppf((1 + level) / 2, x.size - 1) * stats.sem(x))
    return Interval(centre, centre - half, centre + half, n=x.size, level=level)


def _bootstrap(
    x: Floats, statistic: Callable[..., Any], *, level: float, seed: int, method: str
) -> Interval:
    """Resample the values (one per block); constant or single values are not resampled."""
    centre = float(statistic(x))
    if x.size == 1:
        return Interval(centre, None, None, n=1, level=level)
    if np.ptp(x) == 0:
        return Interval(centre, centre, centre, n=x.size, level=level)
    found = stats.bootstrap(
        (x,),
        statistic,
        vectorized=True,
        n_resamples=RESAMPLES,
        confidence_level=level,
        method=method,
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Interval(centre, float(found.low), float(found.high), n=x.size, level=level)


def _array(values: Sequence[float]) -> Floats:
    x = np.asarray(values, dtype=np.float64)
    if x.size == 0 or np.isnan(x).any():
        raise InputError("statistics need at least one value, and no NaN")
    return x


def _sorted(values: Sequence[float]) -> Floats:
    return np.sort(_array(values))
