"""What a study says to the paper's claims, and what there is to doubt about the study."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Literal

from excise.errors import InputError
from excise.measure import inside
from excise.measure.record import OWN_PROGRAMS, StudyRecord, TrialRecord
from excise.report.cells import Measured
from excise.report.scale import emulated
from excise.report.values import CellValues, Claimed, Doubted, Load, Projected
from excise.tax.breakdown import Breakdown
from excise.tax.claims import ARCHETYPES, CLAIMS, Finding, Key, judge
from excise.tax.compare import drift, extremes
from excise.tax.doubts import CellFacts, Kind, StudyFacts, doubts, first_over_rest, noise_of
from excise.tax.interval import Interval
from excise.tax.stats import mean, paired_ratio

TICK_S = 0.02
NOT_LIMITED = ("bare", "bare-again")
"""Bare processes have no limits but their core, and no other is promised."""
Rows = Mapping[tuple[str, str], Sequence[Measured]]
Archetypes = Mapping[tuple[str, str], tuple[CellValues, Sequence[Measured]]]
"""By archetype and tier."""


def claims(
    cells: Sequence[CellValues], rows: Rows, task: str | None, aa: Interval | None = None
) -> tuple[Claimed, ...]:
    """Every claim of the paper with its verdict here; what the A/A gate lets pass as noise confirms none."""
    plain = [c for c in cells if not c.variant and c.task in (task, None) and c.ok]
    figures = _figures(plain, rows)
    stands = _standing(plain)
    needed = {c.id: c.needs for c in CLAIMS}
    return tuple(
        Claimed(
            id=f.id,
            words=f.words,
            section=f.section,
            verdict=str(f.verdict),
            figures=_rests_on(f, needed[f.id], figures, stands),
            unit=f.unit,
            missing=tuple(" ".join(key) for key in f.missing),
        )
        for f in judge(figures, noise_of(aa))
    )


def _rests_on(
    finding: Finding,
    needs: Sequence[Key],
    figures: Mapping[Key, Interval],
    stands: Mapping[str, str],
) -> tuple[tuple[str, Interval], ...]:
    if finding.figure is None:
        return ()
    return tuple(
        (" ".join(stands.get(word, word) for word in key[1:]), figures[key]) for key in needs
    ) or (("", finding.figure),)


def _standing(cells: Sequence[CellValues]) -> dict[str, str]:
    """By archetype its name with what stands for it here: a service on this machine is no cloud, and says so."""
    first: dict[str, str] = {}
    for c in cells:
        if c.substrate in ARCHETYPES:
            first.setdefault(ARCHETYPES[c.substrate], c.label)
    return {archetype: f"{archetype} ({label})" for archetype, label in first.items()}


def _figures(cells: Sequence[CellValues], rows: Rows) -> dict[Key, Interval]:
    """The figures that the claims need and that this study has."""
    of: dict[tuple[str, str], tuple[CellValues, Sequence[Measured]]] = {}
    for c in cells:
        if c.substrate in ARCHETYPES:
            of.setdefault((ARCHETYPES[c.substrate], c.tier), (c, rows[c.label, c.workload]))
    found = {key: _figure(key, of) for key in dict.fromkeys(k for c in CLAIMS for k in c.needs)}
    return {key: figure for key, figure in found.items() if figure is not None}


def _figure(key: Key, of: Archetypes) -> Interval | None:
    """One figure of `excise.tax.claims.FIGURES`; an archetype is its first substrate in the study."""
    match key:
        case ("tti" | "tail", archetype, tier) if (archetype, tier) in of:
            cell, _ = of[archetype, tier]
            return cell.tti_p50 if key[0] == "tti" else _tail(cell)
        case (name, archetype, *length) if name in MEANS:
            found = of.get((archetype, f"K{length[0]}" if length else "T2"))
            return None if found is None else _mean(MEANS[name], found[1])
        case ("episode_ratio", slow, fast, tier) if (slow, tier) in of and (fast, tier) in of:
            return _paired(of[slow, tier][1], of[fast, tier][1], lambda m: m.episode_s)
        case ("spread", tier):
            return _apart(of, tier, lambda m: m.tti_s, "p50")
        case ("length_ratio", n):
            return _apart(of, f"K{n}", lambda m: m.total_s, "mean")
        case _:
            return None


MEANS: Mapping[str, Callable[[Breakdown], float]] = {
    "start_share": lambda p: (p.queue_ns + p.create_ns + p.ready_ns) / p.total_ns,
    "act_share": lambda p: (p.set_up_ns + p.acting_ns) / p.total_ns,
    "fixed_share": lambda p: p.fixed_share,
    "amortised": lambda p: p.amortised_ns / 1e9,
}
"""Figures that are means over trials: of a length where they name one, else of T2."""


def _mean(of: Callable[[Breakdown], float], rows: Sequence[Measured]) -> Interval:
    return mean([of(m.parts) for m in rows if m.parts is not None])


def _apart(
    of: Archetypes, tier: str, seconds: Callable[[Measured], float], centre: Literal["p50", "mean"]
) -> Interval | None:
    """Slowest over fastest archetype; the paper's four, so that two engines of containers are one."""
    by_archetype = {
        archetype: {m.block: seconds(m) for m in rows}
        for (archetype, at), (_, rows) in of.items()
        if at == tier
    }
    try:
        return extremes(by_archetype, centre=centre).ratio
    except InputError:
        return None


