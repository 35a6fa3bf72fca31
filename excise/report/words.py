"""The sentences of a report: what was measured, what came out, what the verdicts rest on."""

from __future__ import annotations

from dataclasses import replace

from excise.report import units
from excise.report.values import BARE, TWIN, CellValues, Claimed, Summary
from excise.tax.interval import Interval

VERDICTS = ("confirmed", "not confirmed", "not testable here")


def measured(summary: Summary) -> str:
    """What was measured, in one sentence."""
    labels = ", ".join(summary.compared) or "nothing"
    named = [*(c.workload for c in summary.cells), *(x.workload for x in summary.loads)]
    workloads = ", ".join(dict.fromkeys(named))
    parts = []
    if summary.planned or not summary.loads_planned:
        parts.append(
            f"{summary.measured} of {summary.planned} planned trials in {summary.blocks} randomised blocks "
            f"(preset {summary.preset}), {summary.warm_ups} warm-ups not counted"
        )
    if summary.loads_planned:
        shapes = ", ".join(dict.fromkeys(x.load for x in summary.loads)) or "none yet"
        parts.append(
            f"{summary.loads_measured} of {summary.loads_planned} planned trials under load ({shapes})"
        )
    return f"{labels} on {workloads or 'no workload'}: {'; '.join(parts)}."


def host(summary: Summary) -> str:
    """Which machine, in one line."""
    facts = summary.host
    parts = [facts.get("cpu"), f"{facts.get('cores')} cores" if facts.get("cores") else None]
    memory = facts.get("memory_bytes")
    if isinstance(memory, int | float):
        parts.append(f"{memory / 1024**3:.1f} GiB")
    kernel = facts.get("kernel")
    parts += [
        facts.get("system"),
        f"kernel {kernel}" if kernel else None,
        facts.get("virtualisation"),
    ]
    return ", ".join(str(p) for p in parts if p) or "host not recorded"


def completeness(summary: Summary) -> str:
    """Says that a study is unfinished; empty for one that is not."""
    done = summary.measured + summary.loads_measured
    if not done:
        return "No trial has been measured yet: every figure below is missing for that reason."
    if summary.finished:
        return ""
    return (
        f"Unfinished: {done} of {summary.planned + summary.loads_planned} trials. "
        "Run the same `excise study run` again to go on where it stopped."
    )


def finding(summary: Summary) -> str:
    """The one sentence to take away."""
    rows = [c for c in _tier_cells(summary) if c.tax_share is not None]
    if not rows:
        return _nothing(summary)
    vague = [c for c in rows if c.tax_share is None or not c.tax_share.above(0.0)]
    if vague:
        shown = ", ".join(f"{c.label} {_of(c)} at n={c.n}" for c in vague)
        return f"Too few or too disturbed trials to tell the tax of {vague[0].tier} from noise: {shown}."
    cheap, dear = (f(rows, key=_share) for f in (min, max))
    tier = cheap.tier
    if len(rows) == 1:
        text = (
            f"{_of(cheap)} of a {tier} rollout on {cheap.label} is infrastructure tax"
            f"{_slower(cheap)}"
        )
    else:
        text = (
            f"The infrastructure tax takes from {_of(cheap)} ({cheap.label}) to {_of(dear)} ({dear.label}) of a "
            f"{tier} rollout"
        )
    return f"{text}{_at_scale(summary)}."


def _share(cell: CellValues) -> float:
    return cell.tax_share.estimate if cell.tax_share is not None else 0.0


def _of(cell: CellValues) -> str:
    return units.share_interval(cell.tax_share)


def _slower(cell: CellValues) -> str:
    if cell.episode_vs_bare is None:
        return ""
    return (
        f", which takes {units.ratio_interval(cell.episode_vs_bare)} as long as on the bare machine"
    )


def _at_scale(summary: Summary) -> str:
    spread = summary.spreads
    if "sandbox" in spread and "occupied 4 s" in spread:
        return (
            f"; over a million {summary.longest} trajectories the slowest needs {units.ratio(spread['sandbox'])} the "
            f"sandbox-hours of the fastest, and {units.ratio(spread['occupied 4 s'])} once the model thinks 4 s per action"
        )
    row = next(
        (h for h in summary.hours if h.label not in (BARE, TWIN) and h.tax is not None), None
    )
    if row is None:
        return ""
    return f"; a million {summary.longest} trajectories on {row.label} pay {units.hours_interval(row.tax)} of it"


