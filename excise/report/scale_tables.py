"""T1' and T2': what small delays and whole trajectories come to at training scale, in hours and in money."""

from __future__ import annotations

from itertools import groupby

from excise.report import units
from excise.report.scale import shape
from excise.report.table import Said, Table, said
from excise.report.units import UNKNOWN
from excise.report.values import PRICED_THINK_S, THINK_S, TWIN, Summary
from excise.tax.economics import Shape, cost_usd
from excise.tax.interval import Interval
from excise.tax.prices import Price, latest
from excise.tax.projection import table_1


def marginal(_: Summary) -> Table:
    """T1': what a small delay comes to. Arithmetic, the same for every study."""
    rows = table_1()
    sizes = tuple(dict.fromkeys(r.trajectories for r in rows))
    found = []
    for (delay, actions), group in groupby(rows, key=lambda r: (r.delay_s, r.actions)):
        name = f"{units.seconds(delay)} per " + (
            "rollout" if actions is None else f"action, K = {actions}"
        )
        found.append((Said(name), *(Said(units.hours(r.hours)) for r in group)))
    return Table(
        "T1",
        "T1' · What a small delay costs at scale",
        "Worker-hours added by a delay. Arithmetic, not measured; the paper's Table 1 is in it.",
        ("delay", *(f"{units.count(n)} trajectories" for n in sizes)),
        tuple(found),
    )


def hours(summary: Summary) -> Table:
    """T2': from the mean latency to three kinds of worker-hours."""
    workload = summary.hours[0].workload if summary.hours else ""
    return Table(
        "T2",
        "T2' · Worker-hours of a million trajectories",
        f"L: mean total of {workload}. Tax-hours: N times the mean tax. Sandbox-hours: the paper's equation (2). "
        "Occupied-hours: the slot is held while the model thinks. Ratios shrink as think time grows: "
        f"{_spread_note(summary)}",
        (
            "substrate",
            "L",
            "tax-hours",
            "sandbox-hours",
            *(f"occupied, think {t} s" for t in THINK_S),
        ),
        tuple(
            (
                Said(h.label, units.tally(h.n, h.failed)),
                said(h.latency, units.seconds_interval),
                said(h.tax, units.hours_interval, UNKNOWN),
                said(h.sandbox, units.hours_interval),
                *(said(h.occupied[str(t)], units.hours_interval) for t in THINK_S),
            )
            for h in summary.hours
        ),
    )


def _spread_note(summary: Summary) -> str:
    found = [f"{k} {units.ratio(v)}" for k, v in summary.spreads.items()]
    if not found:
        return "this study has fewer than two isolated substrates to take one of."
    return f"slowest over fastest isolated substrate: {', '.join(found)}."


def prices(summary: Summary) -> Table:
    providers = tuple(summary.hours[0].usd) if summary.hours else ()
    return Table(
        "prices",
        "T2' · What the sandboxes would cost",
        f"USD for a million trajectories with {PRICED_THINK_S} s think time per action, the study's sandbox size, at list "
        f"prices of {summary.prices}. Sandbox rent only: accelerators that wait cost more than this.",
        ("substrate", *providers),
        tuple(
            (Said(h.label), *(said(h.usd[p], units.dollars_interval) for p in providers))
            for h in summary.hours
            if h.label != TWIN
        ),
    )


def costs(summary: Summary) -> Table:
    """What a trial on a hosted sandbox is billed, or would be where a service on this machine stood in for it."""
    table = latest()
    of = {name: price for price in table.price for name in price.substrates}
    size = shape(summary.limits)
    return Table(
        "costs",
        "What a trial costs at the provider's list price",
        f"From create to destroy, at the mean total and the study's sandbox size ({size.vcpus:g} vCPU, {size.memory_gib:g} GiB), "
        f"list prices of {table.date}: {table.note}. `on=loopback` was not billed by anybody.",
        ("workload", "substrate", "ok / n", "USD per thousand trials"),
        tuple(
            (
                Said(c.workload),
                Said(c.label),
                Said(f"{c.ok} / {c.n}"),
                said(_cost(c.total_mean, of[c.substrate], size), units.dollars_interval),
            )
            for c in summary.cells
            if c.substrate in of and c.total_mean is not None
        ),
    )


def _cost(total: Interval, price: Price, size: Shape) -> Interval:
    return total.mapped(lambda held_s: 1000 * cost_usd(price, size, held_s))


def lengths(summary: Summary) -> Table:
    """Sensitivity to the trajectory's length."""
    ks = tuple(dict.fromkeys(p.actions for p in summary.projected))
    labels = tuple(s for s in dict.fromkeys(p.label for p in summary.projected) if s != TWIN)
    far = [f"K={p.actions}" for p in summary.projected if p.extrapolated and p.label == labels[0]]
    note = f" Outside the measured lengths, extrapolated: {', '.join(far)}." if far else ""
    return Table(
        "lengths",
        "Sandbox-hours and tax-hours at other lengths",
        f"A million trajectories of K actions, from what is paid once and per action in {summary.longest}; "
        f"sandbox-hours, tax-hours below.{note}",
        ("substrate", *(f"K = {k}" for k in ks)),
        tuple(
            (
                Said(label),
                *(
                    Said(units.hours(p.sandbox_hours), f"tax {units.hours(p.tax_hours)}")
                    for p in summary.projected
                    if p.label == label
                ),
            )
            for label in labels
        ),
    )
