"""From measured cells to what they come to beside each other: pairs, effects, disturbed trials, sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from excise.errors import InputError
from excise.report.cells import Measured
from excise.report.pairs import Effect, Ratio, Repeated, Undisturbed
from excise.report.values import BARE
from excise.tax.compare import companions, holm, ratio_of_quantiles
from excise.tax.doubts import STEAL
from excise.tax.interval import Interval
from excise.tax.sessions import over_sessions
from excise.tax.stats import paired_ratio, quantile, standing

PAIRS = (
    ("vm", "hosted"),
    ("kubernetes", "docker"),
    ("gvisor", "docker"),
    ("podman", "docker"),
    ("docker", "jail"),
    ("docker", "pool"),
)
"""Substrates compared with each other, named before anything is measured; each one is compared with bare too."""

METRICS = ("tti", "episode")
Rows = Mapping[tuple[str, str], Sequence[Measured]]
Side = dict[tuple[int, int], float]


def _declared(labels: Sequence[str], rows: Rows) -> list[tuple[str, str, str, str]]:
    """Every comparison that was declared and that this study has both sides of: a, b, workload, metric."""
    pairs = [(s, BARE) for s in labels if s != BARE] if BARE in labels else []
    pairs += [p for p in PAIRS if p[0] in labels and p[1] in labels]
    return [
        (a, b, workload, metric)
        for a, b in pairs
        for workload in [w for s, w in rows if s == a and (b, w) in rows]
        for metric in METRICS
    ]


def _side(rows: Rows, label: str, workload: str, metric: str) -> Side:
    return {m.block: _time(m, metric) for m in rows[label, workload]}


def _time(trial: Measured, metric: str) -> float:
    return trial.tti_s if metric == "tti" else trial.episode_s


def ratios(labels: Sequence[str], rows: Rows) -> tuple[Ratio, ...]:
    """Every substrate over bare, and the declared pairs, within blocks."""
    found = []
    for a, b, workload, metric in _declared(labels, rows):
        try:
            ratio = paired_ratio(*(_side(rows, s, workload, metric) for s in (a, b)))
        except InputError:
            continue
        found.append(Ratio(a, b, workload, metric, ratio, ratio.n))
    return tuple(found)


def effects(labels: Sequence[str], rows: Rows) -> tuple[Effect, ...]:
    """The companions of the same ratios; one family, so that their tests err together as rarely as one would."""
    found = []
    for a, b, workload, metric in _declared(labels, rows):
        effect = _effect(rows, a, b, workload, metric)
        if effect is not None:
            found.append(effect)
    return tuple(_adjusted(found))


def _effect(rows: Rows, a: str, b: str, workload: str, metric: str) -> Effect | None:
    x, y = (_side(rows, s, workload, metric) for s in (a, b))
    try:
        beside = companions(x, y)
        mean_ratio = paired_ratio(x, y, centre="mean")
    except InputError:
        return None
    carries = standing(mean_ratio.n, 0.95) == "estimate"
    return Effect(
        a=a,
        b=b,
        workload=workload,
        metric=metric,
        mean_ratio=mean_ratio,
        p95_ratio=ratio_of_quantiles(x, y) if carries else None,
        shift=beside.shift,
        cliffs_delta=beside.cliffs_delta,
        mann_whitney_p=beside.mann_whitney_p,
        wilcoxon_p=beside.wilcoxon_p,
    )


def _adjusted(found: Sequence[Effect]) -> list[Effect]:
    ranks = holm({str(i): e.mann_whitney_p for i, e in enumerate(found)})
    signs = holm({str(i): e.wilcoxon_p for i, e in enumerate(found)})
    return [
        replace(e, mann_whitney_p=ranks[str(i)], wilcoxon_p=signs[str(i)])
        for i, e in enumerate(found)
    ]


def undisturbed(rows: Rows) -> tuple[Undisturbed, ...]:
    """Every cell of which some trials lost time to the hypervisor, with them and without."""
    found = []
    for (label, workload), trials in rows.items():
        calm = [m for m in trials if m.steal_share is None or m.steal_share <= STEAL]
        if len(calm) == len(trials):
            continue
        found.append(
            Undisturbed(
                label=label,
                workload=workload,
                n=len(trials),
                disturbed=len(trials) - len(calm),
                tti=_median(trials, "tti"),
                tti_without=_median(calm, "tti"),
                episode=_median(trials, "episode"),
                episode_without=_median(calm, "episode"),
            )
        )
    return tuple(found)


def _median(trials: Sequence[Measured], metric: str) -> Interval | None:
    return quantile([_time(m, metric) for m in trials], 0.5) if trials else None


def repeated(rows: Rows) -> tuple[Repeated, ...]:
    """What the sessions of a merged study make of each episode: over bare in the same block where there is bare."""
    found = []
    for (label, workload), trials in rows.items():
        bare = {m.block: m.episode_s for m in rows.get((BARE, workload), ())}
        over_bare = label != BARE and bool(bare)
        by_session: dict[int, list[float]] = {}
        for m in trials:
            base = bare.get(m.block) if over_bare else 1.0
            if base:
                by_session.setdefault(m.block[0], []).append(m.episode_s / base)
        if len(by_session) < 2:
            continue
        try:
            found.append(Repeated(label, workload, over_bare, over_sessions(by_session)))
        except InputError:
            continue
    return tuple(found)
