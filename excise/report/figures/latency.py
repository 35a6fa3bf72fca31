"""F2 and F3: how long until a sandbox answers and until an episode is over, per tier."""

from __future__ import annotations

import math

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from excise.report.figures.common import (
    dot,
    listed,
    log_times,
    provenance,
    row_name,
    sheet,
    time_axis,
)
from excise.report.figures.look import (
    INK,
    MUTED,
    PAPER,
    Drawing,
    NotDrawn,
    ink_of,
    is_wide,
    legend_below,
    render,
)
from excise.report.units import ratio_interval, seconds, seconds_interval, tally
from excise.report.values import BARE, CellValues, Summary
from excise.tax.interval import Interval

TIERS = ("T0", "T1", "T2")


def tiers(summary: Summary) -> Drawing | NotDrawn:
    """F2: p50 of tti and of the episode, per substrate and tier, log axis, with the tier's work."""
    title = "F2 · Cold start and episode, p50"
    found = [t for t in TIERS if any(summary.cell(s, t) for s in summary.labels)]
    rows = [s for s in summary.labels if any(summary.cell(s, t) for t in found)]
    if not rows:
        return NotDrawn("F2", title, "no trial of T0, T1 or T2 was run")
    figure, panels = sheet(summary, len(found), 0.9 + 0.52 * len(rows), sharey=True)
    for axes, tier in zip(panels, found, strict=True):
        cells = {s: summary.cell(s, tier) for s in rows}
        _tier(axes, summary, tier, cells)
    panels[0].set_yticks(range(len(rows)), [_row(summary, s, found) for s in rows])
    panels[0].set_ylim(len(rows) - 0.4, -0.6)
    hollow = Line2D([], [], marker="o", ls="", mfc=PAPER, mec=INK, mew=1.5)
    full = Line2D([], [], marker="o", ls="", color=INK)
    line = Line2D([], [], color=INK, lw=1.6)
    names = [
        "tti: request to first answer",
        "episode: request to last observation",
        "95 % interval",
    ]
    legend_below(figure, [hollow, full, line], names, 3)
    svg, png = render(figure)
    return Drawing("F2", title, _caption(summary), _alt(summary, found, rows), svg, png)


def _row(summary: Summary, label: str, found: list[str]) -> str:
    cells = [c for t in found if (c := summary.cell(label, t))]
    if len({(c.n, c.failed) for c in cells}) == 1:
        return row_name(cells[0])
    tallies = ", ".join(f"{c.tier} {c.n}" + (f"/{c.failed}✗" if c.failed else "") for c in cells)
    return f"{label}\nn: {tallies}"


def _tier(axes: Axes, summary: Summary, tier: str, cells: dict[str, CellValues | None]) -> None:
    values = [
        v
        for c in cells.values()
        if c is not None
        for i in (c.tti_p50, c.episode_p50)
        if i is not None
        for v in (i.estimate, i.low, i.high)
        if v is not None and 0 < v < math.inf
    ]
    low, high = (min(values) / 1.6, max(values) * 1.6) if values else (1e-3, 1.0)
    log_times(axes, low, high)
    for y, (label, cell) in enumerate(cells.items()):
        if cell is None:
            continue
        ink = ink_of(label, summary.labels)
        for interval, hollow in ((cell.tti_p50, True), (cell.episode_p50, False)):
            if interval is not None:
                dot(axes, interval, y, ink, high, hollow=hollow)
        said = (
            f"{ratio_interval(cell.episode_vs_bare)} bare"
            if cell.episode_vs_bare is not None
            else ""
        )
        if cell.n and cell.ok == 0:
            said = "no trial came through"
        axes.text(
            0.99,
            y + 0.34,
            said,
            transform=axes.get_yaxis_transform(),
            ha="right",
            va="center",
            fontsize=8,
            color=MUTED,
        )
    bare = summary.cell("bare", tier)
    work = bare.work_mean if bare is not None else None
    axes.set_title(
        f"{tier} · work {seconds(work.estimate)}" if work else f"{tier} · work not known"
    )
    axes.set_xlabel("\n".join(["time (log)", *_declared(summary, tier)]))
    axes.grid(axis="y", visible=False)


def _declared(summary: Summary, tier: str) -> list[str]:
    """The ratios of episodes that were named beforehand, apart from those to bare, which stand in the rows."""
    workloads = {c.workload for s in summary.labels if (c := summary.cell(s, tier))}
    return [
        f"{r.a} / {r.b}: {ratio_interval(r.ratio)}"
        for r in summary.ratios
        if r.b != BARE and r.metric == "episode" and r.workload in workloads
    ]


