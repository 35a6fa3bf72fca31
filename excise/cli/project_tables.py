"""The tables of `excise project`, for people and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from excise.errors import InputError
from excise.tax.projection import (
    ACTIONS,
    FAILURE_RATES,
    REUSES,
    THINK_S,
    TRAJECTORIES,
    Rollout,
    Scenario,
    contrast,
    elasticities,
    over,
    paper_table_1,
    table_1,
)
from excise.tax.projection import project as projected

if TYPE_CHECKING:
    from excise.measure.record import TrialRecord
    from excise.measure.rollouts import Measured
    from excise.tax.interval import Interval


@dataclass(frozen=True, slots=True)
class Sheet:
    """One table: text for people, the same numbers for programs."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Report:
    sheets: tuple[Sheet, ...]
    notes: tuple[str, ...]
    data: dict[str, Any]


INPUTS = {
    "actions": "actions",
    "per_action_s": "seconds per action",
    "once_s": "seconds per sandbox",
    "set_up_s": "seconds of set-up",
    "think_s": "think time",
    "failure_rate": "failure rate",
    "timeout_s": "time-out",
    "reset_s": "reset",
}
HEAD = ("substrate", "seconds", "tax-hours", "sandbox-hours", "occupied-hours")


def of_two(slow: Rollout, fast: Rollout, scenario: Scenario) -> Report:
    both = contrast(slow, fast, scenario)
    rows = [
        (p.name, _s(p.latency_s), _h(p.tax_hours), _h(p.sandbox_hours), _h(p.occupied_hours))
        for p in (both.slow, both.fast)
    ]
    gap_s = both.slow.latency_s - both.fast.latency_s
    rows.append(("difference", _s(gap_s), "-", _h(both.sandbox_hours), _h(both.occupied_hours)))
    rows.append(("ratio", _x(both.ratio), "-", _x(both.ratio), _x(both.occupied_ratio)))
    pair = (slow, fast)
    return Report(
        (
            Sheet(_title(scenario), HEAD, tuple(rows)),
            _by_length(pair, scenario, ratio=True),
            *(_by(pair, scenario, s, ratio=True) for s in _telling(pair)),
        ),
        (
            *_notes(scenario, baseline=False),
            "Of a latency, all that is not paid once is per action.",
        ),
        {
            "scenario": asdict(scenario),
            "rows": [asdict(both.slow), asdict(both.fast)],
            "difference": {
                "latency_s": gap_s,
                "sandbox_hours": both.sandbox_hours,
                "occupied_hours": both.occupied_hours,
            },
            "ratio": both.ratio,
            "occupied_ratio": both.occupied_ratio,
            "occupied_ratio_by_think_s": {
                f"{t:g}": contrast(slow, fast, replace(scenario, think_s=t)).occupied_ratio
                for t in THINK_S
            },
            **_sensitivities(pair, scenario),
        },
    )


def of_study(trials: Sequence[TrialRecord], workload: str, scenario: Scenario) -> Report:
    from excise.measure.rollouts import rollouts

    found = rollouts(trials, workload, scenario.actions)
    means = [m.mean for m in found]
    hours = [_intervals(m, scenario) for m in found]
    rows = tuple(
        (
            f"{m.label}\nn={len(m.trials)}, {m.failures} failed",
            *(_range(h[key], seconds=key == "latency_s") for key in KINDS),
        )
        for m, h in zip(found, hours, strict=True)
    )
    bars = {m.name: elasticities(m, scenario) for m in means}
    moving = [name for name in bars[means[0].name] if any(bars[m.name].get(name) for m in means)]
    tornado = tuple(
        (INPUTS[name], *(f"{bars[m.name].get(name, 0.0):+.2f}" for m in means)) for name in moving
    )
    return Report(
        (
            Sheet(f"{workload}: {_title(scenario)}", HEAD, rows),
            _by_length(means, scenario),
            *(_by(means, scenario, s) for s in _telling(means)),
            Sheet(
                "Occupied-hours: % per % of each input",
                ("input", *(m.name for m in means)),
                tornado,
            ),
        ),
        _notes(scenario, baseline=all(m.tax_per_action_s is not None for m in means)),
        {
            "scenario": asdict(scenario),
            "workload": workload,
            "rows": [
                {"name": m.label, "n": len(m.trials), "failures": m.failures}
                | {key: None if h[key] is None else asdict(h[key]) for key in KINDS}
                | {"rollout": asdict(mean)}
                for m, mean, h in zip(found, means, hours, strict=True)
            ],
            **_sensitivities(means, scenario),
            "elasticities": bars,
        },
    )


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """One input of a scenario, and which hours show what it does."""

    input: str
    title: str
    hours: str
    values: tuple[float, ...]
    form: str