def _tail(cell: CellValues) -> Interval | None:
    p50, p95 = cell.tti_p50, cell.tti_p95
    if p50 is None or p95 is None or not p50.bounded or not p95.bounded:
        return None
    return _over(p95, p50)


def _over(a: Interval, b: Interval) -> Interval:
    """A quotient's widest interval: never too narrow, whatever a and b have to do with each other."""
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return Interval(a.estimate / b.estimate, None, None, n=a.n)
    return Interval(
        a.estimate / b.estimate, a.low / b.high, a.high / b.low, n=a.n, approximate=True
    )


def _paired(
    a: Sequence[Measured], b: Sequence[Measured], of: Callable[[Measured], float]
) -> Interval | None:
    try:
        return paired_ratio({m.block: of(m) for m in a}, {m.block: of(m) for m in b})
    except InputError:
        return None


def twin_ratio(rows: Rows, bare: str, twin: str) -> Interval | None:
    """The A/A gate: the same substrate under two labels, over all workloads that have both."""
    sides: tuple[dict[object, float], dict[object, float]] = ({}, {})
    for side, label in zip(sides, (twin, bare), strict=True):
        for (s, workload), measured in rows.items():
            if s == label and (twin, workload) in rows:
                side.update({(workload, m.block): m.episode_s for m in measured})
    try:
        return paired_ratio(*sides)
    except InputError:
        return None


def doubted(
    record: StudyRecord,
    trials: Sequence[TrialRecord],
    cells: Sequence[CellValues],
    rows: Rows,
    aa: Interval | None,
    further: Sequence[Projected] = (),
    loads: Sequence[Load] = (),
) -> tuple[Doubted, ...]:
    """What was doubtful when the study began, and what its records show."""
    facts = StudyFacts(
        cells=tuple(_facts(c, rows) for c in cells if c.n and not c.variant),
        baseline=not cells or any(c.label == "bare" and c.ok for c in cells),
        other_limits=[
            (label, ", ".join(what))
            for label, facts in record.substrates.items()
            if label not in NOT_LIMITED and (what := inside.otherwise(_seen(facts), record.limits))
        ],
        only_loads=bool(loads) and not cells,
        late=[(f"{x.label}/{x.workload}@{x.load}", x.latest_s) for x in loads if x.void],
        steal_shares=[t.noise.steal_share for t in trials if t.noise.steal_share is not None],
        aa=aa,
        busy_shares=[t.noise.other_share for t in trials if t.noise.other_share is not None],
        same_programs=all(f.get("programs") != OWN_PROGRAMS for f in record.substrates.values()),
        cpu_overdrawn=sum(_overdrawn(t, record.host.get("cores")) for t in trials),
        extrapolated=sorted({p.actions for p in further if p.extrapolated}),
        sessions=len({t.session for t in trials}),
        emulated=emulated(record.substrates),
    )
    found = [Doubted(d.kind, d.text, d.advice) for d in record.doubts]
    found += [Doubted(str(d.kind), d.text, d.advice) for d in doubts(facts)]
    found.sort(key=lambda d: d.kind != Kind.BUSY)
    return tuple(dict.fromkeys(found))


def _seen(facts: Mapping[str, str]) -> dict[str, str]:
    return {k.removeprefix(inside.SEEN): v for k, v in facts.items() if k.startswith(inside.SEEN)}


def _overdrawn(trial: TrialRecord, cores: object) -> bool:
    """CPU seconds are conserved (2.2 of the method): nobody uses more than all cores have; ticks allowed for."""
    noise = trial.noise
    if noise.span_s is None or not isinstance(cores, int):
        return False
    inside_s = sum(a.cpu_ns or 0 for a in (*trial.set_up, *trial.actions)) / 1e9
    used_s = max(noise.cpu_s or 0.0, noise.host_cpu_s or 0.0, inside_s)
    return used_s > cores * (noise.span_s + TICK_S)


def _facts(cell: CellValues, rows: Rows) -> CellFacts:
    mine = rows[cell.label, cell.workload]
    bare = {m.block for m in rows.get(("bare", cell.workload), ()) if m.parts is not None}
    parts = [m.parts for m in mine if m.parts is not None]
    times = [m.episode_s for m in mine if math.isfinite(m.episode_s)]
    return CellFacts(
        name=f"{cell.label}/{cell.workload}",
        trials=cell.n,
        failures=cell.failed,
        actions=cell.actions,
        clipped=sum(p.clipped for p in parts),
        gap_share=median(p.gap_ns / p.total_ns for p in parts) if parts else None,
        first_over_rest=first_over_rest(times),
        drift=drift(times) if len(times) >= 2 else None,
        unpaired=sum(m.block not in bare for m in mine) if bare else 0,
        borrowed=sum(not m.taxed.same_block for m in mine if m.taxed is not None),
    )
