"""From records to values: one study's trials in, one `Summary` out. Pure; all statistics are `excise.tax`'s."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from excise.errors import InputError
from excise.measure.load import arrivals
from excise.measure.record import Cell, StudyRecord, TrialRecord
from excise.report.cells import Measured, cell_values, measure
from excise.report.comparisons import effects, ratios, repeated, undisturbed
from excise.report.loads import loads
from excise.report.orchestration import orchestration
from excise.report.readiness import readiness
from excise.report.scale import (
    NOT_ISOLATED,
    advice,
    hours,
    longest,
    projected,
    shape,
    spreads,
    to_project,
)
from excise.report.values import (
    BARE,
    TWIN,
    CellValues,
    Failed,
    Fit,
    Summary,
)
from excise.report.verdicts import claims, doubted, twin_ratio
from excise.tax import prices
from excise.tax.fit import Timed, fit
from excise.tax.split import Baseline


def summarise(record: StudyRecord, trials: Sequence[TrialRecord]) -> Summary:
    """Everything there is to say of a study, also of one that is unfinished or full of failures."""
    ordered = sorted(trials, key=lambda t: (t.session, t.block, t.position))
    plain = [t for t in ordered if t.load is None]
    named = {c.name: c for c in record.cells if c.load is None}
    for t in plain:
        named.setdefault(t.cell, _cell_of(t))
    baselines = _baselines(named, plain)
    cells: list[CellValues] = []
    measured: dict[tuple[str, str], list[Measured]] = {}
    for cell in _in_order(named.values()):
        for cache in dict.fromkeys(t.cache for t in plain if t.cell == cell.name) or (cell.cache,):
            mine = [t for t in plain if t.cell == cell.name and t.cache == cache]
            rows = [measure(t, baselines.get(cell.workload)) for t in mine if not t.warm_up]
            bare = measured.get((BARE, cell.workload))
            if cache == "warm":
                measured[cell.label, cell.workload] = rows
            warm_ups = sum(t.warm_up for t in mine)
            values = cell_values(cell, rows, warm_ups=warm_ups, cache=cache, bare=bare)
            cells.append(values)
    loads_ = loads(record, ordered)
    labels = tuple(dict.fromkeys((*(c.label for c in cells), *(x.label for x in loads_))))
    task = next((c.task for c in cells if c.task and not c.variant), None)
    counted = [t for t in plain if not t.warm_up]
    sessions = len({t.session for t in ordered}) or 1
    aa = twin_ratio(measured, BARE, TWIN)
    long = to_project(longest(cells, task), record.substrates)
    table = prices.latest()
    isolated = [c.label for c in long if c.substrate not in NOT_ISOLATED]
    hours_ = hours(long, table, shape(record.limits))
    lengths = sorted(
        {c.actions for c in cells if c.tier.startswith("K") and c.ok and not c.variant}
    )
    further = projected(long, measured, lengths)
    return Summary(
        id=record.id,
        started=record.started,
        preset=record.preset,
        version=record.version,
        seed=record.seed,
        blocks=record.blocks,
        host=record.host,
        substrates=record.substrates,
        skipped=record.skipped,
        placement=record.placement,
        limits=record.limits,
        sessions=sessions,
        labels=labels,
        task=task,
        planned=_planned(record, sessions),
        measured=len(counted),
        loads_planned=sum(len(arrivals(c.load, record.seed)) for c in record.cells if c.load),
        loads_measured=len(ordered) - len(plain),
        warm_ups=sum(t.warm_up for t in ordered),
        harness=_harness(record),
        aa=aa,
        cells=tuple(cells),
        fits=_fits(cells, measured),
        ratios=ratios(labels, measured),
        effects=effects(labels, measured),
        undisturbed=undisturbed(measured),
        repeated=repeated(measured),
        hours=hours_,
        spreads=spreads(hours_, isolated),
        projected=further,
        advice=advice(long, measured),
        loads=loads_,
        doubts=doubted(record, counted, cells, measured, aa, further, loads_),
        claims=claims(to_project(cells, record.substrates), measured, task, aa),
        failures=tuple(_failed(t) for t in ordered if t.outcome != "ok"),
        noise=_noise(counted),
        prices=f"{table.date}: {table.note}",
        readiness=readiness(ordered),
        orchestration=orchestration(ordered),
    )


def _planned(record: StudyRecord, sessions: int) -> int:
    """The trials that a study has when it is complete; a merged one counts those of its parts."""
    blocks = (
        record.blocks if c.blocks is None else c.blocks for c in record.cells if c.load is None
    )
    if record.merged:
        return sum(blocks)
    return sessions * sum(min(each, record.blocks) for each in blocks)


def _cell_of(trial: TrialRecord) -> Cell:
    label = trial.cell.removesuffix(f"/{trial.workload}")
    return Cell(label=label, substrate=trial.substrate, workload=trial.workload)


def _in_order(cells: Iterable[Cell]) -> list[Cell]:
    """Bare first, then its twin, then as the study names them: the same in every table and figure."""
    first = {BARE: 0, TWIN: 1}
    return sorted(cells, key=lambda c: first.get(c.label, 2))


def _baselines(named: Mapping[str, Cell], trials: Sequence[TrialRecord]) -> dict[str, Baseline]:
    """By workload: what its actions cost as bare processes, from the trials that went through."""
    by_workload: dict[str, dict[tuple[int, int], list[TrialRecord]]] = {}
    for t in trials:
        if (
            named[t.cell].label == BARE
            and t.outcome == "ok"
            and not t.warm_up
            and t.cache == "warm"
        ):
            blocks = by_workload.setdefault(t.workload, {})
            blocks.setdefault((t.session, t.block), []).append(t)
    found = {}
    for workload, blocks in by_workload.items():
        try:
            found[workload] = Baseline({b: [t.complete for t in ts] for b, ts in blocks.items()})
        except (InputError, KeyError):
            continue
    return found


def _harness(record: StudyRecord) -> dict[str, float | int] | None:
    o = record.overhead
    if o is None:
        return None
    return {
        "trial_p50_us": o.trial_us[0],
        "trial_p95_us": o.trial_us[1],
        "action_p50_us": o.action_us[0],
        "action_p95_us": o.action_us[1],
        "clock_ns": o.clock_ns,
        "trials": o.trials,
    }


def _fits(
    cells: Sequence[CellValues], measured: Mapping[tuple[str, str], Sequence[Measured]]
) -> tuple[Fit, ...]:
    """F + K p per substrate over the plain trajectories of one task, where two lengths or more came through."""
    tasks = dict.fromkeys(c.task for c in cells if c.tier.startswith("K") and not c.variant)
    labels = dict.fromkeys(c.label for c in cells)
    found = []
    for label in labels:
        for task in list(tasks)[:1]:
            rows = [
                m
                for c in cells
                if c.label == label and c.tier.startswith("K") and not c.variant and c.task == task
                for m in measured[label, c.workload]
                if m.parts is not None
            ]
            for metric in ("episode", "total"):
                line = _fit(label, metric, rows)
                if line is not None:
                    found.append(line)
    return tuple(found)


def _fit(label: str, metric: str, rows: Sequence[Measured]) -> Fit | None:
    if len({m.actions for m in rows}) < 2:
        return None
    times = [m.episode_s if metric == "episode" else m.total_s for m in rows]
    line = fit(Timed(m.block, m.actions, t) for m, t in zip(rows, times, strict=True))
    varying = [m.varying_s for m in rows]
    fixed = [t - v for t, v in zip(times, varying, strict=True)]
    return Fit(
        label=label,
        metric=metric,
        lengths=line.measured,
        fixed=line.fixed_s,
        per_action=line.per_action_s,
        direct_fixed=sum(fixed) / len(fixed),
        direct_per_action=sum(varying) / sum(m.actions for m in rows),
        lack_of_fit=line.lack,
    )


def _failed(trial: TrialRecord) -> Failed:
    error = trial.error
    return Failed(
        cell=trial.cell,
        block=trial.block,
        outcome=trial.outcome,
        phase=(error.phase if error else None) or "",
        action=error.action if error else None,
        message=f"{error.type}: {error.message}" if error else "",
    )


def _noise(trials: Sequence[TrialRecord]) -> dict[str, float | int | None]:
    """What else the machine did; the share of trials that were disturbed by stolen time."""
    steals = [t.noise.steal_share for t in trials if t.noise.steal_share is not None]
    loads = [t.noise.load1 for t in trials if t.noise.load1 is not None]
    return {
        "steal_over_1_percent": sum(s > 0.01 for s in steals) if steals else None,
        "steal_known": len(steals),
        "load1_median": median(loads) if loads else None,
        "load1_max": max(loads) if loads else None,
        "waited_s": sum(t.noise.waited_s for t in trials),
        "clipped": sum(t.clipped for t in trials),
        "outcomes_not_ok": Counter(t.outcome != "ok" for t in trials)[True],
    }