def _caption(summary: Summary) -> str:
    return (
        "Medians with order-statistic 95 % intervals; failed trials count as never ending. "
        "Small print in each row: the episode's ratio to bare, paired within blocks; below each panel the other "
        "pairs that were declared. Work is the mean of "
        "what the tier's commands cost as bare processes: the larger it is, the closer every ratio must "
        f"come to 1. {provenance(summary)}"
    )


def _alt(summary: Summary, found: list[str], rows: list[str]) -> str:
    said = [
        f"{s} {t} ({tally(c.n, c.failed)}): tti {seconds_interval(c.tti_p50)}, "
        f"episode {seconds_interval(c.episode_p50)}"
        for t in found
        for s in rows
        if (c := summary.cell(s, t))
    ]
    return f"Dots with intervals on log axes. {listed(said)}."


def distributions(summary: Summary) -> Drawing | NotDrawn:
    """F3: the whole distribution of tti per tier; what failed never reaches the top."""
    title = "F3 · Distribution of cold starts"
    found = [t for t in TIERS if any(_drawable(summary, s, t) for s in summary.labels)]
    rows = [s for s in summary.labels if any(_drawable(summary, s, t) for t in found)]
    if not found:
        return NotDrawn("F3", title, "no trial of T0, T1 or T2 was run")
    figure, panels = sheet(summary, len(found), 3.4, sharey=True)
    for axes, tier in zip(panels, found, strict=True):
        _curves(axes, summary, tier, rows)
    panels[0].set_yticks(
        [0, 0.25, 0.5, 0.75, 0.95, 1.0], ["0 %", "25 %", "50 %", "75 %", "95 %", "100 %"]
    )
    panels[0].set_ylim(0, 1.03)
    panels[0].set_ylabel("share of trials that had answered")
    handles = [
        Line2D(
            [], [], color=ink_of(s, summary.labels).light, marker=ink_of(s, summary.labels).marker
        )
        for s in rows
    ]
    legend_below(figure, handles, [_row(summary, s, found).replace("\n", " · ") for s in rows], 3)
    svg, png = render(figure)
    caption = (
        "Empirical distribution of tti with a simultaneous 95 % band; marks at p50 and p95 with "
        "order-statistic intervals. p95 is marked only where n allows it to be stated. A failed trial never "
        f"answers: its curve ends below 100 %, with a cross at the right edge. {provenance(summary)}"
    )
    said = [
        f"{s} {t} ({tally(c.n, c.failed)}): p50 {seconds_interval(c.tti_p50)}, p95 {seconds_interval(c.tti_p95)}"
        for t in found
        for s in rows
        if (c := summary.cell(s, t))
    ]
    return Drawing("F3", title, caption, f"Distribution curves of tti. {listed(said)}.", svg, png)


def _drawable(summary: Summary, label: str, tier: str) -> bool:
    cell = summary.cell(label, tier)
    return cell is not None and cell.curve is not None


def _curves(axes: Axes, summary: Summary, tier: str, rows: list[str]) -> None:
    cells = [c for s in rows if (c := summary.cell(s, tier)) and c.curve is not None]
    every = [v for c in cells if c.curve for v in c.curve.values]
    if not every:
        axes.text(0.5, 0.5, "no trial came through", transform=axes.transAxes, ha="center")
        axes.set(title=tier, xticks=[])
        return
    wide = is_wide(every)
    low, high = (min(every) / 1.5, max(every) * 1.5) if wide else (0.0, max(every) * 1.15)
    if wide:
        log_times(axes, low, high)
    else:
        axes.set_xlim(low, high)
        time_axis(axes)
    for cell in cells:
        curve = cell.curve
        if curve is None:
            continue
        ink = ink_of(cell.label, summary.labels)
        last = curve.shares[-1] if curve.shares else 0.0
        x = [low, *curve.values, high]
        axes.step(x, [0.0, *curve.shares, last], where="post", color=ink.light, lw=1.6)
        axes.fill_between(
            curve.values, curve.low, curve.high, step="post", color=ink.light, alpha=0.16, lw=0
        )
        for interval, height in ((cell.tti_p50, 0.5), (cell.tti_p95, 0.95)):
            if interval is not None and _marked(interval):
                dot(axes, interval, height, ink, high, hollow=False)
        if cell.failed:
            axes.plot([high], [last], marker="x", ms=7, mew=2, color=ink.light, clip_on=False)
    axes.set_title(tier)
    axes.set_xlabel("tti" + (" (log)" if wide else ""))


def _marked(interval: Interval) -> bool:
    return math.isfinite(interval.estimate) and (interval.high is not None or interval.n < 6)
