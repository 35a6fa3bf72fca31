"""What being ready took, beside what it saved: the part of a warm pool that is on no rollout's clock."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from excise.measure.record import Readied, TrialRecord
from excise.report.values import Readiness


def readiness(trials: Sequence[TrialRecord]) -> tuple[Readiness, ...]:
    """One row per cell whose substrate makes things ready; warm-ups are left out, failed trials are not."""
    cells: dict[tuple[str, str], list[TrialRecord]] = {}
    for t in trials:
        if t.readied is not None and not t.warm_up:
            cells.setdefault((t.cell, t.load or ""), []).append(t)
    return tuple(_of(mine, load) for (_, load), mine in cells.items())


def _of(trials: Sequence[TrialRecord], load: str) -> Readiness:
    first = trials[0]
    readied = [t.readied or Readied(spent_s=0.0, saved_s=0.0) for t in trials]
    name = first.cell.removesuffix(f"~{first.cache}").removesuffix(f"@{load}")
    return Readiness(
        label=name.removesuffix(f"/{first.workload}"),
        workload=first.workload,
        load=load,
        n=len(trials),
        spent_s=fmean(r.spent_s for r in readied),
        idle_s=fmean(r.idle_s for r in readied),
        saved_s=fmean(r.saved_s for r in readied),
    )
