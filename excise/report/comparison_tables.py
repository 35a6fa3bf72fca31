"""The tables of what stands beside each other: declared pairs, their companions, disturbed trials, sessions."""

from __future__ import annotations

from itertools import groupby

from excise.report import units
from excise.report.comparisons import METRICS
from excise.report.pairs import Repeated
from excise.report.table import Said, Table, said
from excise.report.values import Summary


def ratios(summary: Summary) -> Table:
    return Table(
        "ratios",
        "Declared comparisons",
        "exp of the median log-ratio within blocks, 95 % interval by bootstrap over blocks; blocks in which "
        "either side failed have no ratio. bare-again over bare is the A/A pair and must contain 1.",
        ("workload", "pair", "tti", "episode", "blocks"),
        tuple(
            (
                Said(workload),
                Said(f"{a} / {b}"),
                *(
                    said(next((r.ratio for r in both if r.metric == m), None), units.ratio_interval)
                    for m in METRICS
                ),
                Said(str(both[0].blocks)),
            )
            for (workload, a, b), group in groupby(
                sorted(summary.ratios, key=lambda r: (_place(summary, r.workload), r.a, r.b)),
                key=lambda r: (r.workload, r.a, r.b),
            )
            if (both := list(group))
        ),
    )


def _place(summary: Summary, workload: str) -> int:
    return next(i for i, c in enumerate(summary.cells) if c.workload == workload)


def effects(summary: Summary) -> Table:
    return Table(
        "effects",
        "Beside the ratios",
        "Ratio of means: exp of the mean log-ratio within blocks. Ratio of p95s: bootstrap over blocks, approximate, "
        "from n = 72 on. Shift: Hodges-Lehmann, a - b. Cliff's delta: from -1 (a always quicker) to 1 (always slower). "
        "p: Mann-Whitney and Wilcoxon signed-rank, Holm-adjusted over this whole table; a small p says that there is a "
        "difference, not that it matters.",
        (
            "workload",
            "pair",
            "of",
            "ratio of means",
            "ratio of p95s",
            "shift",
            "Cliff's delta",
            "p, ranks",
            "p, signs",
        ),
        tuple(
            (
                Said(e.workload),
                Said(f"{e.a} / {e.b}"),
                Said(e.metric),
                said(e.mean_ratio, units.ratio_interval),
                said(e.p95_ratio, units.ratio_interval),
                said(e.shift, units.seconds_interval),
                Said(f"{e.cliffs_delta:+.2f}"),
                Said(units.p_value(e.mann_whitney_p)),
                Said(units.p_value(e.wilcoxon_p)),
            )
            for e in sorted(summary.effects, key=lambda e: (_place(summary, e.workload), e.a, e.b))
        ),
    )


def undisturbed(summary: Summary) -> Table:
    return Table(
        "undisturbed",
        "With and without the trials that lost time to the hypervisor",
        "Steal above 1 % of the core time during a trial. Every other table has all trials.",
        ("workload", "substrate", "steal / n", "tti p50", "without", "episode p50", "without"),
        tuple(
            (
                Said(u.workload),
                Said(u.label),
                Said(f"{u.disturbed} / {u.n}"),
                *(
                    said(i, units.seconds_interval)
                    for i in (u.tti, u.tti_without, u.episode, u.episode_without)
                ),
            )
            for u in summary.undisturbed
        ),
    )


def sessions(summary: Summary) -> Table:
    return Table(
        "sessions",
        "Over the sessions",
        "Episode over bare in the same block (bare itself: seconds), geometric means. Each session is one replicate: the "
        "interval is Student's over sessions, and is what a claim about a substrate may rest on. Between and within: "
        "standard deviation from session to session and from trial to trial, of a model with random sessions.",
        ("workload", "substrate", "over all", "sessions", "each", "between", "within"),
        tuple(_session(r) for r in summary.repeated),
    )


def _session(r: Repeated) -> tuple[Said, ...]:
    interval = units.ratio_interval if r.over_bare else units.seconds_interval
    one = units.ratio if r.over_bare else units.seconds
    return (
        Said(r.workload),
        Said(r.label),
        said(r.found.ratio, interval),
        Said(str(r.found.ratio.n)),
        Said(", ".join(one(x) for x in r.found.by_session)),
        Said(units.share(r.found.between)),
        Said(units.share(r.found.within)),
    )
