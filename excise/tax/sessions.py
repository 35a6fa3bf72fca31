"""Several sessions of one study: what they agree on, and how far apart they are. The session is the replicate.

Trials of one session share what the machine was like that day, so they are no replicates for a claim about a
substrate. The sessions' own estimates are; of them there are few, so the interval is Student's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from excise.errors import InputError
from excise.tax.interval import Interval


@dataclass(frozen=True, slots=True)
class OverSessions:
    """A one-way model with random sessions, on log scale."""

    ratio: Interval
    """exp of the mean over the sessions; `n` counts sessions, not trials."""
    by_session: tuple[float, ...]
    """exp of each session's own mean, in their order."""
    between: float
    """Standard deviation from session to session, as a share: 0.2 is 20 %."""
    within: float
    """The same from trial to trial within a session."""


def over_sessions(by_session: Mapping[int, Sequence[float]], level: float = 0.95) -> OverSessions:
    """What positive values (ratios, or times) come to over their sessions; values that are not finite are left out."""
    logs = [
        np.log([v for v in values if math.isfinite(v) and v > 0])
        for _, values in sorted(by_session.items())
    ]
    logs = [x for x in logs if x.size]
    if not logs:
        raise InputError("no session has a value to go over")
    means = np.array([x.mean() for x in logs])
    centre = float(means.mean())
    low = high = None
    if means.size > 1:
        half = float(stats.t.ppf((1 + level) / 2, means.size - 1) * stats.sem(means))
        low, high = math.exp(centre - half), math.exp(centre + half)
    within = _pooled_variance(logs)
    per_session = float(np.mean([1 / x.size for x in logs]))
    between = max(0.0, float(means.var(ddof=1)) - within * per_session) if means.size > 1 else 0.0
    return OverSessions(
        Interval(math.exp(centre), low, high, n=means.size, level=level),
        tuple(math.exp(m) for m in means),
        math.sqrt(between),
        math.sqrt(within),
    )


def _pooled_variance(logs: Sequence[np.ndarray[tuple[int], np.dtype[np.float64]]]) -> float:
    freedom = sum(x.size - 1 for x in logs)
    if not freedom:
        return 0.0
    return float(sum(((x - x.mean()) ** 2).sum() for x in logs)) / freedom
