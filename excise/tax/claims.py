"""The paper's claims, each as a question to a study's figures: confirmed, not confirmed, or not testable here.

A claim is confirmed only where the whole interval is on its side; an interval that reaches across, or that
has no bound on the side that matters, does not confirm. Figures come in as intervals under keys such as
`("tti", "container", "T0")`; see `FIGURES` for the metrics. Substrates are named by the paper's archetypes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from excise.tax.interval import Interval, exactly
from excise.tax.projection import paper_table_1, worker_hours

Key = tuple[str, ...]
Figures = Mapping[Key, Interval]

FIGURES = {
    "tti": "p50 seconds from request to first command: archetype, tier",
    "tail": "p95 over p50 of the same: archetype, tier",
    "episode_ratio": "ratio of request to last observation, paired: slower, quicker, tier",
    "spread": "slowest over fastest p50 tti of at least two archetypes: tier",
    "start_share": "share of Q+C+R in the total on T2: archetype",
    "act_share": "share of set-up and actions in the total on T2: archetype",
    "fixed_share": "share of all fixed parts in the total: archetype, number of actions",
    "amortised": "mean episode seconds per action: archetype, number of actions",
    "length_ratio": "slowest over fastest mean total of at least two archetypes: number of actions",
}
ARCHETYPES = {
    "docker": "container",
    "podman": "container",
    "kubernetes": "kubernetes",
    "vm": "vm",
    "vm-cloud": "vm",
    "e2b": "hosted",
    "daytona": "hosted",
    "modal": "hosted",
}
"""Substrates of ours that stand for one of the paper's four; others (bare, jail) are not in its claims."""


class Verdict(StrEnum):
    CONFIRMED = "confirmed"
    NOT_CONFIRMED = "not confirmed"
    NOT_TESTABLE = "not testable here"


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict on one claim, with the figure that it rests on and what is missing where there is none."""

    id: str
    words: str
    section: str
    verdict: Verdict
    figure: Interval | None = None
    unit: str = ""
    missing: tuple[Key, ...] = ()


@dataclass(frozen=True, slots=True)
class Claim:
    """What the paper says, in our words; what is needed to test it; and the figure with its test."""

    id: str
    words: str
    section: str
    needs: tuple[Key, ...]
    figure: Callable[[Figures], Interval]
    holds: Callable[[Figures], bool]
    unit: str = "x"

    def judge(self, figures: Figures, noise: float = 1.0) -> Finding:
        """The verdict; `noise` is by what factor one substrate differed from itself in this study."""
        missing = tuple(k for k in self.needs if k not in figures)
        if missing:
            return Finding(self.id, self.words, self.section, Verdict.NOT_TESTABLE, missing=missing)
        wider = {k: figures[k].widened(noise) for k in self.needs}
        verdict = Verdict.CONFIRMED if self.holds(wider) else Verdict.NOT_CONFIRMED
        return Finding(self.id, self.words, self.section, verdict, self.figure(figures), self.unit)


def judge(figures: Figures, noise: float = 1.0) -> tuple[Finding, ...]:
    """Every claim against the figures of a study, in the paper's order."""
    return tuple(claim.judge(figures, noise) for claim in CLAIMS)


def _below(id_: str, words: str, section: str, less: Key, more: Key, *, unit: str = "s") -> Claim:
    """One figure is smaller than another, their intervals apart. The figure shown is the smaller one."""

    def holds(f: Figures) -> bool:
        high, low = f[less].high, f[more].low
        return high is not None and low is not None and high < low

    return Claim(id_, words, section, (less, more), lambda f: f[less], holds, unit)


def _within(id_: str, words: str, section: str, key: Key, *, low: float, high: float) -> Claim:
    """A figure is about what the paper says: its interval lies within the given range."""

    def holds(f: Figures) -> bool:
        return f[key].above(low) and f[key].below(high)

    return Claim(id_, words, section, (key,), lambda f: f[key], holds)


def _above(id_: str, words: str, section: str, key: Key, *, low: float, unit: str = "x") -> Claim:
    return Claim(id_, words, section, (key,), lambda f: f[key], lambda f: f[key].above(low), unit)


def _arithmetic(id_: str, words: str, section: str, hours: float, printed: float) -> Claim:
    """Needs no study: the paper's own numbers, computed again and rounded."""

    def holds(_: Figures) -> bool:
        return abs(hours - printed) <= 0.5

    return Claim(id_, words, section, (), lambda _: exactly(hours), holds, "h")


_SECOND, _TEN_MS, _HUNDRED_MS = (row.hours for row in paper_table_1())
_SLOW_S, _FAST_S = 42.5196, 23.382
"""Table 2's latencies before rounding, as far as its hours give them away."""

