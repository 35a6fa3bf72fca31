"""Values that stand beside each other: two substrates, one with and without some trials, one over several sessions."""

from __future__ import annotations

from dataclasses import dataclass

from excise.tax.interval import Interval
from excise.tax.sessions import OverSessions


@dataclass(frozen=True, slots=True)
class Ratio:
    """Two substrates on one workload, compared within blocks; `a` over `b`."""

    a: str
    b: str
    workload: str
    metric: str
    ratio: Interval
    blocks: int


@dataclass(frozen=True, slots=True)
class Effect:
    """What may stand beside a ratio, never in its place; the p-values are Holm's over all rows of the study."""

    a: str
    b: str
    workload: str
    metric: str
    mean_ratio: Interval
    p95_ratio: Interval | None
    """None where n carries no p95."""
    shift: Interval
    cliffs_delta: float
    mann_whitney_p: float
    wilcoxon_p: float


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """One cell with all of its trials, and without those during which the hypervisor took time away."""

    label: str
    workload: str
    n: int
    disturbed: int
    tti: Interval | None
    tti_without: Interval | None
    episode: Interval | None
    episode_without: Interval | None


@dataclass(frozen=True, slots=True)
class Repeated:
    """One substrate over bare (or bare's own time, in seconds) on one workload, over the sessions of a merged study."""

    label: str
    workload: str
    over_bare: bool
    found: OverSessions
