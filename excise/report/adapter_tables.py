"""What the tool in between adds: a substrate through a tool, less the same substrate by itself."""

from __future__ import annotations

from excise.report import units
from excise.report.table import Said, Table
from excise.report.units import NONE, UNKNOWN
from excise.report.values import CellValues, Summary
from excise.tax.interval import Interval
from excise.tax.projection import worker_hours

MILLION = 1_000_000


def adapters(summary: Summary) -> Table:
    """One row per tool and workload, where the substrate below it took part too."""
    rows = [
        _row(cell, under)
        for cell in summary.cells
        if (under := _under(summary, cell)) is not None and cell.ok and under.ok
    ]
    return Table(
        "adapters",
        "What the tool in between adds",
        "The substrate as the tool sets it up and acts in it, less the same substrate driven directly, of the medians "
        "until the first answer, and of what a trial's mean tax grows per action. Hours: the difference of the mean "
        "totals at a million of these trajectories. Less than nothing is possible: a tool may do less than a driver.",
        (
            "substrate",
            "through",
            "workload",
            "added to tti",
            "added per action",
            "added hours at 1M",
        ),
        tuple(rows),
    )


def _under(summary: Summary, cell: CellValues) -> CellValues | None:
    below, at, _ = cell.substrate.partition("@")
    if not at:
        return None
    return next(
        (c for c in summary.cells if c.substrate == below and c.workload == cell.workload), None
    )


def _row(cell: CellValues, under: CellValues) -> tuple[Said, ...]:
    below, _, tool = cell.substrate.partition("@")
    added_s = _difference(cell.total_mean, under.total_mean)
    hours = None if added_s is None else worker_hours(MILLION, added_s)
    return (
        Said(below),
        Said(tool),
        Said(cell.workload),
        _signed(_difference(cell.tti_p50, under.tti_p50)),
        _signed(_difference(cell.tax_per_action, under.tax_per_action)),
        Said(NONE if hours is None else f"{hours:+,.0f} h"),
    )


def _difference(one: Interval | None, other: Interval | None) -> float | None:
    """Of the bare process nothing is taxed, so that what is not known there is nothing."""
    if one is None:
        return None
    return one.estimate - (0.0 if other is None else other.estimate)


def _signed(value_s: float | None) -> Said:
    if value_s is None:
        return Said(UNKNOWN)
    return Said(("-" if value_s < 0 else "+") + units.seconds(abs(value_s)))