def _tier_cells(summary: Summary) -> list[CellValues]:
    """The isolated substrates' cells of the heaviest tier that came through."""
    for tier in ("T2", "T1", "T0"):
        found = [c for s in summary.compared if s != BARE and (c := summary.cell(s, tier)) and c.ok]
        found = [c for c in found if c.substrate not in ("local", "fake")] or found
        if found:
            return found
    return []


def _loaded(summary: Summary) -> str:
    """What to take away from a study that has nothing but load shapes."""
    told = [x for x in summary.loads if not x.void and x.last_s is not None]
    if not told:
        return f"None of {len(summary.loads)} load runs can be told about: see the table and the doubts."
    shape = max(told, key=lambda x: x.n).load
    said = ", ".join(f"{x.label} after {units.seconds(x.last_s)}" for x in told if x.load == shape)
    return f"Under {shape} all sandboxes were ready: {said}."


def _nothing(summary: Summary) -> str:
    if summary.loads and not summary.measured:
        return _loaded(summary)
    if not summary.measured:
        return "Nothing has been measured yet."
    if not any(c.ok for c in summary.cells):
        return f"None of {summary.measured} trials came through: there is no time to report, only failures."
    if BARE not in summary.labels:
        return "There is no bare baseline in this study, so its times are not told apart into work and tax."
    return "Only the bare baseline came through: there is no substrate to compare it with."


def evidence(claim: Claimed) -> str:
    """The figure that a verdict rests on, or what would have to be measured."""
    if not claim.figures:
        return f"needs {'; '.join(claim.missing)}"
    shown: dict[str, units.Format] = {
        "s": units.seconds_interval,
        "share": units.share_interval,
        "h": units.hours_interval,
        "x": units.ratio_interval,
    }
    return "; ".join(_figure(name, figure, shown[claim.unit]) for name, figure in claim.figures)


def _figure(name: str, figure: Interval, shown: units.Format) -> str:
    if not name:
        return f"{shown(replace(figure, low=None, high=None))} (arithmetic)"
    return f"{name}: {shown(figure)}, n={figure.n}"


def gate(summary: Summary) -> str:
    """The A/A gate in words."""
    if summary.aa is None:
        return "no A/A pair"
    return f"A/A ratio {units.ratio_interval(summary.aa)}"


def harness(summary: Summary) -> str:
    """The harness's own cost, measured before anything else."""
    h = summary.harness
    if h is None:
        return "The harness's own cost was not measured."
    return (
        f"The harness itself costs {units.plain(h['trial_p50_us'])} µs (p95 {units.plain(h['trial_p95_us'])}) per trial and "
        f"{units.plain(h['action_p50_us'])} µs (p95 {units.plain(h['action_p95_us'])}) per action on a substrate that does "
        f"nothing (n={h['trials']}); reading the clock takes {units.plain(h['clock_ns'])} ns."
    )


def noise(summary: Summary) -> str:
    """What else the machine did, in one line."""
    n = summary.noise
    parts = []
    if n["steal_over_1_percent"] is not None:
        parts.append(
            f"{n['steal_over_1_percent']} of {n['steal_known']} trials lost over 1 % to steal"
        )
    if n["load1_median"] is not None:
        parts.append(
            f"load {units.plain(n['load1_median'])} at the median, {units.plain(n['load1_max'] or 0)} at most"
        )
    parts.append(f"waited {units.seconds(n['waited_s'])} in all for a quiet machine")
    parts.append(f"{n['clipped']} inside times clipped")
    return "; ".join(parts)


def method(summary: Summary) -> tuple[str, ...]:
    """How it was measured, in a few sentences."""
    marks = (
        "One monotonic clock in the harness marks every step of a trial in nanoseconds; the components "
        "Q + C + R + S + Σ(D + X) + G + F add up to the total exactly, or the trial fails. Work is what the same "
        "actions cost as bare processes in the same block; all else is tax, apart from the harness's own G."
    )
    protocol = (
        "Complete blocks in random order, n fixed before the run, nothing removed, nothing repeated. A trial whose "
        "observations differ from the golden ones fails. Quantiles are type 7 with order-statistic intervals, means "
        "have BCa intervals, ratios are taken within blocks and bootstrapped over blocks; all at 95 %."
    )
    return (marks, protocol, harness(summary))
