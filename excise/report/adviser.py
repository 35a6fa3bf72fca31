"""What an adviser needs to know of each substrate, as one small document per substrate: figures, and no opinion.

What is paid once and per action comes from the marks, in seconds of tax; memory and capacity come from the load
runs, and are null where there was none. A bound that is null is not known; a time that is null never ended.
"""

from __future__ import annotations

from dataclasses import dataclass

from excise.report.values import CellValues, Load, Summary
from excise.tax.interval import Interval

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Paid:
    """Seconds: of each the mean over the trials of one workload."""

    workload: str
    actions: int
    n: int
    failed: int
    fixed_s: float | None
    per_action_s: Interval | None
    tti_p50_s: Interval | None
    tti_p95_s: Interval | None


@dataclass(frozen=True, slots=True)
class Burst:
    """What came of asking for many at once."""

    load: str
    asked: int
    failed: int
    all_ready_s: float | None
    tti_p99_s: Interval | None
    per_second: float
    memory_each_bytes: float | None


@dataclass(frozen=True, slots=True)
class Inputs:
    """One substrate on one host."""

    format: int
    study: str
    label: str
    substrate: str
    isolation: str
    host: dict[str, str | int | float | None]
    limits: dict[str, str | int | float | None]
    settings: dict[str, str]
    fit: dict[str, Interval]
    """`fixed_s` and `per_action_s` of the line through its trajectory lengths, work included; empty without lengths."""
    paid: tuple[Paid, ...]
    bursts: tuple[Burst, ...]


def inputs(summary: Summary) -> tuple[Inputs, ...]:
    """Of every substrate that was compared, in the study's order."""
    return tuple(_inputs(summary, label) for label in summary.compared)


def _inputs(summary: Summary, label: str) -> Inputs:
    settings = dict(summary.substrates.get(label, {}))
    cells = [c for c in summary.cells if c.label == label and c.main]
    fit = summary.fit(label, "total")
    return Inputs(
        format=FORMAT,
        study=summary.id,
        label=label,
        substrate=cells[0].substrate if cells else label,
        isolation=settings.pop("isolation", "not known"),
        host=summary.host,
        limits=summary.limits,
        settings=settings,
        fit={} if fit is None else {"fixed_s": fit.fixed, "per_action_s": fit.per_action},
        paid=tuple(_paid(c) for c in cells),
        bursts=tuple(_burst(x) for x in summary.loads if x.label == label and not x.void),
    )


def _paid(cell: CellValues) -> Paid:
    return Paid(
        workload=cell.workload,
        actions=cell.actions,
        n=cell.n,
        failed=cell.failed,
        fixed_s=None if cell.parts is None else cell.parts.fixed,
        per_action_s=cell.tax_per_action,
        tti_p50_s=cell.tti_p50,
        tti_p95_s=cell.tti_p95,
    )


def _burst(load: Load) -> Burst:
    return Burst(
        load=load.load,
        asked=load.n,
        failed=load.failed,
        all_ready_s=load.last_s,
        tti_p99_s=load.tti_p99,
        per_second=load.per_second,
        memory_each_bytes=load.memory_each_bytes,
    )
