"""F7: what came of load shapes: how many sandboxes had been asked for and how many had answered, by time."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from excise.report.figures.common import listed, provenance, sheet, time_axis
from excise.report.figures.look import MUTED, Drawing, NotDrawn, ink_of, legend_below, render
from excise.report.units import seconds, tally
from excise.report.values import Load, Summary

MOST = 4
"""Panels side by side; a study with more shapes has the others in its table."""


def ramps(summary: Summary) -> Drawing | NotDrawn:
    """F7: one panel per load; the distance between the two curves of a substrate is its latency."""
    title = "F7 · Under load: asked for and answered"
    told = [x for x in summary.loads if not x.void]
    if not told:
        reason = "no load shape was run" if not summary.loads else "every load run is void"
        return NotDrawn("F7", title, reason)
    panels = list(dict.fromkeys((x.workload, x.load) for x in told))[:MOST]
    labels = list(dict.fromkeys(x.label for x in told if (x.workload, x.load) in panels))
    figure, axes = sheet(summary, len(panels), 3.2)
    for panel, (workload, load) in zip(axes, panels, strict=True):
        _panel(
            panel, summary, [x for x in told if (x.workload, x.load) == (workload, load)], labels
        )
        panel.set_title(f"{load} · {workload}")
    axes[0].set_ylabel("sandboxes")
    handles = [Line2D([], [], color=MUTED, ls=":", lw=1.6)]
    handles += [Line2D([], [], color=ink_of(s, summary.labels).light, lw=1.8) for s in labels]
    names = ["due (open loop)", *(f"{s} · {_tallies(told, s)}" for s in labels)]
    legend_below(figure, handles, names, 3)
    svg, png = render(figure)
    caption = (
        "Sandboxes that were due and those that had answered, counted from the first that was due. The distance "
        "to the right between the two is the time to the first answer, waiting included. A curve that ends below "
        f"the top, with a cross, lost the rest to failures. {provenance(summary)}"
    )
    said = [
        f"{x.label} {x.load} ({tally(x.n, x.failed)}): all ready after {seconds(x.last_s) if x.last_s else 'never'}"
        for x in told
    ]
    return Drawing("F7", title, caption, f"Step curves by time. {listed(said)}.", svg, png)


def _tallies(loads: list[Load], label: str) -> str:
    return ", ".join(dict.fromkeys(tally(x.n, x.failed) for x in loads if x.label == label))


def _panel(axes: Axes, summary: Summary, loads: list[Load], labels: list[str]) -> None:
    ends = [t for x in loads for t in (*x.answered, x.asked[-1])]
    high = max(ends, default=0.0) * 1.08 or 1.0
    due = loads[0].asked
    axes.step([0.0, *due, high], [0, *range(1, len(due) + 1), len(due)], where="post", color=MUTED, ls=":", lw=1.6)  # fmt: skip
    for x in sorted(loads, key=lambda x: labels.index(x.label)):
        ink = ink_of(x.label, summary.labels)
        counts = range(1, len(x.answered) + 1)
        last = len(x.answered)
        axes.step([0.0, *x.answered, high], [0, *counts, last], where="post", color=ink.light, lw=1.8)  # fmt: skip
        if last < x.n:
            axes.plot([high], [last], marker="x", ms=7, mew=2, color=ink.light, clip_on=False)
    axes.set_xlim(0, high)
    axes.set_ylim(0, max(x.n for x in loads) * 1.05)
    time_axis(axes)
    axes.set_xlabel("time since the first was due")
