"""What waiting for the platform's own word costs: the first answered command beside the condition it calls ready."""

from __future__ import annotations

from collections.abc import Sequence

from excise.measure.record import TrialRecord
from excise.noting import ANSWERED, READY_SEEN
from excise.report import units
from excise.report.table import Said, Table
from excise.report.values import Orchestrated, Summary
from excise.tax.stats import quantile


def orchestration(trials: Sequence[TrialRecord]) -> tuple[Orchestrated, ...]:
    """One row per cell whose driver saw both moments; warm-ups are left out."""
    cells: dict[str, list[TrialRecord]] = {}
    for t in trials:
        if not t.warm_up and {ANSWERED, READY_SEEN} <= t.marks.keys():
            cells.setdefault(t.cell, []).append(t)
    return tuple(_of(name, mine) for name, mine in cells.items())


def _of(name: str, trials: Sequence[TrialRecord]) -> Orchestrated:
    first = trials[0]
    label, _, workload = name.partition(f"/{first.workload}")
    return Orchestrated(
        label=label,
        workload=first.workload + workload,
        n=len(trials),
        answered_s=_between(trials, "requested", ANSWERED),
        ready_seen_s=_between(trials, "requested", READY_SEEN),
        late_s=_between(trials, ANSWERED, READY_SEEN),
    )


def _between(trials: Sequence[TrialRecord], begin: str, end: str) -> float:
    return quantile([(t.marks[end] - t.marks[begin]) / 1e9 for t in trials], 0.5).estimate


def table(summary: Summary) -> Table:
    return Table(
        "orchestration",
        "What waiting for the platform's word took",
        "From the request to the first answered command, and to the moment when the platform called the sandbox "
        "ready; late: from one to the other. It is part of the component ready, and wait=answer does not pay it.",
        ("workload", "substrate", "n", "answered p50", "called ready p50", "late p50"),
        tuple(
            (
                Said(r.workload),
                Said(r.label),
                Said(str(r.n)),
                *(Said(units.seconds(s)) for s in (r.answered_s, r.ready_seen_s, r.late_s)),
            )
            for r in summary.orchestration
        ),
    )
