"""From the trials of a study to what a rollout costs on each of its substrates, ready to be projected."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from excise.errors import InputError
from excise.measure.record import TrialRecord
from excise.tax.breakdown import Breakdown, break_down
from excise.tax.marks import Marks
from excise.tax.projection import Rollout
from excise.tax.split import Baseline, WorkTax, split

BARE = ("bare", "bare-again")
NS = 1e9


@dataclass(frozen=True, slots=True)
class Measured:
    """One substrate's rollouts: each trial for intervals, their mean for the estimate."""

    label: str
    trials: tuple[Rollout, ...]
    failures: int

    @property
    def mean(self) -> Rollout:
        """The mean of every component; the means add up."""
        return mean_of(self.trials)


def family(workload: str) -> str:
    """Workloads that differ only in their length are of one family: `K10:attrs-1417`, `K150:attrs-1417`."""
    return re.sub(r"^K\d+", "K", workload)


def choose(trials: Iterable[TrialRecord]) -> str:
    """The workload to project when none is named: the longest that is about a task."""
    candidates = {(t.task is not None, t.actions_planned, t.workload) for t in trials}
    if not candidates:
        raise InputError("the study has no trial to project; run it first")
    return max(candidates)[2]


def rollouts(trials: Iterable[TrialRecord], workload: str, actions: float) -> list[Measured]:
    """What a rollout of this workload's family costs on each substrate, in the study's order.

    Trials of exactly this length are used where there are any, else those of all lengths.
    Trials under load shapes are left out: their queueing is the load's, not the rollout's; so are cold ones.
    """
    ours = [
        t
        for t in trials
        if not t.warm_up
        and t.load is None
        and t.cache == "warm"
        and family(t.workload) == family(workload)
    ]
    if not ours:
        raise InputError(f"the study has no trial of {workload}")
    lengths = tuple(sorted({t.actions_planned for t in ours}))
    ours = [t for t in ours if t.actions_planned == actions] or ours
    baselines = _baselines(ours)
    found = [
        _measured(label, [t for t in ours if _label(t) == label], baselines, lengths)
        for label in dict.fromkeys(_label(t) for t in ours)
    ]
    return [m for m in found if m.trials]


def _measured(
    label: str,
    trials: list[TrialRecord],
    baselines: Mapping[str, Baseline],
    lengths: tuple[int, ...],
) -> Measured:
    fine = [t for t in trials if t.outcome == "ok" and t.actions]
    costs = tuple(_rollout(label, t, baselines.get(t.workload), lengths) for t in fine)
    return Measured(label, costs, sum(t.outcome != "ok" for t in trials))


def _rollout(
    label: str, trial: TrialRecord, baseline: Baseline | None, lengths: tuple[int, ...]
) -> Rollout:
    marks = trial.complete
    taxed = None if baseline is None else split(marks, baseline.work(_block(trial)))
    return rollout(label, break_down(marks), taxed, lengths)


def rollout(
    label: str, parts: Breakdown, taxed: WorkTax | None, lengths: tuple[int, ...]
) -> Rollout:
    """One trial; the harness's own gap counts as time of the actions, as it does in eq. (2), but not as tax."""
    return Rollout(
        label,
        once_s=(parts.queue_ns + parts.create_ns + parts.ready_ns + parts.cleanup_ns) / NS,
        set_up_s=parts.set_up_ns / NS,
        per_action_s=(parts.acting_ns + parts.gap_ns) / parts.actions / NS,
        tax_set_up_s=None if taxed is None else taxed.set_up_tax_ns / NS,
        tax_per_action_s=None if taxed is None else tax_per_action_s(taxed),
        measured=lengths,
    )


def mean_of(trials: Sequence[Rollout]) -> Rollout:
    """The mean of every component over the trials of one substrate; the tax's over those that have one."""
    return Rollout(
        trials[0].name,
        once_s=fmean(t.once_s for t in trials),
        set_up_s=fmean(t.set_up_s for t in trials),
        per_action_s=fmean(t.per_action_s for t in trials),
        tax_set_up_s=_mean(t.tax_set_up_s for t in trials),
        tax_per_action_s=_mean(t.tax_per_action_s for t in trials),
        measured=trials[0].measured,
    )


def tax_per_action_s(taxed: WorkTax) -> float:
    """The tax on one action, on average over the trial's; nothing where it has none."""
    return taxed.action_tax_ns / taxed.actions / NS if taxed.actions else 0.0


def _baselines(trials: Iterable[TrialRecord]) -> dict[str, Baseline]:
    bare: dict[str, dict[tuple[int, int], list[Marks]]] = {}
    for t in trials:
        if _label(t) in BARE and t.outcome == "ok":
            bare.setdefault(t.workload, {}).setdefault(_block(t), []).append(t.complete)
    return {workload: Baseline(by_block) for workload, by_block in bare.items()}


def _block(trial: TrialRecord) -> tuple[int, int]:
    return (trial.session, trial.block)


def _label(trial: TrialRecord) -> str:
    return trial.cell.removesuffix(f"/{trial.workload}")


def _mean(values: Iterable[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return fmean(known) if known else None