CLAIMS: tuple[Claim, ...] = (
    _arithmetic("table1-rollout", "1 s per rollout is 278 h at a million", "1", _SECOND, 278),
    _arithmetic("table1-10ms", "10 ms per action is 417 h at a million of 150", "1", _TEN_MS, 417),
    _arithmetic(
        "table1-100ms",
        "100 ms per action is 4,167 h at a million of 150",
        "1",
        _HUNDRED_MS,
        4167,
    ),
    _above(
        "containers-act",
        "containers spend most of a repository rollout on set-up and actions",
        "4.1",
        ("act_share", "container"),
        low=0.5,
        unit="share",
    ),
    _below(
        "vms-start",
        "virtual machines spend a larger share on start-up than containers",
        "4.1",
        ("start_share", "container"),
        ("start_share", "vm"),
        unit="share",
    ),
    _below(
        "kubernetes-start",
        "orchestrated containers spend a larger share on start-up than containers",
        "4.1",
        ("start_share", "container"),
        ("start_share", "kubernetes"),
        unit="share",
    ),
    _below(
        "hosted-first",
        "hosted sandboxes start faster than single containers",
        "4.2",
        ("tti", "hosted", "T0"),
        ("tti", "container", "T0"),
    ),
    _below(
        "container-second",
        "single containers start faster than Kubernetes",
        "4.2",
        ("tti", "container", "T0"),
        ("tti", "kubernetes", "T0"),
    ),
    _below(
        "vm-last",
        "cloud virtual machines start slowest, behind Kubernetes",
        "4.2",
        ("tti", "kubernetes", "T0"),
        ("tti", "vm", "T0"),
    ),
    _above(
        "two-orders",
        "cold starts span more than two orders of magnitude (up to 110x)",
        "4.2",
        ("spread", "T0"),
        low=100.0,
    ),
    _above(
        "t0-vm-hosted",
        "on T0 virtual machines take over a hundred times as long as hosted sandboxes",
        "4.2",
        ("episode_ratio", "vm", "hosted", "T0"),
        low=100.0,
    ),
    _within(
        "t2-vm-hosted",
        "on T2 that gap is about 1.9 (says as much about the work in T2 as about substrates)",
        "4.2",
        ("episode_ratio", "vm", "hosted", "T2"),
        low=1.6,
        high=2.2,
    ),
    _below(
        "gap-shrinks-vm",
        "the gap between virtual machines and hosted sandboxes shrinks from T0 to T2",
        "4.2",
        ("episode_ratio", "vm", "hosted", "T2"),
        ("episode_ratio", "vm", "hosted", "T0"),
        unit="x",
    ),
    _below(
        "gap-shrinks-kubernetes",
        "the gap between Kubernetes and single containers shrinks from T0 to T2",
        "4.2",
        ("episode_ratio", "kubernetes", "container", "T2"),
        ("episode_ratio", "kubernetes", "container", "T0"),
        unit="x",
    ),
    _below(
        "kubernetes-stable",
        "orchestrated containers start more evenly (p95 over p50) than hosted sandboxes",
        "4.2",
        ("tail", "kubernetes", "T0"),
        ("tail", "hosted", "T0"),
        unit="x",
    ),
    *(
        _below(
            f"amortises-{archetype}",
            f"fixed costs are a smaller share at 150 actions than at 10 ({archetype})",
            "4.3",
            ("fixed_share", archetype, "150"),
            ("fixed_share", archetype, "10"),
            unit="share",
        )
        for archetype in ("container", "hosted", "kubernetes", "vm")
    ),
    *(
        _below(
            f"per-action-{archetype}",
            f"amortised time per action falls from 10 to 150 actions ({archetype})",
            "4.3",
            ("amortised", archetype, "150"),
            ("amortised", archetype, "10"),
        )
        for archetype in ("container", "hosted", "kubernetes", "vm")
    ),
    _below(
        "gap-narrows",
        "the relative gap between substrates narrows from 10 to 150 actions",
        "4.3",
        ("length_ratio", "150"),
        ("length_ratio", "10"),
        unit="x",
    ),
    _within(
        "hours-spread",
        "slowest over fastest is about 1.8 at 150 actions, think time left out",
        "4.4",
        ("length_ratio", "150"),
        low=1.5,
        high=2.1,
    ),
    _arithmetic(
        "table2-gap",
        "the gap of Table 2 is 5,316 h at a million (from unrounded latencies)",
        "4.4",
        worker_hours(1_000_000, _SLOW_S - _FAST_S),
        5316,
    ),
)
