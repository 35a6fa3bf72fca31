"""The tables of what was measured, and the list of all tables of a report."""

from __future__ import annotations

from collections.abc import Callable

from excise.report import orchestration, units
from excise.report.adapter_tables import adapters
from excise.report.comparison_tables import effects, ratios, sessions, undisturbed
from excise.report.load_tables import loads
from excise.report.readiness_table import readiness
from excise.report.scale import emulated
from excise.report.scale_tables import costs, hours, lengths, marginal, prices
from excise.report.table import Said, Table, said
from excise.report.units import NONE, UNKNOWN
from excise.report.values import CellValues, Summary
from excise.substrates.isolation import LEVELS, level_of

FIRST = ("main", "loads")
"""What stands at the top of the page; the other tables come after the figures."""


def tables(summary: Summary, *, empty: bool = False) -> tuple[Table, ...]:
    """Every table that this study has rows for, the main one first; with `empty` the others, too."""
    makers: tuple[Callable[[Summary], Table], ...] = (
        main,
        isolation,
        cells,
        components,
        dispatch,
        adapters,
        ratios,
        effects,
        sessions,
        undisturbed,
        fits,
        marginal,
        hours,
        prices,
        costs,
        lengths,
        loads,
        readiness,
        orchestration.table,
    )
    return tuple(t for t in (maker(summary) for maker in makers) if empty or t.rows)


def main(summary: Summary) -> Table:
    """What stands at the end of a study and at the top of the page: one row per substrate."""
    longest = summary.longest
    tiers = tuple(t for t in ("T0", "T1", "T2") if any(summary.cell(s, t) for s in summary.labels))
    rows = [s for s in summary.compared if any(c.label == s for c in summary.cells)]
    measured = ", ".join((*tiers, *([longest] if longest else [])))
    columns: tuple[str, ...] = (
        "substrate",
        "isolation",
        "ok / n",
        "tti p50",
        *(f"{t} p50" for t in tiers),
    )
    if longest:
        columns = (*columns, f"{longest} p50")
    columns = (*columns, "dispatch / action", f"tax share of {_taxed(tiers, longest)}")
    if summary.hours:
        columns = (*columns, "sandbox-hours at 1M", "tax-hours at 1M")
    return Table(
        "main",
        "What a rollout takes, and what of it is tax",
        f"tti: request to the first answer. {measured}: request to the last observation. "
        f"Dispatch per action{' and hours' if summary.hours else ''}: of {longest or _taxed(tiers, longest)}. "
        "Failed trials count as never ending in p50 and p95.",
        columns,
        tuple(_main_row(summary, s, tiers) for s in rows),
    )


def _taxed(tiers: tuple[str, ...], longest: str | None) -> str:
    """The workload whose tax share stands in the main table: T2, as in the paper, if it was run."""
    return "T2" if "T2" in tiers else longest or (tiers[-1] if tiers else "no workload")


def _main_row(summary: Summary, label: str, tiers: tuple[str, ...]) -> tuple[Said, ...]:
    mine = [c for c in summary.cells if c.label == label]
    n, ok = sum(c.n for c in mine), sum(c.ok for c in mine)
    longest = summary.longest
    long = summary.cell(label, longest) if longest else None
    taxed = summary.cell(label, _taxed(tiers, longest))
    first = next((c for t in (*tiers, longest or "") if (c := summary.cell(label, t))), None)
    row = [
        Said(label),
        Said(
            summary.substrates.get(label, {}).get("isolation", NONE).replace("_", " "),
            "emulated" if label in emulated(summary.substrates) else "",
        ),
        Said(f"{ok} / {n}", _kinds(mine)),
        said(first.tti_p50 if first else None, units.seconds_interval),
        *(_both(summary.cell(label, t)) for t in tiers),
        *([_both(long)] if longest else []),
        _dispatch(long or taxed),
        said(taxed.tax_share if taxed else None, units.share_interval),
    ]
    if summary.hours:
        hours_ = next((h for h in summary.hours if h.label == label), None)
        row.append(said(hours_.sandbox if hours_ else None, units.hours_interval))
        row.append(said(hours_.tax if hours_ else None, units.hours_interval))
    return tuple(row)


def _both(cell: CellValues | None) -> Said:
    if cell is None or cell.episode_p50 is None:
        return Said(NONE)
    p50 = said(cell.episode_p50, units.seconds_interval)
    p95 = "" if cell.episode_p95 is None else said(cell.episode_p95, units.seconds_interval).text
    details = [p50.detail, f"p95 {p95}" if p95 else ""]
    return Said(p50.text, "\n".join(d for d in details if d))


def _dispatch(cell: CellValues | None) -> Said:
    """Dispatch where it can be told from slowdown, else both together, named so."""
    if cell is None or not cell.ok:
        return Said(NONE)
    if cell.dispatch_per_action is not None:
        return said(cell.dispatch_per_action, units.seconds_interval)
    if cell.tax_per_action is None:
        return Said(UNKNOWN)
    return Said(UNKNOWN, f"with slowdown\n{units.seconds(cell.tax_per_action.estimate)}")


def _kinds(cells: list[CellValues]) -> str:
    kinds: dict[str, int] = {}
    for c in cells:
        for kind, count in c.failures.items():
            kinds[kind] = kinds.get(kind, 0) + count
    return units.failures(kinds)