SENSITIVITIES = (
    Sensitivity("think_s", "Occupied-hours by think time", "occupied_hours", THINK_S, "{:g} s"),
    Sensitivity(
        "failure_rate", "Sandbox-hours by failure rate", "sandbox_hours", FAILURE_RATES, "{:.0%}"
    ),
    Sensitivity("reuse", "Sandbox-hours by rollouts per sandbox", "sandbox_hours", REUSES, "{:g}"),
    Sensitivity(
        "trajectories", "Sandbox-hours by trajectories", "sandbox_hours", TRAJECTORIES, "{:,.0f}"
    ),
)


def _telling(means: Sequence[Rollout]) -> tuple[Sensitivity, ...]:
    """Where nothing is known to be paid once, using a sandbox again changes nothing."""
    paid_once = any(m.once_s for m in means)
    return tuple(s for s in SENSITIVITIES if s.input != "reuse" or paid_once)


def _lengths(means: Sequence[Rollout]) -> list[int]:
    return sorted({*ACTIONS, *means[0].measured})


def _by_length(means: Sequence[Rollout], scenario: Scenario, *, ratio: bool = False) -> Sheet:
    columns = [over(m, scenario, "actions", _lengths(means)) for m in means]
    rows = zip(_lengths(means), zip(*columns, strict=True), strict=True)
    return Sheet(
        "Sandbox-hours by length (* extrapolated)",
        _head("actions", means, ratio=ratio),
        tuple(
            _line(
                f"{k:g}{'*' if row[0].extrapolated else ''}",
                [p.sandbox_hours for p in row],
                ratio=ratio,
            )
            for k, row in rows
        ),
    )


def _by(
    means: Sequence[Rollout], scenario: Scenario, s: Sensitivity, *, ratio: bool = False
) -> Sheet:
    columns = [over(m, scenario, s.input, s.values) for m in means]
    rows = zip(s.values, zip(*columns, strict=True), strict=True)
    return Sheet(
        s.title,
        _head(s.input.removesuffix("_s").replace("_", " "), means, ratio=ratio),
        tuple(
            _line(s.form.format(v), [getattr(p, s.hours) for p in row], ratio=ratio)
            for v, row in rows
        ),
    )


def _head(input_: str, means: Sequence[Rollout], *, ratio: bool) -> tuple[str, ...]:
    return (input_, *(m.name for m in means), *(["ratio"] if ratio else []))


def _line(value: str, hours: Sequence[float], *, ratio: bool) -> tuple[str, ...]:
    """One value of an input, and the hours it comes to; of two also the first over the second."""
    return (value, *map(_h, hours), *([_x(hours[0] / hours[1])] if ratio else []))


def _sensitivities(means: Sequence[Rollout], scenario: Scenario) -> dict[str, Any]:
    lengths = _lengths(means)
    by_actions = {
        m.name: [
            {"actions": k, "hours": p.sandbox_hours, "extrapolated": p.extrapolated}
            for k, p in zip(lengths, over(m, scenario, "actions", lengths), strict=True)
        ]
        for m in means
    }
    others = {
        f"by_{s.input}": {
            m.name: [
                {s.input: v, "hours": getattr(p, s.hours)}
                for v, p in zip(s.values, over(m, scenario, s.input, s.values), strict=True)
            ]
            for m in means
        }
        for s in SENSITIVITIES
    }
    return {"by_actions": by_actions, **others}


