"""F1 and F4: where a rollout's time goes, in stacked means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from excise.report.figures.common import (
    HATCHED,
    UNKNOWN_NOTE,
    at_end,
    provenance,
    row_name,
    sheet,
    stacked,
    time_axis,
)
from excise.report.figures.look import (
    COMPONENTS,
    PAPER,
    Drawing,
    NotDrawn,
    legend_below,
    render,
)
from excise.report.units import seconds, share, tally
from excise.report.values import CellValues, Parts, Summary

VISIBLE = 0.002
"""A component below this share of every bar is left out of the legend, not out of the bar's length."""


def breakdown(summary: Summary, tier: str = "T2") -> Drawing | NotDrawn:
    """F1: stacked means of one tier, in seconds and as shares."""
    title = f"F1 · Where the time of a rollout goes ({tier})"
    cells = [c for s in summary.compared if (c := summary.cell(s, tier))]
    rows = [(c, c.parts) for c in cells if c.parts is not None]
    if not rows:
        return NotDrawn("F1", title, f"no trial of {tier} went through")
    figure, (absolute, relative) = sheet(summary, 2, 0.9 + 0.5 * len(rows), sharey=True)
    stacks = [p.stack() for _, p in rows]
    y = list(range(len(rows)))
    shown = {k for s in stacks for k, v in s.items() if v > 0}
    handles = stacked(absolute, y, stacks, height=0.62, shown=shown)
    shares = [
        {k: v / p.total for k, v in s.items()} for s, (_, p) in zip(stacks, rows, strict=True)
    ]
    stacked(relative, y, shares, height=0.62, shown=shown)
    for i, (_, parts) in enumerate(rows):
        at_end(absolute, parts.total, i, seconds(parts.total))
        tax = rows[i][0].tax_share
        at_end(relative, 1.0, i, f"tax {share(tax.estimate)}" if tax is not None else "")
    absolute.set_yticks(y, [row_name(c) for c, _ in rows])
    absolute.invert_yaxis()
    absolute.set(title="mean time", xlabel="time per rollout")
    absolute.set_xlim(0, max(p.total for _, p in rows) * 1.16)
    time_axis(absolute)
    relative.set(title="share of the same", xlabel="share of the rollout's total")
    _percent(relative, 1.2)
    for axes in (absolute, relative):
        axes.grid(axis="y", visible=False)
    _legend(figure, handles, shares)
    svg, png = render(figure)
    return Drawing("F1", title, _caption_f1(summary, tier, rows), _alt(tier, rows), svg, png)


def _percent(axes: Axes, end: float) -> None:
    axes.set_xlim(0, end)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1.0], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    axes.spines["bottom"].set_bounds(0, 1)


def _legend(figure: Figure, drawn: Iterable[str], shares: Sequence[Mapping[str, float]]) -> None:
    """The components that can be seen, in the order they are stacked."""
    seen = [k for k in drawn if any(s.get(k, 0.0) >= VISIBLE for s in shares)]
    patches = [
        Patch(facecolor=COMPONENTS[k][1].light, hatch=HATCHED.get(k), edgecolor=PAPER, lw=0)
        for k in seen
    ]
    legend_below(figure, patches, [COMPONENTS[k][0] for k in seen], 4)


def _caption_f1(summary: Summary, tier: str, rows: list[tuple[CellValues, Parts]]) -> str:
    used = {k for _, p in rows for k, v in p.stack().items() if v > 0}
    notes = [UNKNOWN_NOTE[k] for k in UNKNOWN_NOTE if k in used]
    gone = [c for s in summary.compared if (c := summary.cell(s, tier)) and c.n and not c.ok]
    notes += [f"no bar for {c.label}: none of {c.n} trials came through" for c in gone]
    below = [
        f"{c.label} {seconds(p.slowdown)}"
        for c, p in rows
        if p.slowdown is not None and p.slowdown < 0
    ]
    if below:
        notes.append(
            f"slowdown below zero is drawn as shorter work ({', '.join(below)}): the commands ran no "
            "slower in there than as bare processes"
        )
    return " ".join(
        [
            f"Mean components of {tier}, trials that are ok, warm-ups excluded.",
            "Means are stacked because means add up and medians do not.",
            "Work is what the same commands cost as bare processes; the rest is the tax.",
            "Orchestration is part of create, ready and dispatch: no substrate here reports it apart.",
            *(f"{n[0].upper()}{n[1:]}." for n in notes),
            provenance(summary),
        ]
    )


def _alt(tier: str, rows: list[tuple[CellValues, Parts]]) -> str:
    said = [
        f"{c.label} {seconds(p.total)} ({tally(c.n, c.failed)}), of it "
        + ", ".join(f"{COMPONENTS[k][0]} {seconds(v)}" for k, v in p.stack().items() if v > 0)
        for c, p in rows
    ]
    return f"Stacked bars of the mean time of {tier}: " + "; ".join(said) + "."


def composition(summary: Summary) -> Drawing | NotDrawn:
    """F4: shares of fixed cost, dispatch, slowdown and work as trajectories grow longer."""
    title = "F4 · How the composition changes with the trajectory's length"
    groups = []
    for label in summary.compared:
        cells = [c for k in summary.lengths() if (c := summary.cell(label, f"K{k}"))]
        bars = [(c, c.parts) for c in cells if c.parts is not None]
        if bars:
            groups.append((label, bars))
    if not groups:
        return NotDrawn("F4", title, "no trajectory (K10, K50, K150) went through")
    count = sum(len(bars) for _, bars in groups)
    figure, (axes,) = sheet(summary, 1, 0.55 + 0.27 * count + 0.16 * len(groups))
    y: list[float] = []
    names: list[str] = []
    stacks: list[dict[str, float]] = []
    place = 0.0
    for _, bars in groups:
        for cell, parts in bars:
            y.append(place)
            names.append(f"{cell.label} · K={cell.actions} · {tally(cell.n, cell.failed)}")
            stacks.append(_shares(parts))
            place += 1
        place += 0.6
    handles = stacked(axes, y, stacks, height=0.8, shown={k for s in stacks for k in s})
    for at, (_, parts) in zip(y, [b for _, bars in groups for b in bars], strict=True):
        at_end(axes, 1.0, at, f"of {seconds(parts.total)}")
    axes.set_yticks(y, names)
    axes.set_ylim(max(y) + 0.6, -0.6)
    axes.set_xlabel("share of the trajectory's total")
    _percent(axes, 1.1)
    axes.grid(axis="y", visible=False)
    _legend(figure, handles, stacks)
    svg, png = render(figure)
    notes = [UNKNOWN_NOTE[k] for k in UNKNOWN_NOTE if k in handles]
    caption = " ".join(
        [
            "Normalised means of trajectories of each length K, trials that are ok.",
            "Fixed is queue, create, ready, set-up (the clone, with the work in it) and clean-up.",
            *(f"{n[0].upper()}{n[1:]}." for n in notes),
            provenance(summary),
        ]
    )
    alt = "Normalised stacked bars: " + "; ".join(
        f"{name}: " + ", ".join(f"{COMPONENTS[k][0]} {share(v)}" for k, v in s.items() if v > 0)
        for name, s in zip(names, stacks, strict=True)
    )
    return Drawing("F4", title, caption, alt + ".", svg, png)


def _shares(parts: Parts) -> dict[str, float]:
    whole = {"fixed": parts.fixed} | parts.acts() | {"gap": parts.gap}
    return {k: v / parts.total for k, v in whole.items()}