def isolation(summary: Summary) -> Table:
    """What the figures are to be weighed against."""
    named = [(s, summary.substrates.get(s, {}).get("isolation", "")) for s in summary.compared]
    known = [(s, name, LEVELS[level]) for s, name in named if (level := level_of(name)) is not None]
    return Table(
        "isolation",
        "What stands between the agent's code and the host",
        "The level is of the kind of substrate, not of how well this one is set up.",
        ("substrate", "isolation", "in between", "and past it"),
        tuple(
            (Said(s), Said(name.replace("_", " ")), Said(level.between), Said(level.past))
            for s, name, level in known
        ),
    )


def cells(summary: Summary) -> Table:
    """Every cell of the design."""
    columns: tuple[str, ...] = (
        "workload",
        "substrate",
        "ok / n",
        "tti p50",
        "tti p95",
        "episode p50",
        "episode p95",
    )
    columns = (*columns, "total p50", "total mean", "CPU per trial")
    far = any(c.tti_p99 is not None for c in summary.cells)
    if far:
        columns = (*columns, "tti p99", "episode p99")
    return Table(
        "cells",
        "Every cell",
        "Quantiles count failed trials as never ending; means and CPU seconds are of those that are ok. "
        "CPU seconds are the harness's and its children's: a daemon's sandboxes are not in them. "
        "p95 is a bound below n = 72 and not given below n = 40, p99 below 368 and 200.",
        columns,
        tuple(
            (
                Said(c.workload, "" if c.main else c.variant),
                Said(c.label),
                Said(
                    f"{c.ok} / {c.n}",
                    _kinds([c]) or (f"+ {c.warm_ups} warm-up" if c.warm_ups else ""),
                ),
                *(
                    said(i, units.seconds_interval)
                    for i in (c.tti_p50, c.tti_p95, c.episode_p50, c.episode_p95, c.total_p50)
                ),
                said(c.total_mean, units.seconds_interval),
                said(c.cpu_p50, units.seconds_interval),
                *(
                    said(i, units.seconds_interval)
                    for i in ((c.tti_p99, c.episode_p99) if far else ())
                ),
            )
            for c in _by_workload(summary)
        ),
    )


def _by_workload(summary: Summary) -> list[CellValues]:
    order = {w: i for i, w in enumerate(dict.fromkeys(c.workload for c in summary.cells))}
    return sorted(summary.cells, key=lambda c: order[c.workload])


def components(summary: Summary) -> Table:
    """Mean components of every cell: they add up to the mean total."""
    columns: tuple[str, ...] = (
        "workload",
        "substrate",
        "Q",
        "C",
        "R",
        "S",
        "work",
        "slowdown",
        "dispatch",
    )
    columns = (*columns, "F", "G", "total", "tax", "tax share")
    rows = []
    for c in _by_workload(summary):
        p = c.parts
        if p is None:
            continue
        times = (p.queue, p.create, p.ready, p.set_up, p.work, p.slowdown, p.dispatch)
        tail = (p.cleanup, p.gap, p.total)
        rows.append(
            (
                Said(c.workload),
                Said(c.label, units.tally(c.n, c.failed)),
                *(Said(units.seconds(t)) for t in (*times, *tail)),
                said(c.tax_mean, units.seconds_interval, UNKNOWN),
                said(c.tax_share, units.share_interval, UNKNOWN),
            )
        )
    return Table(
        "components",
        "Mean components",
        "Q queue, C create, R ready, S set-up, F clean-up, G harness. Work, slowdown and dispatch are sums over "
        "the actions. Tax is everything but work and G; the set-up's own work is not tax. Not known: the "
        "substrate does not tell slowdown from dispatch, or the study has no bare baseline.",
        columns,
        tuple(rows),
    )


def dispatch(summary: Summary) -> Table:
    """What one action costs above the command itself; T0x300 is the floor."""
    return Table(
        "dispatch",
        "Dispatch and tax per action",
        "p50: over trials, of each trial's median action. T0x300 (300 times `true` in one sandbox) is the floor of "
        "dispatch. Tax per action is dispatch and slowdown together. Not known: nothing times the command inside.",
        (
            "workload",
            "substrate",
            "ok / n",
            "dispatch p50",
            "dispatch mean",
            "tax per action, mean",
        ),
        tuple(
            (
                Said(c.workload),
                Said(c.label),
                Said(f"{c.ok} / {c.n}"),
                said(c.dispatch_p50, units.seconds_interval, UNKNOWN),
                said(c.dispatch_per_action, units.seconds_interval, UNKNOWN),
                said(c.tax_per_action, units.seconds_interval, UNKNOWN),
            )
            for c in _by_workload(summary)
            if c.ok
        ),
    )


def fits(summary: Summary) -> Table:
    return Table(
        "fits",
        "F + K p: once and per action",
        "Least squares over all trials of all lengths, blocks resampled; beside it the same read off the marks. "
        "Lack of fit: the largest relative distance of a mean from the line.",
        (
            "substrate",
            "of",
            "F fitted",
            "F from marks",
            "p fitted",
            "p from marks",
            "lack of fit",
            "K",
        ),
        tuple(
            (
                Said(f.label),
                Said(f.metric),
                said(f.fixed, units.seconds_interval),
                Said(units.seconds(f.direct_fixed)),
                said(f.per_action, units.seconds_interval),
                Said(units.seconds(f.direct_per_action)),
                Said(units.share(f.lack_of_fit)),
                Said(", ".join(map(str, f.lengths))),
            )
            for f in summary.fits
        ),
    )
