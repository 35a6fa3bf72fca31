"""What figures share: the footer that says where numbers come from, whiskers, and stacked bars."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from excise.report.figures.look import COMPONENTS, INK, MUTED, PAPER, WIDTH_IN, Ink
from excise.report.scale import emulated
from excise.report.units import seconds_scale, tally
from excise.report.values import CellValues, Summary
from excise.tax.interval import Interval

VERSIONS = ("version", "engine", "runtime")
"""What of a substrate's description belongs into a caption; the page lists all of it."""

HATCHED = {"unsplit": "////", "acting": "...."}
UNKNOWN_NOTE = {
    "unsplit": "hatched: the substrate does not tell slowdown from dispatch",
    "acting": "dotted: no bare baseline in this study, so work and tax are not told apart",
}


def sheet(
    summary: Summary, columns: int, height_in: float, **options: Any
) -> tuple[Figure, list[Axes]]:
    """A figure of one row of panels, `height_in` high without legend, its source in small print at the foot."""
    figure = Figure(figsize=(WIDTH_IN, height_in))
    axes = figure.subplots(1, columns, squeeze=False, **options)
    figure.text(
        0.04, 0.05, source(summary), size=7.5, color=MUTED, transform=figure.dpi_scale_trans
    )
    return figure, list(axes[0])


def source(summary: Summary) -> str:
    """Where and when: what must stand on a figure that travels without its page."""
    facts = [str(summary.host.get("cpu") or "unnamed CPU"), f"{summary.started[:10]}"]
    facts += [f"preset {summary.preset}", f"excise {summary.version}", f"study {summary.id[:12]}"]
    return " · ".join(facts)


def provenance(summary: Summary) -> str:
    """The caption's last sentence: host, date, versions, preset."""
    cores = summary.host.get("cores")
    where = f"{summary.host.get('cpu') or 'unnamed CPU'}{f', {cores} cores' if cores else ''}"
    kernel = summary.host.get("kernel")
    not_real = emulated(summary.substrates)
    versions = "; ".join(
        f"{label} {' '.join(known)}"
        for label, facts in summary.substrates.items()
        if (
            known := ["(emulated)"] * (label in not_real)
            + [v for k, v in facts.items() if any(w in k for w in VERSIONS)]
        )
    )
    parts = [where, f"kernel {kernel}" if kernel else "", summary.started[:10]]
    parts += [f"preset {summary.preset}", versions]
    return "Host: " + ", ".join(p for p in parts if p) + "."


def row_name(cell: CellValues) -> str:
    return f"{cell.label}\n{tally(cell.n, cell.failed)}"


def time_axis(axes: Axes, which: str = "x") -> None:
    """Ticks as `10 ms`, `1 s`: units at every tick, one unit on a linear axis."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    if (axes.get_xscale() if which == "x" else axes.get_yscale()) == "log":
        axis.set_major_formatter(FuncFormatter(lambda v, _: tick(v)))
        axis.set_minor_formatter(NullFormatter())
        return
    factor, unit = seconds_scale(axes.get_xlim()[1] if which == "x" else axes.get_ylim()[1])
    axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v * factor:,.4g} {unit}" if v else "0"))
    axis.set_major_locator(MaxNLocator(5))


def tick(value_s: float) -> str:
    if value_s == 0:
        return "0"
    factor, unit = seconds_scale(value_s)
    return f"{value_s * factor:,.4g} {unit}"


def log_times(axes: Axes, low: float, high: float, which: str = "x") -> None:
    """A log axis over whole values, with more ticks where the span is short."""
    if which == "x":
        axes.set_xscale("log")
        axes.set_xlim(low, high)
    else:
        axes.set_yscale("log")
        axes.set_ylim(low, high)
    axis = axes.xaxis if which == "x" else axes.yaxis
    decades = math.log10(high / low)
    subs = (1.0, 2.0, 5.0) if decades < 1.7 else (1.0,) if decades > 2.6 else (1.0, 3.0)
    axis.set_major_locator(LogLocator(subs=subs, numticks=20))
    time_axis(axes, which)


def dot(axes: Axes, x: Interval, y: float, ink: Ink, ceiling: float, *, hollow: bool) -> None:
    """A point with its interval; a bound that does not exist is drawn as an arrow, an infinity at the edge."""
    low, high = x.low, x.high
    if low is not None or high is not None:
        end = ceiling if high is None or math.isinf(high) else high
        axes.plot([low if low is not None else x.estimate, end], [y, y], color=ink.light, lw=1.6)
    if math.isinf(x.estimate):
        axes.plot([ceiling], [y], marker=">", color=ink.light, clip_on=False)
        return
    face = PAPER if hollow else ink.light
    axes.plot(
        [x.estimate],
        [y],
        ls="",
        marker=ink.marker,
        ms=6.5,
        mfc=face,
        mec=ink.light,
        mew=1.5,
        c=ink.light,
    )


def stacked(
    axes: Axes,
    y: Sequence[float],
    stacks: Sequence[Mapping[str, float]],
    *,
    height: float,
    shown: set[str],
) -> dict[str, BarContainer]:
    """Horizontal stacked bars in the components' fixed order; returns one handle per component drawn."""
    handles: dict[str, BarContainer] = {}
    left = [0.0] * len(stacks)
    for name in COMPONENTS:
        widths = [s.get(name, 0.0) for s in stacks]
        if name not in shown or not any(widths):
            continue
        label, ink = COMPONENTS[name]
        hatch = HATCHED.get(name)
        handles[name] = axes.barh(
            y,
            widths,
            height,
            left=left,
            color=ink.light,
            label=label,
            hatch=hatch,
            edgecolor=PAPER if hatch else ink.light,
            linewidth=0,
        )
        left = [a + b for a, b in zip(left, widths, strict=True)]
    return handles


def at_end(axes: Axes, x: float, y: float, text: str) -> None:
    axes.annotate(
        text, (x, y), (4, 0), textcoords="offset points", va="center", size=8.5, color=INK
    )


def listed(texts: Sequence[str]) -> str:
    return "; ".join(t for t in texts if t)
