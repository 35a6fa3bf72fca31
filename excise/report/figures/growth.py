"""F5 and F6: what a longer trajectory costs, and what a million of them do."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from excise.report.figures.common import listed, log_times, provenance, sheet, time_axis
from excise.report.figures.look import (
    Drawing,
    NotDrawn,
    ink_of,
    is_wide,
    legend_below,
    render,
)
from excise.report.units import (
    count,
    hours_interval,
    ratio,
    seconds,
    seconds_interval,
    tally,
)
from excise.report.values import SIZES, CellValues, Fit, Summary
from excise.tax.interval import Interval


def lengths(summary: Summary) -> Drawing | NotDrawn:
    """F5: episode and amortised cost per action against K, with the line F + K p."""
    title = "F5 · Longer trajectories: episode and amortised cost per action"
    rows = [(s, cells) for s in summary.compared if (cells := _lengths_of(summary, s))]
    if not rows:
        return NotDrawn("F5", title, "no trajectory (K10, K50, K150) was run")
    figure, (episode, amortised) = sheet(summary, 2, 3.4)
    for s, cells in rows:
        ink = ink_of(s, summary.labels)
        fit = summary.fit(s, "episode")
        _points(episode, cells, [c.episode_p50 for c in cells], ink.light, ink.marker)
        _points(amortised, cells, [c.amortised_p50 for c in cells], ink.light, ink.marker)
        if fit is not None:
            _line(episode, amortised, fit, ink.light)
    for axes, name in ((episode, "episode, p50"), (amortised, "episode / K, p50")):
        _finish(axes, summary, name)
    handles = [
        Line2D(
            [], [], color=ink_of(s, summary.labels).light, marker=ink_of(s, summary.labels).marker
        )
        for s, _ in rows
    ]
    legend_below(figure, handles, [_legend(summary, s, cells) for s, cells in rows], 2)
    svg, png = render(figure)
    caption = (
        "Points: medians with 95 % intervals. Lines: least-squares fit of the episode, F + K p, drawn over "
        "the lengths that were measured. Episode / K is an average with start-up in it, not a command's "
        f"latency: it falls with K although no command gets faster. {provenance(summary)}"
    )
    said = [
        f"{_legend(summary, s, cells)}: "
        + ", ".join(f"K={c.actions} {seconds_interval(c.episode_p50)}" for c in cells)
        for s, cells in rows
    ]
    return Drawing("F5", title, caption, f"Episode against length. {listed(said)}.", svg, png)


def _lengths_of(summary: Summary, label: str) -> list[CellValues]:
    cells = [c for k in summary.lengths() if (c := summary.cell(label, f"K{k}"))]
    return [c for c in cells if c.n]


def _points(
    axes: Axes, cells: list[CellValues], values: list[Interval | None], colour: str, marker: str
) -> None:
    for cell, value in zip(cells, values, strict=True):
        if value is None or value.estimate == float("inf"):
            continue
        axes.plot([cell.actions], [value.estimate], marker=marker, color=colour, ms=6, ls="")
        if value.low is not None and value.high is not None and value.high < float("inf"):
            axes.plot([cell.actions] * 2, [value.low, value.high], color=colour, lw=1.6)


def _line(episode: Axes, amortised: Axes, fit: Fit, colour: str) -> None:
    first, last = fit.lengths[0], fit.lengths[-1]
    xs = [first + (last - first) * i / 60 for i in range(61)]
    ys = [fit.fixed.estimate + x * fit.per_action.estimate for x in xs]
    episode.plot(xs, ys, color=colour, lw=1.2)
    amortised.plot(xs, [y / x for x, y in zip(xs, ys, strict=True)], color=colour, lw=1.2)


def _finish(axes: Axes, summary: Summary, name: str) -> None:
    drawn = [float(y) for line in axes.lines for y in np.asarray(line.get_ydata(), dtype=float)]
    if is_wide(drawn):
        log_times(axes, min(drawn) / 1.4, max(drawn) * 1.4, "y")
        name += " (log)"
    else:
        axes.set_ylim(0, max(drawn, default=1.0) * 1.1)
        time_axis(axes, "y")
    ks = summary.lengths()
    axes.set_xticks(ks)
    axes.set_xlim(0, ks[-1] * 1.06)
    axes.set(xlabel="actions in the trajectory, K", title=name)


def _legend(summary: Summary, label: str, cells: list[CellValues]) -> str:
    fit = summary.fit(label, "episode")
    line = (
        f"{seconds(fit.fixed.estimate)} + K · {seconds(fit.per_action.estimate)}"
        if fit
        else "no fit"
    )
    if len({(c.n, c.failed) for c in cells}) == 1:
        return f"{label}: {line} · {tally(cells[0].n, cells[0].failed)}"
    tallies = "/".join(str(c.n) for c in cells)
    failed = "/".join(str(c.failed) for c in cells)
    return f"{label}: {line} · n={tallies}, failed {failed}"


KINDS = (
    ("tax", "tax-hours"),
    ("sandbox", "sandbox-hours"),
    ("occupied", "occupied-hours, 4 s think time"),
)


def worker_hours(summary: Summary) -> Drawing | NotDrawn:
    """F6: worker-hours against the number of trajectories, in three kinds."""
    title = "F6 · Worker-hours at training scale"
    rows = [r for r in summary.hours if r.label in summary.compared]
    if not rows:
        return NotDrawn("F6", title, "no trajectory (K10, K50, K150) went through")
    figure, panels = sheet(summary, 3, 3.5, sharey=True)
    drawn: list[float] = []
    for axes, (kind, name) in zip(panels, KINDS, strict=True):
        below = []
        for row in rows:
            value = {"tax": row.tax, "sandbox": row.sandbox, "occupied": row.occupied.get("4")}[
                kind
            ]
            if value is not None and value.estimate > 0:
                drawn += _band(axes, value, ink_of(row.label, summary.labels).light)
            elif value is not None:
                below.append(row.label)
        if below:
            said = "not above zero, not drawn:\n" + "\n".join(below)
            axes.text(0.03, 0.97, said, transform=axes.transAxes, va="top", size=8.5)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(SIZES[0], SIZES[-1])
        axes.set_xticks([1e4, 1e5, 1e6, 1e7], [count(v) for v in (1e4, 1e5, 1e6, 1e7)])
        axes.yaxis.set_major_formatter(lambda v, _: f"{v:,.0f} h" if v >= 1 else f"{v:g} h")
        axes.minorticks_off()
        spread = summary.spreads.get(kind if kind != "occupied" else "occupied 4 s")
        if spread is not None:
            said = f"slowest / fastest\nsandbox: {ratio(spread)}"
            axes.text(0.97, 0.04, said, transform=axes.transAxes, ha="right", size=8.5)
        axes.set(title=name, xlabel="trajectories, N (log)")
    if drawn:
        panels[0].set_ylim(min(drawn) / 3, max(drawn) * 3)
    panels[0].set_ylabel("worker-hours (log)")
    handles = [Line2D([], [], color=ink_of(r.label, summary.labels).light, lw=2) for r in rows]
    names = [f"{r.label} · K={r.actions} · {tally(r.n, r.failed)}" for r in rows]
    legend_below(figure, handles, names, 3)
    svg, png = render(figure)
    caption = (
        f"N times a mean over {rows[0].workload}, / 3600; bands are the 95 % intervals of the means. Tax-hours: what "
        "a bare process would not have needed. Sandbox-hours: the paper's equation (2). Occupied-hours: the "
        "worker is held while the model thinks, 4 s per action. All are linear in N: read ratios off any N. A band that "
        "reaches the bottom has zero in its interval. "
        f"{provenance(summary)}"
    )
    hours = [
        f"{r.label}: tax {hours_interval(r.tax)}, sandbox {hours_interval(r.sandbox)}, occupied {hours_interval(r.occupied.get('4'))}"
        for r in rows
    ]
    return Drawing(
        "F6",
        title,
        caption,
        f"Worker-hours at one million trajectories. {listed(hours)}.",
        svg,
        png,
    )


def _band(axes: Axes, at_a_million: Interval, colour: str) -> list[float]:
    """The line and its interval, which may reach down to nothing; returns the ends of the line."""
    factors = [n / 1e6 for n in SIZES]
    line = [f * at_a_million.estimate for f in factors]
    axes.plot(SIZES, line, color=colour, lw=1.7)
    if at_a_million.low is not None and at_a_million.high is not None:
        low = [f * max(at_a_million.low, 1e-9) for f in factors]
        high = [f * at_a_million.high for f in factors]
        axes.fill_between(SIZES, low, high, color=colour, alpha=0.18, lw=0)
    return [line[0], line[-1]]