KINDS = ("latency_s", "tax_hours", "sandbox_hours", "occupied_hours")


def _intervals(measured: Measured, scenario: Scenario) -> dict[str, Any]:
    """Each trial projected, then the mean over the trials: everything is linear, so it is the same mean."""
    try:
        from excise.tax.stats import mean
    except ImportError as error:
        raise InputError(
            f"projecting a study needs {error.name}: pip install 'excise[study]'"
        ) from None
    each = [asdict(projected(trial, scenario)) for trial in measured.trials]
    known = {key: [row[key] for row in each if row[key] is not None] for key in KINDS}
    return {key: mean(values) if values else None for key, values in known.items()}


def small_delays() -> Report:
    everything = (*paper_table_1(), *table_1())
    rows = tuple(
        (
            f"{m.delay_s * 1000:g} ms per {'rollout' if m.actions is None else 'action'}",
            "-" if m.actions is None else str(m.actions),
            f"{m.trajectories:,}",
            f"{m.hours:,.1f} h",
        )
        for m in everything
    )
    head = ("delay", "actions", "trajectories", "worker-hours")
    paper = len(paper_table_1())
    return Report(
        (
            Sheet("The paper's Table 1", head, rows[:paper]),
            Sheet("Other lengths and scales", head, rows[paper:]),
        ),
        (),
        {"rows": [asdict(m) for m in everything]},
    )


def show(report: Report, *, as_json: bool, about: str = "") -> None:
    """Print the tables and notes, or the numbers behind them; `about` says what lengths were projected."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if as_json:
        console.print_json(json.dumps(report.data | ({"lengths": about} if about else {})))
        return
    for sheet in report.sheets:
        table = Table(box=box.SIMPLE_HEAD, show_edge=False)
        for i, name in enumerate(sheet.head):
            table.add_column(name, justify="left" if i == 0 else "right", min_width=len(name))
        for row in sheet.rows:
            table.add_row(*row)
        console.print(sheet.title, style="italic", highlight=False)
        console.print(table)
        console.print()
    for note in (*report.notes, *([f"Lengths: {about}."] if about else [])):
        console.print(note, style="dim")


def _title(scenario: Scenario) -> str:
    return (
        f"{scenario.trajectories:,.0f} trajectories of {scenario.actions:g} actions, "
        f"{scenario.think_s:g} s think time each"
    )


def _notes(scenario: Scenario, *, baseline: bool) -> tuple[str, ...]:
    notes = [
        "Hours of worker slots, without model inference and reward.",
        "Sandbox-hours leave think time out; occupied-hours have it, because the slot is held.",
    ]
    if not baseline:
        notes.append("No tax-hours where no bare process was measured beside the substrate.")
    if scenario.failure_rate:
        notes.append(
            f"{scenario.failure_rate:.1%} of attempts cost {scenario.timeout_s:g} s and are repeated."
        )
    if scenario.utilisation < 1:
        notes.append(f"A slot is given to some trajectory {scenario.utilisation:.0%} of the time.")
    if scenario.reuse > 1:
        notes.append(
            f"A sandbox serves {scenario.reuse} rollouts, with a reset of {scenario.reset_s:g} s each."
        )
    return tuple(notes)


def _range(interval: Interval | None, *, seconds: bool) -> str:
    if interval is None:
        return "-"
    form = _s if seconds else _h
    if interval.low is None or interval.high is None:
        return form(interval.estimate)
    return f"{form(interval.estimate)}\n[{form(interval.low)}, {form(interval.high)}]"


def _s(seconds: float) -> str:
    return f"{seconds:,.3f}" if seconds < 10 else f"{seconds:,.1f}"


def _h(hours: float | None) -> str:
    if hours is None:
        return "-"
    return f"{hours:,.0f}" if abs(hours) >= 100 else f"{hours:,.1f}"


def _x(ratio: float) -> str:
    return f"{ratio:.3f}x"
